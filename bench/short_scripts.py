"""Short scripts in graph mode beside the same eagerly: processor time of whole processes, without any kernel on disk ("cold"), with
those that such a run left ("warm"), and with all of them ("full"). No script may take longer in graph mode than eagerly.

usage: short_scripts.py LUNARIA [RUNS [TEXT]]     prints one JSON row per figure; TEXT: of scripts with this in their names"""
import glob
import json
import os
import resource
import subprocess
import sys
import tempfile

AT_ONCE = {"LUA_INIT": "require('lunaria').set_context{ jit_level = 'O1' }"}


def seconds(command, cache, **settings):
    """The processor time of a process, in user mode and in the system."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    environment = dict(os.environ, OMP_NUM_THREADS="1", LUNARIA_NUM_THREADS="1", XDG_CACHE_HOME=cache, **settings)
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=environment)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def main(lunaria, runs="3", only=""):
    for script in sorted(glob.glob("bench/short_scripts/*.lua")):
        name = os.path.basename(script)[:-4]
        if only not in name:
            continue
        least = {}

        def take(kind, mode, cache):
            took = seconds([lunaria, script, mode], cache)
            least[kind] = min(took, least.get(kind, took))

        with tempfile.TemporaryDirectory() as full:
            seconds([lunaria, script, "graph"], full, **AT_ONCE)
            for _ in range(int(runs)):
                with tempfile.TemporaryDirectory() as cache:
                    for kind, mode in ("eager", "eager"), ("cold", "graph"), ("warm", "graph"):
                        take(kind, mode, cache)
                take("full", "graph", full)
        for kind in "cold", "warm", "full":
            ratio = least[kind] / least["eager"]
            print(json.dumps({"workload": f"{name} in graph mode, {kind}", "value": ratio, "unit": "of eager", "limit": 1.0,
                              "pass": ratio <= 1.0, "note": f"{least[kind]:.3f} s, eagerly {least['eager']:.3f} s"}), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
