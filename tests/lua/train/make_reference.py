"""Writes reference.json beside it: what PyTorch gives for schedulers and for a network in bfloat16.

    python3 tests/lua/train/make_reference.py        (needs PyTorch; the file is stored, as the tests run without it)
"""
import json
import pathlib
import warnings

import torch
from torch.optim import lr_scheduler as s

warnings.filterwarnings("ignore")
torch.set_default_dtype(torch.float64)


def optimizer():
    a, b = torch.nn.Parameter(torch.zeros(1)), torch.nn.Parameter(torch.zeros(1))
    return torch.optim.SGD([{"params": [a], "lr": 0.5}, {"params": [b]}], lr=0.1)


SCHEDULERS = {
    "StepLR": ({"step_size": 3, "gamma": 0.5}, s.StepLR),
    "MultiStepLR": ({"milestones": [2, 5, 5], "gamma": 0.3}, s.MultiStepLR),
    "ExponentialLR": ({"gamma": 0.9}, s.ExponentialLR),
    "LinearLR": ({"start_factor": 0.25, "end_factor": 0.75, "total_iters": 4}, s.LinearLR),
    "ConstantLR": ({"factor": 0.5, "total_iters": 3}, s.ConstantLR),
    "PolynomialLR": ({"total_iters": 6, "power": 2.0}, s.PolynomialLR),
    "CosineAnnealingLR": ({"T_max": 4, "eta_min": 0.01}, s.CosineAnnealingLR),
    "CosineAnnealingWarmRestarts": ({"T_0": 3, "T_mult": 2, "eta_min": 0.01}, s.CosineAnnealingWarmRestarts),
    "CyclicLR": ({"base_lr": 0.1, "max_lr": 0.9, "step_size_up": 3, "step_size_down": 2}, s.CyclicLR),
    "CyclicLR triangular2": ({"base_lr": 0.1, "max_lr": 0.9, "step_size_up": 2, "mode": "triangular2"}, s.CyclicLR),
    "CyclicLR exp_range": ({"base_lr": 0.1, "max_lr": 0.9, "step_size_up": 3, "mode": "exp_range", "gamma": 0.9}, s.CyclicLR),
}
LOSSES = [1.0, 0.9, 0.95, 0.94, 0.93, 0.92, 0.5, 0.6, 0.7, 0.8, 0.9, 0.9, 0.4]
PLATEAU = [{"patience": 1, "factor": 0.5}, {"patience": 0, "factor": 0.2, "cooldown": 2, "mode": "max"},
           {"patience": 1, "factor": 0.5, "threshold": 0.05, "threshold_mode": "abs", "min_lr": [0.2, 0.03]}]


def rates(opt):
    return [group["lr"] for group in opt.param_groups]


def schedulers():
    rows = []
    for name, (arguments, kind) in SCHEDULERS.items():
        opt = optimizer()
        extra = {"cycle_momentum": False} if kind is s.CyclicLR else {}
        scheduler = kind(opt, **arguments, **extra)
        found = [rates(opt)]
        for _ in range(14):
            opt.step()
            scheduler.step()
            found.append(rates(opt))
        rows.append({"name": name.split()[0], "arguments": arguments, "rates": found})
    return rows


def plateau():
    rows = []
    for arguments in PLATEAU:
        opt = optimizer()
        scheduler = s.ReduceLROnPlateau(opt, **arguments)
        found = []
        for loss in LOSSES:
            scheduler.step(loss)
            found.append(rates(opt))
        rows.append({"arguments": arguments, "losses": LOSSES, "rates": found})
    return rows


def sequential():
    opt = optimizer()
    first = s.ConstantLR(opt, factor=0.1, total_iters=2)
    second = s.ExponentialLR(opt, gamma=0.9)
    scheduler = s.SequentialLR(opt, [first, second], milestones=[3])
    found = [rates(opt)]
    for _ in range(8):
        opt.step()
        scheduler.step()
        found.append(rates(opt))
    return found


def seeded(*shape):
    """Numbers that the test makes again: sin(1), sin(2), ..."""
    count = 1
    for size in shape:
        count *= size
    return torch.sin(torch.arange(1, count + 1, dtype=torch.float64)).reshape(shape)


def fill(module):
    for index, parameter in enumerate(module.parameters()):
        parameter.data = 0.5 * torch.cos(torch.arange(1, parameter.numel() + 1, dtype=torch.float64) * (index + 1)).reshape(parameter.shape)
    return module.eval()


def lower_precision():
    """Loss and gradients of a small network in float32, and by autocast in bfloat16."""
    x, labels = seeded(4, 1, 8, 8).float(), torch.tensor([0, 2, 1, 2])
    nn = torch.nn
    net = nn.Sequential(nn.Conv2d(1, 3, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(27, 8), nn.ReLU(), nn.Linear(8, 3))
    net = fill(net).float()
    found = {}
    for name in ("float32", "bfloat16"):
        net.zero_grad()
        with torch.autocast("cpu", torch.bfloat16, enabled=name == "bfloat16"):
            outputs = net(x)
        loss = nn.functional.cross_entropy(outputs.float(), labels)
        loss.backward()
        gradients = [[round(v, 7) for v in p.grad.flatten().tolist()] for p in net.parameters()]
        found[name] = {"loss": loss.item(), "gradients": gradients}
    return found


def main():
    data = {"schedulers": schedulers(), "plateau": plateau(), "sequential": sequential(), "lower_precision": lower_precision()}
    path = pathlib.Path(__file__).with_name("reference.json")
    path.write_text(json.dumps(data, indent=None, separators=(",", ":")).replace("},{", "},\n{") + "\n")


if __name__ == "__main__":
    main()
