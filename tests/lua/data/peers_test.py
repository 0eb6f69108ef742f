"""What Lunaria writes is read by other programs, and what soundfile writes by Lunaria.

usage: peers_test.py LUNARIA

Needs a Python environment (.peers, LUNARIA_PEERS names another) with mindspore, tfrecord, pillow and soundfile:
`./dev bench-peers` installs them there. What is missing is skipped, without any all is."""
import importlib
import os
import subprocess
import sys
import tempfile
from pathlib import Path

PYTHON = Path(os.environ.get("LUNARIA_PEERS", ".peers")) / "bin/python3"
SKIP = 77


def check(condition, what):
    if not condition:
        raise AssertionError(what)


def mindspore(folder):
    import numpy
    from mindspore import dataset
    from mindspore.mindrecord import FileReader, set_enc_key

    for path, count in (("one.mindrecord", 25), ("three.mindrecord0", 20)):
        file = str(folder / path)
        data = dataset.MindDataset(file, shuffle=False)
        check(data.get_dataset_size() == count, f"{path}: {data.get_dataset_size()} rows")
        seen = set()
        for row in data.create_dict_iterator(output_numpy=True, num_epochs=1):
            i = int(row["label"])
            seen.add(i)
            expected = {
                "label": numpy.int32(i), "big": numpy.int64(-i * (1 << 33)), "share": numpy.float32(i / 4), "exact": numpy.float64(i / 3),
                "ids": numpy.array([i, i + 1, i + 2], numpy.int64), "plane": numpy.arange(6, dtype=numpy.float32).reshape(2, 3) * i,
                "data": numpy.frombuffer(b"\0" + str(i).encode() + b"\xff", numpy.uint8),
            }
            expected["data"] = numpy.tile(expected["data"], i % 3 + 1)
            check(str(row["name"]) == f"row {i}", f"{path}: name of row {i} is {row['name']}")
            for name, value in expected.items():
                if name == "data":  # bytes without a shape come as a text of numpy's
                    row[name] = numpy.frombuffer(row[name].tobytes(), numpy.uint8)
                check(row[name].dtype == value.dtype, f"{path}: {name} of row {i} is {row[name].dtype}")
                check(numpy.array_equal(row[name].reshape(value.shape), value), f"{path}: {name} of row {i} is {row[name]}, not {value}")
        check(seen == set(range(count)), f"{path}: rows {sorted(seen)}")
        reader = FileReader(file)
        check(sum(1 for _ in reader.get_next()) == count, f"{path}: FileReader")
        reader.close()
    few = dataset.MindDataset(str(folder / "one.mindrecord"), columns_list=["label"], num_shards=2, shard_id=1)
    check(sum(1 for _ in few.create_tuple_iterator(num_epochs=1)) == 13, "a shard of the rows")
    saved = {int(row["label"]): row for row in dataset.MindDataset(str(folder / "saved.mindrecord0")).create_dict_iterator(
        output_numpy=True, num_epochs=1)}
    check(sorted(saved) == list(range(9)), f"saved.mindrecord: rows {sorted(saved)}")
    for i, row in saved.items():
        wanted = {"flag": numpy.int32(i > 4), "small": numpy.int32(i), "half": numpy.float32(i / 2),
                  "plane": numpy.arange(6 * i, 6 * i + 6, dtype=numpy.float64).reshape(2, 3)}
        for name, value in wanted.items():
            check(row[name].dtype == value.dtype and numpy.array_equal(row[name].reshape(value.shape), value), f"saved.mindrecord: {name} is {row[name]}")
    set_enc_key("0123456789012345")
    locked = dataset.MindDataset(str(folder / "locked.mindrecord"), shuffle=False)
    check([int(row["label"]) for row in locked.create_dict_iterator(output_numpy=True, num_epochs=1)] == [7, 8], "an encrypted file")


def tfrecord(folder):
    from tfrecord.reader import tfrecord_loader
    rows = list(tfrecord_loader(str(folder / "rows.tfrecord"), None, {"x": "int", "y": "float"}))
    check([list(row["x"]) for row in rows] == [[15 * i, 15 * i + 5, 15 * i + 10] for i in range(4)], "x")
    check([list(row["y"]) for row in rows] == [[i / 2] for i in range(4)], "y")


def PIL(folder):
    import numpy
    from PIL import Image
    image = numpy.array(Image.open(folder / "image.png"))
    check(numpy.array_equal(image, (numpy.arange(48 * 64 * 3).reshape(48, 64, 3) % 251).astype(numpy.uint8)), "image.png")
    image = numpy.array(Image.open(folder / "image.jpg")).astype(int)
    smooth = numpy.arange(48).reshape(48, 1, 1) * 2 + numpy.arange(64).reshape(1, 64, 1) + numpy.arange(3) * 20
    check(image.shape == smooth.shape and numpy.abs(image - smooth).max() <= 12, f"image.jpg: {numpy.abs(image - smooth).max()}")


def soundfile(folder):
    import numpy
    from soundfile import write
    sound = (numpy.sin(numpy.arange(2000) * 0.05).reshape(1000, 2) * 20000).astype(numpy.int16)
    for kind in ("wav", "flac"):
        write(str(folder / f"sound.{kind}"), sound, 8000, subtype="PCM_16")
    script = folder / "sound.lua"
    script.write_text("""
local ms = require "lunaria"
for _, kind in ipairs { "wav", "flac" } do
  local samples, rate, bits = ms.dataset.audio.read(arg[1] .. "/sound." .. kind)
  print(kind, rate, samples.shape[1], samples.shape[2], ms.ops.cast(samples, ms.float64):sum():item() * 32768)
end
""")
    told = subprocess.run([sys.argv[2], script, folder], capture_output=True, text=True, check=False)
    check(told.returncode == 0, told.stdout + told.stderr)
    for line in told.stdout.splitlines():
        kind, rate, channels, times, total = line.split()
        check((rate, channels, times) == ("8000", "2", "1000"), line)
        check(float(total) == float(sound.astype(float).sum()), f"{kind}: the samples sum up to {total}, not {sound.astype(float).sum()}")
    check(len(told.stdout.splitlines()) == 2, told.stdout)


# Within the peers' environment: peers_test.py --check LUNARIA DIR
def check_all(folder):
    failed = done = 0
    for peer in (mindspore, tfrecord, PIL, soundfile):
        try:
            importlib.import_module(peer.__name__)
        except ImportError:
            print(f"skipped: no {peer.__name__}")
            continue
        done += 1
        try:
            peer(folder)
            print(f"passed: {peer.__name__}")
        except Exception as problem:  # whatever a peer raises is its answer
            print(f"FAIL {peer.__name__}: {type(problem).__name__}: {problem}")
            failed += 1
    return 1 if failed else 0 if done else SKIP


def main(program):
    if not PYTHON.exists():
        print(f"skipped: no Python environment {PYTHON.parent.parent}: ./dev bench-peers makes one")
        return SKIP
    with tempfile.TemporaryDirectory() as folder:
        written = subprocess.run([program, "tests/lua/data/write_files.lua", folder], capture_output=True, text=True, check=False)
        if written.returncode:
            print(f"FAIL write_files.lua: {written.stdout}{written.stderr}")
            return 1
        told = subprocess.run([PYTHON, __file__, "--check", program, folder], text=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                              check=False)
        print(told.stdout, end="")
        return told.returncode


if sys.argv[1] == "--check":
    sys.exit(check_all(Path(sys.argv[3])))
sys.exit(main(Path(sys.argv[1]).resolve()))
