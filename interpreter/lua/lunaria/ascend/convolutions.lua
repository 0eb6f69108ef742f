-- Convolutions and their gradients on the cube: load3d reads the windows of a picture as rows of a matrix.
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"
local formats = require "lunaria.ascend.formats"
local kernel = require("lunaria.ascend.kernel").kernel
local products = require "lunaria.ascend.products"
local ops = ms.ops

local M = {}
local grid, tiles_of, l0_buffers, step_k, panel_k = products.grid, products.tiles_of, products.l0_buffers, products.step_k, products.panel_k
local most = 8 -- squares of a tile's side

local function ceil(a, b) return (a + b - 1) // b end

-- Height and width of a picture whose elements have gaps between them, zeros that a gradient's strides leave.
local function spread_out(x, gaps) return (x.shape[3] - 1) * gaps[1] + 1, (x.shape[4] - 1) * gaps[2] + 1 end

local function out_size(h, w, o)
  local spread_h, spread_w = (o.kernel[1] - 1) * o.dilation[1] + 1, (o.kernel[2] - 1) * o.dilation[2] + 1
  return (h + o.padding[1] + o.padding[3] - spread_h) // o.stride[1] + 1, (w + o.padding[2] + o.padding[4] - spread_w) // o.stride[2] + 1
end

-- Zeros in L1, by way of UB: from element `first` on, `count` of them.
local function clear(t, buffer, zeros, first, count)
  for at = first, first + count - 1, zeros.count do
    local part = math.min(zeros.count, first + count - at)
    t:copy(buffer:at(at), zeros, { count = part })
  end
end

-- Brings a picture of x to L1, with its gaps.
local function bring(t, image, x, picture, gaps)
  local c1, h, w = x.shape[2], x.shape[3], x.shape[4]
  if gaps[1] == 1 and gaps[2] == 1 then return t:load(image, x:at(picture * c1 * h * w * 16), { count = c1 * h * w * 16 }) end
  local high, wide = spread_out(x, gaps)
  local zeros = t:ub(ms.float16, 8192)
  t:vdup(zeros, 0.0)
  t:sync("V", "MTE3", 5)
  clear(t, image, zeros, 0, c1 * high * wide * 16)
  t:sync("MTE3", "MTE2", 5)
  for c = 0, c1 - 1 do
    for row = 0, h - 1 do
      t:load(image:at((c * high + row * gaps[1]) * wide * 16), x:at(((picture * c1 + c) * h + row) * w * 16),
        { bursts = w, burst = 16, src_stride = 16, dst_stride = 16 * gaps[2] })
    end
  end
end

-- x as NC1HWC0, w as FRACTAL_Z -> (n, o / 16, pixels, 16), with o = { kernel, stride, padding (top, left, bottom, right), dilation,
-- gaps }.
local function conv_kernel(name, o)
  local function parts(x, w)
    local high, wide = spread_out(x, o.gaps)
    local oh, ow = out_size(high, wide, o)
    local m = ceil(oh * ow, 16)
    local rows, columns = grid(m, w.shape[2], math.max(1, 32 // x.shape[1]))
    return oh, ow, m, rows, columns, high, wide
  end
  return kernel(name, { outputs = function(x, w)
    local oh, ow = parts(x, w)
    return { shape = { x.shape[1], w.shape[2], oh * ow, 16 }, dtype = x.dtype }
  end, blocks = function(x, w)
    local _, _, _, rows, columns = parts(x, w)
    return x.shape[1] * rows * columns
  end }, function(t, x, w, y)
    local oh, ow, m, rows, columns, high, wide = parts(x, w)
    local c1, k, n = x.shape[2], w.shape[1], w.shape[2]
    local picture = t.block // (rows * columns)
    local buffers = l0_buffers(t, most, step_k)
    -- The whole picture stays in L1, weights come by panels.
    local image = t:l1(ms.float16, c1 * high * wide * 16)
    local l1b = {}
    for slot = 0, 1 do l1b[slot] = t:l1(ms.float16, most * panel_k * 256) end
    bring(t, image, x, picture, o.gaps)
    local part = { block = t.block % (rows * columns) }
    products.multiply(t, tiles_of(part, m, n, rows, columns, most), k, panel_k, step_k, buffers, function(panel, slot)
      local tile = panel.tile
      t:load(l1b[slot], w:at((panel.k * n + tile[3]) * 256), { bursts = panel.count, burst = tile[4] * 256, src_stride = n * 256,
        dst_stride = tile[4] * 256 })
    end, function(panel, slot, step, count, half)
      local tile = panel.tile
      t:load3d(buffers.a[half], image, { height = high, width = wide, channels = c1, kernel = o.kernel, stride = o.stride,
        padding = o.padding, dilation = o.dilation, row = tile[1] * 16, rows = tile[2], step = panel.k + step, steps = count })
      t:load2d(buffers.b[half], l1b[slot]:at(step * tile[4] * 256), { count = count * tile[4] })
    end, function(tile)
      local pixels = math.min(tile[2] * 16, oh * ow - tile[1] * 16)
      t:store(y:at(((picture * n + tile[3]) * oh * ow + tile[1] * 16) * 16), buffers.out,
        { bursts = tile[4], burst = pixels * 16, src_stride = tile[2] * 256, dst_stride = oh * ow * 16 })
    end)
  end)
end

-- Runs it: pictures and weights as they are, and the result cut to its channels.
local function convolve(name, x, w, settings)
  local image = formats.to_format(x, "NC1HWC0")
  local high, wide = spread_out(image, settings.gaps)
  local oh, ow = out_size(high, wide, settings)
  local y = conv_kernel(name, settings)(image, formats.to_format(w, "FRACTAL_Z"))
  return formats.from_format(ops.reshape(y, { x.shape[1], y.shape[2], oh, ow, 16 }), "NC1HWC0", { x.shape[1], w.shape[1], oh, ow })
end

local function pair(v, default)
  v = v or default
  return type(v) == "table" and v or { v, v }
end

local function require_pictures(name, what, ...)
  local fits = true
  for _, x in ipairs { ... } do fits = fits and ms.is_tensor(x) and x.dtype == ms.float16 and #x.shape == 4 end
  if not fits then
    arguments.fail("ascend.kernels." .. name, ("%s of float16 with four axes are expected, got %s and %s"):format(what,
      arguments.describe((...)), arguments.describe((select(2, ...)))))
  end
end

--- o: stride, padding, dilation, each a number or one for each axis.
function M.conv2d(x, w, o)
  o = o or {}
  require_pictures("conv2d", "pictures and weights", x, w)
  if x.shape[2] ~= w.shape[2] then
    arguments.fail("ascend.kernels.conv2d", ("pictures and weights of float16 that fit each other are expected, got %s and %s"):format(
      arguments.describe(x), arguments.describe(w)))
  end
  local pad = pair(o.padding, 0)
  return convolve("conv2d", x, w, { kernel = { w.shape[3], w.shape[4] }, stride = pair(o.stride, 1), dilation = pair(o.dilation, 1),
    padding = { pad[1], pad[2], pad[1], pad[2] }, gaps = { 1, 1 } })
end

--- The gradient of conv2d by its pictures: a convolution of dy, with zeros between its elements where there was a stride, by the
--- weights turned round. o: stride, padding, dilation, and shape, that of the pictures.
function M.conv2d_input_grad(dy, w, o)
  o = o or {}
  local name = "conv2d_input_grad"
  require_pictures(name, "a gradient and weights", dy, w)
  local pad, gaps, dilation, spread = pair(o.padding, 0), pair(o.stride, 1), pair(o.dilation, 1), {}
  local before, after = {}, {}
  for axis = 1, 2 do
    spread[axis] = (w.shape[2 + axis] - 1) * dilation[axis] + 1
    local size = (dy.shape[2 + axis] - 1) * gaps[axis] + 1
    local wanted = o.shape and o.shape[2 + axis] or size + spread[axis] - 1 - 2 * pad[axis]
    before[axis] = spread[axis] - 1 - pad[axis]
    after[axis] = wanted - size - before[axis] + spread[axis] - 1
    if before[axis] < 0 or after[axis] < 0 or after[axis] >= spread[axis] + gaps[axis] then
      local text = "no convolution of %d elements with a window of %d, stride %d and padding %d gives %d"
      arguments.fail("ascend.kernels." .. name, text:format(wanted, spread[axis], gaps[axis], pad[axis], dy.shape[2 + axis]))
    end
  end
  if dy.shape[2] ~= w.shape[1] then
    arguments.fail("ascend.kernels." .. name, ("dy has %d channels, the weights give %d"):format(dy.shape[2], w.shape[1]))
  end
  local turned = ops.flip(ops.transpose(w, { 1, 0, 2, 3 }), { 2, 3 })
  return convolve(name, dy, turned, { kernel = { w.shape[3], w.shape[4] }, stride = { 1, 1 }, dilation = dilation,
    padding = { before[1], before[2], after[1], after[2] }, gaps = gaps })
end

-- x and dy as (n, channels / 16, pixels, 16) and x also by rows -> (c / 16 * windows, o / 16, 16, 16) of float32. A tile has some
-- channels of dy and some places of the window; its sums stay in L0C while all pictures pass.
local function weight_kernel(o)
  local function sizes(x, dy) return x.shape[2] * o.kernel[1] * o.kernel[2], dy.shape[2] end
  local function parts(x, dy)
    local steps, channels = sizes(x, dy)
    return grid(channels, steps, 32)
  end
  return kernel("conv2d_weight_grad", { outputs = function(x, dy)
    local steps, channels = sizes(x, dy)
    return { shape = { steps, channels, 16, 16 }, dtype = ms.float32 }
  end, blocks = function(x, dy)
    local rows, columns = parts(x, dy)
    return rows * columns
  end }, function(t, x, dy, dw)
    local steps, channels = sizes(x, dy)
    local rows, columns = parts(x, dy)
    local tiles = tiles_of(t, channels, steps, rows, columns, most)
    if #tiles == 0 then return end
    local c1, h, w, pixels = x.shape[2], x.shape[3], x.shape[4], dy.shape[3]
    local whole = ceil(pixels, 16)
    local l0 = l0_buffers(t, most, step_k)
    local out = t:ub(ms.float32, most * most * 256)
    local image, gradient = {}, {}
    for slot = 0, 1 do
      image[slot], gradient[slot] = t:l1(ms.float16, c1 * h * w * 16), t:l1(ms.float16, most * whole * 256)
    end
    -- Behind the pixels of each channel there are zeros up to a whole square.
    if pixels % 16 > 0 then
      local zeros = t:ub(ms.float16, 256)
      t:vdup(zeros, 0.0)
      t:sync("V", "MTE3", 5)
      for slot = 0, 1 do
        for row = 0, most - 1 do clear(t, gradient[slot], zeros, row * whole * 256 + pixels * 16, (whole * 16 - pixels) * 16) end
      end
      t:sync("MTE3", "MTE1", 5)
    end
    for slot = 0, 1 do
      t:set_flag("MTE1", "MTE2", slot)
      t:set_flag("M", "MTE1", slot)
    end
    local function load(i)
      local tile, picture, slot = tiles[i // x.shape[1] + 1], i % x.shape[1], i % 2
      t:wait_flag("MTE1", "MTE2", slot)
      t:load(image[slot], x:at(picture * c1 * h * w * 16), { count = c1 * h * w * 16 })
      t:load(gradient[slot], dy:at((picture * channels + tile[1]) * pixels * 16), { bursts = tile[2], burst = pixels * 16,
        dst_stride = whole * 256 })
      t:set_flag("MTE2", "MTE1", slot)
    end
    local passes, half = #tiles * x.shape[1], 0
    load(0)
    for i = 0, passes - 1 do
      if i + 1 < passes then load(i + 1) end
      local tile, picture, slot = tiles[i // x.shape[1] + 1], i % x.shape[1], i % 2
      t:wait_flag("MTE2", "MTE1", slot)
      for p = 0, whole - 1, step_k do
        local count = math.min(step_k, whole - p)
        t:wait_flag("M", "MTE1", half)
        for row = 0, tile[2] - 1 do
          t:load2d(l0.a[half]:at(row * count * 256), gradient[slot]:at((row * whole + p) * 256), { count = count, transpose = true })
        end
        t:load3d(l0.b[half], image[slot], { height = h, width = w, channels = c1, kernel = o.kernel, stride = o.stride,
          padding = o.padding, dilation = o.dilation, row = p * 16, rows = count, step = tile[3], steps = tile[4] })
        t:sync("MTE1", "M", half)
        t:mmad(l0.c, l0.a[half], l0.b[half], tile[2] * 16, count * 16, tile[4] * 16, { init = picture == 0 and p == 0 })
        t:set_flag("M", "MTE1", half)
        half = 1 - half
      end
      t:set_flag("MTE1", "MTE2", slot)
      if picture == x.shape[1] - 1 then
        t:sync("M", "V", 2)
        t:drain(out, l0.c, { count = tile[2] * tile[4] * 256 })
        t:sync("V", "M", 2)
        t:sync("V", "MTE3", 2)
        t:store(dw:at((tile[3] * channels + tile[1]) * 256), out, { bursts = tile[4], burst = tile[2] * 256, dst_stride = channels * 256 })
        t:sync("MTE3", "V", 2)
      end
    end
    for slot = 0, 1 do
      t:wait_flag("MTE1", "MTE2", slot)
      t:wait_flag("M", "MTE1", slot)
    end
  end)
end

--- The gradient of conv2d by its weights, of float32. o: kernel, the height and width of a window; stride, padding, dilation.
function M.conv2d_weight_grad(x, dy, o)
  local name = "conv2d_weight_grad"
  if type(o) ~= "table" or not o.kernel then
    arguments.fail("ascend.kernels." .. name, "options.kernel, the size of a window, is missing")
  end
  require_pictures(name, "pictures and a gradient", x, dy)
  local pad = pair(o.padding, 0)
  local settings = { kernel = pair(o.kernel), stride = pair(o.stride, 1), dilation = pair(o.dilation, 1),
    padding = { pad[1], pad[2], pad[1], pad[2] } }
  local oh, ow = out_size(x.shape[3], x.shape[4], settings)
  if x.shape[1] ~= dy.shape[1] or oh ~= dy.shape[3] or ow ~= dy.shape[4] then
    arguments.fail("ascend.kernels." .. name, ("dy must be (%d, channels, %d, %d), got %s"):format(x.shape[1], oh, ow,
      arguments.describe(dy)))
  end
  local image, gradient = formats.to_format(x, "NC1HWC0"), formats.to_format(dy, "NC1HWC0")
  local n, c1 = gradient.shape[1], gradient.shape[2]
  local dw = weight_kernel(settings)(image, ops.reshape(gradient, { n, c1, oh * ow, 16 }))
  return formats.from_format(dw, "FRACTAL_Z", { dy.shape[2], x.shape[2], settings.kernel[1], settings.kernel[2] })
end

return M
