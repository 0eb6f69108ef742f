"""Flower's side of bench/federated/rounds.py: federated averaging of a perceptron on Fashion-MNIST, its clients simulated with Ray.

    python3 flower.py CLIENTS SAMPLES BATCH EPOCHS ROUNDS RATE SEED

Each client has so many pictures; the processes of the clients read them once. Prints the seconds of each round, of which the first
ones start processes, those of the processors, and the accuracy of the last model.
"""
import functools
import gzip
import json
import logging
import os
import struct
import sys
import time

os.environ.update(RAY_DEDUP_LOGS="0", FLWR_TELEMETRY_ENABLED="0", RAY_DISABLE_DOCKER_CPU_WARNING="1", RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO="0")

import numpy
import torch
from flwr.app import ArrayRecord, Context, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from flwr.serverapp import ServerApp
from flwr.serverapp.strategy import FedAvg
from flwr.simulation import run_simulation

FOLDER = "/usr/share/datasets/fashion-mnist"
# The processes of the clients import this file, and have the settings by their environment.
if len(sys.argv) == 8:
    os.environ["LUNARIA_FLOWER"] = " ".join(sys.argv[1:])
SETTINGS = os.environ["LUNARIA_FLOWER"].split()
CLIENTS, SAMPLES, BATCH, EPOCHS, ROUNDS = map(int, SETTINGS[:5])
RATE, SEED = float(SETTINGS[5]), int(SETTINGS[6])


def idx(name):
    with gzip.open(f"{FOLDER}/{name}-ubyte.gz") as file:
        rank = file.read(4)[3]
        shape = struct.unpack(">" + "I" * rank, file.read(4 * rank))
        return numpy.frombuffer(file.read(), numpy.uint8).reshape(shape)


@functools.cache
def pictures(part):
    torch.set_num_threads(1)
    x = torch.from_numpy(idx(f"{part}-images-idx3").reshape(-1, 784).astype("float32") / 255)
    return x, torch.from_numpy(idx(f"{part}-labels-idx1").astype("int64"))


def processor_seconds():
    """Of all processes that this one has started, by whatever way, and of itself: they have its settings in their environment."""
    ticks = 0
    for folder in os.scandir("/proc"):
        if not folder.name.isdigit():
            continue
        try:
            with open(f"/proc/{folder.name}/environ", "rb") as file:
                if b"LUNARIA_FLOWER=" not in file.read() and int(folder.name) != os.getpid():
                    continue
            with open(f"/proc/{folder.name}/stat") as file:
                ticks += sum(map(int, file.read().rsplit(")", 1)[1].split()[11:13]))
        except OSError:
            pass
    return ticks / os.sysconf("SC_CLK_TCK")


def make_net():
    n = torch.nn
    return n.Sequential(n.Linear(784, 200), n.ReLU(), n.Linear(200, 200), n.ReLU(), n.Linear(200, 10))


client = ClientApp()


@client.train()
def train(message: Message, context: Context) -> Message:
    x, y = pictures("train")
    first = int(context.node_config["partition-id"]) * SAMPLES
    x, y = x[first : first + SAMPLES], y[first : first + SAMPLES]
    net = make_net()
    net.load_state_dict(message.content["arrays"].to_torch_state_dict())
    optimizer, loss_of = torch.optim.SGD(net.parameters(), RATE), torch.nn.CrossEntropyLoss()
    for _ in range(EPOCHS):
        order = torch.randperm(SAMPLES)
        for i in range(0, SAMPLES, BATCH):
            rows = order[i : i + BATCH]
            optimizer.zero_grad()
            loss = loss_of(net(x[rows]), y[rows])
            loss.backward()
            optimizer.step()
    content = RecordDict({"arrays": ArrayRecord(net.state_dict()),
                          "metrics": MetricRecord({"loss": loss.item(), "num-examples": SAMPLES})})
    return Message(content=content, reply_to=message)


server = ServerApp()


@server.main()
def main(grid, context: Context) -> None:
    torch.manual_seed(SEED)
    at, processor = [], []

    def evaluate(_, arrays):
        at.append(time.perf_counter())
        processor.append(processor_seconds())
        if len(at) <= ROUNDS:
            return MetricRecord({})
        net = make_net()
        net.load_state_dict(arrays.to_torch_state_dict())
        x, y = pictures("t10k")
        accuracy = (net(x).argmax(1) == y).float().mean().item()
        differences = {name: [b - a for a, b in zip(list, list[1:])] for name, list in (("seconds", at), ("processor", processor))}
        print(json.dumps({**differences, "accuracy": accuracy}), flush=True)
        return MetricRecord({"accuracy": accuracy})

    FedAvg(fraction_train=1.0, fraction_evaluate=0.0, min_available_nodes=CLIENTS).start(
        grid=grid, initial_arrays=ArrayRecord(make_net().state_dict()), num_rounds=ROUNDS, evaluate_fn=evaluate)


def run():
    logging.disable(logging.INFO)
    run_simulation(server_app=server, client_app=client, num_supernodes=CLIENTS,
                   backend_config={"client_resources": {"num_cpus": 1, "num_gpus": 0.0}, "init_args": {"num_cpus": 2, "log_to_driver": False}})


if __name__ == "__main__":
    # What is imported is sent by its name.
    os.environ["PYTHONPATH"] = os.path.dirname(os.path.abspath(__file__))
    import flower

    flower.run()
