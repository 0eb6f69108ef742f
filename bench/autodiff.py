import math

import harness
import torch

HIDDEN, STEPS = 32, 100


def chain(x):
    y = torch.sin(x) * x
    y = torch.tanh(y + x)
    y = torch.exp(-y) * x
    y = torch.sigmoid(y) - x
    return (y * y).sum()


def grad_chain():
    torch.set_grad_enabled(True)
    x = torch.linspace(0.1, 0.9, 8, requires_grad=True)

    def step():
        value = chain(x)
        return value, torch.autograd.grad(value, x)[0]

    return harness.calls("step()", step=step)


def rnn():
    torch.set_grad_enabled(True)
    x, start = torch.randn(STEPS, 1, HIDDEN), torch.zeros(1, HIDDEN)
    weights = [torch.zeros(HIDDEN, requires_grad=True) if i % 3 == 2 else
               (torch.randn(HIDDEN, HIDDEN) / math.sqrt(HIDDEN)).requires_grad_() for i in range(6)]
    w1, u1, b1, w2, u2, b2 = weights

    def step():
        h1 = h2 = start
        for t in range(STEPS):
            h1 = torch.tanh(x[t] @ w1 + h1 @ u1 + b1)
            h2 = torch.tanh(h1 @ w2 + h2 @ u2 + b2)
        value = (h2 * h2).sum()
        return value, torch.autograd.grad(value, weights)

    return harness.calls("step()", step=step)


harness.serve({"grad_chain": {"torch": grad_chain}, "rnn": {"torch": rnn}})
