#include "core/parallel/mpi.h"

#include <unistd.h>

#include "core/parallel/environment.h"
#include "tests/parallel/engine_checks.h"

namespace lunaria::parallel {
namespace {

// tests/parallel/mpi_test.py starts this program by mpirun; a process joins MPI once.
TEST(Mpi, EveryRequestMeansTheSame) {
    const Environment e = environment();
    if (e.launcher != Launcher::openmpi && e.launcher != Launcher::mpich) GTEST_SKIP() << "not started by mpirun";
    const auto c = make_mpi();
    EXPECT_EQ(c->rank(), e.rank);
    EXPECT_EQ(c->ranks(), e.ranks);
    EngineChecks(*c, 3).run(150);
    EXPECT_THROW(make_mpi(), Error);
    const char* what = std::getenv("LUNARIA_TEST_MPI");
    if (!what) return;
    Request r;
    float x = 1;
    r.operation = Collective::all_reduce;
    r.count = 1;
    r.in = r.out = &x;
    r.label.place = e.rank == 1 ? "one.lua:1" : "zero.lua:2";
    if (what == std::string_view("differ")) r.combine = e.rank == 1 ? Combine::max : Combine::sum;
    if (what == std::string_view("leave") && e.rank == 1) return;
    try {
        c->run(r);
    } catch (const Error& error) {
        std::fprintf(stderr, "rank %d: %s\n", static_cast<int>(e.rank), error.what());
        std::fflush(stderr);
        usleep(300'000);  // until the other has told its part
        _exit(3);
    }
}

}  // namespace
}  // namespace lunaria::parallel
