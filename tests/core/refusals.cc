// refusals.cc - every entry point that communicates.
#include "refusals.h"

std::string LastError()
{
    return ncclGetLastError(nullptr);
}

void ExpectRefusal(ncclResult_t result, ncclResult_t expected, const std::string &needle)
{
    EXPECT_EQ(result, expected) << LastError();
    EXPECT_NE(LastError().find(needle), std::string::npos) << "no '" << needle << "' in: " << LastError();
}

std::vector<Spoilable> Operations()
{
    return {
        {"ncclAllReduce",
         [](auto s, auto r, auto n, auto t, auto o, int, auto c) {
             return ncclAllReduce(s, r, n, t, o, c, nullptr);
         },
         true, true, true},
        {"ncclReduceScatter",
         [](auto s, auto r, auto n, auto t, auto o, int, auto c) {
             return ncclReduceScatter(s, r, n, t, o, c, nullptr);
         },
         true, true, true},
        {"ncclReduce",
         [](auto s, auto r, auto n, auto t, auto o, int root, auto c) {
             return ncclReduce(s, r, n, t, o, root, c, nullptr);
         },
         true, true, true, true},
        {"ncclAllGather", [](auto s, auto r, auto n, auto t, auto, int,
                             auto c) { return ncclAllGather(s, r, n, t, c, nullptr); }},
        {"ncclAlltoAll", [](auto s, auto r, auto n, auto t, auto, int,
                            auto c) { return ncclAlltoAll(s, r, n, t, c, nullptr); }},
        {"ncclBroadcast",
         [](auto s, auto r, auto n, auto t, auto, int root, auto c) {
             return ncclBroadcast(s, r, n, t, root, c, nullptr);
         },
         true, true, false, true},
        {"ncclBcast",
         [](auto, auto r, auto n, auto t, auto, int root, auto c) {
             return ncclBcast(r, n, t, root, c, nullptr);
         },
         false, true, false, true},
        {"ncclGather",
         [](auto s, auto r, auto n, auto t, auto, int root, auto c) {
             return ncclGather(s, r, n, t, root, c, nullptr);
         },
         true, true, false, true},
        {"ncclScatter",
         [](auto s, auto r, auto n, auto t, auto, int root, auto c) {
             return ncclScatter(s, r, n, t, root, c, nullptr);
         },
         true, true, false, true},
        {"ncclSend",
         [](auto s, auto, auto n, auto t, auto, int root, auto c) {
             return ncclSend(s, n, t, root, c, nullptr);
         },
         true, false, false, true},
        {"ncclRecv",
         [](auto, auto r, auto n, auto t, auto, int root, auto c) {
             return ncclRecv(r, n, t, root, c, nullptr);
         },
         false, true, false, true},
    };
}
