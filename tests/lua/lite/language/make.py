"""Writes small random models of PyPI's transformers, with tokens and the scores that it gives for them, to a folder: beside this file,
or the one that is named. --large: larger ones, for the test with the package at hand.

usage: make.py [FOLDER [--large]]"""
import json
import sys
from pathlib import Path

import torch
import transformers as t


def main():
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent
    large = "--large" in sys.argv
    torch.manual_seed(0)
    vocabulary, width, inner, layers, count = (96, 64, 96, 3, 40) if large else (24, 16, 24, 2, 12)
    base = {"vocab_size": vocabulary, "hidden_size": width, "intermediate_size": inner, "num_hidden_layers": layers,
            "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 64, "pad_token_id": None, "bos_token_id": 1,
            "eos_token_id": 2}
    scaled = {"rope_type": "llama3", "rope_theta": 10000.0, "factor": 4.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
              "original_max_position_embeddings": 16}
    models = {
        "llama": t.LlamaForCausalLM(t.LlamaConfig(**base, rope_parameters=scaled)),
        "qwen2": t.Qwen2ForCausalLM(t.Qwen2Config(**base, tie_word_embeddings=True)),
        "qwen3": t.Qwen3ForCausalLM(t.Qwen3Config(**base, head_dim=8)),
        "gpt2": t.GPT2LMHeadModel(t.GPT2Config(vocab_size=vocabulary, n_embd=width, n_layer=layers, n_head=4, n_positions=64,
                                               bos_token_id=1, eos_token_id=2)),
    }
    expected = {}
    for name, model in models.items():
        model.eval()
        with torch.no_grad():
            for p in model.parameters():
                p += torch.randn_like(p) * 0.1
            tokens = torch.randint(0, vocabulary, (1, count))
            scores = model(tokens).logits
            written = model.generate(tokens, max_new_tokens=8, do_sample=False, eos_token_id=None, pad_token_id=0)
        model.save_pretrained(folder / name, max_shard_size="10KB" if name == "llama" else "5GB")
        (folder / name / "generation_config.json").unlink()
        expected[name] = {"tokens": tokens.tolist(), "scores": [round(x, 6) for x in scores.flatten().tolist()],
                          "written": written[0, count:].tolist()}
    (folder / "expected.json").write_text(json.dumps(expected) + "\n")


main()
