-- The tracker of notebooks/zoo: what it should say, and a pattern followed by a network that was trained for a moment, in floats and
-- by light models of floats and of integers.
-- Eager mode only: the step is compiled in both.
package.path = "tests/lua/?.lua;" .. package.path
local t = require "harness"
local ms = require "lunaria"
local nn, ops = ms.nn, ms.ops

local tracker = dofile "notebooks/zoo/tracker.lua"

t.test("the target is 1 near the pattern's place", function()
  local target = tracker.target(16, 40)
  t.equal(target["0, 0, 2, 5"]:item(), 1.0)
  t.equal(target["0, 0, 3, 6"]:item(), 0.0)
  t.equal(ops.sum(target):item(), 5.0)
  t.near(tracker.loss(ops.zeros { 1, 1, 9, 9 }, target):item(), 2 * math.log(2), 1e-6)
end)

local function around(picture, y, x, size) return picture[("..., %d:%d, %d:%d"):format(y, y + size, x, x + size)] end

-- A pattern, a window that has it somewhere, and where.
local function sample(random)
  local high, wide = random(16, 34), random(16, 34)
  local y, x, others = random(70, 150), random(70, 150), {}
  for i = 1, 3 do others[i] = { random(0, 200), random(0, 200), random(10, 40), random(10, 40), 0.3 + 0.03 * random(10) } end
  local middle_y, middle_x = y + high // 2, x + wide // 2
  local pattern = around(tracker.scene(256, y, x, high, wide, others), middle_y - 32, middle_x - 32, 64)
  local top = math.max(0, math.min(128, middle_y + random(-28, 28) - 64))
  local left = math.max(0, math.min(128, middle_x + random(-28, 28) - 64))
  return pattern, around(tracker.scene(256, y, x, high, wide, others), top, left, 128), middle_y - 32 - top, middle_x - 32 - left
end

-- How far from the truth the tracker is at most while a rectangle goes through 25 pictures.
local function follow(match)
  ms.set_seed(1)
  local y, x, others = 60.0, 60.0, { { 20, 150, 30, 30, 0.5 }, { 180, 60, 20, 40, 0.4 } }
  local step = tracker.follow(match, around(tracker.scene(256, 60, 60, 24, 30, others), 40, 43, 64))
  local at_y, at_x, worst = 72.0, 75.0, 0
  for i = 1, 25 do
    y, x = y + 2.5, x + 2 + 2 * math.sin(i / 5)
    at_y, at_x = step(tracker.scene(256, math.floor(y), math.floor(x), 24, 30, others), at_y, at_x)
    worst = math.max(worst, math.abs(at_y - y - 12), math.abs(at_x - x - 15))
  end
  return worst
end

t.test("trained for a moment, it follows a rectangle; so do light models of it", function()
  ms.set_seed(7)
  math.randomseed(7)
  local net = tracker.siamese(1, 6)
  local optimizer = nn.Adam(net:trainable_params(), 4e-3)
  local gradients = ms.value_and_grad(function(p, w, wanted) return tracker.loss(net(p, w), wanted) end, nil, optimizer.parameters)
  local step = ms.jit(function(p, w, wanted)
    local loss, g = gradients(p, w, wanted)
    optimizer(g)
    return loss
  end)
  local first, last = 0, 0
  for i = 1, 200 do
    local pattern, window, y, x = sample(math.random)
    local loss = step(pattern, window, tracker.target(y, x)):item()
    if i <= 20 then first = first + loss elseif i > 180 then last = last + loss end
  end
  assert(last < 0.7 * first, last / first)
  net:set_train(false)
  local exact = follow(net)
  assert(exact < 16, exact)
  local pattern, window = sample(math.random)
  local samples = { {}, {} }
  for i = 1, 8 do samples[1][i], samples[2][i] = sample(math.random) end
  local file = os.tmpname()
  for _, options in ipairs { {}, { quant_type = "FULL_QUANT", calibration = { ops.stack(samples[1]), ops.stack(samples[2]) } } } do
    options.inputs, options.outputFile = { pattern, window }, file
    ms.lite.convert(net, options)
    local model = ms.lite.Model(file)
    local worst = follow(function(a, b) return model:predict(a, b) end)
    assert(worst < exact + 1.5, worst)
  end
  os.remove(file)
end)

t.finish()
