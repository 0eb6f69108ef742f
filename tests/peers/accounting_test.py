#!/usr/bin/env python3
"""Histories of sampled Gaussian steps that are drawn anew, beside the stored ones of armour-vectors.json, with the epsilons that
dp-accounting gives for them.

usage: accounting_test.py LUNARIA [first seed]
Needs a Python with dp-accounting: .peers, or LUNARIA_PEERS. Without one the test is skipped (77).
"""
import os
import subprocess
import sys
import tempfile
from pathlib import Path

# Run by the environment's Python: histories of a seed as a file of tests/conformance/armour.lua.
MAKE = """
import json, sys
import absl.logging
import numpy
import dp_accounting as dp
from dp_accounting import pld, rdp
absl.logging.set_verbosity("error")
rng = numpy.random.default_rng(int(sys.argv[1]))
rows = []
for _ in range(12):
    history = [{"noise_multiplier": float(numpy.round(numpy.exp(rng.uniform(numpy.log(0.6), numpy.log(5))), 3)),
                "sample_rate": float(rng.choice([1.0, numpy.round(10 ** rng.uniform(-3.5, -0.5), 5)], p=[0.2, 0.8])),
                "steps": int(10 ** rng.uniform(0, 3.3))} for _ in range(rng.integers(1, 4))]
    for step in history:  # an epsilon of hundreds tells nothing of accountants
        if step["sample_rate"] == 1.0:
            step["steps"] = min(step["steps"], 20)
    delta = float(10.0 ** -rng.integers(4, 9))
    event = dp.ComposedDpEvent([dp.SelfComposedDpEvent(
        dp.PoissonSampledDpEvent(step["sample_rate"], dp.GaussianDpEvent(step["noise_multiplier"])), step["steps"]) for step in history])
    tight = pld.PLDAccountant(value_discretization_interval=1e-4).compose(event).get_epsilon(delta)
    loose = rdp.RdpAccountant().compose(event).get_epsilon(delta)
    rows.append({"history": history, "delta": delta, "epsilon_prv_lower": tight * (1 - 1e-3) - 2e-4, "epsilon_pld_dp_accounting": tight,
                 "epsilon_rdp_opacus": loose, "epsilon_rdp_dp_accounting": loose})
print(json.dumps({"accountants": {"rows": rows}}))
"""


def main():
    python = Path(os.environ.get("LUNARIA_PEERS", ".peers")) / "bin/python3"
    if not python.exists() or subprocess.run([python, "-c", "import dp_accounting"], stderr=subprocess.DEVNULL, check=False).returncode:
        print("skipped: there is no Python with dp-accounting in .peers, and LUNARIA_PEERS names none")
        return 77
    first = int(sys.argv[2]) if len(sys.argv) > 2 else 1
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(first, first + 2):
            rows = Path(folder) / f"{seed}.json"
            with open(rows, "w", encoding="utf-8") as file:
                subprocess.run([python, "-c", MAKE, str(seed)], stdout=file, check=True)
            run = subprocess.run([sys.argv[1], "tests/conformance/armour.lua", rows], capture_output=True, text=True, check=False)
            print(f"seed {seed}: {run.stdout.strip()} {run.stderr.strip()}")
            failed += run.returncode != 0
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
