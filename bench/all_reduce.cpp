// All-reduce of two processes: `all_reduce shared` through the shared memory of core/parallel, `mpirun -n 2 all_reduce
// mpi` through OpenMPI alone. Each prints a line "bytes microseconds" for sizes from 4 B to 64 MB; bench/all_reduce.py
// compares them. `all_reduce overlap` prints the time of a step that computes (sleeps) while 16 MB are reduced, divided
// by the longer of both; `all_reduce marks` the nanoseconds that a request takes beside its exchange: checks and the
// record.
#include <dlfcn.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/error.h"
#include "core/parallel/phantom.h"
#include "core/parallel/shared.h"

namespace {

using namespace lunaria;
using namespace lunaria::parallel;

double microseconds() {
    return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// The least time of a call among batches of calls; both processes make the same calls.
void measure(bool prints, const std::function<void(float*, int64_t)>& reduce) {
    constexpr int64_t kLargest = int64_t{64} << 20;
    std::vector<float> x(kLargest / sizeof(float), 1.0f);
    for (int64_t bytes = 4; bytes <= kLargest; bytes *= 4) {
        const int64_t count = bytes / static_cast<int64_t>(sizeof(float));
        const int calls = static_cast<int>(std::clamp<int64_t>((int64_t{1} << 22) / bytes, 1, 2000));
        double least = 1e30;
        for (int batch = 0; batch < 12; ++batch) {
            std::fill(x.begin(), x.begin() + count, 1.0f);
            reduce(x.data(), 1);
            const double begin = microseconds();
            for (int i = 0; i < calls; ++i) reduce(x.data(), count);
            least = std::min(least, (microseconds() - begin) / calls);
        }
        if (prints) std::printf("%lld %.3f\n", static_cast<long long>(bytes), least);
    }
    std::fflush(stdout);
}

Request request_of(float* x, int64_t count) {
    Request request;
    request.operation = Collective::all_reduce;
    request.count = count;
    request.in = request.out = x;
    request.label = {"all_reduce.cpp:1", {}};
    return request;
}

// Two processes, each on a processor of its own, as mpirun gives them.
int in_two_processes(const std::function<void(Communicator&)>& f) {
    const std::string job = str("bench-", getpid());
    const int child = fork();
    const int rank = child == 0 ? 1 : 0;
    cpu_set_t processor;
    CPU_ZERO(&processor);
    CPU_SET(rank, &processor);
    sched_setaffinity(0, sizeof processor, &processor);
    {
        SharedCommunicator communicator(std::make_shared<Arena>(job, rank, 2), rank);
        f(communicator);
    }
    if (child == 0) _exit(0);
    int status = 0;
    waitpid(child, &status, 0);
    return status == 0 ? 0 : 1;
}

int with_shared_memory() {
    return in_two_processes([](Communicator& communicator) {
        measure(communicator.rank() == 0, [&](float* x, int64_t count) { communicator.run(request_of(x, count)); });
    });
}

int with_computation() {
    return in_two_processes([](Communicator& communicator) {
        std::vector<float> x(size_t{4} << 20);
        const Request request = request_of(x.data(), static_cast<int64_t>(x.size()));
        double alone = 1e30, together = 1e30;
        for (int i = 0; i < 20; ++i) {
            const double begin = microseconds();
            communicator.run(request);
            alone = std::min(alone, microseconds() - begin);
        }
        // Both ranks have to sleep equally long.
        auto longest = static_cast<float>(alone);
        Request all = request_of(&longest, 1);
        all.combine = Combine::max;
        communicator.run(all);
        for (int i = 0; i < 20; ++i) {
            const double begin = microseconds();
            const Pending pending = communicator.start(request);
            usleep(static_cast<useconds_t>(longest));
            pending.wait();
            together = std::min(together, microseconds() - begin);
        }
        if (communicator.rank() == 0) std::printf("%.3f\n", together / static_cast<double>(longest));
    });
}

int with_nothing_else() {
    PhantomCommunicator communicator(0, 1);
    Request request;
    request.label = {"all_reduce.cpp:1", {}};
    double least = 1e30;
    for (int batch = 0; batch < 50; ++batch) {
        const double begin = microseconds();
        for (int i = 0; i < 10'000; ++i) communicator.run(request);
        least = std::min(least, (microseconds() - begin) / 10'000);
    }
    std::printf("%.1f\n", least * 1000);
    return 0;
}

// OpenMPI without its header: its handles are symbols of its library.
int with_mpi() {
    void* library = dlopen("libmpi.so.40", RTLD_NOW | RTLD_GLOBAL);
    if (!library) {
        std::fprintf(stderr, "%s\n", dlerror());
        return 77;
    }
    const auto init = reinterpret_cast<int (*)(int*, char***)>(dlsym(library, "MPI_Init"));
    const auto rank_of = reinterpret_cast<int (*)(void*, int*)>(dlsym(library, "MPI_Comm_rank"));
    const auto all_reduce =
        reinterpret_cast<int (*)(const void*, void*, int, void*, void*, void*)>(dlsym(library, "MPI_Allreduce"));
    const auto finalize = reinterpret_cast<int (*)()>(dlsym(library, "MPI_Finalize"));
    void* world = dlsym(library, "ompi_mpi_comm_world");
    void* type = dlsym(library, "ompi_mpi_float");
    void* sum = dlsym(library, "ompi_mpi_op_sum");
    init(nullptr, nullptr);
    int rank = 0;
    rank_of(world, &rank);
    measure(rank == 0, [&](float* x, int64_t count) {
        all_reduce(reinterpret_cast<void*>(1), x, static_cast<int>(count), type, sum, world);
    });
    return finalize();
}

}  // namespace

int main(int argc, char** argv) {
    const std::string_view what = argc > 1 ? argv[1] : "shared";
    if (what == "mpi") return with_mpi();
    if (what == "overlap") return with_computation();
    if (what == "marks") return with_nothing_else();
    return with_shared_memory();
}
