"""The insight server beside TensorBoard: a million scalars, 12,345 tags, 1,000 runs; memory, idle processor time.

usage: insight.py LUNARIA     prints one JSON row per figure. TensorBoard runs where its Python has it (./dev bench-peers)."""
import http.client
import json
import os
import socket
import struct
import subprocess
import sys
import tempfile
import time


def table():
    rows = []
    for value in range(256):
        for _ in range(8):
            value = (value >> 1) ^ (0x82F63B78 if value & 1 else 0)
        rows.append(value)
    return rows


TABLE = table()


def crc(data):
    value = 0xFFFFFFFF
    for byte in data:
        value = TABLE[(value ^ byte) & 255] ^ (value >> 8)
    value ^= 0xFFFFFFFF
    return (((value >> 15) | (value << 17)) + 0xA282EAD8) & 0xFFFFFFFF


def varint(number):
    out = b""
    while number > 127:
        out += bytes([number & 127 | 128])
        number >>= 7
    return out + bytes([number])


def record(content):
    length = struct.pack("<Q", len(content))
    return length + struct.pack("<I", crc(length)) + content + struct.pack("<I", crc(content))


def write_scalars(path, points, tags):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.write(record(b"\x09" + struct.pack("<d", 1.7e9) + b"\x1a\x0dbrain.Event:2"))
        for step in range(points // tags):
            for tag in range(tags):
                name = b"train/tag%05d" % tag
                value = b"\x0a" + varint(len(name)) + name + b"\x15" + struct.pack("<f", 1 / (step + 1) + tag)
                summary = b"\x0a" + varint(len(value)) + value
                file.write(record(b"\x09" + struct.pack("<d", 1.7e9 + step) + b"\x10" + varint(step) + b"\x2a"
                                  + varint(len(summary)) + summary))


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Server:
    """A server and the time since its start."""

    def __init__(self, command, port):
        self.begun, self.port = time.perf_counter(), port
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def get(self, path):
        while True:
            try:
                connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=300)
                connection.request("GET", path)
                return connection.getresponse().read()
            except ConnectionRefusedError:
                time.sleep(0.002)

    def json(self, path):
        return json.loads(self.get(path))

    def since_start(self):
        return time.perf_counter() - self.begun

    def peak_mb(self):
        with open(f"/proc/{self.process.pid}/status", encoding="utf-8") as file:
            return next(int(line.split()[1]) / 1024 for line in file if line.startswith("VmHWM"))

    def cpu(self):
        with open(f"/proc/{self.process.pid}/stat", encoding="utf-8") as file:
            fields = file.read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()


def row(workload, value, unit, limit=None, note=""):
    print(json.dumps({"workload": workload, "value": value, "unit": unit, "limit": limit, "note": note,
                      "pass": limit is None or value <= limit}), flush=True)


def ours(lunaria, base):
    port = free_port()
    return Server([lunaria, "insight", "start", "--summary-base-dir", base, "--port", str(port)], port)


def first_curve(server):
    run = server.json("/v1/lunaria/runs")["runs"][0]["id"]
    tags = server.json(f"/v1/lunaria/runs/{run}/tags")["scalars"]
    return f"/v1/lunaria/runs/{run}/scalars/{tags[0]['id']}", tags


def million(lunaria, folder):
    base = folder + "/million"
    write_scalars(base + "/run/events.out.tfevents.1.host", 1_000_000, 10)
    times = []
    for _ in range(3):
        with ours(lunaria, base) as server:
            server.get("/")
            first_byte = server.since_start()
            path, tags = first_curve(server)
            curve = server.json(path)
            times.append(server.since_start())
            points = sum(tag["count"] for tag in tags)
            begun = time.perf_counter()
            server.json(path + "?from=40000&to=41000")
            window = time.perf_counter() - begun
            memory = server.peak_mb()
    row("start to first byte", first_byte * 1e3, "ms", 50)
    row("1,000,000 scalars: start to first curve", min(times), "s", 0.5, f"{points} points, {curve['count']} in the curve")
    row("1,000,000 scalars: a window with all its points", window * 1e3, "ms")
    row("1,000,000 scalars: peak memory", memory, "MB", 60)
    with ours(lunaria, base) as server:
        first_curve(server)
        time.sleep(2)
        begun = server.cpu()
        time.sleep(10)
        row("idle server", (server.cpu() - begun) / 10 * 100, "% of a core", 0.5)
    return base


def many_tags(lunaria, folder):
    base = folder + "/tags"
    write_scalars(base + "/run/events.out.tfevents.1.host", 12_345 * 20, 12_345)
    with ours(lunaria, base) as server:
        path, _ = first_curve(server)
        begun = time.perf_counter()
        tags = server.json(path.split("/scalars/")[0] + "/tags")["scalars"]
        row("12,345 tags: list", time.perf_counter() - begun, "s", 0.2, f"{len(tags)} tags")
        row("12,345 tags: peak memory", server.peak_mb(), "MB")


def many_runs(lunaria, folder):
    base = folder + "/runs"
    for i in range(1000):
        write_scalars(f"{base}/run{i:04}/events.out.tfevents.1.host", 200, 10)
    with ours(lunaria, base) as server:
        runs = server.json("/v1/lunaria/runs")["runs"]
        row("1,000 runs: start to table", server.since_start(), "s", 1, f"{len(runs)} runs")
        begun = time.perf_counter()
        server.json("/v1/lunaria/runs")
        row("1,000 runs: table", time.perf_counter() - begun, "s", 1)
        row("1,000 runs: peak memory", server.peak_mb(), "MB")
        time.sleep(3)
        begun = server.cpu()
        time.sleep(10)
        row("1,000 runs: idle server", (server.cpu() - begun) / 10 * 100, "% of a core", 0.5)


def tensorboard(base):
    program = os.path.join(os.path.dirname(sys.executable), "tensorboard")
    if not os.path.exists(program):
        return
    port = free_port()
    with Server([program, "--logdir", base, "--port", str(port), "--host", "127.0.0.1"], port) as server:
        path = "/data/plugin/scalars/scalars?run=run&tag=train%2Ftag00000"
        server.get("/")
        first_byte = server.since_start()
        points = []
        while len(points) < 1000 and server.since_start() < 120:
            try:
                points = server.json(path)
            except ValueError:
                time.sleep(0.05)
        row("TensorBoard: start to first byte", first_byte * 1e3, "ms")
        row("TensorBoard: 1,000,000 scalars: start to first curve", server.since_start(), "s", None, f"{len(points)} points of 100,000")


def main(lunaria):
    with tempfile.TemporaryDirectory() as folder:
        base = million(lunaria, folder)
        many_tags(lunaria, folder)
        many_runs(lunaria, folder)
        tensorboard(base)


if __name__ == "__main__":
    main(sys.argv[1])
