-- A thousand random damages of files of each format: an error that names the file, or the rows that were written, and no memory that
-- the file could not fill; those of plain MindRecord are in tests/lua/mindrecord/mindrecord_test.lua.
-- Eager mode only: what reads files is not compiled.
package.path = "tests/lua/?.lua;" .. package.path
local t = require "harness"
local ms = require "lunaria"
local D = ms.dataset

local state = 77
local function draw(n)
  state = (state * 6364136223846793005 + 1442695040888963407) & 0x7fffffffffffffff
  return (state >> 20) % n
end

local function damaged(bytes, round)
  if round % 4 == 0 then return bytes:sub(1, draw(#bytes)) end
  local at = 1 + draw(#bytes)
  if round % 4 == 1 then return bytes:sub(1, at - 1) .. bytes:sub(at + 1 + draw(20)) end
  return bytes:sub(1, at - 1) .. string.char(bytes:byte(at) ~ (1 << draw(8))) .. bytes:sub(at + 1)
end

-- The most memory that the process has ever had, in KB.
local function peak()
  local file <close> = assert(io.open "/proc/self/status")
  return tonumber(file:read("a"):match "VmHWM:%s+(%d+)")
end

local function each_damage(path, check, named)
  local file = assert(io.open(path, "rb"))
  local bytes = file:read "a"
  file:close()
  local refused = 0
  pcall(check)
  local before = peak()
  for round = 1, 1000 do
    file = assert(io.open(path, "wb"))
    file:write(damaged(bytes, round))
    file:close()
    local ok, message = pcall(check)
    if not ok then
      refused = refused + 1
      assert(tostring(message):find(named or path, 1, true), ("round %d: %s"):format(round, message))
    end
  end
  os.remove(path)
  -- A size that a damaged file claims is not believed: the files have some KB, what 1,000 of them leave to the collector some MB.
  -- Graph mode keeps records of what each round did beside that.
  -- Sanitizers keep freed memory for a while.
  local limit = os.getenv "ASAN_OPTIONS" and 1000 or ms.get_context("mode") == ms.GRAPH_MODE and 128 or 48
  local grown = peak() - before
  assert(grown < limit * 1024, ("%d KB more at the peak"):format(grown))
  return refused
end

t.test("TFRecord", function()
  local path = os.tmpname()
  D.NumpySlicesDataset({ x = ms.arange(40), s = (function()
    local list = {}
    for i = 1, 40 do list[i] = "text " .. i end
    return list
  end)() }, { shuffle = false }):save(path, { file_type = "tfrecord" })
  local wrong = 0
  local refused = each_damage(path, function()
    local i = 0
    for row in D.TFRecordDataset(path, { "s", "x" }, { shuffle = false }):create_dict_iterator() do
      -- Whole records that were cut off at the end are not missed; none is changed.
      if row.x:item() ~= i or row.s ~= "text " .. i + 1 then wrong = wrong + 1 end
      i = i + 1
    end
  end)
  t.equal(wrong, 0)
  assert(refused > 900, refused)
end)

t.test("CSV", function()
  local path = os.tmpname()
  local file = assert(io.open(path, "w"))
  file:write "x,name\n"
  for i = 1, 60 do file:write(i, ",\"n, ", i, "\"\n") end
  file:close()
  local refused = each_damage(path, function()
    for row in D.CSVDataset(path, { column_defaults = { 0, "" }, column_names = { "x", "name" },
      shuffle = false }):skip(1):create_dict_iterator() do
      assert(math.type(row.x:item()) == "integer" and type(row.name) == "string")
    end
  end)
  -- The format has no check sums: most changes of a letter are another text.
  assert(refused > 50, refused)
end)

local function copied(from)
  local input <close> = assert(io.open("tests/data/samples/" .. from, "rb"))
  local path = os.tmpname()
  local output <close> = assert(io.open(path, "wb"))
  output:write(input:read "a")
  return path
end

t.test("MindRecord under a key", function()
  local records, path = ms.mindrecord, os.tmpname()
  records.set_enc_key "0123456789abcdef"
  local w <const> = records.FileWriter(path, 1, true)
  w:set_header_size(1 << 14)
  w:set_page_size(1 << 15)
  w:add_schema { i = { type = "int32" }, b = { type = "bytes" } }
  local rows = {}
  for i = 1, 20 do rows[i] = { i = i, b = ("b"):rep(i) } end
  w:write_raw_data(rows)
  w:commit()
  local wrong = 0
  local refused = each_damage(path, function()
    local count = 0
    for row in D.MindDataset(path, { shuffle = false }):create_dict_iterator() do
      count = count + 1
      if row.i:item() ~= count or row.b.size ~= count then wrong = wrong + 1 end
    end
    if count ~= 20 then wrong = wrong + 1 end
  end)
  records.set_enc_key(nil)
  os.remove(path .. ".db")
  t.equal(wrong, 0)
  assert(refused > 900, refused)
end)

-- Formats without check sums: another content may come out, but of the kind that it is.
t.test("idx", function()
  local path = copied "idx/images-idx3-ubyte"
  local folder = os.tmpname()
  os.remove(folder)
  os.execute("mkdir " .. folder)
  local images, labels = folder .. "/train-images-idx3-ubyte", folder .. "/train-labels-idx1-ubyte"
  os.rename(path, images)
  os.rename(copied "idx/labels-idx1-ubyte", labels)
  local refused = each_damage(images, function()
    for row in D.MnistDataset(folder, { usage = "train" }):create_dict_iterator() do
      assert(row.image.size > 0 and row.label.size == 1)
    end
  end)
  os.execute("rm -r " .. folder)
  assert(refused > 50, refused)
end)

t.test("JSON lines", function()
  local path = os.tmpname()
  local file = assert(io.open(path, "w"))
  for i = 1, 30 do file:write(('{"x": %d, "s": "n %d"}\n'):format(i, i)) end
  file:close()
  local refused = each_damage(path, function()
    for row in D.JSONLinesDataset(path, { shuffle = false }):create_dict_iterator() do assert(next(row)) end
  end)
  assert(refused > 50, refused)
end)

for _, picture in ipairs { "rgb.png", "smooth_q95.jpg", "interlaced.bmp" } do
  t.test("pictures, " .. picture, function()
    local path = copied("img/" .. picture)
    local refused = each_damage(path, function()
      local shape = D.vision.read_image(path).shape
      assert(shape[1] > 0 and shape[2] > 0)
    end)
    assert(refused > 50, refused)
  end)
end

t.test("sounds", function()
  local path = copied "wav/stereo16.wav"
  local refused = each_damage(path, function()
    local samples, rate = D.audio.read(path)
    assert(samples.size >= 0 and rate)
  end)
  assert(refused > 50, refused)
end)

t.test("npy", function()
  local base = os.tmpname()
  local path = base .. ".npy"
  ms.save(path, ms.arange(60):reshape { 3, 20 })
  local refused = each_damage(path, function() assert(ms.load(path).size <= 60) end)
  os.remove(base)
  assert(refused > 50, refused)
end)

t.test("npz", function()
  local path = copied "npy/deflated.npz"
  os.rename(path, path .. ".npz")
  local refused = each_damage(path .. ".npz", function() assert(next(ms.load(path .. ".npz"))) end)
  assert(refused > 50, refused)
end)

local function made_folder(...)
  local folder = os.tmpname()
  os.remove(folder)
  for _, part in ipairs { "", ... } do os.execute(("mkdir %s/%s"):format(folder, part)) end
  return folder
end
local function written(path, content)
  local file <close> = assert(io.open(path, "wb"))
  file:write(content)
end

t.test("CIFAR", function()
  local folder = made_folder()
  local path = folder .. "/data_batch_1.bin"
  os.rename(copied "cifar10/data_batch_1.bin", path)
  local refused = each_damage(path, function()
    for row in D.Cifar10Dataset(folder, { usage = "train" }):create_dict_iterator() do
      t.equal({ row.image.size, row.label:item() < 256 }, { 3072, true })
    end
  end)
  os.execute("rm -r " .. folder)
  assert(refused > 400, refused)
end)

t.test("annotations of VOC", function()
  local folder = made_folder("Annotations", "ImageSets", "ImageSets/Main", "JPEGImages")
  local path = folder .. "/Annotations/a.xml"
  written(folder .. "/ImageSets/Main/train.txt", "a\n")
  written(folder .. "/JPEGImages/a.jpg", "pixels")
  local box = "<bndbox><xmin>1</xmin><ymin>2</ymin><xmax>10</xmax><ymax>20</ymax></bndbox>"
  written(path, ("<object><name>dog</name><truncated>1</truncated><difficult>0</difficult>%s</object>"):format(box))
  local refused = each_damage(path, function()
    for row in D.VOCDataset(folder, "Detection", "train"):create_dict_iterator() do
      assert(row.bbox.size == 4 * row.label.size)
    end
  end)
  os.execute("rm -r " .. folder)
  assert(refused > 50, refused)
end)

t.test("annotations of COCO", function()
  local folder = made_folder()
  local path = folder .. "/all.json"
  written(folder .. "/1.jpg", "pixels")
  written(path, ms.json.encode {
    images = { { id = 5, file_name = "1.jpg" } }, categories = { { id = 3, name = "car" } },
    annotations = { { image_id = 5, bbox = { 1, 2, 3, 4 }, category_id = 3, iscrowd = 0 } },
  })
  local refused = each_damage(path, function()
    for row in D.CocoDataset(folder, path, "Detection"):create_dict_iterator() do
      assert(row.bbox.size == 4 * row.category_id.size)
    end
  end, folder)
  os.execute("rm -r " .. folder)
  assert(refused > 50, refused)
end)

t.test("SentencePiece models", function()
  for _, model in ipairs { "unigram", "bpe" } do
    local path = os.tmpname()
    os.execute(("cp tests/data/transforms/sentences_%s.model %s"):format(model, path))
    local refused = each_damage(path, function()
      local tokens = D.text.SentencePieceTokenizer(path, "string")("a sentence of words, 12")
      for _, token in ipairs(tokens) do assert(type(token) == "string") end
    end)
    assert(refused > 20, refused)
  end
end)

t.finish()
