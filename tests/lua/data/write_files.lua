-- usage: lunaria tests/lua/data/write_files.lua DIR
-- Writes files of every format that the data engine writes, for peers_test.py, which knows what is in them.
local ms = require "lunaria"
local folder = assert(arg[1], "the folder to write into")
local D = ms.dataset

local function rows(first, last)
  local list = {}
  for i = first, last do
    list[#list + 1] = {
      label = i, big = -i * (1 << 33), share = i / 4, exact = i / 3, name = ("row %d"):format(i),
      data = ("\0%d\255"):format(i):rep(i % 3 + 1),
      ids = { i, i + 1, i + 2 }, plane = ms.arange(6):reshape(2, 3):astype(ms.float32) * i,
    }
  end
  return list
end

local schema = {
  label = { type = "int32" }, big = { type = "int64" }, share = { type = "float32" }, exact = { type = "float64" },
  name = { type = "string" }, data = { type = "bytes" }, ids = { type = "int64", shape = { -1 } },
  plane = { type = "float32", shape = { 2, 3 } },
}
for shards, path in pairs { [1] = "one.mindrecord", [3] = "three.mindrecord" } do
  local writer = ms.mindrecord.FileWriter(folder .. "/" .. path, shards, true)
  writer:add_schema(schema, "of the peers' test")
  writer:add_index { "label" }
  writer:set_page_size(1 << 15)
  writer:write_raw_data(rows(0, 19))
  writer:commit()
end
local appender = ms.mindrecord.FileWriter.open_for_append(folder .. "/one.mindrecord")
appender:write_raw_data(rows(20, 24))
appender:commit()
D.NumpySlicesDataset({
  label = ms.arange(9):astype(ms.int32), flag = ms.ops.greater(ms.arange(9), 4), small = ms.arange(9):astype(ms.uint8),
  half = (ms.arange(9) / 2):astype(ms.float16), plane = ms.arange(54):reshape(9, 2, 3):astype(ms.float64)
}, { shuffle = false }):save(folder .. "/saved.mindrecord", 2)
ms.mindrecord.set_enc_key "0123456789012345"
local locked = ms.mindrecord.FileWriter(folder .. "/locked.mindrecord", 1, true)
locked:add_schema { label = { type = "int32" } }
locked:set_header_size(1 << 14)
locked:set_page_size(1 << 15)
locked:write_raw_data { { label = 7 }, { label = 8 } }
locked:commit()

D.NumpySlicesDataset({ x = ms.arange(12):reshape(4, 3) * 5, y = ms.arange(4):astype(ms.float32) / 2 }, { shuffle = false })
  :save(folder .. "/rows.tfrecord")

local image = ms.arange(48 * 64 * 3):reshape(48, 64, 3) % 251
D.vision.write_png(folder .. "/image.png", image:astype(ms.uint8))
local smooth = (ms.arange(48):reshape(48, 1, 1) * 2 + ms.arange(64):reshape(1, 64, 1) + ms.arange(3) * 20):astype(ms.uint8)
D.vision.write_jpeg(folder .. "/image.jpg", smooth, 95)
