"""A notebook in JupyterLab in a headless Chromium, for tests of what its reader sees and does."""
import environment  # first: it changes to the environment that has the rest; pylint: disable=unused-import

import asyncio
import base64
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import run
from tornado.httpclient import AsyncHTTPClient
from tornado.websocket import websocket_connect

PATIENCE = 60  # s; a browser on a busy machine
# The only notebook; whether it is the current widget depends on where the focus is.
NOTEBOOK = "[...window.jupyterapp.shell.widgets('main')].find(w => w.sessionContext)"
KERNEL = f"{NOTEBOOK}?.sessionContext.session?.kernel"


class Elsewhere(RuntimeError):
    """The page is being left for another one."""


class Page:
    """One page of a Chromium, by the DevTools protocol."""

    def __init__(self, socket):
        self.socket, self.number, self.log = socket, 0, []

    async def call(self, method, **parameters):
        self.number += 1
        await self.socket.write_message(json.dumps({"id": self.number, "method": method, "params": parameters}))
        while True:
            text = await self.socket.read_message()
            if text is None:
                raise RuntimeError("the browser went away")
            message = json.loads(text)
            if message.get("id") == self.number:
                if "error" in message:
                    failure = Elsewhere if "navigated" in message["error"]["message"] else RuntimeError
                    raise failure(f"{method}: {message['error']}")
                return message["result"]
            said, details = message.get("method"), message.get("params", {})
            if said == "Runtime.exceptionThrown" or said == "Runtime.consoleAPICalled" and details["type"] == "error":
                self.log.append(json.dumps(details)[:4000])

    async def evaluate(self, expression):
        answer = await self.call("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(json.dumps(answer["exceptionDetails"])[:500])
        return answer["result"].get("value")

    async def wait(self, what, expression, patience=PATIENCE):
        end = time.monotonic() + patience
        while time.monotonic() < end:
            try:
                if await self.evaluate(expression):
                    return
            except Elsewhere:
                pass
            await asyncio.sleep(0.2)
        raise AssertionError(f"waited in vain for {what}; the page says: {self.log[-5:]}")

    async def screenshot(self, selector=None):
        clip = {}
        if selector:
            box = await self.evaluate(f"""(() => {{ const e = {selector}; e.scrollIntoView();
                const r = e.getBoundingClientRect(); return [r.x, r.y, r.width, r.height]; }})()""")
            clip = {"clip": dict(zip(("x", "y", "width", "height"), box), scale=1)}
        return base64.b64decode((await self.call("Page.captureScreenshot", format="png", **clip))["data"])


def start_server(folder, notebook, processes):
    # All cells are to be there, not only those that the window shows.
    settings = folder / "settings" / "@jupyterlab" / "notebook-extension"
    settings.mkdir(parents=True)
    (settings / "tracker.jupyterlab-settings").write_text('{"windowingMode": "none"}')
    os.environ["JUPYTERLAB_SETTINGS_DIR"] = str(folder / "settings")
    (folder / "lesson.ipynb").write_text(json.dumps(notebook))
    log = open(folder / "server.log", "wb")
    processes.append(subprocess.Popen(
        [sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root", "--ip=127.0.0.1", "--port=0",
         "--IdentityProvider.token=lesson", f"--ServerApp.root_dir={folder}", "--LabApp.expose_app_in_browser=True",
         "--LabApp.news_url=None", "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate"],
        stdout=log, stderr=log))
    runtime = Path(os.environ["JUPYTER_RUNTIME_DIR"])
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        for path in runtime.glob("jpserver-*.json"):
            try:
                return json.loads(path.read_text())["url"]
            except (ValueError, KeyError):
                pass
        if processes[-1].poll() is not None:
            break
        time.sleep(0.2)
    raise AssertionError("JupyterLab did not start:\n" + (folder / "server.log").read_text()[-2000:])


async def open_page(folder, url, size, processes):
    profile = folder / "profile"
    log = open(folder / "browser.log", "wb")
    processes.append(subprocess.Popen(
        ["chromium", "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
         "--remote-debugging-port=0", "--remote-allow-origins=*", f"--user-data-dir={profile}",
         f"--window-size={size[0]},{size[1]}", f"{url}lab/tree/lesson.ipynb?token=lesson"], stdout=log, stderr=log))
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        try:
            port = (profile / "DevToolsActivePort").read_text().split()[0]
            pages = json.loads((await AsyncHTTPClient().fetch(f"http://127.0.0.1:{port}/json")).body)
            page = next(p for p in pages if p["type"] == "page")
            socket = await websocket_connect(page["webSocketDebuggerUrl"], max_message_size=1 << 28)
            return Page(socket)
        except (OSError, StopIteration, IndexError):
            await asyncio.sleep(0.2)
    raise AssertionError("Chromium did not start:\n" + (folder / "browser.log").read_text()[-2000:])


async def state(page):
    """What the page and its kernel are at, in words, for the message of a test that failed."""
    return await page.evaluate(f"""JSON.stringify(!window.jupyterapp ? {{}} : {{status: {KERNEL}?.status, connection: {KERNEL}?.connectionStatus,
        current: window.jupyterapp?.shell.currentWidget?.id, focus: document.hasFocus(),
        dialogs: [...document.querySelectorAll('.jp-Dialog')].map(e => e.innerText)}})""")


async def with_page(notebook, size, check, program, pictures):
    processes = []
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:
        folder = Path(name)
        try:
            run.install(program, name)
            page = await open_page(folder, start_server(folder, notebook, processes), size, processes)
            await page.call("Runtime.enable")
            await page.call("Emulation.setFocusEmulationEnabled", enabled=True)  # whatever window the desktop has in front
            await page.wait("JupyterLab", "window.jupyterapp !== undefined && document.querySelector('.jp-CodeCell') !== null")
            await page.wait("the kernel", f"{KERNEL}?.status == 'idle'")
            await page.evaluate(f"void window.jupyterapp.shell.activateById({NOTEBOOK}.id)")
            await page.wait("the notebook to be current", f"window.jupyterapp.shell.currentWidget === {NOTEBOOK}")
            return await check(page, pictures)
        except AssertionError as e:
            raise AssertionError(f"{e}\n{await state(page)}\n{(folder / 'server.log').read_text()[-3000:]}") from e
        finally:
            for process in reversed(processes):
                process.terminate()
                try:
                    process.wait(10)
                except subprocess.TimeoutExpired:
                    process.kill()
                    process.wait()


def main(notebook, size, check):
    """Opens the notebook and exits by whether check(page, folder for pictures or None) found something to fail."""
    if not shutil.which("chromium"):
        print("skipped: there is no chromium")
        sys.exit(77)
    pictures = Path(sys.argv[2]) if len(sys.argv) > 2 else None
    if pictures:
        pictures.mkdir(parents=True, exist_ok=True)
    try:
        failed = asyncio.run(with_page(notebook, size, check, os.path.abspath(sys.argv[1]), pictures))
    except AssertionError as e:
        print(f"FAIL: {e}")
        failed = True
    sys.exit(failed)
