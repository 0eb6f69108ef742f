"""Rows per second of records of 28 x 28 bytes, shuffled, in batches of 32 and normalised: MindRecord and TFRecord read by
Lunaria against MindSpore's MindDataset, torch's DataLoader over tensors in memory and the reader of the package tfrecord,
each in the way that is fastest for it: normalised by batches, without workers for rows this small. All take turns. Then
resuming, opening large files, a function of Lua for each row, and waiting for data in a training.

usage: records.py LUNARIA     prints one JSON row per bar; on an idle machine of two cores"""
import json
import os
import statistics
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path

COUNT, ROUNDS, BATCH = 20000, 5, 32
MANY, SHARDS, PAGES, ROWS = 1_000_000, 16, 128, 300  # rows to resume in; shards, pages of each, rows of a page


def rate(batches):
    start, rows = time.perf_counter(), 0
    for batch in batches:
        rows += len(batch[1])
    return rows / (time.perf_counter() - start)


def mindspore(folder):
    os.environ.setdefault("GLOG_v", "3")
    import mindspore.dataset as ds
    import numpy as np

    def normalised(x):  # bytes come as texts of one length
        return (x.view(np.uint8).reshape(len(x), 784).astype(np.float32) - np.float32(33.3)) * np.float32(1 / 78.5)

    data = ds.MindDataset(f"{folder}/images.mindrecord", columns_list=["image", "label"], shuffle=True, num_parallel_workers=2)
    data = data.batch(BATCH).map(normalised, "image", num_parallel_workers=1)
    return lambda: rate(data.create_tuple_iterator(num_epochs=1, output_numpy=True))


def torch_loader(_):
    import torch

    images, labels = torch.randint(0, 256, (COUNT, 784), dtype=torch.uint8), torch.randint(0, 10, (COUNT,))

    def collate(rows):
        x, y = torch.utils.data.default_collate(rows)
        return x.float().sub_(33.3).mul_(1 / 78.5), y

    torch.set_num_threads(1)
    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(images, labels), BATCH, shuffle=True, collate_fn=collate)
    return lambda: rate(loader)


def tfrecord_reader(folder):
    import numpy as np
    import tfrecord
    import torch
    from tfrecord.torch.dataset import TFRecordDataset

    path, r = f"{folder}/bytes.tfrecord", np.random.default_rng(1)
    writer = tfrecord.TFRecordWriter(path)
    for i in range(COUNT):
        writer.write({"image": (r.integers(0, 256, 784, dtype=np.uint8).tobytes(), "byte"), "label": (i % 10, "int")})
    writer.close()

    def collate(rows):
        x = np.stack([np.frombuffer(row["image"], np.uint8) for row in rows])
        return (torch.from_numpy(x).float() - 33.3) * (1 / 78.5), torch.tensor([int(row["label"][0]) for row in rows])

    data = TFRecordDataset(path, None, {"image": "byte", "label": "int"}, shuffle_queue_size=1024)
    return lambda: rate(torch.utils.data.DataLoader(data, BATCH, collate_fn=collate))


def write_sparse_shards(folder):
    """MindRecord files of 4 GB each, of which only the headers take space. The path of the first one."""
    names = [f"large.mindrecord{i:02}" for i in range(SHARDS)]
    header_size, page_size, blobs = 1 << 24, 1 << 25, PAGES - 1
    for number, name in enumerate(names):
        pages = [{"start_row_id": i * ROWS, "end_row_id": (i + 1) * ROWS, "page_id": i, "page_size": page_size,
                  "page_type": "BLOB_DATA", "page_type_id": i, "row_group_ids": [{"id": 0, "offset": 0}], "shard_id": number}
                 for i in range(blobs)]
        pages.append({"start_row_id": 0, "end_row_id": 0, "page_id": blobs, "page_size": blobs * ROWS * 16, "page_type": "RAW_DATA",
                      "page_type_id": 0, "shard_id": number,
                      "row_group_ids": [{"id": i, "offset": i * ROWS * 16} for i in range(blobs)]})
        schema = {"blob_fields": ["image"], "desc": "", "schema": {"image": {"type": "bytes"}, "label": {"type": "int32"}}}
        header = json.dumps({"header_size": header_size, "page_size": page_size, "compression_size": 0, "index_fields": [],
                             "page": pages, "schema": [schema], "shard_addresses": names, "shard_id": number, "statistics": None,
                             "version": "3.0"}).encode()
        with open(f"{folder}/{name}", "wb") as file:
            file.write(struct.pack("<Q", len(header)) + header)
            file.truncate(header_size + PAGES * page_size)
    return f"{folder}/{names[0]}"


class Lunaria:
    def __init__(self, program, folder):
        self.program = program
        self.server = subprocess.Popen([program, "bench/records.lua", "serve", folder], stdin=subprocess.PIPE,
                                       stdout=subprocess.PIPE, text=True)

    def rate(self, file):
        self.server.stdin.write(file + "\n")
        self.server.stdin.flush()
        return float(self.server.stdout.readline())

    def figures(self, *arguments):
        command = [self.program, "bench/records.lua", *map(str, arguments)]
        output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        return [float(word) for word in output.split()]

    def close(self):
        self.server.stdin.close()
        self.server.wait()


def show(workload, value, unit, limit, bound, note):
    passed = value >= limit if bound == "at least" else value <= limit
    print(json.dumps({"workload": workload, "value": round(value, 3), "unit": unit, "limit": limit, "bound": bound,
                      "pass": passed, "note": note}), flush=True)


def compare(lunaria, folder):
    turns = {"MindRecord": lambda: lunaria.rate("mindrecord"), "TFRecord": lambda: lunaria.rate("tfrecord")}
    peers = {}
    for name, make in (("MindSpore's MindDataset", mindspore), ("torch DataLoader", torch_loader), ("tfrecord", tfrecord_reader)):
        try:
            peers[name] = make(folder)
        except ImportError as error:
            print(f"{name} is not compared with: {error}", file=sys.stderr)
    rates = {name: [] for name in turns | peers}
    for round_ in range(ROUNDS + 1):  # the first one warms up
        for name, turn in (turns | peers).items():
            figure = turn()
            if round_:
                rates[name].append(figure)
    median = {name: statistics.median(figures) for name, figures in rates.items()}

    def against(other):
        return statistics.median(a / b for a, b in zip(rates["MindRecord"], rates[other]))

    for name in peers:
        show(f"records of 28 x 28: {name}", against(name), "x", 2, "at least",
             f"Lunaria {median['MindRecord']:.0f}/s, {name} {median[name]:.0f}/s")
    show("records of 28 x 28: MindRecord against TFRecord", against("TFRecord"), "x", 1, "at least",
         f"MindRecord {median['MindRecord']:.0f}/s, TFRecord {median['TFRecord']:.0f}/s")


def main(program):
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([program, "bench/records.lua", "make", folder, str(COUNT)], check=True)
        lunaria = Lunaria(program, folder)
        compare(lunaria, folder)
        lunaria.close()
        slowest, = lunaria.figures("resume", folder, MANY)
        show(f"resuming among {MANY} rows, the slowest of 21", slowest, "ms", 50, "at most", "from a state to the next batch")
        slowest = max(lunaria.figures("fresh", folder)[0] for _ in range(5))
        show("resuming in a program that has just begun, the slowest of 5", slowest, "ms", 50, "at most",
             f"opening the file of {MANY} rows and checking its pages, to the next batch")
        rows, took, grown = lunaria.figures("open", write_sparse_shards(folder))
        assert rows == SHARDS * (PAGES - 1) * ROWS
        note = f"{SHARDS} shards, {SHARDS * PAGES // 32} GB"
        show("opening 64 GB of MindRecord", took, "ms", 100, "at most", note)
        show("memory after opening 64 GB of MindRecord", grown, "MB", 16, "at most", note)
        added, = lunaria.figures("row_function")
        show("a row through a function of Lua", added / 1000, "us", 1, "at most", "more than without it, in batches of 32")
        waited, = lunaria.figures("lenet", folder)
        show("LeNet: waiting for data", waited, "%", 1, "at most", "of the steps' time, but for the first one")


if __name__ == "__main__":
    main(sys.argv[1])
