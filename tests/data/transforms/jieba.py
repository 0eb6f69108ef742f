"""Writes a small hidden Markov model of the words in jieba-words.txt, and what jieba 0.42 makes of texts by both files, for
tests/lua/data/jieba_test.lua. Texts are left out where jieba has rules of its own beside the algorithm.

usage: jieba.py              with Debian's python3-jieba"""
import json
import math
import random
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.remove(str(HERE))

import jieba  # noqa: E402
from jieba import finalseg  # noqa: E402

IMPOSSIBLE = -3.14e100
STATES = "BEMS"
TEXTS = ["我们今天去北京大学学习", "今天天气很好", "研究生命的起源", "大学生活动中心", "深度学习和机器学习", "神经网络在训练",
         "北京大学生的研究", "我们研究生命"]


def states_of(word):
    return "S" if len(word) == 1 else "B" + "M" * (len(word) - 2) + "E"


def logarithm(part, whole):
    return round(math.log(part / whole), 4) if part else IMPOSSIBLE


def model_of(frequencies):
    total = sum(frequencies.values())
    first = dict.fromkeys(STATES, 0)
    after = {a: dict.fromkeys(STATES, 0) for a in STATES}
    seen = {s: {} for s in STATES}
    for word, count in frequencies.items():
        states = states_of(word)
        first[states[0]] += count
        for letter, state in zip(word, states):
            seen[state][letter] = seen[state].get(letter, 0) + count
        for a, b in zip(states, states[1:]):
            after[a][b] += count
    for word, count in frequencies.items():
        for b in "BS":
            after[states_of(word)[-1]][b] += count * first[b] / total
    return ({s: logarithm(first[s], total) for s in STATES},
            {a: {b: logarithm(after[a][b], sum(after[a].values())) for b in STATES} for a in STATES},
            {s: {c: logarithm(n, sum(seen[s].values())) for c, n in seen[s].items()} for s in STATES})


def write_model(first, after, seen):
    lines = ["#prob_start", " ".join(repr(first[s]) for s in STATES), "#prob_trans"]
    lines += [" ".join(repr(after[a][b]) for b in STATES) for a in STATES]
    lines.append("#prob_emit")
    for s in STATES:
        lines += ["#" + s, ",".join(f"{c}:{p!r}" for c, p in seen[s].items())]
    (HERE / "jieba-model.txt").write_text("\n".join(lines) + "\n")


def mixed(words, text):
    """The most probable words, and by the model what is left in single characters."""
    best, at, alone, out = {}, 0, "", []
    words.calc(text, words.get_DAG(text), best)

    def flush():
        return list(finalseg.cut(alone)) if len(alone) > 1 else [alone] * len(alone)

    while at < len(text):
        end = best[at][1] + 1
        if end - at == 1:
            alone += text[at]
        else:
            out += flush() + [text[at:end]]
            alone = ""
        at = end
    return out + flush()


def main():
    frequencies = {}
    for line in (HERE / "jieba-words.txt").read_text().splitlines():
        word, count, _ = line.split()
        frequencies[word] = int(count)
    first, after, seen = model_of(frequencies)
    write_model(first, after, seen)
    finalseg.start_P, finalseg.emit_P = first, seen
    finalseg.trans_P = {a: {b: p for b, p in row.items() if p > IMPOSSIBLE} for a, row in after.items()}
    words = jieba.Tokenizer(str(HERE / "jieba-words.txt"))
    chance, cases = random.Random(11), []
    every, letters = list(frequencies), [w for w in frequencies if len(w) == 1]
    while len(cases) < 60:
        at = len(cases)
        if at < len(TEXTS):
            text = TEXTS[at]
        elif at % 2:
            text = "".join(chance.choice(every) for _ in range(chance.randint(2, 6)))
        else:
            text = "".join(chance.choice(letters) for _ in range(chance.randint(2, 9)))
        case = [text, list(words.cut(text, HMM=False)), list(words.cut(text)), list(finalseg.cut(text))]
        if case[2] == mixed(words, text):
            cases.append(case)
    (HERE / "jieba.json").write_text(json.dumps(cases, ensure_ascii=False, separators=(",", ":")) + "\n")


main()
