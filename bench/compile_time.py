"""What it takes until a program of bench/compiled.lua runs compiled: its first calls, less what they take later. Without any
kernel on disk it is at most a third of the same for jax.jit (of 1,000 statements that all differ as much), and at most
100 ms once the kernels are there. And the first gradient of 3,200 statements.

usage: compile_time.py LUNARIA [TEXT]     prints one JSON row per figure; TEXT: of programs with this in their names"""
import contextlib
import json
import mmap
import os
import statistics
import subprocess
import sys
import tempfile

import machine

PROGRAMS = ["train_mlp", "train_lenet", "train_gpt", "train_lstm", "train_resnet18", "train_rnn", "statements"]
# Compilation happens in the first of them; the others tell what a call takes.
CALLS, FIRST = 11, 5
# Of times below a tenth of a second, turns that do not count since something else ran, before the machine is taken as it is.
PATIENCE = 8
# Bytes, more than any of the programs takes.
TOUCHED = 512 << 20


def touch_memory():
    """Has the system hold free pages that are really there. A virtual machine gives pages that lie idle back to its host, and to
    get one again takes 20 times as long as to clear it: some 5 ms for 2 MB, or nothing, as chance has it."""
    with mmap.mmap(-1, TOUCHED, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) as memory:
        with contextlib.suppress(OSError):  # a system without large pages
            memory.madvise(mmap.MADV_HUGEPAGE)
        memory.write(bytes(TOUCHED))


def turn(command, workload, **variables):
    """The time beyond that of later calls, in a process of its own, and whether nothing else ran meanwhile."""
    environment = dict(os.environ, OMP_NUM_THREADS="1", CUDA_VISIBLE_DEVICES="", **variables)
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment) as process:

        def ask(question):
            process.stdin.write(question + "\n")
            process.stdin.flush()
            return json.loads(process.stdout.readline() or '{"error": "it ended"}')

        ask("threads 1")
        touch_memory()
        watch = machine.Watch(process.pid)
        answer = ask(f"first {workload} {CALLS}")
        undisturbed = watch.is_undisturbed()
        process.stdin.close()
    if "error" in answer:
        raise SystemExit(f"{command[-1]} failed: {answer['error']}")
    ns = answer["ns"]
    return max(0.0, sum(ns[:FIRST]) - FIRST * statistics.median(ns[FIRST:])) / 1e9, undisturbed


def seconds(command, workload, **variables):
    for _ in range(PATIENCE):
        result, undisturbed = turn(command, workload, **variables)
        if undisturbed:
            break
    return result


def row(what, value, unit, limit, note):
    print(json.dumps({"workload": what, "value": value, "unit": unit, "limit": limit, "pass": value <= limit, "note": note}), flush=True)


def main(lunaria, only=""):
    ours, peers = [lunaria, "bench/compiled.lua"], [sys.executable, "bench/compiled.py"]
    for name in PROGRAMS:
        if only not in name:
            continue
        with tempfile.TemporaryDirectory() as cache:
            cold, _ = turn(ours, name, XDG_CACHE_HOME=cache)
            warm = statistics.median(seconds(ours, name, XDG_CACHE_HOME=cache) for _ in range(5))
        if name == "train_rnn":
            row(f"time to compile: {name}", cold, "s", 1.0, "")
        # Of the RNN it is the loop that is written out, as ours is: the same program.
        jax, _ = turn(peers, f"{name}/jax")
        row(f"time to compile against jax.jit: {name}", cold / jax, "x", 1.0 if name == "statements" else 0.33,
            f"ours {cold:.2f} s, jax {jax:.2f} s")
        row(f"time to compile with kernels on disk: {name}", warm * 1e3, "ms", 100, "")
    if only in "statements":
        first = seconds([lunaria, "bench/autodiff.lua"], "statements")
        row("first gradient of 3,200 statements", first, "s", 0.3, "")


if __name__ == "__main__":
    main(*sys.argv[1:])
