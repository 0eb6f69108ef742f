"""lunaria federated demo: it ends by itself, the accuracy grows, nothing is left behind; the same with secure aggregation.

usage: demo_test.py LUNARIA"""
import os
import re
import subprocess
import sys
import tempfile


def run(*words):
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run([sys.argv[1], "federated", "demo", "--samples", "300", "--rounds", "3", *words], stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, timeout=240, env={**os.environ, "TMPDIR": folder})
        accuracies = [float(a) for a in re.findall(r"accuracy ([0-9.]+)", done.stdout)]
        if done.returncode != 0 or len(accuracies) != 4 or accuracies[-1] < accuracies[0] + 0.2 or "failed" in done.stdout:
            sys.exit(f"{words}: {done.stdout}")
        return accuracies


plain, secure = run("--clients", "5"), run("--clients", "3", "--secure")
if run("--clients", "5") != plain:
    sys.exit("a second run gives another model")
bad = subprocess.run([sys.argv[1], "federated", "demo", "--rounds", "none"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
if bad.returncode == 0 or "--rounds needs a positive whole number, got 'none'" not in bad.stdout:
    sys.exit(bad.stdout)
print("4 passed, 0 failed")
