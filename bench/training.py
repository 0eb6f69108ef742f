import harness
import networks
import torch


def tokens():
    return torch.randint(0, 256, (8, 128))


def classes(count):
    return torch.randint(0, 10, (count,))


CASES = {
    "train_mlp": (networks.mlp, lambda p, fused: torch.optim.Adam(p, 1e-6, fused=fused),
                  lambda: (torch.randn(64, 784), classes(64))),
    "train_lenet": (networks.lenet, lambda p, fused: torch.optim.SGD(p, 1e-5, momentum=0.9, fused=fused),
                    lambda: (torch.randn(32, 1, 32, 32), classes(32))),
    "train_gpt": (networks.gpt, lambda p, fused: torch.optim.AdamW(p, 1e-6, weight_decay=0.01, fused=fused),
                  lambda: (tokens(), tokens())),
}


def setup(name):
    torch.set_grad_enabled(True)
    torch.manual_seed(1)
    make, make_optimizer, data = CASES[name]
    net, (x, y) = make().train(), data()
    optimizer = make_optimizer(net.parameters(), True)

    def step():
        optimizer.zero_grad(set_to_none=True)
        networks.loss(net, x, y).backward()
        optimizer.step()

    return harness.calls("step()", step=step)


if __name__ == "__main__":
    harness.serve({name: {"torch": lambda name=name: setup(name)} for name in CASES})
