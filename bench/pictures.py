"""Pictures per second of an input pipeline (decode, random crop and resize to 224, flip, normalise, planes) against
libjpeg-turbo's decoding alone on one thread, times two, and against torchvision with DataLoader where it is installed.
They take turns; the ratios are medians of the rounds. Against libjpeg-turbo processor time is compared as well, which holds
on a busy machine too.

usage: pictures.py LUNARIA [JPEG_DIRECT]     prints one JSON row per bar; on an idle machine of two cores"""
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

COUNT, ROUNDS, WORKERS, EPOCHS = 512, 7, 2, 4  # an epoch has every picture once


def run(*command):
    """What the program prints last, and its processor time in seconds."""
    process = subprocess.Popen([str(c) for c in command], stdout=subprocess.PIPE, text=True)
    output = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command)
    return float(output.split()[-1]), usage.ru_utime + usage.ru_stime


def torchvision_turn(paths):
    import torch
    from torchvision.io import ImageReadMode, decode_jpeg
    from torchvision.transforms import v2

    steps = v2.Compose([v2.RandomResizedCrop(224, antialias=True), v2.RandomHorizontalFlip(), v2.ToDtype(torch.float32, scale=True),
                        v2.Normalize([0.485, 0.456, 0.406], [0.229, 0.224, 0.225])])
    files = [torch.frombuffer(bytearray(p.read_bytes()), dtype=torch.uint8) for p in paths]

    class Pictures(torch.utils.data.Dataset):
        def __len__(self):
            return len(files)

        def __getitem__(self, i):
            return steps(decode_jpeg(files[i], ImageReadMode.RGB))

    torch.set_num_threads(1)
    loader = torch.utils.data.DataLoader(Pictures(), batch_size=32, num_workers=WORKERS, persistent_workers=True)

    def turn():
        best = 0
        for _ in range(EPOCHS):
            start = time.perf_counter()
            for _ in loader:
                pass
            best = max(best, len(files) / (time.perf_counter() - start))
        return best

    return turn


def show(what, peer, rates, theirs, bar, note):
    ratio = statistics.median(a / b for a, b in zip(rates, theirs))
    ours, other = statistics.median(rates), statistics.median(theirs)
    print(json.dumps({"workload": f"{what}: {peer}", "value": round(ratio, 3), "unit": "x", "limit": bar, "bound": "at least",
                      "pass": ratio >= bar, "note": note(ours, other)}), flush=True)


def main(lunaria, direct="build/bench/jpeg_direct"):
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([lunaria, "bench/pictures.lua", "make", folder, str(COUNT)], check=True)
        paths = sorted(Path(folder).glob("*.jpg"))
        try:
            torchvision = torchvision_turn(paths)
        except ImportError:
            print("no torchvision: only libjpeg-turbo is compared with", file=sys.stderr)
            torchvision = None
        # What is not counted: the start of the programs, reading the files, and an epoch that warms up.
        _, before = run(direct, 0, *paths)
        _, start = run(lunaria, "bench/pictures.lua", "run", folder, COUNT, WORKERS, 0)
        ours, alone, theirs, times = [], [], [], {"ours": [], "alone": []}
        for _ in range(ROUNDS):
            rate, seconds = run(direct, EPOCHS, *paths)
            alone.append(2 * rate)
            times["alone"].append(COUNT * EPOCHS / (seconds - before))
            rate, seconds = run(lunaria, "bench/pictures.lua", "run", folder, COUNT, WORKERS, EPOCHS)
            ours.append(rate)
            times["ours"].append(COUNT * EPOCHS / (seconds - start))
            if torchvision:
                theirs.append(torchvision())
        name = "pictures of 224 pixels"
        show(name, "libjpeg-turbo alone, times 2", ours, alone, 0.9, lambda a, b: f"Lunaria {a:.0f}/s, libjpeg-turbo {b:.0f}/s")
        show(name, "processor time of libjpeg-turbo alone", times["ours"], times["alone"], 0.9,
             lambda a, b: f"Lunaria {1e3 / a:.3f} ms, libjpeg-turbo {1e3 / b:.3f} ms a picture")
        if theirs:
            show(name, "torchvision with DataLoader", ours, theirs, 1.5, lambda a, b: f"Lunaria {a:.0f}/s, torchvision {b:.0f}/s")


if __name__ == "__main__":
    main(*sys.argv[1:])
