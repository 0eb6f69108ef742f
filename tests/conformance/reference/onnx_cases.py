"""The node tests of the package onnx as folders, and a part of them as one small file for the tests.

usage: onnx_cases.py FOLDER            every case as FOLDER/node/NAME, with FOLDER/tolerances.json
       onnx_cases.py FOLDER --small F  the two smallest cases of each operator, of those in FOLDER, as the file F:
                                       a line of JSON that lists what follows it"""
import argparse
import json
import warnings
from pathlib import Path


def write_folder(folder):
    warnings.filterwarnings("ignore")
    from onnx.backend.test import cmd_tools
    from onnx.backend.test.case.node import collect_testcases

    cases = collect_testcases(None)
    cmd_tools.model_test = type("Cases", (), {"collect_testcases": staticmethod(lambda: cases)})
    cmd_tools.generate_data(argparse.Namespace(output=str(folder)))
    tolerances = {case.name: [case.rtol, case.atol] for case in cases}
    (folder / "tolerances.json").write_text(json.dumps(tolerances, indent=1, sort_keys=True))


def files_of(case):
    return sorted(path for path in case.rglob("*") if path.is_file())


def write_small(folder, out, each=2, most=6000):
    import onnx

    tolerances = json.loads((folder / "tolerances.json").read_text())
    by_operator = {}
    for name in sorted(tolerances):
        case = folder / "node" / name
        model = onnx.load(case / "model.onnx")
        size = sum(path.stat().st_size for path in files_of(case))
        operators = {(node.domain, node.op_type) for node in model.graph.node}
        # Cases of one operator speak of it; of graphs of several only the operators that have no case of their own.
        for operator in operators:
            by_operator.setdefault(operator, []).append((len(operators), size, name))
    chosen = set()
    for operator, rows in sorted(by_operator.items()):
        rows = [row for row in sorted(rows) if row[1] <= most] or sorted(rows)[:1]
        chosen.update(name for _, _, name in rows[:each])
    index, contents = [], []
    for name in sorted(chosen):
        case = folder / "node" / name
        entry = {"name": name, "rtol": tolerances[name][0], "atol": tolerances[name][1], "files": []}
        for path in files_of(case):
            data = path.read_bytes()
            entry["files"].append([path.relative_to(case).as_posix(), len(data)])
            contents.append(data)
        index.append(entry)
    out.write_bytes(json.dumps(index).encode() + b"\n" + b"".join(contents))
    print(f"{len(index)} cases, {out.stat().st_size} bytes")


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--small", type=Path)
    args = parser.parse_args()
    if args.small:
        write_small(args.folder, args.small)
    else:
        write_folder(args.folder)


if __name__ == "__main__":
    main()
