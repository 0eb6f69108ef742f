import sys

sys.path.insert(0, "bench")
import harness


def network(name):
    from torch import nn

    if name == "mlp":
        return nn.Sequential(nn.Flatten(), nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 128), nn.ReLU(), nn.Linear(128, 10))
    if name == "cnn":
        return nn.Sequential(nn.Conv2d(1, 16, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(16, 32, 5, padding=2), nn.ReLU(),
                             nn.MaxPool2d(2), nn.Flatten(), nn.Linear(1568, 100), nn.ReLU(), nn.Linear(100, 10))
    return nn.Sequential(nn.Conv2d(1, 6, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(6, 16, 5), nn.ReLU(), nn.MaxPool2d(2),
                         nn.Flatten(), nn.Linear(400, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU(), nn.Linear(84, 10))


def torchattacks_pgd(name):
    import torch
    import torchattacks

    attack = torchattacks.PGD(network(name).eval(), eps=0.1, alpha=0.01, steps=40)
    x, y = torch.rand(256, 1, 28, 28), torch.randint(0, 10, (256,))

    def run(n):
        with torch.enable_grad():
            for _ in range(n):
                attack(x, y)

    return run


def art_pgd(name):
    import numpy
    import torch
    from art.attacks.evasion import ProjectedGradientDescent
    from art.estimators.classification import PyTorchClassifier

    model = PyTorchClassifier(network(name).eval(), torch.nn.CrossEntropyLoss(), (1, 28, 28), 10, clip_values=(0.0, 1.0), device_type="cpu")
    attack = ProjectedGradientDescent(model, eps=0.1, eps_step=0.01, max_iter=40, num_random_init=1, batch_size=256, verbose=False)
    rng = numpy.random.default_rng(1)
    x, y = rng.random((256, 1, 28, 28), dtype="float32"), numpy.eye(10, dtype="float32")[rng.integers(0, 10, 256)]

    def run(n):
        with torch.enable_grad():
            for _ in range(n):
                attack.generate(x, y)

    return run


harness.serve({f"pgd40_{name}": {"torchattacks": lambda name=name: torchattacks_pgd(name), "art": lambda name=name: art_pgd(name)}
               for name in ("mlp", "cnn", "lenet")})
