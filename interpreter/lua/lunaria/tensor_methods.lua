-- Methods of tensors that consist of operators and of writes to the handle: read when one of them is first asked for
-- (interpreter/bindings/bind_tensor.cpp). Those that end in _ change the tensor and give it back.
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"

local core = require "lunaria.autodiff"

local ops, fail, describe = ms.ops, arguments.fail, arguments.describe
local M = {}

local function tensor_of(where, name, value)
  if type(value) == "number" or type(value) == "boolean" or (type(value) == "table" and getmetatable(value) == nil) then
    value = ms.tensor(value)
  end
  if not ms.is_tensor(value) then fail(where, ("%s must be a tensor, got %s"):format(name, describe(value))) end
  return value
end

local function number_of(where, name, value, preset)
  if value == nil then return preset end
  if type(value) ~= "number" then fail(where, ("%s must be a number, got %s"):format(name, describe(value))) end
  return value
end

-- Indices as a list of tensors.
local function indices_of(where, x, given)
  if ms.is_tensor(given) then given = { given } end
  if type(given) ~= "table" or #given == 0 then fail(where, "indices must be a table of tensors, got " .. describe(given)) end
  if #given > x.ndim then
    fail(where, ("there are %d tensors of indices for a tensor of rank %d"):format(#given, x.ndim))
  end
  local list = {}
  for i, index in ipairs(given) do
    list[i] = tensor_of(where, "indices[" .. i .. "]", index)
    local dtype = list[i].dtype
    if dtype == ms.bool_ then
      if #given > 1 then fail(where, "a mask of booleans stands alone") end
    elseif list[i]:is_floating_point() then
      fail(where, ("indices[%d] must hold integers, got %s"):format(i, tostring(dtype)))
    end
  end
  return list
end

-- The numbers of elements in a row, for lists of indices of the first axes.
local function flat_indices(where, x, list)
  local shape, flat = x.shape, nil
  for k, index in ipairs(list) do
    local size = shape[k]
    index = ops.cast(index, ms.int64)
    if index.size > 0 and (ops.amin(index):item() < -size or ops.amax(index):item() >= size) then
      fail(where, ("an index of axis %d is out of range: its size is %d"):format(k - 1, size))
    end
    index = ops.where(ops.less(index, 0), index + size, index)
    flat = flat and flat * size + index or index
  end
  return flat
end

-- The tensor with values added at the indices, as often as they stand there.
local function added(where, x, list, values)
  local shape, places, rest = x.shape, 1, {}
  for k = 1, #shape do
    if k <= #list then places = places * shape[k] else rest[#rest + 1] = shape[k] end
  end
  local flat = flat_indices(where, x, list)
  local wanted = { table.unpack(flat.shape) }
  for _, size in ipairs(rest) do wanted[#wanted + 1] = size end
  local updates = ops.reshape(ops.broadcast_to(ops.cast(values, x.dtype), wanted), { flat.size, table.unpack(rest) })
  local rows = ops.reshape(x, { places, table.unpack(rest) })
  return ops.reshape(ops.index_add(rows, ops.reshape(flat, { -1 }), updates, 0), shape)
end

local function put(where, x, indices, values, accumulate)
  local list = indices_of(where, x, indices)
  values = tensor_of(where, "values", values)
  if accumulate then
    if list[1].dtype == ms.bool_ then return ops.where(list[1], x + values, x) end
    return added(where, x, list, values)
  end
  local changed = x:copy()
  changed[list] = values
  return changed
end

--- The tensor with `values` at the places that the tensors in `indices` name, one tensor for each of the first axes;
--- with accumulate they are added to what is there.
---     > ms.zeros({ 3 }):index_put({ ms.tensor { 0, 2, 2 } }, ms.tensor(1.0), true):tolist()[3] --> 2.0
function M.index_put(x, indices, values, accumulate) return put("index_put", x, indices, values, accumulate) end

--- The same as index_put, in place.
---     > ms.zeros({ 3 }):index_put_({ ms.tensor { 1 } }, ms.tensor(5.0)):tolist()[2] --> 5.0
function M.index_put_(x, indices, values, accumulate)
  return x:copy_(put("index_put_", x, indices, values, accumulate))
end

--- What lies at the places that the tensors in `indices` name.
---     > ms.arange(6):reshape(2, 3):index { ms.tensor { 0, 1 }, ms.tensor { 2, 0 } }:tolist()[1] --> 2
function M.index(x, indices) return x[indices_of("index", x, indices)] end

--- Writes the elements of `source` to the places `index` of the tensor's elements in a row, in place; with accumulate
--- they are added.
---     > ms.zeros({ 2, 2 }):put_(ms.tensor { 3 }, ms.tensor { 7.0 }):item(1, 1) --> 7.0
function M.put_(x, index, source, accumulate)
  local flat = ops.reshape(x, { -1 })
  return x:copy_(ops.reshape(put("put_", flat, index, source, accumulate), x.shape))
end

--- A copy of the tensor with one element set: x:itemset(i, j, value), or x:itemset(value) where it has one element.
---     > ms.zeros({ 2, 2 }):itemset(1, 0, 3):item(1, 0) --> 3.0
function M.itemset(x, ...)
  local given = table.pack(...)
  if given.n == 0 then fail("itemset", "a value is expected") end
  local changed = x:copy()
  if given.n == 1 then
    if x.size ~= 1 then fail("itemset", ("%d indices and a value are expected, got 1 argument"):format(x.ndim)) end
    return changed:fill_(given[1])
  end
  if given.n - 1 ~= x.ndim then
    fail("itemset", ("%d indices for a tensor of rank %d"):format(given.n - 1, x.ndim))
  end
  changed[{ table.unpack(given, 1, given.n - 1) }] = given[given.n]
  return changed
end

--- The tensor with another value on its diagonal; wrap lets it go on below a tall matrix.
---     > ms.zeros({ 2, 2 }):fill_diagonal(4):tolist()[2][2] --> 4.0
function M.fill_diagonal(x, fill_value, wrap)
  wrap = arguments.named("fill_diagonal", { "wrap" }, wrap)
  if x.ndim < 2 then fail("fill_diagonal", "the tensor must have 2 axes or more, its shape has " .. x.ndim) end
  number_of("fill_diagonal", "fill_value", fill_value or fail("fill_diagonal", "fill_value is missing"))
  local shape, step, last = x.shape, 0, x.size
  for k = 1, #shape do
    if #shape > 2 and shape[k] ~= shape[1] then fail("fill_diagonal", "the axes of a tensor of rank 3 and more must be of one size") end
    step = step * shape[k] + 1
  end
  if #shape == 2 and not wrap then last = math.min(shape[1], shape[2]) * shape[2] end
  local flat = ops.reshape(x, { -1 }):copy()
  if last > 0 then flat[{ ms.slice(0, last, step) }] = fill_value end
  return ops.reshape(flat, shape)
end

--- The same as fill_diagonal, in place.
---     > ms.zeros({ 3, 2 }):fill_diagonal_(1.0):sum():item() --> 2.0
function M.fill_diagonal_(x, fill_value, wrap) return x:copy_(M.fill_diagonal(x, fill_value, wrap)) end

--- The whole value of a tensor whose elements lie in pieces on the ranks of a mesh, in host memory on each of them; any other
--- tensor itself.
---     > ms.distribute(ms.ones { 4, 2 }, ms.mesh({ 2 }, { "dp" })("dp")):full().device --> CPU
function M.full(x) return x.device == "Mesh" and ops.lay_out(x, 0) or x end

--- A tensor of this shape and dtype with one value.
---     > ms.zeros({ 2 }):fill(3):tolist()[1] --> 3.0
function M.fill(x, value) return ops.full_like(x, number_of("fill", "value", value, 0)) end

--- The elements become those of another tensor or number, in place.
---     > ms.zeros({ 2 }):assign_value(ms.ones { 2 }):tolist()[2] --> 1.0
function M.assign_value(x, value) return x:copy_(value) end

--- Whether all elements are as good as equal to those of another tensor: no further than atol + rtol |other|.
---     > ms.tensor({ 1.0, 2.0 }):allclose(ms.tensor { 1.0, 2.0 + 1e-7 }) --> true
function M.allclose(x, other, rtol, atol, equal_nan)
  rtol, atol, equal_nan = arguments.named("allclose", { "rtol", "atol", "equal_nan" }, rtol, atol, equal_nan)
  local close = ops.isclose(x, tensor_of("allclose", "other", other), number_of("allclose", "rtol", rtol, 1e-5),
    number_of("allclose", "atol", atol, 1e-8), equal_nan or false)
  return ops.all(close):item()
end

local function with_value(f, x, axis, keep_dims)
  local value, index = f(x, axis or 0, keep_dims or false)
  return index, value
end

--- The places of the largest elements along an axis (0), and these elements.
---     > ms.tensor({ 3.0, 9.0, 1.0 }):argmax_with_value()
---     Tensor(shape=[], dtype=Int64, value= 1)	Tensor(shape=[], dtype=Float32, value= 9)
function M.argmax_with_value(x, axis, keep_dims) return with_value(ops.max, x, axis, keep_dims) end

--- The places of the smallest elements along an axis (0), and these elements.
---     > ms.tensor({ 3.0, 9.0, 1.0 }):argmin_with_value()
---     Tensor(shape=[], dtype=Int64, value= 2)	Tensor(shape=[], dtype=Float32, value= 1)
function M.argmin_with_value(x, axis, keep_dims) return with_value(ops.min, x, axis, keep_dims) end

--- For each element, a number from 0, the element of choices[that + 1] at this place. mode "raise" makes numbers out of
--- range an error, "wrap" counts around, "clip" (as is) takes the nearest.
---     > ms.tensor({ 1, 0 }):choose({ ms.tensor { 1, 2 }, ms.tensor { 10, 20 } }):tolist()[1] --> 10
function M.choose(x, choices, mode)
  mode = arguments.named("choose", { "mode" }, mode)
  if type(choices) ~= "table" or #choices == 0 then fail("choose", "choices must be a table of tensors, got " .. describe(choices)) end
  if x:is_floating_point() then fail("choose", "the tensor must hold integers, it is " .. tostring(x.dtype)) end
  local n, list = #choices, {}
  for i, choice in ipairs(choices) do list[i] = tensor_of("choose", "choices[" .. i .. "]", choice) end
  mode = mode or "clip"
  if mode == "wrap" then
    x = ops.remainder(x, n)
  elseif mode == "clip" then
    x = ops.clamp(x, 0, n - 1)
  elseif mode ~= "raise" then
    fail("choose", ("mode must be raise, wrap or clip, got %s"):format(describe(mode)))
  elseif x.size > 0 and (ops.amin(x):item() < 0 or ops.amax(x):item() >= n) then
    fail("choose", ("a number is out of range: there are %d choices"):format(n))
  end
  local result = list[n]
  for i = n - 1, 1, -1 do result = ops.where(ops.equal(x, i - 1), list[i], result) end
  return ops.broadcast_to(result, ops.broadcast_to(x, (x + ops.cast(result, x.dtype) * 0).shape).shape)
end

--- The tensor summed over the axes along which it would have to be spread to have its shape: sum_to_size{1, 3} or sizes.
---     > ms.ones({ 2, 3 }):sum_to_size(1, 3):tolist()[1][2] --> 2.0
function M.sum_to_size(x, ...)
  local size = ...
  if type(size) ~= "table" then size = { ... } end
  local shape, axes, extra = x.shape, {}, x.ndim - #size
  if extra < 0 then fail("sum_to_size", ("%d sizes for a tensor of rank %d"):format(#size, x.ndim)) end
  for k = 1, #shape do
    local wanted = size[k - extra]
    if k <= extra or (wanted == 1 and shape[k] ~= 1) then
      axes[#axes + 1] = k - 1
    elseif wanted ~= shape[k] then
      fail("sum_to_size", ("size %s of axis %d must be 1 or %d"):format(describe(wanted), k - 1 - extra, shape[k]))
    end
  end
  if #axes == 0 then return ops.identity(x) end
  return ops.reshape(ops.sum(x, axes), size)
end

--- The tensor's elements in a row, cut off or with zeros behind them, in another shape.
---     > ms.tensor({ 1, 2, 3 }):resize(2, 2):tolist()[2][2] --> 0
function M.resize(x, ...)
  local size = ...
  if type(size) ~= "table" then size = { ... } end
  local count = 1
  for k, d in ipairs(size) do
    if math.type(d) ~= "integer" or d < 0 then fail("resize", ("size %d must be an integer from 0 on, got %s"):format(k, describe(d))) end
    count = count * d
  end
  local flat = ops.reshape(x, { -1 })
  flat = count <= x.size and ops.narrow(flat, 0, 0, count) or ops.concat { flat, ops.zeros({ count - x.size }, x.dtype) }
  return ops.reshape(flat, size)
end

--- The solution X of A X = x for a triangular matrix A, and A itself. transpose solves with A transposed, unitriangular
--- takes the diagonal for 1.
---     > ms.tensor({ { 2.0 }, { 4.0 } }):triangular_solve(ms.tensor { { 1.0, 1.0 }, { 0.0, 2.0 } }):tolist()[2][1] --> 2.0
function M.triangular_solve(x, A, upper, transpose, unitriangular)
  upper, transpose, unitriangular = arguments.named("triangular_solve", { "upper", "transpose", "unitriangular" }, upper, transpose,
    unitriangular)
  A = tensor_of("triangular_solve", "A", A)
  local lower = upper == false
  local a = transpose and A.mT or A
  if transpose then lower = not lower end
  return ops.solve_triangular(a, x, { lower = lower, unit_diagonal = unitriangular or false }), ops.identity(A)
end

--- The dtype's name, or the tensor with another dtype.
---     > ms.ones({ 1 }):type() --> Float32
function M.type(x, dtype)
  dtype = arguments.named("type", { "dtype" }, dtype)
  if dtype == nil then return tostring(x.dtype) end
  return x:astype(dtype)
end

--- Whether the dtype has negative numbers.
---     > ms.tensor({ 1 }, ms.uint8):is_signed() --> false
function M.is_signed(x) return not tostring(x.dtype):find "^UInt" and x.dtype ~= ms.bool_ end

--- Whether the memory is pinned: none is, as devices copy through buffers of their own.
---     > ms.ones({ 1 }):is_pinned() --> false
function M.is_pinned() return false end
--- The tensor as it is, for programs that ask for pinned memory: devices copy from any memory.
---     > ms.ones({ 2 }):pin_memory():numel() --> 2
function M.pin_memory(x) return ops.identity(x) end
--- Whether the memory is shared with other processes: none is.
---     > ms.ones({ 1 }):is_shared() --> false
function M.is_shared() return false end
--- Whether the tensor has a shape and no elements: none has.
---     > ms.ones({ 1 }):is_meta() --> false
function M.is_meta() return false end

--- The tensor on another device, as x:to.
---     > ms.ones({ 1 }):move_to("CPU").device --> CPU
function M.move_to(x, to) return x:to(to) end

--- Patches as columns, as ms.ops.unfold.
---     > ms.ones({ 1, 1, 3, 3 }):unfold(2).shape --> (1, 4, 4)
function M.unfold(x, ...) return ops.unfold(x, ...) end

--- Random numbers between from and to (0 and 1), as many as the tensor has elements.
---     > ms.zeros({ 2, 3 }):uniform().shape --> (2, 3)
function M.uniform(x, from, to)
  return ops.cast(ops.uniform(x.shape, number_of("uniform", "from", from, 0.0), number_of("uniform", "to", to, 1.0)), x.dtype)
end

-- Between 0 and 1, neither of them.
local function inside(x) return ops.clamp(ops.uniform(x.shape, 0.0, 1.0), 2 ^ -25, 1 - 2 ^ -24) end

local function positive(where, name, value, preset)
  value = number_of(where, name, value, preset)
  if not (value > 0) then fail(where, ("%s must be above 0, got %s"):format(name, value)) end
  return value
end

--- Random numbers of Cauchy's distribution, as many as the tensor has elements.
---     > ms.zeros({ 2, 3 }):cauchy(0, 2).shape --> (2, 3)
function M.cauchy(x, median, sigma)
  sigma = positive("cauchy", "sigma", sigma, 1.0)
  return ops.cast(number_of("cauchy", "median", median, 0.0) + sigma * ops.tan(math.pi * (inside(x) - 0.5)), x.dtype)
end

--- Random numbers whose logarithm is normally distributed with this mean (1) and deviation (2).
---     > ms.zeros({ 2, 3 }):log_normal(0, 1).shape --> (2, 3)
function M.log_normal(x, mean, std)
  std = positive("log_normal", "std", std, 2.0)
  return ops.cast(ops.exp(ops.normal(x.shape, number_of("log_normal", "mean", mean, 1.0), std)), x.dtype)
end

--- Random numbers of the exponential distribution with rate lambd, in place.
---     > ms.zeros({ 2, 3 }):exponential_(3).shape --> (2, 3)
function M.exponential_(x, lambd)
  lambd = positive("exponential_", "lambd", lambd, 1.0)
  return x:copy_(ops.log(inside(x)) * (-1 / lambd))
end

local function as_matrix(where, x)
  if x.ndim ~= 2 then fail(where, ("a matrix is expected, got a tensor of rank %d"):format(x.ndim)) end
  local places = ops.nonzero(x)
  return places, ops.gather_nd(x, places)
end

--- The matrix as coordinates and values of what is not 0: a ms.COOTensor.
---     > ms.tensor({ { 0.0, 5.0 } }):to_coo().values:tolist()[1] --> 5.0
function M.to_coo(x)
  local places, values = as_matrix("to_coo", x)
  return ms.COOTensor(places, values, x.shape)
end

--- The matrix as rows of what is not 0: a ms.CSRTensor.
---     > ms.tensor({ { 0.0, 5.0 }, { 0.0, 0.0 } }):to_csr().indptr:tolist()[3] --> 1
function M.to_csr(x) return M.to_coo(x):to_csr() end

local function hook_of(where, hook)
  if not arguments.is_callable(hook) then fail(where, "hook must be a function, got " .. describe(hook)) end
  return hook
end

--- Calls hook(gradient) when a gradient comes to the tensor; what it gives takes the gradient's place. In a function that is
--- differentiated: when one comes to what is computed from x from then on; of parameters and of inputs of ms.grad, outside of such a
--- function: before ms.grad and its kin give it. Gives a handle, whose remove() takes the hook away.
---     > w = ms.Parameter(ms.ones { 2 })
---     > handle = w:register_hook(function(d) return d * 2 end)
---     > ms.grad(function() return ms.ops.sum(w) end, nil, { w })()[1]:tolist()[1] --> 2.0
function M.register_hook(x, hook)
  local hooks = core.tensor_hooks or core.table_by_tensor()
  core.tensor_hooks = hooks
  hooks[x] = hooks[x] or {}
  table.insert(hooks[x], hook_of("register_hook", hook))
  local function remove()
    for i, other in ipairs(hooks[x] or {}) do
      if rawequal(other, hook) then table.remove(hooks[x], i) end
    end
    if hooks[x] and #hooks[x] == 0 then hooks[x] = nil end
    if next(hooks) == nil then core.tensor_hooks = nil end
  end
  return { remove = remove }
end

-- In a function that is differentiated, the tensor's value goes through an identity whose derivative calls the hook.
local register_outside = core.original(M.register_hook)
core.replace(core.is_followed, function() return true end, true)
core.replace(M.register_hook, function(x, hook)
  if not core.is_followed(x) then return register_outside(x, hook) end
  local active = { hook_of("register_hook", hook) }
  core.overwrite(x, ms.custom_vjp(function(v) return v:copy() end, function(_, _, d)
    local other = active[1] and active[1](d)
    if other == nil then return d end
    return other
  end)(x))
  return { remove = function() active[1] = nil end }
end)

-- The sizes of axes, one after the other.
local function sizes_at(shape, axis, ...)
  local rank = #shape
  local size = math.type(axis) == "integer" and shape[axis < 0 and axis + rank + 1 or axis + 1] or nil
  if not size then
    fail("sizes", ("axis %s is out of range for %d axes"):format(tostring(axis), rank),
      "axes are counted from 0, negative ones from the end")
  end
  if select("#", ...) == 0 then return size end
  return size, sizes_at(shape, ...)
end

--- The sizes of the axes, as many results as there are axes; of the axes that are given, counted from 0, negative ones from the end.
---     > ms.ones({ 2, 3, 4 }):sizes() --> 2	3	4
---     > ms.ones({ 2, 3, 4 }):sizes(-1) --> 4
function M.sizes(x, ...)
  local shape = x.shape
  if select("#", ...) > 0 then return sizes_at(shape, ...) end
  return table.unpack(shape)
end

--- A part of the tensor, one index for each axis: x:at(":", -1) is x[{":", -1}]. An index is a position, a text such as "1:3", a slice,
--- or a tensor or list of positions.
--- - ... (integer, string, table or tensor): one index for each axis
---     > ms.arange(6):reshape(2, 3):at(":", -1):tolist()[2] --> 5
---     > ms.arange(6):reshape(2, 3):at(0, "1:"):tolist()[1] --> 1
function M.at(x, ...)
  local index = { ... }
  for i = 1, select("#", ...) do
    if index[i] == nil then fail("at", ("index %d is nil"):format(i), 'a whole axis is ":"') end
  end
  if #index == 0 then fail("at", "an index is expected, got none", 'x:at(":", -1) is the last column') end
  return x[index]
end

-- MindSpore's first names of operators as methods.
M.tensor_add, M.tensor_sub, M.tensor_mul, M.tensor_div = ops.add, ops.sub, ops.mul, ops.div

return M
