"""Calls everything that a Lua program can call with hostile arguments (tests/attack/worker.lua), or has another worker make its
calls: files.lua gives readers mutated files, onnx_nodes.lua loads hostile models. Watches what becomes of the process: under a
limit of memory, no call may end it, none may run on for ten seconds after an interrupt, no message may be one of the C++
library, and nothing is written but into the folder of the process. A call that fails is printed as a program.

usage: api_test.py PROGRAM [--worker FILE] [--calls N] [--seed N] [--mode eager|graph] [--first N] [--jobs N] [--parts N] [--prompt]
       [--verbose]

A failure that depends on the calls before it is repeated with --first of its group: 1 + 1500 n."""
import argparse
import os
import re
import resource
import signal
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
sys.path.insert(0, str(FOLDER.parent / "check"))
from today import is_of_today
# Calls of one process: what one of them does to the state, the next ones see.
CHUNK = 1500
MEMORY = 3 << 30
# A call that takes longer is interrupted, and must end then: an order of magnitude more than what it takes on a machine that is
# not busy.
PATIENCE = 0.5
ANSWER = 10.0
# As long may it take to begin.
START = 200
# How a program ends whose own code is interrupted.
INTERRUPTED = 130
# A sanitizer's shadow takes more addresses than any limit, and its programs are slow.
SANITIZED = "ASAN_OPTIONS" in os.environ or "TSAN_OPTIONS" in os.environ


KEPT = {"PATH", "ASAN_OPTIONS", "TSAN_OPTIONS", "UBSAN_OPTIONS", "LSAN_OPTIONS", "LD_LIBRARY_PATH"}


class Program:
    def __init__(self, path, seed, mode, worker, patience):
        self.path, self.seed, self.mode, self.worker, self.patience = str(Path(path).resolve()), seed, mode, worker, patience

    def command(self, first, last, mode, progress="-"):
        return [self.path, str(FOLDER / self.worker), str(FOLDER), str(self.seed), str(first), str(last), mode, str(progress)]

    def text_of(self, number):
        done = subprocess.run(self.command(number, number, "show-chain" if self.mode == "chain" else "show"), capture_output=True, text=True, timeout=600, check=False)
        return done.stdout.strip() or done.stderr.strip()

    def start(self, first, last, folder):
        def limits():
            if not SANITIZED:
                resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            resource.setrlimit(resource.RLIMIT_FSIZE, (64 << 20, 64 << 20))
        environment = {name: text for name, text in os.environ.items() if name in KEPT}
        environment |= {"HOME": str(folder), "TMPDIR": str(folder), "XDG_CACHE_HOME": str(folder.parent / "cache"), "OMP_WAIT_POLICY": "passive",
                        "LUNARIA_NUM_THREADS": "1", "LANG": "C.UTF-8"}
        command = self.command(first, last, self.mode, folder.parent / "progress")
        with open(folder.parent / "out", "wb") as out, open(folder.parent / "err", "wb") as err:
            return subprocess.Popen(command, cwd=folder, stdin=subprocess.DEVNULL, stdout=out, stderr=err,
                                    preexec_fn=limits, env=environment)


def under_way(progress):
    try:
        text = progress.read_text().strip()
    except (OSError, UnicodeDecodeError):
        return None
    return int(text) if text.isdigit() else text or None


def watch(process, progress, patience):
    """The call at which the process ended, and why; None: it made all of them."""
    # `asked`: when the call under way was interrupted; `late`: when one was that had come to its end by then.
    last, since, asked, late = None, time.monotonic(), None, None
    while True:
        try:
            process.wait(0.02 if asked is None else 0.01)
        except subprocess.TimeoutExpired:
            pass
        now = under_way(progress)
        ended = process.returncode is not None
        if ended and now == "done":
            # Its end may have been slow, and the interrupt what ended it.
            done = process.returncode == 0 or asked is not None or late is not None
            return (None, "", 0) if done else ("end", f"ended with {process.returncode} after its last call", 0)
        if ended:
            if asked is not None and process.returncode >= 0:
                return last, "interrupted", time.monotonic() - asked
            if late is not None and process.returncode == INTERRUPTED and time.monotonic() - late < ANSWER:
                return now, "interrupted", time.monotonic() - late
            return (now if isinstance(now, int) else last), f"ended with {process.returncode}", 0
        if now != last:
            last, since, asked, late = now, time.monotonic(), None, asked or late
        elif asked is None and time.monotonic() - since > (patience if isinstance(last, int) else START):
            process.send_signal(signal.SIGINT)
            asked = time.monotonic()
        elif asked is not None and time.monotonic() - asked > ANSWER:
            process.kill()
            process.wait()
            return last, "no answer to an interrupt", ANSWER


def chunk(program, first, last):
    failures, slow = [], []
    with tempfile.TemporaryDirectory(prefix="lunaria-attack-") as name:
        folder = Path(name) / "work"
        folder.mkdir()
        (folder / "file").write_bytes(b"\x93NUMPY\x01\x00v\x00{'descr': '<f4'")
        subprocess.run(["mkfifo", str(folder / "fifo")], check=False)
        while first <= last:
            (folder.parent / "progress").write_text("")
            process = program.start(first, last, folder)
            number, reason, seconds = watch(process, folder.parent / "progress", program.patience)
            for line in (folder.parent / "out").read_text(errors="replace").splitlines():
                if found := re.match(r"MESSAGE (\d+) (.*)", line):
                    failures.append((int(found[1]), "a message that says nothing to a user: " + found[2]))
            if number is None and reason:
                failures.append((first, f"did not start: {reason}: {(folder.parent / 'err').read_text(errors='replace')[-500:]}"))
                break
            if number is None:
                break
            if reason == "interrupted":
                slow.append((number, seconds))
            else:
                number = number if isinstance(number, int) else last
                failures.append((number, reason + ": " + (folder.parent / "err").read_text(errors="replace")[-300:]))
            first = number + 1
        if outside := sorted({entry.name for entry in folder.parent.iterdir()} - {"work", "cache", "progress", "out", "err"}):
            failures.append((first, f"files outside of the folder: {outside}"))
    return failures, slow


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--calls", type=int, default=150000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=1)
    parser.add_argument("--mode", choices=["eager", "graph", "chain"], default="eager")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--parts", type=int, default=1, help="run one of so many parts of the calls, another each day")
    parser.add_argument("--worker", default="worker.lua", help="what makes the calls: a file beside this one")
    parser.add_argument("--patience", type=float, default=PATIENCE, help="seconds after which a call is interrupted")
    parser.add_argument("--prompt", action="store_true", help="a call that has to be interrupted is a failure")
    parser.add_argument("--verbose", action="store_true")
    args = parser.parse_args()
    if SANITIZED:
        args.calls //= 10
    program = Program(args.program, args.seed, args.mode, args.worker, args.patience)
    chunks = [(first, min(first + CHUNK, args.first + args.calls) - 1) for first in range(args.first, args.first + args.calls, CHUNK)]
    if not SANITIZED:
        chunks = [pair for number, pair in enumerate(chunks) if is_of_today(number, args.parts)]
    args.calls = sum(last - first + 1 for first, last in chunks)
    began = time.monotonic()
    failures, slow = [], []

    def one(pair):
        found = chunk(program, *pair)
        if args.verbose:
            for number, reason in found[0]:
                print(f"-- call {number}: {reason}\n{program.text_of(number)}", flush=True)
            for number, seconds in found[1]:
                print(f"-- slow {number} {seconds:.2f}\n{program.text_of(number)}", flush=True)
        return found

    with ThreadPoolExecutor(args.jobs) as pool:
        for bad, late in pool.map(one, chunks):
            failures += bad
            slow += late
    if args.prompt:
        failures += [(number, "took too long") for number, _ in slow]
    for number, reason in failures:
        print(f"FAIL call {number} of seed {args.seed}, {args.mode}: {reason}\n{program.text_of(number)}")
    print(f"{args.calls} calls in {time.monotonic() - began:.0f} s; {len(slow)} were interrupted, the slowest answer took "
          f"{max([s for _, s in slow], default=0):.2f} s")
    print(f"{args.calls - len(failures)} passed, {len(failures)} failed")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
