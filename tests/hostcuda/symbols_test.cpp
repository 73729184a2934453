// symbols_test.cpp - the libraries as files: their names, versions, needs, and that both runtimes share one
// device.
#include "hostcuda_test.h"

#include <cuda.h>

#include <dlfcn.h>
#include <fstream>
#include <set>
#include <sstream>

static const std::string kFolder = HOSTCUDA_FOLDER;

// The names of symbols.txt that a runtime must have.
static std::set<std::string> ListedSymbols(const std::string &major)
{
    std::set<std::string> names;
    std::ifstream file(SYMBOLS);
    for (std::string line; std::getline(file, line);) {
        std::istringstream words(line);
        std::string tier, version, name;
        if (line.empty() || line[0] == '#' || !(words >> tier >> version >> name))
            continue;
        if (version == "both" || version == major)
            names.insert(name);
    }
    return names;
}

class HostCudaLibrary : public ::testing::TestWithParam<const char *>
{
  protected:
    std::string Path() const
    {
        return kFolder + "/libcudart.so." + GetParam();
    }
    std::string Node() const
    {
        return std::string("libcudart.so.") + GetParam();
    }
};

TEST_P(HostCudaLibrary, HasEveryListedSymbolUnderItsVersion)
{
    void *library = dlopen(Path().c_str(), RTLD_NOW | RTLD_LOCAL);

    ASSERT_NE(library, nullptr) << dlerror();
    auto names = ListedSymbols(GetParam());
    EXPECT_GT(names.size(), 90u);
    for (auto &name : names)
        EXPECT_NE(dlvsym(library, name.c_str(), Node().c_str()), nullptr) << name;
    dlclose(library);
}

TEST_P(HostCudaLibrary, ExportsNothingElse)
{
    std::string text = RunProgram("", "objdump -T " + Path());

    if (text.find("exit 127") != std::string::npos)
        GTEST_SKIP() << "objdump is not installed";
    auto names = ListedSymbols(GetParam());
    std::istringstream lines(text);
    size_t seen = 0;
    for (std::string line; std::getline(lines, line);) {
        std::istringstream words(line);
        std::string word, previous, last;
        while (words >> word) {
            previous = last;
            last = word;
        }
        if (line.find("*UND*") != std::string::npos || line.find(".text") == std::string::npos)
            continue;
        EXPECT_EQ(previous, Node()) << line;
        EXPECT_TRUE(names.count(last)) << "not in symbols.txt: " << last;
        seen++;
    }
    EXPECT_EQ(seen, names.size());
}

TEST_P(HostCudaLibrary, NeedsOnlyLibcAndItsDriver)
{
    std::string text = RunProgram("", "objdump -p " + Path());

    if (text.find("exit 127") != std::string::npos)
        GTEST_SKIP() << "objdump is not installed";
    EXPECT_NE(text.find("SONAME               " + Node()), std::string::npos) << text;
    EXPECT_NE(text.find("RUNPATH              $ORIGIN\n"), std::string::npos) << text;
    EXPECT_NE(text.find("NEEDED               libcuda.so.1"), std::string::npos) << text;
    if (IS_SANITIZED)
        GTEST_SKIP() << "sanitized libraries need the sanitizer's besides";
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
        if (line.find("NEEDED") == std::string::npos)
            continue;
        EXPECT_TRUE(line.find("libc.so.6") != std::string::npos ||
                    line.find("libcuda.so.1") != std::string::npos ||
                    line.find("ld-linux") != std::string::npos)
            << line;
    }
}

INSTANTIATE_TEST_SUITE_P(Majors, HostCudaLibrary, ::testing::Values("12", "13"));

TEST(HostCudaDriver, ExportsTheDriverAndTheMarkerOnly)
{
    std::string text = RunProgram("", "objdump -T " + kFolder + "/libcuda.so.1");

    if (text.find("exit 127") != std::string::npos)
        GTEST_SKIP() << "objdump is not installed";
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
        if (line.find("*UND*") != std::string::npos || line.find(".text") == std::string::npos)
            continue;
        std::string name = line.substr(line.rfind(' ') + 1);
        EXPECT_TRUE(name.rfind("cu", 0) == 0 || name == "rondo_hostcuda_device" ||
                    name == "rondo_hostcuda_context")
            << name;
    }
    EXPECT_NE(text.find("rondo_hostcuda_device"), std::string::npos);
}

TEST(HostCudaDriver, BothRuntimesShareOneDevice)
{
    void *twelve = dlopen((kFolder + "/libcudart.so.12").c_str(), RTLD_NOW | RTLD_LOCAL);
    void *thirteen = dlopen((kFolder + "/libcudart.so.13").c_str(), RTLD_NOW | RTLD_LOCAL);
    ASSERT_NE(twelve, nullptr) << dlerror();
    ASSERT_NE(thirteen, nullptr) << dlerror();
    auto version12 = (int (*)(int *))dlsym(twelve, "cudaRuntimeGetVersion");
    auto version13 = (int (*)(int *))dlsym(thirteen, "cudaRuntimeGetVersion");
    auto set13 = (int (*)(int))dlsym(thirteen, "cudaSetDevice");
    auto get12 = (int (*)(int *))dlsym(twelve, "cudaGetDevice");
    auto malloc12 = (int (*)(void **, size_t))dlsym(twelve, "cudaMalloc");
    auto free13 = (int (*)(void *))dlsym(thirteen, "cudaFree");
    auto create12 = (int (*)(void **))dlsym(twelve, "cudaEventCreate");
    auto query13 = (int (*)(void *))dlsym(thirteen, "cudaEventQuery");
    auto destroy13 = (int (*)(void *))dlsym(thirteen, "cudaEventDestroy");
    auto query12 = (int (*)(void *))dlsym(twelve, "cudaEventQuery");
    int version = 0, device = -1;
    void *memory = nullptr, *event = nullptr;

    EXPECT_EQ(version12(&version), 0);
    EXPECT_EQ(version, 12080);
    EXPECT_EQ(version13(&version), 0);
    EXPECT_EQ(version, 13000);
    EXPECT_EQ(set13(3), 0);
    EXPECT_EQ(get12(&device), 0);
    EXPECT_EQ(device, 3);
    EXPECT_EQ(malloc12(&memory, 100), 0);
    EXPECT_EQ(free13(memory), 0);
    EXPECT_EQ(create12(&event), 0);
    EXPECT_EQ(query13(event), 0);
    EXPECT_EQ(destroy13(event), 0);
    EXPECT_EQ(query12(event), (int)cudaErrorInvalidResourceHandle);
    EXPECT_EQ(set13(0), 0);
}

TEST(HostCudaDriver, TheMarkerYieldsTheDeviceOfThisBuildOnly)
{
    void *driver = dlopen((kFolder + "/libcuda.so.1").c_str(), RTLD_NOW | RTLD_LOCAL);
    ASSERT_NE(driver, nullptr) << dlerror();
    auto marker = (const void *(*)(uint32_t, uint32_t *))dlsym(driver, "rondo_hostcuda_device");
    ASSERT_NE(marker, nullptr);
    uint32_t abi = 0;

    EXPECT_EQ(marker(0xffffffffu, &abi), nullptr);
    EXPECT_NE(abi, 0u);
    EXPECT_NE(marker(abi, &abi), nullptr);
}

TEST(HostCudaDriver, AnswersWhatFrameworksAsk)
{
    int version = 0, count = 0, active = -1, value = 0;
    unsigned flags = 9;
    char name[64], bus[32];
    const char *text = nullptr;
    size_t bytes = 0;
    CUdevice device = -1;
    CUcontext context = nullptr, current = nullptr;
    CUuuid uuid;
    void *memory = nullptr;

    EXPECT_EQ(cuDeviceGetCount(&count), CUDA_ERROR_NOT_INITIALIZED);
    EXPECT_EQ(cuInit(1), CUDA_ERROR_INVALID_VALUE);
    ASSERT_EQ(cuInit(0), CUDA_SUCCESS);
    EXPECT_EQ(cuDriverGetVersion(&version), CUDA_SUCCESS);
    EXPECT_GE(version, 13000);
    EXPECT_EQ(cuDeviceGetCount(&count), CUDA_SUCCESS);
    EXPECT_GT(count, 0);
    EXPECT_EQ(cuDeviceGet(&device, count), CUDA_ERROR_INVALID_DEVICE);
    EXPECT_EQ(cuDeviceGet(&device, 7), CUDA_SUCCESS);
    EXPECT_EQ(cuDeviceGetName(name, sizeof(name), device), CUDA_SUCCESS);
    EXPECT_EQ(cuDeviceGetUuid(&uuid, device), CUDA_SUCCESS);
    EXPECT_EQ(cuDeviceGetPCIBusId(bus, sizeof(bus), device), CUDA_SUCCESS);
    EXPECT_EQ(cuDeviceTotalMem(&bytes, device), CUDA_SUCCESS);
    EXPECT_GT(bytes, 0u);
    EXPECT_EQ(cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_WARP_SIZE, device), CUDA_SUCCESS);
    EXPECT_EQ(value, 32);
    EXPECT_EQ(cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED, device), CUDA_SUCCESS);
    EXPECT_EQ(value, 0);

    EXPECT_EQ(cuDevicePrimaryCtxGetState(7, &flags, &active), CUDA_SUCCESS);
    EXPECT_EQ(active, 0); // nobody used device 7 yet
    ASSERT_EQ(cudaSetDevice(7), cudaSuccess);
    ASSERT_EQ(cudaMalloc(&memory, 100), cudaSuccess);
    EXPECT_EQ(cuDevicePrimaryCtxGetState(7, &flags, &active), CUDA_SUCCESS);
    EXPECT_EQ(active, 1);
    EXPECT_EQ(cuDevicePrimaryCtxRelease(7), CUDA_ERROR_INVALID_CONTEXT);
    EXPECT_EQ(cuDevicePrimaryCtxRetain(&context, 7), CUDA_SUCCESS);
    EXPECT_EQ(cuCtxGetCurrent(&current), CUDA_SUCCESS);
    EXPECT_EQ(current, context);
    EXPECT_EQ(cuCtxGetDevice(&device), CUDA_SUCCESS);
    EXPECT_EQ(device, 7);
    EXPECT_EQ(cuCtxSetCurrent(nullptr), CUDA_SUCCESS);
    EXPECT_EQ(cuCtxGetCurrent(&current), CUDA_SUCCESS);
    EXPECT_EQ(current, nullptr);
    EXPECT_EQ(cuCtxSetCurrent((CUcontext)(void *)&current), CUDA_ERROR_INVALID_CONTEXT);
    EXPECT_EQ(cuCtxSetCurrent(context), CUDA_SUCCESS);
    EXPECT_EQ(cuCtxGetDevice(&device), CUDA_SUCCESS);
    EXPECT_EQ(cuDevicePrimaryCtxRelease(7), CUDA_SUCCESS);

    CUmemorytype type = CU_MEMORYTYPE_HOST;
    EXPECT_EQ(
        cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, (CUdeviceptr)(uintptr_t)memory + 99),
        CUDA_SUCCESS);
    EXPECT_EQ(type, CU_MEMORYTYPE_DEVICE);
    EXPECT_EQ(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, (CUdeviceptr)(uintptr_t)&type),
              CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(cudaFree(memory), cudaSuccess);

    EXPECT_EQ(cuGetErrorName(CUDA_ERROR_OUT_OF_MEMORY, &text), CUDA_SUCCESS);
    EXPECT_STREQ(text, "CUDA_ERROR_OUT_OF_MEMORY");
    EXPECT_EQ(cuGetErrorString((CUresult)4711, &text), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(text, nullptr);

    void *function = nullptr;
    CUdriverProcAddressQueryResult found;
    EXPECT_EQ(cuGetProcAddress("cuDeviceGetCount", &function, 12080, 0, &found), CUDA_SUCCESS);
    EXPECT_EQ(((CUresult(*)(int *))function)(&count), CUDA_SUCCESS);
    EXPECT_EQ(cuGetProcAddress("cuLaunchKernel", &function, 12080, 0, &found), CUDA_SUCCESS);
    EXPECT_EQ(found, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
    EXPECT_EQ(function, nullptr);
    EXPECT_EQ(cuGetProcAddress("cuLaunchKernel", &function, 12080, 0, nullptr), CUDA_ERROR_NOT_FOUND);
    ASSERT_EQ(cudaSetDevice(0), cudaSuccess);
}
