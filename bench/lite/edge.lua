-- Detector and tracker at the edge: milliseconds of a picture, one thread, in floats and in integers of 8 bits.
--   lunaria bench/lite/edge.lua
-- The figures that are aimed at are 60 ms for a detector and 5 ms for a tracker.
local ms = require "lunaria"
local ops = ms.ops

local yolo = dofile "notebooks/zoo/yolo.lua"
local tracker = dofile "notebooks/zoo/tracker.lua"

ms.set_seed(1)
local cases = {
  { name = "detector: YOLOv3-tiny, 416 x 416, 20 classes", aim = 60, net = yolo.yolov3_tiny(20, 16),
    inputs = { ops.randn { 1, 3, 416, 416 } } },
  { name = "detector: YOLOv3-tiny of half the width", aim = 60, net = yolo.yolov3_tiny(20, 8),
    inputs = { ops.randn { 1, 3, 416, 416 } } },
  { name = "tracker: 64 x 64 in 128 x 128", aim = 5, net = tracker.siamese(3, 16),
    inputs = { ops.randn { 1, 3, 64, 64 }, ops.randn { 1, 3, 128, 128 } } },
}
local file = os.tmpname()
for _, case in ipairs(cases) do
  case.net:set_train(false)
  local samples = {}
  for i, x in ipairs(case.inputs) do samples[i] = ops.expand_dims(x, 0) end
  local models = {}
  for i, options in ipairs { {}, { quant_type = "FULL_QUANT", calibration = samples } } do
    options.inputs, options.outputFile = case.inputs, file .. i
    ms.lite.convert(case.net, options)
    models[i] = ms.lite.Model(file .. i)
  end
  local times = { {}, {} }
  for run = 1, 24 do
    for i, model in ipairs(models) do
      local start = ms.clock()
      model:predict(table.unpack(case.inputs))
      if run > 4 then table.insert(times[i], (ms.clock() - start) / 1e6) end
    end
  end
  for i = 1, 2 do table.sort(times[i]) end
  print(("%-48s float %8.3f ms, int8 %8.3f ms (medians; %.2f times as fast), aim %d ms"):format(case.name, times[1][10], times[2][10],
    times[1][10] / times[2][10], case.aim))
  for i = 1, 2 do os.remove(file .. i) end
end
