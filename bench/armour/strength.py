"""How many of 500 pictures of Fashion-MNIST a network still gets right under attacks with the same budget as those of torchattacks and
Foolbox: at most 0.2 points more than theirs; and how far away Carlini and Wagner's attack ends: at most 1 % farther.

usage: armour/strength.py LUNARIA     prints JSON rows; some minutes"""
import json
import os
import subprocess
import sys
import tempfile

FOLDER = "/usr/share/datasets/fashion-mnist"
EPS = 0.03


def row(workload, value, limit, unit, note):
    print(json.dumps({"workload": workload, "value": round(value, 4), "unit": unit, "limit": round(limit, 4), "pass": value <= limit,
                      "note": note}), flush=True)


def network(found):
    import torch
    from torch import nn

    net = nn.Sequential(nn.Conv2d(1, 8, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(8, 16, 5, padding=2), nn.ReLU(),
                        nn.MaxPool2d(2), nn.Flatten(), nn.Linear(784, 100), nn.ReLU(), nn.Linear(100, 10))
    state = {name[2:]: torch.tensor(value) for name, value in found.items() if name.startswith("p:")}
    net.load_state_dict(state)
    return net.eval()


def theirs(net, x, y):
    """Adversarial pictures by attack: a list of (program, pictures) each."""
    import foolbox
    import torchattacks

    model = foolbox.PyTorchModel(net, bounds=(0, 1), device="cpu")
    pgd = foolbox.attacks.LinfPGD(steps=40, abs_stepsize=EPS / 4, random_start=True)
    carlini = foolbox.attacks.L2CarliniWagnerAttack(binary_search_steps=5, steps=200, stepsize=0.01, initial_const=0.1, abort_early=False)
    return {
        "pgd": [("torchattacks", torchattacks.PGD(net, eps=EPS, alpha=EPS / 4, steps=40)(x, y)),
                ("foolbox", pgd(model, x, y, epsilons=EPS)[1])],
        "apgd_ce": [("torchattacks", torchattacks.APGD(net, eps=EPS, steps=50, loss="ce", seed=1)(x, y))],
        "apgd_dlr": [("torchattacks", torchattacks.APGD(net, eps=EPS, steps=50, loss="dlr", seed=1)(x, y))],
        "cw": [("foolbox", carlini(model, x, y, epsilons=None)[1])],
    }


def main(lunaria):
    import numpy
    import torch

    if not os.path.isdir(FOLDER):
        raise SystemExit(f"{FOLDER} is not there: Debian's package is dataset-fashion-mnist")
    torch.manual_seed(1)
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([lunaria, "bench/armour/strength.lua", FOLDER, folder, str(EPS)], check=True)
        found = dict(numpy.load(f"{folder}/strength.npz"))
    net, x, y = network(found), torch.tensor(found["x"]), torch.tensor(found["y"]).long()

    def right(pictures):
        with torch.no_grad():
            return 100 * (net(pictures).argmax(1) == y).double().mean().item()

    def distance(pictures):
        with torch.no_grad():
            wrong = (net(pictures).argmax(1) != y) & (net(x).argmax(1) == y)
        return wrong.sum().item(), (pictures - x)[wrong].flatten(1).norm(dim=1).median().item()

    clean = right(x)
    for name, others in theirs(net, x, y).items():
        ours = torch.tensor(found[name])
        for program, pictures in others:
            if name == "cw":
                (count, near), (other_count, other) = distance(ours), distance(pictures)
                row("median L2 of Carlini and Wagner", near, other * 1.01, "", f"{program}: {other:.4f}; found {count} and {other_count}")
                row("not found by Carlini and Wagner", -count, -other_count, "", f"{program} finds {other_count}")
                continue
            outside = (ours - x).abs().max().item()
            row(f"right under {name}", right(ours), right(pictures) + 0.2, "%",
                f"{program}: {right(pictures):.1f} %; without an attack {clean:.1f} %; largest change {outside:.4f} of {EPS}")


if __name__ == "__main__":
    main(sys.argv[1])
