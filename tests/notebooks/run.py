"""Executes a notebook with nbclient and compares what comes out with what is stored in it.

usage: run.py LUNARIA NOTEBOOK...     compares; prints one line for each cell that differs
       run.py --graph LUNARIA NOTEBOOK...    the same after a switch to graph mode at the start
       run.py --update LUNARIA NOTEBOOK...   stores what came out

Texts are compared word by word, numbers to a tolerance (1e-3 relative or absolute). Tags of a cell say otherwise:
"timing": its numbers differ from run to run; "training": they depend on the processor and agree to a tenth;
"raises-exception": the cell ends in an error, which is an output like any other. Plots are compared by their description,
drawings by their elements and texts; pixels are not."""
import environment  # first: it changes to the environment that has the rest

import asyncio
import json
import math
import os
import re
import subprocess
import sys
import tempfile
import xml.etree.ElementTree
from pathlib import Path

import nbformat
from nbclient import NotebookClient

NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?|\b(?:nan|inf)\b", re.IGNORECASE)
ESCAPE = re.compile(r"\x1b\[[0-9;]*m")
# Drawings made of characters move by a dot when a number moves by a thousandth.
DRAWN = re.compile("[\u2500-\u259f\u2800-\u28ff]")
TEXTS = ("text/plain", "text/html", "text/markdown", "text/latex")


def joined(text):
    return "".join(text) if isinstance(text, list) else text


def near(a, b, tolerance):
    if math.isnan(a) or math.isnan(b):
        return math.isnan(a) and math.isnan(b)
    return a == b or abs(a - b) <= tolerance * max(1.0, abs(b))


def compare_texts(got, stored, tags):
    """Why the texts differ, or None."""
    got, stored = ESCAPE.sub("", joined(got)), ESCAPE.sub("", joined(stored))
    if DRAWN.search(stored):
        return None if DRAWN.search(got) else "the drawing is gone"
    words = [NUMBER.sub(" # ", text) for text in (got, stored)]
    if "timing" in tags:
        words = [re.sub(r"#\s+([num]?s|min)\b", "# s", text) for text in words]
    words = [text.split() for text in words]
    if words[0] != words[1]:
        return f"got {got!r}, stored is {stored!r}"
    if "timing" in tags:
        return None
    for a, b in zip(NUMBER.findall(got), NUMBER.findall(stored)):
        if not near(float(a), float(b), tolerance_of(tags)):
            return f"got {a}, stored is {b}"
    return None


def tolerance_of(tags):
    """How far numbers may be apart; None: any number will do."""
    return None if "timing" in tags else 0.1 if "training" in tags else 1e-3


def compare_json(got, stored, tags, place="plot"):
    """Why two descriptions of a plot differ, or None: the same fields and texts, numbers to the tolerance of the cell. Rows
    of data are compared in their order; in cells with the tag "timing" there may be more or fewer."""
    is_number = [isinstance(v, (int, float)) and not isinstance(v, bool) for v in (got, stored)]
    if all(is_number):
        tolerance = tolerance_of(tags)
        if tolerance is None or near(got, stored, tolerance):
            return None
        return f"{place} is {got}, stored is {stored}"
    if type(got) is not type(stored):
        return f"{place} is {got!r}, stored is {stored!r}"
    if isinstance(stored, dict):
        if sorted(got) != sorted(stored):
            return f"{place} has the fields {sorted(got)}, stored are {sorted(stored)}"
        reasons = (compare_json(got[k], stored[k], tags, f"{place}.{k}") for k in stored)
        return next((r for r in reasons if r), None)
    if isinstance(stored, list):
        if len(got) != len(stored) and "timing" not in tags:
            return f"{place} has {len(got)} entries, stored are {len(stored)}"
        reasons = (compare_json(a, b, tags, f"{place}[{i}]") for i, (a, b) in enumerate(zip(got, stored)))
        return next((r for r in reasons if r), None)
    if isinstance(stored, str):
        reason = compare_texts(got, stored, tags)
        return f"{place}: {reason}" if reason else None
    return None if got == stored else f"{place} is {got!r}, stored is {stored!r}"


def elements_of(svg):
    """What a drawing consists of: how often each kind of element, and its texts that are no numbers."""
    counts, texts = {}, []
    for element in xml.etree.ElementTree.fromstring(joined(svg)).iter():
        name = element.tag.rsplit("}", 1)[-1]
        counts[name] = counts.get(name, 0) + 1
        text = (element.text or "").strip()
        if name == "text" and text and not NUMBER.fullmatch(text):
            texts.append(text)
    return counts, texts


def compare_svg(got, stored, tags):
    """Why two drawings differ, or None. Where numbers depend on the machine there may be other ticks on the axes."""
    (counts, texts), (stored_counts, stored_texts) = elements_of(got), elements_of(stored)
    if tags & {"timing", "training"}:
        counts, stored_counts = set(counts), set(stored_counts)
    if counts != stored_counts:
        return f"the drawing has {counts}, stored are {stored_counts}"
    if texts != stored_texts and "timing" not in tags:
        return f"the drawing says {texts}, stored is {stored_texts}"
    return None


def compare_data(got, stored, tags):
    """Why two outputs in several formats differ, or None."""
    if sorted(got) != sorted(stored):
        return f"types are {sorted(got)}, stored are {sorted(stored)}"
    tags = set(tags)
    for kind, value in stored.items():
        if kind in TEXTS:
            reason = compare_texts(got[kind], value, tags)
        elif kind.startswith("application/vnd.vegalite"):
            reason = compare_json(got[kind], value, tags)
        elif kind == "image/svg+xml":
            reason = compare_svg(got[kind], value, tags)
        else:
            reason = None
        if reason:
            return reason
    return None


def merged(outputs):
    """Pieces of one stream that follow each other are one: where they are cut is a matter of time."""
    result = []
    for output in outputs:
        last = result[-1] if result else {}
        if output["output_type"] == "stream" == last.get("output_type") and output["name"] == last["name"]:
            last["text"] = joined(last["text"]) + joined(output["text"])
        else:
            result.append(dict(output))
    return result


def compare_outputs(got, stored, tags):
    got, stored = merged(got), merged(stored)
    kinds = [[o["output_type"] + o.get("name", "") for o in outputs] for outputs in (got, stored)]
    if kinds[0] != kinds[1]:
        return f"outputs are {kinds[0]}, stored are {kinds[1]}"
    for a, b in zip(got, stored):
        if a["output_type"] == "stream":
            reason = compare_texts(a["text"], b["text"], tags)
        elif a["output_type"] == "error":
            reason = compare_texts(a["evalue"], b["evalue"], tags)
        else:
            reason = compare_data(a["data"], b["data"], tags)
        if reason:
            return reason
    return None


def as_json(notebook):
    return json.loads(json.dumps(notebook))


class Client(NotebookClient):
    """Answers what a cell asks with the lines in its metadata, "answers": what a reader would type into the debugger."""

    answers = ()

    async def async_start_new_kernel_client(self):
        client = await super().async_start_new_kernel_client()
        client.allow_stdin = True
        self.answering = asyncio.ensure_future(self.answer(client))
        return client

    async def async_execute_cell(self, cell, *arguments, **options):
        self.answers = iter(cell["metadata"].get("answers", []))
        return await super().async_execute_cell(cell, *arguments, **options)

    async def answer(self, client):
        while True:
            await client.stdin_channel.get_msg()
            client.input(next(self.answers, "c"))

    async def _async_cleanup_kernel(self):
        self.answering.cancel()
        await super()._async_cleanup_kernel()


def execute(notebook):
    client = Client(notebook, timeout=600, kernel_name="lunaria",
                    resources={"metadata": {"path": str(environment.ROOT / "notebooks")}})
    client.execute()
    for cell in notebook["cells"]:
        cell.get("metadata", {}).pop("execution", None)


def install(program, prefix):
    """Makes the kernel known to this process and those it starts; returns nothing."""
    subprocess.run([program, "kernel", "install", "--prefix", prefix, "--name", "lunaria"], check=True,
                   stdout=subprocess.DEVNULL)
    os.environ["JUPYTER_PATH"] = os.path.join(prefix, "share", "jupyter")
    for name in ("JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR", "IPYTHONDIR", "XDG_STATE_HOME"):
        os.environ[name] = os.path.join(prefix, name.lower())
        os.makedirs(os.environ[name], exist_ok=True)


def run(path, update, graph):
    """Numbers of cells that passed and failed."""
    stored = nbformat.read(path, as_version=4)
    fresh = nbformat.from_dict(as_json(stored))
    if graph:
        first = next(cell for cell in fresh["cells"] if cell["cell_type"] == "code")
        # On the line of the first statement, so that cells and lines keep their numbers.
        first["source"] = "ms.set_context{ mode = ms.GRAPH_MODE }; " + joined(first["source"])
    execute(fresh)
    if update:
        for cell in fresh["cells"]:
            if "outputs" in cell:
                cell["outputs"] = [nbformat.from_dict(o) for o in merged(cell["outputs"])]
        nbformat.write(fresh, path)
        return 0, 0
    passed = failed = 0
    for number, (new, old) in enumerate(zip(as_json(fresh)["cells"], as_json(stored)["cells"])):
        if new["cell_type"] != "code":
            continue
        reason = compare_outputs(new["outputs"], old["outputs"], old["metadata"].get("tags", []))
        passed, failed = passed + (reason is None), failed + (reason is not None)
        if reason:
            print(f"FAIL {path.name} cell {number}: {reason[:2000]}")
    return passed, failed


def main(arguments):
    update, graph = "--update" in arguments, "--graph" in arguments
    if update and graph:
        sys.exit("what is stored is what plain execution gives: --update goes without --graph")
    program, *paths = [a for a in arguments if a not in ("--update", "--graph")]
    passed = failed = 0
    with tempfile.TemporaryDirectory() as prefix:
        install(os.path.abspath(program), prefix)
        for path in paths:
            done = run(Path(path).resolve(), update, graph)
            passed, failed = passed + done[0], failed + done[1]
    print(f"{passed} passed, {failed} failed")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
