"""The highest tensor memory of one value and gradient, beyond parameters and inputs, against PyTorch's.

usage: training_memory.py LUNARIA     prints one JSON row per network"""
import json
import subprocess
import sys

import networks
import torch

INPUTS = {"gpt": lambda: (torch.randint(0, 256, (8, 128)), torch.randint(0, 256, (8, 128))),
          "resnet18": lambda: (torch.randn(8, 3, 32, 32), torch.randint(0, 10, (8,)))}


def peak_of_torch(name):
    """The highest sum of what PyTorch's allocator has handed out and not got back since the start of the step."""
    net, (x, y) = getattr(networks, name)().train(), INPUTS[name]()
    parameters = list(net.parameters())

    def step():
        return torch.autograd.grad(networks.loss(net, x, y), parameters)

    step()
    with torch.profiler.profile(profile_memory=True, activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
        step()
    live = peak = 0
    changes = [event for event in profile.profiler.kineto_results.events() if event.name() == "[memory]"]
    for event in sorted(changes, key=lambda event: event.start_ns()):
        live += event.nbytes()
        peak = max(peak, live)
    return peak


def main(lunaria):
    for name in INPUTS:
        output = subprocess.run([lunaria, "bench/training_memory.lua", name], check=True, capture_output=True, text=True)
        ours, theirs = int(output.stdout), peak_of_torch(name)
        value = ours / theirs
        print(json.dumps({"workload": f"peak tensor memory of a step: {name}", "value": value, "unit": "x", "limit": 1.0,
                          "pass": value <= 1.0, "note": f"ours {ours / 1e6:.1f} MB, torch {theirs / 1e6:.1f} MB"}), flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
