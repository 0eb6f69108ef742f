-- MindSpore's functions of functions, beside ms.grad and its kin: ops.GradOperation, ops.HyperMap,
-- ops.MultitypeFuncGraph, ops.Partial, loops with a function for their body, hooks on gradients. All of it is plain Lua over the
-- transforms, so that it is compiled and differentiated as any other Lua. Names are found through ms.ops (nn/primitives.lua).
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"
local around = require "lunaria.nn.around"
local class = require "lunaria.nn.class"

local ops = ms.ops
local fail, check, describe, is_callable = arguments.fail, arguments.check, arguments.describe, arguments.is_callable
local is_tensor = ms.is_tensor

-- By name: classes and functions.
local M = {}

local function callable(where, name, value)
  if not is_callable(value) then fail(where, ("%s must be a function, got %s"):format(name, describe(value))) end
  return value
end

-- A table of values, as opposed to a tensor or an object.
local function is_list(value)
  return type(value) == "table" and (getmetatable(value) == nil or #value > 0 and not is_callable(value))
end

-- The class of objects that are called: NAME(attributes...)(inputs...).
local function define(name, signature, doc, call)
  local made = class.define(nil, name, signature, doc)
  made._called = "object"
  function made:setup(a)
    for key, value in pairs(a) do self[key] = value end
  end
  made.__call = call
  M[name] = made
  return made
end

-- sum(results * sens), the scalar whose gradient is that of the results with these cotangents; ones without sens.
local function weighted(sens, ...)
  local sum
  for i = 1, select("#", ...) do
    local y = select(i, ...)
    if is_list(y) then y = weighted(sens, table.unpack(y)) end
    if is_tensor(y) or math.type(y) then
      local d = sens
      if is_list(sens) then d = sens[i] end
      if d ~= nil and y ~= nil then y = y * d end
      if is_tensor(y) then y = ops.sum(y) end
      sum = sum and sum + y or y
    end
  end
  return sum
end

local function is_differentiable(x)
  if is_tensor(x) then return x:is_floating_point() or x:is_complex() end
  return math.type(x) == "float" or is_list(x)
end

-- Gradients by all inputs that have one, zeros for tensors of integers; by the weights.
local function gradients_of(self, fn, weights, made, count, sens, ...)
  local positions, key = {}, tostring(count) .. tostring(sens ~= nil)
  for i = 1, self.get_by_list and not self.get_all and 0 or self.get_all and count or 1 do
    if is_differentiable((select(i, ...))) then
      positions[#positions + 1] = i
      key = key .. " " .. i
    end
  end
  if not made[key] then
    made[key] = ms.grad(function(d, ...) return weighted(d, fn(...)) end, #positions > 0 and positions or false, weights or false)
  end
  if #positions == 0 and not weights then
    if self.get_all then return {} end
    local x = ...
    return fail("GradOperation", "the first input must be a tensor of floats or a float, got " .. describe(x))
  end
  local first, second = made[key](sens, ...)
  local by_weight = second
  if #positions == 0 then return first end
  local all = {}
  for i = 1, self.get_all and count or 1 do
    local x = select(i, ...)
    if is_tensor(x) then all[i] = ops.zeros_like(x) elseif math.type(x) then all[i] = 0.0 end
  end
  for k, i in ipairs(positions) do all[i] = first[k] end
  if not self.get_all then all = all[1] end
  if weights then return all, by_weight end
  return all
end

-- What the call was given but for the last argument.
local function without_last(count, first, ...)
  if count <= 1 then return end
  return first, without_last(count - 1, ...)
end

define("GradOperation", "get_all=false, get_by_list=false, sens_param=false",
  [[Makes functions that give gradients: ops.GradOperation(...)(f)(inputs...) is the gradient of f by its first input, for cotangents
of ones. ms.grad is the same for functions that give a scalar.

get_all: a table of the gradients by all inputs. get_by_list: a table of the gradients by parameters, which are the second argument,
ops.GradOperation(...)(net, params), or else those that net trains. sens_param: the last input is the cotangent of the result.

  > ms.ops.GradOperation()(function(x, y) return x * y end)(ms.tensor { 1.0, 2.0 }, 3.0):tolist()[1]
  3.0]],
  function(self, fn, weights)
    callable("GradOperation", "fn", fn)
    if self.get_by_list then
      if weights == nil and type(fn) == "table" and fn.trainable_params then weights = fn:trainable_params() end
      if weights == nil then
        fail("GradOperation", "get_by_list needs the parameters: ops.GradOperation(...)(net, net:trainable_params())")
      end
    elseif weights ~= nil then
      fail("GradOperation", "parameters are given, and get_by_list is false")
    end
    local made = {}
    return function(...)
      local count = select("#", ...)
      if not self.sens_param then return gradients_of(self, fn, weights, made, count, nil, ...) end
      if count == 0 then fail("GradOperation", "the last input must be the cotangent of the result, as sens_param says") end
      return gradients_of(self, fn, weights, made, count - 1, (select(count, ...)), without_last(count, ...))
    end
  end)

-- f of the items that stand at one place of all lists.
local function mapped(where, f, reverse, deep, lists)
  local first = lists[1]
  for i = 2, lists.n do
    if not is_list(lists[i]) or #lists[i] ~= #first then
      fail(where, ("list %d must have %d items as the first one, got %s"):format(i, #first,
        is_list(lists[i]) and ("%d items"):format(#lists[i]) or describe(lists[i])))
    end
  end
  local result = {}
  local from, to, step = 1, #first, 1
  if reverse then from, to, step = #first, 1, -1 end
  for k = from, to, step do
    local items = { n = lists.n }
    for i = 1, lists.n do items[i] = lists[i][k] end
    if deep and is_list(items[1]) then
      result[k] = mapped(where, f, reverse, deep, items)
    else
      result[k] = f(table.unpack(items, 1, items.n))
    end
  end
  return result
end

local function define_map(name, deep, doc)
  define(name, "ops=nil, reverse=false", doc, function(self, ...)
    local f, lists = self.ops, table.pack(...)
    if f == nil then
      f = table.remove(lists, 1)
      lists.n = lists.n - 1
    end
    callable(name, "ops", f)
    if lists.n == 0 then fail(name, "a list is expected for each argument of the function") end
    if not is_list(lists[1]) then return f(table.unpack(lists, 1, lists.n)) end
    return mapped(name, f, self.reverse, deep, lists)
  end)
end

define_map("HyperMap", true,
  [[Applies a function to the items of lists, and of lists in these lists: ops.HyperMap(f)(a, b) has f(a[i], b[i]) in place i;
ops.HyperMap()(f, a, b) is the same. ops: the function. reverse: the last items come first.

  > ms.ops.HyperMap()(function(x, y) return x + y end, { 1, { 2, 3 } }, { 10, { 20, 30 } })[2][1] --> 22]])
define_map("Map", false,
  [[Applies a function to the items of lists: ops.Map(f)(a, b) has f(a[i], b[i]) in place i. ops: the function. reverse: the last
items come first.

  > ms.ops.Map(function(x, y) return x * y end)({ 1, 2 }, { 10, 20 })[2] --> 40]])

local numbers = { Int = "integer", Float = "float" }
-- Whether a value is of a type by its name, as MindSpore calls it.
local matches = {
  Tensor = is_tensor, Number = function(v) return math.type(v) ~= nil and type(v) == "number" or type(v) == "boolean" end,
  Bool = function(v) return type(v) == "boolean" end, String = function(v) return type(v) == "string" end,
  Function = is_callable, List = is_list, Tuple = is_list, Sequence = is_list,
  Dictionary = function(v) return type(v) == "table" and getmetatable(v) == nil end,
  None = function(v) return v == nil end, Any = function() return true end,
}
matches.NoneType, matches.TypeNone, matches.Func = matches.None, matches.None, matches.Function

local function matcher(where, type_of)
  local name = tostring(type_of)
  if matches[name] then return matches[name], name end
  for prefix, kind in pairs(numbers) do
    if name:find("^U?" .. prefix .. "%d*$") or name:find("^B?" .. prefix .. "%d*$") then
      return function(v) return math.type(v) == kind end, name
    end
  end
  local dtype = name:match "^Tensor%[(%w+)%]$"
  if dtype then return function(v) return is_tensor(v) and tostring(v.dtype):lower() == dtype:lower() end, name end
  local known = {}
  for other in pairs(matches) do known[#known + 1] = other end
  table.sort(known)
  return fail(where, ("there is no type '%s'; there are: %s, Int64, Float32, ..."):format(name, table.concat(known, ", ")),
    arguments.nearest(name, known))
end

local function type_name(value)
  if value == nil then return "None" end
  if is_tensor(value) then return "Tensor" end
  if type(value) == "table" then return is_list(value) and "List" or describe(value) end
  return ({ number = "Number", boolean = "Bool", string = "String", ["function"] = "Function" })[type(value)] or type(value)
end

local MultitypeFuncGraph = define("MultitypeFuncGraph", "name, read_value=false",
  [[A function with several bodies, of which the types of its arguments choose one: the first that was registered for them. name: for
messages. read_value: parameters come as plain tensors.

  > add = ms.ops.MultitypeFuncGraph("add")
  > add:register("Number", "Number")(function(x, y) return x + y end)
  > add:register("Tensor", "Tensor")(function(x, y) return ms.ops.add(x, y) end)
  > add(1, 2)
  3]],
  function(self, ...)
    local given = table.pack(...)
    if self.read_value then
      for i = 1, given.n do
        if is_tensor(given[i]) and ms.is_parameter(given[i]) then given[i] = given[i]:value() end
      end
    end
    for _, entry in ipairs(self.entries) do
      local fits = #entry.types == given.n
      for i = 1, fits and given.n or 0 do fits = fits and entry.types[i](given[i]) end
      if fits then return entry.f(table.unpack(given, 1, given.n)) end
    end
    local names, known = {}, {}
    for i = 1, given.n do names[i] = type_name(given[i]) end
    for i, entry in ipairs(self.entries) do known[i] = "(" .. entry.names .. ")" end
    return fail(self.name, ("nothing is registered for (%s); there are: %s"):format(table.concat(names, ", "), table.concat(known, ", ")))
  end)

function MultitypeFuncGraph:setup(a)
  self.name, self.read_value, self.entries = a.name, check.boolean("MultitypeFuncGraph", "read_value", a.read_value), {}
  if type(a.name) ~= "string" then fail("MultitypeFuncGraph", "name must be a string, got " .. describe(a.name)) end
end

--- Gives a function that takes the body for arguments of these types and gives it back: fn:register("Number", "Tensor")(f). A type is a
--- name (Tensor, Number, Bool, Int, Float, String, List, Tuple, Dictionary, Function, None) or a value such as ms.number.
function MultitypeFuncGraph:register(...)
  local types, names = {}, {}
  for i = 1, select("#", ...) do types[i], names[i] = matcher(self.name, (select(i, ...))) end
  return function(f)
    callable(self.name, "what is registered", f)
    table.insert(self.entries, { types = types, names = table.concat(names, ", "), f = f })
    return f
  end
end

--- A function with its first arguments given: ops.partial(f, a, b)(c) is f(a, b, c). ops.Partial()(f, a, b) is the same. f: the function.
---     > ms.ops.partial(math.max, 3)(2) --> 3
function M.partial(f, ...)
  callable("partial", "the first argument", f)
  local count = select("#", ...)
  if count == 0 then return f end
  if count == 1 then
    local a = ...
    return function(...) return f(a, ...) end
  end
  local given = { ... }
  return function(...)
    local all = table.move({ ... }, 1, select("#", ...), count + 1, table.move(given, 1, count, 1, {}))
    return f(table.unpack(all, 1, count + select("#", ...)))
  end
end
define("Partial", "", [[Makes functions with their first arguments given: ops.Partial()(f, a, b)(c) is f(a, b, c).

  > ms.ops.Partial()(math.max, 3)(2)
  3]], function(_, ...)
  return M.partial(...)
end)

-- Loops.

local function truth(value)
  if is_tensor(value) then value = value:item() end
  return value ~= false and value ~= nil and value ~= 0
end

local function whole(where, name, value)
  if is_tensor(value) and not value:is_floating_point() then value = value:item() end
  if math.type(value) ~= "integer" then fail(where, ("%s must be an integer, got %s"):format(name, describe(value))) end
  return value
end

--- val = loop_func(val) while cond_func(val) holds; gives the last val, which is init_val at first.
---     > ms.ops.while_loop(function(x) return x < 100 end, function(x) return x + 1 end, 10) --> 100
function M.while_loop(cond_func, loop_func, init_val)
  callable("while_loop", "cond_func", cond_func)
  callable("while_loop", "loop_func", loop_func)
  local value = init_val
  while truth(cond_func(value)) do value = loop_func(value) end
  return value
end

--- val = loop_func(i, val) for i from lower to upper - 1; gives the last val, which is init_val at first.
---     > ms.ops.fori_loop(0, 4, function(i, sum) return sum + i end, 0) --> 6
function M.fori_loop(lower, upper, loop_func, init_val)
  callable("fori_loop", "loop_func", loop_func)
  local value = init_val
  for i = whole("fori_loop", "lower", lower), whole("fori_loop", "upper", upper) - 1 do value = loop_func(i, value) end
  return value
end

--- carry, y = loop_func(carry, x) for each x of xs, a table or a tensor, of which the rows are taken, or nil `length` times; gives the
--- last carry, which is init at first, and the table of all y, or where xs is a tensor, all y in one tensor.
---     > (ms.ops.scan(function(sum, x) return sum + x, sum end, 0, { 1, 2, 3 })) --> 6
function M.scan(loop_func, init, xs, length)
  callable("scan", "loop_func", loop_func)
  xs, length = arguments.named("scan", { "xs", "length" }, xs, length)
  local carry, ys, count = init, {}, length
  if xs ~= nil then
    if not is_tensor(xs) and type(xs) ~= "table" then fail("scan", "xs must be a table, a tensor or nil, got " .. describe(xs)) end
    count = #xs
    if length ~= nil and length ~= count then fail("scan", ("length is %s, and xs has %d items"):format(describe(length), count)) end
  elseif length == nil then
    fail("scan", "length is missing, as xs is nil")
  end
  for i = 1, whole("scan", "length", count) do
    local x
    if is_tensor(xs) then x = xs[i - 1] elseif xs ~= nil then x = xs[i] end
    carry, ys[i] = loop_func(carry, x)
  end
  if is_tensor(xs) and is_tensor(ys[1]) then return carry, ops.stack(ys) end
  return carry, ys
end

local function unrolled(where, unroll)
  if unroll ~= nil and not check.boolean(where, "unroll", unroll) then
    fail(where, "unroll must be true or left out: graph mode itself decides which loops it unrolls, those of few turns")
  end
end

define("WhileLoop", "", [[A loop with functions: ops.WhileLoop()(cond_func, loop_func, init_val) is ops.while_loop(...).

  > ms.ops.WhileLoop()(function(x) return x < 100 end, function(x) return x + 1 end, 10)
  100]], function(_, ...)
  return M.while_loop(...)
end)
define("ForiLoop", "", [[A loop over integers: ops.ForiLoop()(lower, upper, loop_func, init_val) is ops.fori_loop(...). A further
argument, unroll, may be true only: graph mode unrolls loops of few turns, and keeps others.

  > ms.ops.ForiLoop()(0, 4, function(i, sum) return sum + i end, 0)
  6]],
  function(_, lower, upper, loop_func, init_val, unroll)
    unrolled("ForiLoop", unroll)
    return M.fori_loop(lower, upper, loop_func, init_val)
  end)
define("Scan", "", [[A loop over items: ops.Scan()(loop_func, init, xs, length) is ops.scan(...). A further argument, unroll, may be true
only: graph mode unrolls loops of few turns, and keeps others.

  > (ms.ops.Scan()(function(sum, x) return sum + x, sum end, 0, { 1, 2, 3 }))
  6]],
  function(_, loop_func, init, xs, length, unroll)
    unrolled("Scan", unroll)
    return M.scan(loop_func, init, xs, length)
  end)

-- Hooks on gradients.

define("InsertGradientOf", "f", [[Gives its input, whose gradient goes through f: ops.InsertGradientOf(f)(x) is x, and f(d) takes the place
of the gradient d.

  > clip = ms.ops.InsertGradientOf(function(d) return ms.ops.clamp(d, -1, 1) end)
  > ms.grad(function(x) return ms.ops.sum(clip(x) * 5) end)(ms.tensor { 2.0 }):item()
  1.0]], function(self, x)
  callable("InsertGradientOf", "f", self.f)
  return ms.custom_vjp(function(v) return v end, function(_, _, d) return self.f(d) end)(x)
end)

define("HookBackward", "hook_fn, cell_id=\"\"", [[Gives its inputs; hook_fn(grads) is called with the table of their gradients when these
come, and what it gives, a table or one tensor, takes their place. hook_fn: the function. cell_id: "" is what there is.

  > hook = ms.ops.HookBackward(function(grads) return grads[1] * 2 end)
  > ms.grad(function(x) return ms.ops.sum(hook(x)) end)(ms.tensor { 2.0 }):item()
  2.0]], function(self, ...)
  return around.watched(function(gradients) return around.replaced(gradients, self.hook_fn(gradients)) end, ...)
end)
function M.HookBackward:setup(a)
  self.hook_fn = callable("HookBackward", "hook_fn", a.hook_fn)
  if a.cell_id ~= "" then fail("HookBackward", "cell_id must be \"\": a hook belongs to no cell, got " .. describe(a.cell_id)) end
end

-- Derivatives along a curve.

local function as_table(x)
  if is_list(x) then return x, true end
  return { x }, false
end

local function as_floats(x)
  return is_tensor(x) and not x:is_floating_point() and ops.cast(x, ms.float32) or x
end

-- The first `order` derivatives at t = 0 of f(p + t s[1] + t^2 s[2] / 2 + ...), in a list, and f(p).
local function taylor(f, primals, series, order)
  local curve = {}
  local function at(t)
    for i, p in ipairs(primals) do
      local x, factor = p, 1
      for k, s in ipairs(series[i]) do
        factor = factor * k
        x = x + s * (t ^ k / factor)
      end
      curve[i] = x
    end
    return f(table.unpack(curve, 1, #primals))
  end
  local derivatives, g = {}, at
  for k = 1, order do
    local below = g
    g = function(t) return select(2, ms.jvp(below, t, 1.0)) end
    derivatives[k] = g(0.0)
  end
  return derivatives, f(table.unpack(primals))
end

local function each_result(derivatives, order, value, join)
  if not is_list(value) then return value, join(derivatives) end
  local all = {}
  for j = 1, #value do
    local own = {}
    for k = 1, order do own[k] = derivatives[k][j] end
    all[j] = join(own)
  end
  return value, all
end

--- f's value and its derivative of the order along the line on which all inputs grow at rate 1: ops.derivative(f, x, 3) has d^3 f / dx^3
--- for functions of elements. fn: the function. primals: the input, or a table of several. order: from 1 on.
---     > select(2, ms.ops.derivative(ms.ops.square, ms.tensor { 3.0 }, 2)):item() --> 2.0
function M.derivative(fn, primals, order)
  callable("derivative", "fn", fn)
  order = check.positive("derivative", "order", order)
  local xs, series = {}, {}
  for i, x in ipairs((as_table(primals))) do
    xs[i] = as_floats(x)
    series[i] = { is_tensor(xs[i]) and ops.ones_like(xs[i]) or 1.0 }
  end
  local derivatives, value = taylor(fn, xs, series, order)
  return each_result(derivatives, order, value, function(list) return list[order] end)
end

--- f's value and its first derivatives along a curve whose derivatives are the rows of series, in the rows of a tensor. fn: the function.
--- primals: the input, or a table of several. series: a tensor with a row for each order, or a table of one for each input.
---     > select(2, ms.ops.jet(ms.ops.square, ms.tensor { 3.0 }, ms.tensor { { 1.0 }, { 0.0 } })):tolist()[1][1] --> 6.0
function M.jet(fn, primals, series)
  callable("jet", "fn", fn)
  local xs, rows = {}, {}
  local list, several = as_table(primals)
  local given = series
  if not several then given = { series } end
  local order
  for i, x in ipairs(list) do
    if not is_tensor(given[i]) then fail("jet", "series must have a tensor for each input, got " .. describe(given[i])) end
    xs[i], rows[i] = as_floats(x), {}
    order = order or #given[i]
    if #given[i] ~= order then fail("jet", ("series has %d orders for input 1 and %d for input %d"):format(order, #given[i], i)) end
    for k = 1, order do rows[i][k] = as_floats(given[i][k - 1]) end
  end
  local derivatives, value = taylor(fn, xs, rows, order)
  return each_result(derivatives, order, value, ops.stack)
end

--- f's value at the inputs, and the function that takes a direction, one tensor or a table with one for each input, to f's derivative
--- along it. fn: the function. inputs: the input, or a table of several.
---     > select(2, ms.ops.linearize(ms.ops.square, ms.tensor { 3.0 }))(ms.tensor { 1.0 }):item() --> 6.0
function M.linearize(fn, inputs)
  callable("linearize", "fn", fn)
  local value = table.pack(fn(table.unpack((as_table(inputs)))))
  if value.n == 1 then value = value[1] else value.n = nil end
  return value, function(tangents) return select(2, ms.jvp(fn, inputs, tangents)) end
end

-- What says how MindSpore compiles a function, where ours needs no word.

local function same_function(where)
  return function(f)
    return callable(where, "the argument", f)
  end
end

local function refuse(where, name, value, wanted)
  if value ~= nil and value ~= wanted then
    fail(where, ("%s must be %s, got %s: there is nothing else that it could do here"):format(name, describe(wanted), describe(value)))
  end
end

--- The function itself, which takes no tensors: MindSpore computes it when it compiles. constexpr(f), or constexpr{ name = "f" }(f).
--- fn: the function. name: for messages. get_instance, check: true. reuse_result: whether a result may be used again, which takes
--- nothing from one that depends on the arguments only.
---     > ms.constexpr(function(n) return { n, n } end)(2)[2] --> 2
function M.constexpr(fn, get_instance, name, reuse_result, check) -- luacheck: ignore 431
  fn, get_instance, name, reuse_result, check = arguments.named("constexpr", { "fn", "get_instance", "name", "reuse_result", "check" }, fn,
    get_instance, name, reuse_result, check)
  refuse("constexpr", "get_instance", get_instance, true)
  refuse("constexpr", "check", check, true)
  if reuse_result ~= nil then arguments.check.boolean("constexpr", "reuse_result", reuse_result) end
  if fn == nil then
    return function(f) return M.constexpr(f, nil, name, reuse_result) end
  end
  callable("constexpr", "fn", fn)
  return function(...)
    for i = 1, select("#", ...) do
      local x = select(i, ...)
      if is_tensor(x) then
        fail(name or "constexpr", ("argument %d is %s: what is computed at compile time takes numbers, texts and tables"):format(i,
          describe(x)))
      end
    end
    return fn(...)
  end
end
M._constexpr = M.constexpr

--- The value itself. MindSpore takes numbers and lists for constants of the compiled function unless this says otherwise; here they are
--- inputs as they are. input_data: it. dynamic_len: that a list may have another length in the next call, as all may.
---     > #ms.mutable({ 1, 2 }, true) --> 2
function M.mutable(input_data, dynamic_len)
  dynamic_len = arguments.named("mutable", { "dynamic_len" }, dynamic_len)
  if dynamic_len ~= nil then check.boolean("mutable", "dynamic_len", dynamic_len) end
  if dynamic_len and not is_list(input_data) then fail("mutable", "dynamic_len is for tables, got " .. describe(input_data)) end
  return input_data
end

--- The class itself: graph mode follows the objects of all classes. cls: a table.
---     > type(ms.jit_class({})) --> table
function M.jit_class(cls)
  if type(cls) ~= "table" then fail("jit_class", "a class is expected, got " .. describe(cls)) end
  return cls
end

--- The function itself: records hold what is called, whatever calls it. fn: the function. attrs, policy: nil.
---     > ms.lazy_inline(math.abs)(-2) --> 2
function M.lazy_inline(fn, attrs, policy)
  fn, attrs, policy = arguments.named("lazy_inline", { "fn", "attrs", "policy" }, fn, attrs, policy)
  refuse("lazy_inline", "attrs", attrs, nil)
  refuse("lazy_inline", "policy", policy, nil)
  if fn == nil then return same_function "lazy_inline" end
  return callable("lazy_inline", "fn", fn)
end

--- The function itself: records hold what is called, whatever calls it. fn: the function.
---     > ms.no_inline(math.abs)(-2) --> 2
function M.no_inline(fn)
  return callable("no_inline", "fn", fn)
end

--- Gives a function apply(f, ...) that computes f(...) and keeps, where a derivative is computed, the tensors of its arguments as
--- pack_hook(tensor) gives them; for the derivative unpack_hook(packed) gives tensors, with which f is computed once more. MindSpore's
--- with ms.saved_tensors_hooks(pack, unpack): y = f(x) is y = ms.saved_tensors_hooks(pack, unpack)(f, x).
---     > halved = ms.saved_tensors_hooks(function(x) return x:half() end, function(x) return x:float() end)
---     > ms.grad(function(x) return ms.ops.sum(halved(ms.ops.square, x)) end)(ms.tensor { 1.5 }):item() --> 3.0
function M.saved_tensors_hooks(pack_hook, unpack_hook)
  callable("saved_tensors_hooks", "pack_hook", pack_hook)
  callable("saved_tensors_hooks", "unpack_hook", unpack_hook)
  return function(f, ...)
    callable("saved_tensors_hooks", "f", f)
    local count, packed = select("#", ...), nil
    local function forward(...)
      return f(...)
    end
    local function keep(...)
      packed = { n = count }
      for i = 1, count do
        local x = select(i, ...)
        packed[i] = is_tensor(x) and { pack_hook(x) } or x
      end
      return forward(...)
    end
    local function back(...)
      local inputs, cotangents = {}, {}
      for i = 1, count do
        local x = packed[i]
        if is_tensor((select(i, ...))) then x = unpack_hook(x[1]) end
        inputs[i] = x
      end
      local results = (select("#", ...) - count) // 2
      for k = 1, results do cotangents[k] = select(count + results + k, ...) end
      local _, pull = ms.vjp(forward, table.unpack(inputs, 1, count))
      return pull(table.unpack(cotangents, 1, results))
    end
    return ms.custom_vjp(keep, back)(...)
  end
end

return M
