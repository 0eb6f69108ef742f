"""JupyterLab's debugger in a headless Chromium, as its user has it: a breakpoint by a click beside a line, what the panel
shows at the stop, a step, and on.

usage: jupyterlab_debugger_test.py LUNARIA [FOLDER for the screenshots]"""
import environment  # first: it changes to the environment that has the rest; pylint: disable=unused-import

import asyncio
import json
import time

import browser

SOURCE = """local x = ms.tensor{{1.0, 2.0}, {3.0, 4.0}}
local function double(t)
  local d = t * 2
  return d
end
local y = double(x)
total = y:sum():item()
total"""
NOTEBOOK = {"cells": [{"cell_type": "code", "id": "a", "metadata": {}, "source": SOURCE, "outputs": [], "execution_count": None}],
            "metadata": {"kernelspec": {"name": "lunaria", "display_name": "Lunaria", "language": "lua"}}, "nbformat": 4, "nbformat_minor": 5}
BUTTON = "document.querySelector('.jp-DebuggerBugButton')"
CELL = "document.querySelector('.jp-CodeCell')"
FRAMES = ("[...document.querySelectorAll('.jp-DebuggerCallstackFrame')].map(e => [e.querySelector('.jp-DebuggerCallstackFrame-name').innerText,"
          " Number(e.querySelector('.jp-DebuggerCallstackFrame-location').innerText.split(':').pop())])")
VARIABLES = ("[...document.querySelectorAll('.jp-DebuggerVariables-name')].map(e => e.textContent + ': ' + "
             "e.parentElement.querySelector('.jp-DebuggerVariables-detail')?.textContent)")


class Tests:
    def __init__(self, page, pictures):
        self.page, self.pictures = page, pictures

    async def picture(self, name):
        if self.pictures:
            (self.pictures / f"debugger-{name}.png").write_bytes(await self.page.screenshot())

    async def click_at(self, x, y):
        for kind in ("mouseMoved", "mousePressed", "mouseReleased"):
            await self.page.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    async def middle(self, element):
        await self.page.wait(element, f"(({element})?.getBoundingClientRect().width ?? 0) > 0")
        return await self.page.evaluate(f"(() => {{ const r = ({element}).getBoundingClientRect();"
                                        " return [r.x + r.width / 2, r.y + r.height / 2]; })()")

    async def command(self, name):
        commands = "window.jupyterapp.commands"
        await self.page.wait(f"{name} to be possible", f"{commands}.isEnabled('{name}')")
        await self.page.evaluate(f"void {commands}.execute('{name}')")

    async def stop(self, *frames):
        await self.page.wait(f"a stop at {frames}", f"JSON.stringify({FRAMES}) == '{json.dumps(frames, separators=(',', ':'))}'")

    async def shows(self, variable):
        await self.page.wait(f"{variable} in the panel", f"({VARIABLES}).includes({json.dumps(variable)})")

    async def result(self, text):
        await self.page.wait(f"the result {text}", f"({CELL}.querySelector('.jp-OutputArea-output')?.innerText ?? '').trim() == '{text}'")

    async def conversation(self):
        # The button does nothing before the page has heard that the kernel has a debugger.
        gutter = f"{CELL}.querySelector('.cm-breakpoint-gutter')"
        end = time.monotonic() + browser.PATIENCE
        while not await self.page.evaluate(f"{gutter} !== null") and time.monotonic() < end:
            if await self.page.evaluate(f"{BUTTON}?.getAttribute('aria-pressed') != 'true'"):
                await self.click_at(*await self.middle(BUTTON))
            await asyncio.sleep(1)
        x, _ = await self.middle(gutter)
        _, y = await self.middle(f"{CELL}.querySelectorAll('.cm-line')[2]")
        await self.click_at(x, y)
        await self.page.wait("the breakpoint", "document.querySelector('.jp-DebuggerBreakpoint')?.innerText.includes('3')")
        assert await self.page.evaluate(f"{CELL}.querySelectorAll('.cm-breakpoint-icon').length") > 0
        await self.picture("breakpoint")
        await self.page.evaluate("void window.jupyterapp.commands.execute('notebook:run-cell')")
        await self.stop(["double", 3], ["main chunk", 6])
        await self.shows("t: Tensor [2, 2] Float32")
        await self.picture("stop")
        await self.command("debugger:next")
        await self.stop(["double", 4], ["main chunk", 6])
        await self.shows("d: Tensor [2, 2] Float32")
        await self.picture("step")
        await self.command("debugger:continue")
        await self.result("20.0")
        await self.page.wait("the end of the stop", f"({FRAMES}).length == 0")
        await self.picture("end")


async def check(page, pictures):
    tests = Tests(page, pictures)
    try:
        await tests.conversation()
    finally:
        await tests.picture("last")
    print("1 passed, 0 failed")
    return False


if __name__ == "__main__":
    browser.main(NOTEBOOK, (1400, 900), check)
