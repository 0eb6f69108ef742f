"""Draws .github/picture.svg, the picture of README.md, from what is really shown: a terminal in tmux, in which the first network of
README.md is trained and a mistake is explained, and JupyterLab in Chromium with a cell of its own.

usage: picture.py LUNARIA             draws it
       picture.py LUNARIA --check     compares the terminal in the picture with what the program shows now"""
import base64
import html
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PICTURE = ROOT / ".github/picture.svg"
COLUMNS, LINES = 92, 24
CHARACTER, LINE, SIZE = 7.23, 17, 12
TYPED = [  # what is typed, and what is shown when it is done
    ("PS1='$ '; clear", r"^\s*\$ $"),
    ("lunaria first.lua", r"\n0\.\d+\n\$ $"),
    ("lunaria", r"\n> $"),
    ('ms = require "lunaria"', r"\n> $"),
    ("f = function(x) return x > 0 and x ^ 3 or -x end", r"\n> $"),
    ("ms.grad(ms.grad(f))(2.0)", r"\n12\.0\n> $"),
    ("ms.ops.matmul(ms.ones{2, 3}, ms.ones{2})", r"\^+\n> $"),
]
CELL = """ms = require "lunaria"
nn, ops = ms.nn, ms.ops
points = ms.rand(400, 2) * 2 - 1
inside = (points ^ 2):sum(1):less(0.5):int()
net = nn.SequentialCell(nn.Dense(2, 32), nn.Tanh(), nn.Dense(32, 2))
optimizer = nn.Adam(net:trainable_params(), 0.02)
loss = function(x, y) return ops.cross_entropy(net(x), y) end
train = ms.value_and_grad(loss, nil, net:trainable_params())
curve = ms.plot.live{title = "loss", x_label = "step", height = 180}
for step in ms.progress(200) do
  local value, grads = train(points, inside)
  optimizer(grads)
  curve:add(step, value)
end"""
COLOURS = ["#45475a", "#f38ba8", "#a6e3a1", "#f9e2af", "#89b4fa", "#cba6f7", "#94e2d5", "#bac2de"]


def first_program():
    return re.search(r"^```lua\n(.*?)^```$", (ROOT / "README.md").read_text(), re.M | re.S)[1]


def terminal(program):
    """The lines of a terminal with their escape sequences."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "first.lua").write_text(first_program())
        os.symlink(program, Path(folder) / "lunaria")
        tmux = ["tmux", "-L", f"picture{os.getpid()}", "-f", "/dev/null"]
        environment = {"PATH": f"{folder}:/usr/bin:/bin", "HOME": folder, "TERM": "xterm-256color", "PS1": "$ ", "LANG": "C.UTF-8"}

        def call(*words):
            return subprocess.run([*tmux, *words], cwd=folder, env=environment, check=True, capture_output=True, text=True).stdout

        call("new-session", "-d", "-s", "p", "-x", str(COLUMNS), "-y", str(LINES), "/bin/sh")
        try:
            for text, done in TYPED:
                call("send-keys", "-t", "p", "-l", text)
                call("send-keys", "-t", "p", "Enter")
                end = time.monotonic() + 60
                while not re.search(done, call("capture-pane", "-t", "p", "-p").rstrip("\n") + " "):
                    if time.monotonic() > end:
                        raise SystemExit(f"picture.py: {text} shows\n{call('capture-pane', '-t', 'p', '-p')}")
                    time.sleep(0.1)
            return call("capture-pane", "-t", "p", "-p", "-e").rstrip("\n").split("\n")
        finally:
            call("kill-server")


def plain(lines):
    """What the lines say, without the speed of this machine."""
    return [re.sub(r"\[\d+:\d+<.*\]", "", re.sub(r"\x1b\[[\d;]*m", "", line)).rstrip() for line in lines]


def spans(line):
    """(text, attributes) of the parts of a line that look alike."""
    colour, bold, at = None, False, 0
    for match in re.finditer(r"\x1b\[([\d;]*)m|$", line):
        if part := line[at:match.start()]:
            yield part, (f' fill="{colour}"' if colour else "") + (' font-weight="bold"' if bold else "")
        at = match.end()
        for code in map(int, (match[1] or "0").split(";")):
            if code == 0:
                colour, bold = None, False
            elif code == 1:
                bold = True
            elif 30 <= code <= 37 or 90 <= code <= 97:
                colour = COLOURS[code % 10]
            elif code == 39:
                colour = None


def draw(lines, notebook):
    width, height = COLUMNS * CHARACTER + 32, LINES * LINE + 44
    right = width + 16
    rows = []
    for number, line in enumerate(lines):
        column = 0
        for part, attributes in spans(line):
            rows.append(f'<text x="{16 + column * CHARACTER:.1f}" y="{52 + number * LINE}"{attributes} xml:space="preserve">'
                        f"{html.escape(part, quote=False)}</text>")
            column += len(part)
    lights = "".join(f'<circle cx="{20 + 18 * i}" cy="16" r="5.5" fill="{fill}"/>' for i, fill in enumerate(("#f38ba8", "#f9e2af", "#a6e3a1")))
    image = base64.b64encode(notebook).decode()
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {right + 560:.0f} {height}" font-size="{SIZE}" '
            f'font-family="DejaVu Sans Mono, Menlo, Consolas, monospace" fill="#cdd6f4">\n'
            f'<rect width="{width:.0f}" height="{height}" rx="8" fill="#1e1e2e"/>{lights}\n' + "\n".join(rows) +
            f'\n<image x="{right:.0f}" width="560" height="{height}" preserveAspectRatio="xMidYMin slice" href="data:image/webp;base64,{image}"/>\n</svg>\n')


def notebook_picture(program):
    """JupyterLab with the cell and what it shows, as WebP."""
    sys.argv = [sys.argv[0], program]
    sys.path.insert(0, str(ROOT / "tests/notebooks"))
    import environment  # noqa: F401  changes to the environment that has Jupyter
    import asyncio

    import browser

    async def look(page, _):
        await page.evaluate("void window.jupyterapp.commands.execute('application:toggle-left-area')")
        await page.evaluate("void window.jupyterapp.commands.execute('notebook:run-all-cells')")
        await page.wait("the plot", "document.querySelector('.jp-OutputArea-output')?.innerText.includes('200/200')")
        await page.evaluate("document.querySelectorAll('.Toastify').forEach(e => e.remove())")
        await asyncio.sleep(2)
        answer = await page.call("Page.captureScreenshot", format="webp", quality=82)
        return base64.b64decode(answer["data"])

    book = {"nbformat": 4, "nbformat_minor": 5, "metadata": {"kernelspec": {"name": "lunaria", "display_name": "Lunaria", "language": "lua"}},
            "cells": [{"cell_type": "markdown", "id": "a", "metadata": {}, "source": "# Points in a circle"},
                      {"cell_type": "code", "id": "b", "metadata": {}, "outputs": [], "execution_count": None, "source": CELL}]}
    return asyncio.run(browser.with_page(json.loads(json.dumps(book)), (900, 820), look, program, None))


def main(program, *options):
    program = os.path.abspath(program)
    if "--check" in options:
        stored = {}
        for y, text in re.findall(r'<text x="[\d.]+" y="(\d+)"[^>]*>(.*?)</text>', PICTURE.read_text()):
            stored[int(y)] = stored.get(int(y), "") + html.unescape(text)
        shown = [line for line in plain(terminal(program)) if line]
        same = plain(line for _, line in sorted(stored.items())) == shown
        print("1 passed, 0 failed" if same else "FAIL picture.svg: .github/picture.py draws it anew; the terminal shows now\n" + "\n".join(shown))
        return not same
    notebook = notebook_picture(program)
    PICTURE.write_text(draw(terminal(program), notebook))
    print(f"{PICTURE}: {PICTURE.stat().st_size // 1024} kB")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
