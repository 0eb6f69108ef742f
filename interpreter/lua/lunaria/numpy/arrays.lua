-- The arguments of ms.numpy's functions: tensors, plain numbers and nested tables become tensors, dtypes are promoted
-- as numpy does it, a trailing table of names is spread over the parameters.
--
-- Plain numbers adapt to the tensors beside them, as in numpy: an integer keeps their dtype, a float makes float64 of integers. Where
-- there is no tensor, plain values have Lunaria's dtypes, int64 and float32, and functions that give floats give float32.
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"
local rows = require "lunaria.numpy.rows"

local ops = ms.ops
local fail, describe = arguments.fail, arguments.describe
local arrays = { fail = fail, describe = describe }

-- Kinds of dtypes from the narrowest on, and what each dtype is. Dtypes of one kind are in the order of their sizes.
local order = { b = 1, u = 2, i = 3, f = 4, c = 5 }
local types = {}
for _, row in ipairs { { "bool_", "b", 1 }, { "uint8", "u", 1 }, { "uint16", "u", 2 }, { "uint32", "u", 4 }, { "uint64", "u", 8 },
  { "int8", "i", 1 }, { "int16", "i", 2 }, { "int32", "i", 4 }, { "int64", "i", 8 }, { "bfloat16", "f", 2 }, { "float16", "f", 2 },
  { "float32", "f", 4 }, { "float64", "f", 8 }, { "complex64", "c", 8 }, { "complex128", "c", 16 } } do
  local dtype = rawget(ms, row[1])
  if dtype then types[tostring(dtype)] = { dtype = dtype, kind = row[2], bytes = row[3], name = row[1] } end
end

local function of_kind(kind, bytes)
  for _, t in pairs(types) do
    if t.kind == kind and t.bytes == bytes and t.name ~= "bfloat16" then return t end
  end
end

local float16, float32, float64 = of_kind("f", 2), of_kind("f", 4), of_kind("f", 8)
local wide_complex = of_kind("c", 16) or of_kind("c", 8)

--- The kind ("b", "u", "i", "f", "c") and the bytes of a dtype.
function arrays.kind(dtype)
  local t = types[tostring(dtype)]
  return t.kind, t.bytes
end

-- The float that holds an integer of so many bytes.
local function float_for(t) return t.bytes == 1 and float16 or t.bytes == 2 and float32 or float64 end

local function integer_pair(a, b)
  if a.kind == b.kind then return a.bytes >= b.bytes and a or b end
  -- a is unsigned, b signed
  if a.bytes < b.bytes then return b end
  return a.bytes < 8 and of_kind("i", 2 * a.bytes) or float64
end

local function promote_pair(a, b)
  if a == b then return a end
  if order[a.kind] > order[b.kind] then a, b = b, a end
  if a.kind == "b" then return b end
  if b.kind == "u" or b.kind == "i" then return integer_pair(a, b) end
  if b.kind == "f" then
    if a.kind ~= "f" then
      if b.name == "bfloat16" then return b end
      a = float_for(a)
    elseif a.bytes == b.bytes then
      return float32 -- float16 and bfloat16
    end
    return a.bytes > b.bytes and a or b
  end
  if a.kind == "c" then return a.bytes > b.bytes and a or b end
  if a.kind ~= "f" then a = float_for(a) end
  return a.bytes == 8 and wide_complex or b
end

--- The dtype that holds both, by numpy's rules.
function arrays.promote(a, b)
  if a == b then return a end
  return promote_pair(types[tostring(a)], types[tostring(b)]).dtype
end

--- A dtype that the user gave, a dtype or its name.
function arrays.dtype(where, value)
  if value == nil then return nil end
  local ok, dtype = pcall(function()
    if type(value) == "string" then return ms.zeros({ 0 }, { dtype = value }).dtype end
    return types[tostring(value)].dtype
  end)
  if not ok then fail(where, ("dtype must be a dtype such as ms.float32 or its name, got %s"):format(describe(value))) end
  return dtype
end

-- Tables of tensors and numbers become one tensor; the tensors in it are promoted.
local function from_table(where, name, list)
  local ok, tensor = pcall(ms.tensor, list)
  if not ok then
    fail(where, ("%s must be a tensor, a number or a table of numbers of one shape: %s"):format(name,
      tostring(tensor):gsub("^.-: ", "", 1)))
  end
  return tensor
end

--- A value as a tensor, and whether it was plain: "int", "float", "bool" of a number, "table"; nil of a tensor.
function arrays.of(where, name, value)
  -- By a handle of its own: a function that has nothing to do gives no other name of its argument.
  if ms.is_tensor(value) then return ops.identity(value), nil end
  local kind = math.type(value)
  if kind == "integer" then return ms.tensor(value), "int" end
  if kind == "float" then return ms.tensor(value), "float" end
  if type(value) == "boolean" then return ms.tensor(value), "bool" end
  if type(value) == "table" then return from_table(where, name, value), "table" end
  return fail(where, ("%s must be a tensor, a number or a table of numbers, got %s"):format(name, describe(value)))
end

-- Gradients of float16 and so on stay exact: nothing is cast that has the dtype already.
local function cast(x, dtype) return x.dtype == dtype and x or ops.cast(x, dtype) end
arrays.cast = cast

--- A float of Lua in full precision where the dtype has it.
local function plain_as(value, tensor, dtype)
  if math.type(value) == "float" and dtype == ms.float64 then return ms.tensor(value, dtype) end
  return cast(tensor, dtype)
end

-- The dtype of tensors and plain values together, from lists of what arrays.of gave.
local function common(tensors, plain, count)
  local dtype, weak, strong = nil, nil, false
  for i = 1, count do
    local p = plain[i]
    if p == "int" or p == "float" then
      weak = (weak == "float" or p == "float") and "float" or "int"
    else
      strong = strong or p == nil
      dtype = dtype and arrays.promote(dtype, tensors[i].dtype) or tensors[i].dtype
    end
  end
  if weak then
    if not dtype then return weak == "int" and ms.int64 or ms.float32, true end
    local kind = arrays.kind(dtype)
    if weak == "int" and kind == "b" then dtype = ms.int64 end
    if weak == "float" and kind ~= "f" and kind ~= "c" then dtype = strong and ms.float64 or ms.float32 end
  end
  return dtype, not strong
end

--- Several values as tensors of one dtype; the second result is this dtype, the third whether none of them was a tensor.
function arrays.together(where, names, values, count)
  local tensors, plain = {}, {}
  for i = 1, count do tensors[i], plain[i] = arrays.of(where, names[i] or names[1], values[i]) end
  local dtype, all_plain = common(tensors, plain, count)
  for i = 1, count do tensors[i] = plain_as(values[i], tensors[i], dtype) end
  return tensors, dtype, all_plain
end

--- Two values as tensors of one dtype.
function arrays.pair(where, a, b, first, second)
  local list, dtype, plain = arrays.together(where, { first or "x1", second or "x2" }, { a, b }, 2)
  return list[1], list[2], dtype, plain
end

--- The dtype in which functions that give floats compute: integers are widened as far as they need it.
function arrays.float_of(dtype, plain)
  local t = types[tostring(dtype)]
  if t.kind == "f" or t.kind == "c" then return dtype end
  if plain then return ms.float32 end
  return float_for(t).dtype
end

--- Two values as tensors of one dtype of floats: each is widened as far as it needs it. integers: the dtype of two integers.
function arrays.floats(where, a, b, integers)
  local list, plain = {}, {}
  list[1], plain[1] = arrays.of(where, "x1", a)
  list[2], plain[2] = arrays.of(where, "x2", b)
  local whole = true
  for i = 1, 2 do
    local kind = arrays.kind(list[i].dtype)
    whole = whole and kind ~= "f" and kind ~= "c"
    -- Integers beside a float of Lua become float64 as they are.
    if not plain[i] and plain[3 - i] ~= "float" then
      -- A boolean beside an integer of Lua is an integer of 64 bits first.
      local dtype = list[i].dtype == ms.bool_ and plain[3 - i] == "int" and ms.int64 or list[i].dtype
      list[i] = cast(list[i], arrays.float_of(dtype, false))
    end
  end
  local dtype, all_plain = common(list, plain, 2)
  if all_plain then dtype = arrays.float_of(dtype, true) elseif whole and integers then dtype = integers end
  return plain_as(a, list[1], dtype), plain_as(b, list[2], dtype)
end

--- A value as a tensor of floats (or of complex numbers, if it is one).
function arrays.float(where, name, value)
  local x, plain = arrays.of(where, name, value)
  return cast(x, arrays.float_of(x.dtype, plain ~= nil)), plain ~= nil
end

--- As above, but with integers as float64, in which numpy takes means.
function arrays.mean_float(where, name, value)
  local x, plain = arrays.of(where, name, value)
  local kind = arrays.kind(x.dtype)
  if kind == "f" or kind == "c" then return x end
  return cast(x, plain and ms.float32 or ms.float64)
end

--- The result in the dtype that the caller asked for.
function arrays.result(where, x, dtype)
  if dtype == nil then return x end
  return cast(x, arrays.dtype(where, dtype))
end

arrays.named = arguments.named

--- Rows of numpy's functions of one operand, x, which take(where, "x", x) makes a tensor.
function arrays.unary(module, take)
  return rows.family(module, "numpy.", { "x" }, { "dtype" }, function(where, f, x, dtype)
    x = take(where, "x", x)
    return arrays.result(where, f(x), dtype)
  end)
end

--- Rows of those of two operands, which take(where, x1, x2, with) makes tensors.
function arrays.binary(module, take, with)
  return rows.family(module, "numpy.", { "x1", "x2" }, { "dtype" }, function(where, f, x1, x2, dtype)
    local a, b = take(where, x1, x2, with)
    return arrays.result(where, f(a, b), dtype)
  end)
end

--- An operator of two tensors that booleans have another one for.
function arrays.either(of_bools, f)
  return function(a, b) return a.dtype == ms.bool_ and of_bools(a, b) or f(a, b) end
end

--- An integer argument.
function arrays.integer(where, name, value)
  if ms.is_tensor(value) and value.size == 1 then value = value:item() end
  local i = math.type(value) and math.tointeger(value)
  return i or fail(where, ("%s must be an integer, got %s"):format(name, describe(value)))
end

--- How often something is done: an integer from 0 to 1000, beyond which a program would not come back.
function arrays.times(where, name, value)
  local n = arrays.integer(where, name, value)
  if n < 0 then fail(where, ("%s must not be negative, got %d"):format(name, n)) end
  if n > 1000 then fail(where, ("%s must be at most 1000, got %d"):format(name, n)) end
  return n
end

--- A number argument.
function arrays.number(where, name, value)
  if ms.is_tensor(value) and value.size == 1 then value = value:item() end
  if math.type(value) then return value end
  return fail(where, ("%s must be a number, got %s"):format(name, describe(value)))
end

--- An axis from 0 on.
function arrays.axis(where, axis, rank)
  local i = arrays.integer(where, "axis", axis)
  if i < -rank or i >= rank then
    fail(where, ("axis %d is out of range for %d axes"):format(i, rank), "axes are counted from 0, negative ones from the end")
  end
  return i < 0 and i + rank or i
end

--- One axis or a table of axes, as a table; nil: all.
function arrays.axes(where, axis, rank)
  local list = {}
  if axis == nil then
    for i = 1, rank do list[i] = i - 1 end
  elseif type(axis) == "table" then
    for i, a in ipairs(axis) do list[i] = arrays.axis(where, a, rank) end
  else
    list[1] = arrays.axis(where, axis, rank)
  end
  return list
end

--- A shape: an integer, a table of integers or a tensor of them.
function arrays.shape(where, name, value)
  if ms.is_tensor(value) and value.ndim == 1 then value = value:tolist() end
  if math.type(value) then return { arrays.integer(where, name, value) } end
  local list = {}
  local ok, count = pcall(function() return #value end)
  if not ok or type(value) == "string" then
    fail(where, ("%s must be an integer or a table of integers, got %s"):format(name, describe(value)))
  end
  for i = 1, count do list[i] = arrays.integer(where, name, value[i]) end
  return list
end

--- The sizes of a tensor as a plain table.
function arrays.sizes(x)
  local shape, list = x.shape, {}
  for i = 1, x.ndim do list[i] = shape[i] end
  return list
end

--- The shape that arrays of these shapes have together.
function arrays.broadcast_shape(where, shapes)
  local rank, result = 0, {}
  for _, s in ipairs(shapes) do rank = math.max(rank, #s) end
  for i = 1, rank do
    local size = 1
    for _, s in ipairs(shapes) do
      local n = s[#s - rank + i] or 1
      if n ~= 1 then
        if size ~= 1 and size ~= n then
          local texts = {}
          for j, t in ipairs(shapes) do texts[j] = "(" .. table.concat(t, ", ") .. ")" end
          fail(where, ("the shapes %s cannot be broadcast to one"):format(table.concat(texts, " and ")))
        end
        size = n
      end
    end
    result[i] = size
  end
  return result
end

return arrays
