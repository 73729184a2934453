// exports_test.cpp - libnccl.so.2 shows the interface and nothing else, and needs libc alone.
#include "shared_object.h"

#include <dlfcn.h>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <set>

namespace
{

const std::string library = RONDO_LIBRARY; // full path of the built libnccl.so.2.30.7

std::set<std::string> Functions()
{
    std::ifstream file(RONDO_SOURCE "/tests/interface/functions.txt");
    std::set<std::string> names;

    for (std::string line; std::getline(file, line);)
        names.insert(line);
    return names;
}

TEST(Exports, AreTheInterfaceAndItsTwins)
{
    std::set<std::string> expected, found;

    for (const std::string &name : Functions()) {
        expected.insert(name);
        expected.insert("p" + name);
    }
    ASSERT_EQ(expected.size(), 2 * 82u);
    for (const auto &[name, symbol] : SharedObject(library).defined)
        found.insert(name);
    EXPECT_EQ(found, expected);
}

TEST(Exports, PublicNamesAreWeakAndTwinsStrongAtOneAddress)
{
    SharedObject object(library);

    for (const std::string &name : Functions()) {
        ASSERT_TRUE(object.defined.count(name) && object.defined.count("p" + name)) << name;
        EXPECT_EQ(object.defined[name].binding, STB_WEAK) << name;
        EXPECT_EQ(object.defined["p" + name].binding, STB_GLOBAL) << name;
        EXPECT_EQ(object.defined[name].address, object.defined["p" + name].address) << name;
    }
}

TEST(Exports, ListOfNamesIsTheSpecifications)
{
    std::ifstream spec(RONDO_SOURCE "/../shared/spec/api.tsv");
    std::set<std::string> names;

    if (!spec)
        GTEST_SKIP() << "no ../shared/spec/api.tsv next to this source tree";
    for (std::string line; std::getline(spec, line);)
        if (line.compare(0, 4, "nccl") == 0)
            names.insert(line.substr(0, line.find('\t')));
    EXPECT_EQ(Functions(), names);
}

TEST(Exports, NamesAndSize)
{
    namespace fs = std::filesystem;
    fs::path folder = fs::path(library).parent_path();

    EXPECT_EQ(SharedObject(library).soname, "libnccl.so.2");
    EXPECT_EQ(fs::read_symlink(folder / "libnccl.so"), "libnccl.so.2");
    EXPECT_EQ(fs::read_symlink(folder / "libnccl.so.2"), "libnccl.so.2.30.7");
    std::cout << library << ": " << fs::file_size(library) << " bytes\n";
}

TEST(Needs, LibcAlone)
{
#ifdef RONDO_SANITIZED
    GTEST_SKIP() << "a sanitizer build needs the sanitizer's libraries";
#endif
    SharedObject object(library);
    std::set<std::string> needed(object.needed.begin(), object.needed.end());

    needed.erase("ld-linux-x86-64.so.2"); // __tls_get_addr; part of libc
    EXPECT_EQ(needed, std::set<std::string>{"libc.so.6"});
    for (const std::string &name : object.undefined) {
        EXPECT_NE(name.compare(0, 2, "_Z"), 0) << name << " is a C++ runtime's";
        bool optional =
            name == "__cxa_finalize" || name == "__gmon_start__" || name.compare(0, 4, "_ITM") == 0;
        EXPECT_TRUE(optional || dlsym(RTLD_DEFAULT, name.c_str())) << name << " is nobody's";
    }
}

TEST(Loading, CanBeRepeatedAndFindsEveryName)
{
    for (int round = 0; round < 3; round++) {
        void *handle = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
        ASSERT_NE(handle, nullptr) << dlerror();
        for (const std::string &name : Functions()) {
            void *address = dlsym(handle, name.c_str());
            EXPECT_NE(address, nullptr) << name;
            EXPECT_EQ(address, dlsym(handle, ("p" + name).c_str())) << name;
        }
        auto version = reinterpret_cast<int (*)(int *)>(dlsym(handle, "ncclGetVersion"));
        int code = 0;
        ASSERT_NE(version, nullptr);
        EXPECT_EQ(version(&code), 0);
        EXPECT_EQ(code, 23007);
        EXPECT_EQ(dlclose(handle), 0);
    }
}

} // namespace
