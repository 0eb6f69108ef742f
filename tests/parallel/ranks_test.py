"""One script under every launcher and engine: alone, lunaria launch, MPI, TCP, variables of torchrun, msrun and Slurm, a rank table,
two machines, eager and as graphs; and how long several ranks take to start.

usage: ranks_test.py LUNARIA"""
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import unittest

LUNARIA = os.path.abspath(sys.argv.pop(1))
SCRIPT = "notebooks/ranks.lua"
SECONDS = 120


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class RanksTest(unittest.TestCase):
    def run_all(self, commands):
        """The outputs of processes that run together; all end well."""
        started = [subprocess.Popen(words, env={**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
                                                "OMP_NUM_THREADS": "1", **variables}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
                   for words, variables in commands]
        try:
            outputs = [process.communicate(timeout=SECONDS) for process in started]
        finally:
            for process in started:
                process.kill()
                process.wait()
        for process, (_, errors) in zip(started, outputs):
            self.assertEqual(process.returncode, 0, errors)
        return [output for output, _ in outputs]

    def loss_of(self, outputs, ranks):
        found = re.fullmatch(rf"{ranks} ranks?: loss (\d\.\d{{4}})\n", "".join(outputs))
        self.assertTrue(found, outputs)
        return found[1]

    @classmethod
    def setUpClass(cls):
        done = subprocess.run([LUNARIA, SCRIPT], capture_output=True, text=True, check=True, timeout=SECONDS)
        cls.alone = done.stdout[-7:-1]

    def check(self, ranks, commands):
        self.assertAlmostEqual(float(self.loss_of(self.run_all(commands), ranks)), float(self.alone), delta=2e-4)

    def by_variables(self, variables_of):
        self.check(2, [([LUNARIA, SCRIPT], variables_of(rank)) for rank in range(2)])

    def test_launch(self):
        self.check(4, [([LUNARIA, "launch", "-n", "4", SCRIPT], {})])
        self.check(2, [([LUNARIA, "launch", "-n", "2", SCRIPT, "graph"], {})])

    def test_tcp(self):
        self.check(3, [([LUNARIA, "launch", "-n", "3", SCRIPT], {"LUNARIA_ENGINE": "tcp"})])

    def test_two_machines(self):
        words = [LUNARIA, "launch", "-n", "2", "--nodes", "2", "--address", f"127.0.0.1:{free_port()}", "--node"]
        variables = {"LUNARIA_ENGINE": "tcp", "LUNARIA_SECRET": "told to both"}
        self.check(4, [(words + [str(node), SCRIPT], variables) for node in range(2)])

    @unittest.skipUnless(shutil.which("mpirun"), "no mpirun")
    def test_mpirun(self):
        self.check(4, [(["sh", "notebooks/mpirun.sh", "-n", "4", SCRIPT], {"LUNARIA": LUNARIA})])

    def test_torchrun(self):
        port = str(free_port())
        self.by_variables(lambda rank: {"RANK": str(rank), "WORLD_SIZE": "2", "LOCAL_RANK": str(rank), "LOCAL_WORLD_SIZE": "2",
                                        "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port})

    def test_msrun(self):
        port = str(free_port())
        self.by_variables(lambda rank: {"MS_ROLE": "MS_WORKER", "MS_WORKER_NUM": "2", "MS_NODE_ID": str(rank),
                                        "MS_SCHED_HOST": "127.0.0.1", "MS_SCHED_PORT": port})

    def test_slurm(self):
        job = str(os.getpid())
        self.by_variables(lambda rank: {"SLURM_PROCID": str(rank), "SLURM_STEP_NUM_TASKS": "2", "SLURM_STEP_NUM_NODES": "1",
                                        "SLURM_LOCALID": str(rank), "SLURM_JOB_ID": job, "SLURM_STEP_ID": "0"})

    def test_rank_table(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "table.json")
            devices = [{"device_id": str(rank), "rank_id": str(rank)} for rank in range(2)]
            with open(path, "w", encoding="utf-8") as file:
                json.dump({"server_list": [{"server_id": "127.0.0.1", "device": devices}]}, file)
            self.by_variables(lambda rank: {"RANK_TABLE_FILE": path, "RANK_ID": str(rank)})

    def test_start(self):
        words = [LUNARIA, "launch", "-n", "4", "--", "-e", "require('lunaria').communication.comm_func.barrier()"]
        best = 10
        for _ in range(5):
            begin = time.time()
            subprocess.run(words, check=True, timeout=SECONDS)
            best = min(best, time.time() - begin)
        print(f"4 ranks have started, met and ended in {best:.3f} s")
        self.assertLess(best, 5)  # 0.2 s where a processor is free


if __name__ == "__main__":
    unittest.main()
