"""Runs every libFuzzer target of a folder for some seconds, two at a time. NAME_fuzz starts from the files under
tests/data/samples/NAME and tests/fuzz/seeds/NAME; what it finds interesting is kept in the build folder for the next run.

usage: fuzz.py FOLDER SECONDS [--junit FILE] [NAME...]: those targets, or all
       fuzz.py --of-the-day: names three; the next day names the next three, so that a week comes to all"""
import argparse
import datetime
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import junit

ROOT = Path(__file__).resolve().parents[2]
# Real programs are the best start for a parser.
SEEDS = {"lua_parser": ["interpreter/lua", "tests/lua", "notebooks", "bench"], "npz": ["tests/data/samples/npy"],
         "mindrecord_secret": ["tests/data/samples/mindrecord"], "lines": ["tests/data/samples/csv"], "picture": ["tests/data/samples/img"],
         "shards": ["tests/data/samples/safetensors"],
         "insight_graph": ["tests/core/insight/graphs", "tests/data/samples/mindir", "tests/data/samples/onnx"],
         "insight_events": ["tests/data/samples/insight", "tests/data/samples/events", "tests/data/samples/tensorboard"],
         "sound": ["tests/data/samples/wav"], "tokenizer": ["tests/data/words"]}


A_DAY = 5


def of_the_day(names, day):
    """A_DAY of the names; as many days in a row as it takes come to all."""
    names = sorted(names)
    return [names[(day * A_DAY + i) % len(names)] for i in range(min(A_DAY, len(names)))]


def all_names():
    return sorted(p.name.removesuffix("_fuzz.cpp") for p in (ROOT / "tests/fuzz").glob("*_fuzz.cpp"))


def seeds(name):
    folders = [f"tests/data/samples/{name}", f"tests/fuzz/seeds/{name}", *SEEDS.get(name, [])]
    return [ROOT / f for f in folders if (ROOT / f).is_dir()]


def run(target, seconds):
    name = target.name.removesuffix("_fuzz")
    corpus = target.parent / "corpus" / name
    corpus.mkdir(parents=True, exist_ok=True)
    command = [target, f"-max_total_time={seconds}", "-timeout=20", "-rss_limit_mb=3000", "-max_len=65536",
               "-print_final_stats=1", f"-artifact_prefix={target.parent}/{name}-", corpus, *seeds(name)]
    try:
        done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=seconds + 300)
        code, output = done.returncode, done.stdout.decode(errors="replace")
    except subprocess.TimeoutExpired as late:
        code, output = 1, (late.stdout or b"").decode(errors="replace") + "\nstill running 300 s after its time"
    tail = "\n".join(output.splitlines()[-60:])
    runs = [line.split()[-1] for line in output.splitlines() if "number_of_executed_units" in line]
    print(f"{target.name}: {'ok' if code == 0 else 'FAILED'}, {runs[-1] if runs else '?'} inputs", flush=True)
    if code:
        print(tail, flush=True)
    return target.name, tail, code == 0


def main():
    if sys.argv[1:] == ["--of-the-day"]:
        print(*of_the_day(all_names(), datetime.date.today().toordinal()))
        return 0
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("seconds", type=int)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--junit")
    args = parser.parse_intermixed_args()
    targets = [args.folder.resolve() / f"{name}_fuzz" for name in args.names or all_names()]
    missing = [(t.name, f"{t} was not built", False) for t in targets if not t.is_file()]
    targets = [t for t in targets if t.is_file()]
    with ThreadPoolExecutor(2) as pool:
        results = missing + list(pool.map(lambda target: run(target, args.seconds), targets))
    for _, text, _ in missing:
        print(text)
    if args.junit:
        junit.write(args.junit, "fuzz", results)
    return 0 if all(passed for _, _, passed in results) else 1


if __name__ == "__main__":
    sys.exit(main())
