"""lunaria launch as a process: output and logs, exit codes, failures, signals, restarts, and that nothing is left behind.

usage: launch_test.py LUNARIA"""
import glob
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
import unittest

LUNARIA = os.path.abspath(sys.argv.pop(1) if len(sys.argv) > 1 else "build/lunaria")
SECONDS = 240


def processes_with(mark):
    """Numbers of processes in whose environment a text stands."""
    found = []
    for path in glob.glob("/proc/[0-9]*/environ"):
        try:
            with open(path, "rb") as file:
                if mark.encode() in file.read():
                    found.append(int(path.split("/")[2]))
        except OSError:
            pass
    return found


class LaunchTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.temporary = os.path.join(self.folder, "tmp")
        os.mkdir(self.temporary)
        self.mark = f"LAUNCH_TEST_{os.getpid()}_{self.id()}"
        self.environment = {k: v for k, v in os.environ.items() if not k.startswith(("LUNARIA_RANK", "LUNARIA_JOB"))}
        self.environment.update(TMPDIR=self.temporary, MARK=self.mark)

    def tearDown(self):
        for _ in range(50):
            left = [pid for pid in processes_with(self.mark) if pid != os.getpid()]
            if not left:
                break
            time.sleep(0.02)
        for pid in left:
            os.kill(pid, signal.SIGKILL)
        self.assertEqual(left, [], "processes left behind")

    def script(self, text):
        path = os.path.join(self.folder, "script.lua")
        with open(path, "w", encoding="utf-8") as file:
            file.write('local rank = tonumber(os.getenv "LUNARIA_RANK")\nlocal job = os.getenv "LUNARIA_JOB"\n' + text)
        return path

    def launch(self, *words, **options):
        return subprocess.run([LUNARIA, "launch", *words], env=self.environment, capture_output=True, text=True, timeout=SECONDS,
                              check=False, **options)

    def start(self, *words):
        process = subprocess.Popen([LUNARIA, "launch", *words], env=self.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                   text=True, start_new_session=True)
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        return process

    def logs(self):
        return sorted(os.listdir(self.temporary))

    def test_output_of_rank_0_is_shown_and_all_are_logged(self):
        logs = os.path.join(self.folder, "a", "b")
        done = self.launch("-n", "3", "--logs", logs, self.script("print('rank', rank, os.getenv 'LUNARIA_RANKS', ...)\n"
                                                                  "io.stderr:write('note ', rank, '\\n')"), "one", "two words")
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "rank\t0\t3\tone\ttwo words\n", "note 0\n"))
        for rank in range(3):
            with open(os.path.join(logs, f"rank-{rank}.log"), encoding="utf-8") as file:
                self.assertEqual(sorted(file.read().splitlines()), sorted([f"rank\t{rank}\t3\tone\ttwo words", f"note {rank}"]))
        self.assertEqual(self.logs(), [])

    def test_all_lines_after_their_ranks(self):
        done = self.launch("-n2", "--show=all", self.script("io.write('a\\nb')"))
        self.assertEqual(sorted(done.stdout.splitlines()), ["[0] a", "[0] b", "[1] a", "[1] b"])

    def test_floods_and_endless_lines_arrive(self):
        script = self.script("for i = 1, 200 do io.write(('x'):rep(100000)) if rank == 0 then io.write '\\n' end end")
        done = self.launch("-n", "2", "--logs", self.folder, script)
        self.assertEqual((done.returncode, len(done.stdout)), (0, 200 * 100001))
        self.assertEqual(os.path.getsize(os.path.join(self.folder, "rank-1.log")), 200 * 100000)

    def test_exit_code_and_words_of_the_first_failure(self):
        script = self.script("if rank == 1 then io.stderr:write 'no more data\\n' os.exit(7) end\nos.execute 'sleep 30'")
        begin = time.time()
        done = self.launch("-n", "3", "--grace", "0.2", script)
        self.assertLess(time.time() - begin, 25)  # not the 30 s that the others sleep
        self.assertEqual(done.returncode, 7)
        self.assertRegex(done.stderr, r"^lunaria launch: rank 1 \(pid \d+\) exited with 7 after \d+\.\d s, the first of 3 ranks to fail\n"
                                      r"  \| no more data\n  still at work and ended: ranks 0, 2\n  logs: .*/rank-0.log and so on\n$")
        self.assertEqual(len(self.logs()), 1)

    def test_killed_rank(self):
        done = self.launch("-n", "2", "--grace", "0.2", self.script("os.execute(rank == 1 and 'kill -9 $PPID' or 'sleep 30')"))
        self.assertEqual(done.returncode, 137)
        self.assertRegex(done.stderr, r"^lunaria launch: rank 1 \(pid \d+\) was killed by signal 9 \(Killed\)")

    def test_rank_that_survives_a_failure_may_tell_its_part(self):
        script = self.script("if rank == 1 then os.exit(3) end\nos.execute 'sleep 0.3' error 'rank 1 is gone'")
        done = self.launch("-n", "2", "--grace", "30", script)
        self.assertEqual(done.returncode, 3)
        self.assertRegex(done.stderr, r"  then rank 0 exited with 1: .*script.lua:4: rank 1 is gone\n")

    def test_signals_end_everything(self):
        script = self.script("os.execute 'setsid sleep 300 & setsid setsid sleep 300 & sleep 300 &'\n"
                             "print 'ready' io.stdout:flush() os.execute 'sleep 300'")
        for number, code in ((signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)):
            process = self.start("-n", "2", "--grace", "0.1", script)
            self.assertEqual(process.stdout.readline(), "ready\n")
            process.send_signal(number)
            _, errors = process.communicate(timeout=SECONDS)
            self.assertEqual(process.returncode, code)
            self.assertIn(f"ended by signal {int(number)}", errors)
            self.assertEqual([pid for pid in processes_with(self.mark) if pid != os.getpid()], [])
            self.assertEqual(self.logs(), [])

    def test_rank_that_ignores_signals(self):
        script = self.script("print 'ready' io.stdout:flush() os.execute [[trap '' INT TERM; while :; do sleep 0.1; done]]")
        process = self.start("-n", "2", "--grace", "30", script)
        self.assertEqual(process.stdout.readline(), "ready\n")
        time.sleep(0.2)
        process.send_signal(signal.SIGTERM)
        time.sleep(0.2)
        process.send_signal(signal.SIGTERM)  # again: at once
        process.communicate(timeout=25)  # not the 30 s of grace
        self.assertEqual(process.returncode, 143)

    def test_ranks_die_with_a_killed_launcher(self):
        process = self.start("-n", "2", self.script("print 'ready' io.stdout:flush() while true do end"))
        self.assertEqual(process.stdout.readline(), "ready\n")
        process.kill()
        process.wait()

    def test_stop_and_continue(self):
        process = self.start("-n", "1", self.script("print 'ready' io.stdout:flush() while true do end"))
        self.assertEqual(process.stdout.readline(), "ready\n")
        process.send_signal(signal.SIGTSTP)

        def states():
            found = []
            for pid in processes_with(self.mark):
                with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
                    found.append(file.read().rsplit(")", 1)[1].split()[0])
            return sorted(found)
        for _ in range(200):
            if states() == ["T", "T"]:
                break
            time.sleep(0.02)
        self.assertEqual(states(), ["T", "T"])
        process.send_signal(signal.SIGCONT)
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=SECONDS)
        self.assertEqual(process.returncode, 143)

    def test_reader_that_has_enough(self):
        process = self.start("-n", "2", self.script("while true do print 'more' end"))
        self.assertEqual(process.stdout.readline(), "more\n")
        process.stdout.close()
        self.assertEqual(process.wait(timeout=SECONDS), 128 + signal.SIGPIPE)

    def test_restarts(self):
        script = self.script("print('attempt', os.getenv 'LUNARIA_ATTEMPT', os.getenv 'LUNARIA_RANKS')\n"
                             "if os.getenv 'LUNARIA_ATTEMPT' == '0' and rank == 1 then os.execute 'kill -9 $PPID' end")
        done = self.launch("-n", "2:3", "--restarts", "2", "--grace", "30", script)
        self.assertEqual((done.returncode, done.stdout), (0, "attempt\t0\t3\nattempt\t1\t2\n"))
        self.assertIn("starts again with 2 ranks (restart 1 of 2)", done.stderr)
        self.assertEqual(self.logs(), [])
        done = self.launch("-n", "2", "--restarts", "1", "--grace", "30", self.script("print 'again' os.exit(5)"))
        self.assertEqual((done.returncode, done.stdout), (5, "again\nagain\n"))

    def test_shared_memory_is_removed(self):
        text = ("local function make(name) local file <close> = io.open('/dev/shm/lunaria-' .. job .. name, 'w') end\n"
                "make('-data') make('-ring-' .. rank) if rank == 0 then print(job) io.stdout:flush() end ")

        def left(job):
            return sorted(os.path.basename(path).split("-", 2)[2] for path in glob.glob(f"/dev/shm/lunaria-{job}-*"))
        done = self.launch("-n", "2", self.script(text))
        self.assertEqual(left(done.stdout.strip()), [])
        done = self.launch("-n", "1", self.script(text + "os.exit(2)"))
        job = done.stdout.strip()
        self.addCleanup(os.remove, f"/dev/shm/lunaria-{job}-ring-0")
        self.assertEqual(left(job), ["ring-0"])
        self.assertIn(f"lunaria ranks {job}", done.stderr)
        process = self.start("-n", "1", "--grace", "0.1", self.script(text + "while true do end"))
        job = process.stdout.readline().strip()
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=SECONDS)
        self.assertEqual(left(job), [])

    def test_full_disk_under_a_log_is_told(self):
        os.symlink("/dev/full", os.path.join(self.folder, "rank-0.log"))
        done = self.launch("-n", "2", "--logs", self.folder, self.script("print 'done'"))
        self.assertEqual((done.returncode, done.stdout), (1, "done\n"))
        self.assertIn("rank-0.log: No space left on device: not all of the output is there", done.stderr)

    def test_memory_that_is_used_up_is_an_error_of_its_rank(self):
        script = self.script("local ms = require 'lunaria' ms.communication.comm_func.barrier() print(job)\n"
                             "if rank == 1 then local all = {} while true do all[#all + 1] = ms.ones { 1000, 10000 } end end\n"
                             "ms.communication.comm_func.barrier()")
        # What a limit of the address space refuses, the program is told; the kernel's own killer is a killed rank.
        done = self.launch("-n", "2", script, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (5 << 28, 5 << 28)))
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertRegex(done.stderr, r"rank 0 waits for rank 1 in barrier #2, .*; but rank 1 failed: .*script.lua:4: .*memory")
        self.forget_job(done.stdout.strip())

    def forget_job(self, job):
        """Only records are left of a job that has failed."""
        left = [path for path in glob.glob("/dev/shm/lunaria-*") if job in path]
        for path in left:
            os.remove(path)
        self.assertTrue(all(f"{job}-ring-" in path for path in left), left)

    def test_full_shared_memory_is_told(self):
        script = self.script("require('lunaria').communication.comm_func.barrier()")
        words = [LUNARIA, "launch", "-n", "2", script]
        # A /dev/shm of its own, in which there is hardly any room.
        inner = "mount -t tmpfs -o size=64k none /dev/shm && \"$@\"; code=$?; ls /dev/shm; exit $code"
        if subprocess.run(["unshare", "-m", "mount", "-t", "tmpfs", "none", "/dev/shm"], capture_output=True, check=False).returncode:
            self.skipTest("no mount namespace")
        done = subprocess.run(["unshare", "-m", "sh", "-c", inner, "sh", *words], env=self.environment, capture_output=True, text=True,
                              timeout=SECONDS, check=False)
        self.assertEqual((done.returncode, done.stdout), (1, ""), done.stderr)
        self.assertRegex(done.stderr, r"No space left on device\n\s*hint: /dev/shm is full")

    def test_no_place_for_logs(self):
        done = self.launch("-n", "2", "--logs", "/dev/null/x", self.script(""))
        self.assertEqual(done.returncode, 1)
        self.assertIn("/dev/null/x: no folder for logs", done.stderr)

    def test_simulated_rank(self):
        done = self.launch("--simulate", "3/4096", self.script("print(rank, os.getenv 'LUNARIA_RANKS', os.getenv 'LUNARIA_PHANTOM')"))
        self.assertEqual((done.returncode, done.stdout), (0, "3\t4096\t1\n"))

    def test_machines(self):
        words = ("--nodes", "2", "--address", "127.0.0.1:29999", "-n", "2", "--show", "all")
        script = self.script("print(rank, os.getenv 'LUNARIA_RANKS', os.getenv 'LUNARIA_LOCAL_RANK', os.getenv 'LUNARIA_NODE',\n"
                             "os.getenv 'LUNARIA_ADDRESS', job)")
        done = self.launch(*words, "--node", "1", script)
        self.assertIn("LUNARIA_SECRET", done.stderr)
        self.environment["LUNARIA_SECRET"] = "x"
        done = self.launch(*words, "--node", "1", script)
        self.assertEqual(sorted(done.stdout.splitlines()), [f"[{rank}] {rank}\t4\t{rank - 2}\t1\t127.0.0.1:29999\t127.0.0.1-29999-0" for rank in (2, 3)])
        for wrong, message in ((("--node", "2"), "count from 0 to 1"), (("--address", "x"), "host:port"), (("-n", "1:2"), "is fixed")):
            self.assertIn(message, self.launch(*words, *wrong, script).stderr)

    def test_processors_are_shared_out(self):
        done = self.launch("-n", "16", self.script("print(os.getenv 'OMP_NUM_THREADS')"))
        self.assertEqual((done.returncode, done.stdout), (0, "1\n"))

    def test_words(self):
        for words, message in (((), "the script is missing"), (("-n", "0", "x"), "-n takes N or MIN:MAX"), (("-n", "x", "y"), "got 'x'"),
                               (("--simulate", "4/4", "x"), "ranks count from 0 to N - 1"), (("--log", "x"), "did you mean '--logs'?"),
                               (("-n",), "needs an argument"), (("-n", "3:2", "x"), "MIN:MAX"), (("-n", "2", "-"), "no standard input")):
            done = self.launch(*words)
            self.assertEqual(done.returncode, 1)
            self.assertIn(message, done.stderr)
        self.assertIn("usage: lunaria launch", self.launch("--help").stdout)
        self.assertEqual(self.launch("-n", "1", "--", "-e", "print(1 + 1)").stdout, "2\n")

    def test_scheduler_of_msrun(self):
        done = subprocess.run([LUNARIA, self.script("print 'not reached'")], env={**self.environment, "MS_ROLE": "MS_SCHED"},
                              capture_output=True, text=True, timeout=SECONDS, check=False)
        self.assertEqual(done.returncode, 0)
        self.assertNotIn("not reached", done.stdout)


if __name__ == "__main__":
    unittest.main()
