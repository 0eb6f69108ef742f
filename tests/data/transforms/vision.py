"""Writes what MindSpore, Pillow and torchvision make of two images, for tests/lua/data/vision_test.lua.

usage: vision.py            in an environment with mindspore, pillow, torch, torchvision and safetensors"""
import json
from pathlib import Path

import numpy as np
import torch
from mindspore.dataset import vision as v
from mindspore.dataset.vision import Inter, Border, ConvertMode, SliceMode
from PIL import Image
from safetensors.numpy import save_file
from torchvision.transforms.v2 import functional as tv

HERE = Path(__file__).resolve().parent
random = np.random.RandomState(7)
small = random.randint(0, 256, (6, 7, 3)).astype(np.uint8)
y, x = np.mgrid[0:24, 0:31]
smooth = np.stack([128 + 100 * np.sin(x / 5 + y / 9), 4 * x + 5 * y, 255 * np.exp(-((x - 15) ** 2 + (y - 12) ** 2) / 90)], 2)
smooth = np.clip(smooth + random.normal(0, 4, smooth.shape), 0, 255).astype(np.uint8)
INPUTS = {"small": small, "smooth": smooth, "floats": (smooth / 255).astype(np.float32), "grey": smooth[:, :, 1].copy(),
          "planes": np.ascontiguousarray((smooth / 255).astype(np.float32).transpose(2, 0, 1))}

# Input, what Lua calls, what Python calls, how far elements may be apart.
CASES = [
    ("small", "CenterCrop(3)", v.CenterCrop(3), 0),
    ("small", "CenterCrop({ 9, 4 })", v.CenterCrop((9, 4)), 0),
    ("small", "Crop({ 1, 2 }, { 3, 4 })", v.Crop((1, 2), (3, 4)), 0),
    ("small", "HWC2CHW()", v.HWC2CHW(), 0),
    ("small", "HorizontalFlip()", v.HorizontalFlip(), 0),
    ("small", "VerticalFlip()", v.VerticalFlip(), 0),
    ("small", "Pad({ 1, 2, 3, 4 }, { 10, 20, 30 })", v.Pad((1, 2, 3, 4), (10, 20, 30)), 0),
    ("small", "Pad({ 1, 2 }, 9)", v.Pad((1, 2), 9), 0),
    ("small", "Pad(4, { padding_mode = 'edge' })", v.Pad(4, 0, Border.EDGE), 0),
    ("small", "Pad(4, { padding_mode = 'reflect' })", v.Pad(4, 0, Border.REFLECT), 0),
    ("small", "Pad(4, { padding_mode = 'symmetric' })", v.Pad(4, 0, Border.SYMMETRIC), 0),
    ("small", "PadToSize({ 9, 12 }, nil, { 1, 2, 3 })", v.PadToSize((9, 12), None, (1, 2, 3)), 0),
    ("small", "PadToSize({ 9, 12 }, { 2, 1 })", v.PadToSize((9, 12), (2, 1)), 0),
    ("small", "Erase(1, 2, 3, 4, { 7, 8, 9 })", v.Erase(1, 2, 3, 4, (7, 8, 9)), 0),
    ("small", "Normalize({ 100, 110, 120 }, { 50, 60, 70 })", v.Normalize([100.0, 110.0, 120.0], [50.0, 60.0, 70.0]), 1e-5),
    ("planes", "Normalize({ 0.1, 0.2, 0.3 }, { 0.5, 0.6, 0.7 }, false)", v.Normalize([0.1, 0.2, 0.3], [0.5, 0.6, 0.7], False), 1e-5),
    ("small", "NormalizePad({ 100, 110, 120 }, { 50, 60, 70 })", 
     lambda i: np.pad((i - np.float32([100, 110, 120])) / np.float32([50, 60, 70]), ((0, 0), (0, 0), (0, 1))), 1e-5),
    ("small", "Rescale(1 / 255, -0.5)", v.Rescale(1 / 255, -0.5), 1e-6),
    ("small", "ToTensor()", v.ToTensor(), 1e-7),
    ("smooth", "Resize({ 11, 13 })", v.Resize((11, 13)), 1),
    ("smooth", "Resize({ 50, 40 })", v.Resize((50, 40)), 1),
    ("smooth", "Resize(10)", v.Resize(10), 1),
    ("grey", "Resize({ 11, 40 })", v.Resize((11, 40)), 1),
    ("floats", "Resize({ 11, 40 })", v.Resize((11, 40)), 1e-5),
    ("smooth", "Resize({ 11, 40 }, 'nearest')", v.Resize((11, 40), Inter.NEAREST), 0),
    ("smooth", "Resize({ 11, 40 }, 'bicubic')", v.Resize((11, 40), Inter.BICUBIC), 1),
    ("floats", "Resize({ 50, 13 }, 'bicubic')", v.Resize((50, 13), Inter.BICUBIC), 1e-4),
    ("smooth", "Resize({ 11, 13 }, 'area')", v.Resize((11, 13), Inter.AREA), 1),
    ("smooth", "Resize({ 12, 31 }, 'area')", v.Resize((12, 31), Inter.AREA), 1),
    ("smooth", "Resize({ 50, 64 }, 'area')", v.Resize((50, 64), Inter.AREA), 1),
    ("smooth", "Resize({ 11, 13 }, 'pilcubic')",
     lambda i: np.array(Image.fromarray(i).resize((13, 11), Image.BICUBIC)), 1),
    ("smooth", "Resize({ 40, 50 }, 'pilcubic')",
     lambda i: np.array(Image.fromarray(i).resize((50, 40), Image.BICUBIC)), 1),
    ("smooth", "Resize({ 11, 13 }, 'antialias')",
     lambda i: np.array(Image.fromarray(i).resize((13, 11), Image.LANCZOS)), 1),
    ("smooth", "ResizedCrop(2, 3, 15, 20, { 8, 9 })", v.ResizedCrop(2, 3, 15, 20, (8, 9)), 1),
    ("smooth", "AdjustBrightness(1.3)", v.AdjustBrightness(1.3), 0),
    ("floats", "AdjustBrightness(0.4)", v.AdjustBrightness(0.4), 1e-6),
    ("smooth", "AdjustContrast(0.4)", v.AdjustContrast(0.4), 1),
    ("smooth", "AdjustContrast(1.9)", v.AdjustContrast(1.9), 1),
    ("smooth", "AdjustSaturation(0.3)", v.AdjustSaturation(0.3), 1),
    ("smooth", "AdjustSaturation(1.7)", v.AdjustSaturation(1.7), 1),
    ("smooth", "AdjustHue(0.2)", v.AdjustHue(0.2), 1),
    ("smooth", "AdjustHue(-0.4)", v.AdjustHue(-0.4), 1),
    ("smooth", "AdjustGamma(2.2)", v.AdjustGamma(2.2), 0),
    ("floats", "AdjustGamma(0.5, 0.9)", lambda i: tv.adjust_gamma(torch.tensor(i), 0.5, 0.9).numpy(), 1e-5),
    ("smooth", "AdjustSharpness(0.2)", v.AdjustSharpness(0.2), 1),
    ("smooth", "AdjustSharpness(1.8)", v.AdjustSharpness(1.8), 1),
    ("smooth", "AutoContrast()", v.AutoContrast(), 0),
    ("smooth", "AutoContrast(10, { 0, 255 })", v.AutoContrast(10.0, [0, 255]), 0),
    ("smooth", "Equalize()", v.Equalize(), 0),
    ("smooth", "Invert()", v.Invert(), 0),
    ("smooth", "Posterize(3)", v.Posterize(3), 0),
    ("smooth", "Solarize(100)", v.Solarize(100), 0),
    ("smooth", "Solarize({ 100, 150 })", v.Solarize((100, 150)), 0),
    ("smooth", "Grayscale()", lambda i: np.array(Image.fromarray(i).convert("L")), 0),
    ("smooth", "ConvertColor('COLOR_RGB2BGR')", v.ConvertColor(ConvertMode.COLOR_RGB2BGR), 0),
    ("smooth", "ConvertColor('COLOR_BGR2GRAY')", v.ConvertColor(ConvertMode.COLOR_BGR2GRAY), 0),
    ("smooth", "ConvertColor('COLOR_RGB2RGBA')", v.ConvertColor(ConvertMode.COLOR_RGB2RGBA), 0),
    ("smooth", "ConvertColor('COLOR_RGB2BGRA')", v.ConvertColor(ConvertMode.COLOR_RGB2BGRA), 0),
    ("floats", "RgbToHsv(true)", v.RgbToHsv(True), 1e-5),
    ("planes", "RgbToHsv()", v.RgbToHsv(), 1e-5),
    ("floats", "HsvToRgb(true)", v.HsvToRgb(True), 1e-5),
    ("smooth", "GaussianBlur(3)", v.GaussianBlur(3), 1),
    ("smooth", "GaussianBlur({ 5, 7 }, { 1.2, 2.5 })", v.GaussianBlur((5, 7), (1.2, 2.5)), 1),
    ("floats", "GaussianBlur(5, 1.5)", v.GaussianBlur(5, 1.5), 1e-5),
    ("smooth", "Rotate(30)", v.Rotate(30), 0),
    ("smooth", "Rotate(30, 'bilinear', { fill_value = 60 })", v.Rotate(30, Inter.LINEAR, fill_value=60), 1),
    ("smooth", "Rotate(-50, 'bicubic')", v.Rotate(-50, Inter.BICUBIC), 2),
    ("smooth", "Rotate(30, 'bilinear', true)", v.Rotate(30, Inter.LINEAR, True), 1),
    ("smooth", "Rotate(30, { center = { 2, 5 } })", v.Rotate(30, center=(2, 5)), 0),
    ("smooth", "Affine(15, { 0.1, -0.2 }, 1.2, { 10, 5 })", v.Affine(15, [0.1, -0.2], 1.2, [10, 5]), 0),
    ("smooth", "Affine(15, { 0.1, -0.2 }, 0.8, { 10, 5 }, 'bilinear', 9)", v.Affine(15, [0.1, -0.2], 0.8, [10, 5], Inter.BILINEAR, 9), 1),
    ("smooth", "Perspective({ { 0, 0 }, { 30, 0 }, { 30, 23 }, { 0, 23 } }, { { 3, 2 }, { 28, 1 }, { 25, 20 }, { 1, 22 } })",
     v.Perspective([[0, 0], [30, 0], [30, 23], [0, 23]], [[3, 2], [28, 1], [25, 20], [1, 22]]), 1),
    ("smooth", "Perspective({ { 0, 0 }, { 30, 0 }, { 30, 23 }, { 0, 23 } }, { { 3, 2 }, { 28, 1 }, { 25, 20 }, { 1, 22 } }, 'nearest')",
     v.Perspective([[0, 0], [30, 0], [30, 23], [0, 23]], [[3, 2], [28, 1], [25, 20], [1, 22]], Inter.NEAREST), 0),
    ("smooth", "SlicePatches(5, 4)", lambda i: v.SlicePatches(5, 4)(i)[7], 0),
    ("smooth", "SlicePatches(5, 4, 'drop')", lambda i: v.SlicePatches(5, 4, SliceMode.DROP)(i)[7], 0),
    ("smooth", "FiveCrop({ 9, 8 })", lambda i: tv.five_crop(torch.tensor(i.transpose(2, 0, 1)), [9, 8])[3].numpy().transpose(1, 2, 0), 0),
    ("smooth", "TenCrop({ 9, 8 })", lambda i: tv.ten_crop(torch.tensor(i.transpose(2, 0, 1)), [9, 8])[7].numpy().transpose(1, 2, 0), 0),
]
# Which of several results is kept.
KEPT = {"SlicePatches": 8, "FiveCrop": 4, "TenCrop": 8}


def main():
    tensors = {f"input.{name}": image for name, image in INPUTS.items()}
    cases = []
    for number, (name, lua, call, apart) in enumerate(CASES):
        result = np.ascontiguousarray(call(INPUTS[name].copy()))
        tensors[f"case.{number}"] = result
        cases.append({"input": name, "lua": lua, "apart": apart, "kept": KEPT.get(lua.split("(")[0], 1)})
    save_file(tensors, HERE / "vision.safetensors")
    (HERE / "vision.json").write_text(json.dumps(cases, indent=0) + "\n")


main()
