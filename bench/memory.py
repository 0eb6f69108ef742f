"""Loops that make garbage run in bounded memory at an even cost.

usage: memory.py LUNARIA     prints one JSON row per figure"""
import json
import statistics
import subprocess
import sys


def run(lunaria, *arguments):
    """What bench/memory.lua prints: a list of values for each name."""
    output = subprocess.run([lunaria, "bench/memory.lua", *map(str, arguments)], check=True, capture_output=True, text=True)
    values = {}
    for line in output.stdout.splitlines():
        name, value = line.split()
        values.setdefault(name, []).append(float(value))
    return values


def report(workload, value, unit, limit, note=""):
    row = {"workload": workload, "value": value, "unit": unit, "limit": limit, "pass": value <= limit, "note": note}
    print(json.dumps(row), flush=True)


def main(lunaria):
    big = run(lunaria, "temporaries", 1_000_000)
    report("1,000,000 temporaries of 1 MB: peak", big["peak_mb"][0], "MB", 100, f"{big['us_per_call'][0]:.0f} us each")
    alone = run(lunaria, "small", 20_000_000, 0)
    beside = run(lunaria, "small", 20_000_000, 1_000_000)
    for name, values in (("alone", alone), ("beside 1,000,000 tables", beside)):
        median = statistics.median(values["ns"])
        report(f"20 million small operations {name}: growth", values["growth_mb"][0], "MB", 10, f"{median:.0f} ns each")
        report(f"20 million small operations {name}: worst block", max(values["ns"]) / median, "x", 1.5, "of the median block")
    ratio = statistics.median(beside["ns"]) / statistics.median(alone["ns"])
    report("small operation beside 1,000,000 tables", ratio, "x", 1.5, "of the cost alone")


if __name__ == "__main__":
    main(sys.argv[1])
