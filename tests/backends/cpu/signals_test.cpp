// Signals that come while libraries compute.
#include "core/base/signals.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <vector>

#include "backends/cpu/device.h"
#include "core/operator/op.h"
#include "core/threads/threads.h"

namespace lunaria {
namespace {

std::atomic<int> signals = 0;

void write_on_stack(int) {
    volatile char frame[4096];
    for (volatile char& c : frame) c = 0x5a;
    ++signals;
}

// Ten thousand signals a second for the calling thread, as long as it lives.
class Timer {
  public:
    Timer() {
        handle_signal(SIGALRM, write_on_stack, SA_RESTART);
        sigevent event{};
        event.sigev_notify = SIGEV_THREAD_ID;
        event.sigev_signo = SIGALRM;
        event._sigev_un._tid = gettid();
        EXPECT_EQ(timer_create(CLOCK_MONOTONIC, &event, &timer_), 0);
        constexpr timespec kEvery{0, 100'000};
        const itimerspec times{kEvery, kEvery};
        EXPECT_EQ(timer_settime(timer_, 0, &times, nullptr), 0);
    }
    Timer(const Timer&) = delete;
    ~Timer() {
        timer_delete(timer_);
        signal(SIGALRM, SIG_IGN);
    }

  private:
    timer_t timer_{};
};

Tensor small_numbers(const Shape& shape) {
    Tensor t = Tensor::empty(DType::f32, shape);
    float* elements = t.data<float>();
    for (int64_t i = 0; i < t.size(); ++i) elements[i] = static_cast<float>(i * 7919 % 101 - 50);
    return t;
}

// A row this wide goes through the matrix products of oneDNN.
TEST(SignalsTest, they_leave_the_products_of_libraries_alone) {
    const int threads = num_threads();
    set_num_threads(2);
    const Tensor x = small_numbers({1, 64, 23, 514}), y = small_numbers({1, 64, 9, 500});
    const std::vector<Value> args{Value(x), Value(y), Value::ints(Shape{64, 64, 15, 15}), Value(1), Value(0),
                                  Value(1), Value(1)};
    set_current_device(&cpu::device());
    const Op& op = registry().get("conv_weight_grad");
    const Tensor alone = run(op, args).tensor();
    {
        const Timer timer;
        while (signals < 5000) {
            const Tensor again = run(op, args).tensor();
            ASSERT_EQ(std::memcmp(again.raw(), alone.raw(), alone.nbytes()), 0);
        }
    }
    set_num_threads(threads);
}

}  // namespace
}  // namespace lunaria
