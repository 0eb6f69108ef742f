"""Runs benches: for each workload our program, the frameworks and the programs that call a library directly take turns,
batch by batch, so that a machine that changes its speed changes it for all. A row's ratio is the median over the rounds of
"time of the other / our time"; the bars stand in bench/NAME.lua.

A turn is the fastest of a few batches. It does not count when something else ran meanwhile, which the system's processor
time tells (bench/machine.py), and is tried again. A row whose bar lies between the quartiles of its rounds gets more
rounds, up to three times as many: luck is not to decide.

With --before the only other is an earlier build of our own program, for each workload that both know: no row may lose more
than 3 %.

usage: run.py --lunaria PROGRAM [--before PROGRAM] [--threads 1,2] [--rounds 11] [--only TEXT] [--isa avx2] [--json FILE]
[NAME...]"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

import machine

BENCH = Path(__file__).resolve().parent
PAIRS = ["eager_overhead", "elementwise", "matmul", "operators", "conv", "autodiff", "vmap", "training", "compiled",
         "optimizers", "index_rules", "imported", "science", "lite/language", "armour/attacks", "armour/privacy"]
# These measure a whole process and print their own rows.
SINGLE = ["startup", "insight", "kernel", "memory", "training_memory", "compile_time", "data_sink", "loops", "planned_memory",
          "roofline", "checkpoints", "model_train", "lenet_accuracy", "steady_memory", "pictures", "records", "redistribution", "all_reduce", "armour/strength"]
DIRECT = {"elementwise": "bandwidth", "matmul": "openblas", "conv": "onednn", "compiled": "fused",
          "index_rules": "index", "lite/language": "bandwidth"}
# The variables by which the programs take a lower instruction set than the processor has.
ISAS = {"avx2": {"LUNARIA_ISA": "avx2", "ATEN_CPU_CAPABILITY": "avx2", "ONEDNN_MAX_CPU_ISA": "AVX2", "XLA_ISA": "AVX2",
                 "NPY_DISABLE_CPU_FEATURES": "X86_V4 AVX512_ICL AVX512_SPR", "OPENBLAS_CORETYPE": "Haswell"}}
BATCHES = 3  # of a turn
KEEPS = 0.97  # of its speed before


class Contestant:
    """A process that answers the commands of the protocol."""

    def __init__(self, command, threads):
        self.threads = threads
        environment = dict(os.environ, CUDA_VISIBLE_DEVICES="", PYTHONPATH=str(BENCH))
        for library in ("OMP", "OPENBLAS", "MKL"):
            environment[f"{library}_NUM_THREADS"] = str(threads)
        self.name = Path(command[-1]).name
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=BENCH.parent,
                                        env=environment)
        self.ask(f"threads {threads}")

    def ask(self, command):
        self.process.stdin.write(command + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        if not answer:
            raise SystemExit(f"{self.name} ended while it was asked: {command}")
        answer = json.loads(answer)
        if isinstance(answer, dict) and "error" in answer:
            raise RuntimeError(f"{self.name}: {answer['error']}")
        return answer

    def turn(self, what):
        """Nanoseconds per call of the fastest of a few batches, and whether nothing else ran meanwhile. With one thread
        they are processor time, where that matters little."""
        watch = machine.Watch(self.process.pid)
        ns = min(self.ask(f"run {what} {BATCHES}")["ns"])
        return ns, self.threads == 1 or watch.is_undisturbed()

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def nanoseconds(value):
    for unit, size in (("ns", 1), ("us", 1e3), ("ms", 1e6)):
        if value < 1000 * size:
            return f"{value / size:.3g} {unit}"
    return f"{value / 1e9:.3g} s"


class Measurement:
    """The turns of the contestants at one workload; contestants: {name: (process, what to ask it for)}."""

    # Turns that may be tried again before the machine is taken as it is.
    PATIENCE = 40

    def __init__(self, contestants, workload):
        self.contestants, self.workload = contestants, workload
        self.times = {name: [] for name in contestants}
        self.disturbed = self.rounds = 0
        self.round(counts=False)  # warms up

    def round(self, counts=True):
        order = [name for name in self.contestants if name in self.times]
        for name in order if self.rounds % 2 else reversed(order):
            process, what = self.contestants[name]
            # Threads of the one before may still be spinning in wait for work that does not come.
            machine.wait_until_idle([p.process.pid for p, _ in self.contestants.values()])
            try:
                ns, undisturbed = process.turn(what)
                while counts and not undisturbed and self.disturbed < self.PATIENCE:
                    self.disturbed += 1
                    time.sleep(0.2)
                    ns, undisturbed = process.turn(what)
            except RuntimeError as error:
                print(f"  {self.workload}: {error}", file=sys.stderr)
                del self.times[name]
                continue
            if counts:
                self.times[name].append(ns)
        self.rounds += counts

    def run(self, bars, rounds):
        while self.rounds < rounds or (self.rounds < 3 * rounds and any(map(self.is_open, bars.items()))):
            self.round()

    def ratios(self, target):
        """The fastest of those that the bar means, and its ratio in every round; None when there is none."""
        ours = self.times.get("lunaria")
        direct = set(DIRECT.values())
        peers = [name for name in self.times
                 if name != "lunaria" and (name == target or (target == "peers" and name not in direct))]
        if not ours or not peers:
            return None
        peer = min(peers, key=lambda name: statistics.median(self.times[name]))
        return peer, [theirs / mine for theirs, mine in zip(self.times[peer], ours)]

    def is_open(self, bar):
        target, least = bar
        measured = self.ratios(target)
        if target == "limit" or not measured or len(measured[1]) < 2:
            return False
        low, _, high = statistics.quantiles(measured[1], n=4, method="inclusive")
        return low < least <= high


def rows_of(measurement, bars, threads):
    """One row per bar: against the fastest framework, against one of them or a direct program, against a time in ns."""
    ours = measurement.times.get("lunaria")
    for target, bar in bars.items():
        row = {"workload": measurement.workload, "threads": threads, "bar": bar, "against": target,
               "rounds": measurement.rounds, "disturbed": measurement.disturbed}
        if target == "limit":
            median = statistics.median(ours) if ours else float("inf")
            ratio = bar / median
            yield row | {"bar": 1, "ours_ns": median, "peer": target, "peer_ns": bar, "ratio": ratio, "low": ratio,
                         "high": ratio, "pass": median <= bar}
            continue
        measured = measurement.ratios(target)
        if not measured:
            yield row | {"pass": False, "note": "not measured"}
            continue
        peer, ratios = measured
        ratio = statistics.median(ratios)
        low, _, high = statistics.quantiles(ratios, n=4, method="inclusive") if len(ratios) > 1 else ratios * 3
        yield row | {"ours_ns": statistics.median(ours), "peer": peer, "low": low, "high": high, "ratio": ratio,
                     "peer_ns": statistics.median(measurement.times[peer]), "pass": ratio >= bar}


def show(row):
    head = f"{row['workload']:<24}{row['threads']:>4}"
    if "ratio" not in row:
        print(f"{head}  {row['against']}: {row['note']}  FAIL", flush=True)
        return
    noise = f", {row['disturbed']} disturbed" if row["disturbed"] else ""
    print(f"{head}{nanoseconds(row['ours_ns']):>12}{nanoseconds(row['peer_ns']):>12}  "
          f"{row['peer']:<14}{row['ratio']:>8.2f}{row['bar']:>8.2f}  {'PASS' if row['pass'] else 'FAIL'}"
          f"  {row['low']:.2f}-{row['high']:.2f} in {row['rounds']} rounds{noise}", flush=True)


def run_pair(name, options, threads):
    direct = DIRECT.get(name)
    ours = Contestant([options.lunaria, f"bench/{name}.lua"], threads)
    has_peers = (BENCH / f"{name}.py").exists()
    peers = has_peers and Contestant([sys.executable, f"bench/{name}.py"], threads)
    library = direct and Contestant([str(Path(options.lunaria).parent / "bench" / f"{direct}_direct")], threads)
    offered = {row["workload"]: row["peers"] for row in peers.ask("list")} if has_peers else {}
    called = {row["workload"] for row in library.ask("list")} if library else ()
    rows = []
    entries = ours.ask("list")
    workloads = {entry["workload"] for entry in entries}
    for entry in entries:
        workload = entry["workload"]
        if options.only and options.only not in workload:
            continue
        contestants = {"lunaria": (ours, workload)}
        for peer in offered.get(workload, ()):
            if peer in options.without.split(","):
                continue
            contestants[peer] = (peers, f"{workload}/{peer}")
        if workload in called:
            contestants[direct] = (library, workload)
        # A bar that names another workload of the bench is against our own time at that one.
        contestants |= {target: (ours, target) for target in entry["bars"] if target in workloads}
        measurement = Measurement(contestants, workload)
        measurement.run(entry["bars"], options.rounds)
        for row in rows_of(measurement, entry["bars"], threads):
            rows.append(row | {"bench": name})
            show(row)
    for contestant in (ours, peers, library):
        if contestant:
            contestant.close()
    return rows


def run_before(name, options, threads):
    both = {"lunaria": Contestant([options.lunaria, f"bench/{name}.lua"], threads),
            "before": Contestant([options.before, f"bench/{name}.lua"], threads)}
    lists = [[entry["workload"] for entry in process.ask("list")] for process in both.values()]
    rows = []
    for workload in lists[0]:
        if workload not in lists[1] or (options.only and options.only not in workload):
            continue
        measurement = Measurement({side: (process, workload) for side, process in both.items()}, workload)
        measurement.run({"before": KEEPS}, options.rounds)
        for row in rows_of(measurement, {"before": KEEPS}, threads):
            rows.append(row | {"bench": name})
            show(row)
    for process in both.values():
        process.close()
    return rows


def run_single(name, options):
    rows = []
    only = [options.only] if options.only and name == "compile_time" else []
    process = subprocess.Popen([sys.executable, f"bench/{name}.py", options.lunaria, *only], stdout=subprocess.PIPE,
                               text=True, cwd=BENCH.parent)
    for line in process.stdout:
        row = json.loads(line)
        rows.append(row | {"bench": name})
        print(f"{row['workload']:<60}{row['value']:>8.2f} {row['unit']:<3}{row['limit']:>6} {row.get('bound', 'at most')}  "
              f"{'PASS' if row['pass'] else 'FAIL'}  {row['note']}", flush=True)
    if process.wait():
        rows.append({"bench": name, "workload": name, "pass": False, "note": "the bench failed"})
        print(f"{name}: the bench failed  FAIL")
    return rows


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--lunaria", required=True)
    parser.add_argument("--before", help="an earlier build of our own program, which takes the peers' place")
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument("--only", help="workloads whose name contains this")
    parser.add_argument("--without", default="", help="peers to leave out, as torch_compile,jax")
    parser.add_argument("--json", help="write all rows to this file")
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(PAIRS + SINGLE))
    parser.add_argument("--isa", choices=ISAS, help="the same instruction set for all")
    options = parser.parse_args()
    os.environ.update(ISAS.get(options.isa, {}))
    options.lunaria = str(Path(options.lunaria).resolve())
    options.before = options.before and str(Path(options.before).resolve())
    unknown = set(options.names) - set(PAIRS + SINGLE)
    if unknown:
        parser.error(f"no bench {', '.join(sorted(unknown))}; there are {', '.join(PAIRS + SINGLE)}")
    rows = []
    for name in options.names or (PAIRS if options.before else PAIRS + SINGLE):
        print(f"\n{name}")
        if name in SINGLE:
            rows += run_single(name, options)
            continue
        print(f"{'workload':<24}{'thr':>4}{'ours':>12}{'other':>12}  {'':<14}{'ratio':>8}{'bar':>8}")
        for threads in options.threads.split(","):
            rows += (run_before if options.before else run_pair)(name, options, int(threads))
    if options.json:
        Path(options.json).write_text(json.dumps(rows, indent=1) + "\n")
    passed = sum(row["pass"] for row in rows)
    print(f"\n{passed} passed, {len(rows) - passed} failed")
    return 0 if passed == len(rows) else 1


if __name__ == "__main__":
    sys.exit(main())
