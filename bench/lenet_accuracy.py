"""LeNet-5 on Fashion-MNIST by Model.train on two cores: at least 90 % of the test pictures right after at most 60 seconds of
training, and in bfloat16 (O2) as many as in float32, within half a point.

usage: lenet_accuracy.py LUNARIA [SEEDS]     prints JSON rows; two minutes for each seed, one when left out"""
import json
import os
import statistics
import subprocess
import sys

FOLDER = "/usr/share/datasets/fashion-mnist"
WRONG, SECONDS, DIFFERENCE = 10.0, 60.0, 0.5


def row(workload, value, limit, unit, note):
    print(json.dumps({"workload": workload, "value": round(value, 2), "unit": unit, "limit": limit, "pass": value <= limit,
                      "note": note}), flush=True)


def main(lunaria, seeds=1):
    if not os.path.isdir(FOLDER):
        raise SystemExit(f"{FOLDER} is not there: Debian's package is dataset-fashion-mnist")
    right = {}
    for precision in ("float32", "bfloat16"):
        runs = [tuple(map(float, subprocess.run([lunaria, "bench/lenet_accuracy.lua", FOLDER, precision, str(seed)], check=True,
                                                stdout=subprocess.PIPE, text=True).stdout.split()))
                for seed in range(1, seeds + 1)]
        right[precision] = statistics.mean(accuracy for accuracy, _ in runs)
        figures = ", ".join(f"{accuracy:.2f} % in {seconds:.1f} s" for accuracy, seconds in runs)
        row(f"LeNet-5 on Fashion-MNIST: wrong, {precision}", 100 - right[precision], WRONG, "%", figures)
        row(f"LeNet-5 on Fashion-MNIST: training, {precision}", statistics.median(seconds for _, seconds in runs), SECONDS, "s", figures)
    row("LeNet-5 on Fashion-MNIST: bfloat16 beside float32", abs(right["float32"] - right["bfloat16"]), DIFFERENCE, "points",
        f"{right['float32']:.2f} % in float32, {right['bfloat16']:.2f} % in bfloat16")


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:]))
