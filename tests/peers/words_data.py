"""Texts and tokenizers for the tests of ms.lite.Tokenizer, made with the package tokenizers.

usage: words_data.py FOLDER            writes FOLDER/NAME.json and FOLDER/expected.json: what tests/lua/lite_words_test.lua reads"""
import json
import random
import sys
import unicodedata
from pathlib import Path

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

ROOT = Path(__file__).resolve().parents[2]
LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
QWEN = LLAMA3.replace("{1,3}", "")
DEEPSEEK = (r"[!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+"
            r"|\s+(?!\S)|\s+")


def ordinary():
    lines = []
    for path in sorted([*ROOT.glob("*.md"), *ROOT.glob("core/**/*.md"), *ROOT.glob("interpreter/**/*.md"), *ROOT.glob("tests/*/*.md"),
                        *ROOT.glob("interpreter/lua/lunaria/*.lua")]):
        lines += [line for line in path.read_text().splitlines() if line.strip()]
    return lines


PIECES = [
    "Hello", " world", "don't", " I'LL", " we've", "  ", "\t", "\r\n", "\n\n", " 12345", "3.14", "x=1;", " naïve", " café", " cafe\u0301",
    "Ångström", "A\u030angstro\u0308m", "ﬁne", "①②", "½", "Ⅷ", "ｆｕｌｌ", "日本語", "中文字", "한국어", "\u1112\u1161\u11ab", "ไทย", "עברית", "العربية",
    "हिन्दी", "Привет", "Ελληνικά", "ΣΑΣ", "İstanbul", "ſ", "K", "ß", "😀", "👩‍👩‍👧‍👦", "🏳️‍🌈", "🇩🇪", "e\u0301\u0327\u0323", "\u0323\u0301", "q\u0323\u0307",
    "\u00a0", "\u2003", "\u2028", "\u3000", "\u200b", "\u200d", "\ufeff", "\u00ad", "\ufffd", "\x00", "\x1b[0m", "\x7f", "\u0085", "▁", "▁▁", "Ġ",
    "<s>", "</s>", "<|end|>", " <|end|> ", "<mask>", "x<mask>y", " <mask> ", "[CLS]", "##ing", "<0x41>", "<unk>", "word", "words", "sword",
    "special", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "....", "!?!?", "--", "((", "_snake_case", "CamelCase", "https://example.org/a?b=c", "\U0001f9ff",
    "\U00020000", "ﷺ", "\u0344", "가", "\u1100\u1161", "Ω", "\u2126", "𝒳", "x²", "a\u0338", "=\u0338", "don’t", "“quoted”", "…", "\u180e", "\u0e33"]


def hostile(count, seed):
    draw = random.Random(seed)
    lines = []
    for _ in range(count):
        kind = draw.random()
        if kind < 0.7:
            line = "".join(draw.choice(PIECES) for _ in range(draw.randint(1, 12)))
        elif kind < 0.85:
            line = "".join(chr(draw.choice([draw.randint(0, 0x7F), draw.randint(0x80, 0x7FF), draw.randint(0x800, 0xD7FF)]))
                           for _ in range(draw.randint(1, 20)))
        elif kind < 0.95:
            line = draw.choice(PIECES) * draw.randint(2, 40)
        else:
            line = "".join(chr(draw.randint(0x10000, 0x1FFFF)) for _ in range(draw.randint(1, 8)))
        lines.append(line)
    return [line for line in lines if is_known(line)]


def is_known(line):
    """Characters that are too new for one of the libraries' tables of Unicode are left out."""
    return all(unicodedata.ucd_3_2_0.category(c) not in ("Cn", "Co", "Cs") or any(c in piece for piece in PIECES) for c in line)


def trained(model, trainer, texts, **parts):
    tokenizer = Tokenizer(model)
    for name, part in parts.items():
        setattr(tokenizer, name, part)
    tokenizer.train_from_iterator(texts, trainer)
    return tokenizer


def with_added(tokenizer):
    tokenizer.add_special_tokens([AddedToken("<|end|>", special=True, normalized=False)])
    tokenizer.add_tokens([AddedToken("<mask>", lstrip=True, rstrip=False), AddedToken("word", single_word=True),
                          AddedToken("Special", normalized=True)])
    return tokenizer


def tokenizers(texts, size):
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    bpe = {"trainer": trainers.BpeTrainer(vocab_size=size, initial_alphabet=alphabet, special_tokens=["<s>", "</s>"], show_progress=False)}
    made = {}
    gpt2 = trained(models.BPE(), bpe["trainer"], texts, pre_tokenizer=pre_tokenizers.ByteLevel(add_prefix_space=False),
                   decoder=decoders.ByteLevel(), post_processor=processors.ByteLevel(trim_offsets=True))
    made["gpt2"] = with_added(gpt2)
    roberta = trained(models.BPE(), bpe["trainer"], texts, pre_tokenizer=pre_tokenizers.ByteLevel(add_prefix_space=True),
                      decoder=decoders.ByteLevel(), post_processor=processors.RobertaProcessing(("</s>", 1), ("<s>", 0)))
    made["roberta"] = with_added(roberta)
    for name, pattern, normalizer in [("llama3", LLAMA3, None), ("qwen", QWEN, normalizers.NFC()), ("deepseek", DEEPSEEK, normalizers.Sequence([]))]:
        cut = pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(pattern), "isolated"),
                                       pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
        one = trained(models.BPE(ignore_merges=name == "llama3"), bpe["trainer"], texts, pre_tokenizer=cut, decoder=decoders.ByteLevel(),
                      **({"normalizer": normalizer} if normalizer else {}))
        if name == "llama3":
            one.post_processor = processors.Sequence([processors.ByteLevel(trim_offsets=True), processors.TemplateProcessing(
                single="<s> $A", pair="<s> $A <s>:1 $B:1", special_tokens=[("<s>", 0)])])
        made[name] = with_added(one)
    bytes_ = [f"<0x{i:02X}>" for i in range(256)]
    llama = trained(models.BPE(unk_token="<unk>", fuse_unk=True, byte_fallback=True), trainers.BpeTrainer(
        vocab_size=size, special_tokens=["<unk>", "<s>", "</s>", *bytes_], limit_alphabet=80, show_progress=False), texts,
        normalizer=normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")]),
        decoder=decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]))
    llama.post_processor = processors.TemplateProcessing(single="<s> $A", pair="<s> $A <s>:1 $B:1", special_tokens=[("<s>", 1)])
    made["llama2"] = with_added(llama)
    unigram = trained(models.Unigram(), trainers.UnigramTrainer(vocab_size=size, special_tokens=["<unk>", "<s>", "</s>"], unk_token="<unk>",
                                                                show_progress=False), texts,
                      normalizer=normalizers.Sequence([normalizers.Nmt(), normalizers.NFKC(), normalizers.Replace(Regex(" {2,}"), " ")]),
                      pre_tokenizer=pre_tokenizers.Metaspace(), decoder=decoders.Metaspace())
    unigram.post_processor = processors.TemplateProcessing(single="$A </s>", pair="$A </s> $B:1 </s>:1", special_tokens=[("</s>", 2)])
    made["unigram"] = with_added(unigram)
    special = ["[UNK]", "[CLS]", "[SEP]", "[PAD]", "[MASK]"]
    bert = trained(models.WordPiece(unk_token="[UNK]"), trainers.WordPieceTrainer(vocab_size=size, special_tokens=special, limit_alphabet=120, show_progress=False),
                   texts, normalizer=normalizers.BertNormalizer(), pre_tokenizer=pre_tokenizers.BertPreTokenizer(),
                   decoder=decoders.WordPiece(), post_processor=processors.BertProcessing(("[SEP]", 2), ("[CLS]", 1)))
    made["bert"] = with_added(bert)
    words = trained(models.WordLevel(unk_token="[UNK]"), trainers.WordLevelTrainer(vocab_size=size, special_tokens=["[UNK]"], show_progress=False), texts,
                    normalizer=normalizers.Sequence([normalizers.Strip(), normalizers.NFKD(), normalizers.StripAccents(), normalizers.Lowercase()]),
                    pre_tokenizer=pre_tokenizers.Sequence([pre_tokenizers.Whitespace(), pre_tokenizers.Digits(individual_digits=True)]))
    words.enable_truncation(12)
    words.enable_padding(length=8, pad_id=0, pad_token="[UNK]")
    made["words"] = words
    old = trained(models.BPE(unk_token="<unk>", end_of_word_suffix="</w>"), trainers.BpeTrainer(
        vocab_size=size, special_tokens=["<unk>"], end_of_word_suffix="</w>", limit_alphabet=90, show_progress=False), texts,
        normalizer=normalizers.Sequence([normalizers.NFD(), normalizers.Lowercase()]),
        pre_tokenizer=pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Punctuation("merged_with_previous")]),
        decoder=decoders.BPEDecoder("</w>"))
    made["gpt1"] = with_added(old)
    return made


def expected(tokenizer, line, pair=None):
    """What Lua is asked for; the package counts characters, Lunaria bytes."""
    encoding = tokenizer.encode(line, pair)
    sizes = []
    for text in (line, pair or ""):
        at = [0]
        for c in text:
            at.append(at[-1] + len(c.encode()))
        sizes.append(at)
    second = list(encoding.sequence_ids)
    begins = [sizes[second[i] or 0][b] for i, (b, _) in enumerate(encoding.offsets)]
    ends = [sizes[second[i] or 0][e] for i, (_, e) in enumerate(encoding.offsets)]
    return {"text": line, "pair": pair, "ids": encoding.ids, "begins": begins, "ends": ends, "types": encoding.type_ids,
            "decoded": tokenizer.decode(encoding.ids), "whole": tokenizer.decode(encoding.ids, skip_special_tokens=False)}


def main(folder):
    folder.mkdir(parents=True, exist_ok=True)
    texts = ordinary()[:300]
    lines = random.Random(3).sample(texts, 4) + hostile(14, 5)
    results = {}
    for name, tokenizer in tokenizers(texts, 400).items():
        tree = json.loads(tokenizer.to_str())
        (folder / f"{name}.json").write_text(json.dumps(tree, ensure_ascii=False, separators=(",", ":")) + "\n")
        results[name] = [expected(tokenizer, line) for line in lines] + [expected(tokenizer, lines[0], lines[1])]
    (folder / "expected.json").write_text(json.dumps(results, ensure_ascii=False, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
