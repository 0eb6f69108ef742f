"""The notebook kernel against ipykernel, in turns: from the start of the process to the first reply, the round trip of
1+1 from request to idle, and memory at rest.

usage: kernel.py LUNARIA     prints one JSON row per figure; needs the environment of ./dev jupyter"""
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "kernel"))
import jupyter  # first: it changes to the environment that has the rest

import json
import os
import statistics
import subprocess
import tempfile
import time
import uuid
from types import SimpleNamespace

import zmq
from jupyter_client.connect import write_connection_file

STARTS, ROUNDS, TRIPS = 5, 10, 20
KERNELS = {"ours": [jupyter.PROGRAM + "-kernel", "-f"], "ipykernel": [sys.executable, "-m", "ipykernel_launcher", "-f"]}


class Running:
    """A kernel started by hand, with a client that does not wait between attempts to connect."""

    def __init__(self, name):
        path = os.path.join(tempfile.mkdtemp(), "connection.json")
        write_connection_file(path, key=uuid.uuid4().hex.encode())
        self.start = time.perf_counter()
        self.process = subprocess.Popen(KERNELS[name] + [path], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                        stderr=subprocess.DEVNULL)
        self.client = jupyter.RawClient(SimpleNamespace(manager=SimpleNamespace(connection_file=path)),
                                        options={zmq.RECONNECT_IVL: 1})
        request = self.client.send("kernel_info_request", {})
        assert self.client.reply_to(request), name
        self.first_reply = time.perf_counter() - self.start
        while not self.is_subscribed():
            pass

    def is_subscribed(self):
        request = self.client.send("kernel_info_request", {})
        assert self.client.reply_to(request)
        return self.client.reply_to(request, "iopub", 0.2) is not None

    def round_trip(self):
        start = time.perf_counter()
        request = self.client.send("execute_request", {"code": "1+1", "silent": False, "store_history": True,
                                                       "user_expressions": {}, "allow_stdin": False})
        while True:
            message = self.client.reply_to(request, "iopub")
            if message["content"].get("execution_state") == "idle":
                break
        took = time.perf_counter() - start
        self.client.reply_to(request)
        return took

    def stop(self):
        self.client.close()
        self.process.kill()
        self.process.wait()


def row(workload, value, unit, limit, note):
    print(json.dumps({"workload": workload, "value": value, "unit": unit, "limit": limit, "pass": value <= limit, "note": note}),
          flush=True)


def main():
    starts = {name: [] for name in KERNELS}
    for _ in range(STARTS):
        for name in KERNELS:
            kernel = Running(name)
            starts[name].append(kernel.first_reply)
            kernel.stop()
    ours, theirs = (statistics.median(starts[name]) * 1e3 for name in KERNELS)
    row("kernel: start to first reply", ours, "ms", 80, f"ipykernel {theirs:.0f} ms")
    row("kernel: start, as a part of ipykernel's", ours / theirs, "x", 1 / 6, "same run")

    kernels = {name: Running(name) for name in KERNELS}
    resting = {name: jupyter.memory_kb(kernel.process.pid) / 1024 for name, kernel in kernels.items()}
    trips = {name: [] for name in KERNELS}
    for _ in range(ROUNDS):
        for name, kernel in kernels.items():
            trips[name] += [kernel.round_trip() for _ in range(TRIPS)][2:]
    ours, theirs = (statistics.median(trips[name]) * 1e3 for name in KERNELS)
    row("kernel: 1+1 from request to idle, as a part of ipykernel's", ours / theirs, "x", 1 / 3,
        f"{ours:.2f} ms, ipykernel {theirs:.2f} ms")
    row("kernel: memory at rest", resting["ours"], "MB", 40, f"ipykernel {resting['ipykernel']:.0f} MB")
    for kernel in kernels.values():
        kernel.stop()


if __name__ == "__main__":
    main()
