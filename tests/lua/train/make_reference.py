"""Writes reference.json beside it: what PyTorch gives for schedulers, optimizers, layers and losses.

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


START, SLOPES = [[1.0, -2.0], [0.5, 3.0]], [[[0.1, 0.2], [-0.3, 0.4]], [[0.5, -0.1], [0.2, 0.0]], [[-0.4, 0.3], [0.1, -0.2]]]
OPTIMIZERS = [
    ("Adagrad", torch.optim.Adagrad, {"lr": 0.1, "lr_decay": 0.1, "weight_decay": 0.01, "initial_accumulator_value": 0.2}),
    ("RMSprop", torch.optim.RMSprop, {"lr": 0.05, "alpha": 0.9}),
    ("RMSprop", torch.optim.RMSprop, {"lr": 0.05, "alpha": 0.8, "momentum": 0.5, "centered": True, "weight_decay": 0.02}),
    ("NAdam", torch.optim.NAdam, {"lr": 0.1, "weight_decay": 0.01}),
    ("RAdam", torch.optim.RAdam, {"lr": 0.1}),
    ("ASGD", torch.optim.ASGD, {"lr": 0.1, "lambd": 0.01, "alpha": 0.5, "t0": 2}),
    ("Rprop", torch.optim.Rprop, {"lr": 0.1, "etas": [0.4, 1.3], "step_sizes": [1e-3, 0.5]}),
]


def optimizers():
    rows = []
    for name, kind, arguments in OPTIMIZERS:
        p = torch.nn.Parameter(torch.tensor(START))
        opt = kind([p], **arguments)
        found = []
        for step in range(8):
            p.grad = torch.tensor(SLOPES[step % 3]) * (1 + 0.1 * step)
            opt.step()
            found.append(p.detach().tolist())
        rows.append({"name": name, "arguments": arguments, "values": found})
    return {"start": START, "slopes": SLOPES, "rows": rows}


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


def layers():
    nn = torch.nn
    found = {}

    def row(name, module, *inputs, **options):
        result = fill(module)(*inputs, **options)
        results = result if isinstance(result, tuple) else (result,)
        found[name] = [r.detach().tolist() for r in results if r is not None]

    x3, x4, x5 = seeded(2, 4, 6), seeded(2, 4, 6, 6), seeded(1, 2, 4, 4, 4)
    row("InstanceNorm1d", nn.InstanceNorm1d(4, affine=True), x3)
    row("InstanceNorm2d", nn.InstanceNorm2d(4, affine=True), x4)
    row("InstanceNorm3d", nn.InstanceNorm3d(2, affine=True), x5)
    row("PixelShuffle", nn.PixelShuffle(2), x4)
    row("PixelUnshuffle", nn.PixelUnshuffle(2), x4)
    row("ReflectionPad2d", nn.ReflectionPad2d((1, 2, 0, 1)), x4)
    row("ReplicationPad2d", nn.ReplicationPad2d((1, 2, 0, 1)), x4)
    row("ConstantPad2d", nn.ConstantPad2d((1, 2, 0, 1), 0.5), x4)
    row("ZeroPad2d", nn.ZeroPad2d(1), x4)
    row("ReflectionPad1d", nn.ReflectionPad1d(2), x3)
    row("ReplicationPad3d", nn.ReplicationPad3d(1), x5)
    row("AdaptiveAvgPool3d", nn.AdaptiveAvgPool3d((1, 2, 3)), x5)
    row("AdaptiveMaxPool2d", nn.AdaptiveMaxPool2d((2, 3)), x4)
    row("AvgPool3d", nn.AvgPool3d(2, 2), x5)
    row("MaxPool3d", nn.MaxPool3d(2, 2), x5)
    row("Upsample", nn.Upsample(scale_factor=2, mode="bilinear", align_corners=True), x4)
    row("BiDense", nn.Bilinear(3, 4, 2), seeded(5, 3), seeded(5, 4))
    row("LSTMCell", nn.LSTMCell(3, 2), seeded(4, 3), (seeded(4, 2), seeded(4, 2) * 0.5))
    row("GRUCell", nn.GRUCell(3, 2), seeded(4, 3), seeded(4, 2))
    row("RNNCell", nn.RNNCell(3, 2), seeded(4, 3), seeded(4, 2))
    row("Conv3dTranspose", nn.ConvTranspose3d(2, 3, 2, stride=2), x5)
    mask = torch.triu(torch.ones(5, 5, dtype=torch.bool), 1)
    source, target = seeded(5, 2, 8), seeded(5, 2, 8) * 0.7
    row("TransformerEncoderLayer", nn.TransformerEncoderLayer(8, 2, 16, 0.0), source)
    row("TransformerEncoderLayer masked", nn.TransformerEncoderLayer(8, 2, 16, 0.0, "gelu", norm_first=True), source, src_mask=mask)
    row("TransformerDecoderLayer", nn.TransformerDecoderLayer(8, 2, 16, 0.0), target, source, tgt_mask=mask)
    row("Transformer", nn.Transformer(8, 2, 2, 1, 16, 0.0), source, target, tgt_mask=mask)
    return found


def losses():
    nn = torch.nn
    x, y, z = seeded(3, 4), torch.cos(seeded(3, 4)), seeded(3, 4) * 0.3 + 0.1
    signs = torch.sign(seeded(3, 4))
    log_probs = torch.log_softmax(seeded(6, 2, 5), 2)
    found = {
        "HingeEmbeddingLoss": nn.HingeEmbeddingLoss(0.8)(x, signs),
        "MarginRankingLoss": nn.MarginRankingLoss(0.3)(x, y, signs),
        "TripletMarginLoss": nn.TripletMarginLoss(0.7, swap=True)(x, y, z),
        "GaussianNLLLoss": nn.GaussianNLLLoss(full=True)(x, y, z.abs() + 0.1),
        "CTCLoss": nn.CTCLoss()(log_probs, torch.tensor([[1, 2, 3], [2, 2, 4]]), torch.tensor([6, 6]), torch.tensor([3, 2])),
    }
    return {name: value.item() for name, value in found.items()}


def main():
    data = {"schedulers": schedulers(), "plateau": plateau(), "sequential": sequential(), "optimizers": optimizers(),
            "losses": losses()}
    layers_path = pathlib.Path(__file__).with_name("reference_layers.json")
    rounded = json.loads(json.dumps(layers()), parse_float=lambda text: round(float(text), 8))
    layers_path.write_text(json.dumps(rounded, separators=(",", ":")).replace('],"', '],\n"') + "\n")
    path = pathlib.Path(__file__).with_name("reference.json")
    path.write_text(json.dumps(data, indent=None, separators=(",", ":")).replace("},{", "},\n{") + "\n")


if __name__ == "__main__":
    main()
