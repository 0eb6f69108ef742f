"""Rounds of federated averaging beside Flower's, whose clients are simulated with Ray, in turns in the same run.

    python3 bench/federated/rounds.py build/lunaria [--repeats 2] [--rounds 6] [--case NAME]

A perceptron with two hidden layers of 200, 100 clients that all take part in each round, Fashion-MNIST, batches of 10, on both processors.
Of each kind the fastest round counts, without the first one, which starts processes or compiles; Flower's is timed without its
evaluation. Bars: ten times Flower's rounds in a second where a client has 60 pictures, and 2,000 trainings of clients in a minute.
"""
import argparse
import json
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
PEERS = os.environ.get("LUNARIA_PEERS", os.path.join(HERE, "..", "..", ".peers"))
CLIENTS = 100
# Pictures of a client, batch, epochs, and the least ratio.
CASES = {"60 pictures": (60, 10, 1, 10.0), "600 pictures": (600, 10, 1, None), "600 pictures, one batch": (600, 600, 1, None)}


def run(command, settings, rounds, environment):
    words = [str(word) for word in (CLIENTS, *settings, rounds, 0.1, 1)]
    output = subprocess.run([*command, *words], capture_output=True, text=True, check=False,
                            env={**os.environ, **environment})
    for line in reversed(output.stdout.splitlines()):
        if line.startswith("{"):
            return json.loads(line)
    sys.exit(f"{command[-1]} gave no figures:\n{output.stderr[-2000:]}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("lunaria")
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--case", choices=CASES, action="append", help="all by default")
    options = parser.parse_args()
    ours = [options.lunaria, os.path.join(HERE, "rounds.lua")]
    # Two threads wait for each other at every step: where other programs compute as well, one is faster.
    threads = [{"LUNARIA_NUM_THREADS": count} for count in ("1", "2")]
    python = os.path.join(PEERS, "flower", "bin", "python3")
    theirs = [python if os.path.exists(python) else os.path.join(PEERS, "bin", "python3"), os.path.join(HERE, "flower.py")]
    failed = False
    for name in options.case or CASES:
        samples, batch, epochs, bar = CASES[name]
        best, processor = {"lunaria": [], "flower": []}, {"lunaria": [], "flower": []}
        accuracy = {}
        for _ in range(options.repeats):
            for who, command, environment in (("lunaria", ours, threads[0]), ("lunaria", ours, threads[1]), ("flower", theirs, {})):
                got = run(command, (samples, batch, epochs), options.rounds, environment)
                best[who] += got["seconds"][1:]
                processor[who] += got["processor"][1:]
                accuracy[who] = got["accuracy"]
        ours_s, theirs_s = min(best["lunaria"]), min(best["flower"])
        ratio, spent = theirs_s / ours_s, min(processor["flower"]) / min(processor["lunaria"])
        failed |= bar is not None and ratio < bar
        print(f"{name}: {ours_s * 1e3:.1f} ms a round, {60 * CLIENTS / ours_s:.0f} trainings a minute; Flower {theirs_s * 1e3:.1f} ms; "
              f"ratio {ratio:.1f}{'' if bar is None else f' (bar {bar:g})'}, of processor time {spent:.1f}; "
              f"accuracy {accuracy['lunaria']:.3f} and {accuracy['flower']:.3f}", flush=True)
        failed |= 60 * CLIENTS / ours_s < 2000
    sys.exit(failed)


main()
