// TCP addresses as text and back.
#include "base/address.h"
#include "base/error.h"

#include <gtest/gtest.h>

#include <arpa/inet.h>
#include <cstring>
#include <string>

namespace
{

TEST(Address, RoundTrips)
{
    const char *texts[] = {"1.2.3.4:5",        "127.0.0.1:65535",    "[::1]:80",
                           "[fe80::1%1]:5000", "[2001:db8::ffff]:1", "[::ffff:1.2.3.4]:9"};
    for (const char *text : texts) {
        rondo_address address;
        char out[RONDO_ADDRESS_TEXT];
        ASSERT_EQ(rondo_address_parse(text, &address), ncclSuccess) << text << rondo_error_last();
        EXPECT_STREQ(rondo_address_text(&address, out), text);
    }
}

TEST(Address, ResolvesNames)
{
    rondo_address address;
    ASSERT_EQ(rondo_address_parse("localhost:4321", &address), ncclSuccess) << rondo_error_last();
    EXPECT_GT(rondo_address_bytes(&address), 0u);
    EXPECT_EQ(ntohs(address.in4.sin_port), 4321) << "port lies at one place in both families";
}

TEST(Address, RefusesWhatIsNone)
{
    std::string endless(300, 'h');
    endless += ":1";
    const char *texts[] = {"",
                           ":",
                           "1.2.3.4",
                           "1.2.3.4:",
                           ":80",
                           "::1:80",
                           "[::1]",
                           "[]:80",
                           "[::1:80",
                           "::1]:80",
                           "1.2.3.4:0",
                           "h:65536",
                           "h:-1",
                           "h:+1",
                           "h: 1",
                           "h:1x",
                           "[x]:1",
                           "[1.2.3.4.5]:1",
                           "no.such.host.invalid:1",
                           endless.c_str()};
    for (const char *text : texts) {
        rondo_address address;
        std::memset(&address, 0x55, sizeof(address));
        EXPECT_EQ(rondo_address_parse(text, &address), ncclInvalidArgument) << text;
        EXPECT_NE(std::string(rondo_error_last()).find("\"" + std::string(text) + "\""), std::string::npos)
            << rondo_error_last();
        EXPECT_EQ(address.any.sa_family, 0x5555) << "outputs are written on success only";
    }
}

TEST(Address, UnknownFamilyIsWritten)
{
    rondo_address address{};
    char out[RONDO_ADDRESS_TEXT];
    address.any.sa_family = AF_UNIX;
    EXPECT_EQ(rondo_address_bytes(&address), 0u);
    EXPECT_NE(std::string(rondo_address_text(&address, out)).find("unknown family 1"), std::string::npos);
}

TEST(Address, LongestTextFits)
{
    rondo_address address{};
    char out[RONDO_ADDRESS_TEXT];
    address.in6.sin6_family = AF_INET6;
    std::memset(&address.in6.sin6_addr, 0xee, sizeof(address.in6.sin6_addr));
    address.in6.sin6_scope_id = UINT32_MAX;
    address.in6.sin6_port = htons(65535);
    EXPECT_STREQ(rondo_address_text(&address, out),
                 "[eeee:eeee:eeee:eeee:eeee:eeee:eeee:eeee%4294967295]:65535");
    static_assert(sizeof(rondo_address) == 28, "travels between ranks as it is");
}

} // namespace
