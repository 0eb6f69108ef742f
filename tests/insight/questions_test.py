"""Ten questions to trainings, each answered by the pages of insight in at most three clicks from the table of runs.

usage: questions_test.py LUNARIA [FOLDER for pictures]"""
import os
import shutil
import sys
import tempfile
import time
from pathlib import Path

from browser import served

HERE = Path(__file__).resolve().parent
READY = "document.querySelector('main')?.dataset.ready === 'true'"
MAIN = "document.querySelector('main').textContent"
MOST_CLICKS = 3


def page(name):
    return f"document.querySelector('nav a[href^=\"#/{name}\"]')"


def by_text(kind, text):
    return f"[...document.querySelectorAll('main {kind}')].find(e => e.textContent.trim().startsWith('{text}'))"


def rows(title):
    """The texts of the table below a heading."""
    return f"[...([...document.querySelectorAll('main h2')].find(e => e.textContent.startsWith('{title}'))?.parentElement.querySelectorAll('tbody tr') ?? [])].map(e => e.textContent)"


# The question, what is clicked, and an expression that is true when the answer is on the screen.
QUESTIONS = [
    ("Which run was best?", [by_text("th", "accuracy")], "document.querySelector('main tbody tr')?.textContent.includes('rate/0.1') && document.querySelector('main tbody tr td.best') !== null"),
    ("Why was it best?", [page("hyper")], f"{rows('What moves accuracy')}[0]?.startsWith('learning_rate')"),
    ("Where did NaN start, and from what?", [page("texts")], f"{MAIN}.includes('tensor_overflow at log-0') && /questions\\.lua:\\d+/.test({MAIN}) && {MAIN}.includes('sub-0')"),
    ("In which step was the loss of the broken run lost?", [page("scalars")],
     "[...document.querySelectorAll('article.card')].some(e => e.ariaLabel === 'loss' && e.querySelector('.bad')?.textContent.includes('NaN from 4'))"),
    ("Which part of the network is repeated twelve times?", [page("graph")], "document.querySelector('.graph-panel')?.textContent.includes('12 × ')"),
    ("What happens to the data before it is trained on?", [page("lineage")], f"['NumpySlicesDataset', 'Shuffle', 'Batch'].every(t => {MAIN}.includes(t)) && {MAIN}.includes('128 samples')"),
    ("In which settings do the runs differ?", [page("compare")], f"{MAIN}.includes('learning_rate') && {MAIN}.includes('width') && {MAIN}.includes('more are equal in all')"),
    ("Which operator takes the time, and which line calls it?", [page("profile")], "[...document.querySelectorAll('main th')].some(e => e.textContent.includes('Own time')) && /\\.lua:\\d+/.test(document.querySelector('main tbody').textContent)"),
    ("How flat is the loss around the weights?", [page("landscape")], f"{MAIN}.includes('loss') && document.querySelectorAll('main canvas').length > 0"),
    ("Where does the network look?", [page("explain")], "document.querySelectorAll('main .picture img.map').length > 0"),
]


def ask(browser, url, question, clicks, answer):
    assert len(clicks) <= MOST_CLICKS, question
    browser.go("about:blank")
    browser.go(f"{url}#/runs")
    browser.wait("the table of runs", f"{READY} && document.querySelectorAll('main tbody tr').length === 8")
    for click in clicks:
        browser.wait(question, f"({click}) !== undefined && ({click}) !== null && {READY}")
        browser.click(click)
    browser.wait(question, answer)
    assert not browser.events, f"{question}: the browser complains: {browser.events}"


def main():
    if not shutil.which("chromium"):
        print("skipped: there is no chromium")
        return 77
    pictures = Path(sys.argv[2]) if len(sys.argv) > 2 else None
    if pictures:
        pictures.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        try:
            with served(folder, os.path.abspath(sys.argv[1]), str(HERE / "questions.lua"), f"{folder}/runs") as (_, browser, url):
                for i, (question, clicks, answer) in enumerate(QUESTIONS):
                    begun = time.monotonic()
                    ask(browser, url, question, clicks, answer)
                    print(f"{question} {len(clicks)} click{'s' if len(clicks) > 1 else ''}, {time.monotonic() - begun:.1f} s", flush=True)
                    if pictures:
                        for dark in (False, True):
                            browser.dark(dark)
                            time.sleep(0.5)
                            browser.screenshot(pictures / f"{i + 1:02}-{'dark' if dark else 'light'}.png")
                        browser.dark(False)
        except AssertionError as error:
            print(f"FAIL: {error}")
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
