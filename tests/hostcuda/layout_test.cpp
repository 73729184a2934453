// layout_test.cpp - our structs against NVIDIA's, offset by offset, and the sizes that are known without its
// headers.
#include "struct_layout.h"

#include <gtest/gtest.h>

static const layout_fact *Find(const layout_fact *table, const std::string &name)
{
    for (; table->name; table++) {
        if (name == table->name)
            return table;
    }
    return nullptr;
}

TEST(HostCudaLayout, Cuda13StructsHaveTheirKnownSizes)
{
    EXPECT_EQ(Find(layout_ours, "struct cudaDeviceProp")->offset, 1008u);
    EXPECT_EQ(Find(layout_ours, "dim3")->offset, 12u);
    EXPECT_EQ(Find(layout_ours, "struct cudaPointerAttributes")->offset, 88u);
}

TEST(HostCudaLayout, Cuda13StructsAreThoseOfTheToolkit)
{
#if HAS_TOOLKIT
    size_t compared = 0;
    for (const layout_fact *ours = layout_ours; ours->name; ours++, compared++) {
        const layout_fact *theirs = Find(layout_nvidia, ours->name);
        ASSERT_NE(theirs, nullptr) << ours->name;
        EXPECT_EQ(ours->offset, theirs->offset) << ours->name;
        EXPECT_EQ(ours->bytes, theirs->bytes) << ours->name;
    }
    EXPECT_GT(compared, 100u);
#else
    GTEST_SKIP() << "the headers of the CUDA 13 toolkit are not installed";
#endif
}
