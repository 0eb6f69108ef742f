"""Loops whose number of turns differs from call to call, compiled, against eager calls and against one number of turns.

usage: loops.py LUNARIA     prints one JSON row per figure"""
import json
import subprocess
import sys

ROWS = {
    "share": ("300 numbers of turns, calls that run compiled", 0.9, "at least"),
    "first": ("300 numbers of turns, first pass against eager calls", 1.1, "at most"),
    "later": ("300 numbers of turns, later passes against eager calls", 0.5, "at most"),
    "lengths": ("training on lengths 20 to 100 against one length, per step", 1.3, "at most"),
}


def main(lunaria):
    output = subprocess.run([lunaria, "bench/loops.lua"], check=True, capture_output=True, text=True).stdout
    found = {name: float(figure) for name, figure in map(str.split, output.splitlines())}
    for name, (workload, limit, bound) in ROWS.items():
        value = found[name]
        note = f"while the lengths are new {found['new_lengths']:.1f}" if name == "lengths" else ""
        print(json.dumps({"workload": workload, "value": value, "unit": "x", "limit": limit, "bound": bound, "note": note,
                          "pass": value >= limit if bound == "at least" else value <= limit}), flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
