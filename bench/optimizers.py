import harness
import torch


def shapes():
    found = [(64, 3, 7, 7), (64,), (64,)]

    def conv(out, channels, size):
        found.extend([(out, channels, size, size), (out,), (out,)])

    before = 64
    for width in (64, 128, 256, 512):
        conv(width, before, 3)
        conv(width, width, 3)
        if width != before:
            conv(width, before, 1)
        conv(width, width, 3)
        conv(width, width, 3)
        before = width
    return found + [(1000, 512), (1000,)]


class Lamb:
    """The rule of nn.Lamb by PyTorch's functions over lists of tensors."""

    def __init__(self, params, lr, weight_decay, betas=(0.9, 0.999), eps=1e-6):
        self.params, self.lr, self.decay, self.betas, self.eps = list(params), lr, weight_decay, betas, eps
        self.first = [torch.zeros_like(p) for p in self.params]
        self.second = [torch.zeros_like(p) for p in self.params]
        self.count = 0

    def step(self):
        self.count += 1
        grads = [p.grad for p in self.params]
        beta1, beta2 = self.betas
        torch._foreach_lerp_(self.first, grads, 1 - beta1)
        torch._foreach_mul_(self.second, beta2)
        torch._foreach_addcmul_(self.second, grads, grads, 1 - beta2)
        under = torch._foreach_div(self.second, 1 - beta2**self.count)
        torch._foreach_sqrt_(under)
        torch._foreach_add_(under, self.eps)
        moved = torch._foreach_div(self.first, 1 - beta1**self.count)
        torch._foreach_div_(moved, under)
        torch._foreach_add_(moved, self.params, alpha=self.decay)
        own, norms = torch._foreach_norm(self.params), torch._foreach_norm(moved)
        torch._foreach_mul_(moved, torch._foreach_div(own, norms))
        torch._foreach_add_(self.params, moved, alpha=-self.lr)


CASES = {
    "step_adam": lambda p: torch.optim.Adam(p, 1e-6, fused=True),
    "step_adamw": lambda p: torch.optim.AdamW(p, 1e-6, weight_decay=0.01, fused=True),
    "step_sgd": lambda p: torch.optim.SGD(p, 1e-6, fused=True),
    "step_momentum": lambda p: torch.optim.SGD(p, 1e-6, momentum=0.9, fused=True),
    "step_lamb": lambda p: Lamb(p, 1e-6, 0.01),
}


def setup(name):
    params = [torch.randn(shape) * 0.1 for shape in shapes()]
    for p in params:
        p.grad = torch.randn_like(p) * 0.01
    return harness.calls("step()", step=CASES[name](params).step)


harness.serve({name: {"torch": lambda name=name: setup(name)} for name in CASES})
