"""A headless Chromium with one page, by the DevTools protocol through a pipe: nothing listens, nothing else is needed."""
import base64
import contextlib
import json
import os
import select
import subprocess
import time


@contextlib.contextmanager
def served(folder, *command, **more):
    """A program that serves pages until its standard input ends, their address, which is its first line, and a browser."""
    server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, **more)
    browser = None
    try:
        browser = Browser(folder)
        url = server.stdout.readline().strip()
        assert url.startswith("http://127.0.0.1:"), f"the server does not start: {url}"
        yield server, browser, url
    except BaseException:
        server.kill()  # it may stand, and read nothing
        raise
    finally:
        if browser:
            browser.close()
        server.stdin.close()
        try:
            server.wait(120)  # it may have to finish an answer
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait()
            raise


class Browser:
    def __init__(self, folder, size=(1280, 900), dark=False):
        to_browser, self.output = os.pipe()
        self.input, from_browser = os.pipe()
        command = ["chromium", "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--disable-background-networking",
                   "--disable-component-update", "--disable-sync", "--no-default-browser-check", "--remote-debugging-pipe",
                   f"--user-data-dir={folder}/profile", f"--window-size={size[0]},{size[1]}", "about:blank"]
        # The browser reads from 3 and writes to 4.
        program = f"exec 3<&{to_browser} 4>&{from_browser}; exec \"$@\""
        self.log = open(f"{folder}/browser.log", "wb")
        self.process = subprocess.Popen(["bash", "-c", program, "bash", *command], stdout=self.log, stderr=self.log, pass_fds=(to_browser, from_browser))
        os.close(to_browser)
        os.close(from_browser)
        self.number, self.session, self.buffer, self.events, self.requests = 0, None, b"", [], []
        target = next(t for t in self.call("Target.getTargets")["targetInfos"] if t["type"] == "page")
        self.session = self.call("Target.attachToTarget", targetId=target["targetId"], flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")
        self.size(*size)
        self.dark(dark)

    def receive(self, end):
        while b"\0" not in self.buffer:
            if not select.select([self.input], [], [], max(0, end - time.monotonic()))[0]:
                raise AssertionError("the browser does not answer")
            more = os.read(self.input, 1 << 20)
            if not more:
                raise AssertionError("the browser went away")
            self.buffer += more
        text, self.buffer = self.buffer.split(b"\0", 1)
        return json.loads(text)

    def call(self, method, **parameters):
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        text = json.dumps(message).encode() + b"\0"
        while text:
            text = text[os.write(self.output, text):]
        end = time.monotonic() + 60
        while True:
            answer = self.receive(end)
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise AssertionError(f"{method}: {answer['error']}")
                return answer["result"]
            self.take(answer)

    def take(self, message):
        said, details = message.get("method"), message.get("params", {})
        if said == "Network.requestWillBeSent":
            self.requests.append(details["request"]["url"])
        elif said == "Runtime.exceptionThrown":
            self.events.append(json.dumps(details["exceptionDetails"])[:2000])
        elif said == "Runtime.consoleAPICalled" and details["type"] in ("error", "warning"):
            self.events.append(" ".join(str(a.get("value", a.get("description"))) for a in details["args"])[:2000])
        elif said == "Log.entryAdded" and details["entry"]["level"] == "error":
            self.events.append(json.dumps(details["entry"])[:2000])

    def evaluate(self, expression):
        answer = self.call("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in answer:
            raise AssertionError(f"{expression}: {json.dumps(answer['exceptionDetails'])[:800]}")
        return answer["result"].get("value")

    def wait(self, what, expression, patience=60):
        end = time.monotonic() + patience
        while time.monotonic() < end:
            value = self.evaluate(expression)
            if value:
                return value
            time.sleep(0.03)
        shown = self.evaluate("location.href + ' ' + document.body?.innerText.slice(0, 1500)")
        raise AssertionError(f"waited in vain for {what}; the page says: {self.events[-5:]} and shows {shown}; last asked: {self.requests[-5:]}")

    def go(self, url):
        self.call("Page.navigate", url=url)

    def size(self, width, height):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def dark(self, on):
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark" if on else "light"}])

    def mouse(self, kind, x, y, **more):
        self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, **{"button": "left", "buttons": 1, **more})

    def box(self, element):
        return self.evaluate(f"(() => {{ const e = {element}; e.scrollIntoView({{block: 'nearest'}}); const r = e.getBoundingClientRect(); return [r.x, r.y, r.width, r.height]; }})()")

    def click(self, element):
        x, y, width, height = self.box(element)
        for kind in ("mousePressed", "mouseReleased"):
            self.mouse(kind, x + width / 2, y + height / 2, clickCount=1)

    # From one part of an element to another; parts of its width and height.
    def drag(self, element, start, end):
        x, y, width, height = self.box(element)
        places = [(x + width * a, y + height * b) for a, b in (start, end)]
        self.mouse("mouseMoved", *places[0], buttons=0)
        self.mouse("mousePressed", *places[0], clickCount=1)
        for i in range(1, 6):
            self.mouse("mouseMoved", *(a + (b - a) * i / 5 for a, b in zip(*places)))
        self.mouse("mouseReleased", *places[1], clickCount=1)

    def key(self, key):
        self.call("Input.dispatchKeyEvent", type="keyDown", key=key, text=key if len(key) == 1 else "")
        self.call("Input.dispatchKeyEvent", type="keyUp", key=key)

    def type(self, text):
        self.call("Input.insertText", text=text)

    def downloads(self, folder):
        session, self.session = self.session, None
        self.call("Browser.setDownloadBehavior", behavior="allow", downloadPath=str(folder))
        self.session = session

    def screenshot(self, path):
        with open(path, "wb") as file:
            file.write(base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"]))

    def close(self):
        try:
            self.session = None
            self.call("Browser.close")
            self.process.wait(10)
        except (AssertionError, OSError, subprocess.TimeoutExpired):
            self.process.kill()
            self.process.wait()
        os.close(self.output)
        os.close(self.input)
        self.log.close()
