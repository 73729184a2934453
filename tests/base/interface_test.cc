// NCCL_SOCKET_IFNAME against a fixture list, and the live list.
#include "interface_rules.h"

#include "base/error.h"

#include <gtest/gtest.h>

#include <arpa/inet.h>
#include <cstring>
#include <string>
#include <vector>

namespace
{

std::vector<rondo_interface> Fixture()
{
    std::vector<rondo_interface> all;
    int last = 1;
    for (const char *name : {"lo", "eth0", "eth0.1", "docker0", "veth1", "virbr0", "ib0"}) {
        rondo_interface entry{};
        std::strcpy(entry.name, name);
        entry.address.in4.sin_family = AF_INET;
        entry.address.in4.sin_addr.s_addr = htonl(0x0a000000 + last++);
        all.push_back(entry);
    }
    rondo_interface six{};
    std::strcpy(six.name, "eth0");
    six.address.in6.sin6_family = AF_INET6;
    six.address.in6.sin6_addr = in6addr_loopback;
    all.push_back(six);
    return all;
}

std::string Pick(const char *rule, int family = AF_INET, int max = 16)
{
    std::vector<rondo_interface> all = Fixture();
    rondo_interface out[16];
    int count = rondo_interface_pick(all.data(), static_cast<int>(all.size()), rule, family, out, max);
    std::string names;
    for (int i = 0; i < count; i++)
        names += (i ? " " : "") + std::string(out[i].name) +
                 (out[i].address.any.sa_family == AF_INET6 ? "/6" : "");
    return names;
}

TEST(Interface, Rules)
{
    const char *everything = "ib0 eth0 eth0.1 veth1 docker0 lo virbr0";
    EXPECT_EQ(Pick(nullptr), everything);
    EXPECT_EQ(Pick(""), everything);
    EXPECT_EQ(Pick("lo"), "lo");
    EXPECT_EQ(Pick("^lo"), "ib0 eth0 eth0.1 veth1 docker0 virbr0");
    EXPECT_EQ(Pick("^lo,eth"), "ib0 veth1 docker0 virbr0");
    EXPECT_EQ(Pick("=lo"), "lo");
    EXPECT_EQ(Pick("=eth0"), "eth0") << "not eth0.1";
    EXPECT_EQ(Pick("=eth"), "");
    EXPECT_EQ(Pick("^=eth0"), "ib0 eth0.1 veth1 docker0 lo virbr0");
    EXPECT_EQ(Pick("eno1,eth0"), "eth0 eth0.1");
    EXPECT_EQ(Pick("ib,eth"), "eth0 eth0.1 ib0") << "the host's order";
    EXPECT_EQ(Pick("nosuch"), "") << "no fallback";
    EXPECT_EQ(Pick("docker"), "docker0");
    EXPECT_EQ(Pick(","), "");
    EXPECT_EQ(Pick("^"), everything);
    EXPECT_EQ(Pick("^,"), everything);
    EXPECT_EQ(Pick("="), "");
    EXPECT_EQ(Pick("eth0,,"), "eth0 eth0.1") << "an empty name is no prefix of all";
}

TEST(Interface, Families)
{
    EXPECT_EQ(Pick("eth0", AF_UNSPEC), "eth0 eth0.1 eth0/6");
    EXPECT_EQ(Pick("eth0", AF_INET6), "eth0/6");
    EXPECT_EQ(Pick("ib0", AF_INET6), "");
}

TEST(Interface, NeverMoreThanAsked)
{
    EXPECT_EQ(Pick(nullptr, AF_INET, 2), "ib0 eth0");
    EXPECT_EQ(Pick(nullptr, AF_INET, 0), "");
}

TEST(Interface, FindsTheHostsOwn)
{
    rondo_interface found[8];
    int count = 0;
    ASSERT_EQ(rondo_interface_find("=lo", AF_INET, found, 8, &count), ncclSuccess) << rondo_error_last();
    EXPECT_STREQ(found[0].name, "lo");
    EXPECT_EQ(ntohl(found[0].address.in4.sin_addr.s_addr), INADDR_LOOPBACK);
    EXPECT_EQ(found[0].address.in4.sin_port, 0);
}

TEST(Interface, TellsWhatThereIsWhenNoneFits)
{
    rondo_interface found[8];
    int count = -1;
    EXPECT_EQ(rondo_interface_find("nosuch", AF_UNSPEC, found, 8, &count), ncclInvalidUsage);
    EXPECT_EQ(count, -1);
    std::string text = rondo_error_last();
    EXPECT_NE(text.find("nosuch"), std::string::npos) << text;
    EXPECT_NE(text.find("lo 127.0.0.1"), std::string::npos) << text;
}

} // namespace
