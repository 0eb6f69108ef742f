-- Pipelines written as JSON, by the program that prints a digest of every row (tests/conformance/dataset.lua): the same for 1 to 8
-- workers, and behind any row from which another process goes on.
-- Eager mode only: nothing here is called often enough to be compiled.
package.path = "tests/lua/?.lua;" .. package.path
local t = require "harness"
local ms = require "lunaria"
local D = ms.dataset

local program = arg[-1]
local folder = os.tmpname()
os.remove(folder)
os.execute("mkdir " .. folder)
local samples = "tests/data/samples/"
os.execute(("mkdir %s/pictures %s/pictures/a %s/pictures/b"):format(folder, folder, folder))
os.execute(("cp %simg/smooth_q95.jpg %simg/rgb.png %s/pictures/a"):format(samples, samples, folder))
os.execute(("cp %simg/smooth_420_progressive.jpg %s/pictures/b"):format(samples, folder))
local lines = assert(io.open(folder .. "/lines.txt", "w"))
for i = 1, 57 do lines:write("line ", i, "\n") end
lines:close()
D.NumpySlicesDataset({ x = ms.arange(90), y = ms.arange(90):astype(ms.float32) }, { shuffle = false }):save(folder .. "/some.tfrecord")

local resized = { transforms = { { "vision.RandomCropDecodeResize", { 12, 12 } }, { "vision.HWC2CHW" } } }
local pipelines = {
  { name = "range", source = { kind = "range", count = 203, shuffle = true }, operations = { { "shuffle", 20 }, { "batch", 4 } } },
  { name = "repeats", source = { kind = "range", count = 41, shuffle = true },
    operations = { { "repeat_", 3 }, { "shuffle", 7 }, { "skip", 5 }, { "take", 100 }, { "batch", 3, true } } },
  { name = "records", source = { kind = "mindrecord", files = { samples .. "mindrecord/sharded.mindrecord0" }, shuffle = true },
    operations = { { "repeat_", 4 }, { "shuffle", 5 } } },
  { name = "examples", source = { kind = "tfrecord", files = { folder .. "/some.tfrecord" }, shuffle = true },
    operations = { { "shuffle", 16 }, { "batch", 5 } } },
  { name = "lines", source = { kind = "text", files = { folder .. "/lines.txt" }, shuffle = true }, operations = { { "batch", 2 } } },
  { name = "csv", source = { kind = "csv", files = { samples .. "csv/rfc4180.csv" }, shuffle = true }, operations = { { "repeat_", 9 } } },
  { name = "pictures", source = { kind = "images", folder = folder .. "/pictures", shuffle = true },
    operations = { { "map", resized, "image" }, { "repeat_", 6 }, { "shuffle", 4 }, { "batch", 2 } } },
  { name = "noise", source = { kind = "cifar10", folder = samples .. "cifar10", shuffle = true },
    operations = { { "map", { transforms = { { "vision.RandomHorizontalFlip" }, { "vision.RandomCrop", { 28, 28 } },
      { "vision.RandomColorAdjust", { 0.8, 1.2 } }, { "transforms.TypeCast", "float32" } } }, "image" }, { "batch", 3 } } },
}
for _, pipeline in ipairs(pipelines) do pipeline.seed = 11 end
local stored = folder .. "/pipelines.json"
local file = assert(io.open(stored, "w"))
file:write(ms.json.encode(pipelines))
file:close()

-- The lines of the program, as "epoch row digest" by the names of the pipelines.
local function digests(path, options)
  local pipe <close> = assert(io.popen(("%s tests/conformance/dataset.lua %s %s 2>&1"):format(program, path, options)))
  local found = {}
  for line in pipe:lines() do
    local name, rest = line:match "^(%S+) (%d+ %d+ %x+)$"
    assert(name, line)
    found[name] = found[name] or {}
    table.insert(found[name], rest)
  end
  return found
end

local rows = 150
local expected = digests(stored, ("--workers 1 --rows %d"):format(rows))

t.test("digests are the same for 1 to 8 workers", function()
  for _, pipeline in ipairs(pipelines) do
    local list = expected[pipeline.name]
    assert(list and #list > 3, pipeline.name)
    local different = {}
    for _, line in ipairs(list) do different[line:match "%x+$"] = true end
    assert(next(different, next(different)), pipeline.name .. " gives one row only")
  end
  for workers = 2, 8 do t.equal(digests(stored, ("--workers %d --rows %d"):format(workers, rows)), expected) end
end)

t.test("a program that begins behind any row goes on with the same rows", function()
  math.randomseed(3)
  for _, pipeline in ipairs(pipelines) do
    local path, list = folder .. "/one.json", expected[pipeline.name]
    local one = assert(io.open(path, "w"))
    one:write(ms.json.encode(pipeline))
    one:close()
    for _ = 1, 6 do
      local stop = math.random(#list)
      local epoch, row = list[stop]:match "^(%d+) (%d+)"
      local count = math.min(4, #list - stop)
      local options = ("--workers %d --rows %d --epoch %s --skip %d"):format(math.random(8), count, epoch, row + 1)
      t.equal(digests(path, options)[pipeline.name] or {}, table.move(list, stop + 1, stop + count, 1, {}), pipeline.name .. options)
    end
  end
end)

os.execute("rm -r " .. folder)
t.finish()
