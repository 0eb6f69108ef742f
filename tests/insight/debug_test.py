"""A program under watch, debugged in a headless Chromium: node by node, step by step, to a hit, paused and ended; figures, elements,
what led to a node, its lines, and the step before.

usage: debug_test.py LUNARIA [--graph] [FOLDER for pictures]"""
import json
import os
import shutil
import sys
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path

from browser import served

HERE = Path(__file__).resolve().parent
MAIN = "(document.querySelector('main')?.textContent ?? '')"
LINES = {text.split("-- mark: ")[1].strip(): i + 1 for i, text in enumerate((HERE / "debug.lua").read_text().splitlines()) if "-- mark: " in text}


def button(text):
    return f"[...document.querySelectorAll('main button')].find(e => e.textContent === {json.dumps(text)} && !e.disabled)"


def stands(text, node):
    return f"{MAIN}.includes({json.dumps(text)}) && document.querySelector('main tr.picked')?.dataset.node === {json.dumps(node)}"


def press(browser, text):
    browser.wait(f"the button {text}", f"({button(text)}) !== undefined")
    browser.click(button(text))


def refused(url, body, kind="application/json", **headers):
    request = urllib.request.Request(f"{url}v1/lunaria/debug", body, {"Content-Type": kind, **headers}, method="POST")
    try:
        with urllib.request.urlopen(request, timeout=20) as answer:
            return answer.status
    except urllib.error.HTTPError as error:
        return error.code


def check(server, browser, url, pictures):
    go = "{\"command\": \"hit\"}".encode()
    assert refused(url, go, Origin="http://evil.example") == 403, "another site says how the program goes on"
    assert refused(url, go, kind="text/plain") in (403, 415), "a form of another site says how the program goes on"
    assert refused(url, b"[1") == 400 and refused(url, b"{\"command\": 3}") == 400 and refused(url, b"{\"command\": \"no such\"}") == 400
    browser.go(f"{url}#/debug")
    browser.wait("the first node", stands("Stands in step 1: the next node", "layer/sub-0"))
    browser.wait("its place", f"{MAIN}.includes('debug.lua:{LINES['sub']}')")
    browser.wait("its line", "document.querySelector('main pre strong')?.textContent.includes('weight - x')")
    press(browser, "Elements of result 0")
    browser.wait("the elements", f"{MAIN}.includes('0.75 1.75 2.75')")
    press(browser, "Next node")
    browser.wait("the second node", stands("Stands in step 1", "log-0"))
    browser.wait("what led to it", "[...document.querySelectorAll('main h3')].find(e => e.textContent === 'What led to it').nextSibling.textContent.includes('layer/sub-0')")
    press(browser, "Next step")
    browser.wait("the step's end", f"{MAIN}.includes('Stands in step 1: the end of a step')")
    browser.key("s")
    browser.wait("the second step", f"{MAIN}.includes('Stands in step 2: the end of a step')")
    press(browser, "layer/sub-0")
    browser.wait("the step before", f"{MAIN}.includes('0 of 3 elements differ')")
    if pictures:
        for dark in (False, True):
            browser.dark(dark)
            time.sleep(0.5)
            browser.screenshot(pictures / f"debug-{'dark' if dark else 'light'}.png")
        browser.dark(False)
    press(browser, "To the next hit")
    browser.wait("the hit", stands("Stands in step 4: a watchpoint was hit", "log-0"))
    browser.wait("what was hit", f"{MAIN}.includes('tensor_overflow at log-0') && document.querySelector('main td.bad')?.textContent === '1 NaN, 1 −∞'")
    press(browser, "To the next hit")
    browser.wait("what follows from it", stands("Stands in step 4: a watchpoint was hit", "sum-0"))
    press(browser, "To the next hit")
    # What is known is no hit again: the program runs on until it is paused.
    browser.wait("that it runs", f"{MAIN}.includes('Runs, step')")
    press(browser, "Pause")
    browser.wait("the pause", f"/Stands in step [\\d,]+: a pause/.test({MAIN})")
    assert not browser.events, browser.events
    press(browser, "End the program")
    said = server.stdout.readline()
    assert "ended by the user in step" in said, said
    browser.wait("that nothing stands", f"{MAIN}.includes('Runs, step')")


def main():
    if not shutil.which("chromium"):
        print("skipped: there is no chromium")
        return 77
    words = sys.argv[1:]
    graph = "--graph" in words
    words = [word for word in words if word != "--graph"]
    pictures = Path(words[1]) if len(words) > 1 else None
    if pictures:
        pictures.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        try:
            with served(folder, os.path.abspath(words[0]), str(HERE / "debug.lua"), folder, *(["graph"] if graph else [])) as (server, browser, url):
                check(server, browser, url, pictures)
        except AssertionError as error:
            print(f"FAIL: {error}")
            return 1
    print("a program was debugged in the browser")
    return 0


if __name__ == "__main__":
    sys.exit(main())
