"""How near compiled programs come to what the machine can do: the floor of their arithmetic and memory over the time taken.
More than all where a network stays in a cache, which is quicker than the memory of the floor.

usage: roofline.py LUNARIA     prints one JSON row per program"""
import json
import subprocess
import sys


def main(lunaria):
    for name in ("mlp", "lenet", "gpt", "resnet18", "lstm", "rnn"):
        for mode in ("train", "infer"):
            output = subprocess.run([lunaria, "bench/roofline.lua", name, mode], check=True, capture_output=True, text=True)
            floor, taken, arithmetic, flops, memory = map(float, output.stdout.split())
            note = (f"{floor * 1e3:.2f} of {taken * 1e3:.2f} ms, {arithmetic:.0%} of the floor is arithmetic "
                    f"({flops / 1e9:.0f} GFLOP/s, {memory / 1e9:.1f} GB/s)")
            print(json.dumps({"workload": f"part of the roofline: {mode} {name}", "value": floor / taken, "unit": "x",
                              "limit": 0, "pass": floor > 0, "note": note}), flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
