"""Writes what MindSpore, tokenizers and sentencepiece make of some texts, for tests/lua/data/text_test.lua.

usage: text.py              in an environment with mindspore, tokenizers and sentencepiece"""
import io
import json
from pathlib import Path

import mindspore as ms
import numpy as np
import sentencepiece
from mindspore.dataset import text
from tokenizers import BertWordPieceTokenizer, ByteLevelBPETokenizer

HERE = Path(__file__).resolve().parent
MIXED = "Welcome  to Beijing, 北京欢迎您！ naïve\tcafé. unaffable"
WORDS = ["[UNK]", "[CLS]", "[SEP]", "un", "##aff", "##able", "hello", "##s", "welcome", "to", ",", ".", "京", "naive", "##e"]
SENTENCES = ["the quick brown fox jumps over the lazy dog", "how quickly daft jumping zebras vex", "the dog sleeps while foxes jump",
             "brown dogs and quick foxes", "lazy zebras sleep over there"] * 4


def plain(result):
    if isinstance(result, (tuple, list)):
        return [np.asarray(x).tolist() for x in result]
    return [np.asarray(result).tolist()]


def main():
    vocab = text.Vocab.from_list(WORDS)
    words = np.array(["unaffable", "hellos", "xyz"])
    cases = [
        ("WhitespaceTokenizer(true)", MIXED, text.WhitespaceTokenizer(True)),
        ("UnicodeCharTokenizer(true)", "a北é", text.UnicodeCharTokenizer(True)),
        ("UnicodeScriptTokenizer()", "Welcome to 北京 abcДа 12.3", text.UnicodeScriptTokenizer()),
        ("UnicodeScriptTokenizer(true, true)", "Welcome to 北京 abcДа 12.3", text.UnicodeScriptTokenizer(True, True)),
        ("BasicTokenizer()", MIXED + " [CLS] x", text.BasicTokenizer()),
        ("BasicTokenizer(true)", MIXED, text.BasicTokenizer(True)),
        ("BasicTokenizer(false, true)", MIXED, text.BasicTokenizer(False, True)),
        ("BasicTokenizer(false, false, 'nfkd', false)", MIXED + " [CLS]", text.BasicTokenizer(False, False, text.NormalizeForm.NFKD, False)),
        ("WordpieceTokenizer(vocab)", words, text.WordpieceTokenizer(vocab)),
        ("WordpieceTokenizer(vocab, { unknown_token = '' })", words, text.WordpieceTokenizer(vocab, unknown_token="")),
        ("BertTokenizer(vocab, { lower_case = true })", MIXED, text.BertTokenizer(vocab, lower_case=True)),
        ("Lookup(vocab, '[UNK]')", words, text.Lookup(vocab, "[UNK]")),
        ("CaseFold()", "Welcome STRAẞE Ä", text.CaseFold()),
        ("NormalizeUTF8('nfc')", "ﬁ ṩ ḍ̇ q̣̇ Ａ①", text.NormalizeUTF8(text.NormalizeForm.NFC)),
        ("NormalizeUTF8()", "ﬁ ṩ ḍ̇ q̣̇ Ａ①", text.NormalizeUTF8()),
        ("NormalizeUTF8('nfd')", "ﬁ ṩ ḍ̇ q̣̇ Ａ①", text.NormalizeUTF8(text.NormalizeForm.NFD)),
        ("NormalizeUTF8('nfkd')", "ﬁ ṩ ḍ̇ q̣̇ Ａ①", text.NormalizeUTF8(text.NormalizeForm.NFKD)),
        ("RegexReplace('[\\\\s|_]+', '#')", "a b__c  d", text.RegexReplace("[\\s|_]+", "#")),
        ("RegexReplace('(\\\\w)b', '$1x', false)", "ab ab", text.RegexReplace("(\\w)b", "$1x", False)),
        ("RegexTokenizer('[ ,]')", "a b,c  d", text.RegexTokenizer("[ ,]")),
        ("RegexTokenizer('[ ,]', '[,]', true)", "a b,c  d", text.RegexTokenizer("[ ,]", "[,]", True)),
        ("Ngram(2)", np.array(["a", "b", "c"]), text.Ngram(2)),
        ("Ngram({ 2, 3 }, { '_', 1 }, { '_', 2 }, '-')", np.array(["a", "b", "c"]), text.Ngram([2, 3], ("_", 1), ("_", 2), "-")),
        ("SlidingWindow(2)", np.array(["a", "b", "c"]), text.SlidingWindow(2)),
        ("ToNumber(ms.int8)", np.array(["1", "-2"]), text.ToNumber(ms.int8)),
        ("ToNumber(ms.float32)", np.array(["1.5e3", " 2"]), text.ToNumber(ms.float32)),
        ("Truncate(2)", np.array(["a", "b", "c"]), text.Truncate(2)),
        ("AddToken('T', false)", np.array(["a", "b"]), text.AddToken("T", False)),
        ("FilterWikipediaXML()", "Welcome [[link]] '''China''' http://x.y 12", text.FilterWikipediaXML()),
    ]
    rows = [{"lua": lua, "given": given if isinstance(given, str) else given.tolist(), "results": plain(call(given))}
            for lua, given, call in cases]
    bert = BertWordPieceTokenizer({w: i for i, w in enumerate(WORDS)}, lowercase=True)
    rows.append({"lua": "BertTokenizer(vocab, { lower_case = true })", "given": "Hellos, unaffable 京! naïve",
                 "results": [bert.encode("Hellos, unaffable 京! naïve", add_special_tokens=False).tokens]})
    pairs = ByteLevelBPETokenizer()
    pairs.train_from_iterator(SENTENCES, vocab_size=300, min_frequency=2)
    pairs.save_model(str(HERE), "pairs")
    for given in ("the quick dogs' zebras, don't", "naïve  北京\n 12!"):
        done = pairs.encode(given)
        for name, result in (("string", done.tokens), ("int", done.ids)):
            rows.append({"lua": f"ByteLevelBPETokenizer('tests/data/transforms/pairs-vocab.json', 'tests/data/transforms/pairs-merges.txt', '{name}')",
                         "given": given, "results": [result]})
    for kind in ("unigram", "bpe"):
        model = io.BytesIO()
        sentencepiece.SentencePieceTrainer.train(sentence_iterator=iter(SENTENCES), model_writer=model, vocab_size=40,
                                                 model_type=kind, minloglevel=2)
        (HERE / f"sentences_{kind}.model").write_bytes(model.getvalue())
        processor = sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())
        for out, name in ((str, "string"), (int, "int")):
            rows.append({"lua": f"SentencePieceTokenizer('tests/data/transforms/sentences_{kind}.model', '{name}')",
                         "given": "The quick foxes sleep", "results": [processor.encode("The quick foxes sleep", out_type=out)]})
    (HERE / "text.json").write_text(json.dumps({"words": WORDS, "cases": rows}, ensure_ascii=False, indent=0) + "\n")


main()
