-- The library's kernels as tile programs. Each loads, computes and stores at the same time: two sets of buffers, and flags
-- in both directions, "it is there" and "it may be overwritten".
local ms = require "lunaria"
local formats = require "lunaria.ascend.formats"
local kernel = require("lunaria.ascend.kernel").kernel
local arguments = require "lunaria.nn.arguments"
local ops = ms.ops

local M = {}

local function ceil(a, b) return (a + b - 1) // b end

local function half(where, ...)
  for i = 1, select("#", ...) do
    local x = select(i, ...)
    if not ms.is_tensor(x) or x.dtype ~= ms.float16 then
      arguments.fail("ascend.kernels." .. where, ("argument %d must be a tensor of float16, got %s"):format(i, arguments.describe(x)))
    end
  end
end

-- Work that is cut into chunks: body(t, out, ins, count, slot) computes one of them in UB. Flags 0 and 1 are those of the
-- two sets of buffers.
local function stream(t, inputs, outputs, total, unit, chunk, body)
  local units = ceil(total, unit)
  local mine = ceil(units, t.blocks)
  local first, last = t.block * mine * unit, math.min((t.block + 1) * mine * unit, total)
  if first >= last then return end
  local sets = {}
  for slot = 0, 1 do
    local set = { ins = {}, outs = {} }
    for i, x in ipairs(inputs) do set.ins[i] = t:ub(x.dtype, chunk) end
    for i, y in ipairs(outputs) do set.outs[i] = t:ub(y.dtype, chunk) end
    sets[slot] = set
    t:set_flag("V", "MTE2", slot)
    t:set_flag("MTE3", "V", slot)
  end
  local function load(at, slot)
    t:wait_flag("V", "MTE2", slot)
    for i, x in ipairs(inputs) do t:load(sets[slot].ins[i], x:at(at), { count = math.min(chunk, last - at) }) end
    t:set_flag("MTE2", "V", slot)
  end
  load(first, 0)
  local slot = 0
  for at = first, last - 1, chunk do
    if at + chunk < last then load(at + chunk, 1 - slot) end
    local count = math.min(chunk, last - at)
    t:wait_flag("MTE2", "V", slot)
    t:wait_flag("MTE3", "V", slot)
    body(t, sets[slot].outs, sets[slot].ins, count, at)
    t:set_flag("V", "MTE2", slot)
    t:set_flag("V", "MTE3", slot)
    t:wait_flag("V", "MTE3", slot)
    for i, y in ipairs(outputs) do t:store(y:at(at), sets[slot].outs[i], { count = count }) end
    t:set_flag("MTE3", "V", slot)
    slot = 1 - slot
  end
  for s = 0, 1 do
    t:wait_flag("V", "MTE2", s)
    t:wait_flag("MTE3", "V", s)
  end
end

local function cores(x) return math.max(1, math.min(32, x.size // 2048)) end
local chunk = 8192

-- Elementwise, by what is done with a chunk.
local function elementwise(name, count_of_inputs, body)
  return kernel(name, { blocks = cores }, function(t, ...)
    local tensors = { ... }
    local out = table.remove(tensors)
    stream(t, tensors, { out }, out.count, 128, chunk, function(tile, outs, ins, count) body(tile, outs[1], ins, { count = count }) end)
  end), count_of_inputs
end

M.add = elementwise("add", 2, function(t, y, x, o) t:vadd(y, x[1], x[2], o) end)
M.sub = elementwise("sub", 2, function(t, y, x, o) t:vsub(y, x[1], x[2], o) end)
M.mul = elementwise("mul", 2, function(t, y, x, o) t:vmul(y, x[1], x[2], o) end)
M.maximum = elementwise("maximum", 2, function(t, y, x, o) t:vmax(y, x[1], x[2], o) end)
M.minimum = elementwise("minimum", 2, function(t, y, x, o) t:vmin(y, x[1], x[2], o) end)
M.relu = elementwise("relu", 1, function(t, y, x, o) t:vrelu(y, x[1], o) end)
M.abs = elementwise("abs", 1, function(t, y, x, o) t:vabs(y, x[1], o) end)
M.exp = elementwise("exp", 1, function(t, y, x, o) t:vexp(y, x[1], o) end)
M.log = elementwise("log", 1, function(t, y, x, o) t:vln(y, x[1], o) end)
M.neg = elementwise("neg", 1, function(t, y, x, o) t:vmuls(y, x[1], -1.0, o) end)
M.copy = elementwise("copy", 1, function(t, y, x, o) t:vadds(y, x[1], 0.0, o) end)
-- There is no division: the reciprocal and a product. One step of Newton's method is not needed, since the model's vrec
-- is rounded once.
M.div = elementwise("div", 2, function(t, y, x, o)
  t:vrec(y, x[2], o)
  t:vmul(y, x[1], y, o)
end)
M.sqrt = elementwise("sqrt", 1, function(t, y, x, o)
  t:vmaxs(x[1], x[1], 6.0e-8, o)
  t:vrsqrt(y, x[1], o)
  t:vmul(y, x[1], y, o)
end)
M.sigmoid = elementwise("sigmoid", 1, function(t, y, x, o)
  t:vmuls(y, x[1], -1.0, o)
  t:vmins(y, y, 11.0, o) -- exp stays finite
  t:vexp(y, y, o)
  t:vadds(y, y, 1.0, o)
  t:vrec(y, y, o)
end)
M.tanh = elementwise("tanh", 1, function(t, y, x, o)
  t:vmaxs(y, x[1], -5.0, o)
  t:vmins(y, y, 5.0, o)
  t:vmuls(y, y, 2.0, o)
  t:vexp(y, y, o)
  t:vadds(y, y, 1.0, o)
  t:vrec(y, y, o)
  t:vmuls(y, y, -2.0, o)
  t:vadds(y, y, 1.0, o)
end)

-- One row of a matrix after the other, in float32: body(t, row of the input and of the output in float32, count).
local function by_rows(name, extra, shape_of, body)
  return kernel(name, { blocks = function(x) return math.min(32, x.shape[1]) end, outputs = shape_of }, function(t, x, ...)
    local out = select(select("#", ...), ...)
    local rows, n = x.shape[1], x.shape[2]
    local row, result = t:ub(ms.float16, n), t:ub(ms.float16, out.shape[#out.shape])
    local wide, work = t:ub(ms.float32, n), t:ub(ms.float32, n)
    local sums, weights = t:ub(ms.float32, ceil(n, 64) + 64), {}
    for i = 1, extra do
      weights[i] = t:ub(ms.float32, n)
      local raw = t:ub(ms.float16, n)
      t:load(raw, (select(i, ...)))
      t:sync("MTE2", "V", 7)
      t:vconv(weights[i], raw)
    end
    t:set_flag("V", "MTE2", 0)
    t:set_flag("MTE3", "V", 0)
    for r = t.block, rows - 1, t.blocks do
      t:wait_flag("V", "MTE2", 0)
      t:load(row, x:at(r * n), { count = n })
      t:sync("MTE2", "V", 0)
      t:vconv(wide, row)
      t:set_flag("V", "MTE2", 0)
      t:wait_flag("MTE3", "V", 0)
      body(t, result, wide, work, sums, n, weights)
      t:sync("V", "MTE3", 0)
      t:store(out:at(r * out.shape[#out.shape]), result, { count = out.shape[#out.shape] })
      t:set_flag("MTE3", "V", 0)
    end
    t:wait_flag("V", "MTE2", 0)
    t:wait_flag("MTE3", "V", 0)
  end)
end

-- All elements of a row of float32 to one, then to a scalar register.
local function fold(t, kind, register, from, sums, n)
  local whole = n // 64
  if whole > 0 then t[kind](t, sums, from, { repeats = whole, lanes = 64 }) end
  if n % 64 > 0 then t[kind](t, sums:at(ceil(whole, 8) * 8), from:at(whole * 64), { repeats = 1, lanes = n % 64 }) end
  local count = whole
  while count > 1 do
    t[kind](t, sums, sums, { repeats = 1, lanes = math.min(count, 64) })
    count = count > 64 and error "rows of the library's kernels have at most 4096 elements" or 1
  end
  t:sync("V", "S", 0)
  local tail = sums:at(ceil(whole, 8) * 8)
  if whole > 0 then t:scalar_load(register, sums) end
  if n % 64 > 0 then
    t:scalar_load(whole > 0 and 31 or register, tail)
    if whole > 0 then t:scalar(kind == "vcadd" and "add" or kind == "vcmax" and "max" or "min", register, register, { register = 31 }) end
  end
end

local function same(x) return { shape = x.shape, dtype = x.dtype } end

local softmax = by_rows("softmax", 0, same, function(t, result, x, work, sums, n)
  fold(t, "vcmax", 0, x, sums, n)
  t:scalar("mul", 0, 0, -1.0)
  t:vadds(work, x, { register = 0 }, { count = n })
  t:vexp(work, work, { count = n })
  fold(t, "vcadd", 1, work, sums, n)
  t:scalar("rec", 1, 1)
  t:vmuls(work, work, { register = 1 }, { count = n })
  t:vconv(result, work, { count = n })
end)

local function layer_norm(eps)
  return by_rows("layer_norm", 2, same, function(t, result, x, work, sums, n, weights)
    fold(t, "vcadd", 0, x, sums, n)
    t:scalar("mul", 0, 0, -1.0 / n)
    t:vadds(x, x, { register = 0 }, { count = n })
    t:vmul(work, x, x, { count = n })
    fold(t, "vcadd", 1, work, sums, n)
    t:scalar("mul", 1, 1, 1.0 / n)
    t:scalar("add", 1, 1, eps)
    t:scalar("rsqrt", 1, 1)
    t:vmuls(work, x, { register = 1 }, { count = n })
    t:vmul(work, work, weights[1], { count = n })
    t:vadd(work, work, weights[2], { count = n })
    t:vconv(result, work, { count = n })
  end)
end

-- Sums, largest and smallest elements of rows, 16 times each: a block of 32 bytes is the least that can be stored.
local function reduction(name, kind)
  local k = by_rows(name, 0, function(x) return { shape = { x.shape[1], 16 }, dtype = x.dtype } end, function(t, result, x, work, sums, n)
    fold(t, kind, 0, x, sums, n)
    t:vdup(work, { register = 0 }, { count = 16 })
    t:vconv(result, work, { count = 16 })
  end)
  return function(x) return k(x)[{ ms.slice(nil, nil), 0 }] end, k
end

local function rows_of(where, x)
  half(where, x)
  local n = x.shape[#x.shape]
  if #x.shape < 1 or n > 4096 or n % 16 ~= 0 then
    arguments.fail("ascend.kernels." .. where, ("rows have a multiple of 16 and at most 4096 elements, got %s"):format(tostring(n)))
  end
  return ops.reshape(x, { -1, n })
end

function M.softmax(x) return ops.reshape(softmax(rows_of("softmax", x)), x.shape) end
function M.layer_norm(x, gamma, beta, eps)
  half("layer_norm", x, gamma, beta)
  return ops.reshape(layer_norm(eps or 1e-5)(rows_of("layer_norm", x), gamma, beta), x.shape)
end
for name, kind in pairs { reduce_sum = "vcadd", reduce_max = "vcmax", reduce_min = "vcmin" } do
  local f = reduction(name, kind)
  M[name] = function(x)
    local shape = {}
    for i = 1, #x.shape - 1 do shape[i] = x.shape[i] end
    return ops.reshape(f(rows_of(name, x)), shape)
  end
end

-- A momentum step in float32: the moment and the parameter are written anew. Blocks are whole rows of 8 elements.
function M.momentum(parameter, moment, gradient, rate, momentum)
  local k = kernel("momentum", { blocks = cores, outputs = function(p) return { same(p), same(p) } end },
    function(t, p, m, g, new_p, new_m)
      stream(t, { p, m, g }, { new_p, new_m }, p.count, 64, 4096, function(tile, outs, ins, count)
        local o = { count = count }
        tile:vmuls(outs[2], ins[2], momentum, o)
        tile:vadd(outs[2], outs[2], ins[3], o)
        tile:vmuls(ins[3], outs[2], -rate, o)
        tile:vadd(outs[1], ins[1], ins[3], o)
      end)
    end)
  return k(parameter, moment, gradient)
end

-- 16 x 16 squares of a matrix, whose sides are multiples of 16.
M.transpose = kernel("transpose", { outputs = function(x) return { shape = { x.shape[2], x.shape[1] }, dtype = x.dtype } end,
  blocks = function(x) return math.min(32, x.shape[2] // 16) end }, function(t, x, y)
  local rows, columns = x.shape[1], x.shape[2]
  local strip, turned = t:ub(ms.float16, rows * 16), t:ub(ms.float16, rows * 16)
  for c = t.block, columns // 16 - 1, t.blocks do
    t:load(strip, x:at(c * 16), { bursts = rows, burst = 16, src_stride = columns, dst_stride = 16 })
    t:sync("MTE2", "V")
    t:vtranspose(turned, strip)
    t:sync("V", "MTE3")
    for r = 0, rows // 16 - 1 do
      t:store(y:at(c * 16 * rows + r * 16), turned:at(r * 256), { bursts = 16, burst = 16, src_stride = 16, dst_stride = rows })
    end
    t:barrier()
  end
end)

-- Windows of the largest element in (n, c / 16, h, w, 16).
local function max_pool(size, stride)
  local function out_size(n) return (n - size) // stride + 1 end
  return kernel("max_pool", { blocks = function(x) return math.min(32, x.shape[1] * x.shape[2]) end, outputs = function(x)
    return { shape = { x.shape[1], x.shape[2], out_size(x.shape[3]), out_size(x.shape[4]), 16 }, dtype = x.dtype }
  end }, function(t, x, y)
    local h, w, oh, ow = x.shape[3], x.shape[4], y.shape[3], y.shape[4]
    local rows, best = t:ub(ms.float16, size * w * 16), t:ub(ms.float16, ow * 16)
    for plane = t.block, x.shape[1] * x.shape[2] - 1, t.blocks do
      for i = 0, oh - 1 do
        t:load(rows, x:at((plane * h + i * stride) * w * 16), { count = size * w * 16 })
        t:sync("MTE2", "V")
        for j = 0, ow - 1 do
          local at = best:at(j * 16, 16)
          t:vadds(at, rows:at(j * stride * 16), 0.0)
          for k = 1, size * size - 1 do t:vmax(at, at, rows:at((k // size * w + j * stride + k % size) * 16)) end
        end
        t:sync("V", "MTE3")
        t:store(y:at((plane * oh + i) * ow * 16), best, { count = ow * 16 })
        t:barrier()
      end
    end
  end)
end

function M.max_pool(x, size, stride)
  half("max_pool", x)
  local y = max_pool(size, stride or size)(formats.to_format(x, "NC1HWC0"))
  return formats.from_format(y, "NC1HWC0", { x.shape[1], x.shape[2], y.shape[3], y.shape[4] })
end

require "lunaria.ascend.layers"(M, { stream = stream, cores = cores, half = half })
local products = require "lunaria.ascend.products"
M.matmul, M.matmul_kernel = products.matmul, products.matmul_kernel
for name, f in pairs(require "lunaria.ascend.convolutions") do M[name] = f end
for name, f in pairs(require "lunaria.ascend.indices") do M[name] = f end

return M
