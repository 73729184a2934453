// NCCL_ALGO and NCCL_PROTO in every form, and what is chosen among what they leave.
#include "base/error.h"
#include "collectives/choose.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace
{

constexpr unsigned S = 1 << RONDO_PROTOCOL_SIMPLE, L = 1 << RONDO_PROTOCOL_LL,
                   L128 = 1 << RONDO_PROTOCOL_LL128;

// What is left to an operation.
unsigned Protocols(const rondo_choices &choices, rondo_operation operation)
{
    return choices.protocols >> (operation - 1) * RONDO_CHOICE_PROTOCOL_BITS &
           ((1u << RONDO_CHOICE_PROTOCOL_BITS) - 1);
}

rondo_choices Parse(const char *algorithms, const char *protocols)
{
    rondo_choices choices = {};
    EXPECT_EQ(rondo_choices_parse(algorithms, protocols, &choices), ncclSuccess) << rondo_error_last();
    return choices;
}

void ExpectRefused(const char *algorithms, const char *protocols, const std::vector<std::string> &needles)
{
    rondo_choices choices = {1, 2, 0, "a", "b"};
    EXPECT_EQ(rondo_choices_parse(algorithms, protocols, &choices), ncclInvalidUsage);
    EXPECT_EQ(choices.algorithms, 1u) << "written although refused";
    for (const std::string &needle : needles)
        EXPECT_NE(std::string(rondo_error_last()).find(needle), std::string::npos)
            << "no '" << needle << "' in: " << rondo_error_last();
}

TEST(Choices, UnsetAllowsEverything)
{
    rondo_choices choices = Parse(nullptr, nullptr);
    for (int o = RONDO_OP_ALL_REDUCE; o < RONDO_OP_NUM; o++)
        EXPECT_EQ(Protocols(choices, (rondo_operation)o), S | L | L128);
}

TEST(Choices, ListsAndTheirInverse)
{
    const std::pair<const char *, unsigned> forms[] = {
        {"LL", L},    {"ll", L},         {"Simple", S},           {"SIMPLE,ll128", S | L128},
        {"LL,LL", L}, {"^LL", S | L128}, {"^LL128,Simple", L},    {"LL,Simple,LL128", S | L | L128},
        {"LL,", L},   {"LL;", L},        {"^LL,LL128,Simple", 0},
    };
    for (auto [text, expected] : forms) {
        rondo_choices choices = Parse(nullptr, text);
        for (int o = RONDO_OP_ALL_REDUCE; o < RONDO_OP_NUM; o++)
            EXPECT_EQ(Protocols(choices, (rondo_operation)o), expected) << text;
    }
}

TEST(Choices, EntriesOfOneFunction)
{
    rondo_choices choices = Parse(nullptr, "LL128;allreduce:LL;Broadcast:^LL");
    EXPECT_EQ(Protocols(choices, RONDO_OP_ALL_REDUCE), L);
    EXPECT_EQ(Protocols(choices, RONDO_OP_BROADCAST), S | L128);
    EXPECT_EQ(Protocols(choices, RONDO_OP_ALL_GATHER), L128);
    choices = Parse(nullptr, "reducescatter:LL;reducescatter:Simple");
    EXPECT_EQ(Protocols(choices, RONDO_OP_REDUCE_SCATTER), S) << "the last entry of a function counts";
    EXPECT_EQ(Protocols(choices, RONDO_OP_REDUCE), S | L | L128) << "no entry, no restriction";
    choices = Parse(nullptr, "allreduce:Simple;LL;LL128");
    EXPECT_EQ(Protocols(choices, RONDO_OP_ALL_REDUCE), S);
    EXPECT_EQ(Protocols(choices, RONDO_OP_GATHER), L) << "the first entry without a function";
}

TEST(Choices, WhatIsNoNameIsRefused)
{
    ExpectRefused(nullptr, "LL64", {"NCCL_PROTO=LL64", "'LL64'", "Simple, LL, LL128"});
    ExpectRefused(nullptr, "LL, Simple", {"NCCL_PROTO=LL, Simple", "' Simple'"});
    ExpectRefused(nullptr, "allreduce:", {"without a name", "Simple, LL, LL128"});
    ExpectRefused(nullptr, "^", {"without a name"});
    ExpectRefused(nullptr, ";LL", {"without a name"});
    ExpectRefused(nullptr, "allreduces:LL", {"'allreduces'", "function", "AllReduce", "Recv"});
    ExpectRefused(nullptr, "a:b:c", {"'a'"});
    ExpectRefused(nullptr, "allreduce:LL:LL", {"'LL:LL'"});
    ExpectRefused("rong", nullptr, {"NCCL_ALGO=rong", "known are Ring, Direct, Tree ("});
    ExpectRefused("allreduce:", nullptr, {"NCCL_ALGO=allreduce:", "without a name", "Ring, Direct, Tree"});
    ExpectRefused("ring,,tree", nullptr, {"without a name"});
    ExpectRefused("send:ring", nullptr, {"NCCL_ALGO=send:ring", "Send is one message"});
    ExpectRefused("ring;Recv:^tree", nullptr, {"Recv is one message"});
    ExpectRefused("ring", "rong", {"NCCL_PROTO=rong"});
    ExpectRefused(nullptr, std::string(5000, 'x').c_str(), {"NCCL_PROTO=xxx"});
}

const char *const kNoTree = "no tree grows here";

struct Direct {
    rondo_direct_use pulled, oneshot;
    const char *obstacle = nullptr;

    operator rondo_direct_uses() const
    {
        return {pulled, oneshot, obstacle};
    }
};
const Direct kNone = {RONDO_DIRECT_IMPOSSIBLE, RONDO_DIRECT_IMPOSSIBLE};

rondo_protocol Chosen(const rondo_choices &choices, rondo_operation operation, uint64_t bytes)
{
    rondo_choice choice = {RONDO_ALGORITHM_NUM, RONDO_PROTOCOL_NUM};
    EXPECT_EQ(rondo_choose(&choices, operation, bytes, 4, kNone, kNoTree, &choice), ncclSuccess)
        << rondo_error_last();
    EXPECT_EQ(choice.algorithm, RONDO_ALGORITHM_RING);
    return choice.protocol;
}

TEST(Choose, SmallRingsTakeLL)
{
    rondo_choices choices = Parse(nullptr, nullptr);
    for (rondo_operation operation : {RONDO_OP_ALL_REDUCE, RONDO_OP_ALL_GATHER, RONDO_OP_REDUCE_SCATTER,
                                      RONDO_OP_BROADCAST, RONDO_OP_REDUCE}) {
        EXPECT_EQ(Chosen(choices, operation, 8), RONDO_PROTOCOL_LL);
        EXPECT_EQ(Chosen(choices, operation, 1 << 20), RONDO_PROTOCOL_SIMPLE);
        EXPECT_EQ(Chosen(choices, operation, UINT64_MAX), RONDO_PROTOCOL_SIMPLE);
        bool was_large = false; // and the larger never takes what is for the small
        for (uint64_t bytes = 0; bytes < 100000; bytes += 61) {
            bool is_large = Chosen(choices, operation, bytes) == RONDO_PROTOCOL_SIMPLE;
            EXPECT_TRUE(is_large || !was_large) << bytes;
            was_large = is_large;
        }
    }
}

// A receiver tells a message of another length by its slot, which must be where it looks.
TEST(Choose, MessagesOfAnyLengthMeet)
{
    rondo_choices choices = Parse(nullptr, nullptr);
    for (rondo_operation operation :
         {RONDO_OP_SEND, RONDO_OP_RECV, RONDO_OP_ALL_TO_ALL, RONDO_OP_GATHER, RONDO_OP_SCATTER})
        for (uint64_t bytes : {0, 8, 4096, 1 << 20})
            EXPECT_EQ(Chosen(choices, operation, bytes), RONDO_PROTOCOL_SIMPLE);
}

TEST(Choose, ForcedProtocolsAreTaken)
{
    for (int o = RONDO_OP_ALL_REDUCE; o < RONDO_OP_NUM; o++)
        for (uint64_t bytes : {8, 1 << 30}) {
            auto operation = (rondo_operation)o;
            EXPECT_EQ(Chosen(Parse("ring", "Simple"), operation, bytes), RONDO_PROTOCOL_SIMPLE);
            EXPECT_EQ(Chosen(Parse("ring", "LL"), operation, bytes), RONDO_PROTOCOL_LL);
            EXPECT_EQ(Chosen(Parse("^tree", "LL128"), operation, bytes), RONDO_PROTOCOL_LL128);
        }
}

TEST(Choose, WhatIsImpossibleIsSaid)
{
    rondo_choice choice = {RONDO_ALGORITHM_NUM, RONDO_PROTOCOL_NUM};
    rondo_choices choices = Parse("tree,nvls;broadcast:ring", nullptr);
    EXPECT_EQ(rondo_choose(&choices, RONDO_OP_ALL_GATHER, 8, 2, kNone, kNoTree, &choice), ncclInvalidUsage);
    EXPECT_EQ(choice.algorithm, RONDO_ALGORITHM_NUM) << "written although refused";
    std::string text = rondo_error_last();
    for (const char *needle : {"AllGather", "NCCL_ALGO=tree,nvls;broadcast:ring", "Ring"})
        EXPECT_NE(text.find(needle), std::string::npos) << text;
    EXPECT_EQ(rondo_choose(&choices, RONDO_OP_BROADCAST, 8, 2, kNone, kNoTree, &choice), ncclSuccess);
    EXPECT_EQ(rondo_choose(&choices, RONDO_OP_SEND, 8, 2, kNone, kNoTree, &choice), ncclSuccess)
        << "messages have none";
    choices = Parse(nullptr, "^LL,LL128,Simple");
    EXPECT_EQ(rondo_choose(&choices, RONDO_OP_SEND, 8, 2, kNone, kNoTree, &choice), ncclInvalidUsage);
    text = rondo_error_last();
    for (const char *needle : {"Send", "NCCL_PROTO=^LL,LL128,Simple", "Simple, LL, LL128"})
        EXPECT_NE(text.find(needle), std::string::npos) << text;
}

// What a choice between ring, direct and tree comes to, and its error.
std::string Outcome(const char *algorithms, const char *protocols, rondo_operation operation,
                    const Direct &direct, bool has_tree = false)
{
    rondo_choices choices = Parse(algorithms, protocols);
    rondo_choice choice = {RONDO_ALGORITHM_NUM, RONDO_PROTOCOL_NUM};
    if (rondo_choose(&choices, operation, 1 << 20, 4, direct, has_tree ? nullptr : kNoTree, &choice) !=
        ncclSuccess)
        return rondo_error_last();
    return choice.algorithm == RONDO_ALGORITHM_DIRECT
               ? std::string("direct ") + rondo_protocol_name(choice.protocol)
           : choice.algorithm == RONDO_ALGORITHM_TREE ? "tree"
                                                      : "ring";
}

const rondo_direct_use kNever = RONDO_DIRECT_IMPOSSIBLE, kCan = RONDO_DIRECT_POSSIBLE,
                       kFaster = RONDO_DIRECT_FASTER;

TEST(Choose, DirectWhereItIsFasterOrForced)
{
    for (int o = RONDO_OP_ALL_REDUCE; o <= RONDO_OP_SCATTER; o++) {
        auto operation = (rondo_operation)o;
        EXPECT_EQ(Outcome(nullptr, nullptr, operation, kNone), "ring");
        EXPECT_EQ(Outcome(nullptr, nullptr, operation, {kCan, kCan}), "ring");
        EXPECT_EQ(Outcome(nullptr, nullptr, operation, {kFaster, kCan}), "direct Simple");
        EXPECT_EQ(Outcome("direct", nullptr, operation, {kCan, kCan}), "direct Simple");
        EXPECT_EQ(Outcome("^ring", "simple,LL", operation, {kCan, kCan}), "direct Simple");
        EXPECT_EQ(Outcome("ring", nullptr, operation, {kFaster, kFaster}), "ring");
        EXPECT_EQ(Outcome("^direct", nullptr, operation, {kFaster, kFaster}), "ring");
        EXPECT_EQ(Outcome(nullptr, "LL", operation, {kFaster, kCan}), "ring")
            << "where its protocol is allowed";
        EXPECT_EQ(Outcome("direct", "LL", operation, {kFaster, kCan}), "direct LL") << "forced";
        EXPECT_EQ(Outcome("direct", "LL128", operation, {kFaster, kCan}), "direct LL128");
    }
}

TEST(Choose, OneShotWhereItIsFasterOrForced)
{
    for (int o = RONDO_OP_ALL_REDUCE; o <= RONDO_OP_SCATTER; o++) {
        auto operation = (rondo_operation)o;
        EXPECT_EQ(Outcome(nullptr, nullptr, operation, {kCan, kFaster}), "direct LL");
        EXPECT_EQ(Outcome("direct", nullptr, operation, {kCan, kFaster}), "direct LL");
        EXPECT_EQ(Outcome(nullptr, "Simple,LL128", operation, {kCan, kFaster}), "direct LL128");
        EXPECT_EQ(Outcome(nullptr, "Simple", operation, {kCan, kFaster}), "ring");
        EXPECT_EQ(Outcome("direct", "Simple", operation, {kCan, kFaster}), "direct Simple");
        EXPECT_EQ(Outcome("ring", "LL", operation, {kCan, kFaster}), "ring");
        EXPECT_EQ(Outcome(nullptr, nullptr, operation, {kFaster, kFaster}), "direct Simple")
            << "which RONDO_DIRECT_BYTES asks for";
        EXPECT_EQ(Outcome(nullptr, "LL", operation, {kFaster, kFaster}), "direct LL");
        EXPECT_EQ(Outcome("direct", nullptr, operation, {kNever, kCan}), "direct LL");
    }
}

TEST(Choose, DirectForcedWhereItIsImpossible)
{
    std::string text = Outcome("direct", nullptr, RONDO_OP_ALL_REDUCE, kNone);
    EXPECT_NE(text.find("NCCL_ALGO=direct allows none of what is possible here: Ring;"), std::string::npos)
        << text;
    text = Outcome("tree", nullptr, RONDO_OP_ALL_REDUCE, {kCan, kCan});
    EXPECT_NE(text.find("possible here: Ring, Direct ("), std::string::npos) << text;
    text = Outcome("direct", "Simple", RONDO_OP_ALL_REDUCE, {kNever, kFaster});
    EXPECT_NE(text.find("NCCL_PROTO=Simple allows none of what is possible here: LL, LL128;"),
              std::string::npos)
        << text;
    text = Outcome("direct", "LL", RONDO_OP_ALL_REDUCE, {kFaster, kNever});
    EXPECT_NE(text.find("NCCL_PROTO=LL allows none of what is possible here: Simple;"), std::string::npos)
        << text;
    for (rondo_operation operation : {RONDO_OP_ALL_TO_ALL, RONDO_OP_GATHER, RONDO_OP_SCATTER, RONDO_OP_SEND})
        EXPECT_EQ(Outcome("direct", nullptr, operation, kNone), "ring") << "messages are always possible";
}

// Only what was asked for has its obstacle told, and a protocol that is possible has none.
TEST(Choose, WhatIsInTheWayIsSaid)
{
    const Direct blocked = {kNever, kNever, "a wall"}, narrow = {kNever, kCan, "a gap"};
    struct {
        const char *algorithms, *protocols;
        Direct direct;
        const char *told;
    } const cases[] = {
        {"direct", nullptr, blocked, "here: Ring (Direct: a wall); allow"},
        {"tree", nullptr, blocked, "here: Ring (Tree: no tree grows here); allow"},
        {"tree,direct", nullptr, blocked, "here: Ring (Direct: a wall; Tree: no tree grows here); allow"},
        {"^ring,tree", nullptr, blocked,
         "(Direct: a wall; CollNetDirect: not in Rondo; CollNetChain: not in Rondo; "},
        {"pat", nullptr, narrow, "here: Ring, Direct (PAT: not in Rondo); allow"},
        {"^ring,direct,tree,collnetdirect,collnetchain,nvls,nvlstree,pat", nullptr, narrow,
         "here: Ring, Direct; allow"},
        {"direct", "Simple", narrow,
         "NCCL_PROTO=Simple allows none of what is possible here: LL, LL128 (Simple: a gap); allow"},
    };
    for (const auto &c : cases) {
        std::string text = Outcome(c.algorithms, c.protocols, RONDO_OP_ALL_REDUCE, c.direct);
        EXPECT_NE(text.find(c.told), std::string::npos) << text;
    }
    std::string all = Outcome("^ring,direct,tree", nullptr, RONDO_OP_ALL_REDUCE, blocked);
    EXPECT_NE(all.find("unset the variable"), std::string::npos) << "the remedy was cut: " << all;
}

// All-to-all and its like can always be made of messages, unless an entry says otherwise by their name.
TEST(Choose, EntriesByNameBindWhatCouldBeMessages)
{
    for (rondo_operation operation : {RONDO_OP_ALL_TO_ALL, RONDO_OP_GATHER, RONDO_OP_SCATTER}) {
        std::string name = rondo_operation_name(operation);
        for (const char *list : {":tree", ":nvls", ":^ring,direct"}) {
            std::string text = Outcome((name + list).c_str(), nullptr, operation, {kCan, kCan});
            EXPECT_NE(text.find(name + list + " allows none of what is possible here: Ring, Direct"),
                      std::string::npos)
                << text;
            EXPECT_EQ(Outcome((name + list).c_str(), nullptr, RONDO_OP_BROADCAST, kNone), "ring");
        }
        EXPECT_EQ(Outcome("tree", nullptr, operation, {kCan, kCan}), "ring");
        EXPECT_EQ(Outcome((name + ":ring").c_str(), nullptr, operation, {kFaster, kFaster}), "ring");
        EXPECT_EQ(Outcome((name + ":direct").c_str(), nullptr, operation, {kCan, kCan}), "direct Simple");
    }
}

TEST(Choose, TreeWhereNothingElseIsAllowed)
{
    const rondo_operation operation = RONDO_OP_ALL_REDUCE;
    for (rondo_direct_use pulled : {kNever, kCan, kFaster}) {
        const Direct direct = {pulled, kNever};
        EXPECT_EQ(Outcome("tree", nullptr, operation, direct, true), "tree");
        EXPECT_EQ(Outcome("allreduce:tree;ring", nullptr, operation, direct, true), "tree");
        EXPECT_EQ(Outcome("^ring,direct", "LL128", operation, direct, true), "tree");
        EXPECT_EQ(Outcome("^ring", "LL,LL128", operation, direct, true), "tree")
            << "not by a forbidden protocol";
        EXPECT_EQ(Outcome("^ring", nullptr, operation, direct, true),
                  pulled == kNever ? "tree" : "direct Simple");
        EXPECT_EQ(Outcome("tree,ring", nullptr, operation, direct, true), "ring");
        EXPECT_EQ(Outcome(nullptr, nullptr, operation, direct, true),
                  pulled == kFaster ? "direct Simple" : "ring");
        std::string text = Outcome("tree", nullptr, operation, direct, false);
        EXPECT_NE(text.find("NCCL_ALGO=tree allows none of what is possible here: Ring"), std::string::npos)
            << text;
        text = Outcome("nvls", nullptr, operation, direct, true);
        EXPECT_NE(text.find("Tree"), std::string::npos) << text;
    }
}

TEST(Choose, TreeWhereOneShotIsForbidden)
{
    const rondo_operation operation = RONDO_OP_ALL_REDUCE;
    for (rondo_direct_use oneshot : {kCan, kFaster}) {
        EXPECT_EQ(Outcome("tree", nullptr, operation, {kNever, oneshot}, true), "tree");
        EXPECT_EQ(Outcome("^ring", "LL128", operation, {kNever, oneshot}, true), "direct LL128");
        EXPECT_EQ(Outcome("^ring", "Simple", operation, {kNever, oneshot}, true), "tree")
            << "not by a forbidden protocol";
    }
}

// All of it goes through every rank of a tree, and a part through each of a ring.
TEST(Choose, SmallTreesTakeLL)
{
    for (uint64_t bytes = 0; bytes < 10000; bytes += 61) {
        rondo_choice by_tree, by_broadcast;
        rondo_choices choices = Parse("allreduce:tree", nullptr);
        ASSERT_EQ(rondo_choose(&choices, RONDO_OP_ALL_REDUCE, bytes, 4, kNone, nullptr, &by_tree),
                  ncclSuccess);
        ASSERT_EQ(rondo_choose(&choices, RONDO_OP_BROADCAST, bytes, 4, kNone, kNoTree, &by_broadcast),
                  ncclSuccess);
        EXPECT_EQ(by_tree.protocol, by_broadcast.protocol) << bytes;
    }
}

} // namespace
