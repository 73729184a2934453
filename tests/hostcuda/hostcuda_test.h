// hostcuda_test.h - what the tests of the CUDA runtime share: a gate that holds a stream, and helper
// programs.
#ifndef RONDO_TESTS_HOSTCUDA_H
#define RONDO_TESTS_HOSTCUDA_H

#include <cuda_runtime.h>

#include <gtest/gtest.h>

#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>

// Holds a stream from hold() on, until it is opened or gone: the stream's later work cannot start. What the
// stream's function looks at outlives the gate, as the function may begin later.
class Gate
{
  public:
    ~Gate()
    {
        open();
    }

    cudaError_t hold(cudaStream_t stream)
    {
        auto *share = new std::shared_ptr<State>(state_);
        cudaError_t error = cudaLaunchHostFunc(stream, wait, share);
        if (error != cudaSuccess)
            delete share;
        return error;
    }

    void open()
    {
        std::lock_guard<std::mutex> guard(state_->lock);
        state_->is_open = true;
        state_->changed.notify_all();
    }

  private:
    struct State {
        std::mutex lock;
        std::condition_variable changed;
        bool is_open = false;
    };

    static void wait(void *argument)
    {
        std::unique_ptr<std::shared_ptr<State>> share(static_cast<std::shared_ptr<State> *>(argument));
        State &state = **share;
        std::unique_lock<std::mutex> guard(state.lock);
        state.changed.wait(guard, [&state] { return state.is_open; });
    }

    std::shared_ptr<State> state_ = std::make_shared<State>();
};

// Runs a program through the shell with the environment settings before it; its stdout and stderr together.
// Adds a line "exit N" or "signal N".
std::string RunProgram(const std::string &environment, const std::string &command);

// Starts each test without a remembered error and on device 0.
class HostCuda : public ::testing::Test
{
  protected:
    void SetUp() override
    {
        ASSERT_EQ(cudaSetDevice(0), cudaSuccess);
        cudaGetLastError();
    }
};

#endif
