-- Primitives of MindSpore beside those that compute: control, communication, summaries, functions of one's own; and names of
-- mindspore.ops.functional that are no operators' names. Rows for nn/primitives.lua, as in array.lua; a text under a small name is the
-- operator's.
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"
local pending = require "lunaria.primitives.pending"

local ops = ms.ops
local fail, describe = arguments.fail, arguments.describe
local P = {}

P.Depend = { "", "value, expr", function(_, value) return value end }
P.UpdateState, P.ControlDepend = P.Depend, { "depend_mode=0", "...", function() end, { depend_mode = { 0, 1 } } }
P.Print = { "", "...", function(_, ...) return print(...) end }
P.identity, P.Reusing = "identity", { "", "x", function(_, x) return x end }
P.StopGradient = { "", "value", function(_, x) return ms.stop_gradient(x) end }
P.Assert = { "summarize=3", "condition, input_data", function(a, condition, data)
  if ms.is_tensor(condition) then condition = condition:item() end
  if condition then return true end
  local texts = {}
  for i, value in ipairs(type(data) == "table" and data or { data }) do
    local list = ms.is_tensor(value) and ops.reshape(value, { -1 }):tolist() or { value }
    local words = {}
    for k = 1, math.min(#list, a.summarize) do words[k] = tostring(list[k]) end
    if #list > #words then words[#words + 1] = "..." end
    texts[i] = "[" .. table.concat(words, " ") .. "]"
  end
  return fail("Assert", "the condition is false: " .. table.concat(texts, " "))
end }
P.MoveTo = { "", "x, to, blocking", function(_, x, to) return x:to(to) end }
P.ConfusionMatrix = { "num_classes, dtype=\"int32\"", "labels, predictions, weights", function(a, labels, predictions, weights)
  local cells = ops.cast(labels, ms.int64) * a.num_classes + ops.cast(predictions, ms.int64)
  if weights ~= nil then weights = ops.cast(weights, ms.float32) end
  local counts = ops.bincount(cells, weights, a.num_classes * a.num_classes)
  return ops.cast(ops.reshape(counts, { a.num_classes, a.num_classes }), ms[a.dtype])
end, { dtype = { "int32", "int64", "float32" } } }
P.GeSwitch = { "", "data, pred", function(_, data, pred)
  if ms.is_tensor(pred) then pred = pred:item() end
  if pred then return nil, data end
  return data, nil
end }
P.Merge = { "", "inputs", function(_, list)
  for i = 1, 64 do
    if list[i] ~= nil then return list[i], ms.tensor(i - 1, ms.int32) end
  end
  return fail("Merge", "none of the inputs has a value")
end }
P.TensorDump = { "input_output=\"out\"", "file, input_x", function(_, file, x)
  if type(file) ~= "string" or file == "" then fail("TensorDump", "file must be a name, got " .. describe(file)) end
  ms.io.write_npy(file:find "%.npy$" and file or file .. ".npy", x)
end, { input_output = { "out" } } }
P.DumpGradient = { "", "path, x, input_output", function(_, path, x, which)
  if which ~= nil and which ~= "out" then fail("DumpGradient", "input_output must be \"out\", got " .. describe(which)) end
  return ops.InsertGradientOf(function(d)
    ms.io.write_npy(path:find "%.npy$" and path or path .. ".npy", d)
    return d
  end)(x)
end }

-- What a step shows: kept under its name until SummaryRecord:record writes it.
for name, plugin in pairs { ScalarSummary = "scalar", ImageSummary = "image", HistogramSummary = "histogram", TensorSummary = "tensor" } do
  P[name] = { "", "name, value", function(_, tag, value)
    if type(tag) ~= "string" or tag == "" then fail(name, "the name must be a string that is not empty, got " .. describe(tag)) end
    if not ms.is_tensor(value) and not (plugin == "scalar" and math.type(value)) then
      fail(name, "the value must be a tensor, got " .. describe(value))
    end
    pending[plugin .. " " .. tag] = ms.is_tensor(value) and ms.stop_gradient(value) or value
  end }
end

-- Functions of one's own.
local function shape_of(x)
  local shape = {}
  for i, size in ipairs(x.shape) do shape[i] = size end
  return shape
end
local function same_shape(a, b)
  if type(a) ~= "table" or #a ~= #b then return false end
  for i = 1, #a do
    if a[i] ~= b[i] then return false end
  end
  return true
end
-- Types and shapes that a program says its inputs or results have: lists with one for each; nil: it says nothing.
local function expect_types(where, what, types, shapes, values)
  for i = 1, values.n do
    local x = values[i]
    if ms.is_tensor(x) then
      if type(types) == "table" and types[i] ~= nil and types[i] ~= x.dtype then
        fail(where, ("%s %d must be of %s, got %s"):format(what, i, tostring(types[i]), describe(x)))
      end
      if type(shapes) == "table" and shapes[i] ~= nil and not same_shape(shapes[i], x.shape) then
        fail(where, ("%s %d must have the shape (%s), got %s"):format(what, i, table.concat(shapes[i], ", "), describe(x)))
      end
    end
  end
end
P.PyFunc = { "fn, in_types, in_shapes, out_types, out_shapes, stateful=true", "...", function(a, ...)
  expect_types("PyFunc", "input", a.in_types, a.in_shapes, table.pack(...))
  local results = table.pack(a.fn(...))
  if results.n == 1 and type(results[1]) == "table" then results = table.pack(table.unpack(results[1])) end
  if results.n ~= #a.out_types then fail("PyFunc", ("out_types has %d types, and fn gave %d results"):format(#a.out_types, results.n)) end
  for i = 1, results.n do results[i] = ops.cast(results[i], a.out_types[i]) end
  expect_types("PyFunc", "result", nil, a.out_shapes, results)
  return table.unpack(results, 1, results.n)
end, { stateful = { true, false } } }
-- What infer says of inputs, each of which `of` gives: one for the only result, or a list.
local function said(infer, of, count, ...)
  if not arguments.is_callable(infer) then return nil end
  local inputs = table.pack(...)
  for i = 1, inputs.n do
    if ms.is_tensor(inputs[i]) then inputs[i] = of(inputs[i]) end
  end
  local answers = table.pack(infer(table.unpack(inputs, 1, inputs.n)))
  return answers.n == 1 and count > 1 and answers[1] or answers
end
P.Morph = { "fn, infer_shape, infer_dtype, bprop_fn=nil", "...", function(a, ...)
  local f = a.bprop_fn and ms.custom_vjp(a.fn, a.bprop_fn) or a.fn
  local results = table.pack(f(...))
  expect_types("Morph", "result", said(a.infer_dtype, function(x) return x.dtype end, results.n, ...),
    said(a.infer_shape, shape_of, results.n, ...), results)
  return table.unpack(results, 1, results.n)
end }
P.Custom = { "func, out_shape=nil, out_dtype=nil, func_type=\"pyfunc\", bprop=nil, reg_info=nil", "...", function(a, ...)
  local f = a.func
  if not arguments.is_callable(f) then
    fail("Custom", "func must be a function, got " .. describe(f), "ms.op takes functions of shared libraries")
  end
  if a.bprop then f = ms.custom_vjp(f, a.bprop) end
  local y = f(...)
  if ms.is_tensor(y) and type(a.out_dtype) == "userdata" and y.dtype ~= a.out_dtype then
    fail("Custom", ("out_dtype is %s, and func gave %s"):format(tostring(a.out_dtype), tostring(y.dtype)))
  end
  if ms.is_tensor(y) and type(a.out_shape) == "table" then
    local same = #a.out_shape == #y.shape
    for i = 1, #y.shape do same = same and a.out_shape[i] == y.shape[i] end
    if not same then fail("Custom", ("out_shape is (%s), and func gave %s"):format(table.concat(a.out_shape, ", "), describe(y))) end
  end
  return y
end, { func_type = { "pyfunc" }, reg_info = {} } }

-- ops.functional's names of operators.
for name, operator in pairs { tensor_sub = "sub", tensor_mul = "mul", tensor_div = "div", tensor_floordiv = "floor_divide",
  tensor_mod = "remainder",
  tensor_pow = "pow", tensor_lt = "less", tensor_le = "less_equal", tensor_eq = "equal", tensor_ne = "not_equal", tensor_gt = "greater",
  tensor_ge = "greater_equal", tensor_exp = "exp", tensor_range = "arange" } do
  P[name] = operator
end
local plain = {
  scalar_add = function(x, y) return x + y end, scalar_sub = function(x, y) return x - y end, scalar_mul = function(x, y) return x * y end,
  scalar_div = function(x, y) return x / y end, scalar_pow = function(x, y) return x ^ y end, scalar_mod = function(x, y) return x % y end,
  scalar_floordiv = function(x, y) return x // y end, scalar_usub = function(x) return -x end, scalar_lt = function(x, y) return x < y end,
  scalar_le = function(x, y) return x <= y end, scalar_gt = function(x, y) return x > y end, scalar_ge = function(x, y) return x >= y end,
  scalar_eq = function(x, y) return x == y end, scalar_to_tensor = function(x, dtype) return ms.tensor(x, dtype or ms.float32) end,
  tuple_to_array = function(list) return ms.tensor(list) end,
}
for name, f in pairs(plain) do P[name] = f end
--- The integers from start up to limit, not included, by delta, in a table: make_range(limit), make_range(start, limit, delta).
function P.make_range(start, limit, delta)
  if limit == nil then start, limit = 0, start end
  local list = {}
  for i = start, limit - 1, delta or 1 do list[#list + 1] = i end
  return list
end
--- What f gives, and the function that takes a cotangent to the gradients of the arguments: J(f)(x) is ms.vjp(f, x).
function P.J(f)
  return function(...) return ms.vjp(f, ...) end
end
--- A field of a range of indices: SliceGetItem(ms.slice(1, 5), "start").
function P.SliceGetItem(range, name) return range[name] end
P.P, P.Tensor = ops, ms.Tensor

return P
