"""lunaria serve under load: requests of many clients at once over kept connections, in clients of their own processes.

usage: serve.py LUNARIA [--requests N] [--clients N] [--batch N] [--json FILE]

A network of 64 x 128 x 10 is asked by JSON; every answer is compared. Prints how many came, how many a second, the times of
the middle, of 99 in 100 and of the slowest, and the processor time that the server took for each."""
import argparse
import http.client
import json
import multiprocessing
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

MAKE = """
local ms = require "lunaria"
ms.set_seed(1)
local net = ms.nn.SequentialCell(ms.nn.Dense(64, 128), ms.nn.ReLU(), ms.nn.Dense(128, 10))
ms.export(net, ms.ones { 1, 64 }, { file_name = arg[1] .. "/net", file_format = "ONNX" })
"""
BODY = json.dumps({"inputs": [[[i / 64 for i in range(64)]]]})


def client(port, count, start, results):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
    times, answers, lost = [], set(), 0
    start.wait()
    for _ in range(count):
        begin = time.monotonic()
        try:
            connection.request("POST", "/predict", BODY, {"Content-Type": "application/json"})
            answer = connection.getresponse()
            text = answer.read()
            lost += answer.status != 200
            answers.add(text)
        except (OSError, http.client.HTTPException):
            lost += 1
            connection.close()
        times.append(time.monotonic() - begin)
    results.put((times, answers, lost))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--requests", type=int, default=10000)
    parser.add_argument("--clients", type=int, default=32)
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--json")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        os.environ["XDG_CACHE_HOME"] = folder
        script = Path(folder) / "make.lua"
        script.write_text(MAKE)
        subprocess.run([options.program, script, folder], check=True)
        server = subprocess.Popen([options.program, "serve", f"{folder}/net.onnx", "--port", "0", "--batch", str(options.batch)],
                                  stdout=subprocess.PIPE, text=True)
        port = int(server.stdout.readline().split()[0].split(":")[2].strip("/"))
        start, results = multiprocessing.Event(), multiprocessing.Queue()
        each = options.requests // options.clients
        extra = options.requests - each * options.clients
        clients = [multiprocessing.Process(target=client, args=(port, each + (i < extra), start, results)) for i in range(options.clients)]
        for one in clients:
            one.start()
        time.sleep(1)
        begin = time.monotonic()
        start.set()
        rows = [results.get() for _ in clients]
        seconds = time.monotonic() - begin
        for one in clients:
            one.join()
        server.send_signal(signal.SIGTERM)
        _, status, used = os.wait4(server.pid, 0)
        code = os.waitstatus_to_exitcode(status)
    times = sorted(t for row in rows for t in row[0])
    answers = set().union(*(row[1] for row in rows))
    lost = sum(row[2] for row in rows)
    found = {"requests": len(times), "lost": lost, "different answers": len(answers), "per second": round(len(times) / seconds, 1),
             "median ms": round(1e3 * times[len(times) // 2], 2), "p99 ms": round(1e3 * times[len(times) * 99 // 100], 2),
             "slowest ms": round(1e3 * times[-1], 2), "server's processor ms each": round(1e3 * (used.ru_utime + used.ru_stime) / len(times), 3),
             "end": code}
    print(found)
    if options.json:
        Path(options.json).write_text(json.dumps(found) + "\n")
    return lost > 0 or len(answers) != 1 or code != 0


if __name__ == "__main__":
    sys.exit(main())
