"""What Model.train costs beside a bare loop over the same step, and what its progress bar on a terminal costs.

usage: model_train.py LUNARIA     prints two JSON rows per network and mode"""
import json
import os
import pty
import subprocess
import sys
import threading

LIMIT, BAR_LIMIT = 1.03, 1.01


def read_all(terminal):
    """Until the other end is closed: what nobody reads would hold the program up."""
    try:
        while os.read(terminal, 65536):
            pass
    except OSError:
        pass


def figures(lunaria, network, mode):
    ours, theirs = pty.openpty()
    threading.Thread(target=read_all, args=(ours,), daemon=True).start()
    try:
        output = subprocess.run([lunaria, "bench/model_train.lua", network, mode], check=True, stdout=subprocess.PIPE,
                                stderr=theirs, text=True).stdout
    finally:
        os.close(theirs)
    return map(float, output.split())


def main(lunaria):
    for network in ("mlp", "lenet"):
        for mode in ("eager", "graph"):
            loop, model, shown, overhead, bar = figures(lunaria, network, mode)
            for name, value, limit in ((f"Model.train against a loop: {network}, {mode}", overhead, LIMIT),
                                       (f"progress bar of Model.train: {network}, {mode}", bar, BAR_LIMIT)):
                print(json.dumps({"workload": name, "value": value, "unit": "x", "limit": limit, "pass": value <= limit,
                                  "note": f"loop {loop:.0f} us, Model.train {model:.0f} us, with a bar {shown:.0f} us"}),
                      flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
