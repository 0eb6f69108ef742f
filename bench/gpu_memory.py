"""The highest device memory of a training step on the GPU, eager and compiled, against PyTorch's eager step. Nothing of it
takes a GPU: Lunaria runs on the mock of the driver, which counts and computes nothing; PyTorch's requests of a step on the
CPU are replayed by the rules of its allocator for GPUs (multiples of 512 bytes). Both count everything that is alive:
parameters, the optimizer's state, gradients, inputs.

usage: gpu_memory.py LUNARIA FOLDER_OF_THE_MOCK     prints one JSON row per network and mode"""
import json
import os
import subprocess
import sys
import tempfile

import networks
import torch
from torch.profiler import ProfilerActivity, profile

ROUND = 512


def rounded(size):
    return max(ROUND, (size + ROUND - 1) // ROUND * ROUND)


def events(step):
    """What a step asks its allocator for: (address, bytes), bytes below 0 where memory is given back."""
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as found:
        step()
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        found.export_chrome_trace(file.name)
        with open(file.name, encoding="utf8") as text:
            trace = json.load(text)["traceEvents"]
    listed = [e for e in trace if e.get("name") == "[memory]"]
    listed.sort(key=lambda e: e["ts"])
    return [(e["args"]["Addr"], e["args"]["Bytes"]) for e in listed]


def replay(requests, before):
    """The peak; `before`: bytes that are alive at first, of which a step gives some back and makes new ones."""
    alive, sizes, peak = before, {}, before
    for address, size in requests:
        if size > 0:
            sizes[address] = rounded(size)
            alive += sizes[address]
        else:
            alive -= sizes.pop(address, rounded(-size))
        peak = max(peak, alive)
    return peak


def bytes_alive(tensors):
    storages = {t.untyped_storage().data_ptr(): t.untyped_storage().nbytes() for t in tensors if t is not None}
    return sum(rounded(size) for size in storages.values())


def tensors_of(optimizer, params, inputs):
    found = list(params) + list(inputs)
    for state in optimizer.state.values():
        found += [v for v in state.values() if isinstance(v, torch.Tensor)]
    return found


def peak_of_torch(net, make_optimizer, inputs):
    optimizer = make_optimizer(net.parameters())

    def step():
        optimizer.zero_grad(set_to_none=True)
        networks.loss(net, *inputs).backward()
        optimizer.step()

    for _ in range(3):
        step()
    # What was allocated before is not seen to be given back: gradients are not to be among it.
    optimizer.zero_grad(set_to_none=True)
    tensors = tensors_of(optimizer, list(net.parameters()), inputs) + list(net.buffers())
    before = bytes_alive(tensors)
    del tensors
    return replay(events(step), before)


def peak_of_rnn(hidden):
    def matrix():
        return (torch.randn(hidden, hidden) * 0.1).requires_grad_()

    weights = [matrix(), matrix(), torch.zeros(1, hidden).requires_grad_(), matrix(), matrix(), torch.zeros(1, hidden).requires_grad_()]
    x, start = torch.randn(50, 64, hidden), torch.zeros(64, hidden)

    def step():
        torch.autograd.grad(networks.rnn(x, start, *weights), weights)

    for _ in range(3):
        step()
    return replay(events(step), bytes_alive([x, start, *weights]))


def momentum(params):
    return torch.optim.SGD(params, 1e-5, momentum=0.9)


def models():
    """The batches are those of gpu_memory.lua."""
    classes = torch.randint(0, 10, (64,))
    tokens = torch.randint(0, 256, (8, 128))
    yield "mlp", lambda: peak_of_torch(networks.mlp(), lambda p: torch.optim.Adam(p, 1e-6), (torch.randn(64, 784), classes))
    yield "lenet", lambda: peak_of_torch(networks.lenet(), momentum, (torch.randn(64, 1, 32, 32), classes))
    yield "resnet18", lambda: peak_of_torch(networks.resnet18().train(), momentum, (torch.randn(8, 3, 32, 32), classes[:8]))
    yield "gpt", lambda: peak_of_torch(networks.gpt(), lambda p: torch.optim.AdamW(p, 1e-6, weight_decay=0.01), (tokens, tokens))
    yield "lstm", lambda: peak_of_torch(networks.lstm(), momentum, (torch.randn(28, 64, 128), classes))
    yield "rnn", lambda: peak_of_rnn(128)


def peak_of_lunaria(lunaria, mock, name, mode):
    environment = dict(os.environ, LD_LIBRARY_PATH=mock, LUA_CPATH=f"{mock}/?.so", LUNARIA_GPU_LIBRARIES="0")
    output = subprocess.run([lunaria, "bench/gpu_memory.lua", name, mode], env=environment, check=True, capture_output=True, text=True)
    return int(output.stdout)


def main(lunaria, mock):
    torch.set_num_threads(1)
    for name, make in models():
        other = make()
        for mode in ("eager", "graph"):
            ours = peak_of_lunaria(lunaria, mock, name, mode)
            print(json.dumps({"workload": f"device memory of a training step: {name}, {mode}", "value": ours / other, "unit": "x",
                              "limit": 1, "pass": ours <= other, "note": f"{ours / 1e6:.2f} MB, PyTorch {other / 1e6:.2f} MB"}),
                  flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
