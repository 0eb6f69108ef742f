"""Runs every libFuzzer target of a folder for some seconds, two at a time. NAME_fuzz starts from the files under
tests/data/samples/NAME and tests/fuzz/seeds/NAME; what it finds interesting is kept in the build folder for the next run.

usage: fuzz.py FOLDER SECONDS [--junit FILE]"""
import argparse
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import junit

ROOT = Path(__file__).resolve().parents[2]
# Real programs are the best start for a parser.
SEEDS = {"lua_parser": ["interpreter/lua", "tests/lua", "notebooks", "bench"], "npz": ["tests/data/samples/npy"],
         "mindrecord_secret": ["tests/data/samples/mindrecord"], "lines": ["tests/data/samples/csv"], "picture": ["tests/data/samples/img"],
         "sound": ["tests/data/samples/wav"]}


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
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("seconds", type=int)
    parser.add_argument("--junit")
    args = parser.parse_args()
    targets = sorted(p for p in args.folder.resolve().glob("*_fuzz") if p.is_file())
    with ThreadPoolExecutor(2) as pool:
        results = list(pool.map(lambda target: run(target, args.seconds), targets))
    if not results:
        results = [("fuzz", f"no fuzz target in {args.folder}", False)]
        print(results[0][1])
    if args.junit:
        junit.write(args.junit, "fuzz", results)
    return 0 if all(passed for _, _, passed in results) else 1


if __name__ == "__main__":
    sys.exit(main())
