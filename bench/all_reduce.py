"""All-reduce of two processes from 4 B to 64 MB beside OpenMPI, which is told to give its processor away while it waits. They take
turns; a ratio is the median over the rounds of "OpenMPI's time / our time". Before that the time of a step that computes meanwhile.

usage: all_reduce.py LUNARIA [PROGRAM]     prints one JSON row per size; on an idle machine of two cores"""
import json
import os
import shutil
import statistics
import subprocess
import sys
from pathlib import Path

ROUNDS = 7
LARGE = 4 << 20  # bytes from which the bar is twice OpenMPI


def turn(*command):
    environment = dict(os.environ, OMPI_MCA_mpi_yield_when_idle="1", OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
    output = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True, timeout=300).stdout
    return {int(size): float(time) for size, time in (line.split() for line in output.splitlines())}


def main(lunaria, program=None):
    program = program or str(Path(lunaria).parent / "bench" / "all_reduce")
    ratio = statistics.median(float(subprocess.run([program, "overlap"], stdout=subprocess.PIPE, text=True, check=True).stdout)
                              for _ in range(ROUNDS))
    print(json.dumps({"workload": "all_reduce of 16 MB beside a computation as long", "value": ratio, "unit": "x", "limit": 1.15,
                      "bound": "at most", "pass": ratio <= 1.15, "note": "of the longer of both"}), flush=True)
    if not shutil.which("mpirun"):
        print("no mpirun (openmpi-bin): there is nothing to compare with", file=sys.stderr)
        return
    ours, theirs = [], []
    for _ in range(ROUNDS):
        ours.append(turn(program, "shared"))
        theirs.append(turn("mpirun", "-n", "2", "--oversubscribe", program, "mpi"))
    for size in ours[0]:
        ratio = statistics.median(b[size] / a[size] for a, b in zip(ours, theirs))
        bar = 2 if size >= LARGE else 1
        times = statistics.median(a[size] for a in ours), statistics.median(b[size] for b in theirs)
        print(json.dumps({"workload": f"all_reduce of {size} bytes: OpenMPI", "value": round(ratio, 3), "unit": "x", "limit": bar,
                          "bound": "at least", "pass": ratio >= bar, "note": f"Lunaria {times[0]:.2f} µs, OpenMPI {times[1]:.2f} µs"}),
              flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
