"""What a reviewer should not have to look for: formatting, lint, layering, file sizes, spelling, words that do not belong,
and that the map is true. Each check yields complaints; none means that it passed.

usage: check.py [--format] [--junit FILE]     --format rewrites the C++ files instead of checking"""
import argparse
import collections
import os
import re
import subprocess
import sys
from pathlib import Path

import complexity as lizard
import junit
import operators

ROOT = Path(__file__).resolve().parents[2]
TOP_LEVEL = ["CMakeLists.txt", "LICENSE", "README.md", "backends", "bench", "core", "dev", "interpreter", "jit", "kernel",
             "notebooks", "tests"]
OWN_HIDDEN = {".github", ".package"}
SOURCE = {".cpp", ".h", ".lua", ".py", ".md", ".sh", ".txt", ".in", ""}
LINES = 700

# Who may include whom.
LAYERS = {
    "core": {"core"},
    "core/lite/runtime": {"core", "core/lite", "core/lite/runtime", "backends"},  # templates of backends/cpu: formulas on vectors and integers
    "core/lite": {"core", "core/lite"},  # of core only what the library brings along: CMakeLists.txt
    "core/data": {"core", "core/data"},
    "core/insight": {"core", "core/data", "core/insight"},
    "core/federated": {"core", "core/data", "core/federated"},
    "core/parallel": {"core", "core/parallel"},
    "backends": {"core", "core/lite", "backends"},
    "jit": {"core", "core/lite", "jit"},
    "jit/runtime": {"core", "backends", "jit", "jit/runtime"},
    "jit/parallel": {"core", "core/parallel", "jit", "jit/parallel"},
    "interpreter": {"core", "core/data", "core/federated", "core/insight", "core/lite", "core/lite/runtime", "core/parallel",
                    "backends", "jit", "jit/parallel",
                    "interpreter"},
    "kernel": {"kernel", "interpreter", "core"},
}
# How many folders of each of these layers include one another in a circle: figures that may only fall.
CIRCLES = {"core": 0, "backends": 0, "jit": 0, "interpreter": 0}
# Each third-party library has one folder that includes it; the others go through that folder's own headers.
THIRD_PARTY = {
    r"(lua|lualib|lauxlib|luaconf)\.(h|hpp)": ["interpreter", "tests/jit", "tests/interpreter", "tests/gpu"],
    r"(cblas|openblas_config|lapacke?|f77blas)\.h": ["backends/cpu", "bench", "tests/backends"],
    r"(oneapi/)?dnnl.*": ["backends/cpu", "bench", "tests/backends"],
    # xeus's interface is made of its values.
    r"nlohmann/.*": ["core", "interpreter/serve", "kernel", "tests"],
    r"zlib\.h": ["core", "tests"],
    r"(jpeglib|jerror|png)\.h": ["core/data/vision", "bench"],
    r"sqlite3\.h": ["core/data/files", "core/federated"],
    r"yaml\.h": ["core/io"],
    r"hwy/.*": ["backends/cpu"],
    r"(pcre2|utf8proc|sentencepiece_\w+)\.h": ["core/data/text"],
    r"sndfile\.h": ["core/data/audio"],
    r"httplib\.h": ["interpreter/serve"],
    r"(openssl/.*|sodium)\.h": ["core/federated", "interpreter/serve"],
    r"curl/.*": ["core/federated/client"],
    r"readline/.*": ["interpreter"],
    r"llvm/.*": ["jit/codegen"],
    r"(gtest|gmock)/.*": ["tests"],
    r"(xeus|zmq).*": ["kernel"],
}
# A head names its subject by a noun, and a comment names a piece of code by its noun. Users are people: "a user who".
WORDINGS = [
    # whether it is about heads only, the words, what to do about them
    (True, re.compile(r"(What|How|Whether|Where|When|Which|Who|Whose|Why)\b"), "a head opens with the noun that it is about"),
    (False, re.compile(r"(?<!\buser )(?<!\busers )(?<!%)\b(who|whom|whoever|(no|some|any|every)body|(some|any|every)one)\b", re.I),
     "code is no person: name the thing"),
]
# Comments, those on consecutive lines together; strings are matched, too, so that none is taken for a comment.
CPP_COMMENT = (r"//(?P<line>[^\n]*(\n[ \t]*//[^\n]*)*)|/\*(?P<block>.*?)\*/"
               r"""|R"(?P<end>[^(\s]*)\(.*?\)(?P=end)"|"(\\.|[^"\\\n])*"|(?<!\w)'(\\.|[^'\\\n])+'""")
LUA_COMMENT = (r"--\[(?P<mark>=*)\[(?P<block>.*?)\](?P=mark)\]|--(?P<line>[^\n]*(\n[ \t]*--[^\n]*)*)"
               r"""|\[(?P<end>=*)\[.*?\](?P=end)\]|"(\\.|[^"\\\n])*"|'(\\.|[^'\\\n])*'""")


def files(*suffixes, folders=(".",), data=False):
    """Paths below ROOT, as text; build folders, hidden ones of others and test data are left out."""
    for folder in folders:
        for top, inner, names in os.walk(ROOT / folder):
            here = Path(top).relative_to(ROOT)
            inner[:] = sorted(d for d in inner if (d in OWN_HIDDEN or not d.startswith((".", "build", "__pycache__")))
                              and (data or (here / d).as_posix() != "tests/data"))
            for name in sorted(n for n in names if not n.startswith(".")):
                if not suffixes or Path(name).suffix in suffixes:
                    yield (here / name).as_posix()


def text(path):
    return (ROOT / path).read_text(encoding="utf-8", errors="replace")


def run(command):
    """The lines that a tool prints when it fails, none when it succeeds."""
    try:
        done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    except FileNotFoundError:
        return [f"{command[0]} is not installed"]
    return done.stdout.splitlines() or [f"{command[0]} failed"] if done.returncode else []


def clang_format(*options):
    paths = list(files(".cpp", ".h"))
    return run(["clang-format-14", "--style=file", *options, *paths])


def formatting():
    return [row for row in clang_format("--dry-run", "-Werror") if "error:" in row or "not installed" in row]


def lua_lint():
    folders = [f for f in ("interpreter", "tests", "bench", "notebooks") if (ROOT / f).is_dir()]
    paths = list(files(".lua", folders=folders))
    paths.remove("tests/check/luacheck.lua")
    return run(["luacheck", "--config", "tests/check/luacheck.lua", "--quiet", "--no-color", *paths]) if paths else []


def shell_lint():
    return run(["shellcheck", "dev", ".ci/run", *files(".sh")])


def docker_lint():
    own = ROOT / ".tools/bin/hadolint"  # ./dev check makes an environment that has it
    return run([str(own) if own.exists() else "hadolint", "--no-color", ".package/Dockerfile"])


def layer_of(path):
    return next((layer for layer in LAYERS if "/" in layer and path.startswith(layer + "/")), path.split("/")[0])


def layering():
    """A folder includes only its own files and those of the layers under it."""
    for path in files(".cpp", ".h", folders=[layer for layer in LAYERS if "/" not in layer]):
        folder = layer_of(path)
        for number, target in included(path):
            if "/" not in target:
                yield f'{path}:{number}: "{target}" must start at the root'
            elif layer_of(target) not in LAYERS:
                yield f'{path}:{number}: "{target}" is in none of the layers; use <> for a library'
            elif layer_of(target) not in LAYERS[folder]:
                yield f"{path}:{number}: {folder}/ must not know {target}"


def included(path):
    """(line number, path) of what a file includes of this repository."""
    for number, line in enumerate(text(path).splitlines(), 1):
        found = re.match(r'\s*#\s*include\s+"([^"]+)"', line)
        if found:
            yield number, found[1]


def folders_in_circles(layer):
    """Folders of a layer from which includes lead, over others of its folders, back to them."""
    arrows = {}
    for path in files(".cpp", ".h", folders=[layer]):
        here = str(Path(path).parent)
        arrows.setdefault(here, set()).update(str(Path(target).parent) for _, target in included(path)
                                              if target.startswith(layer + "/") and str(Path(target).parent) != here)

    def reached(start):
        seen, waiting = set(), [start]
        while waiting:
            for folder in arrows.get(waiting.pop(), set()) - seen:
                seen.add(folder)
                waiting.append(folder)
        return seen
    return sorted(folder for folder in arrows if folder in reached(folder))


def folder_order():
    """Folders of a layer have an order: each includes only those before it."""
    for layer, allowed in CIRCLES.items():
        circles = folders_in_circles(layer)
        print(f"{layer}: {len(circles)} folders include one another in a circle, of {allowed} allowed")
        if len(circles) > allowed:
            yield f"{layer}/: these folders include one another in a circle: {', '.join(circles)}"
        elif len(circles) < allowed:
            yield f"tests/check/check.py: only {len(circles)} folders of {layer}/ include one another in a circle: lower CIRCLES"


def heads():
    """A folder of more than ten files opens with a head text; tests that mirror a folder share the head of that folder."""
    def is_mirror(folder):
        mirrored = folder.removeprefix("tests/")
        return folder != mirrored and any((ROOT / top / mirrored.removeprefix("lua/")).is_dir() for top in (".", "interpreter/lua/lunaria"))

    folders = collections.Counter(str(Path(path).parent) for path in files() if not path.endswith("README.md"))
    for folder, count in sorted(folders.items()):
        if count > 10 and folder != "notebooks" and not (ROOT / folder / "README.md").exists() and not is_mirror(folder):
            yield f"{folder}: {count} files and no README.md that says what comes in, what goes out, the parts and their terms"


def comments(path):
    """The offset and the text of each comment of a C++ or Lua file."""
    content = text(path)
    for found in re.finditer(LUA_COMMENT if path.endswith(".lua") else CPP_COMMENT, content, re.S):
        words = found["line"] or found["block"]
        if words:
            yield content, found.start(), re.sub(r"\s*\n[\s/*-]*", " ", words).strip()


def wording():
    """A reader understands a head or a comment at first reading."""
    for path in files(".cpp", ".h", ".lua"):
        for content, start, words in comments(path):
            is_head = not content[:start].strip() or (content.startswith("#!") and content.count("\n", 0, start) == 1)
            for only_heads, pattern, advice in WORDINGS:
                found = (pattern.match(words) if is_head else None) if only_heads else pattern.search(words)
                if found:
                    yield f"{path}:{content.count(chr(10), 0, start) + 1}: '{found[0]}' in a comment: {advice}"


def devices():
    """Only backends/ knows which devices there are: another one touches its folder and the list in backends/devices.cpp."""
    # Its programs, outlines and records, which no other device has.
    simulator = ("interpreter/bindings/bind_ascend.cpp", "interpreter/bindings/bind_ascend_step.cpp", "interpreter/bindings/outlined_calls.h", "interpreter/bindings/ascend_programs.h",
                 "interpreter/bindings/bind_parameter.cpp")
    for path in files(".cpp", ".h", folders=["core", "jit", "interpreter"]):
        for number, line in enumerate(text(path).splitlines(), 1):
            # The light runtime takes templates from there.
            if path not in simulator and not path.startswith("core/lite/runtime/") and re.search(r'"(CPU|GPU|Ascend|Separate)"|#\s*include\s+"backends/\w+/', line):
                yield f"{path}:{number}: names a device; ask the tensor, or core/tensor/device.h"


def third_party():
    """A library is included in one folder only."""
    for path in files(".cpp", ".h"):
        for number, line in enumerate(text(path).splitlines(), 1):
            found = re.match(r'\s*#\s*include\s+[<"]([^>"]+)[>"]', line)
            if not found:
                continue
            for header, folders in THIRD_PARTY.items():
                if re.fullmatch(header, found[1]) and not any(path.startswith(f + "/") for f in folders):
                    yield f"{path}:{number}: <{found[1]}> is for {', '.join(folders)} only"


def file_sizes():
    """A file has one subject."""
    for path in files(".cpp", ".h", ".lua", ".py", ".sh"):
        lines = text(path).count("\n")
        if lines > LINES:
            yield f"{path}: {lines} lines; the limit is {LINES}"


def complexity():
    """Functions and classes that one can take in."""
    return lizard.complaints(ROOT)


def operator_facts():
    """No stage goes by the name of an operator or a primitive."""
    found = list(operators.complaints(ROOT))
    print(f"{len(found)} comparisons of operators' and primitives' names, of 0 allowed")
    return found


def plain_text():
    """Files end in a newline, and no line of theirs in a space."""
    for path in files(*SOURCE):
        content = text(path)
        if content and not content.endswith("\n"):
            yield f"{path}: no newline at the end"
        for number, line in enumerate(content.splitlines(), 1):
            if line != line.rstrip() and not path.endswith(".md"):
                yield f"{path}:{number}: spaces at the end of the line"


def spelling():
    skip = "./.git,./build*,./.peers,./.jupyter,./.tools,./.ptxas,./.cache,./tests/data,__pycache__"
    # Pictures in notebooks are letters without meaning.
    pictures = r"[A-Za-z0-9+/=]{60,}"
    return run(["codespell", "--quiet-level=3", "--skip", skip, "--ignore-words", "tests/check/words.txt", "--ignore-regex", pictures])


def strange_words():
    """Nothing in the repository speaks of one machine, of a download site, or of work that is left to do."""
    places = re.compile(r"(?<![\w.])/(work|root|home)/\w|\b(pypi|pythonhosted|crates|npmjs|anaconda)\.(org|io|com)\b")
    left_over = re.compile(r"\b(TODO|FIXME|XXX|HACK)\b")
    for path in files(*SOURCE):
        if path.startswith("tests/check/"):
            continue
        for number, line in enumerate(text(path).splitlines(), 1):
            for pattern in (places, left_over):
                found = pattern.search(line)
                if found:
                    yield f"{path}:{number}: '{found[0]}' does not belong here"


def house_map():
    """The top level holds the rooms of the house and nothing else, and the map names each that exists."""
    place = ".github/CONTRIBUTING.md"
    house = text(place)
    for entry in sorted(p.name for p in ROOT.iterdir()):
        if entry.startswith((".", "build")):
            continue
        if entry not in TOP_LEVEL:
            yield f"{entry}: the top level is {', '.join(TOP_LEVEL)}"
        elif entry not in ("LICENSE", "README.md") and f"`{entry}" not in house:
            yield f"{place}: the map does not name `{entry}`"
    for room in re.findall(r"^\| `([\w./]+?)/?` \|", house, re.M):
        if not (ROOT / room).exists():
            yield f"{place}: the map names {room}, which does not exist"


CHECKS = [formatting, lua_lint, shell_lint, docker_lint, layering, folder_order, heads, wording, devices, third_party, file_sizes, complexity,
          operator_facts, plain_text, spelling, strange_words, house_map]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--format", action="store_true")
    parser.add_argument("--junit")
    args = parser.parse_args()
    if args.format:
        print("\n".join(clang_format("-i")) or "formatted")
        return 0
    results = []
    for check in CHECKS:
        complaints = list(check())
        print(f"{check.__name__.replace('_', ' ')}: {'ok' if not complaints else f'{len(complaints)} complaints'}")
        for row in complaints[:60]:
            print("  " + row)
        results.append(("check/" + check.__name__, "\n".join(complaints), not complaints))
    if args.junit:
        junit.write(args.junit, "check", results)
    return 0 if all(passed for _, _, passed in results) else 1


if __name__ == "__main__":
    sys.exit(main())
