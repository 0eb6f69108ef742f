-- Products on the cube: matrices, and convolutions whose windows load3d reads as rows of a matrix.
local ms = require "lunaria"
local formats = require "lunaria.ascend.formats"
local kernel = require("lunaria.ascend.kernel").kernel
local arguments = require "lunaria.nn.arguments"
local ops = ms.ops

local M = {}

local function ceil(a, b) return (a + b - 1) // b end

-- How blocks share a result of m x n squares: the grid whose largest part is smallest.
local function grid(m, n, cores)
  local best
  for rows = 1, math.min(cores, m) do
    local columns = math.min(cores // rows, n)
    local part = ceil(m, rows) * ceil(n, columns) + (ceil(m, rows) + ceil(n, columns)) * 0.01
    if not best or part < best.part then best = { part = part, rows = rows, columns = columns } end
  end
  return best.rows, best.columns
end

-- The tiles of a block's part of the result, in squares: { row, rows, column, columns }.
local function tiles_of(t, m, n, rows, columns, most)
  local list = {}
  local r, c = t.block // columns, t.block % columns
  local mine_m, mine_n = ceil(m, rows), ceil(n, columns)
  for i = r * mine_m, math.min((r + 1) * mine_m, m) - 1, most do
    for j = c * mine_n, math.min((c + 1) * mine_n, n) - 1, most do
      list[#list + 1] = { i, math.min(most, math.min((r + 1) * mine_m, m) - i), j, math.min(most, math.min((c + 1) * mine_n, n) - j) }
    end
  end
  return list
end

-- Goes through the panels of all tiles. load(panel, slot) brings operands to L1, feed(panel, slot, step, steps, first, half)
-- moves a part of them to L0A and L0B; the rest is the same for all products. `half` names the half of L0.
local function multiply(t, tiles, k, panel_k, step_k, buffers, load, feed, store)
  local panels = {}
  for _, tile in ipairs(tiles) do
    for p = 0, k - 1, panel_k do panels[#panels + 1] = { tile = tile, k = p, count = math.min(panel_k, k - p), last = p + panel_k >= k } end
  end
  if #panels == 0 then return end
  for slot = 0, 1 do
    t:set_flag("MTE1", "MTE2", slot)
    t:set_flag("M", "MTE1", slot)
  end
  t:set_flag("V", "M", 0)
  t:set_flag("MTE3", "V", 0)
  local function bring(i)
    t:wait_flag("MTE1", "MTE2", i % 2)
    load(panels[i], i % 2)
    t:set_flag("MTE2", "MTE1", i % 2)
  end
  bring(1)
  local half = 0
  for i, panel in ipairs(panels) do
    if panels[i + 1] then bring(i + 1) end
    t:wait_flag("MTE2", "MTE1", i % 2)
    local tile = panel.tile
    for step = 0, panel.count - 1, step_k do
      local count = math.min(step_k, panel.count - step)
      t:wait_flag("M", "MTE1", half)
      feed(panel, i % 2, step, count, half)
      t:set_flag("MTE1", "M", half)
      t:wait_flag("MTE1", "M", half)
      if panel.k + step == 0 then t:wait_flag("V", "M", 0) end
      t:mmad(buffers.c, buffers.a[half], buffers.b[half], tile[2] * 16, count * 16, tile[4] * 16, { init = panel.k + step == 0 })
      t:set_flag("M", "MTE1", half)
      half = 1 - half
    end
    t:set_flag("MTE1", "MTE2", i % 2)
    if panel.last then
      t:sync("M", "V", 0)
      t:wait_flag("MTE3", "V", 0)
      t:drain(buffers.out, buffers.c, { count = tile[2] * tile[4] * 256 })
      t:set_flag("V", "M", 0)
      t:sync("V", "MTE3", 0)
      store(tile)
      t:set_flag("MTE3", "V", 0)
    end
  end
  for slot = 0, 1 do
    t:wait_flag("MTE1", "MTE2", slot)
    t:wait_flag("M", "MTE1", slot)
  end
  t:wait_flag("V", "M", 0)
  t:wait_flag("MTE3", "V", 0)
end

local function l0_buffers(t, most, step)
  local half = most * step * 256
  return { c = t:l0c(ms.float32, most * most * 256), out = t:ub(ms.float16, most * most * 256),
    a = { [0] = t:l0a(ms.float16, half), t:l0a(ms.float16, half) }, b = { [0] = t:l0b(ms.float16, half), t:l0b(ms.float16, half) } }
end

local most, step_k, panel_k = 16, 4, 16 -- squares: tiles of 256 x 256, steps of 64, panels of 256

-- a as FRACTAL_NZ, b as FRACTAL_ZN -> c as FRACTAL_NZ.
M.matmul_kernel = kernel("matmul", { outputs = function(a, b) return { shape = { b.shape[2], a.shape[2], 16 }, dtype = a.dtype } end,
  blocks = function(a, b)
    local rows, columns = grid(a.shape[2] // 16, b.shape[2], 32)
    return rows * columns
  end }, function(t, a, b, c)
  local m, k, n = a.shape[2] // 16, a.shape[1], b.shape[2]
  local rows, columns = grid(m, n, 32)
  local buffers = l0_buffers(t, most, step_k)
  local l1a, l1b = {}, {}
  for slot = 0, 1 do l1a[slot], l1b[slot] = t:l1(ms.float16, most * panel_k * 256), t:l1(ms.float16, most * panel_k * 256) end
  multiply(t, tiles_of(t, m, n, rows, columns, most), k, panel_k, step_k, buffers, function(panel, slot)
    local tile = panel.tile
    t:load(l1a[slot], a:at((panel.k * m + tile[1]) * 256), { bursts = panel.count, burst = tile[2] * 256, src_stride = m * 256,
      dst_stride = tile[2] * 256 })
    t:load(l1b[slot], b:at((panel.k * n + tile[3]) * 256), { bursts = panel.count, burst = tile[4] * 256, src_stride = n * 256,
      dst_stride = tile[4] * 256 })
  end, function(panel, slot, step, count, half)
    local tile = panel.tile
    for s = 0, count - 1 do
      t:load2d(buffers.a[half]:at(s * 256), l1a[slot]:at((step + s) * tile[2] * 256), { count = tile[2], src_stride = 1,
        dst_stride = count })
    end
    t:load2d(buffers.b[half], l1b[slot]:at(step * tile[4] * 256), { count = count * tile[4] })
  end, function(tile)
    t:store(c:at((tile[3] * m + tile[1]) * 256), buffers.out, { bursts = tile[4], burst = tile[2] * 256, src_stride = tile[2] * 256,
      dst_stride = m * 256 })
  end)
end)

function M.matmul(a, b)
  if #a.shape ~= 2 or #b.shape ~= 2 or a.shape[2] ~= b.shape[1] or a.dtype ~= ms.float16 or b.dtype ~= ms.float16 then
    arguments.fail("ascend.kernels.matmul", ("two matrices of float16 that fit each other are expected, got %s and %s"):format(
      arguments.describe(a), arguments.describe(b)))
  end
  local c = M.matmul_kernel(formats.to_format(a, "FRACTAL_NZ"), formats.to_format(b, "FRACTAL_ZN"))
  return formats.from_format(c, "FRACTAL_NZ", { a.shape[1], b.shape[2] })
end

-- x as NC1HWC0, w as FRACTAL_Z -> NC1HWC0, with o = { kernel, stride, padding (top, left, bottom, right), dilation }.
local function conv_kernel(o)
  local function out_size(x)
    local spread_h, spread_w = (o.kernel[1] - 1) * o.dilation[1] + 1, (o.kernel[2] - 1) * o.dilation[2] + 1
    return (x.shape[3] + o.padding[1] + o.padding[3] - spread_h) // o.stride[1] + 1,
      (x.shape[4] + o.padding[2] + o.padding[4] - spread_w) // o.stride[2] + 1
  end
  local function parts(x, w)
    local oh, ow = out_size(x)
    local m = ceil(oh * ow, 16)
    local rows, columns = grid(m, w.shape[2], math.max(1, 32 // x.shape[1]))
    return oh, ow, m, rows, columns
  end
  return kernel("conv2d", { outputs = function(x, w)
    local oh, ow = out_size(x)
    return { shape = { x.shape[1], w.shape[2], oh * ow, 16 }, dtype = x.dtype }
  end, blocks = function(x, w)
    local _, _, _, rows, columns = parts(x, w)
    return x.shape[1] * rows * columns
  end }, function(t, x, w, y)
    local oh, ow, m, rows, columns = parts(x, w)
    local c1, h, wide, k, n = x.shape[2], x.shape[3], x.shape[4], w.shape[1], w.shape[2]
    local picture = t.block // (rows * columns)
    local buffers = l0_buffers(t, 8, step_k)
    -- The whole picture stays in L1, weights come by panels.
    local image = t:l1(ms.float16, c1 * h * wide * 16)
    local l1b = {}
    for slot = 0, 1 do l1b[slot] = t:l1(ms.float16, 8 * panel_k * 256) end
    t:load(image, x:at(picture * c1 * h * wide * 16), { count = c1 * h * wide * 16 })
    local part = { block = t.block % (rows * columns) }
    multiply(t, tiles_of(part, m, n, rows, columns, 8), k, panel_k, step_k, buffers, function(panel, slot)
      local tile = panel.tile
      t:load(l1b[slot], w:at((panel.k * n + tile[3]) * 256), { bursts = panel.count, burst = tile[4] * 256, src_stride = n * 256,
        dst_stride = tile[4] * 256 })
    end, function(panel, slot, step, count, half)
      local tile = panel.tile
      t:load3d(buffers.a[half], image, { height = h, width = wide, channels = c1, kernel = o.kernel, stride = o.stride, padding = o.padding,
        dilation = o.dilation, row = tile[1] * 16, rows = tile[2], step = panel.k + step, steps = count })
      t:load2d(buffers.b[half], l1b[slot]:at(step * tile[4] * 256), { count = count * tile[4] })
    end, function(tile)
      local pixels = math.min(tile[2] * 16, oh * ow - tile[1] * 16)
      t:store(y:at(((picture * n + tile[3]) * oh * ow + tile[1] * 16) * 16), buffers.out,
        { bursts = tile[4], burst = pixels * 16, src_stride = tile[2] * 256, dst_stride = oh * ow * 16 })
    end)
  end), out_size
end

--- o: stride, padding, dilation, each a number or one for each axis.
function M.conv2d(x, w, o)
  o = o or {}
  local function pair(v, default)
    v = v or default
    return type(v) == "table" and v or { v, v }
  end
  local pad = pair(o.padding, 0)
  local settings = { kernel = { w.shape[3], w.shape[4] }, stride = pair(o.stride, 1), dilation = pair(o.dilation, 1),
    padding = { pad[1], pad[2], pad[1], pad[2] } }
  if x.dtype ~= ms.float16 or w.dtype ~= ms.float16 or #x.shape ~= 4 or #w.shape ~= 4 or x.shape[2] ~= w.shape[2] then
    arguments.fail("ascend.kernels.conv2d", ("pictures and weights of float16 that fit each other are expected, got %s and %s"):format(
      arguments.describe(x), arguments.describe(w)))
  end
  local k, out_size = conv_kernel(settings)
  local image = formats.to_format(x, "NC1HWC0")
  local oh, ow = out_size(image)
  local y = k(image, formats.to_format(w, "FRACTAL_Z"))
  return formats.from_format(ops.reshape(y, { x.shape[1], y.shape[2], oh, ow, 16 }), "NC1HWC0", { x.shape[1], w.shape[1], oh, ow })
end

return M
