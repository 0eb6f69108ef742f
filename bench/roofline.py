"""How near compiled programs come to what the machine can do: the floor of their arithmetic and memory over the time taken.
More than all where a network stays in a cache, which is quicker than the memory of the floor.

Both are times of the same minute on the same machine, so that a limit holds on any: it is about three quarters of what a
machine with nothing else to do gives. A program below its limit gets two more runs, since whatever else runs meanwhile
makes it slower.

usage: roofline.py LUNARIA     prints one JSON row per program"""
import json
import subprocess
import sys

# The least parts of the roofline: of a training step, of inference.
LEAST = {"mlp": (0.6, 1.1), "lenet": (0.42, 0.55), "gpt": (0.65, 0.75), "resnet18": (0.65, 0.8), "lstm": (1.05, 1.5),
         "rnn": (0.95, 2)}
RUNS = 3


def measure(lunaria, name, mode):
    """The part of the roofline, and what it is made of in words."""
    output = subprocess.run([lunaria, "bench/roofline.lua", name, mode], check=True, capture_output=True, text=True)
    floor, taken, arithmetic, flops, memory = map(float, output.stdout.split())
    return floor / taken, (f"{floor * 1e3:.2f} of {taken * 1e3:.2f} ms, {arithmetic:.0%} of the floor is arithmetic "
                           f"({flops / 1e9:.0f} GFLOP/s, {memory / 1e9:.1f} GB/s)")


def main(lunaria):
    for name, limits in LEAST.items():
        for mode, least in zip(("train", "infer"), limits):
            part, note = measure(lunaria, name, mode)
            for _ in range(RUNS - 1):
                if part < least:
                    part, note = max((part, note), measure(lunaria, name, mode))
            print(json.dumps({"workload": f"part of the roofline: {mode} {name}", "value": part, "unit": "x", "limit": least,
                              "bound": "at least", "pass": part >= least, "note": note}), flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
