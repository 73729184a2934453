// What must agree changes the fingerprint, what may differ does not.
#include "plan_world.h"

#include <functional>
#include <set>
#include <string>

namespace
{

const rondo_operation kAll[] = {
    RONDO_OP_ALL_REDUCE, RONDO_OP_ALL_GATHER, RONDO_OP_REDUCE_SCATTER, RONDO_OP_BROADCAST, RONDO_OP_REDUCE,
    RONDO_OP_ALL_TO_ALL, RONDO_OP_GATHER,     RONDO_OP_SCATTER,        RONDO_OP_SEND,      RONDO_OP_RECV};

bool Reduces(rondo_operation operation)
{
    return operation == RONDO_OP_ALL_REDUCE || operation == RONDO_OP_REDUCE_SCATTER ||
           operation == RONDO_OP_REDUCE;
}

bool IsRooted(rondo_operation operation)
{
    return operation == RONDO_OP_BROADCAST || operation == RONDO_OP_REDUCE || operation == RONDO_OP_GATHER ||
           operation == RONDO_OP_SCATTER;
}

bool Changes(rondo_operation operation, const std::function<void(rondo_task &)> &change)
{
    rondo_task task = MakeTask(operation, 0, 1024);
    uint64_t before = rondo_fingerprint(&task);
    change(task);
    return rondo_fingerprint(&task) != before;
}

TEST(Fingerprint, EachField)
{
    for (rondo_operation operation : kAll) {
        SCOPED_TRACE(rondo_operation_name(operation));
        EXPECT_TRUE(Changes(operation, [](rondo_task &t) { t.count++; }));
        EXPECT_TRUE(Changes(operation, [](rondo_task &t) { t.count += (uint64_t)1 << 32; }));
        EXPECT_TRUE(Changes(operation, [](rondo_task &t) { t.number++; }));
        EXPECT_EQ(Changes(operation, [](rondo_task &t) { t.root++; }), IsRooted(operation));
        EXPECT_EQ(Changes(operation, [](rondo_task &t) { t.redop = RONDO_REDOP_MAX; }), Reduces(operation));
        EXPECT_EQ(Changes(operation, [](rondo_task &t) { t.dtype = ncclInt32; }), Reduces(operation));
        EXPECT_FALSE(Changes(operation, [](rondo_task &t) { t.public_redop = (ncclRedOp_t)77; }));
        EXPECT_FALSE(Changes(operation, [](rondo_task &t) { t.scalar = 77; }));
        EXPECT_FALSE(Changes(operation, [](rondo_task &t) { t.flags = RONDO_WORK_SCALAR_POINTER; }));
        EXPECT_FALSE(Changes(operation, [](rondo_task &t) { t.send = t.recv = nullptr; }));
        // Equal bytes of another type move alike.
        EXPECT_EQ(Changes(operation, [](rondo_task &t) { t.dtype = ncclUint8, t.count *= 4; }),
                  Reduces(operation));
    }
}

TEST(Fingerprint, SendMatchesReceiveAlone)
{
    std::set<uint64_t> seen;
    for (rondo_operation operation : kAll) {
        rondo_task task = MakeTask(operation, 0, 64);
        EXPECT_EQ(seen.insert(rondo_fingerprint(&task)).second, operation != RONDO_OP_RECV)
            << rondo_operation_name(operation);
    }
}

TEST(Fingerprint, ManyNumbersAndCountsNeverCollideNorVanish)
{
    std::set<uint64_t> seen;
    for (uint64_t number = 1; number <= 200; number++) {
        for (uint64_t count = 0; count < 200; count++) {
            rondo_task task = MakeTask(RONDO_OP_ALL_REDUCE, 0, count, ncclFloat32, 0, number);
            uint64_t fingerprint = rondo_fingerprint(&task);
            EXPECT_NE(fingerprint, 0u);
            EXPECT_TRUE(seen.insert(fingerprint).second);
        }
    }
}

TEST(OperationName, All)
{
    EXPECT_STREQ(rondo_operation_name(RONDO_OP_ALL_REDUCE), "AllReduce");
    EXPECT_STREQ(rondo_operation_name(RONDO_OP_ALL_TO_ALL), "AlltoAll");
    std::set<std::string> names;
    for (int operation = 0; operation <= RONDO_OP_NUM; operation++)
        EXPECT_TRUE(names.insert(rondo_operation_name((rondo_operation)operation)).second);
    EXPECT_STREQ(rondo_operation_name((rondo_operation)-1), "unknown operation");
}

} // namespace
