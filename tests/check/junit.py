"""JUnit reports, the form in which ctest, the fuzz runner and the checks hand their results to summary.py."""
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


def read(path):
    """Yields (name, text, passed or None when it did not run) for each test of a report."""
    for case in tree.parse(path).getroot().iter("testcase"):
        ran = case.find("skipped") is None and case.get("status") not in ("notrun", "disabled")
        failed = case.find("failure") is not None or case.find("error") is not None or case.get("status") == "fail"
        yield case.get("name"), case.findtext("system-out") or "", (not failed) if ran else None
