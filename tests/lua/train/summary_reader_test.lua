-- SummaryReader: what SummaryRecord, TensorBoard (make_events.py) and MindSpore wrote; damaged files.
-- Eager mode only: nothing here is called often enough to be compiled.
package.path = "tests/lua/?.lua;" .. package.path
local t = require "harness"
local ms = require "lunaria"
local train = ms.train

local folder = os.tmpname()
os.remove(folder)

local function read(path)
  local file <close> = assert(io.open(path, "rb"))
  return file:read "a"
end

local function write(name, bytes)
  local path = folder .. "/" .. name
  local file <close> = assert(io.open(path, "wb"))
  file:write(bytes)
  return path
end

local tensorboard = "tests/lua/train/tensorboard.events"

local function record_of_all()
  local record = train.SummaryRecord(folder)
  for step = 1, 3 do
    record:add_value("scalar", "loss", 1 / step)
    record:record(step)
  end
  record:add_value("histogram", "h", ms.tensor { 0.0, 1.0, 1.0, 10.0, 0 / 0, 1 / 0, -1 / 0 })
  record:add_value("image", "picture", ms.full({ 3, 4, 5 }, 0.5))
  record:add_value("text", "note", "begun <b>")
  record:add_value("tensor", "w", ms.tensor { { 1.0, 2.0 }, { 3.0, 4.0 } })
  record:add_value("audio", "tone", { data = ms.tensor { 0.0, 1.0, -1.0, 0.5 }, sample_rate = 8000 })
  record:record(4)
  record:add_graph(ms.nn.Dense(2, 3), ms.ones { 1, 2 })
  record:add_hparams({ rate = 0.5 }, { accuracy = 0.75 })
  record:close()
  return record.path
end
local path = record_of_all()

t.test("what was recorded is read", function()
  local reader = train.SummaryReader(path)
  t.equal(table.concat(reader:tags(), " "),
    "_hparams_/experiment _hparams_/session_end_info _hparams_/session_start_info accuracy h loss note picture tone w")
  t.equal(table.concat(reader:tags "scalar", " "), "accuracy loss")
  t.equal({ reader:kind "h", reader:kind "picture", reader:kind "tone", reader:kind "note", reader:kind "w" },
    { "histogram", "image", "audio", "text", "tensor" })
  t.equal({ reader:kind "_hparams_/experiment", reader.has_graph }, { "hparams", true })
  local steps, losses = reader:scalars "loss"
  t.equal(steps, ms.tensor({ 1, 2, 3 }, ms.int64))
  t.equal({ losses.dtype, losses:astype(ms.float32) }, { ms.float64, ms.tensor({ 1.0, 0.5, 1 / 3 }, ms.float32) })
  local h = reader:values "h"[1]
  t.equal(h.step, 4)
  assert(math.abs(h.wall_time - os.time()) < 100)
  h = h.value
  t.equal({ h.min, h.max, h.count, h.sum, h.sum_squares, h.nan, h.positive_infinity, h.negative_infinity },
    { 0.0, 10.0, 4.0, 12.0, 102.0, 1.0, 1.0, 1.0 })
  t.equal({ #h.limits, #h.counts, h.limits[50] }, { 50, 50, 10.0 })
  local picture = reader:values "picture"[1].value
  t.equal({ picture.height, picture.width, picture.channels, picture.bytes:sub(1, 4) }, { 4.0, 5.0, 3.0, "\x89PNG" })
  t.equal(reader:values "note"[1].value, "begun <b>")
  t.equal(reader:values "w"[1].value, ms.tensor({ { 1.0, 2.0 }, { 3.0, 4.0 } }, ms.float32))
  local tone = reader:values "tone"[1].value
  t.equal({ tone.sample_rate, tone.channels, tone.frames, tone.type, tone.bytes:sub(1, 4) }, { 8000.0, 1.0, 4.0, "audio/wav", "RIFF" })
end)

t.test("a curve of precision and recall", function()
  local record = train.SummaryRecord(folder .. "/curve")
  local labels = ms.tensor { 1, 1, 0, 0, 1 }
  record:add_value("pr_curve", "cat", { labels = labels, predictions = ms.tensor { 1.0, 0.5, 0.75, 0.0, 0.24 }, num_thresholds = 5 })
  record:record(2)
  t.fails({ "cat.predictions must lie within 0 and 1" }, function()
    record:add_value("pr_curve", "cat", { labels = labels, predictions = labels * 2 })
  end)
  record:add_value("scalar", "kept", 1.0)
  t.fails({ "add_now: there is no plugin the string 'curve'" }, function() record:add_now(3, "curve", "cat", 1) end)
  t.equal(record:add_now(3, "text", "note", "at once"), true)
  record:record(4)
  t.fails({ "cat has 5 labels and 1 predictions" }, function()
    record:add_value("pr_curve", "cat", { labels = labels, predictions = ms.ones(1) })
  end)
  t.fails({ "cat must be { labels = tensor, predictions = tensor }" }, function() record:add_value("pr_curve", "cat", labels) end)
  record:close()
  local reader = train.SummaryReader(folder .. "/curve")
  t.equal({ reader:values "kept"[1].step, reader:values "note"[1].step }, { 4.0, 3.0 })
  local rows = reader:values "cat"[1].value:tolist()
  -- At least 0, 0.25, 0.5, 0.75 and 1: 0.24 counts for the first only.
  t.equal({ rows[1], rows[2], rows[3], rows[4] }, { { 3.0, 2.0, 2.0, 1.0, 1.0 }, { 2.0, 1.0, 1.0, 1.0, 0.0 }, { 0.0, 1.0, 1.0, 1.0, 2.0 },
    { 0.0, 1.0, 1.0, 2.0, 2.0 } })
  for i = 1, 5 do
    t.near(rows[5][i], rows[1][i] / (rows[1][i] + rows[2][i]), 1e-6)
    t.near(rows[6][i], rows[1][i] / 3, 1e-6)
  end
end)

t.test("what TensorBoard's classes wrote is read, in the older form and the newer", function()
  local reader = train.SummaryReader(tensorboard)
  t.equal(table.concat(reader:tags(), " "), "listed new note numbers old picture spread")
  t.equal({ reader:values "old"[1].value, reader:values "new"[1].value, reader:values "new"[1].wall_time }, { 0.25, 0.75, 3.5 })
  t.equal({ reader:kind "new", reader:values "note"[1].value }, { "scalar", "one\ntwo" })
  t.equal(reader:values "numbers"[1].value, ms.arange(0, 6):astype(ms.float64):reshape { 2, 3 })
  t.equal(reader:values "listed"[1].value, ms.tensor({ 7, 8 }, ms.int64))
  t.equal(reader:values "spread"[1].value.counts, { 1.0, 2.0 })
  t.equal(reader:values "picture"[1].value, { height = 2.0, width = 3.0, channels = 1.0, bytes = "\x89PNG" })
end)

t.test("what MindSpore wrote is read", function()
  local reader = train.SummaryReader "tests/data/samples/events"
  t.near(reader:values "loss"[1].value, 0.001230153371579945, 1e-9)
  t.equal(reader:kind "w", "tensor")
end)

t.test("a file that grows is read on", function()
  local record = train.SummaryRecord(folder .. "/live")
  record:flush()
  local reader = train.SummaryReader(folder .. "/live", { partial = true })
  t.equal(#reader:tags(), 0)
  for step = 1, 5 do
    record:add_value("scalar", "loss", step)
    record:record(step)
    record:flush()
    reader:reload()
    t.equal(#reader:values "loss", step)
  end
  record:close()
end)

t.test("damages are errors with the offset; what is being written is no damage", function()
  local bytes = read(path)
  for cut = 1, #bytes - 1, 97 do
    local part = write("cut", bytes:sub(1, cut))
    local ok, message = pcall(train.SummaryReader, part)
    -- A file may end where a record does.
    assert(ok or message:find "offset %d+", message)
    train.SummaryReader(part, { partial = true })
  end
  local found = 0
  for bit = 0, 8 * #bytes - 1, 307 do
    local at = bit // 8 + 1
    local damaged = bytes:sub(1, at - 1) .. string.char(bytes:byte(at) ~ 1 << bit % 8) .. bytes:sub(at + 1)
    local ok, message = pcall(train.SummaryReader, write("flipped", damaged))
    assert(not ok and message:find "flipped: record %d+ is corrupt: .* %(offset %d+%)", message)
    found = found + 1
  end
  assert(found > 50)
end)

t.test("what is wrong is named", function()
  local reader = train.SummaryReader(path)
  t.fails({ "SummaryReader", "path must be a path" }, train.SummaryReader, 3)
  t.fails({ "nothing.events" }, train.SummaryReader, "nothing.events")
  t.fails({ "there is no file of events in the folder" }, train.SummaryReader, "tests/lua/train")
  t.fails({ "values", "there is no tag 'los'", "did you mean 'loss'?" }, reader.values, reader, "los")
  t.fails({ "scalars", "the values of 'note' are no scalars, but of the kind text" }, reader.scalars, reader, "note")
  t.fails({ "tags", "kind must be a string" }, reader.tags, reader, 3)
  t.fails({ "read_events", "offset must not be negative" }, ms.io.read_events, path, false, -1)
end)

for _, name in ipairs { "cut", "flipped", path:match "[^/]*$", "live/" .. (ms.io.list_folder(folder .. "/live") or { "" })[1], "live" } do
  os.remove(folder .. "/" .. name)
end
os.remove(folder)
t.finish()
