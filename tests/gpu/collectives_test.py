"""Ranks whose tensors lie on GPUs, under mocks of NCCL and of the driver: results, what NCCL is asked for, its absence, refusals, ranks
that disagree and a rank that is killed while the device waits for it.

usage: collectives_test.py LUNARIA"""
import os
import subprocess
import sys
import time
import unittest

LUNARIA = os.path.abspath(sys.argv.pop(1))
SECONDS = 60


class CollectivesTest(unittest.TestCase):
    def launch(self, what, **variables):
        done = subprocess.run([LUNARIA, "launch", "-n", "2", "tests/gpu/collectives.lua", what], env={**os.environ, **variables},
                              capture_output=True, text=True, timeout=SECONDS, check=False)
        for job in [line.split()[-1] for line in done.stderr.splitlines() if "lunaria ranks " in line]:
            for rank in range(2):
                os.remove(f"/dev/shm/lunaria-{job}-ring-{rank}")
        return done

    def expect_right(self, what, **variables):
        done = self.launch(what, **variables)
        self.assertEqual((done.returncode, done.stdout), (0, "right\n"), done.stderr)

    def test_library_moves_what_it_can(self):
        self.expect_right("values", LUNARIA_DEVICE_ENGINE="nccl")
        self.expect_right("values")
        self.expect_right("values", LUNARIA_ENGINE="tcp")

    def test_host_moves_the_rest(self):
        self.expect_right("host", LUNARIA_DEVICE_ENGINE="host")
        self.expect_right("host", LUNARIA_MOCK_NCCL="21000")
        self.expect_right("host", LUNARIA_MOCK_COUNT="1")

    def test_library_that_is_asked_for_and_cannot_be_used(self):
        for variables, message in (({"LUNARIA_MOCK_NCCL": "21000"}, r"rank 0: NCCL is too old: libnccl.so.2 is 2.10.0"),
                                   ({"LUNARIA_MOCK_COUNT": "1"}, r"ranks 0 and 1 use the same processor, .* number 0 of"),
                                   ({"LUNARIA_GPU_LIBRARIES": "0"}, r"rank 0: NCCL is not to be used")):
            done = self.launch("values", LUNARIA_DEVICE_ENGINE="nccl", **variables)
            self.assertEqual(done.returncode, 1)
            self.assertRegex(done.stderr, r'LUNARIA_DEVICE_ENGINE is "nccl", but ' + message)
        self.assertIn('there are "nccl" and "host"', self.launch("host", LUNARIA_DEVICE_ENGINE="x").stderr)

    def test_refusal(self):
        done = self.launch("refused", LUNARIA_MOCK_NCCL_REFUSES="all_reduce")
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr, r"collectives.lua:\d+: all_reduce: NCCL: invalid usage: told by the mock")

    def test_ranks_that_disagree_about_the_device(self):
        done = self.launch("differ")
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr, r"rank \d asks for .*; but rank \d asks for ")

    def test_rank_that_is_killed_while_the_device_waits(self):
        begin = time.time()
        done = self.launch("killed")
        self.assertEqual(done.returncode, 137, done.stderr)
        self.assertRegex(done.stderr, r"rank 1 \(process \d+\) was killed by signal 9 \(Killed\) (in|after) all_reduce #\d+ .*collectives.lua:\d+")
        self.assertLess(time.time() - begin, 40)  # not the ten minutes of its patience


if __name__ == "__main__":
    unittest.main()
