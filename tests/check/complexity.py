"""How entangled functions are and how long classes: lizard's cyclomatic complexity, at most 25 for a function, and the
lines of all methods of a class, at most 1,000 in all its files. A friend sees all of a class and is a part of it: the
lines of its methods count too. What was above a limit when the limit came stands in complexity.txt with its figure,
which may only fall.

usage: complexity.py [--update]     --update writes what is above a limit now into complexity.txt"""
import collections
import csv
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
KNOWN = "tests/check/complexity.txt"
FOLDERS = ["core", "backends", "jit", "interpreter", "kernel"]
COMPLEXITY, CLASS_LINES = 25, 1000
# ./dev check makes an environment that has lizard.
OWN = ROOT / ".tools/bin/python3"
PYTHON = str(OWN) if OWN.exists() else sys.executable


def friends(root, folders):
    """(class, friend) for each `friend class`, by their own names."""
    for folder in folders:
        for path in sorted((root / folder).rglob("*.h")):
            inside = []  # (indentation, class) of the classes that are open
            for line in path.read_text().splitlines():
                indentation = len(line) - len(line.lstrip())
                while inside and line.strip() and indentation <= inside[-1][0]:
                    inside.pop()
                if found := re.match(r"\s*(?:class|struct) (\w+)[^;]*$", line):
                    inside.append((indentation, found[1]))
                elif (found := re.match(r"\s*friend (?:class|struct) (?:\w+::)*(\w+);", line)) and inside:
                    yield inside[-1][1], found[1]


def measure(root, folders):
    """(name, figure, limit) of each function, "path function", and of each class, "class Name"."""
    command = [PYTHON, "-m", "lizard", "-l", "cpp", "-l", "lua", "--csv", *folders]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True)
    if "No module named" in done.stderr:
        return None
    if "Traceback" in done.stderr:
        raise RuntimeError("lizard failed: " + done.stderr.strip().splitlines()[-1])
    found, classes = collections.Counter(), collections.Counter()
    for row in csv.reader(done.stdout.splitlines()):
        complexity, length, path, name = int(row[1]), int(row[4]), row[6], row[7]
        key = f"{path} {name}"
        found[key] = max(found[key], complexity)
        scope, _, _ = name.rpartition("::")
        # Namespaces are written in small letters.
        if scope.rpartition("::")[2][:1].isupper() and not scope.rpartition("::")[2].isupper():
            classes[f"class {scope}"] += length
    whole = classes.copy()
    by_name = collections.defaultdict(list)
    for one in classes:
        by_name[re.split("[: ]", one)[-1]].append(one)
    for name, friend in set(friends(root, folders)):
        for one in by_name[name]:
            # That of the same namespace, or else all of that name.
            same = one[:-len(name)] + friend
            whole[one] += classes[same] if same in classes else sum(classes[k] for k in by_name[friend])
    classes = whole
    return [(k, v, COMPLEXITY) for k, v in found.items()] + [(k, v, CLASS_LINES) for k, v in classes.items()]


def known(root):
    file = root / KNOWN
    if not file.exists():
        return {}
    rows = (line.rpartition(" ") for line in file.read_text().splitlines() if line and not line.startswith("#"))
    return {name: int(figure) for name, _, figure in rows}


def complaints(root=ROOT, folders=FOLDERS):
    try:
        measured = measure(root, [f for f in folders if (root / f).is_dir()])
    except RuntimeError as failure:
        yield str(failure)
        return
    if measured is None:
        yield "lizard is not installed"
        return
    allowed = known(root)
    above = {name: figure for name, figure, limit in measured if figure > limit}
    for name, figure, limit in sorted(measured):
        if figure > max(limit, allowed.get(name, 0)):
            what = "lines" if name.startswith("class ") else "is the complexity"
            yield f"{name}: {figure} {what}; the limit is {max(limit, allowed.get(name, 0))}"
    for name in sorted(allowed):
        if name not in above:
            yield f"{KNOWN}: {name} is within the limit now, or gone: take the row out"


if __name__ == "__main__":
    if "--update" in sys.argv:
        rows = sorted(f"{name} {figure}" for name, figure, limit in measure(ROOT, FOLDERS) if figure > limit)
        head = "# What was above a limit of complexity.py when the limit came: name and figure, which may only fall.\n"
        (ROOT / KNOWN).write_text(head + "\n".join(rows) + "\n")
    else:
        print("\n".join(complaints()) or "ok")
