"""JUnit reports, the form in which ctest, the fuzz runner and the checks hand their results to summary.py."""
import re
import xml.etree.ElementTree as tree


def write(path, suite, results):
    """results: (name, text, passed) for each test."""
    root = tree.Element("testsuite", name=suite, tests=str(len(results)))
    for name, text, passed in results:
        case = tree.SubElement(root, "testcase", name=name, status="run" if passed else "fail")
        if not passed:
            tree.SubElement(case, "failure")
        printable = "".join(c for c in text if c >= " " or c in "\n\t")
        tree.SubElement(case, "system-out").text = printable
    tree.ElementTree(root).write(path, encoding="utf-8", xml_declaration=True)


def outcome(case):
    """One of "passed", "failed", "skipped" and "did not run". A test skips by ctest's code for that and a line that says why."""
    skipped = case.find("skipped")
    if skipped is not None or case.get("status") in ("notrun", "disabled"):
        chosen = skipped is not None and "SKIP_RETURN_CODE" in skipped.get("message", "")
        return "skipped" if chosen and reason(case.findtext("system-out") or "") else "did not run"
    failed = case.find("failure") is not None or case.find("error") is not None or case.get("status") == "fail"
    return "failed" if failed else "passed"


def reason(text):
    """Why a test skipped: what its output says behind "skipped:", or None."""
    found = re.search(r"^skipped: *(\S.*)$", text, re.M)
    return found and found.group(1)


def read(path):
    """Yields (name, text, outcome) for each test of a report."""
    for case in tree.parse(path).getroot().iter("testcase"):
        yield case.get("name"), case.findtext("system-out") or "", outcome(case)
