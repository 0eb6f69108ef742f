"""The networks of the training benches in PyTorch; bench/networks.lua has the same."""
import torch
import torch.nn.functional as F
from torch import nn


def mlp():
    return nn.Sequential(nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 256), nn.ReLU(), nn.Linear(256, 10))


def lenet():
    return nn.Sequential(nn.Conv2d(1, 6, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(6, 16, 5), nn.ReLU(), nn.MaxPool2d(2),
                         nn.Flatten(), nn.Linear(400, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU(), nn.Linear(84, 10))


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.ln1, self.qkv, self.proj = nn.LayerNorm(width), nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.ln2, self.fc, self.out = nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, h):
        batch, length, width = h.shape
        qkv = self.qkv(self.ln1(h)).view(batch, length, 3, self.heads, width // self.heads)
        q, k, v = qkv.permute(2, 0, 3, 1, 4)
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        h = h + self.proj(mixed.transpose(1, 2).reshape(batch, length, width))
        return h + self.out(F.gelu(self.fc(self.ln2(h))))


class Gpt(nn.Module):
    def __init__(self, vocabulary, width, heads, layers, length):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(vocabulary, width), nn.Parameter(torch.randn(length, width) * 0.02)
        self.blocks = nn.Sequential(*(Block(width, heads) for _ in range(layers)))
        self.ln, self.head = nn.LayerNorm(width), nn.Linear(width, vocabulary, bias=False)

    def forward(self, x):
        return self.head(self.ln(self.blocks(self.wte(x) + self.wpe)))


def gpt():
    return Gpt(256, 128, 4, 4, 128)


class Residual(nn.Module):
    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.c1, self.b1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False), nn.BatchNorm2d(outputs)
        self.c2, self.b2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False), nn.BatchNorm2d(outputs)
        self.shortcut = None
        if stride != 1 or inputs != outputs:
            self.shortcut = nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))

    def forward(self, x):
        y = self.b2(self.c2(F.relu(self.b1(self.c1(x)))))
        return F.relu(y + (self.shortcut(x) if self.shortcut else x))


def resnet18(classes=10, large=False):
    stem = nn.Conv2d(3, 64, 7, 2, 3, bias=False) if large else nn.Conv2d(3, 64, 3, 1, 1, bias=False)
    layers, inputs = [stem, nn.BatchNorm2d(64), nn.ReLU()], 64
    if large:
        layers.append(nn.MaxPool2d(3, 2, 1))
    for i, outputs in enumerate((64, 128, 256, 512)):
        layers += [Residual(inputs, outputs, 1 if i == 0 else 2), Residual(outputs, outputs, 1)]
        inputs = outputs
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, classes))


class Lstm(nn.Module):
    def __init__(self, inputs, hidden, classes):
        super().__init__()
        self.lstm, self.out = nn.LSTM(inputs, hidden), nn.Linear(hidden, classes)

    def forward(self, x):
        return self.out(self.lstm(x)[0][-1])


def lstm():
    return Lstm(128, 128, 10)


def rnn(x, start, w1, u1, b1, w2, u2, b2):
    h1, h2 = start, start
    for t in range(x.shape[0]):
        h1 = torch.tanh(x[t] @ w1 + h1 @ u1 + b1)
        h2 = torch.tanh(h1 @ w2 + h2 @ u2 + b2)
    return (h2 * h2).sum()


def loss(net, x, y):
    logits = net(x)
    return F.cross_entropy(logits.reshape(-1, logits.shape[-1]), y.reshape(-1))
