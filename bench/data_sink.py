"""Training steps for single examples in one call of the loop sink, against as many calls of the compiled step.

usage: data_sink.py LUNARIA     prints one JSON row per network"""
import json
import subprocess
import sys

LIMIT = 1 / 1.2


def main(lunaria):
    for inputs, hidden in ((16, 32), (64, 64)):
        output = subprocess.run([lunaria, "bench/data_sink.lua", str(inputs), str(hidden)], check=True, capture_output=True,
                                text=True).stdout
        calls, sink = map(float, output.split())
        value = sink / calls
        print(json.dumps({"workload": f"a step in the loop sink: perceptron {inputs}-{hidden}-10", "value": value, "unit": "x",
                          "limit": round(LIMIT, 3), "pass": value <= LIMIT,
                          "note": f"sink {sink / 1e3:.1f} us, calls {calls / 1e3:.1f} us: {1 / value:.2f} times the speed"}),
              flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
