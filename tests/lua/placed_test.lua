-- Pooling and convolution whose windows lie where data say, against loops over elements.
-- Eager mode only: nothing here is called often enough to be compiled.
package.path = "tests/lua/?.lua;" .. package.path
local t = require "harness"
local ms = require "lunaria"
local ops = ms.ops

local F64 = { dtype = ms.float64 }

local function starts(u, size, kernel, out)
  local result = {}
  for i = 0, out - 1 do
    local step = out > 1 and (size - kernel) / (out - 1) or 0
    result[i + 1] = i == out - 1 and size - kernel or math.floor((i + u) * step) - math.floor(u * step)
  end
  return result
end

t.test("fractional_max_pool2d takes the largest element of windows of uneven distances", function()
  ms.set_seed(1)
  for _, case in ipairs { { 9, 7, { 2, 3 }, { 4, 3 } }, { 5, 5, { 5, 1 }, { 1, 5 } }, { 8, 6, { 3, 2 }, { 6, 1 } } } do
    local height, width, kernel, out = table.unpack(case)
    local x, u = ops.randn({ 2, 3, height, width }, F64), ops.rand({ 2, 3, 2 }, F64)
    local y, at = ops.fractional_max_pool2d(x, kernel, out, nil, true, u)
    t.equal(y.shape, { 2, 3, out[1], out[2] })
    for n = 0, 1 do
      for c = 0, 2 do
        local rows = starts(u[n][c][1]:item(), height, kernel[1], out[1])
        local columns = starts(u[n][c][0]:item(), width, kernel[2], out[2])
        local plane, pooled = x[n][c]:tolist(), y[n][c]:tolist()
        for i, row in ipairs(rows) do
          for j, column in ipairs(columns) do
            local most, place = -math.huge, nil
            for a = row, row + kernel[1] - 1 do
              for b = column, column + kernel[2] - 1 do
                if plane[a + 1][b + 1] > most then most, place = plane[a + 1][b + 1], a * width + b end
              end
            end
            t.equal({ pooled[i][j], at[n][c][i - 1][j - 1]:item() }, { most, place })
          end
        end
      end
    end
  end
end)

t.test("fractional_max_pool3d, ratios, single images, draws", function()
  ms.set_seed(2)
  local x, u = ops.randn({ 1, 2, 4, 5, 6 }, F64), ops.rand({ 1, 2, 3 }, F64)
  local y, at = ops.fractional_max_pool3d(x, { 2, 1, 3 }, { 2, 4, 3 }, nil, true, u)
  t.equal(ops.gather_elements(x:reshape({ 2, 120 }), 1, at:reshape({ 2, 24 })):tolist(), y:reshape({ 2, 24 }):tolist())
  for c = 0, 1 do
    local front, down, right = starts(u[0][c][0]:item(), 4, 2, 2), starts(u[0][c][1]:item(), 5, 1, 4), starts(u[0][c][2]:item(), 6, 3, 3)
    for i = 1, 2 do
      for j = 1, 4 do
        for k = 1, 3 do
          local window = x[{ 0, c, ms.slice(front[i], front[i] + 2), down[j], ms.slice(right[k], right[k] + 3) }]
          t.equal(y[0][c][i - 1][j - 1][k - 1]:item(), window:max():item())
        end
      end
    end
  end
  local image = ops.randn { 3, 10, 8 }
  t.equal(ops.fractional_max_pool2d(image, 2, nil, { 0.5, 0.4 }).shape, { 3, 5, 3 })
  t.equal(ops.fractional_max_pool2d(image, 2, nil, 0.5).shape, { 3, 5, 4 })
  -- Other draws, other windows.
  local plane, sums = ops.randn { 1, 1, 40, 40 }, {}
  for i = 1, 6 do sums[i] = ops.fractional_max_pool2d(plane, 2, 17):sum():item() end
  local differs = false
  for i = 2, 6 do differs = differs or sums[i] ~= sums[1] end
  t.equal(differs, true)
  local gradient = ms.grad(function(v) return ops.fractional_max_pool2d(v, 2, 2, nil, false, ops.full({ 1, 1, 2 }, 0.25)):sum() end)
  t.equal(gradient(ms.tensor { { { { 1.0, 2.0, 3.0 }, { 6.0, 5.0, 4.0 }, { 7.0, 9.0, 8.0 } } } }):tolist(),
    { { { { 0.0, 0.0, 0.0 }, { 1.0, 1.0, 0.0 }, { 0.0, 2.0, 0.0 } } } })
  t.fails({ "fractional_max_pool2d", "output_size may be at most 9" }, ops.fractional_max_pool2d, image, 2, 10)
  t.fails({ "either output_size or output_ratio" }, ops.fractional_max_pool2d, image, 2)
  t.fails({ "between 0 and 1" }, ops.fractional_max_pool2d, image, 2, nil, 1.5)
  t.fails({ "between 0 and 1" }, ops.fractional_max_pool2d, image, 2, nil, { "a", 0.5 })
  t.fails({ "must have 3 or 4 axes" }, ops.fractional_max_pool2d, ops.ones { 3, 3 }, 2, 1)
  t.fails({ "_random_samples" }, ops.fractional_max_pool2d, image, 2, 2, nil, false, ops.ones { 3 })
end)

local function deformed(x, weight, offsets, o)
  local n, channels, height, width = table.unpack(x.shape)
  local features, depth, high, wide = table.unpack(weight.shape)
  local _, _, rows, columns = table.unpack(offsets.shape)
  local xs, ws, os = x:tolist(), weight:tolist(), offsets:tolist()
  local taps, result = high * wide, {}
  local function pixel(b, c, i, j)
    if i < 0 or j < 0 or i >= height or j >= width then return 0 end
    return xs[b][c][i + 1][j + 1]
  end
  for b = 1, n do
    for f = 1, features do
      for i = 1, rows do
        for j = 1, columns do
          local sum = 0
          for k = 1, depth do
            local channel = (f - 1) // (features // o.groups) * depth + k
            local group = (channel - 1) // (channels // o.parts)
            for tap = 1, taps do
              local function offset(third) return os[b][(third * o.parts + group) * taps + tap][i][j] end
              local y = (i - 1) * o.stride - o.padding + (tap - 1) // wide * o.dilation + offset(1)
              local z = (j - 1) * o.stride - o.padding + (tap - 1) % wide * o.dilation + offset(0)
              local top, left = math.floor(y), math.floor(z)
              local down, right = y - top, z - left
              local value = (1 - down) * ((1 - right) * pixel(b, channel, top, left) + right * pixel(b, channel, top, left + 1))
                + down * ((1 - right) * pixel(b, channel, top + 1, left) + right * pixel(b, channel, top + 1, left + 1))
              sum = sum + value * ws[f][k][(tap - 1) // wide + 1][(tap - 1) % wide + 1] * (o.modulated and offset(2) or 1)
            end
          end
          result[#result + 1] = sum
        end
      end
    end
  end
  return ms.tensor(result, ms.float64):reshape({ n, features, rows, columns })
end

t.test("deformable_conv2d is the sum over moved taps, and a convolution where nothing moves", function()
  ms.set_seed(3)
  for _, o in ipairs { { groups = 1, parts = 1, stride = 1, padding = 1, dilation = 1, modulated = true },
    { groups = 2, parts = 1, stride = 2, padding = 0, dilation = 1, modulated = false },
    { groups = 1, parts = 2, stride = 1, padding = 2, dilation = 2, modulated = true } } do
    local x = ops.randn({ 2, 4, 6, 7 }, F64)
    local weight = ops.randn({ 6, 4 // o.groups, 3, 2 }, F64)
    local rows = (6 + 2 * o.padding - o.dilation * 2 - 1) // o.stride + 1
    local columns = (7 + 2 * o.padding - o.dilation - 1) // o.stride + 1
    local offsets = ops.randn({ 2, (o.modulated and 3 or 2) * o.parts * 6, rows, columns }, F64) * 1.5
    local function run(a, w, v)
      return ops.deformable_conv2d(a, w, v, { 3, 2 }, { 1, 1, o.stride, o.stride }, o.padding, nil, { 1, 1, o.dilation, o.dilation },
        o.groups, o.parts, o.modulated)
    end
    t.near(run(x, weight, offsets), deformed(x, weight, offsets, o), 1e-10)
    if not o.modulated then
      t.near(run(x, weight, ops.zeros_like(offsets)), ops.conv2d(x, weight, nil, o.stride, "valid", 0, o.dilation, o.groups), 1e-10)
    end
    -- Gradients against central differences.
    local gradients = ms.grad(function(a, w, v) return ops.sin(run(a, w, v)):sum() end, { 0, 1, 2 })(x, weight, offsets)
    local given = { x, weight, offsets }
    for i = 1, 3 do
      local direction, moved = ops.randn(given[i].shape, F64), { { x, weight, offsets }, { x, weight, offsets } }
      moved[1][i], moved[2][i] = given[i] + direction * 1e-7, given[i] - direction * 1e-7
      local slope = (ops.sin(run(table.unpack(moved[1]))):sum():item() - ops.sin(run(table.unpack(moved[2]))):sum():item()) / 2e-7
      t.near((gradients[i] * direction):sum(), ms.tensor(slope, ms.float64), 1e-4)
    end
  end
  local x, w = ops.ones { 1, 2, 3, 3 }, ops.ones { 1, 2, 2, 2 }
  t.fails({ "deformable_conv2d", "offsets must have shape", "12" }, ops.deformable_conv2d, x, w, ops.ones { 1, 8, 2, 2 }, 2)
  t.fails({ "weight must have shape" }, ops.deformable_conv2d, x, ops.ones { 1, 1, 2, 2 }, ops.ones { 1, 12, 2, 2 }, 2)
  t.fails({ "must divide" }, ops.deformable_conv2d, x, w, ops.ones { 1, 12, 2, 2 }, 2, 1, 0, nil, 1, 3)
  t.fails({ "kernel is larger than the input" }, ops.deformable_conv2d, x, w, ops.ones { 1, 12, 2, 2 }, 2, 1, 0, nil, 3)
  local bias = ops.deformable_conv2d(x, w, ops.zeros { 1, 8, 2, 2 }, 2, 1, 0, ms.tensor { 0.5 }, 1, 1, 1, false)
  t.near(bias, ops.full({ 1, 1, 2, 2 }, 8.5), 1e-6)
end)

t.finish()
