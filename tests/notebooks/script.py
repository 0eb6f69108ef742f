"""Runs notebooks as scripts, of several a third a day, and compares what they print with the texts that are stored in them.

usage: script.py LUNARIA NOTEBOOK...

Cells between those of the notebook print where each begins. Of cells with the tag "timing" only that they end is
looked at: progress and live plots are drawn elsewhere when nobody sees them. So it is of those about `__mime`, which is
for notebooks."""
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from comparison import compare_texts, joined

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "check"))
from today import is_of_today

MARK = "----- cell "
# Every cell of the notebook is the second of two.
PLACE = re.compile(r"\S*\.ipynb\[(\d+)\]")


def marked(cells):
    """The notebook's code cells, each after one that prints its number to both streams."""
    result = []
    for number, cell in enumerate(cells, 1):
        source = f'print("{MARK}{number}") io.stdout:flush() io.stderr:write("{MARK}{number}\\n");'
        result += [{"cell_type": "code", "metadata": {}, "outputs": [], "source": source}, cell]
    return result


def parts(text):
    """What follows each mark."""
    text = PLACE.sub(lambda found: f"In[{int(found[1]) // 2}]", text.replace("debug> ", ""))
    pieces = re.split(rf"^{MARK}(\d+)\n", text, flags=re.MULTILINE)
    return {int(number): piece for number, piece in zip(pieces[1::2], pieces[2::2])}


def stored_text(outputs):
    texts = []
    for output in outputs:
        if output.get("name") == "stdout":
            texts.append(joined(output["text"]))
        elif "data" in output:
            texts.append(joined(output["data"].get("text/plain", "")) + "\n")
    return "".join(texts)


def failure_of(cell, printed, errors):
    """Why a cell did not do what is stored, or None."""
    tags = set(cell["metadata"].get("tags", []))
    if printed is None:
        return "it was not run"
    for output in cell["outputs"]:
        reason = output["output_type"] == "error" and compare_texts(
            "\n".join(errors.splitlines()[:joined(output["evalue"]).count("\n") + 1]), output["evalue"], tags)
        if reason:
            return reason
    if "timing" in tags or "__mime" in joined(cell["source"]):
        return None
    return compare_texts(printed, stored_text(cell["outputs"]), tags)


def failures(program, path):
    """Runs a notebook; whether anything is wrong, which is printed."""
    notebook = json.loads(Path(path).read_text())
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    answers = "".join(line + "\n" for cell in cells for line in cell["metadata"].get("answers", []))
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / Path(path).name
        copy.write_text(json.dumps(dict(notebook, cells=marked(cells))))
        done = subprocess.run([program, copy], input=answers, capture_output=True, text=True, check=False)
    printed, errors = parts(done.stdout), parts(done.stderr)
    failed = 0
    for number, cell in enumerate(cells, 1):
        reason = failure_of(cell, printed.get(number), errors.get(number, ""))
        if reason:
            failed += 1
            print(f"FAIL {Path(path).name} code cell {number}: {reason[:2000]}")
    if done.returncode != 0:
        print(f"FAIL {Path(path).name}: exit code {done.returncode}\n{done.stderr[-2000:]}")
    print(f"{len(cells) - failed} passed, {failed} failed")
    return failed > 0 or done.returncode != 0


def main(program, *paths):
    of_today = [path for number, path in enumerate(paths) if len(paths) == 1 or is_of_today(number, 3)]
    return any([failures(program, path) for path in of_today])


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
