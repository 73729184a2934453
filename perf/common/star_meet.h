/* star_meet.h - connecting the processes of a run that a launcher has started. */
#ifndef PERF_STAR_MEET_H
#define PERF_STAR_MEET_H

#include "processes.h"

/* Connect to the others, within limit_s. *links_out is the caller's, to free and close: see struct
 * perf_identity. */
enum perf_status perf_rendezvous_meet(const struct perf_identity *identity, int limit_s, int **links_out);

#endif
