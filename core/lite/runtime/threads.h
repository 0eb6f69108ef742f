// The threads of a context: a fixed number, started once, each bound to a core where the context says so.
//
// Work is a number of indices, which threads take one by one. A thread that waits for work looks for it for some
// microseconds before it sleeps, since steps of a model follow each other at such distances.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <thread>
#include <vector>

namespace lunaria::lite {

// Which cores threads run on: those of the highest clock first, or the slower ones.
enum class Affinity : uint8_t { none, big, middle };

class Threads {
  public:
    using Task = void (*)(void* closure, int64_t index, int worker);

    // `count` threads with the caller's, or as many as the system gives. `cores`: where each runs, in turn; empty: by
    // `affinity`.
    Threads(int count, Affinity affinity, std::vector<int> cores);
    ~Threads();
    Threads(const Threads&) = delete;
    Threads& operator=(const Threads&) = delete;

    int count() const { return static_cast<int>(threads_.size()) + 1; }
    // Calls task(closure, index, worker) for each index below `count`, with worker numbers below count(), and returns
    // when all are done. One thread at a time may call it.
    void run(int64_t count, Task task, void* closure);
    template <class F>
    void run(int64_t count, F&& f) {
        run(
            count, [](void* closure, int64_t index, int worker) { (*static_cast<F*>(closure))(index, worker); }, &f);
    }

    // The caller's turn: threads work for one model at a time.
    std::mutex turn;

  private:
    void work(int worker);
    void take_part(int worker);

    std::vector<std::thread> threads_;
    std::atomic<uint32_t> round_{0};  // even or odd numbers alike: each call of run() raises it
    std::atomic<int> busy_{0};        // threads that have not left the current round
    std::atomic<int64_t> next_{0};
    std::atomic<bool> ends_{false};
    int64_t count_ = 0;
    Task task_ = nullptr;
    void* closure_ = nullptr;
};

// The number of processors that this process may use.
int processor_count();

}  // namespace lunaria::lite
