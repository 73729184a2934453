// descriptor_limit.h - a process with just so many descriptors left.
#ifndef RONDO_TESTS_DESCRIPTOR_LIMIT_H
#define RONDO_TESTS_DESCRIPTOR_LIMIT_H

#include <fcntl.h>
#include <sys/resource.h>

// While it lives, exactly `spare` more descriptors can be opened in this process. The limit is one of numbers,
// and whoever started the test may have left some open far above the free ones: those above the limit stay
// usable, and do not count.
class DescriptorLimit
{
  public:
    explicit DescriptorLimit(int spare)
    {
        rlimit tight{};
        int free = 0, number = 0;

        getrlimit(RLIMIT_NOFILE, &usual_);
        while (free < spare || fcntl(number, F_GETFD) >= 0) {
            if (fcntl(number, F_GETFD) < 0)
                free++;
            number++;
        }
        tight = usual_;
        tight.rlim_cur = static_cast<rlim_t>(number);
        setrlimit(RLIMIT_NOFILE, &tight);
    }
    ~DescriptorLimit()
    {
        setrlimit(RLIMIT_NOFILE, &usual_);
    }
    DescriptorLimit(const DescriptorLimit &) = delete;
    DescriptorLimit &operator=(const DescriptorLimit &) = delete;

  private:
    rlimit usual_{};
};

#endif
