"""The highest tensor memory of a compiled training step, beyond parameters, state and inputs, against the eager step's.

usage: planned_memory.py LUNARIA     prints one JSON row per network"""
import json
import subprocess
import sys

LIMIT = 0.8


def peak(lunaria, name, mode):
    output = subprocess.run([lunaria, "bench/planned_memory.lua", name, mode], check=True, capture_output=True, text=True)
    return int(output.stdout)


def main(lunaria):
    for name in ("gpt", "resnet18"):
        eager, planned = peak(lunaria, name, "eager"), peak(lunaria, name, "graph")
        value = planned / eager
        print(json.dumps({"workload": f"planned memory of a training step: {name}", "value": value, "unit": "x", "limit": LIMIT,
                          "pass": value <= LIMIT, "note": f"planned {planned / 1e6:.1f} MB, eager {eager / 1e6:.1f} MB"}),
              flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
