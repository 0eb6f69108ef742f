#include "tests/jit/graph/fibers.h"

#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <vector>

// void switch_stacks(void** from, void* to): goes on where `to` was left, and leaves that place in `from`. The system's
// swapcontext does the same with two calls of the kernel.
asm(R"(
    .text
    .type switch_stacks, @function
switch_stacks:
    pushq %rbp
    pushq %rbx
    pushq %r12
    pushq %r13
    pushq %r14
    pushq %r15
    movq %rsp, (%rdi)
    movq %rsi, %rsp
    popq %r15
    popq %r14
    popq %r13
    popq %r12
    popq %rbx
    popq %rbp
    ret
    .size switch_stacks, . - switch_stacks
)");
extern "C" void switch_stacks(void** from, void* to);

namespace lunaria::testing {
namespace {

using graph::EmulatedKernel;
using graph::EmulatedThread;
using graph::kWarp;

constexpr size_t kStack = size_t{64} << 10;

constexpr size_t kSaved = 6 * sizeof(void*);  // what switch_stacks() pushes

// Kept from launch to launch, for this thread.
class Stacks {
  public:
    ~Stacks() { release(); }
    char* get(size_t count) {
        if (count * kStack <= bytes_) return memory_;
        release();
        bytes_ = count * kStack;
        memory_ = static_cast<char*>(mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
        return memory_;
    }

  private:
    void release() {
        if (memory_) munmap(memory_, bytes_);
    }
    char* memory_ = nullptr;
    size_t bytes_ = 0;
};

class Block;
thread_local Block* running = nullptr;

struct Fiber : EmulatedThread {
    enum class State : uint8_t { ready, at_barrier, at_exchange, at_product, done };
    Block* owner = nullptr;
    void* place = nullptr;  // where it goes on
    State state = State::ready;
    uint64_t value = 0;
    int32_t bits = 0;
    const uint32_t* factors = nullptr;
    float* sums = nullptr;
};

class Block {
  public:
    Block(EmulatedKernel kernel, const void* words, const graph::ThreadLaunch& launch)
        : kernel_(kernel), words_(words), fibers_(static_cast<size_t>(launch.threads)) {
        static thread_local Stacks stacks;
        stacks_ = stacks.get(fibers_.size());
        near_.resize(launch.near_bytes / 8 + 1);
        for (size_t i = 0; i < fibers_.size(); ++i) {
            Fiber& f = fibers_[i];
            f.owner = this;
            f.thread = static_cast<int32_t>(i);
            f.threads = launch.threads;
            f.blocks = static_cast<int32_t>(launch.blocks);
            f.barrier = [](EmulatedThread* t) { wait(t, Fiber::State::at_barrier); };
            f.exchange = &exchange;
            f.product = &product;
            f.reduction = reduction_;
            f.near = near_.data();
        }
    }
    Block(const Block&) = delete;

    std::string run(int32_t number, bool backwards) {
        // What an earlier block has left is no value to rely on.
        std::fill(near_.begin(), near_.end(), 0x7ff7a5a57ff7a5a5);
        std::fill(std::begin(reduction_), std::end(reduction_), 0x7ff7a5a57ff7a5a5);
        for (size_t i = 0; i < fibers_.size(); ++i) start(fibers_[i], stacks_ + i * kStack, number);
        while (true) {
            size_t done = 0;
            for (size_t i = 0; i < fibers_.size(); ++i) {
                Fiber& f = fibers_[backwards ? fibers_.size() - 1 - i : i];
                if (f.state == Fiber::State::ready) {
                    now_ = &f;
                    running = this;
                    switch_stacks(&main_, f.place);
                }
                done += f.state == Fiber::State::done;
            }
            if (done == fibers_.size()) return {};
            if (std::string wrong = release(done); !wrong.empty()) return wrong;
        }
    }

  private:
    void start(Fiber& f, char* stack, int32_t number) {
        f.block = number;
        f.state = Fiber::State::ready;
        // As if enter() had been called and was about to start: its frame is aligned as a call leaves it.
        char* const top = stack + kStack - 2 * sizeof(void*);
        *reinterpret_cast<void**>(top) = reinterpret_cast<void*>(&enter);
        f.place = top - kSaved;
    }
    [[noreturn]] static void enter() {
        Block* const block = running;
        Fiber* const self = block->now_;
        block->kernel_(block->words_, self);
        wait(self, Fiber::State::done);
        std::abort();
    }
    static void wait(EmulatedThread* t, Fiber::State state) {
        auto* f = static_cast<Fiber*>(t);
        f->state = state;
        switch_stacks(&f->place, f->owner->main_);
    }
    static uint64_t exchange(EmulatedThread* t, uint64_t value, int32_t bits) {
        auto* f = static_cast<Fiber*>(t);
        f->value = value;
        f->bits = bits;
        wait(t, Fiber::State::at_exchange);
        return f->value;
    }

    static void product(EmulatedThread* t, const uint32_t* factors, float* sums, int32_t is_bfloat) {
        auto* f = static_cast<Fiber*>(t);
        f->factors = factors;
        f->sums = sums;
        f->bits = is_bfloat;
        wait(t, Fiber::State::at_product);
    }
    // Lanes have rows lane / 4 and that + 8 of the left factor and of the sums, column lane / 4 of the right one; of
    // the depth, and of the columns of the sums, two from 2 * (lane % 4) on.
    static void multiply(std::span<Fiber> warp) {
        float a[16][16], b[16][8];
        auto element = [&](uint32_t word, size_t half) {
            const auto bits = static_cast<uint16_t>(word >> (16 * half));
            return warp[0].bits ? std::bit_cast<float>(uint32_t{bits} << 16) : half_to_float(bits);
        };
        for (size_t lane = 0; lane < kWarp; ++lane)
            for (size_t half = 0; half < 2; ++half) {
                const size_t g = lane / 4, k = lane % 4 * 2 + half;
                for (size_t quarter = 0; quarter < 4; ++quarter)
                    a[g + quarter % 2 * 8][k + quarter / 2 * 8] = element(warp[lane].factors[quarter], half);
                for (size_t lower = 0; lower < 2; ++lower)
                    b[k + lower * 8][g] = element(warp[lane].factors[4 + lower], half);
            }
        for (size_t lane = 0; lane < kWarp; ++lane)
            for (size_t i = 0; i < 4; ++i) {
                float sum = warp[lane].sums[i];
                for (size_t k = 0; k < 16; ++k) sum += a[lane / 4 + i / 2 * 8][k] * b[k][lane % 4 * 2 + i % 2];
                warp[lane].sums[i] = sum;
            }
        for (Fiber& f : warp) f.state = Fiber::State::ready;
    }

    // No thread can go on by itself.
    std::string release(size_t done) {
        size_t at_barrier = 0;
        bool moved = false;
        for (const Fiber& f : fibers_) at_barrier += f.state == Fiber::State::at_barrier;
        if (at_barrier == fibers_.size()) {
            for (Fiber& f : fibers_) f.state = Fiber::State::ready;
            return {};
        }
        for (size_t first = 0; first < fibers_.size(); first += kWarp) {
            const size_t count = std::min<size_t>(kWarp, fibers_.size() - first);
            std::span<Fiber> warp(fibers_.data() + first, count);
            if (std::ranges::all_of(warp, [](const Fiber& f) { return f.state == Fiber::State::at_product; })) {
                if (count < kWarp) return "a product of a part of a warp";
                multiply(warp);
                moved = true;
                continue;
            }
            size_t waiting = 0;
            for (const Fiber& f : warp) waiting += f.state == Fiber::State::at_exchange;
            if (waiting == 0) continue;
            if (waiting < count) return "an exchange that not all threads of a warp reach";
            std::vector<uint64_t> values;
            for (const Fiber& f : warp) values.push_back(f.value);
            for (size_t i = 0; i < count; ++i) {
                const size_t other = i ^ static_cast<size_t>(warp[i].bits);
                if (other >= count) return "an exchange with no thread";
                warp[i].value = values[other];
                warp[i].state = Fiber::State::ready;
            }
            moved = true;
        }
        if (moved) return {};
        return done ? "a barrier that not all threads reach" : "threads that wait for each other";
    }

    const EmulatedKernel kernel_;
    const void* const words_;
    std::vector<Fiber> fibers_;
    void* main_ = nullptr;
    Fiber* now_ = nullptr;
    char* stacks_ = nullptr;
    std::vector<uint64_t> near_;
    uint64_t reduction_[kWarp] = {};
};

// Threads that share nothing need no fibers.
class Apart {
  public:
    explicit Apart(const graph::ThreadLaunch& launch) : launch_(launch) {}

    std::string run(EmulatedKernel kernel, const void* words, bool backwards) {
        const int64_t count = launch_.blocks * launch_.threads;
        for (int64_t i = 0; i < count; ++i) {
            const int64_t number = backwards ? count - 1 - i : i;
            Thread thread;
            thread.thread = static_cast<int32_t>(number % launch_.threads);
            thread.threads = launch_.threads;
            thread.block = static_cast<int32_t>(number / launch_.threads);
            thread.blocks = static_cast<int32_t>(launch_.blocks);
            thread.barrier = [](EmulatedThread* t) { static_cast<Thread*>(t)->waits = true; };
            thread.exchange = [](EmulatedThread* t, uint64_t value, int32_t) {
                static_cast<Thread*>(t)->waits = true;
                return value;
            };
            thread.product = [](EmulatedThread* t, const uint32_t*, float*, int32_t) {
                static_cast<Thread*>(t)->waits = true;
            };
            kernel(words, &thread);
            if (thread.waits) return "threads that share nothing wait for each other";
        }
        return {};
    }

  private:
    struct Thread : EmulatedThread {
        bool waits = false;
    };
    const graph::ThreadLaunch& launch_;
};

}  // namespace

std::string run_threads(EmulatedKernel kernel, const graph::ThreadLaunch& launch, std::span<const uint64_t> words,
                        bool backwards) {
    if (launch.shape.row == graph::ThreadShape::Row::spread) return Apart(launch).run(kernel, words.data(), backwards);
    Block block(kernel, words.data(), launch);
    for (int64_t i = 0; i < launch.blocks; ++i)
        if (std::string wrong = block.run(static_cast<int32_t>(i), backwards); !wrong.empty()) return wrong;
    return {};
}

}  // namespace lunaria::testing
