"""ONNX both ways against others: what PyTorch exports gives onnxruntime's results here, what we export gives ours there.

usage: onnx_peers_test.py LUNARIA [--all]      --all: also what torch.export gives, beside traces

Needs the Python environment .peers (LUNARIA_PEERS names another) with torch, onnx, onnxruntime; skips without it."""
import os
import subprocess
import sys
import tempfile
from pathlib import Path

PYTHON = Path(os.environ.get("LUNARIA_PEERS", ".peers")) / "bin/python3"
SKIP = 77

# Run by the environment's Python: every FOLDER/NAME.onnx on NAME.in.safetensors.
COMPARE = """
import sys
from pathlib import Path
import numpy, onnx, onnxruntime
from safetensors.numpy import load_file
bad = 0
for path in sorted(Path(sys.argv[1]).glob("*.onnx")):
    onnx.checker.check_model(onnx.load(path), full_check=True)
    quantised = path.stem.startswith("quantised")
    options = onnxruntime.SessionOptions()
    if quantised:  # its own kernels round elsewhere
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(path, options)
    results = session.run(None, load_file(path.with_suffix(".in.safetensors")))
    wanted = load_file(path.with_suffix(".out.safetensors"))
    for i, result in enumerate(results):
        expected = wanted[f"o{i}"]
        worst = numpy.abs(result.astype(float) - expected).max() / max(1, numpy.abs(expected.astype(float)).max())
        print(f"{path.stem} {i}: {worst:.1e}")
        # A sum that is rounded otherwise may fall to the neighbouring step; a wrong step or zero shows in the whole.
        noise = ((result - expected) ** 2).sum() / max(1e-30, (expected.astype(float) ** 2).sum()) if quantised else 0
        bad += result.shape != expected.shape or result.dtype != expected.dtype or not (worst <= 1e-5 or quantised) or noise > 1e-5
sys.exit(int(bad > 0))
"""


def main(program, exports):
    needed = "import torch, onnx, onnxruntime, safetensors"
    if not PYTHON.exists() or subprocess.run([PYTHON, "-c", needed], capture_output=True, check=False).returncode:
        print("skipped: no Python environment with torch, onnx, onnxruntime and safetensors")
        return SKIP
    with tempfile.TemporaryDirectory() as folder:
        for options in exports:
            target = Path(folder) / ("graph" if options else "trace")
            made = subprocess.run([PYTHON, "tests/conformance/reference/onnx_networks.py", target, *options],
                                  capture_output=True, text=True, check=False)
            if made.returncode:
                print(f"FAIL onnx_networks.py {options}: {made.stderr[-2000:]}")
                return 1
        code = subprocess.run([program, "tests/lua/support/onnx_peers.lua", folder], check=False).returncode
        return code or subprocess.run([PYTHON, "-c", COMPARE, folder], check=False).returncode


sys.exit(main(Path(sys.argv[1]).resolve(), [[], ["--dynamo"]] if "--all" in sys.argv else [[]]))
