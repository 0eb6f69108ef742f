"""Ranks that are killed at random moments: the others end soon and tell which rank, signal, request and line; nothing is left but
the records.

usage: kill_test.py LUNARIA [KILLS [SEED [ENGINE]]], where ENGINE is shared, tcp, or mpi (skipped, 77, where no mpirun is installed)"""
import glob
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

LUNARIA = os.path.abspath(sys.argv[1])
KILLS = int(sys.argv[2]) if len(sys.argv) > 2 else 6
SEED = int(sys.argv[3]) if len(sys.argv) > 3 else 1
ENGINE = sys.argv[4] if len(sys.argv) > 4 else "shared"
RANKS = 3
SCRIPT = """
local ms = require "lunaria"
local comm = ms.communication.comm_func
local rank = ms.communication.get_rank()
local pid = io.open("/proc/self/stat"):read "n"
local file <close> = io.open(arg[1] .. "/pid-" .. rank, "w")
file:write(pid, " ", os.getenv "LUNARIA_JOB" or "mpirun-" .. os.getenv "OMPI_MCA_ess_base_jobid")
file:close()
local a = ms.randn { 64, 64 }
for i = 1, 1000000 do
  if i % 3 == rank then a = ms.ops.tanh(a:matmul(a)) end
  comm.all_reduce(ms.ones { 1 + i % 4 * 20000 })
  comm.all_gather_into_tensor(ms.ones { 5 })
  comm.batch_isend_irecv { comm.P2POp("isend", a, (rank + 1) % 3), comm.P2POp("irecv", a, (rank + 2) % 3) }
  comm.barrier()
  if i == 1 then io.open(arg[1] .. "/begun-" .. rank, "w"):close() end
end
"""


class KillTest(unittest.TestCase):
    def test_random_kills(self):
        choose = random.Random(SEED)
        slowest = 0
        for number in range(KILLS):
            with self.subTest(kill=number), tempfile.TemporaryDirectory() as folder:
                slowest = max(slowest, self.kill_one(folder, choose.randrange(RANKS), choose.uniform(0, 0.3), number % 10 == 9))
        print(f"{KILLS} kills; the job was over {slowest:.2f} s after the kill at the latest")

    def kill_one(self, folder, rank, seconds, early):
        script = os.path.join(folder, "train.lua")
        with open(script, "w", encoding="utf-8") as file:
            file.write(SCRIPT)
        if ENGINE == "mpi":
            words = ["mpirun", "--oversubscribe", "-n", str(RANKS), LUNARIA]
            variables = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMP_NUM_THREADS": "1"}
        else:
            words, variables = [LUNARIA, "launch", "-n", str(RANKS), "--grace", "40", "--logs", folder], {"LUNARIA_ENGINE": ENGINE}
        job = subprocess.Popen([*words, script, folder], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                               env={**os.environ, **variables})
        try:
            pids, name = self.wait_for_pids(folder, job)
            if not early:
                self.wait_until_all_have_begun(folder, job)
            time.sleep(seconds)
            begin = time.time()
            os.kill(pids[rank], 9)
            _, errors = job.communicate(timeout=60)
            took = time.time() - begin
        finally:
            job.kill()
            job.communicate()
        if ENGINE == "mpi":
            return self.check_mpi(name, pids, rank, errors, early)
        self.assertEqual(job.returncode, 137, errors)
        self.assertRegex(errors, rf"^lunaria launch: rank {rank} \(pid {pids[rank]}\) was killed by signal 9 \(Killed\)|"
                                 rf"\nlunaria launch: rank {rank} \(pid {pids[rank]}\) was killed by signal 9 \(Killed\)")
        self.assertLess(took, 30)  # by themselves, not after their grace; 2 s where a processor is free
        for other in range(RANKS):
            self.assertFalse(os.path.exists(f"/proc/{pids[other]}"), f"rank {other} is still there")
            if other != rank and not early:
                with open(os.path.join(folder, f"rank-{other}.log"), encoding="utf-8") as file:
                    self.check_words(file.read(), rank)
        left = [file for file in os.listdir("/dev/shm") if name in file]
        self.assertTrue(all(re.fullmatch(rf"lunaria-{name}-ring-\d", file) for file in left), left)
        if left:
            self.check_records(name, left, rank, pids[rank])
        return took

    def check_mpi(self, name, pids, rank, errors, early):
        """mpirun ends the others as soon as it sees a rank killed, without telling the signal to anybody but the user."""
        left = [file for file in os.listdir("/dev/shm") if name in file]
        for file in left:
            os.remove(os.path.join("/dev/shm", file))
        if early:
            return 0
        end = time.time() + 20  # mpirun does not wait for those that it has ended
        while time.time() < end and any(os.path.exists(f"/proc/{pid}") for pid in pids.values()):
            time.sleep(0.02)
        for other in range(RANKS):
            self.assertFalse(os.path.exists(f"/proc/{pids[other]}"), f"rank {other} is still there")
        self.assertRegex(errors, rf"rank {rank} \(process {pids[rank]}\) died (in|after) [a-z_]+ #\d+.*train\.lua:\d+")
        self.assertTrue(all(re.fullmatch(rf"lunaria-{name}-ring-\d", file) for file in left), left)
        return 0

    def wait_for_pids(self, folder, job):
        pids, name = {}, None
        end = time.time() + 60
        while len(pids) < RANKS:
            self.assertIsNone(job.poll(), "the job has ended by itself")
            self.assertLess(time.time(), end)
            for path in glob.glob(os.path.join(folder, "pid-*")):
                with open(path, encoding="utf-8") as file:
                    text = file.read()
                if text:
                    pid, name = text.split()
                    pids[int(path[-1])] = int(pid)
            time.sleep(0.005)
        return pids, name

    def wait_until_all_have_begun(self, folder, job):
        end = time.time() + 60
        while len(glob.glob(os.path.join(folder, "begun-*"))) < RANKS:
            self.assertIsNone(job.poll(), "the job has ended by itself")
            self.assertLess(time.time(), end)
            time.sleep(0.005)

    def check_words(self, text, rank):
        request = r"(all_reduce|all_gather|send|recv|barrier) #\d+"
        self.assertRegex(text, rf"rank {rank} \((process|pid) \d+\) was killed by signal 9 \(Killed\) (in|after) {request}")
        self.assertRegex(text, rf"waits for rank \d in {request}.*train\.lua:\d+")

    def check_records(self, job, names, rank, pid):
        told = subprocess.run([LUNARIA, "ranks", job], capture_output=True, text=True, check=True, timeout=60).stdout
        self.assertRegex(told, rf"\nrank {rank} \(pid {pid}\) was killed by signal 9 \(Killed\)")
        for name in names:
            os.remove(os.path.join("/dev/shm", name))


if __name__ == "__main__":
    if ENGINE == "mpi" and not shutil.which("mpirun"):
        print("no mpirun: ./dev test installs it")
        sys.exit(77)
    unittest.main(argv=sys.argv[:1])
