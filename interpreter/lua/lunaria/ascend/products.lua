-- Products of matrices on the cube, and what convolutions share with them.
local ms = require "lunaria"
local formats = require "lunaria.ascend.formats"
local kernel = require("lunaria.ascend.kernel").kernel
local arguments = require "lunaria.nn.arguments"

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

M.grid, M.tiles_of, M.multiply, M.l0_buffers, M.panel_k, M.step_k = grid, tiles_of, multiply, l0_buffers, panel_k, step_k

return M
