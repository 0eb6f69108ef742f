"""Tokenizers and chat templates against the packages tokenizers and jinja2.

usage: words_test.py LUNARIA [LINES]     LINES: so many lines of text (default 400), half of them hostile

Needs the Python environment .peers (LUNARIA_PEERS names another) with tokenizers and jinja2; skips without it."""
import json
import os
import random
import subprocess
import sys
import tempfile
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
PYTHON = Path(os.environ.get("LUNARIA_PEERS", ".peers")) / "bin/python3"
SKIP = 77


def compare(program, count):
    import words_data
    texts = words_data.ordinary()
    lines = words_data.hostile(count, 11)[:count // 2]
    lines += random.Random(2).sample(texts * (count // len(texts) + 1), count - len(lines))
    made = words_data.tokenizers(texts, 3000)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        for name, tokenizer in made.items():
            tokenizer.save(str(folder / f"{name}.json"))
        (folder / "lines").write_text(json.dumps(lines))
        subprocess.run([program, str(FOLDER / "words_check.lua"), str(folder), str(folder / "lines")], check=True)
        bad = 0
        for name, tokenizer in made.items():
            found, wrong = (folder / f"{name}.out").read_text().split("\n")[:-1], []
            for i, line in enumerate(lines):
                wanted = words_data.expected(tokenizer, line, lines[i - 1] if i % 7 == 6 else None)
                got = json.loads(found[i])
                wrong += [(key, line, wanted[key], got[key]) for key in ["ids", "begins", "ends", "types", "decoded", "whole"]
                          if wanted[key] != got[key]]
                # A stream shows the same text, whatever was held back between.
                if got["streamed"] != wanted["decoded"] and name not in ("bert", "words", "gpt1", "unigram"):
                    wrong.append(("streamed", line, wanted["decoded"], got["streamed"]))
            print(f"{name}: {len(lines)} lines, {len(wrong)} differences")
            for key, line, wanted, got in wrong[:3]:
                print(f"  {key} of {line!r}\n    wanted {wanted}\n    got    {got}")
            bad += len(wrong)
    return bad


def main(program, count):
    needed = "import tokenizers, jinja2"
    if not PYTHON.exists() or subprocess.run([PYTHON, "-c", needed], capture_output=True, check=False).returncode:
        print("skipped: no Python environment with tokenizers and jinja2")
        return SKIP
    if Path(sys.prefix).resolve() != PYTHON.parent.parent.resolve():
        return subprocess.run([PYTHON, __file__, program, str(count)], check=False).returncode
    import template_data
    data = FOLDER.parent / "data" / "words"
    # tests/lua/lite_words_test.lua compares with the file.
    same = template_data.rendered(data) == json.loads((data / "texts.json").read_text())
    print("templates:", "as jinja2 has them" if same else "texts.json is not what jinja2 gives; run template_data.py")
    return compare(program, count) > 0 or not same


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 400))
