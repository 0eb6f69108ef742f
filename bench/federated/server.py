"""A federated server under load, on this machine: an iteration of 1,000 clients with LeNet's 266,084 parameters, and 10,000 clients that ask
for startFLJob within 20 s. Exits with 1 where an upload is lost, the iteration takes more than 60 s, or the 99th of a hundred answers comes
after 50 ms.

usage: server.py LUNARIA CLIENTS     CLIENTS: build/bench/federated_clients (cmake -DLUNARIA_BENCH=ON)"""
import json
import subprocess
import sys
import tempfile
from pathlib import Path

CONFIG = """fl_name: bench
fl_iteration_num: 1
server_mode: FEDERATED_LEARNING
enable_ssl: false
round: {{start_fl_job_threshold: {clients}, start_fl_job_time_window: 600000, update_model_ratio: 1.0, update_model_time_window: 600000,
  global_iteration_time_window: 6000000, poll: 100}}
summary: {{metrics_file: {folder}/metrics.json, failure_event_file: {folder}/failures.json}}
server: {{checkpoint_dir: {folder}/checkpoints}}
client: {{connection_num: 20000}}
"""


def served(program, clients, parameters, command, number):
    """What the clients' program says, and the server's largest memory in MB."""
    with tempfile.TemporaryDirectory() as folder:
        config, model = Path(folder, "job.yaml"), Path(folder, "model.lua")
        config.write_text(CONFIG.format(clients=clients, folder=folder))
        model.write_text(f"return require('lunaria').federated.FeatureMap {{ w = require('lunaria').zeros {{ {parameters} }} }}")
        server = subprocess.Popen([program, "federated", "server", "--config", str(config), "--address", "127.0.0.1:0", "--model",
                                   str(model), "--linger", "600"], stdout=subprocess.PIPE, text=True)
        try:
            port = server.stdout.readline().split()[0].split(":")[2].strip("/")
            said = subprocess.run([sys.argv[2], command, port, str(clients), str(number)], capture_output=True, text=True).stdout
            status = Path(f"/proc/{server.pid}/status").read_text()
        finally:
            server.kill()
            server.communicate()
        return json.loads(said), int(status.split("VmHWM:")[1].split()[0]) // 1000


def main():
    round_of, most = served(sys.argv[1], 1000, 266084, "round", 266084)
    print(f"1,000 clients, 266,084 parameters: {round_of['seconds']} s (start {round_of['start_seconds']}, updates "
          f"{round_of['update_seconds']}, model {round_of['model_seconds']}), {round_of['uploads_lost']} uploads lost, {most} MB")
    starts, memory = served(sys.argv[1], 10000, 1000, "start", 20)
    print(f"10,000 clients, startFLJob: {starts['p50']} ms (median), {starts['p99']} ms (99 %), {starts['max']} ms, "
          f"{starts['failed']} failed, {memory} MB")
    lost = round_of["uploads_lost"] + round_of["not_started"] + round_of["without_model"] + starts["failed"]
    return lost > 0 or round_of["seconds"] > 60 or starts["p99"] > 50


if __name__ == "__main__":
    sys.exit(main())
