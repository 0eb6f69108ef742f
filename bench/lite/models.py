"""Light models beside onnxruntime, one thread, batch by batch in turn: the least time of a run, and what a start takes.

usage: models.py LUNARIA [ROUNDS]     from the root of the repository; needs onnxruntime"""
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import onnxruntime

LUNARIA, ROUNDS = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 5


def session(path):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    start = time.perf_counter()
    made = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    return made, (time.perf_counter() - start) * 1e3


def least(made, count):
    inputs = {}
    for one in made.get_inputs():
        whole = "int" in one.type
        x = np.random.randint(0, 1000, one.shape) if whole else np.random.randn(*one.shape)
        inputs[one.name] = x.astype({"tensor(int64)": np.int64, "tensor(int32)": np.int32}.get(one.type, np.float32))
    best = float("inf")
    for _ in range(count):
        start = time.perf_counter()
        made.run(None, inputs)
        best = min(best, time.perf_counter() - start)
    return best * 1e3


def light(path, count):
    text = subprocess.run([LUNARIA, "lite", "benchmark", str(path), "--numThreads=1", "--cpuBindMode=0", f"--loopCount={count}"],
                          check=True, capture_output=True, text=True).stdout
    built, best = re.search(r"built in ([\d.]+) ms.* min ([\d.]+) ms", text).groups()
    return float(best), float(built)


with tempfile.TemporaryDirectory() as folder:
    subprocess.run([LUNARIA, "bench/lite/models.lua", folder], check=True)
    print(f"{'network':<16} {'light ms':>10} {'onnxruntime ms':>15} {'ratio':>6}   start: light, onnxruntime ms")
    for file in sorted(Path(folder).glob("*.lite")):
        made, start = session(file.with_suffix(".onnx"))
        count = max(3, min(300, int(200 / least(made, 2))))
        own, peer, built = float("inf"), float("inf"), float("inf")
        for _ in range(ROUNDS):
            own, built = map(min, zip((own, built), light(file, count)))
            peer = min(peer, least(made, count))
        print(f"{file.stem:<16} {own:10.4f} {peer:15.4f} {peer / own:6.2f}   {built:.2f}, {start:.2f}")
