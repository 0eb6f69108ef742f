"""Writes expected.safetensors: what PyTorch's layers and losses give, with gradients, and where its optimizers go.

Inputs and parameters follow a formula, so that only results are kept: element i of tensor k is 0.5 sin(0.7 i + 1.3 k + 0.2).
Inputs are the tensors 0, 1, ...; parameters, in their order, are the tensors 10, 11, ...; the gradients are those of the
sum of the results times the tensors 50, 51, ... tests/lua/nn/layers_test.lua and
tests/lua/nn/optimizers_test.lua build the same with this library.

    .peers/bin/python3 tests/data/layers/expected.py
"""
import json
import pathlib
import torch
from torch import nn

torch.set_default_dtype(torch.float64)
expected = {}


def values(shape, k):
    count = 1
    for size in shape:
        count *= size
    return (0.5 * torch.sin(0.7 * torch.arange(count, dtype=torch.float64) + 1.3 * k + 0.2)).reshape(shape)


def case(name, f, *shapes, module=None):
    """f(inputs...) gives one result or several; module has the parameters."""
    parameters = list(module.parameters()) if module is not None else []
    with torch.no_grad():
        for k, p in enumerate(parameters):
            p.copy_(values(p.shape, 10 + k))
    inputs = [values(shape, k).requires_grad_() for k, shape in enumerate(shapes)]
    results = (f or module)(*inputs)
    results = results if isinstance(results, tuple) else (results,)
    loss = sum((r * values(r.shape, 50 + k)).sum() for k, r in enumerate(results) if r.is_floating_point())
    grads = torch.autograd.grad(loss, inputs + parameters, allow_unused=True)
    for k, r in enumerate(results):
        expected[f"{name}.out{k}"] = r.detach().contiguous().clone()
    for k, g in enumerate(grads):
        if g is not None:
            expected[f"{name}.grad{k}"] = g.contiguous().clone()


def of(module, *shapes, name=None):
    case(name, None, *shapes, module=module)


causal = torch.triu(torch.ones(4, 4), 1).bool()
padded = torch.tensor([[False] * 5, [False] * 3 + [True] * 2])
hidden = torch.tensor([[False] * 4, [False] * 3 + [True]])
options = dict(dropout=0.0)
for style, extra in {"": {}, "_gelu": dict(activation="gelu", norm_first=True), "_batch": dict(batch_first=True)}.items():
    enc = nn.TransformerEncoderLayer(6, 2, 5, **options, **extra)
    src, tgt = ((2, 5, 6), (2, 4, 6)) if "batch_first" in extra else ((5, 2, 6), (4, 2, 6))
    of(enc, src, name="encoder_layer" + style)
    case("encoder_layer_masked" + style,
         lambda x, m=enc: m(x, torch.triu(torch.ones(5, 5), 1).bool(), padded), src, module=enc)
    dec = nn.TransformerDecoderLayer(6, 2, 5, **options, **extra)
    case("decoder_layer" + style, lambda x, y, m=dec: m(
        x, y, tgt_mask=causal, tgt_key_padding_mask=hidden, memory_key_padding_mask=padded), tgt, src, module=dec)
whole = nn.Transformer(6, 2, 2, 1, 5, dropout=0.0)
of(whole, (5, 2, 6), (4, 2, 6), name="transformer")
case("transformer_masked", lambda x, y: whole(
    x, y, tgt_mask=torch.where(causal, float("-inf"), 0.0), src_key_padding_mask=padded,
    memory_key_padding_mask=padded), (5, 2, 6), (4, 2, 6), module=whole)
encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(6, 2, 5, **options), 2, enable_nested_tensor=False)
of(encoder, (5, 6), name="encoder_unbatched")

lstm = nn.LSTMCell(3, 4)
case("lstm_cell", lambda x, h, c: lstm(x, (h, c)), (2, 3), (2, 4), (2, 4), module=lstm)
of(nn.LSTMCell(3, 4), (2, 3), name="lstm_cell_from_zero")
of(nn.GRUCell(3, 4), (2, 3), (2, 4), name="gru_cell")
of(nn.GRUCell(3, 4, bias=False), (3,), (4,), name="gru_cell_unbatched")
of(nn.RNNCell(3, 4), (2, 3), (2, 4), name="rnn_cell")
of(nn.RNNCell(3, 4, nonlinearity="relu"), (2, 3), (2, 4), name="rnn_cell_relu")

for axes, shape in {1: (2, 3, 5), 2: (2, 3, 2, 3), 3: (2, 3, 2, 2, 3)}.items():
    of(getattr(nn, f"InstanceNorm{axes}d")(3, affine=True), shape, name=f"instance_norm{axes}d")
    amounts = (1, 2, 0, 1, 1, 0)[:2 * axes]
    for kind in ("Reflection", "Replication"):
        of(getattr(nn, f"{kind}Pad{axes}d")(amounts), (1, 2, 3, 4, 3)[:axes + 2], name=f"{kind.lower()}_pad{axes}d")
    of(getattr(nn, f"ConstantPad{axes}d")((1, -1, 2, 0, 1, 1)[:2 * axes], 2.5), (1, 2, 3, 4, 3)[:axes + 2],
       name=f"constant_pad{axes}d")
of(nn.ZeroPad2d(1), (1, 2, 2, 3), name="zero_pad2d")
of(nn.PixelShuffle(2), (1, 8, 2, 3), name="pixel_shuffle")
of(nn.PixelUnshuffle(2), (1, 2, 4, 6), name="pixel_unshuffle")
for mode, shape in {"nearest": (1, 2, 3, 4), "bilinear": (1, 2, 3, 4), "bicubic": (1, 2, 3, 4), "linear": (1, 2, 5),
                    "trilinear": (1, 1, 2, 3, 2)}.items():
    of(nn.Upsample(scale_factor=2, mode=mode), shape, name=f"upsample_{mode}")
of(nn.Upsample(size=(5, 7), mode="bilinear", align_corners=True), (1, 2, 3, 4), name="upsample_corners")
of(nn.MaxPool3d(2, 1), (1, 2, 3, 3, 4), name="max_pool3d")
of(nn.MaxPool3d((2, 1, 2), 2, padding=(1, 0, 1), return_indices=True), (1, 2, 3, 3, 4), name="max_pool3d_indices")
of(nn.AvgPool3d(2, 1), (1, 2, 3, 3, 4), name="avg_pool3d")
of(nn.AvgPool3d((2, 3, 2), 2, padding=(1, 1, 0), ceil_mode=True, count_include_pad=False), (1, 2, 3, 3, 4),
   name="avg_pool3d_padded")
of(nn.AdaptiveAvgPool3d((2, 1, 3)), (1, 2, 3, 3, 4), name="adaptive_avg_pool3d")
of(nn.AdaptiveMaxPool2d((2, 3), return_indices=True), (1, 2, 3, 5), name="adaptive_max_pool2d")
pool, unpool = nn.MaxPool2d(2, 2, return_indices=True), nn.MaxUnpool2d(2)
case("max_unpool2d", lambda x: unpool(*pool(x)), (1, 2, 4, 6))
of(nn.Bilinear(3, 4, 2), (2, 5, 3), (2, 5, 4), name="bi_dense")
of(nn.ConvTranspose3d(2, 4, 2, stride=2, padding=1, output_padding=1, groups=2), (1, 2, 2, 3, 2), name="conv3d_transpose")
of(nn.Threshold(0.1, 7.0), (2, 5), name="threshold")
of(nn.LocalResponseNorm(3, alpha=6.0, beta=0.5, k=2.0), (1, 5, 2, 2), name="lrn")
of(nn.Unflatten(1, (2, 3)), (2, 6, 2), name="unflatten")

signs = torch.tensor([1.0, -1.0, -1.0, 1.0, 1.0])
for reduction in ("mean", "sum", "none"):
    r = dict(reduction=reduction)
    case(f"hinge_{reduction}", lambda x: nn.HingeEmbeddingLoss(0.3, **r)(x, signs), (5,))
    case(f"ranking_{reduction}", lambda x, y: nn.MarginRankingLoss(0.2, **r)(x, y, signs), (5,), (5,))
    case(f"triplet_{reduction}", lambda x, y, z: nn.TripletMarginLoss(0.4, 2, **r)(x, y, z), (3, 4), (3, 4), (3, 4))
    case(f"triplet_swap_{reduction}", lambda x, y, z: nn.TripletMarginLoss(0.9, 3, swap=True, **r)(x, y, z), (3, 4),
         (3, 4), (3, 4))
    case(f"gaussian_{reduction}", lambda x, y, v: nn.GaussianNLLLoss(full=True, **r)(x, y, v * v), (3, 4), (3, 4), (3, 4))
    case(f"ctc_{reduction}", lambda x: nn.CTCLoss(**r)(
        torch.log_softmax(3 * x, -1), torch.tensor([[1, 2, 2], [3, 1, 0]]), torch.tensor([7, 5]), torch.tensor([3, 2])),
        (7, 2, 4))
    case(f"ctc_infinite_{reduction}", lambda x: nn.CTCLoss(blank=3, zero_infinity=True, **r)(
        torch.log_softmax(3 * x, -1), torch.tensor([[1, 2, 2], [0, 1, 0]]), torch.tensor([3, 4]), torch.tensor([3, 2])),
        (4, 2, 4))


# Activations, at their defaults and with other arguments. PyTorch rounds the alpha of CELU and the sixth of Hardsigmoid to
# single precision.
for name, module in {
    "celu": nn.CELU(), "celu_alpha": nn.CELU(0.25), "elu": nn.ELU(), "gelu": nn.GELU("tanh"), "gelu_exact": nn.GELU(), "glu": nn.GLU(),
    "glu_rows": nn.GLU(0), "hard_shrink": nn.Hardshrink(), "hard_shrink_narrow": nn.Hardshrink(0.2),
    "hard_swish": nn.Hardswish(), "hard_tanh": nn.Hardtanh(), "hard_tanh_narrow": nn.Hardtanh(-0.1, 0.3), "identity": nn.Identity(),
    "leaky_relu": nn.LeakyReLU(0.2), "leaky_relu_steep": nn.LeakyReLU(0.6), "log_sigmoid": nn.LogSigmoid(),
    "log_softmax": nn.LogSoftmax(-1), "log_softmax_rows": nn.LogSoftmax(0), "mish": nn.Mish(), "relu": nn.ReLU(), "relu6": nn.ReLU6(),
    "selu": nn.SELU(), "silu": nn.SiLU(), "sigmoid": nn.Sigmoid(), "soft_shrink": nn.Softshrink(), "soft_shrink_narrow": nn.Softshrink(0.2),
    "softmax": nn.Softmax(-1), "softmax_rows": nn.Softmax(0), "softmin": nn.Softmin(-1), "softsign": nn.Softsign(), "tanh": nn.Tanh(),
    "tanh_shrink": nn.Tanhshrink(),
}.items():
    case(name, lambda x, m=module: m(8 * x), (4, 6))

case("hard_sigmoid", lambda x: (8 * x / 6 + 0.5).clamp(0, 1), (4, 6))

# Layers.
of(nn.Linear(3, 4), (2, 3), name="linear")
case("pad", lambda x: nn.functional.pad(x, (2, 0, 1, 2)), (2, 3, 4))
case("pad_reflected", lambda x: nn.functional.pad(x, (2, 0, 1, 2), "reflect"), (2, 3, 4))
# MindSpore's formula; PyTorch has none.
case("fast_gelu", lambda x: x / (1 + torch.exp(-1.702 * x.abs())) * torch.exp(0.851 * (x - x.abs())), (4, 6))
of(nn.Flatten(), (2, 3, 2), name="flatten")
of(nn.Flatten(0, 1), (2, 3, 2), name="flatten_first")
of(nn.Conv1d(4, 6, 3, stride=2, padding=1, dilation=2, groups=2), (2, 4, 9), name="conv1d")
of(nn.Conv1d(4, 6, 3, padding="same", bias=False), (2, 4, 5), name="conv1d_same")
of(nn.Conv3d(2, 4, 2, stride=2, padding=1, groups=2), (1, 2, 3, 4, 3), name="conv3d")
of(nn.ConvTranspose1d(4, 6, 3, stride=2, padding=1, groups=2), (2, 4, 5), name="conv1d_transpose")
of(nn.BatchNorm3d(3), (2, 3, 2, 2, 2), name="batch_norm3d")
of(nn.AvgPool1d(3, 2), (2, 3, 8), name="avg_pool1d")
of(nn.AvgPool1d(3, 2, padding=1, count_include_pad=False), (2, 3, 8), name="avg_pool1d_padded")
of(nn.AvgPool2d(3, 2), (2, 3, 7, 8), name="avg_pool2d")
of(nn.AvgPool2d((3, 2), (2, 1), padding=1, ceil_mode=True), (2, 3, 7, 8), name="avg_pool2d_padded")
of(nn.MaxPool1d(3, 2), (2, 3, 8), name="max_pool1d")
of(nn.MaxPool1d(3, 2, padding=1, dilation=2, return_indices=True), (2, 3, 8), name="max_pool1d_indices")
of(nn.MaxPool2d(3, 2), (2, 3, 7, 8), name="max_pool2d")
of(nn.AdaptiveAvgPool1d(3), (2, 3, 8), name="adaptive_avg_pool1d")
of(nn.AdaptiveAvgPool2d((2, 3)), (2, 3, 5, 7), name="adaptive_avg_pool2d")
of(nn.AdaptiveMaxPool1d(3, return_indices=True), (2, 3, 8), name="adaptive_max_pool1d")
of(nn.AdaptiveMaxPool3d((2, 1, 3), return_indices=True), (1, 2, 3, 3, 4), name="adaptive_max_pool3d")
case("lp_pool1d", lambda x: nn.LPPool1d(3, 2)(x + 1), (2, 3, 8))
case("lp_pool2d", lambda x: nn.LPPool2d(2, (2, 3), 2)(x + 1), (2, 3, 5, 7))
for axes, shape in {1: (1, 2, 6), 3: (1, 2, 4, 4, 4)}.items():
    pool, unpool = getattr(nn, f"MaxPool{axes}d")(2, 2, return_indices=True), getattr(nn, f"MaxUnpool{axes}d")(2)
    case(f"max_unpool{axes}d", lambda x, a=pool, b=unpool: b(*a(x)), shape)
of(nn.TransformerDecoder(nn.TransformerDecoderLayer(6, 2, 5, **options), 2), (4, 2, 6), (5, 2, 6), name="decoder")

# Losses.
classes, several = torch.tensor([2, 0, 1]), torch.tensor([[2, 0, -1, 1], [1, -1, 0, 2], [3, 2, 1, 0]])
weights = torch.tensor([0.5, 1.0, 2.0, 0.25])
both = torch.tensor([[1.0, -1.0, 1.0, -1.0], [-1.0, 1.0, 1.0, -1.0], [1.0, 1.0, -1.0, -1.0]])
for reduction in ("mean", "sum", "none"):
    r = dict(reduction=reduction)
    for name, loss in {"l1": nn.L1Loss(**r), "mse": nn.MSELoss(**r), "smooth_l1": nn.SmoothL1Loss(beta=0.3, **r),
                       "huber": nn.HuberLoss(delta=0.3, **r)}.items():
        case(f"{name}_{reduction}", lambda x, y, m=loss: m(x, y), (3, 4), (3, 4))
    case(f"bce_{reduction}", lambda x, y: nn.BCELoss(weights, **r)(torch.sigmoid(x), torch.sigmoid(y)), (3, 4), (3, 4))
    case(f"bce_logits_{reduction}", lambda x, y: nn.BCEWithLogitsLoss(weights, pos_weight=2 * weights, **r)(x, torch.sigmoid(y)),
         (3, 4), (3, 4))
    case(f"cross_entropy_{reduction}", lambda x: nn.CrossEntropyLoss(weights, ignore_index=1, label_smoothing=0.1, **r)(x, classes),
         (3, 4))
    case(f"cross_entropy_soft_{reduction}", lambda x, y: nn.CrossEntropyLoss(**r)(x, torch.softmax(y, -1)), (3, 4), (3, 4))
    case(f"nll_{reduction}", lambda x: nn.NLLLoss(weights, ignore_index=1, **r)(torch.log_softmax(x, -1), classes), (3, 4))
    case(f"kl_{reduction}", lambda x, y: nn.KLDivLoss(**r)(torch.log_softmax(x, -1), torch.softmax(y, -1)), (3, 4), (3, 4))
    case(f"cosine_{reduction}", lambda x, y: nn.CosineEmbeddingLoss(0.2, **r)(x, y, torch.tensor([1, -1, 1])), (3, 4), (3, 4))
    case(f"soft_margin_{reduction}", lambda x: nn.SoftMarginLoss(**r)(x, both), (3, 4))
    case(f"multi_margin_{reduction}", lambda x: nn.MultiMarginLoss(2, 0.7, weight=weights, **r)(x, classes), (3, 4))
    case(f"multi_label_margin_{reduction}", lambda x: nn.MultiLabelMarginLoss(**r)(x, several), (3, 4))
    case(f"multi_label_soft_margin_{reduction}", lambda x: nn.MultiLabelSoftMarginLoss(weights, **r)(x, both.relu()), (3, 4))
    case(f"poisson_{reduction}", lambda x, y: nn.PoissonNLLLoss(log_input=False, full=True, **r)(x * x + 0.5, 3 * y * y), (3, 4), (3, 4))
    case(f"poisson_log_{reduction}", lambda x, y: nn.PoissonNLLLoss(**r)(x, y * y), (3, 4), (3, 4))
    case(f"triplet_distance_{reduction}", lambda x, y, z: nn.TripletMarginWithDistanceLoss(margin=0.4, swap=True, **r)(x, y, z),
         (3, 4), (3, 4), (3, 4))



def trajectory(name, make, **arguments):
    """20 steps from the tensors 0 and 1 with the gradients 100 + t and 200 + t; kept after 3 and 20 steps."""
    params = [values((3, 4), 0).requires_grad_(), values((5,), 1).requires_grad_()]
    optimizer = make(params, **arguments)
    for t in range(20):
        for k, p in enumerate(params):
            p.grad = values(p.shape, 100 * (k + 1) + t)
        optimizer.step()
        if t in (2, 19):
            for k, p in enumerate(params):
                expected[f"{name}.step{t + 1}.{k}"] = p.detach().clone()
    for key in ("ax",):
        if key in optimizer.state[params[0]]:
            expected[f"{name}.{key}"] = optimizer.state[params[0]][key].clone()


optim = torch.optim
trajectory("asgd", optim.ASGD, lr=0.1, lambd=0.01, alpha=0.6, t0=4, weight_decay=0.1)
trajectory("asgd_plain", optim.ASGD, lr=0.05)
trajectory("rprop", optim.Rprop, lr=0.02)
trajectory("rprop_bounds", optim.Rprop, lr=0.02, etas=(0.4, 1.5), step_sizes=(0.01, 0.03))
trajectory("nadam", optim.NAdam, lr=0.01)
trajectory("nadam_decay", optim.NAdam, lr=0.02, betas=(0.8, 0.95), eps=1e-3, weight_decay=0.1, momentum_decay=0.1)
trajectory("radam", optim.RAdam, lr=0.01)
trajectory("radam_decay", optim.RAdam, lr=0.02, betas=(0.8, 0.9), eps=1e-3, weight_decay=0.1)
trajectory("rmsprop", optim.RMSprop, lr=0.01)
trajectory("rmsprop_all", optim.RMSprop, lr=0.02, alpha=0.9, eps=1e-4, weight_decay=0.1, momentum=0.8, centered=True)
trajectory("rmsprop_up", optim.RMSprop, lr=0.01, maximize=True)
trajectory("adagrad", optim.Adagrad, lr=0.05)
trajectory("adagrad_all", optim.Adagrad, lr=0.05, lr_decay=0.1, weight_decay=0.1, initial_accumulator_value=0.2, eps=1e-3)
trajectory("adadelta", optim.Adadelta, lr=0.5, rho=0.8, eps=1e-4, weight_decay=0.1)
trajectory("adamax", optim.Adamax, lr=0.02, betas=(0.8, 0.9), eps=1e-3, weight_decay=0.1)
trajectory("adam", optim.Adam, lr=0.02, betas=(0.8, 0.9), eps=1e-3, weight_decay=0.1, amsgrad=True)
trajectory("adam_up", optim.Adam, lr=0.02, maximize=True)
trajectory("adamw", optim.AdamW, lr=0.02, betas=(0.8, 0.9), eps=1e-3, weight_decay=0.1, amsgrad=True)
trajectory("adamw_plain", optim.AdamW, lr=0.02)
trajectory("sgd", optim.SGD, lr=0.02, momentum=0.9, dampening=0.2, weight_decay=0.1)
trajectory("sgd_nesterov", optim.SGD, lr=0.02, momentum=0.9, nesterov=True, maximize=True)

header, data = {}, b""
for name, t in expected.items():
    raw = t.numpy().tobytes()
    header[name] = dict(dtype="I64" if t.dtype == torch.int64 else "F64", shape=list(t.shape),
                        data_offsets=[len(data), len(data) + len(raw)])
    data += raw
text = json.dumps(header, separators=(",", ":")).encode()
text += b" " * (-len(text) % 8)
pathlib.Path(__file__).with_name("expected.safetensors").write_bytes(len(text).to_bytes(8, "little") + text + data)
