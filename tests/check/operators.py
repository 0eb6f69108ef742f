"""What is true of an operator or primitive stands in its entry (core/operator/op.h, jit/language.h): no stage asks for one
by its name. Complains where the name of one is compared with, or stands in a list of names; in jit/graph wherever it stands
but to fetch the entry. Entries, tables that give each name a function (kernels, handlers, forms of other programs' files)
and readers of files go by names."""
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ["core", "backends", "jit", "interpreter", "kernel"]
STRICT = "jit/graph"
# Names of passes, and of the formulas and sums that loops consist of.
OTHER_NAMES = ("jit/graph/passes.cpp", "jit/graph/loop_builder.cpp", "jit/codegen/", "core/loops/")
ADDED = re.compile(r'\b(?:ops|r)\.(?:add|operation|number)\(\s*"(\w+)\(')
# What is compared: a name, an operator.
SUBJECT = r'(?:\b(?:\w*_)?(?:name|op|primitive|operation)(?:\(\)|_)?\)?)'
COMPARED = re.compile(rf'{SUBJECT}\s*[=!]=\s*"(\w+)"|"(\w+)"\s*[=!]=\s*(?:[\w.>-]*\W)?{SUBJECT}|'
                      rf'{SUBJECT}\.(?:starts_with|ends_with)\(\s*"(\w+)"')
# A list of nothing but texts; two are a pair of names, one for the other.
LIST = re.compile(r'\{\s*((?:"\w+"\s*,\s*){2,}"\w+"\s*,?)\s*\}')
TEXT = re.compile(r'(\w*\(?)"(\w+)"')
FETCHES = ("get(", "find(", "call(", "reduce(")


def added(root, pattern):
    return {name for path in root.glob(pattern) for name in ADDED.findall(path.read_text())}


def compared(line, names):
    """The names of entries that a line compares something with; of a beginning of names, that."""
    for groups in COMPARED.findall(line):
        for name in filter(None, groups):
            if name in names or (name.endswith("_") and any(n.startswith(name) for n in names)):
                yield name


def complaints(root=ROOT):
    operators, primitives = added(root, "core/ops/*.cpp"), added(root, "jit/**/*.cpp")
    for folder in FOLDERS:
        for path in sorted((root / folder).rglob("*.cpp")) + sorted((root / folder).rglob("*.h")):
            source, where = path.read_text(), path.relative_to(root).as_posix()
            if where.startswith(OTHER_NAMES):
                continue
            for number, line in enumerate(source.splitlines(), 1):
                found = set(compared(line, operators | primitives))
                if where.startswith(STRICT):
                    found |= {name for before, name in TEXT.findall(line)
                              if name in operators - primitives and not before.endswith(FETCHES)}
                for name in sorted(found):
                    yield f"{where}:{number}: goes by the name '{name}': ask the entry (core/operator/op.h, jit/language.h)"
            if not where.startswith(("jit", "interpreter")):
                continue
            for found in LIST.finditer(source):
                members = re.findall(r'"(\w+)"', found[1])
                # To fetch one after the other, or by a number.
                fetched = re.search(r":\s*$", source[:found.start()]) or re.match(r";\s*return k\w+\[", source[found.end():])
                if not fetched and all(m in operators | primitives for m in members):
                    number = source.count("\n", 0, found.start()) + 1
                    yield f"{where}:{number}: lists names ({', '.join(members[:4])}): ask the entries"


if __name__ == "__main__":
    print("\n".join(complaints()) or "ok")
