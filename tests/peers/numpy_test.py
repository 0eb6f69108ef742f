#!/usr/bin/env python3
"""Calls of ms.numpy and ms.scipy that are drawn anew, beside the stored ones of tests/lua/numpy and tests/lua/scipy: 15,000 and
1,600, with what numpy and scipy give for them.

usage: numpy_test.py LUNARIA [first seed]
Needs a Python with numpy and scipy: .peers, or LUNARIA_PEERS. Without one the test is skipped (77).
"""
import os
import subprocess
import sys
import tempfile
from pathlib import Path

def main():
    python = Path(os.environ.get("LUNARIA_PEERS", ".peers")) / "bin/python3"
    if not python.exists() or subprocess.run([python, "-c", "import numpy, scipy"], stderr=subprocess.DEVNULL, check=False).returncode:
        print("skipped: there is no Python with numpy and scipy in .peers, and LUNARIA_PEERS names none")
        return 77
    first = int(sys.argv[2]) if len(sys.argv) > 2 else 100
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        for name, seeds in (("numpy", 3), ("scipy", 2)):
            for seed in range(first, first + seeds):
                calls = Path(folder) / f"{name}{seed}.txt"
                with open(calls, "w", encoding="utf-8") as file:
                    subprocess.run([python, f"tests/data/{name}/make.py", str(seed)], stdout=file, check=True)
                run = subprocess.run([sys.argv[1], f"tests/lua/{name}/calls_test.lua", calls], capture_output=True, text=True, check=False)
                print(f"{name}, seed {seed}: {run.stdout.strip()}")
                failed += run.returncode != 0
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
