-- Run by records.py.
--   lunaria bench/records.lua make FOLDER COUNT     writes images of 28 x 28 bytes with labels as MindRecord, TFRecord, MNIST
--   lunaria bench/records.lua serve FOLDER          for each line "mindrecord" or "tfrecord": rows per second of an epoch
--   lunaria bench/records.lua resume FOLDER COUNT   milliseconds from a state to the next batch, the slowest of 21
--   lunaria bench/records.lua fresh FOLDER          the same behind "resume", once, with what a program does first of all
--   lunaria bench/records.lua open FIRST_SHARD      milliseconds to open it, and by how many MB the program grows
--   lunaria bench/records.lua row_function          nanoseconds that a function of Lua adds to a row, beside a batch of 32
--   lunaria bench/records.lua lenet FOLDER          per cent of the steps' time that goes into waiting for data
local ms = require "lunaria"
local networks = require "bench.networks"
local D, nn = ms.dataset, ms.nn
local vision = D.vision

local what, folder, count = arg[1], arg[2], math.tointeger(tonumber(arg[3] or 0))

local function write(path, schema, row)
  local writer = ms.mindrecord.FileWriter(path, { overwrite = true })
  writer:add_schema(schema, "a bench")
  for from = 0, count - 1, 1000 do
    local rows = {}
    for i = from, math.min(from + 1000, count) - 1 do rows[#rows + 1] = row(i) end
    writer:write_raw_data(rows)
  end
  assert(writer:commit() == count)
end

local function normalised(x) return (x:astype(ms.float32) - 33.3) * (1 / 78.5) end

local function images(file)
  if file == "tfrecord" then return D.TFRecordDataset(folder .. "/images.tfrecord") end
  return D.MindDataset(folder .. "/images.mindrecord")
end

local run = {}

function run.make()
  math.randomseed(1)
  local noise = {}
  for i = 1, 1 << 16 do noise[i] = string.char(math.random(0, 255)) end
  noise = table.concat(noise)
  write(folder .. "/images.mindrecord", { image = { type = "bytes" }, label = { type = "int32" } }, function(i)
    local from = math.random(1, #noise - 784)
    return { image = noise:sub(from, from + 783), label = i % 10 }
  end)
  D.MindDataset(folder .. "/images.mindrecord", { shuffle = false }):save(folder .. "/images.tfrecord")
  for name, header in pairs { ["train-images-idx3-ubyte"] = string.pack(">I4I4I4I4", 0x803, count, 28, 28),
    ["train-labels-idx1-ubyte"] = string.pack(">I4I4", 0x801, count) } do
    local file <close> = assert(io.open(folder .. "/" .. name, "wb"))
    file:write(header)
    for i = 1, count do file:write(#header == 8 and string.char(i % 10) or noise:sub(i, i + 783)) end
  end
end

function run.serve()
  local sets = {}
  for file in io.lines() do
    sets[file] = sets[file] or images(file):batch(32):map(normalised, "image")
    local start, rows = ms.clock(), 0
    for image, label in sets[file]:create_tuple_iterator({ num_epochs = 1 }) do
      assert(image.shape[2] == 784)
      rows = rows + label.shape[1]
    end
    print(("%.1f"):format(rows / ((ms.clock() - start) * 1e-9)))
    io.flush()
  end
end

function run.resume()
  local path = folder .. "/many.mindrecord"
  write(path, { id = { type = "int64" } }, function(i) return { id = i } end)
  local ds = D.MindDataset(path):shuffle(1024):batch(32)
  -- The page that the first row is in is read and checked.
  local first <close> = ds:create_tuple_iterator()
  assert(first().shape[1] == 32)
  local slowest = 0
  for i = 0, 20 do
    local row = (count // 32 - 1) * i // 20
    local it = ds:create_tuple_iterator()
    local start = ms.clock()
    it:restore { epoch = 0, row = row }
    assert(it().shape[1] == 32)
    slowest = math.max(slowest, (ms.clock() - start) * 1e-6)
    it:close()
  end
  print(slowest)
end

function run.fresh()
  local start = ms.clock()
  local it <close> = D.MindDataset(folder .. "/many.mindrecord"):shuffle(1024):batch(32):create_tuple_iterator()
  it:restore { epoch = 0, row = 15000 }
  assert(it().shape[1] == 32)
  print((ms.clock() - start) * 1e-6)
end

local function resident()
  for line in io.lines("/proc/self/status") do
    local kib = line:match "^VmRSS:%s+(%d+)"
    if kib then return tonumber(kib) / 1024 end
  end
end

function run.open()
  local before, start = resident(), ms.clock()
  local rows = D.MindDataset(folder):get_dataset_size()
  local took = (ms.clock() - start) * 1e-6
  print(rows, took, resident() - before)
end

function run.row_function()
  local rows = 200000
  local source = D.NumpySlicesDataset({ x = ms.zeros { rows, 4 } }, { shuffle = false })
  local turns = { source:batch(32), source:map(function(x) return x end):batch(32) }
  local added = {}
  for round = 0, 7 do
    local times = {}
    for i, ds in ipairs(turns) do
      local start = ms.clock()
      for x in ds:create_tuple_iterator({ num_epochs = 1 }) do assert(x.shape[2] == 4) end
      times[i] = ms.clock() - start
    end
    if round > 0 then added[round] = (times[2] - times[1]) / rows end
  end
  table.sort(added)
  print(added[4])
end

function run.lenet()
  local net = networks.lenet()
  ms.set_context { mode = ms.GRAPH_MODE }
  local step = ms.Model(net, nn.CrossEntropyLoss(), nn.Momentum(net:trainable_params(), 1e-5, 0.9)).train_network
  local ds = D.MnistDataset(folder, { usage = "train" })
    :map({ vision.Pad(2), vision.Normalize({ 33.3 }, { 78.5 }), vision.HWC2CHW() }, "image")
    :map(D.transforms.TypeCast(ms.int32), "label"):batch(32)
  local shares = {}
  for round = 0, 5 do
    local it = ds:create_tuple_iterator({ num_epochs = 1 })
    local waited, start = 0, nil
    while true do
      local asked = ms.clock()
      local image, label = it()
      if not image then break end
      -- The first step waits for what has to be made first of all.
      if start then waited = waited + ms.clock() - asked end
      step(image, label):item()
      start = start or ms.clock()
    end
    if round > 0 then shares[round] = 100 * waited / (ms.clock() - start) end
  end
  table.sort(shares)
  print(shares[3])
end

run[what]()
