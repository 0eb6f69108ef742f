"""The resident memory of a training that goes on for minutes: no sample after the first tenth may be further than 2 % from
their median.

usage: steady_memory.py LUNARIA [SECONDS]     prints a JSON row per mode; 60 seconds each when left out; exits with 1 when a
bar is missed"""
import json
import statistics
import subprocess
import sys

LIMIT = 0.02


def main(lunaria, seconds=60.0):
    missed = False
    runs = {mode: subprocess.Popen([lunaria, "bench/steady_memory.lua", str(seconds), mode], stdout=subprocess.PIPE, text=True)
            for mode in ("eager", "graph")}
    for mode, run in runs.items():
        samples = [float(line) for line in run.communicate()[0].splitlines()]
        if run.returncode != 0 or len(samples) < 20:
            raise SystemExit(f"{mode}: the program left with {run.returncode} after {len(samples)} samples")
        settled = samples[len(samples) // 10:]
        median = statistics.median(settled)
        value = max(max(settled) - median, median - min(settled)) / median
        missed = missed or value > LIMIT
        print(json.dumps({"workload": f"{seconds:g} s of training: resident memory, {mode}", "value": value, "unit": "x",
                          "limit": LIMIT, "pass": value <= LIMIT,
                          "note": f"{min(settled):.1f} to {max(settled):.1f} MB around {median:.1f} MB in {len(settled)} samples; "
                                  f"the first was {samples[0]:.1f} MB"}), flush=True)
    return missed


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], *map(float, sys.argv[2:])))
