"""Writes byte_pairs/: tokens that the package tokenizers learnt from a text, and what it makes of other texts.

    python3 tests/lua/zoo/make_tokens.py        (needs tokenizers)"""
import json
from pathlib import Path

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

FOLDER = Path(__file__).parent / "byte_pairs"
LEARNT = Path("notebooks/zoo/README.md").read_text().splitlines()[0] * 2 + """
Each file gives functions that make a network: the networks are given a number of trained parameters. The numbers are compared
with those that are known, and the networks are called. I'm sure that it's what you'd want; we've 1234 of them, they'll do.
"""
TEXTS = [
    "", " ", "Hello world", "  two  spaces   and more ", "line\nnext\n\n  third\ttab", "I'm, you're, we've, they'll, he'd, can't, it's 'so'",
    "numbers 12 3.14 0x1F 007", "Größe naïve façade", "Привет, мир", "日本語のテキスト、です。", "emoji 🙂👍 and ™ © €5", "x²+y³=½",
    "the networks are trained", "a'sb 'S don''t", "no\u00a0break \u2003em", "\u2018quoted\u2019 \u2014 dash\u2026", "e\u0301 combined",
    "tail space \n", "\r\nwindows\r\n", "٣ arabic ५ devanagari",
]


def main():
    tokens = Tokenizer(models.BPE())
    tokens.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokens.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    tokens.train_from_iterator([LEARNT], trainers.BpeTrainer(vocab_size=330, initial_alphabet=alphabet, show_progress=False))
    FOLDER.mkdir(exist_ok=True)
    tokens.model.save(str(FOLDER))
    rows = [{"text": text, "words": [w for w, _ in tokens.pre_tokenizer.pre_tokenize_str(text)], "ids": tokens.encode(text).ids} for text in TEXTS]
    (FOLDER / "expected.json").write_text(json.dumps(rows, indent=None).replace("}, {", "},\n{") + "\n")


main()
