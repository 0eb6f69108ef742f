"""Writes the samples beside it with PyPI's gguf package: a tensor of each type that is read, with its numbers in numbers.npz.

usage: make.py"""
from pathlib import Path

import gguf
import numpy as np

HERE = Path(__file__).parent
Type = gguf.GGMLQuantizationType


def main():
    random = np.random.default_rng(1)
    writer = gguf.GGUFWriter(str(HERE / "types.gguf"), "llama")
    writer.add_name("a sample")
    writer.add_uint32("llama.block_count", 3)
    writer.add_float32("llama.rope.freq_base", 10000.0)
    writer.add_bool("tokenizer.ggml.add_bos_token", True)
    writer.add_int64("sample.large", -(2**40))
    writer.add_array("tokenizer.ggml.tokens", ["<s>", "ä", ""])
    writer.add_array("tokenizer.ggml.scores", [0.0, -1.5, 2.0])
    writer.add_array("tokenizer.ggml.token_type", [3, 1, 1])
    numbers = {}
    x = random.standard_normal((3, 256), dtype=np.float32)
    x[1, :32] = 0
    for name, kind in (("f32", Type.F32), ("f16", Type.F16), ("bf16", Type.BF16), ("q8_0", Type.Q8_0), ("q4_0", Type.Q4_0)):
        data = gguf.quantize(x, kind) if name != "f32" else x
        writer.add_tensor(name, data, raw_dtype=kind)
        numbers[name] = gguf.dequantize(data, kind) if name != "f32" else x
    # The package reads these two and does not write them: any bytes are numbers, but for the scales.
    for name, kind, size, scales in (("q4_k", Type.Q4_K, 144, (0, 2)), ("q6_k", Type.Q6_K, 210, (208,))):
        blocks = random.integers(0, 256, (3, size), dtype=np.uint8)
        for at in scales:
            blocks[:, at:at + 2] = random.standard_normal(3).astype(np.float16).view(np.uint8).reshape(3, 2)
        writer.add_tensor(name, blocks, raw_dtype=kind)
        numbers[name] = gguf.dequantize(blocks, kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    np.savez_compressed(HERE / "numbers.npz", **numbers)


main()
