import harness
import opacus
import torch
from opacus.grad_sample.utils import wrap_model
from opacus.optimizers import DPOptimizer, DPOptimizerFastGradientClipping
from opacus.utils.fast_gradient_clipping_utils import DPLossFastGradientClipping
from torch import nn


def mlp():
    return nn.Sequential(nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 10))


def cnn():
    return nn.Sequential(nn.Conv2d(1, 16, 8, 2, padding=3), nn.ReLU(), nn.MaxPool2d(2, 1), nn.Conv2d(16, 32, 4, 2), nn.ReLU(),
                         nn.MaxPool2d(2, 1), nn.Flatten(), nn.Linear(512, 32), nn.ReLU(), nn.Linear(32, 10))


def lenet():
    return nn.Sequential(nn.Conv2d(1, 6, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2, 2), nn.Conv2d(6, 16, 5), nn.ReLU(),
                         nn.MaxPool2d(2, 2), nn.Flatten(), nn.Linear(400, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU(),
                         nn.Linear(84, 10))


CASES = {"mlp": (mlp, (128, 784)), "cnn": (cnn, (64, 1, 28, 28)), "lenet": (lenet, (64, 1, 28, 28))}


def plain(name):
    torch.set_grad_enabled(True)
    make, shape = CASES[name]
    net, x, y = make(), torch.rand(shape), torch.randint(0, 10, shape[:1])
    optimizer, criterion = torch.optim.SGD(net.parameters(), 1e-3), nn.CrossEntropyLoss()

    def step():
        optimizer.zero_grad(set_to_none=True)
        criterion(net(x), y).backward()
        optimizer.step()

    return harness.calls("step()", step=step)


def private(name, mode):
    torch.set_grad_enabled(True)
    make, shape = CASES[name]
    x, y = torch.rand(shape), torch.randint(0, 10, shape[:1])
    net = wrap_model(make(), grad_sample_mode=mode, max_grad_norm=1.0, use_ghost_clipping=True) if mode == "ghost" else wrap_model(
        make(), grad_sample_mode=mode)
    inner = torch.optim.SGD(net.parameters(), 1e-3)
    settings = {"noise_multiplier": 1.1, "max_grad_norm": 1.0, "expected_batch_size": shape[0]}
    if mode == "ghost":
        optimizer = DPOptimizerFastGradientClipping(inner, **settings)
        criterion = DPLossFastGradientClipping(net, optimizer, nn.CrossEntropyLoss(), "mean")
    else:
        optimizer, criterion = DPOptimizer(inner, **settings), nn.CrossEntropyLoss()

    def step():
        optimizer.zero_grad()
        criterion(net(x), y).backward()
        optimizer.step()

    return harness.calls("step()", step=step)


WORKLOADS = {}
for case in CASES:
    WORKLOADS["plain_" + case] = {"torch": lambda case=case: plain(case)}
    WORKLOADS["private_" + case] = {"opacus_" + mode: lambda case=case, mode=mode: private(case, mode)
                                    for mode in ("hooks", "functorch", "ghost")}
harness.serve(WORKLOADS)
