"""Prints the sources that a program needs besides its own file, one a line: found through its includes, so that a fuzz
target is built from the reader that it tries and what that rests on. A header stands for the source of the same name,
and for those with that name as a prefix that have no header (onnx.h for onnx_read.cpp); a header without either, for the
sources of its folder that include it. What headers do not tell stands in the program, as "// Source: PATTERN". Other
sources below an omitted folder are left out.

usage: sources.py FILE [OMITTED FOLDER...]"""
import re
import sys
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
INCLUDE = re.compile(r'^\s*#include "([^"]+)"', re.M)
SOURCE = re.compile(r"^// Source: (\S+)$", re.M)


@cache
def named_in(path):
    """Files of the repository that a file includes or names."""
    text = (ROOT / path).read_text()
    return [name for name in INCLUDE.findall(text) if (ROOT / name).is_file()] + asked_by(text)


def asked_by(text):
    return [p.relative_to(ROOT).as_posix() for pattern in SOURCE.findall(text) for p in sorted(ROOT.glob(pattern))]


def sources_of(header):
    path = ROOT / header
    beside = [p.relative_to(ROOT).as_posix() for p in sorted(path.parent.glob("*.cpp"))]
    stem = header.removesuffix(".h")
    own = [p for p in beside if p == stem + ".cpp" or
           (p.startswith(stem + "_") and not (ROOT / p).with_suffix(".h").exists())]
    return own or [p for p in beside if header in named_in(p)]


def needed(program, omitted):
    seen, waiting = {program}, [program]
    omitted += (Path(program).parent.as_posix() + "/",)  # programs beside it
    asked = asked_by((ROOT / program).read_text())
    while waiting:
        path = waiting.pop()
        found = named_in(path) + (sources_of(path) if path.endswith(".h") else [])
        for name in found:
            left_out = name.endswith(".cpp") and name.startswith(omitted) and name not in asked
            if name not in seen and not left_out:
                seen.add(name)
                waiting.append(name)
    return sorted(name for name in seen - {program} if name.endswith(".cpp"))


if __name__ == "__main__":
    print(*needed(sys.argv[1], tuple(folder.rstrip("/") + "/" for folder in sys.argv[2:])), sep="\n")
