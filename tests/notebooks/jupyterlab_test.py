"""Opens a lesson in JupyterLab in a headless Chromium, runs it, and looks at what can be seen: a plot, a table, a progress
bar, a growing curve, a slider that moves a plot.

usage: jupyterlab_test.py LUNARIA [FOLDER for the screenshots]"""
import environment  # first: it changes to the environment that has the rest

import asyncio
import json
import struct
import time
import zlib

import browser
from browser import PATIENCE

LESSON = environment.ROOT / "notebooks" / "05-showing.ipynb"
WIDTH, HEIGHT = 1200, 3200


def pixels(png):
    """Rows of (red, green, blue) of an 8-bit PNG without interlacing, as browsers make them."""
    at, body = 8, b""
    while at < len(png):
        size, kind = struct.unpack(">I4s", png[at:at + 8])
        if kind == b"IHDR":
            width, height, _, color = struct.unpack(">IIBB", png[at + 8:at + 18])
        elif kind == b"IDAT":
            body += png[at + 8:at + 8 + size]
        at += size + 12
    channels = {2: 3, 6: 4}[color]
    data, rows, above = zlib.decompress(body), [], bytearray(width * channels)
    for y in range(height):
        start = y * (width * channels + 1)
        filter_type, row = data[start], bytearray(data[start + 1:start + 1 + width * channels])
        for i in range(len(row)):
            left = row[i - channels] if i >= channels else 0
            up, corner = above[i], above[i - channels] if i >= channels else 0
            if filter_type == 1:
                row[i] = (row[i] + left) & 255
            elif filter_type == 2:
                row[i] = (row[i] + up) & 255
            elif filter_type == 3:
                row[i] = (row[i] + (left + up) // 2) & 255
            elif filter_type == 4:
                guess = left + up - corner
                row[i] = (row[i] + min((left, up, corner), key=lambda n: abs(guess - n))) & 255
        rows.append([tuple(row[k:k + 3]) for k in range(0, len(row), channels)])
        above = row
    return rows


def count_near(rows, color, distance=40):
    return sum(1 for row in rows for p in row if max(abs(a - b) for a, b in zip(p, color)) <= distance)


CELLS = "[...document.querySelectorAll('.jp-CodeCell')]"


class Tests:
    def __init__(self, page, pictures):
        self.page, self.pictures, self.passed, self.failed = page, pictures, 0, 0

    async def run(self, name, check):
        try:
            await check()
            print(f"ok {name}")
            self.passed += 1
        except AssertionError as e:
            print(f"FAIL {name}: {e}")
            self.failed += 1

    async def picture(self, name, selector=None):
        png = await self.page.screenshot(selector)
        if self.pictures:
            (self.pictures / f"{name}.png").write_bytes(png)
        return pixels(png)

    async def cells_ran(self):
        numbers = await self.page.evaluate(
            CELLS + ".map(c => c.querySelector('.jp-InputArea-prompt').textContent.trim())")
        assert len(numbers) == 6 and all(n == f"[{i + 1}]:" for i, n in enumerate(numbers)), numbers
        errors = await self.page.evaluate(
            "[...document.querySelectorAll('[data-mime-type=\"application/vnd.jupyter.stderr\"]')].map(e => e.textContent)")
        assert not errors, errors

    async def table(self):
        cells = await self.page.evaluate(CELLS + "[0].querySelectorAll('table').length")
        assert cells == 2, f"{cells} tables"
        text = await self.page.evaluate(CELLS + "[0].querySelector('table').innerText")
        assert "Emmy" in text and "1882" in text, text
        rows = await self.picture("table", CELLS + "[0].querySelector('table')")
        dark = count_near(rows, (30, 30, 30), 80)
        assert 50 < dark < len(rows) * len(rows[0]) / 2, f"{dark} dark points"

    async def plot(self):
        await self.page.wait("the plot", CELLS + "[1].querySelector('.vega-embed canvas, .vega-embed svg') !== null")
        rows = await self.picture("plot", CELLS + "[1].querySelector('.vega-embed')")
        assert len(rows) > 250 and len(rows[0]) > 400, (len(rows), len(rows[0]))
        blue, orange = count_near(rows, (0x4c, 0x78, 0xa8)), count_near(rows, (0xf5, 0x85, 0x18))
        assert blue > 300 and orange > 300, f"{blue} blue points, {orange} orange ones"

    async def progress(self):
        bar = await self.page.evaluate(f"(() => {{ const p = {CELLS}[2].querySelector('progress'); return [p.value, p.max]; }})()")
        assert bar == [8, 8], bar
        rows = await self.picture("progress", CELLS + "[2].querySelector('progress')")
        white = count_near(rows, (255, 255, 255), 20)
        assert white < len(rows) * len(rows[0]) * 0.6, f"{white} of {len(rows) * len(rows[0])} points are white"
        count = await self.page.evaluate(CELLS + "[2].querySelectorAll('.jp-OutputArea-child').length")
        assert count == 3, f"{count} outputs: the bar, the curve and the result are three"

    async def curve(self):
        await self.page.wait("the curve", CELLS + "[2].querySelector('.vega-embed canvas, .vega-embed svg') !== null")
        rows = await self.picture("curve", CELLS + "[2].querySelector('.vega-embed')")
        blue = count_near(rows, (0x4c, 0x78, 0xa8))
        assert blue > 300, f"{blue} blue points"

    async def markup(self):
        await self.page.wait("the formula", CELLS + "[3].querySelector('mjx-container, .MathJax') !== null")
        assert await self.page.evaluate(CELLS + "[3].querySelector('strong').textContent") == "two"
        color = await self.page.evaluate(f"getComputedStyle({CELLS}[4].querySelector('span[style]')).backgroundColor")
        assert color == "rgb(255, 204, 102)", color

    async def slider(self):
        handle = CELLS + "[5].querySelector('.noUi-handle')"
        await self.page.wait("the slider", handle + " !== null")
        await self.page.wait("the slider's plot", CELLS + "[5].querySelector('.vega-embed canvas, .vega-embed svg') !== null")
        before = await self.picture("slider", CELLS + "[5]")
        await self.page.evaluate(handle + ".focus()")
        for _ in range(4):
            for kind in ("keyDown", "keyUp"):
                await self.page.call("Input.dispatchKeyEvent", type=kind, key="ArrowRight", code="ArrowRight",
                                     windowsVirtualKeyCode=39)
        await self.page.wait("the slider's new value", CELLS + "[5].querySelector('.widget-readout').textContent == '7'")
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            after = await self.picture("slider-moved", CELLS + "[5]")
            moved = sum(a != b for one, other in zip(before, after) for a, b in zip(one, other))
            if moved > 2000:
                return
            await asyncio.sleep(0.3)
        raise AssertionError("the plot below the slider did not change")

    async def no_complaint(self):
        assert not self.page.log, self.page.log

    async def opened_again(self):
        await self.page.evaluate("window.jupyterapp.commands.execute('docmanager:save').then(() => true)")
        await self.page.evaluate("window.jupyterapp = undefined")
        await self.page.call("Page.reload")
        await self.page.wait("the notebook", "window.jupyterapp !== undefined && " + CELLS + ".length == 6")
        await self.page.wait("the bar", CELLS + "[2]?.querySelector('progress')?.value === 8")
        await self.page.wait("the curve", CELLS + "[2]?.querySelector('.vega-embed canvas, .vega-embed svg') !== null")


async def check(page, pictures):
    # A page whose widget manager does not listen yet drops what it is sent, from whatever kernel.
    await page.wait("the widget manager", f"{browser.KERNEL}._targetRegistry?.['jupyter.widget'] !== undefined")
    await page.evaluate("window.jupyterapp.commands.execute('notebook:run-all-cells').then(() => true)")
    await page.wait("the last cell", CELLS + "[5]?.querySelector('.jp-InputArea-prompt').textContent.includes('[6]')")
    tests = Tests(page, pictures)
    for test in ("cells_ran", "table", "plot", "progress", "curve", "markup", "slider", "no_complaint", "opened_again"):
        await tests.run(test, getattr(tests, test))
    await tests.picture("page")
    print(f"{tests.passed} passed, {tests.failed} failed")
    return tests.failed > 0


if __name__ == "__main__":
    notebook = json.loads(LESSON.read_text())
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            cell["outputs"] = []
    browser.main(notebook, (WIDTH, HEIGHT), check)
