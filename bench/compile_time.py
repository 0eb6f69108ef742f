"""What it takes until a program of bench/compiled.lua runs compiled: its first calls, less what they take later. Without any
kernel on disk it is at most a third of the same for jax.jit, and at most 100 ms once the kernels are there.

usage: compile_time.py LUNARIA     prints one JSON row per figure"""
import json
import os
import statistics
import subprocess
import sys
import tempfile

PROGRAMS = ["train_mlp", "train_lenet", "train_gpt", "train_lstm", "train_resnet18", "train_rnn"]
# Compilation happens in the first of them; the others tell what a call takes.
CALLS, FIRST = 11, 5


def seconds(command, workload, **variables):
    """The time beyond that of later calls, in a process of its own."""
    environment = dict(os.environ, OMP_NUM_THREADS="1", CUDA_VISIBLE_DEVICES="", **variables)
    result = subprocess.run(command, input=f"threads 1\nfirst {workload} {CALLS}\n", capture_output=True, text=True, env=environment)
    if result.returncode:
        raise SystemExit(f"{command[-1]} failed: {result.stderr[-300:]}")
    ns = json.loads(result.stdout.splitlines()[1])["ns"]
    return max(0.0, sum(ns[:FIRST]) - FIRST * statistics.median(ns[FIRST:])) / 1e9


def row(what, value, unit, limit, note):
    print(json.dumps({"workload": what, "value": value, "unit": unit, "limit": limit, "pass": value <= limit, "note": note}), flush=True)


def main(lunaria):
    ours, peers = [lunaria, "bench/compiled.lua"], [sys.executable, "bench/compiled.py"]
    for name in PROGRAMS:
        with tempfile.TemporaryDirectory() as cache:
            cold = seconds(ours, name, XDG_CACHE_HOME=cache)
            warm = statistics.median(seconds(ours, name, XDG_CACHE_HOME=cache) for _ in range(5))
        if name == "train_rnn":
            row(f"time to compile: {name}", cold, "s", 1.0, "")
        else:
            jax = seconds(peers, f"{name}/jax")
            row(f"time to compile against jax.jit: {name}", cold / jax, "x", 0.33, f"ours {cold:.2f} s, jax {jax:.2f} s")
        row(f"time to compile with kernels on disk: {name}", warm * 1e3, "ms", 100, "")


if __name__ == "__main__":
    main(sys.argv[1])
