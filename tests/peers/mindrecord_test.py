#!/usr/bin/env python3
"""Files of ms.mindrecord read by MindSpore, row by row, and appended to by it.

usage: mindrecord_test.py LUNARIA
Needs a Python with mindspore: LUNARIA_REFS names its environment. Without one the test is skipped (77).
"""
import os
import subprocess
import sys
import tempfile

PROGRAM = r"""
local ms = require "lunaria"
local R, folder = ms.mindrecord, arg[1]
local function row(i)
  return { id = i, wide = i * 3000000007, x = i / 3, y = i / 4, text = ("é"):rep(i % 5) .. i, data = ("\0\255x"):rep(i % 50),
    more = "m" .. i, ids = ms.arange(1 + i % 4):astype(ms.int32) * 70000 - 3, big = ms.full({ 2, 3 }, (i - 50) * 10000000000, ms.int64),
    f32 = ms.full({ 2, 2 }, i / 2) }
end
local schema = { id = { type = "int32" }, wide = { type = "int64" }, x = { type = "float64" }, y = { type = "float32" },
  text = { type = "string" }, data = { type = "bytes" }, more = { type = "bytes" }, ids = { type = "int32", shape = { -1 } },
  big = { type = "int64", shape = { 2, 3 } }, f32 = { type = "float32", shape = { 2, 2 } } }
local function write(name, shards, parts, index)
  local w = R.FileWriter(folder .. "/" .. name, { shard_num = shards })
  w:add_schema(schema)
  if index then w:add_index(index) end
  w:set_header_size(1 << 17)
  w:set_page_size(1 << 15)
  local at = 0
  for _, n in ipairs(parts) do
    local list = {}
    for k = 1, n do list[k] = row(at + k - 1) end
    at = at + n
    w:write_raw_data(list)
  end
  w:commit()
end
write("one", 1, { 600 })
write("shards", 3, { 200, 57 }, { "id", "text" })
write("grown", 1, { 40 })
local w = R.FileWriter.open_for_append(folder .. "/grown")
local list = {}
for k = 40, 299 do list[#list + 1] = row(k) end
w:write_raw_data(list)
w:commit()
local few = R.FileWriter(folder .. "/scalars")
few:add_schema { id = { type = "int32" } }
few:write_raw_data { { id = 0 }, { id = 1 } }
few:commit()
"""

AGAIN = r"""
local ms = require "lunaria"
local seen, count = {}, 0
for row in ms.mindrecord.FileReader(arg[1] .. "/grown"):get_next() do seen[row.id] = row.wide count = count + 1 end
assert(count == 301, count)
for i = 0, 300 do assert(seen[i] == i * 3000000007, i) end
print "read again"
"""


def compare(folder):
    import mindspore.dataset as ds
    import numpy as np
    from mindspore.mindrecord import FileReader, FileWriter

    def check(row, plain):
        i = int(row["id"])
        bytes_of = (lambda v: bytes(v)) if plain else (lambda v: v.tobytes())
        assert int(row["wide"]) == i * 3000000007
        assert float(row["x"]) == i / 3 and float(row["y"]) == np.float32(i / 4)
        text = row["text"] if plain else str(row["text"])
        assert text == "é" * (i % 5) + str(i), (text, i)
        assert bytes_of(row["data"]) == b"\0\xffx" * (i % 50), i
        assert bytes_of(row["more"]) == b"m%d" % i
        assert np.array_equal(row["ids"], np.arange(1 + i % 4, dtype=np.int32) * 70000 - 3)
        assert np.array_equal(np.reshape(row["big"], (2, 3)), np.full((2, 3), (i - 50) * 10**10, np.int64))
        assert np.array_equal(np.reshape(row["f32"], (2, 2)), np.full((2, 2), i / 2, np.float32))
        return i

    for name, first, count in (("one", "one", 600), ("shards", "shards0", 257), ("grown", "grown", 300)):
        path = os.path.join(folder, first)
        reader = FileReader(path)
        assert sorted(check(row, True) for row in reader.get_next()) == list(range(count)), name
        reader.close()
        data = ds.MindDataset(path, shuffle=True)
        assert data.get_dataset_size() == count
        # Values of no bytes at all come as something else there: the reference product's own fault.
        rows = data.create_dict_iterator(output_numpy=True, num_epochs=1)
        assert sorted(check(row, False) for row in rows if int(row["id"]) % 50) == [i for i in range(count) if i % 50], name
        print(name, count, "rows")
    assert ds.MindDataset(os.path.join(folder, "scalars")).get_dataset_size() == 2
    writer = FileWriter.open_for_append(os.path.join(folder, "grown"))
    writer.write_raw_data([{"id": 300, "wide": 300 * 3000000007, "x": 100.0, "y": 75.0, "text": "x", "data": b"d", "more": b"m",
                            "ids": np.array([1], np.int32), "big": np.zeros((2, 3), np.int64), "f32": np.zeros((2, 2), np.float32)}])
    writer.commit()


def main():
    if len(sys.argv) == 3 and sys.argv[1] == "--compare":
        compare(sys.argv[2])
        return 0
    python = os.path.join(os.environ.get("LUNARIA_REFS", "/proc/none"), "bin", "python3")
    if not os.path.exists(python):
        print("skipped: LUNARIA_REFS names no Python environment with mindspore")
        return 77
    with tempfile.TemporaryDirectory() as folder:
        for name, text in (("write.lua", PROGRAM), ("again.lua", AGAIN)):
            with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
                file.write(text)
        subprocess.run([sys.argv[1], os.path.join(folder, "write.lua"), folder], check=True)
        subprocess.run([python, os.path.abspath(__file__), "--compare", folder], check=True)
        subprocess.run([sys.argv[1], os.path.join(folder, "again.lua"), folder], check=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
