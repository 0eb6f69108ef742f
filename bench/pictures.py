"""Pictures per second of an input pipeline (decode, random crop and resize to 224, flip, normalise, planes) against
libjpeg-turbo's decoding alone on one thread, times two, and against torchvision with DataLoader where it is installed.

usage: pictures.py LUNARIA [JPEG_DIRECT]     prints one JSON row per bar; on an idle machine of two cores"""
import json
import subprocess
import sys
import tempfile
from pathlib import Path

COUNT, ROUNDS, WORKERS = 256, 5, 2


def number(*command):
    return float(subprocess.run([str(c) for c in command], check=True, capture_output=True, text=True).stdout.split()[-1])


def torchvision_rate(paths):
    import time

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
    best = 0
    for _ in range(ROUNDS + 1):
        start = time.perf_counter()
        for _ in loader:
            pass
        best = max(best, len(files) / (time.perf_counter() - start))
    return best


def main(lunaria, direct="build/bench/jpeg_direct"):
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([lunaria, "bench/pictures.lua", "make", folder, str(COUNT)], check=True)
        paths = sorted(Path(folder).glob("*.jpg"))
        alone = number(direct, ROUNDS, *paths)
        ours = number(lunaria, "bench/pictures.lua", "run", folder, COUNT, WORKERS, ROUNDS)
        rows = [("libjpeg-turbo alone, times 2", 2 * alone, 0.9)]
        try:
            rows.append(("torchvision with DataLoader", torchvision_rate(paths), 1.5))
        except ImportError:
            print("no torchvision: only libjpeg-turbo is compared with", file=sys.stderr)
    for peer, rate, bar in rows:
        print(json.dumps({"workload": f"pictures of 224 pixels: {peer}", "value": round(ours / rate, 3), "unit": "x", "limit": bar,
                          "pass": ours >= bar * rate, "note": f"Lunaria {ours:.0f}/s, {peer} {rate:.0f}/s"}), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
