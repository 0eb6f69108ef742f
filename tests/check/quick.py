"""Names the entries of a build's tests that a change can reach, nearest first, as many as fit into some seconds: what
./dev test --quick runs. A change is what differs from the merge base with main, or on main from its last commit, files that are
not committed included.

A test is reached where its command names a changed file, or a program that was built from one (ninja knows which sources and
headers); through a Lua file that requires it; a change of the library in Lua reaches the tests that loaded the file when they
ran last (LUNARIA_TEST_LOADED, written by tests/lua/harness.lua). Nearest are the tests that mirror a changed file.

usage: quick.py BUILD SECONDS [FILE...]: prints a regular expression for ctest -R, and on standard error what it leaves out;
       FILE: changed files, in the place of those that git tells"""
import json
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
JOBS = 2
UNKNOWN_LUA, UNKNOWN = 2.0, 20.0  # s that a test takes of which nothing is known
NAMED = re.compile(r"""(?:require|dofile|loadfile)\s*\(?\s*["']([\w./]+)["']""")


def output(*command):
    return subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout


def changed():
    base = output("git", "merge-base", "HEAD", "main").strip()
    if base == output("git", "rev-parse", "HEAD").strip() and not output("git", "status", "--porcelain").strip():
        base = "HEAD~1"
    names = output("git", "diff", "--name-only", base) + output("git", "ls-files", "--others", "--exclude-standard")
    return {name for name in names.splitlines() if name}


class Graph:
    """What the programs of a build are made from."""

    def __init__(self, build):
        self.build = build
        self.needs, name = {}, None
        for line in output("ninja", "-C", str(build), "-t", "deps").splitlines():
            if not line.startswith(" "):
                name = line.split(":")[0]
            elif line.strip():
                self.needs.setdefault(name, set()).add(self.short(line.strip()))

    def short(self, path):
        path = (self.build / path).resolve()
        return path.relative_to(ROOT).as_posix() if path.is_relative_to(ROOT) else str(path)

    @cache
    def files_of(self, program):
        """Sources and headers below the root, for a file that ninja makes; those files alone for any other."""
        done = subprocess.run(["ninja", "-C", self.build, "-t", "inputs", program], capture_output=True, text=True, check=False)
        inputs = done.stdout.splitlines() if done.returncode == 0 else []
        return {self.short(i) for i in inputs}.union(*(self.needs.get(i, ()) for i in inputs))


def module_file(name):
    """A Lua file of the tests by the name that require or dofile have for it."""
    below = name if name.endswith(".lua") else name.replace(".", "/") + ".lua"
    for folder in ("", "tests/lua/", "tests/conformance/", "tests/attack/", "tests/gpu/", "notebooks/"):
        if (ROOT / folder / below).is_file():
            return folder + below
    return None


@cache
def lua_files(path):
    """A Lua file of the tests and those that it requires."""
    seen, waiting = set(), [path]
    while waiting:
        path = waiting.pop()
        if path not in seen:
            seen.add(path)
            waiting += filter(None, map(module_file, NAMED.findall((ROOT / path).read_text(errors="replace"))))
    return seen


def words(path):
    return {w for w in re.split(r"[/_.]", path) if len(w) > 2} - {"tests", "lua", "test", "cpp", "core", "jit", "interpreter",
                                                                  "lunaria", "backends", "graph", "mode", "init"}


def distance(name, command, changes, graph):
    """How near a test is to a change: 0 where its command names a changed file, 1 where it requires one or is called like one, 2
    for others, None where the change cannot reach it."""
    own, built = set(), set()
    for part in command:
        path = graph.short(part) if part.startswith("/") else part
        if path.startswith(graph.build.name + "/"):
            built |= graph.files_of(path.removeprefix(graph.build.name + "/"))
        elif (ROOT / path).is_file():
            own |= lua_files(path) if path.endswith(".lua") else {path}
        elif (ROOT / path).is_dir() and path.startswith("tests/"):
            own |= {c for c in changes if c.startswith(path + "/")}
    if changes & {part for part in command if not part.startswith("/")}:
        return 0
    if own & changes:
        return 1
    reached = built & changes
    record = graph.build / "loaded" / name
    if reached and record.exists() and all(c.startswith("interpreter/lua/") for c in reached):
        loaded = set(record.read_text().split())
        reached = {c for c in reached if c in loaded}
    if not reached:
        return None
    alike = max(len(words(name) & words(c)) for c in reached)
    return 1 if alike else 2


def costs(build):
    found, path = {}, build / "Testing/Temporary/CTestCostData.txt"
    for line in path.read_text().splitlines() if path.exists() else ():
        if line == "---":
            break
        name, _, seconds = line.rsplit(" ", 2)
        found[name] = float(seconds)
    return found


def choose(reached, seconds):
    """Of (distance, cost, name): the nearest first and of those the cheapest, until the time is full; one that does not fit is left
    out and cheaper ones follow."""
    chosen, spent = [], 0.0
    for _, cost, name in sorted(reached):
        if spent + cost <= seconds or not chosen:
            chosen.append(name)
            spent += cost
    return chosen, spent


def main():
    build, seconds = (ROOT / sys.argv[1]).resolve(), float(sys.argv[2])
    changes, graph, known, reached = set(sys.argv[3:]) or changed(), Graph(build), costs(build), []
    for test in json.loads(output("ctest", "--test-dir", str(build), "--show-only=json-v1"))["tests"]:
        name = test["name"]
        if name.startswith("long/"):
            continue
        near = distance(name, test.get("command", [])[4:], changes, graph)
        if near is not None:
            reached.append((near, known.get(name, UNKNOWN_LUA if "lua/" in name else UNKNOWN), name))
    chosen, spent = choose(reached, seconds * JOBS)
    left = len(reached) - len(chosen)
    print(f"{len(changes)} changed files reach {len(reached)} tests; {len(chosen)} of them, about {spent / JOBS:.0f} s" +
          (f", {left} are left to ./dev test" if left else ""), file=sys.stderr)
    print("^(" + "|".join(re.escape(name) for name in sorted(chosen)) + ")$" if chosen else "")


if __name__ == "__main__":
    main()
