-- ms.numpy beyond single calls: plain numbers, gradients, dtypes, names of arguments, messages, what is loaded when.
package.path = "tests/lua/?.lua;" .. package.path
local t = require "harness"
local ms = require "lunaria"

t.test("nothing of it is loaded before it is used, and then only what is used", function()
  local np = ms.numpy
  assert(package.loaded["lunaria.numpy.sets"] == nil)
  assert(np.unique ~= nil and package.loaded["lunaria.numpy.sets"] ~= nil)
end)

local np = ms.numpy

t.test("plain numbers are taken, and functions are differentiated at them", function()
  t.near(ms.grad(np.tanh)(2.0), 0.070650824853164, 1e-6)
  t.near(ms.grad(ms.grad(np.tanh))(2.0), -0.136218684, 1e-6)
  t.near(ms.grad(function(x) return np.power(x, 3) end)(2.0), 12.0, 1e-6)
  t.equal(np.add(1, 2).dtype, ms.int64)
  t.equal(np.add(1, 2.5).dtype, ms.float32)
end)

-- Each against differences of its values.
local smooth = {
  sin = np.sin, cos = np.cos, exp = np.exp, tanh = np.tanh, arctan = np.arctan, square = np.square, cbrt = np.cbrt,
  sum = np.sum, mean = np.mean, var = np.var, std = np.std, prod = np.prod, cumsum = np.cumsum, norm = np.norm, ptp = np.ptp,
  transpose = np.transpose, flip = np.flip, gradient = function(x) return (np.gradient(x)) end, diff = np.diff, trapz = np.trapz,
  outer = function(x) return np.outer(x, x) end, kron = function(x) return np.kron(x, x) end, cov = np.cov,
  dot = function(x) return np.dot(x, x:transpose()) end, tensordot = function(x) return np.tensordot(x, x, 2) end,
  convolve = function(x) return np.convolve(np.ravel(x), { 1.0, 2.0, -1.0 }) end, pad = function(x) return np.pad(x, 1, "reflect") end,
  polyval = function(x) return np.polyval({ 1.0, -2.0, 0.5 }, x) end, roll = function(x) return np.roll(x, 1, 0) end,
  take = function(x) return np.take(x, { 0, 2, 2 }) end, where = function(x) return np.where(np.greater(x, 0), x * x, x) end,
  maximum = function(x) return np.maximum(x, 0.1) end, clip = function(x) return np.clip(x, -0.6, 0.6) end,
  average = function(x) return np.average(x, { weights = np.arange(6, nil, nil, ms.float64):reshape { 2, 3 } }) end,
  interp = function(x) return np.interp(x, { -2.0, 0.0, 2.0 }, { 1.0, 3.0, -1.0 }) end, nansum = np.nansum, trace = np.trace,
  unwrap = np.unwrap,
}
for name, f in pairs(smooth) do
  t.test("the gradient of " .. name, function()
    local x = ms.tensor({ { 0.3, -0.7, 1.1 }, { -0.4, 0.9, 0.2 } }, ms.float64)
    local function loss(v)
      local y = f(v)
      local weights = ms.ops.sin(ms.ops.arange(1, y.size + 1, 1, ms.float64)):reshape(y.shape)
      return (ms.ops.cast(y, ms.float64) * weights):sum()
    end
    local gradient = ms.grad(loss)(x):reshape({ -1 }):tolist()
    for i = 1, 6 do
      local step = ms.ops.one_hot(ms.tensor(i - 1), 6):cast(ms.float64):reshape { 2, 3 } * 1e-5
      local difference = (loss(x + step):item() - loss(x - step):item()) / 2e-5
      t.near(gradient[i], difference, 2e-5 * math.max(1, math.abs(difference)))
    end
  end)
end

t.test("compiled functions give the same", function()
  local f = ms.jit(function(x) return np.sum(np.exp(np.sin(x)), 0) / np.mean(x) end)
  local x = ms.tensor({ { 1.0, 2.0 }, { 3.0, 4.0 } })
  t.near(f(x):tolist()[1], (np.sum(np.exp(np.sin(x)), 0) / np.mean(x)):tolist()[1], 1e-6)
  t.near(f(x):tolist()[2], (np.sum(np.exp(np.sin(x)), 0) / np.mean(x)):tolist()[2], 1e-6)
end)

t.test("dtypes of numpy for tensors, of Lunaria for plain values", function()
  local i8, u8 = np.ones(2, ms.int8), np.ones(2, ms.uint8)
  t.equal(np.add(i8, u8).dtype, ms.int16)
  t.equal(np.sin(i8).dtype, ms.float16)
  t.equal(np.sin(np.ones(2, ms.int32)).dtype, ms.float64)
  t.equal(np.add(np.ones(2, ms.int32), np.ones(2)).dtype, ms.float64)
  t.equal(np.sin({ 1, 2 }).dtype, ms.float32)
  t.equal(np.zeros(3).dtype, ms.float32)
  t.equal(np.add(i8, 1).dtype, ms.int8)
  t.equal(np.add(i8, 0.5).dtype, ms.float64)
  t.equal(np.add(np.ones(1, ms.bfloat16), np.ones(1, ms.float16)).dtype, ms.float32)
  t.equal(np.float32, ms.float32)
end)

t.test("names of arguments", function()
  t.equal(np.sum({ { 1, 2 }, { 3, 4 } }, { axis = 1 }):tolist(), { 3, 7 })
  t.equal(np.sum({ { 1, 2 }, { 3, 4 } }, 1, { keepdims = true }):tolist(), { { 3 }, { 7 } })
  t.fails({ "numpy.sum: there is no argument 'axes'" }, function() np.sum({ 1 }, { axes = 1 }) end)
  t.fails({ "axis is given twice" }, function() np.sum({ 1 }, 0, { axis = 1 }) end)
end)

t.test("wrong arguments", function()
  t.fails({ "numpy.sin: x must be a tensor, a number or a table of numbers, got the string 'x'" }, function() np.sin("x") end)
  t.fails({ "numpy.sin: x must be a tensor, a number or a table of numbers, got nil" }, function() np.sin() end)
  t.fails({ "numpy.sin: x must be" }, function() np.sin({ {}, 1 }) end)
  t.fails({ "numpy.sum: axis 3 is out of range for 1 axes" }, function() np.sum({ 1 }, 3) end)
  t.fails({ "numpy.zeros: shape must be an integer" }, function() np.zeros { 2, "x" } end)
  t.fails({ "cannot be cut into 2 equal parts" }, function() np.split({ 1, 2, 3 }, 2) end)
  t.fails({ "numpy.take: an index is out of range for 2 elements" }, function() np.take({ 1, 2 }, { 5 }) end)
  t.fails({ "numpy.zeros: dtype must be a dtype" }, function() np.zeros(2, "floot") end)
  t.fails({ "numpy.max: a tensor without elements" }, function() np.max(np.zeros(0)) end)
  t.fails({ "there is no function 'logspac'" }, function() np.logspac(1, 2) end)
  t.fails({ "numpy.pad: mode the string 'odd' is not known" }, function() np.pad({ 1 }, 1, "odd") end)
  t.fails({ "numpy.subtract: booleans cannot be subtracted" }, function() np.subtract(true, false) end)
end)

t.test("numbers for which a program would not come back are refused", function()
  t.fails({ "numpy.diff: n must be at most 1000" }, function() np.diff({ 1, 2 }, 1 << 40) end)
  t.fails({ "numpy.polyint: m must be at most 1000" }, function() np.polyint({ 1 }, 1 << 40) end)
  t.fails({ "numpy.diag_indices: ndim must be at most 1000" }, function() np.diag_indices(2, 1 << 40) end)
  t.fails({ "numpy.array_split: the number of parts must be at most" }, function() np.array_split({ 1 }, 1 << 40) end)
  t.fails({ "numpy.pad: pad_width must be at most" }, function() np.pad({ 1 }, 1 << 40, "edge") end)
  t.fails({ "numpy.vander: n must be at most" }, function() np.vander({ 1 }, 1 << 40) end)
end)

t.test("sizes of 0 and numbers with no axes", function()
  t.equal(np.sum(np.zeros(0)):item(), 0.0)
  t.equal(np.concatenate({ np.zeros(0), { 1.0 } }).size, 1)
  t.equal(np.unique(np.zeros(0, ms.int64)).size, 0)
  t.equal(np.flip(3).ndim, 0)
  t.equal(np.ravel(3).shape[1], 1)
  t.equal(select("#", np.split(np.zeros { 0, 2 }, 1)), 1)
end)

t.test("edges that fall, and booleans beside integers", function()
  -- numpy.digitize([-2, -4], [3, 0, -4], right) is [2, 3] and [2, 2]
  t.equal(ms.numpy.digitize(ms.tensor { -2, -4 }, ms.tensor { 3, 0, -4 }, { right = true }):tolist(), { 2, 3 })
  t.equal(ms.numpy.digitize(ms.tensor { -2, -4 }, ms.tensor { 3, 0, -4 }):tolist(), { 2, 2 })
  local flags = ms.tensor { false, true }
  for _, name in ipairs { "heaviside", "hypot", "copysign", "logaddexp2", "arctan2" } do
    t.equal(tostring(ms.numpy[name](flags, 2).dtype), "Float64")
  end
end)

t.finish()
