"""The real program in a pseudo-terminal."""
import os
import re
import sys
import tempfile
import time
import traceback

import pexpect

PROGRAM = os.path.abspath(sys.argv[1] if len(sys.argv) > 1 else "build/lunaria")
# --graph after the program: sessions start in graph mode, in which nothing may look otherwise.
IN_GRAPH_MODE = {"LUA_INIT": 'require("lunaria").set_context{ mode = 0, jit_level = "O1" }'} if "--graph" in sys.argv else {}
# The promise is 0.1 s; the limits tell its order of magnitude from that of the operators that are stopped. On the clock they are
# generous, since tests share a machine, and a system that has to clear or take back gigabytes takes as long as it does; what
# the process itself computes until it is back at the prompt, on all of its threads, depends on them less.
INTERRUPT_LIMIT = 2.0
INTERRUPT_WORK = 1.0 * min(os.cpu_count(), 4)
# Sanitizers make everything take longer.
SANITIZED = 5 if any(name in os.environ for name in ("ASAN_OPTIONS", "TSAN_OPTIONS")) else 0


class Terminal:
    """A session in a home folder of its own. Text read from it comes without escape sequences."""

    def __init__(self, *arguments, home=None, color=False, columns=100, env=None):
        self.home = home or tempfile.mkdtemp(prefix="lunaria-home-")
        environment = {k: v for k, v in os.environ.items() if not k.startswith(("XDG_", "LUA_", "NO_COLOR"))}
        environment.update(HOME=self.home, TERM="xterm-256color", LC_ALL="C.UTF-8",
                           **IN_GRAPH_MODE, **(env or {}))
        if not color:
            environment["NO_COLOR"] = "1"
        self.child = pexpect.spawn(PROGRAM, list(arguments), env=environment, encoding="utf-8", timeout=20,
                                   dimensions=(50, columns), echo=True)
        self.child.delaybeforesend = 0.02

    def send(self, text):
        self.child.send(text)

    def expect(self, text, timeout=20):
        """Waits for the text; gives what came before it and the text."""
        self.child.expect_exact(text, timeout=timeout)
        return plain(self.child.before + self.child.after)

    def prompt(self, timeout=20):
        """Waits for an empty prompt; gives what came before it."""
        self.child.expect(r"(?:^|\n|\r|h)(?:\x1b\[[0-9;?]*[a-zA-Z])*> (?:\x1b\[[0-9;?]*[a-zA-Z])*$", timeout=timeout)
        return plain(self.child.before)

    def run(self, cell, timeout=20):
        """Types a cell and Enter; gives what was printed, without the echo of the cell."""
        self.send(cell + "\r")
        text = self.prompt(timeout)
        return text.split("\n", cell.count("\n") + 1)[-1].strip("\n") if "\n" in text else ""

    def interrupt(self, limit=INTERRUPT_LIMIT):
        """Presses Ctrl-C; the prompt must be back within the limit. Gives what was printed."""
        time.sleep(0.02)
        start, worked = time.monotonic(), self.processor_time()
        self.send("\x03")
        text = self.prompt(limit + 20)
        took, work = time.monotonic() - start, self.processor_time() - worked
        crowd = max(1, os.getloadavg()[0] / os.cpu_count())
        assert took < limit * crowd, f"{took:.2f} s to stop"
        # Caches and memory that others use as well make the same work take longer.
        assert work < max(INTERRUPT_WORK, limit / 4) * min(crowd, 3) + SANITIZED, f"{work:.2f} s of computing to stop"
        return text

    def processor_time(self):
        """Of all threads of the process, without that of the system, in seconds."""
        with open(f"/proc/{self.child.pid}/stat", encoding="utf-8") as f:
            fields = f.read().rsplit(")", 1)[1].split()
        return int(fields[11]) / os.sysconf("SC_CLK_TCK")

    def leave(self):
        """Ctrl-D at an empty prompt; gives the exit code."""
        self.send("\x04")
        self.child.expect(pexpect.EOF)
        self.child.close()
        return self.child.exitstatus


def plain(text):
    text = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", text)
    return text.replace("\r\n", "\n").replace("\r", "")


def session(*arguments, **options):
    terminal = Terminal(*arguments, **options)
    terminal.prompt()
    return terminal


def same(actual, expected):
    assert actual == expected, f"{actual!r} is not {expected!r}"


def holds(text, part):
    assert part in text, f"{part!r} is not in {text!r}"


def main(tests):
    """Runs the functions named test_*; their names are sentences."""
    failed = 0
    for name, test in sorted(tests.items()):
        if not name.startswith("test_"):
            continue
        try:
            test()
            print(f"ok {name[5:].replace('_', ' ')}", flush=True)
        except Exception:  # pylint: disable=broad-except
            failed += 1
            print(f"FAILED {name[5:].replace('_', ' ')}\n{traceback.format_exc()}", flush=True)
    sys.exit(1 if failed else 0)
