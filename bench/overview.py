"""Lunaria beside PyTorch and MindSpore, each in a process of its own on one thread, in turns: the
least time of many short batches, which what else the machine does leaves alone for the most part.

usage: overview.py LUNARIA [FOLDER]    prints a table of size, start and steps; FOLDER: what ./dev package made, build/packages/lunaria-VERSION"""
import importlib.metadata
import os
import re
import subprocess
import sys
import time
from pathlib import Path

NETWORKS = {"mlp": "a step of a perceptron, 784-512-256-10, 64 rows, Adam", "lenet": "a step of LeNet-5, 32 pictures, momentum"}
ROUNDS, STEPS = 60, 5
THREADS = {f"{name}_NUM_THREADS": "1" for name in ("OMP", "OPENBLAS", "MKL", "LUNARIA")}


def torch_steps(name, mode):
    import torch
    from training import CASES
    import networks

    torch.set_num_threads(1)
    torch.manual_seed(1)
    make, make_optimizer, data = CASES[f"train_{name}"]
    net, (x, y) = make().train(), data()
    optimizer = make_optimizer(net.parameters(), True)
    loss = torch.compile(networks.loss) if mode == "graph" else networks.loss

    def step():
        optimizer.zero_grad(set_to_none=True)
        loss(net, x, y).backward()
        optimizer.step()
    return step


def mindspore_steps(name, mode):
    os.environ.setdefault("GLOG_v", "3")
    import mindspore
    import numpy as np
    from mindspore import nn

    mindspore.set_context(mode=mindspore.GRAPH_MODE if mode == "graph" else mindspore.PYNATIVE_MODE)
    mindspore.set_device("CPU")
    mindspore.set_seed(1)

    def conv(inputs, outputs):
        return nn.Conv2d(inputs, outputs, 5, pad_mode="valid", has_bias=True)
    if name == "mlp":
        net = nn.SequentialCell(nn.Dense(784, 512), nn.ReLU(), nn.Dense(512, 256), nn.ReLU(), nn.Dense(256, 10))
        optimizer, shape = nn.Adam(net.trainable_params(), 1e-6), (64, 784)
    else:
        net = nn.SequentialCell(conv(1, 6), nn.ReLU(), nn.MaxPool2d(2, 2), conv(6, 16), nn.ReLU(), nn.MaxPool2d(2, 2), nn.Flatten(),
                                nn.Dense(400, 120), nn.ReLU(), nn.Dense(120, 84), nn.ReLU(), nn.Dense(84, 10))
        optimizer, shape = nn.Momentum(net.trainable_params(), 1e-5, 0.9), (32, 1, 32, 32)
    loss = nn.CrossEntropyLoss()
    x = mindspore.Tensor(np.random.randn(*shape).astype(np.float32))
    y = mindspore.Tensor(np.random.randint(0, 10, shape[:1]).astype(np.int32))
    if mode == "graph":
        train = nn.TrainOneStepCell(nn.WithLossCell(net, loss), optimizer)
        train.set_train()
        return lambda: train(x, y).asnumpy()
    gradient = mindspore.value_and_grad(lambda x, y: loss(net(x), y), None, optimizer.parameters)

    def step():
        value, grads = gradient(x, y)
        optimizer(grads)
        value.asnumpy()  # its operators run when a value is asked for
    return step


def serve(framework, name, mode):
    step = {"torch": torch_steps, "mindspore": mindspore_steps}[framework](name, mode)
    for _ in range(20):
        step()
    print("ready", flush=True)
    for line in sys.stdin:
        start = time.perf_counter()
        for _ in range(int(line)):
            step()
        print((time.perf_counter() - start) / int(line), flush=True)


def command_of(framework, lunaria, *words):
    return [lunaria, "bench/overview.lua", *words] if framework == "lunaria" else [sys.executable, __file__, "--serve", framework, *words]


def step_times(lunaria, name, mode):
    """Microseconds for a step: the least of many rounds, in which the frameworks take turns."""
    children = {}
    for framework in ("lunaria", "torch", "mindspore"):
        child = subprocess.Popen(command_of(framework, lunaria, name, mode), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                 stderr=subprocess.DEVNULL, text=True, env={**os.environ, **THREADS})
        while (line := child.stdout.readline()) != "ready\n":
            if not line:
                raise SystemExit(f"{framework} does not train {name} in {mode} mode")
        children[framework] = child
    best = dict.fromkeys(children, float("inf"))
    for _ in range(ROUNDS):
        for framework, child in children.items():
            print(STEPS, file=child.stdin, flush=True)
            best[framework] = min(best[framework], float(child.stdout.readline()) * 1e6)
    for child in children.values():
        child.stdin.close()
        child.wait()
    return best


def start(command, environment):
    """Milliseconds of processor time, and megabytes, from the start of a process to its first tensor."""
    milliseconds = []
    for _ in range(7):
        child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment)
        printed = child.stdout.read()
        _, status, used = os.wait4(child.pid, 0)
        if status:
            raise SystemExit(f"{command} failed")
        milliseconds.append((used.ru_utime + used.ru_stime) * 1e3)
    return min(milliseconds), int(re.search(r"VmHWM:\s+(\d+)", printed)[1]) / 1024


def size_of(name, seen):
    """Megabytes of a Python package's files and of those that it requires, without extras and what serves GPUs."""
    if name in seen or name.startswith(("nvidia", "triton", "cuda")):
        return 0
    seen.add(name)
    try:
        package = importlib.metadata.distribution(name)
    except importlib.metadata.PackageNotFoundError:
        return 0
    size = sum(path.stat().st_size for file in package.files or () if (path := Path(file.locate())).is_file()) / 1e6
    for row in package.requires or ():
        if "extra ==" not in row:
            size += size_of(re.match(r"[\w.-]+", row)[0].lower(), seen)
    return size


def main(lunaria, folder=None):
    show = "print(open('/proc/self/status').read())"
    starts = {
        "lunaria": [lunaria, "-e", "local ms = require 'lunaria' print(ms.ones{ 3 } + 1) print(io.open('/proc/self/status'):read 'a')"],
        "torch": [sys.executable, "-c", f"import torch; print(torch.ones(3) + 1); {show}"],
        "mindspore": [sys.executable, "-c", f"import mindspore; print(mindspore.ops.ones((3,)) + 1); {show}"]}
    rows = []
    if folder:
        ours = sum(path.stat().st_size for path in Path(folder).rglob("*") if path.is_file()) / 1e6
        rows.append(("installed, with all libraries (MB)", [ours, size_of("torch", set()), size_of("mindspore", set())], "{:.0f}"))
    figures = [start(command, os.environ) for command in starts.values()]
    rows.append(("from the start to the first tensor (ms)", [figure[0] for figure in figures], "{:.0f}"))
    rows.append(("memory of that (MB)", [figure[1] for figure in figures], "{:.0f}"))
    for name, what in NETWORKS.items():
        for mode, words in (("eager", "eager"), ("graph", "compiled")):
            rows.append((f"{what}, {words} (µs)", list(step_times(lunaria, name, mode).values()), "{:.0f}"))
    print("| | Lunaria | PyTorch | MindSpore |\n| --- | ---: | ---: | ---: |")
    for what, values, form in rows:
        print("|", " | ".join([what, *(form.format(value).replace("nan", "—") for value in values)]), "|")
    for package in ("torch", "mindspore"):
        print(package, importlib.metadata.version(package), file=sys.stderr)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--serve"]:
        serve(*sys.argv[2:])
    else:
        main(*sys.argv[1:])
