"""What is true of an operator stands in its entry (core/operator/op.h): no stage asks for an operator by its name. Complains where
the name of an operator is compared with, or stands in a list of names; in jit/graph wherever it stands but to fetch the
entry. Names that the language's own primitives share (jit/language*.cpp) mean these."""
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ["jit/graph", "jit/vm", "jit/autodiff", "jit/infer", "interpreter/jit", "interpreter/watchers",
           "interpreter/saving", "interpreter/host"]
STRICT = "jit/graph"
# Names of passes, and of formulas.
OTHER_NAMES = ["jit/graph/passes.cpp", "core/loops/loop.cpp"]
ADDED = re.compile(r'\badd\(\s*"(\w+)\(')
COMPARED = re.compile(r'(?:[=!]=|starts_with\(|ends_with\()\s*"(\w+)"|"(\w+)"\s*[=!]=')
# A list of nothing but texts; two are a pair of names, one for the other.
LIST = re.compile(r'\{\s*((?:"\w+"\s*,\s*){2,}"\w+"\s*,?)\s*\}')
TEXT = re.compile(r'(\w*\(?)"(\w+)"')
FETCHES = ("get(", "find(", "call(", "reduce(")


def added(root, pattern):
    return {name for path in root.glob(pattern) for name in ADDED.findall(path.read_text())}


def complaints(root=ROOT):
    operators = added(root, "core/ops/*.cpp")
    names = operators - added(root, "jit/language*.cpp")
    for folder in FOLDERS:
        # Other texts are compared, too: options, fields, libraries.
        about = re.compile(r"\bop\b|\bname\b" if folder.startswith("jit") else r"\bop\b")
        for path in sorted((root / folder).rglob("*.cpp")) + sorted((root / folder).rglob("*.h")):
            source, where = path.read_text(), path.relative_to(root).as_posix()
            if where in OTHER_NAMES:
                continue
            for number, line in enumerate(source.splitlines(), 1):
                compared = [a or b for a, b in COMPARED.findall(line)] if about.search(line) else []
                if folder == STRICT:
                    compared += [name for before, name in TEXT.findall(line) if not before.endswith(FETCHES)]
                for name in sorted(set(compared) & names):
                    yield f"{where}:{number}: goes by the name '{name}': ask the operator's entry (core/operator/op.h)"
            for found in LIST.finditer(source):
                members = re.findall(r'"(\w+)"', found[1])
                if all(m in operators for m in members) and any(m in names for m in members):
                    number = source.count("\n", 0, found.start()) + 1
                    yield f"{where}:{number}: lists operators ({', '.join(members[:4])}): ask their entries (core/operator/op.h)"


if __name__ == "__main__":
    print("\n".join(complaints()) or "ok")
