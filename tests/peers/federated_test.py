#!/usr/bin/env python3
"""Trajectories of federated strategies and robust aggregations of sizes that are drawn anew, beside the stored ones of
armour-vectors.json, with what numpy gives for them.

usage: federated_test.py LUNARIA [first seed]
Needs a Python with numpy: .peers, or LUNARIA_PEERS. Without one the test is skipped (77).
"""
import os
import subprocess
import sys
import tempfile
from pathlib import Path


def main():
    python = Path(os.environ.get("LUNARIA_PEERS", ".peers")) / "bin/python3"
    if not python.exists() or subprocess.run([python, "-c", "import numpy"], stderr=subprocess.DEVNULL, check=False).returncode:
        print("skipped: there is no Python with numpy in .peers, and LUNARIA_PEERS names none")
        return 77
    first = int(sys.argv[2]) if len(sys.argv) > 2 else 1
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(first, first + 2):
            cases = Path(folder) / f"{seed}.json"
            subprocess.run([python, "tests/conformance/reference/federated.py", cases, str(seed)], check=True)
            for mode in ("eager", "graph"):
                command = [sys.argv[1], "tests/conformance/armour.lua", cases, "--mode", mode]
                run = subprocess.run(command, capture_output=True, text=True, check=False)
                print(f"seed {seed}, {mode}: {run.stdout.strip()} {run.stderr.strip()}")
                failed += run.returncode != 0
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
