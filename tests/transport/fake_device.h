// A device table of memfds in place of the real one: small arenas, counted mappings, and the nth call fails
// on demand.
#ifndef RONDO_TESTS_TRANSPORT_FAKE_DEVICE_H
#define RONDO_TESTS_TRANSPORT_FAKE_DEVICE_H

#include <cstddef>

extern "C" {
#include "device/device.h"
}

namespace fake
{

constexpr int kDevices = 2;
constexpr size_t kArenaBytes = 8 << 20;

void Prepare();                   // make all arenas and the switchboard of this process now
unsigned char *Arena(int device); // of this process; made at the first call
int LiveMappings();               // arenas and switchboards of peers mapped here
void FailAfter(int calls);        // the call after this many fails; -1: none does
bool HasFailed();                 // since FailAfter

} // namespace fake

#endif
