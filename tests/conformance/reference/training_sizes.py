"""Writes tests/data/sizes: the training runs of tests/data/conformance/e2e.json with other layer sizes, lengths and heads, done
by PyTorch. usage: training_sizes.py FOLDER"""
import json
import math
import sys

import torch
from safetensors.torch import save_file

F = torch.nn.functional
BATCH, STEPS, RATE = 8, 12, 0.05
tensors, runs = {}, []


def run(model, architecture, start, forward, x, y):
    tensors.update({f"{model}.{name}": p.clone() for name, p in start.items()})
    tensors.update({f"{model}/x": x.clone(), f"{model}/y": y.clone()})
    params, losses = {name: p.clone().requires_grad_() for name, p in start.items()}, []

    def loss(k):
        rows = slice(k * BATCH, (k + 1) * BATCH)
        out = forward(params, x[rows])
        return F.cross_entropy(out.reshape(-1, out.shape[-1]), y[rows].reshape(-1).long())

    for k in range(STEPS):
        value = loss(k)
        losses.append(value.item())
        grads = torch.autograd.grad(value, list(params.values()))
        params = {name: (p - RATE * g).detach().requires_grad_() for (name, p), g in zip(params.items(), grads)}
    runs.append({"id": f"{model}.SGD", "model": model, "architecture": architecture, "optimizer": "SGD", "hyper": {"lr": RATE},
                 "batch": BATCH, "steps": STEPS, "x": f"{model}/x", "y": f"{model}/y", "loss_float32": losses,
                 "final_loss_on_batch0": loss(0).item(), "rtol": 2e-4})


def dense(out, inputs):
    return {"weight": torch.randn(out, inputs) / math.sqrt(inputs), "bias": torch.randn(out) * 0.1}


def conv(out, inputs, bias=True):
    made = {"weight": torch.randn(out, inputs, 3, 3) / math.sqrt(9 * inputs)}
    return made | {"bias": torch.randn(out) * 0.1} if bias else made


def norm(width):
    return {"gamma": torch.rand(width) + 0.5, "beta": torch.randn(width) * 0.1}


def named(**layers):
    return {f"{layer}.{name}": p for layer, params in layers.items() for name, p in params.items()}


def linear(p, name, x):
    return F.linear(x, p[f"{name}.weight"], p[f"{name}.bias"])


def mlp(p, x):
    return linear(p, "fc2", F.relu(linear(p, "fc1", x)))


def mlp_tanh(p, x):
    return linear(p, "fc3", torch.tanh(linear(p, "fc2", torch.tanh(linear(p, "fc1", x)))))


def lenet(p, x):
    x = x.reshape(-1, 1, 12, 12)
    for name in ("conv1", "conv2"):
        x = F.max_pool2d(F.relu(F.conv2d(x, p[f"{name}.weight"], p[f"{name}.bias"], padding=1)), 2)
    return mlp(p, x.flatten(1))


def bnet(p, x):
    x = F.conv2d(x.reshape(-1, 1, 12, 12), p["conv.weight"], padding=1)
    return linear(p, "fc", F.gelu(F.batch_norm(x, None, None, p["bn.gamma"], p["bn.beta"], True, 0.1, 1e-5)).mean((2, 3)))


TOKENS, LENGTH, WIDTH, HEADS, LAYERS = 13, 10, 12, 3, 3


def gpt_mini(p, x):
    h, mask = p["wte"][x.long()] + p["wpe"], torch.triu(torch.ones(LENGTH, LENGTH), 1) * -1e9
    for i in range(LAYERS):
        def normed(name):
            return F.layer_norm(h, (WIDTH,), p[f"h{i}.{name}.gamma"], p[f"h{i}.{name}.beta"], 1e-5)

        q, k, v = linear(p, f"h{i}.qkv", normed("ln1")).reshape(-1, LENGTH, 3, HEADS, WIDTH // HEADS).permute(2, 0, 3, 1, 4)
        mixed = torch.softmax(q @ k.transpose(-1, -2) / math.sqrt(WIDTH // HEADS) + mask, -1) @ v
        h = h + linear(p, f"h{i}.proj", mixed.transpose(1, 2).reshape(-1, LENGTH, WIDTH))
        h = h + linear(p, f"h{i}.out", F.gelu(linear(p, f"h{i}.fc", normed("ln2")), approximate="tanh"))
    return F.layer_norm(h, (WIDTH,), p["lnf.gamma"], p["lnf.beta"], 1e-5) @ p["wte"].T


def main(folder):
    torch.manual_seed(3)
    count = BATCH * STEPS
    x, pictures, y = torch.randn(count, 49), torch.randn(count, 144), torch.randint(0, 7, (count,)).int()
    run("mlp", "", named(fc1=dense(20, 49), fc2=dense(7, 20)), mlp, x, y)
    run("mlp_tanh", "", named(fc1=dense(11, 49), fc2=dense(13, 11), fc3=dense(7, 13)), mlp_tanh, x, y)
    run("lenet", "", named(conv1=conv(3, 1), conv2=conv(5, 3), fc1=dense(9, 45), fc2=dense(7, 9)), lenet, pictures, y)
    run("bnet", "", named(conv=conv(5, 1, False), bn=norm(5), fc=dense(7, 5)), bnet, pictures, y)
    params = {"wte": torch.randn(TOKENS, WIDTH) * 0.3, "wpe": torch.randn(LENGTH, WIDTH) * 0.1} | named(lnf=norm(WIDTH))
    for i in range(LAYERS):
        block = named(ln1=norm(WIDTH), ln2=norm(WIDTH), qkv=dense(3 * WIDTH, WIDTH), proj=dense(WIDTH, WIDTH),
                      fc=dense(4 * WIDTH, WIDTH), out=dense(WIDTH, 4 * WIDTH))
        params |= {f"h{i}.{name}": p for name, p in block.items()}
    run("gpt_mini", f"heads={HEADS} layers={LAYERS}", params, gpt_mini, torch.randint(0, TOKENS, (count, LENGTH)).int(),
        torch.randint(0, TOKENS, (count, LENGTH)).int())
    save_file({name: t.contiguous() for name, t in tensors.items()}, f"{folder}/e2e.safetensors")
    with open(f"{folder}/e2e.json", "w") as file:
        json.dump({"file": "e2e.safetensors", "runs": runs}, file)


main(sys.argv[1])
