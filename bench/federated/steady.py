"""Whether a server's memory stays level: so many iterations of one client, whose model is small, and the server's resident memory after
every tenth of them. Exits with 1 where it has grown by more than 5 % since the first tenth.

usage: steady.py LUNARIA [ITERATIONS]     (10,000 by default; ten minutes; TMPDIR=/dev/shm leaves out the disk)"""
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests/federated"))
import fl_client as fl  # noqa: E402

CONFIG = """fl_name: steady
fl_iteration_num: {iterations}
server_mode: FEDERATED_LEARNING
enable_ssl: false
round: {{start_fl_job_threshold: 1, start_fl_job_time_window: 60000, update_model_ratio: 1.0, update_model_time_window: 60000,
  global_iteration_time_window: 600000, poll: 1}}
summary: {{metrics_file: {folder}/metrics.json, failure_event_file: {folder}/failures.json, summary_dir: {folder}/summary}}
server: {{checkpoint_dir: {folder}/checkpoints}}
strategy: FedAdam
"""


def resident(process):
    for line in Path(f"/proc/{process.pid}/status").read_text().splitlines():
        if line.startswith("VmRSS"):
            return int(line.split()[1])
    raise AssertionError("the server has ended")


def main():
    iterations = int(sys.argv[2]) if len(sys.argv) > 2 else 10000
    with tempfile.TemporaryDirectory() as folder:
        config, model = Path(folder, "job.yaml"), Path(folder, "model.lua")
        config.write_text(CONFIG.format(iterations=iterations, folder=folder))
        model.write_text("return require('lunaria').federated.FeatureMap { w = require('lunaria').zeros { 1000 } }")
        server = subprocess.Popen([sys.argv[1], "federated", "server", "--config", str(config), "--address", "127.0.0.1:0", "--model",
                                   str(model)], stdout=subprocess.PIPE, text=True)
        port = int(server.stdout.readline().split()[0].split(":")[2].strip("/"))
        client = fl.Client("client", port, "steady")
        content = fl.update([fl.feature("w", [0.5] * 1000)], 1, [("loss", 0.5)])
        began, marks = time.monotonic(), []
        for iteration in range(1, iterations + 1):
            for endpoint, sent in (("startFLJob", fl.integer(1, 1)), ("updateModel", content), ("getModel", b"")):
                reply = client.until(endpoint, sent, iteration)
                if reply.code != 200:
                    raise AssertionError(f"{endpoint}: {reply.code} {reply.reason}")
            if iteration % max(1, iterations // 10) == 0:
                marks.append(resident(server))
                print(f"{iteration} iterations, {time.monotonic() - began:.0f} s, {marks[-1]} kB", flush=True)
        server.kill()
        growth = marks[-1] / marks[0] - 1
        print(f"grown by {growth:.1%} since the first tenth")
        return growth > 0.05


if __name__ == "__main__":
    sys.exit(main())
