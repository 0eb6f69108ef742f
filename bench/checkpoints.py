"""Checkpoints of 500 MB: writing them against dd with fsync, reading them against safetensors' own reader, in rounds that take
turns.

usage: checkpoints.py LUNARIA     prints one JSON row per case"""
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

ROUNDS = 5
READ = """
import sys, time, torch
from safetensors.torch import load_file
for line in sys.stdin:
    name, path = line.split()
    start = time.perf_counter_ns()
    tensors = load_file(path)
    if name == "mapsum":
        sum(float(x.sum()) for x in tensors.values())
    print(time.perf_counter_ns() - start, flush=True)
    del tensors
"""


class Program:
    def __init__(self, command):
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ask(self, command):
        self.process.stdin.write(command + "\n")
        self.process.stdin.flush()
        return int(self.process.stdout.readline()) / 1e9


def dd(path):
    start = time.perf_counter()
    subprocess.run(["dd", "if=/dev/zero", f"of={path}", "bs=8M", "count=500000000", "iflag=count_bytes", "conv=fsync"], check=True,
                   capture_output=True)
    return time.perf_counter() - start


def row(workload, ours, theirs, bar, note=""):
    ratios = [b / a for a, b in zip(ours, theirs)]
    value = statistics.median(ratios)
    print(json.dumps({"workload": workload, "value": 1 / value, "unit": "x", "limit": round(1 / bar, 3), "pass": value >= bar,
                      "note": f"{value:.2f} of the other's speed ({min(ratios):.2f}-{max(ratios):.2f}), ours "
                              f"{statistics.median(ours) * 1e3:.0f} ms, other {statistics.median(theirs) * 1e3:.0f} ms{note}"}),
          flush=True)


def main(lunaria):
    with tempfile.TemporaryDirectory() as folder:
        plain, ckpt, ours = f"{folder}/dd", f"{folder}/ours.ckpt", f"{folder}/ours.safetensors"
        program, reader = Program([lunaria, "bench/checkpoints.lua"]), Program([sys.executable, "-c", READ])
        times = {name: [] for name in ("dd", "save", "ckpt", "begin", "later", "load", "map", "mapsum", "peer", "peersum")}
        for _ in range(ROUNDS):
            # Each writes a new file.
            for path in (plain, ckpt, ours):
                if os.path.exists(path):
                    os.remove(path)
            times["dd"].append(dd(plain))
            times["save"].append(program.ask(f"save {ours}"))
            times["ckpt"].append(program.ask(f"ckpt {ckpt}"))
            os.remove(ours)
            times["begin"].append(program.ask(f"begin {ours}"))
            times["later"].append(times["begin"][-1] + program.ask("finish"))
        for _ in range(ROUNDS):
            for name in ("load", "map", "mapsum"):
                times[name].append(program.ask(f"{name} {ours}"))
            times["peer"].append(reader.ask(f"map {ours}"))
            times["peersum"].append(reader.ask(f"mapsum {ours}"))
        row("save safetensors, as dd", times["save"], times["dd"], 0.9)
        row("save ckpt, as dd", times["ckpt"], times["dd"], 0.9)
        row("save by a thread, as dd", times["later"], times["dd"], 0.9,
            f"; the call returned after {statistics.median(times['begin']) * 1e3:.2f} ms")
        row("map safetensors, as its own reader", times["map"], times["peer"], 1.0)
        row("map and sum up, as its own reader", times["mapsum"], times["peersum"], 1.0,
            f"; read without mapping {statistics.median(times['load']) * 1e3:.0f} ms")


if __name__ == "__main__":
    main(sys.argv[1])
