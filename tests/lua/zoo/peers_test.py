"""Larger networks than the stored ones, with new random weights of transformers and torchvision: the zoo gives the same.

usage: peers_test.py LUNARIA

Needs the Python environment .peers (LUNARIA_PEERS names another) with torch, transformers, torchvision; skips without it."""
import os
import subprocess
import sys
import tempfile
from pathlib import Path

PYTHON = Path(os.environ.get("LUNARIA_PEERS", ".peers")) / "bin/python3"
SKIP = 77


def main(program):
    if not PYTHON.exists() or subprocess.run([PYTHON, "-c", "import torch, torchvision, transformers, safetensors"],
                                             capture_output=True, check=False).returncode:
        print("skipped: no Python environment with torch, transformers, torchvision and safetensors")
        return SKIP
    with tempfile.TemporaryDirectory() as folder:
        made = subprocess.run([PYTHON, "tests/lua/zoo/make_weights.py", folder, "--large"], capture_output=True, text=True, check=False)
        if made.returncode:
            print(f"FAIL make_weights.py: {made.stderr[-2000:]}")
            return 1
        return subprocess.run([program, "tests/lua/zoo/weights_test.lua", folder], check=False).returncode


sys.exit(main(Path(sys.argv[1]).resolve()))
