"""Adds up JUnit reports and prints "N passed, N failed" as the last line. A program that runs many tests counts as many:
GoogleTest's lines and the line "N passed, N failed" of the Lua harness are read. A report that is missing, a program that
crashed and a test that did not run count as failed; one that skips for a reason it states counts as neither. The end of
what a failed test printed is shown again here: its own place may lie ten thousand lines up.

usage: summary.py REPORT..."""
import re
import sys
from pathlib import Path

import junit

GTEST_OK = re.compile(r"^\[       OK \] ", re.M)
GTEST_FAILED = re.compile(r"^\[  FAILED  \] .*\(\d+ ms\)$", re.M)
TAIL = 25  # lines of a failed test's output that are shown again
COUNTS = re.compile(r"^(\d+) passed, (\d+) failed\b", re.M)


def inside(text):
    """(passed, failed) that the output of one test program speaks of."""
    passed, failed = len(GTEST_OK.findall(text)), len(GTEST_FAILED.findall(text))
    for row in COUNTS.findall(text):
        passed, failed = passed + int(row[0]), failed + int(row[1])
    return passed, failed


def tail(text, lines=TAIL):
    """The last lines of an output, indented; a long line is cut."""
    return [f"    {row[:200]}" for row in text.rstrip().splitlines()[-lines:]]


def main(reports):
    passed, failed, remarks = 0, 0, []
    for report in reports:
        if not Path(report).exists():
            failed += 1
            remarks.append(f"{report}: no report")
            continue
        for name, text, outcome in junit.read(report):
            good, bad = inside(text)
            if outcome == "skipped":
                remarks.append(f"{name}: skipped: {junit.reason(text)}")
                continue
            if outcome == "passed" and bad:
                remarks += [f"{name}: prints failures and exits with 0"] + tail(text)
            elif outcome == "passed":
                good = good or 1
            else:
                bad = bad or 1
                remarks += [f"{name}: {outcome}"] + tail(text)
            passed, failed = passed + good, failed + bad
    for row in remarks:
        print(row)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
