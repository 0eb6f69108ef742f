-- SSD of notebooks/zoo: its size, its boxes, what it should say and its loss.
package.path = "tests/lua/?.lua;" .. package.path
local t = require "harness"
local ms = require "lunaria"
local ops = ms.ops

local ssd = dofile "notebooks/zoo/ssd.lua"

local function count(net)
  local sum = 0
  for _, parameter in ipairs(net:trainable_params()) do sum = sum + parameter.size end
  return sum
end

local defaults = ssd.default_boxes()

t.test("the network has the published size", function()
  t.equal(count(ssd.ssd300()), 35641826)
  collectgarbage()
end)

t.test("default boxes", function()
  t.equal(tostring(defaults.shape), "(8732, 4)")
  -- The first place of the first map, and the only one of the last (of torchvision's generator of default boxes).
  local s = math.sqrt
  t.near(defaults["0:4"], { { 4 / 300, 4 / 300, 0.07, 0.07 }, { 4 / 300, 4 / 300, s(0.07 * 0.15), s(0.07 * 0.15) },
    { 4 / 300, 4 / 300, 0.07 * s(2), 0.07 / s(2) }, { 4 / 300, 4 / 300, 0.07 / s(2), 0.07 * s(2) } }, 1e-6)
  t.near(defaults["8728:8732"], { { 0.5, 0.5, 0.87, 0.87 }, { 0.5, 0.5, s(0.87 * 1.05), s(0.87 * 1.05) }, { 0.5, 0.5, 1, 0.87 / s(2) },
    { 0.5, 0.5, 0.87 / s(2), 1 } }, 1e-6)
  -- The second place of the first row of the second map.
  t.near(defaults[38 * 38 * 4 + 6], { 24 / 300, 8 / 300, 0.15, 0.15 }, 1e-6)
end)

t.test("a default box that is an object belongs to it, and one that is too small still gets one", function()
  local boxes = ops.stack({ defaults[8728], ms.tensor { 0.2, 0.2, 0.01, 0.01 } }, 0)
  local labels, offsets = ssd.targets(boxes, ms.tensor({ 3, 1 }, ms.int64), defaults)
  t.equal(tostring(labels.shape), "(8732,)")
  t.equal(labels[8728]:item(), 3)
  t.near(offsets[8728], { 0, 0, 0, 0 }, 1e-5)
  t.equal(ops.sum(ops.equal(labels, 1):astype(ms.int64)):item(), 1)
  -- The way from middle to middle in sizes of the box, ten times, and the logarithm of the sizes' ratio, five times.
  local box = ops.expand_dims(defaults[8728] + ms.tensor { 0.02, 0.0, 0.05, 0.0 }, 0)
  local moved, second = ssd.targets(box, ms.tensor({ 2 }, ms.int64), defaults)
  t.equal(moved[8728]:item(), 2)
  t.near(second[8728], { 10 * 0.02 / 0.87, 0, 5 * math.log(0.92 / 0.87), 0 }, 1e-4)
end)

t.test("the loss is that of the full boxes and of the three times as many worst empty ones", function()
  local labels = ms.tensor({ { 2, 0, 0, 0, 0, 0 } }, ms.int64)
  local scores = ms.randn { 1, 6, 3 }
  local offsets, wanted = ops.zeros { 1, 6, 4 }, ops.zeros { 1, 6, 4 }
  wanted[{ 0, 0 }] = ms.tensor { 0.5, 3.0, 0.0, 0.0 }
  wanted[{ 0, 3 }] = 100.0
  local each, row = {}, (-ops.log_softmax(scores, -1))[0]:tolist()
  for i = 2, 6 do each[i - 1] = row[i][1] end
  table.sort(each, function(a, b) return a > b end)
  t.near(ssd.loss(scores, offsets, labels, wanted):item(), 0.125 + 2.5 + row[1][3] + each[1] + each[2] + each[3], 1e-5)
end)

t.test("a step of training", function()
  ms.set_seed(2)
  local net = ssd.ssd300(4, 2)
  local labels, offsets = ssd.targets(ms.tensor { { 0.5, 0.5, 0.6, 0.5 } }, ms.tensor({ 2 }, ms.int64), defaults)
  labels, offsets = ops.expand_dims(labels, 0), ops.expand_dims(offsets, 0)
  local x, params = ms.randn { 1, 3, 300, 300 }, net:trainable_params()
  local scores, places = net(x)
  t.equal({ tostring(scores.shape), tostring(places.shape) }, { "(1, 8732, 4)", "(1, 8732, 4)" })
  local optimizer = ms.nn.Adam(params, 1e-3)
  local step = ms.value_and_grad(function()
    local s, o = net(x)
    return ssd.loss(s, o, labels, offsets)
  end, nil, params)
  local losses = {}
  for i = 1, 3 do
    local loss, grads = step()
    assert(ms.amp.all_finite(grads):item())
    losses[i] = loss:item()
    optimizer(grads)
  end
  assert(losses[3] < losses[1], ("the loss went from %g to %g"):format(losses[1], losses[3]))
end)

local yolo = dofile "notebooks/zoo/yolo.lua"

t.test("YOLOv3-tiny has the published size, and its boxes lie where the formulas say", function()
  t.equal(count(yolo.yolov3_tiny()), 8852366)
  local net = yolo.yolov3_tiny(3, 2)
  local fine, coarse = net(ms.randn { 2, 3, 64, 96 })
  t.equal({ tostring(fine.shape), tostring(coarse.shape) }, { "(2, 3, 4, 6, 8)", "(2, 3, 2, 3, 8)" })
  local boxes, chances = net:boxes(coarse, 2)
  t.equal({ tostring(boxes.shape), tostring(chances.shape) }, { "(2, 18, 4)", "(2, 18, 4)" })
  -- The second picture, second box, second row, third column.
  local raw = coarse[{ 1, 1, 1, 2 }]:tolist()
  local function sigmoid(x) return 1 / (1 + math.exp(-x)) end
  t.near(boxes[{ 1, 6 + 5 }], { (sigmoid(raw[1]) + 2) * 32, (sigmoid(raw[2]) + 1) * 32, math.exp(raw[3]) * 135,
    math.exp(raw[4]) * 169 }, 1e-4)
  t.near(chances[{ 1, 6 + 5 }], { sigmoid(raw[5]), sigmoid(raw[6]), sigmoid(raw[7]), sigmoid(raw[8]) }, 1e-5)
end)

t.test("YOLO's loss looks at places only where there is something", function()
  local map, wanted = ops.zeros { 1, 3, 1, 1, 7 }, ops.zeros { 1, 3, 1, 1, 7 }
  wanted[{ 0, 0, 0, 0 }] = ms.tensor { 0.25, 0.5, 1.0, 0.0, 1.0, 1.0, 0.0 }
  wanted[{ 0, 1, 0, 0 }] = ms.tensor { 9.0, 9.0, 9.0, 9.0, 0.0, 1.0, 1.0 }
  t.near(yolo.loss(map, wanted):item(), 5 * (0.25 ^ 2 + 1) + 3 * math.log(2) + 2 * math.log(2), 1e-5)
end)

t.test("YOLO is trained", function()
  ms.set_seed(4)
  local net = yolo.yolov3_tiny(3, 2)
  net:set_train()
  local x, params = ms.randn { 2, 3, 64, 64 }, net:trainable_params()
  local fine, coarse = ops.zeros { 2, 3, 4, 4, 8 }, ops.zeros { 2, 3, 2, 2, 8 }
  coarse[{ 0, 1, 1, 0 }] = ms.tensor { 0.3, 0.6, 0.2, -0.1, 1.0, 0.0, 1.0, 0.0 }
  fine[{ 1, 2, 3, 1 }] = ms.tensor { 0.3, 0.6, 0.2, -0.1, 1.0, 1.0, 0.0, 0.0 }
  local optimizer = ms.nn.Adam(params, 1e-3)
  local step = ms.value_and_grad(function()
    local a, b = net(x)
    return yolo.loss(a, fine) + yolo.loss(b, coarse)
  end, nil, params)
  local losses = {}
  for i = 1, 5 do
    local loss, grads = step()
    losses[i] = loss:item()
    optimizer(grads)
  end
  assert(losses[5] < losses[1], ("the loss went from %g to %g"):format(losses[1], losses[5]))
end)

t.finish()
