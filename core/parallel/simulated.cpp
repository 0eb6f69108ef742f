#include "core/parallel/simulated.h"

#include <exception>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/parallel/shared.h"
#include "core/threads/make_thread.h"

namespace lunaria::parallel {

void run_simulated(int ranks, const std::function<void(Communicator&)>& f) {
    if (ranks < 1) throw value_error("communication", str(ranks, " ranks: there is at least one"));
    const auto arena = std::make_shared<Arena>(ranks);
    std::vector<std::unique_ptr<SharedCommunicator>> communicators;
    for (int rank = 0; rank < ranks; ++rank) communicators.push_back(std::make_unique<SharedCommunicator>(arena, rank));
    std::mutex mutex;
    std::exception_ptr failure;
    const auto run = [&](int rank) {
        try {
            const WorldScope scope(communicators[static_cast<size_t>(rank)].get());
            f(*communicators[static_cast<size_t>(rank)]);
        } catch (...) {
            const std::lock_guard lock(mutex);
            if (!failure) failure = std::current_exception();
        }
        communicators[static_cast<size_t>(rank)].reset();  // from now on the others know that it has ended
    };
    std::vector<std::thread> threads;
    try {
        for (int rank = 0; rank < ranks; ++rank)
            threads.push_back(make_thread("communication", [&run, rank] { run(rank); }));
    } catch (...) {
        const std::lock_guard lock(mutex);
        if (!failure) failure = std::current_exception();
    }
    // Ranks that got no thread have ended, too.
    for (size_t rank = threads.size(); rank < communicators.size(); ++rank) communicators[rank].reset();
    for (std::thread& thread : threads) thread.join();
    if (failure) std::rethrow_exception(failure);
}

}  // namespace lunaria::parallel
