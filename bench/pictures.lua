-- Pictures per second of an input pipeline: decode, random crop and resize to 224, flip, normalise, planes.
--   lunaria bench/pictures.lua make FOLDER COUNT       writes JPEGs of 500 x 375 pixels
--   lunaria bench/pictures.lua run FOLDER COUNT WORKERS ROUNDS
local ms = require "lunaria"
local D, vision = ms.dataset, ms.dataset.vision

local what, folder, count, workers, rounds = table.unpack(arg)
count = math.tointeger(tonumber(count))

local function path(i) return ("%s/%04d.jpg"):format(folder, i) end

if what == "make" then
  ms.set_seed(1)
  for i = 0, count - 1 do
    -- Edges, gradients and noise of several sizes, which take about as many bytes as a photograph does.
    local image = vision.Resize({ 375, 500 }, "bicubic")(ms.rand(24, 32, 3) * 200)
      + vision.Resize({ 375, 500 }, "nearest")(ms.rand(8, 8, 3) * 55) + ms.randn(375, 500, 3) * 4
    vision.write_jpeg(path(i), vision.ToType(ms.uint8)(ms.ops.clamp(image, 0, 255)), 90)
  end
  os.exit(true)
end

local pictures = {}
for i = 0, count - 1 do pictures[i + 1] = path(i) end
-- The bytes are in memory on both sides of the comparison.
local files = {}
for i = 1, count do
  local file <close> = assert(io.open(pictures[i], "rb"))
  files[i] = file:read "a"
end
local source = D.NumpySlicesDataset({ image = files }, { shuffle = false })
local ds = source:map({ vision.RandomCropDecodeResize(224), vision.RandomHorizontalFlip(),
  vision.Normalize({ 123.7, 116.3, 103.5 }, { 58.4, 57.1, 57.4 }), vision.HWC2CHW() }, "image",
  { num_parallel_workers = math.tointeger(tonumber(workers)) }):batch(32)
local best = 0
for row in ds:create_tuple_iterator({ num_epochs = 1 }) do assert(row.shape[2] == 3) end
for _ = 1, tonumber(rounds) do
  local start = ms.clock()
  for row in ds:create_tuple_iterator({ num_epochs = 1 }) do assert(row.shape[2] == 3) end
  best = math.max(best, count / ((ms.clock() - start) * 1e-9))
end
print(("%.1f"):format(best))
