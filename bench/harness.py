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


# With one thread batches are measured in processor time, which others on the machine do not stretch.
clock = time.perf_counter_ns


def batch(run, n):
    start = clock()
    run(n)
    return clock() - start


class Current:
    """The workload in hand: only its inputs are alive, once for each peer that has been asked, as some take long to compile."""

    def __init__(self):
        self.name, self.peers = None, {}

    def prepare(self, name, peer, setup):
        """A function that makes calls, and how many of them make a batch."""
        if self.name != name:
            self.name, self.peers = name, {}
        if peer not in self.peers:
            run, n = setup(), 1
            # The first call of all makes what later ones find ready; taken for an ordinary one, it would stand for a batch.
            batch(run, 1)
            while (ns := batch(run, n)) < BATCH_NS:
                n *= 10 if ns < BATCH_NS / 20 else 2
            self.peers[peer] = run, n
        return self.peers[peer]


def serve(workloads):
    """workloads: {workload: {peer: setup}}, where setup() makes the inputs and returns a function that makes n calls."""
    global clock
    current = Current()
    for line in sys.stdin:
        words = line.split()
        if words[0] == "threads":
            import torch

            torch.set_num_threads(int(words[1]))
            torch.set_grad_enabled(False)
            clock = time.process_time_ns if words[1] == "1" else time.perf_counter_ns
            answer = {"ok": True}
        elif words[0] == "list":
            answer = [{"workload": name, "peers": sorted(peers)} for name, peers in workloads.items()]
        elif words[0] == "first":
            name, peer = words[1].split("/")
            run, clock = workloads[name][peer](), time.perf_counter_ns
            answer = {"workload": name, "ns": [batch(run, 1) for _ in range(int(words[2]))]}
        else:
            name, peer = words[1].split("/")
            try:
                run, n = current.prepare(name, peer, workloads[name][peer])
                answer = {"workload": name, "ns": [batch(run, n) / n for _ in range(int(words[2]))]}
            except Exception as error:  # a peer that cannot do it is reported, and the others go on
                answer = {"error": f"{type(error).__name__}: {error}"[:200]}
        print(json.dumps(answer), flush=True)
