import os
import subprocess
import sys
from pathlib import Path

import harness

FOLDER = Path("build/bench/imported")
NAMES = ["resnet18", "mobilenet_v2", "gpt2", "bert"]


def make_models():
    if not all((FOLDER / name / "outputs.safetensors").exists() for name in NAMES):
        subprocess.run([sys.executable, "tests/conformance/reference/onnx_networks.py", FOLDER, "--size", "full"], check=True,
                       stdout=subprocess.DEVNULL)


def setup(name):
    import onnxruntime
    from safetensors.numpy import load_file

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = int(os.environ["OMP_NUM_THREADS"])
    session = onnxruntime.InferenceSession(FOLDER / name / "model.onnx", options)
    return harness.calls("run(None, x)", run=session.run, x=load_file(FOLDER / name / "inputs.safetensors"))


make_models()
harness.serve({name: {"onnxruntime": lambda n=name: setup(n)} for name in NAMES})
