"""The peers' side of a bench: the same protocol as bench/harness.lua, where a workload is asked for as WORKLOAD/PEER."""
import itertools
import json
import sys
import time

BATCH_NS = 20e6


def calls(expression, **names):
    """A function that evaluates the expression n times and does nothing else, in the manner of timeit."""
    source = f"def run(n):\n    for _ in repeat(None, n):\n        {expression}\n"
    scope = {"repeat": itertools.repeat, **names}
    # Inputs are read as locals, the fastest way that Python has.
    source = source.replace("def run(n):", "def run(n, " + ", ".join(f"{k}={k}" for k in names) + "):")
    exec(source, scope)
    return scope["run"]


def batch(run, n):
    start = time.perf_counter_ns()
    run(n)
    return time.perf_counter_ns() - start


class Current:
    """The workload in hand: only its inputs are alive."""

    def __init__(self):
        self.name, self.run, self.n = None, None, 1

    def prepare(self, name, setup):
        if self.name == name:
            return
        self.run = None
        self.name, self.run, self.n = name, setup(), 1
        while True:
            ns = batch(self.run, self.n)
            if ns >= BATCH_NS:
                return
            self.n *= 10 if ns < BATCH_NS / 20 else 2


def serve(workloads):
    """workloads: {workload: {peer: setup}}, where setup() makes the inputs and returns a function that makes n calls."""
    current = Current()
    for line in sys.stdin:
        words = line.split()
        if words[0] == "threads":
            import torch

            torch.set_num_threads(int(words[1]))
            torch.set_grad_enabled(False)
            answer = {"ok": True}
        elif words[0] == "list":
            answer = [{"workload": name, "peers": sorted(peers)} for name, peers in workloads.items()]
        else:
            name, peer = words[1].split("/")
            try:
                current.prepare(words[1], workloads[name][peer])
                answer = {"workload": name, "ns": [batch(current.run, current.n) / current.n for _ in range(int(words[2]))]}
            except Exception as error:  # a peer that cannot do it is reported, and the others go on
                answer = {"error": f"{type(error).__name__}: {error}"[:200]}
        print(json.dumps(answer), flush=True)
