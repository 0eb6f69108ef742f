"""The engine over MPI under mpirun: results, disagreement, a rank that leaves. Skipped (77) where no mpirun is installed.

usage: mpi_test.py lunaria_parallel_tests"""
import os
import shutil
import subprocess
import sys
import unittest

PROGRAM = os.path.abspath(sys.argv.pop(1))


def mpirun(ranks, **variables):
    environment = {**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", **variables}
    return subprocess.run(["mpirun", "--oversubscribe", "-n", str(ranks), PROGRAM, "--gtest_filter=Mpi.*", "--gtest_color=no"], env=environment,
                          capture_output=True, text=True, timeout=60, check=False)


class MpiTest(unittest.TestCase):
    def test_requests(self):
        for ranks in (1, 3):
            done = mpirun(ranks)
            self.assertEqual((done.returncode, done.stdout.count("[  PASSED  ] 1 test.")), (0, ranks), done.stdout + done.stderr)

    def test_disagreement(self):
        done = mpirun(2, LUNARIA_TEST_MPI="differ")
        self.assertNotEqual(done.returncode, 0)
        self.assertRegex(done.stderr, r"rank 0: all_reduce: rank 0 asks for all_reduce #\d+ \(float32, 1 element\), zero.lua:2; "
                                      r"but rank 1 asks for all_reduce #\d+ \(float32, 1 element, max\), one.lua:1")

    def test_rank_that_leaves(self):
        done = mpirun(2, LUNARIA_TEST_MPI="leave")
        self.assertRegex(done.stderr, r"rank 0 waits for rank 1 in all_reduce #\d+ .*, zero.lua:2; but rank 1 has left")


if __name__ == "__main__":
    if not shutil.which("mpirun"):
        print("no mpirun: ./dev test installs it")
        sys.exit(77)
    unittest.main()
