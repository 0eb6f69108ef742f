-- Event files: framing and checksums, the fields that TensorBoard and MindSpore read, against a file that MindSpore wrote.
package.path = "tests/lua/?.lua;" .. package.path
local t = require "harness"
local ms = require "lunaria"
local train = ms.train

local folder = os.tmpname()
os.remove(folder)

-- CRC-32C, bit by bit.
local function masked_crc(text)
  local sum = 0xffffffff
  for i = 1, #text do
    sum = sum ~ text:byte(i)
    for _ = 1, 8 do sum = sum & 1 == 1 and (sum >> 1) ~ 0x82f63b78 or sum >> 1 end
  end
  sum = ~sum & 0xffffffff
  return ((sum >> 15 | sum << 17) + 0xa282ead8) & 0xffffffff
end

-- The records of a file; checksums are compared.
local function records(path)
  local file <close> = assert(io.open(path, "rb"))
  local bytes, at, list = file:read("a"), 1, {}
  while at <= #bytes do
    local length, length_sum = ("<I8I4"):unpack(bytes, at)
    t.equal(length_sum, masked_crc(bytes:sub(at, at + 7)))
    local event = bytes:sub(at + 12, at + 11 + length)
    t.equal((("<I4"):unpack(bytes, at + 12 + length)), masked_crc(event))
    list[#list + 1] = event
    at = at + 16 + length
  end
  return list
end

local function varint(text, at)
  local value, shift = 0, 0
  while true do
    local byte = text:byte(at)
    value, shift, at = value | (byte & 127) << shift, shift + 7, at + 1
    if byte < 128 then return value, at end
  end
end

-- number -> list of contents.
local function fields(text)
  local found, at = {}, 1
  while at <= #text do
    local key, value
    key, at = varint(text, at)
    local kind = key & 7
    if kind == 0 then
      value, at = varint(text, at)
    elseif kind == 1 then
      value, at = ("<d"):unpack(text, at)
    elseif kind == 5 then
      value, at = ("<f"):unpack(text, at)
    else
      local length
      length, at = varint(text, at)
      value, at = text:sub(at, at + length - 1), at + length
    end
    found[key >> 3] = found[key >> 3] or {}
    table.insert(found[key >> 3], value)
  end
  return found
end

-- The values of an event by tag.
local function values(event)
  local list = {}
  for _, value in ipairs(fields(fields(event)[5][1])[1]) do
    local f = fields(value)
    list[f[1][1]] = list[f[1][1]] or {}
    for number, content in pairs(f) do list[f[1][1]][number] = content[1] end
  end
  return list
end

local function written(add)
  local record = train.SummaryRecord(folder)
  add(record)
  t.equal(record:record(7), true)
  record:close()
  local list = records(record.path)
  t.equal(#list, 2)
  t.equal(fields(list[1])[3][1], "MindSpore.Event:1")
  t.equal(fields(list[2])[2][1], 7)
  local wall = fields(list[2])[1][1]
  assert(math.abs(wall - os.time()) < 100)
  return values(list[2])
end

t.test("the test reads MindSpore's own file", function()
  local name = "events.out.events.summary.1795251839.0.vm_MS"
  local list = records("tests/data/samples/events/" .. name)
  t.near(values(list[2]).loss[3], 0.001230153371579945, 1e-9)
  t.equal(fields(values(list[2]).w[8])[2][1], 11)
end)

t.test("scalars have TensorBoard's field and MindSpore's", function()
  local found = written(function(record)
    record:add_value("scalar", "loss", ms.tensor(0.25))
    record:add_value("scalar", "rate", 3)
  end)
  t.equal({ found.loss[2], found.loss[3], found.rate[2] }, { 0.25, 0.25, 3.0 })
end)

t.test("histograms count in both forms", function()
  local found = written(function(record)
    record:add_value("histogram", "h", ms.tensor { 0.0, 1.0, 1.0, 10.0, 0 / 0, 1 / 0, -1 / 0 })
    record:add_value("histogram", "same", ms.ones { 4 })
  end)
  local ours, theirs = fields(found.h[5]), fields(found.h[9])
  t.equal({ ours[1][1], ours[2][1], ours[3][1], ours[4][1], ours[5][1] }, { 0.0, 10.0, 4.0, 12.0, 102.0 })
  t.equal({ #ours[6][1], #ours[7][1] }, { 400, 400 })
  local sum = 0
  for i = 1, 400, 8 do sum = sum + ("<d"):unpack(ours[7][1], i) end
  t.equal(sum, 4.0)
  t.equal({ theirs[2][1], theirs[3][1], theirs[4][1], theirs[5][1], theirs[6][1], theirs[8][1] }, { 1, 1, 1, 10.0, 0.0, 7 })
  local counted = 0
  for _, bucket in ipairs(theirs[1]) do counted = counted + fields(bucket)[3][1] end
  t.equal(counted, 4)
  t.equal(fields(found.same[5])[3][1], 4.0)
end)

t.test("pictures, texts and tensors", function()
  local found = written(function(record)
    record:add_value("image", "picture", ms.full({ 2, 3, 4, 5 }, 0.5))
    record:add_value("text", "words", "<b>hello</b>")
    record:add_value("tensor", "w", ms.tensor { { 1.0, 2.0 }, { 3.0, 4.0 } })
  end)
  local picture = fields(found.picture[4])
  t.equal({ picture[1][1], picture[2][1], picture[3][1], picture[4][1]:sub(1, 4) }, { 4, 5, 3, "\x89PNG" })
  t.equal((">I4I4"):unpack(picture[4][1], 17), 5)
  t.equal({ fields(found.words[8])[1][1], fields(found.words[8])[8][1] }, { 7, "<b>hello</b>" })
  t.equal(fields(fields(found.words[9])[1][1])[1][1], "text")
  local tensor = fields(found.w[8])
  t.equal({ tensor[1], tensor[2][1], ("<ffff"):unpack(tensor[3][1]) }, { { 2, 2 }, 11, 1.0, 2.0, 3.0, 4.0, 17 })
end)

t.test("a training leaves its figures", function()
  local directory = folder .. "/training"
  local net = ms.nn.Dense(2, 1)
  local model = ms.Model(net, ms.nn.MSELoss(), ms.nn.SGD(net:trainable_params(), 0.125), { metrics = { "mse" } })
  local batches = {}
  for i = 1, 6 do batches[i] = { ms.ones { 1, 2 }, ms.ones { 1, 1 } } end
  local collector = train.SummaryCollector(directory, 2, { collect_specified_data = { histogram_regular = "weight" } })
  model:fit(1, batches, batches, { callbacks = collector })
  local names = ms.io.list_folder(directory)
  t.equal(#names, 3)
  t.equal(table.remove(names), "profiler")
  assert(names[1]:match "_lineage$" or names[2]:match "_lineage$")
  if names[1]:match "_lineage$" then names[1] = names[2] end
  assert(names[1]:match "^events%.out%.tfevents%.summary%.%d+%.", names[1])
  local list = records(directory .. "/" .. names[1])
  -- The first step is collected too.
  t.equal(#list, 7)
  assert(fields(list[2])[4], "the graph")
  local last = values(list[6])
  t.equal({ fields(list[3])[2][1], fields(list[6])[2][1] }, { 1, 6 })
  assert(last["loss/auto"][2] >= 0 and last["learning_rate/auto"][2] == 0.125 and last["weight/auto"][5])
  t.equal(last["bias/auto"], nil)
  assert(values(list[7])["eval_mse/auto"])
end)

-- Dropout, batch statistics and a cell that counts its calls and draws: the graph of the first step changes none of them.
t.test("a training that is recorded is the one that is not", function()
  local nn = ms.nn
  local Counts = nn.Cell:extend("Counts")
  function Counts:init() self.calls = ms.Parameter(ms.tensor { 0.0 }, "calls", false) end
  function Counts:construct(x)
    self.calls:assign(self.calls + 1)
    return x + ms.randn(x.shape) * 0.1
  end
  local x, y = ms.randn { 16, 4 }, ms.randint(0, 3, { 16 })
  local batches = { { x["0:8"], y["0:8"] }, { x["8:"], y["8:"] } }
  local function trained(collector, ...)
    ms.set_seed(4)
    -- A bias before a normalisation has gradients that are nothing but rounding, which Adam makes steps of.
    local net = nn.SequentialCell(nn.Dense(4, 8, { has_bias = false }), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout { p = 0.5 }, ...)
    net:append(nn.Dense(8, 3))
    local model = ms.Model(net, nn.CrossEntropyLoss(), nn.Adam(net:trainable_params(), 0.01))
    model:train(2, batches, { callbacks = collector, progress = false })
    local weights = {}
    for name, p in net:parameters_and_names() do weights[name] = p:tolist() end
    return weights, ms.randn({ 2 }):tolist()
  end
  for _, more in ipairs { {}, { Counts() } } do
    local place = folder .. "/same" .. #more
    if more[1] then more[1].calls:assign(ms.tensor { 0.0 }) end
    local plain, drawn = trained(nil, table.unpack(more))
    if more[1] then
      t.equal(plain["4.calls"], { 4.0 })
      more[1].calls:assign(ms.tensor { 0.0 })
    end
    local recorded, redrawn = trained(train.SummaryCollector(place), table.unpack(more))
    -- Compiled steps may round otherwise than those that come before.
    local tolerance = ms.get_context("mode") == ms.GRAPH_MODE and 1e-5 or 0
    for name, value in pairs(plain) do t.near(recorded[name], value, tolerance) end
    t.equal(redrawn, drawn)
    local has_graph = false
    for _, name in ipairs(ms.io.list_folder(place)) do
      for _, event in ipairs(name:find "_MS$" and records(place .. "/" .. name) or {}) do
        has_graph = has_graph or fields(event)[4] ~= nil
      end
    end
    t.equal(has_graph, #more == 0)
  end
end)

t.test("what is wrong is named", function()
  local record = train.SummaryRecord(folder)
  local add = record.add_value
  t.fails({ "add_value", "there is no plugin the string 'scaler'", "did you mean 'scalar'?" }, add, record, "scaler", "x", 1)
  t.fails({ "add_value", "loss must be a number" }, add, record, "scalar", "loss", ms.ones { 2 })
  t.fails({ "add_value", "picture (C, H, W)" }, add, record, "image", "x", ms.ones { 2, 2 })
  t.fails({ "add_value", "x is an empty tensor" }, add, record, "histogram", "x", ms.ones { 0 })
  t.fails({ "add_value", "x must be a string" }, add, record, "text", "x", 3)
  t.fails({ "record", "step must not be negative" }, record.record, record, -1)
  record:close()
  record:close()
  t.fails({ "record", "the record is closed" }, record.record, record, 1)
  t.fails({ "SummaryRecord", "log_dir must be a string" }, train.SummaryRecord, "")
  t.fails({ "cannot be made" }, train.SummaryRecord, "README.md/x")
end)

-- Sound, graphs, settings: the bytes are those that TensorBoard reads (event_accumulator of TensorBoard 2.21 was asked).
t.test("sound is a file of 16 bits", function()
  local found = written(function(record)
    record:add_value("audio", "tone", { data = ms.tensor { 0.0, 1.0, -1.0, 0.5 }, sample_rate = 8000 })
    record:add_value("audio", "both", ms.zeros { 3, 2 })
  end)
  local tone, both = fields(found.tone[6]), fields(found.both[6])
  t.equal({ tone[1][1], tone[2][1], tone[3][1], tone[5][1] }, { 8000.0, 1, 4, "audio/wav" })
  t.equal({ both[1][1], both[2][1], both[3][1] }, { 44100.0, 2, 3 })
  local wav = tone[4][1]
  t.equal({ #wav, wav:sub(1, 4), wav:sub(9, 16) }, { 52, "RIFF", "WAVEfmt " })
  t.equal({ ("<I4I4"):unpack(wav, 25) }, { 8000, 16000, 33 })
  t.equal({ ("<i2i2i2i2"):unpack(wav, 45) }, { 0, 32767, -32767, 16384, 53 })
  local record = train.SummaryRecord(folder)
  t.fails({ "add_value", "tone must be a floating tensor" }, record.add_value, record, "audio", "tone", ms.ones({ 4 }, ms.int32))
  t.fails({ "tone must be a floating tensor" }, record.add_value, record, "audio", "tone", ms.ones { 0 })
  t.fails({ "tone.sample_rate" }, record.add_value, record, "audio", "tone", { data = ms.ones { 4 }, sample_rate = 0 })
  record:close()
end)

t.test("the graph of a network has its operators and what flows between them", function()
  local record = train.SummaryRecord(folder)
  local net = ms.nn.SequentialCell(ms.nn.Dense(4, 3), ms.nn.ReLU())
  record:add_graph(net, ms.ones { 2, 4 })
  t.fails("", record.add_graph, record, function() error("no") end, ms.ones { 1 })
  record:close()
  local ops_of, inputs_of = {}, {}
  for _, text in ipairs(fields(fields(records(record.path)[2])[4][1])[1]) do
    local node = fields(text)
    ops_of[#ops_of + 1] = node[2][1]
    inputs_of[node[1][1]] = node[3] or {}
  end
  table.sort(ops_of)
  t.equal(table.concat(ops_of, " "), "Input MakeTuple Parameter Parameter ops.dense ops.relu")
  for _, inputs in pairs(inputs_of) do
    for _, input in ipairs(inputs) do assert(inputs_of[input], input) end
  end
end)

t.test("settings and their results", function()
  local record = train.SummaryRecord(folder)
  record:add_hparams({ rate = 0.5, optimizer = "Adam", big = true }, { accuracy = 0.75 })
  t.fails({ "add_hparams", "rate must be a number, a text or a boolean" }, record.add_hparams, record, { rate = {} })
  t.fails({ "add_hparams", "accuracy must be a number" }, record.add_hparams, record, {}, { accuracy = "x" })
  record:close()
  local found = values(records(record.path)[2])
  t.near(found.accuracy[2], 0.75, 0)
  local function data(tag)
    local plugin = fields(fields(found["_hparams_/" .. tag][9])[1][1])
    t.equal(plugin[1][1], "hparams")
    return fields(plugin[2][1])
  end
  local session = fields(data "session_start_info" [3][1])
  local settings = {}
  for _, pair in ipairs(session[1]) do
    local entry = fields(pair)
    local value = fields(entry[2][1])
    settings[entry[1][1]] = value[2] and value[2][1] or value[3] and value[3][1] or value[4][1]
  end
  t.equal(settings, { rate = 0.5, optimizer = "Adam", big = 1 })
  t.equal(#fields(data "experiment" [2][1])[4], 3)
  assert(data "session_end_info" [4])
end)

t.test("operators of summaries within a network show every step", function()
  local ops, nn = ms.ops, ms.nn
  local Net = nn.Cell:extend("Net")
  function Net:init()
    self.fc, self.show, self.histogram = nn.Dense(4, 3), ops.ScalarSummary(), ops.HistogramSummary()
  end
  function Net:construct(x)
    local y = self.fc(x)
    self.show("mean", ops.mean(y))
    self.histogram("y", y)
    return y
  end
  local net = Net()
  local model = ms.Model(net, nn.CrossEntropyLoss(), nn.SGD(net:trainable_params(), 0.0), { "accuracy" })
  local batches, means = {}, {}
  for i = 1, 6 do
    batches[i] = { ms.randn { 2, 4 }, ms.tensor { 0, 2 } }
    means[i] = net.fc(batches[i][1]):mean():item()
  end
  local place = folder .. "/within"
  local collector = train.SummaryCollector(place, 1, { custom_lineage_data = { note = "hi", n = 3, q = 0.5 } })
  model:train(2, batches, collector)
  local found = {}
  for _, event in ipairs(records(collector.summary.path)) do
    local step = (fields(event)[2] or { 0 })[1]
    if fields(event)[5] then
      local at = values(event)
      found[step] = at.mean and at.mean[3]
      assert(at.y[5] and at.y[9])
    end
  end
  for step = 1, 12 do t.near(found[step], means[(step - 1) % 6 + 1], 1e-5) end
  -- What was trained, on what, with what, to what.
  local lineage
  for _, name in ipairs(ms.io.list_folder(place)) do
    if name:find "_lineage$" then lineage = records(place .. "/" .. name) end
  end
  -- The user's data, then the training: after the first step and at the end.
  t.equal(#lineage, 4)
  local trained = fields(fields(lineage[4])[6][1])
  local hyper, algorithm = fields(trained[1][1]), fields(trained[3][1])
  t.equal({ hyper[1][1], hyper[2][1], hyper[3][1], hyper[4][1], hyper[8][1] }, { "SGD", 0.0, "CrossEntropyLoss", 2, 2 })
  t.equal({ algorithm[1][1], fields(trained[2][1])[2][1] }, { "Net", 12 })
  t.equal(#fields(fields(lineage[2])[10][1])[1], 3)
  local own = require("lunaria.train.lineage").user_info("f", { a = -1, b = 3000000000 }).user_info
  t.equal({ own[1].map_int32, own[2].map_double }, { { a = -1 }, { b = 3000000000.0 } })
  t.fails({ "SummaryCollector", "x must be a number or a text" }, train.SummaryCollector, place, { custom_lineage_data = { x = {} } })
end)

os.execute("rm -rf '" .. folder .. "'")
t.finish()
