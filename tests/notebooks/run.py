"""Executes a notebook with nbclient and compares what comes out with what is stored in it.

usage: run.py LUNARIA NOTEBOOK...     compares; prints one line for each cell that differs
       run.py --graph LUNARIA NOTEBOOK...    the same after a switch to graph mode at the start
       run.py --update LUNARIA NOTEBOOK...   stores what came out
       run.py --each-day N LUNARIA NOTEBOOK...   compares those of today: a notebook with a number is run every N-th day

comparison.py says how they are compared. The tag "raises-exception": the cell ends in an error, which is an output like
any other."""
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "check"))
from today import is_of_today


def without_other_days(arguments):
    """The arguments without --each-day N and the notebooks of other days."""
    if "--each-day" not in arguments:
        return arguments
    at = arguments.index("--each-day")
    days, rest = int(arguments[at + 1]), arguments[:at] + arguments[at + 2:]
    return [a for a in rest if not a.endswith(".ipynb") or is_of_today(int(Path(a).stem.partition("-")[0]), days)]


sys.argv = without_other_days(sys.argv)
if __name__ == "__main__" and not any(a.endswith(".ipynb") for a in sys.argv):
    print("0 passed, 0 failed")  # what follows takes two seconds
    sys.exit()

import environment  # first of the rest: it changes to the environment that has it

import asyncio
import json
import os
import subprocess
import tempfile

import nbformat
from nbclient import NotebookClient

from comparison import compare_outputs, joined, merged


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
        first["source"] = "ms.set_context{ mode = ms.GRAPH_MODE, jit_level = 'O1' }; " + joined(first["source"])
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
