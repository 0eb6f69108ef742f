"""PyTorch's exports of well-known networks with random weights, and onnxruntime's results for them.

usage: onnx_networks.py FOLDER [--size small|full] [--dynamo]
Writes FOLDER/NAME/model.onnx with inputs.safetensors and outputs.safetensors beside it."""
import argparse
import math
import warnings
from pathlib import Path

import numpy as np
import onnxruntime
import torch
from safetensors.numpy import save_file
from torch import nn


class Block(nn.Module):
    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(outputs)
        self.short = None
        if stride != 1 or inputs != outputs:
            self.short = nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))

    def forward(self, x):
        y = self.bn2(self.conv2(torch.relu(self.bn1(self.conv1(x)))))
        return torch.relu(y + (self.short(x) if self.short else x))


def resnet18(width):
    layers = [nn.Conv2d(3, width, 7, 2, 3, bias=False), nn.BatchNorm2d(width), nn.ReLU(), nn.MaxPool2d(3, 2, 1)]
    inputs = width
    for i in range(4):
        outputs = width * 2**i
        layers += [Block(inputs, outputs, 1 if i == 0 else 2), Block(outputs, outputs, 1)]
        inputs = outputs
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inputs, 1000))


class Inverted(nn.Module):
    def __init__(self, inputs, outputs, stride, expand):
        super().__init__()
        hidden = inputs * expand
        layers = []
        if expand != 1:
            layers += [nn.Conv2d(inputs, hidden, 1, bias=False), nn.BatchNorm2d(hidden), nn.ReLU6()]
        layers += [nn.Conv2d(hidden, hidden, 3, stride, 1, groups=hidden, bias=False), nn.BatchNorm2d(hidden), nn.ReLU6()]
        layers += [nn.Conv2d(hidden, outputs, 1, bias=False), nn.BatchNorm2d(outputs)]
        self.body = nn.Sequential(*layers)
        self.same = stride == 1 and inputs == outputs

    def forward(self, x):
        return x + self.body(x) if self.same else self.body(x)


def mobilenet_v2():
    layers = [nn.Conv2d(3, 32, 3, 2, 1, bias=False), nn.BatchNorm2d(32), nn.ReLU6()]
    inputs = 32
    rows = [(1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1)]
    for expand, outputs, count, stride in rows:
        for i in range(count):
            layers.append(Inverted(inputs, outputs, stride if i == 0 else 1, expand))
            inputs = outputs
    layers += [nn.Conv2d(inputs, 1280, 1, bias=False), nn.BatchNorm2d(1280), nn.ReLU6(), nn.AdaptiveAvgPool2d(1)]
    return nn.Sequential(*layers, nn.Flatten(), nn.Dropout(0.2), nn.Linear(1280, 1000))


class Attention(nn.Module):
    def __init__(self, size, heads):
        super().__init__()
        self.qkv, self.out, self.heads = nn.Linear(size, 3 * size), nn.Linear(size, size), heads

    def forward(self, x, mask):
        b, n, c = x.shape
        q, k, v = self.qkv(x).reshape(b, n, 3, self.heads, c // self.heads).permute(2, 0, 3, 1, 4)
        scores = q @ k.transpose(-1, -2) / math.sqrt(c // self.heads) + mask
        return self.out((torch.softmax(scores, -1) @ v).transpose(1, 2).reshape(b, n, c))


class Layer(nn.Module):
    """A transformer's layer, with its norms before (GPT-2) or after (BERT) what they norm."""

    def __init__(self, size, heads, before):
        super().__init__()
        self.attention, self.before = Attention(size, heads), before
        self.norm1, self.norm2 = nn.LayerNorm(size), nn.LayerNorm(size)
        self.mlp = nn.Sequential(nn.Linear(size, 4 * size), nn.GELU("tanh" if before else "none"), nn.Linear(4 * size, size))

    def forward(self, x, mask):
        if self.before:
            x = x + self.attention(self.norm1(x), mask)
            return x + self.mlp(self.norm2(x))
        x = self.norm1(x + self.attention(x, mask))
        return self.norm2(x + self.mlp(x))


class GPT2(nn.Module):
    def __init__(self, layers, size, heads, words, length):
        super().__init__()
        self.words, self.places = nn.Embedding(words, size), nn.Embedding(length, size)
        self.layers = nn.ModuleList(Layer(size, heads, True) for _ in range(layers))
        self.norm = nn.LayerNorm(size)

    def forward(self, ids):
        n = ids.shape[1]
        x = self.words(ids) + self.places(torch.arange(n))
        mask = torch.full((n, n), float("-inf")).triu(1)
        for layer in self.layers:
            x = layer(x, mask)
        return self.norm(x) @ self.words.weight.t()


class Bert(nn.Module):
    def __init__(self, layers, size, heads, words, length):
        super().__init__()
        self.words, self.places, self.kinds = nn.Embedding(words, size), nn.Embedding(length, size), nn.Embedding(2, size)
        self.norm = nn.LayerNorm(size)
        self.layers = nn.ModuleList(Layer(size, heads, False) for _ in range(layers))
        self.pool = nn.Linear(size, size)

    def forward(self, ids, kinds, seen):
        x = self.norm(self.words(ids) + self.places(torch.arange(ids.shape[1])) + self.kinds(kinds))
        mask = (1 - seen[:, None, None, :].float()) * -10000.0
        for layer in self.layers:
            x = layer(x, mask)
        return x, torch.tanh(self.pool(x[:, 0]))


def networks(full):
    picture = torch.randn(1, 3, 224, 224) if full else torch.randn(2, 3, 64, 64)
    config = (12, 768, 12, 30000, 128) if full else (2, 64, 4, 500, 32)
    ids = torch.randint(0, config[3], (1, 64) if full else (2, 16))
    kinds, seen = (ids % 2), (torch.arange(ids.shape[1]) < ids.shape[1] - 3).long().expand(ids.shape).contiguous()
    yield "resnet18", resnet18(64 if full else 16), (picture,), ["x"]
    yield "mobilenet_v2", mobilenet_v2(), (picture,), ["x"]
    yield "gpt2", GPT2(*config), (ids,), ["ids"]
    yield "bert", Bert(*config), (ids, kinds, seen), ["ids", "kinds", "seen"]


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--size", choices=["small", "full"], default="small")
    parser.add_argument("--dynamo", action="store_true", help="by torch.export instead of a trace")
    args = parser.parse_args()
    warnings.filterwarnings("ignore")
    torch.manual_seed(1)
    for name, network, inputs, names in networks(args.size == "full"):
        # Statistics of their own, as trained networks have them.
        for module in network.modules():
            if isinstance(module, nn.BatchNorm2d):
                module.running_mean.normal_(0, 0.1)
                module.running_var.uniform_(0.5, 1.5)
        network.eval()
        folder = args.folder / name
        folder.mkdir(parents=True, exist_ok=True)
        path = str(folder / "model.onnx")
        with torch.no_grad():
            if args.dynamo:
                torch.onnx.export(network, inputs, path, input_names=names, dynamo=True, external_data=False)
            else:
                torch.onnx.export(network, inputs, path, input_names=names, dynamo=False, opset_version=17)
        session = onnxruntime.InferenceSession(path)
        fed = {n: x.numpy() for n, x in zip(names, inputs)}
        outputs = session.run(None, fed)
        save_file({n: np.ascontiguousarray(x) for n, x in fed.items()}, folder / "inputs.safetensors")
        save_file({o.name: np.ascontiguousarray(x) for o, x in zip(session.get_outputs(), outputs)},
                  folder / "outputs.safetensors")
        print(name, path, flush=True)


if __name__ == "__main__":
    main()
