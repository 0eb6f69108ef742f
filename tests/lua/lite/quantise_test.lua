-- Quantisation: the operator, ranges, networks and their errors.
package.path = "tests/lua/?.lua;" .. package.path
local t = require "harness"
local ms = require "lunaria"

local ops = ms.ops

t.test("gradients pass straight through the rounding, and the scale learns from its error", function()
  local x = ops.randn { 6, 4 } * 3
  local scale, zero = ms.tensor { 0.5, 0.25, 0.1, 0.7 }, ms.tensor { 0.0, 2.0, -1.0, 3.0 }
  local weight = ops.randn { 6, 4 }
  local function loss(v, s, z) return ops.sum(ops.fake_quantize(v, s, z, -8, 7, 1) * weight) end
  local grads = ms.grad(loss, { 0, 1, 2 })(x, scale, zero)
  local steps = x / scale
  local nearest = ops.round(steps)
  local level = ops.clamp(nearest + zero, -8, 7)
  local inside = ops.equal(level, nearest + zero)
  t.near(ops.fake_quantize(x, scale, zero, -8, 7, 1), (level - zero) * scale, 1e-6)
  t.near(grads[1], ops.where(inside, weight, 0.0), 0)
  t.near(grads[2], ops.sum(ops.where(inside, nearest - steps, level - zero) * weight, 0), 1e-4)
  t.near(grads[3], ops.sum(ops.where(inside, 0.0, -scale) * weight, 0), 1e-5)
  assert(ops.any(inside):item() and not ops.all(inside):item())
end)

t.test("halves of a step go to the even one, for all formats of at most 16 bits", function()
  local x = ms.tensor { 0.5, 1.5, 2.5, -0.5, -1.5, -2.5 }
  for bits = 2, 16 do
    local most = (1 << (bits - 1)) - 1
    local y = ops.fake_quantize(x, 1.0, 0, -most - 1, most)
    t.near(y, ops.clamp(ms.tensor { 0.0, 2.0, 2.0, 0.0, -2.0, -2.0 }, -most - 1, most), 0)
  end
  t.fails({ "at most 16 bits" }, ops.fake_quantize, x, 1.0, 0, -32768, 32768)
  t.fails({ "growing" }, ops.fake_quantize, x, 1.0, 0, 3, 3)
  t.fails({ "scale", "6, one for each place along axis 0" }, ops.fake_quantize, x, ops.ones { 4 }, { axis = 0 })
  t.fails({ "needs an axis" }, ops.fake_quantize, x, 1.0, { block_size = 2 })
end)

t.finish()
