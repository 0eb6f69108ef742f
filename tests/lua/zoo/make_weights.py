"""Writes weights/: small networks of transformers and torchvision with random weights, and what they give.

    python3 tests/lua/zoo/make_weights.py [FOLDER]     (needs PyTorch, transformers, torchvision, safetensors)

The files have the names that published weights have. Tests read them without these packages. With a folder and --large the
networks are larger ones, for tests/lua/zoo/peers_test.py."""
import json
import sys
from pathlib import Path

import torch
import torchvision
import transformers
from safetensors.torch import save_file

ARGUMENTS = [a for a in sys.argv[1:] if not a.startswith("--")]
FOLDER = Path(ARGUMENTS[0]) if ARGUMENTS else Path(__file__).parent / "weights"
LARGE = "--large" in sys.argv
RESULTS = {}


def randomized(model):
    """Weights far from their first values, so that every one counts."""
    generator = torch.Generator().manual_seed(1)
    for name, tensor in model.state_dict().items():
        if tensor.dtype.is_floating_point:
            size = 0.02 if LARGE else 0.2
            tensor.copy_(torch.randn(tensor.shape, generator=generator) * size + (1.0 if "running_var" in name or tensor.dim() == 1 else 0.0))
            if "running_var" in name:
                tensor.abs_()
    return model.eval()


def write(path, tensors):
    save_file({name: tensor.contiguous() for name, tensor in tensors.items()}, FOLDER / path, metadata={"format": "pt"})


def note(name, config, inputs, outputs):
    RESULTS[name] = {"config": config, "inputs": [x.tolist() for x in inputs],
                     "outputs": [[round(v, 5) for v in y.flatten().tolist()] for y in outputs]}


def tokens(vocabulary):
    return torch.randint(0, vocabulary, (2, 7), generator=torch.Generator().manual_seed(2))


def gpt2():
    sizes = {"n_embd": 192, "n_layer": 6, "n_head": 6} if LARGE else {"n_embd": 16, "n_layer": 2, "n_head": 4}
    config = transformers.GPT2Config(vocab_size=53, n_positions=16, **sizes)
    model = randomized(transformers.GPT2LMHeadModel(config))
    x = tokens(53)
    named = {n: t for n, t in model.state_dict().items() if n != "lm_head.weight"}
    # In two files with an index, as large models are published.
    first = {n: t for n, t in named.items() if ".h.0." not in n}
    second = {n: t for n, t in named.items() if ".h.0." in n}
    (FOLDER / "gpt2").mkdir(exist_ok=True)
    parts = {"model-00001-of-00002.safetensors": first, "model-00002-of-00002.safetensors": second}
    for file, tensors in parts.items():
        write(f"gpt2/{file}", tensors)
    weight_map = {n: file for file, tensors in parts.items() for n in tensors}
    (FOLDER / "gpt2/model.safetensors.index.json").write_text(json.dumps({"metadata": {}, "weight_map": weight_map}, indent=1) + "\n")
    note("gpt2", {"vocabulary": 53, "length": 16, "width": config.n_embd, "layers": config.n_layer, "heads": config.n_head}, [x],
         [model(x).logits])


def bert():
    width, layers, heads = (192, 4, 6) if LARGE else (16, 2, 4)
    config = transformers.BertConfig(vocab_size=53, max_position_embeddings=16, hidden_size=width, num_hidden_layers=layers,
                                     num_attention_heads=heads, intermediate_size=4 * width)
    model = randomized(transformers.BertForPreTraining(config))
    x = tokens(53)
    segments = (torch.arange(7) > 3).long().expand(2, 7)
    mask = torch.ones(2, 7, dtype=torch.long)
    mask[1, 5:] = 0
    named = {n: t for n, t in model.state_dict().items() if not n.startswith("cls.predictions.decoder")}
    write("bert.safetensors", named)
    features = model.bert(x, attention_mask=mask, token_type_ids=segments)
    scores = model(x, attention_mask=mask, token_type_ids=segments).prediction_logits
    kept = mask.bool()
    note("bert", {"vocabulary": 53, "length": 16, "width": width, "layers": layers, "heads": heads}, [x, segments, mask],
         [features.last_hidden_state[kept], features.pooler_output, scores[kept]])


class Small(torchvision.models.resnet.ResNet):
    """torchvision's ResNet-50 of other widths and depths."""

    def __init__(self, width, counts, classes):
        torch.nn.Module.__init__(self)
        block = torchvision.models.resnet.Bottleneck
        self._norm_layer, self.inplanes, self.dilation, self.groups, self.base_width = torch.nn.BatchNorm2d, width, 1, 1, 64
        self.conv1 = torch.nn.Conv2d(3, width, 7, 2, 3, bias=False)
        self.bn1, self.relu, self.maxpool = torch.nn.BatchNorm2d(width), torch.nn.ReLU(), torch.nn.MaxPool2d(3, 2, 1)
        for i, count in enumerate(counts):
            setattr(self, f"layer{i + 1}", self._make_layer(block, width << i, count, stride=1 if i == 0 else 2))
        self.avgpool, self.fc = torch.nn.AdaptiveAvgPool2d(1), torch.nn.Linear(32 * width, classes)


def resnet():
    width, counts = (16, [3, 4, 6, 3]) if LARGE else (2, [1, 1, 1, 1])
    x = torch.sin(torch.arange(3 * 32 * 32) * 0.37).reshape(1, 3, 32, 32)  # the test makes the same picture
    model = randomized(Small(width, counts, 5))
    write("resnet_torchvision.safetensors", model.state_dict())
    note("resnet_torchvision", {"width": width, "counts": counts}, [], [model(x)])
    config = transformers.ResNetConfig(embedding_size=width, hidden_sizes=[4 * width << i for i in range(4)], depths=counts,
                                       num_labels=5)
    model = randomized(transformers.ResNetForImageClassification(config))
    write("resnet_transformers.safetensors", model.state_dict())
    note("resnet_transformers", {"width": width, "counts": counts}, [], [model(x).logits])


FOLDER.mkdir(exist_ok=True)
with torch.no_grad():
    gpt2()
    bert()
    resnet()
for path in FOLDER.rglob("*.safetensors"):
    path.chmod(0o644)
(FOLDER / "expected.json").write_text(json.dumps(RESULTS) + "\n")
