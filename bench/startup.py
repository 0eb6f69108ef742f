"""From the start of the process to the first printed tensor: at most 25 ms and 25 MB.

usage: startup.py LUNARIA     prints one JSON row per figure"""
import json
import statistics
import subprocess
import sys
import time

LIMIT_MS, LIMIT_MB, RUNS = 25, 25, 40


def milliseconds(command):
    start = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return (time.perf_counter() - start) * 1e3


def main(lunaria):
    ours, lua, torch = [lunaria, "bench/startup.lua"], ["lua5.4", "-e", "print(1 + 2)"], [
        sys.executable, "-c", "import torch; print(torch.tensor([1., 2, 3]) + 1)"]
    times = {"ours": [], "lua5.4": []}
    for _ in range(3):
        milliseconds(ours), milliseconds(lua)
    for _ in range(RUNS):
        times["ours"].append(milliseconds(ours))
        times["lua5.4"].append(milliseconds(lua))
    torch_ms = statistics.median(milliseconds(torch) for _ in range(3))
    # Measured by the process itself: a child's figure from wait4 begins with the size of its parent.
    peak = subprocess.run(ours, check=True, capture_output=True, text=True).stderr
    mb = int(peak.split()[-1]) / 1024
    ms = statistics.median(times["ours"])
    note = f"lua5.4 {statistics.median(times['lua5.4']):.1f} ms, import torch {torch_ms:.0f} ms"
    for row in ({"workload": "start to first tensor", "value": ms, "unit": "ms", "limit": LIMIT_MS, "note": note},
                {"workload": "peak memory of that", "value": mb, "unit": "MB", "limit": LIMIT_MB, "note": "VmHWM"}):
        print(json.dumps(row | {"pass": row["value"] <= row["limit"]}), flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
