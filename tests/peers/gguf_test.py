#!/usr/bin/env python3
"""GGUF files of PyPI's gguf package are read with its numbers, and it reads ours; decoders of PyPI's transformers give its scores.

usage: gguf_test.py LUNARIA
Needs a Python with gguf, torch and transformers: .peers, or LUNARIA_PEERS. Without one the test is skipped (77).
"""
import os
import subprocess
import sys
import tempfile
from pathlib import Path

CHECK = """
import sys
import gguf, numpy as np
ours = gguf.GGUFReader(sys.argv[1])
numbers = np.load(sys.argv[2])
assert len(ours.tensors) == 7, ours.tensors
for tensor in ours.tensors:
    got = gguf.dequantize(tensor.data, tensor.tensor_type).astype(np.float32).reshape(numbers[tensor.name].shape)
    assert np.array_equal(got, numbers[tensor.name].astype(np.float32)), tensor.name
fields = {name: field.contents() for name, field in ours.fields.items()}
assert fields["general.name"] == "a sample" and fields["llama.block_count"] == 3, fields
assert fields["tokenizer.ggml.tokens"] == ["<s>", "ä", ""] and fields["tokenizer.ggml.token_type"] == [3, 1, 1], fields
"""
REWRITE = """
local ms = require "lunaria"
local tensors, metadata, forms = ms.load_gguf "tests/data/samples/gguf/types.gguf"
tensors.q8_0, tensors.q4_0 = tensors.f32, tensors.f32
ms.save_gguf(arg[1], tensors, { metadata = metadata, forms = forms })
"""


def main():
    python = Path(os.environ.get("LUNARIA_PEERS", ".peers")) / "bin/python3"
    if not python.exists() or subprocess.run([python, "-c", "import gguf, numpy, torch, transformers"], stderr=subprocess.DEVNULL,
                                             check=False).returncode:
        print("skipped: there is no Python with gguf, torch and transformers in .peers, and LUNARIA_PEERS names none")
        return 77
    with tempfile.TemporaryDirectory() as folder:
        ours, script = Path(folder) / "ours.gguf", Path(folder) / "rewrite.lua"
        script.write_text(REWRITE)
        subprocess.run([sys.argv[1], script, ours], check=True)
        subprocess.run([python, "-c", CHECK, ours, "tests/data/samples/gguf/numbers.npz"], check=True)
        subprocess.run([python, "tests/lua/lite/language/make.py", folder, "--large"], check=True, capture_output=True)
        return subprocess.run([sys.argv[1], "tests/lua/lite/language_test.lua", folder], check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
