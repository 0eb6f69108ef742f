-- Stored calls with their results (tests/data/numpy/calls.txt): a line is the call, then for each result dtype, shape and elements,
-- or a plain value. Dtypes and shapes have to be the same, elements within a few units of the last place of their dtype.
local ms = require "lunaria"
local t = require "harness"

local kinds = { b = "bool_", u = "uint8", i1 = "int8", i2 = "int16", i4 = "int32", i8 = "int64",
  f2 = "float16", f4 = "float32", f8 = "float64" }

local function T(kind, sizes, elements)
  if #elements == 0 then return ms.zeros(sizes, ms[kinds[kind]]) end
  return ms.tensor(elements, ms[kinds[kind]]):reshape(sizes)
end

local function name_of(dtype) return (tostring(dtype):lower()) end

local close = { float16 = 4e-3, float32 = 4e-6, float64 = 1e-12, complex64 = 4e-6 }

local function flat(list, into)
  if type(list) ~= "table" then
    into[#into + 1] = list
    return into
  end
  for _, item in ipairs(list) do flat(item, into) end
  return into
end

local function compare(wanted, got)
  local value = wanted:match "^=(.*)$"
  if value then
    local text = (ms.is_tensor(got) and tostring(got:item())) or (type(got) == "userdata" and name_of(got)) or tostring(got)
    assert(text == value, ("%s instead of %s"):format(text, value))
    return
  end
  local dtype, shape, elements = wanted:match "^([^:]*):([^:]*):(.*)$"
  -- Sums of unsigned integers where there is no uint64.
  if dtype == "uint64" and not ms.uint64 then dtype = "int64" end
  assert(ms.is_tensor(got), ("a tensor is expected, got %s"):format(tostring(got)))
  assert(name_of(got.dtype) == dtype, ("the dtype is %s instead of %s"):format(name_of(got.dtype), dtype))
  local sizes = {}
  for i = 1, got.ndim do sizes[i] = got.shape[i] end
  assert(table.concat(sizes, ",") == shape, ("the shape is (%s) instead of (%s)"):format(table.concat(sizes, ","), shape))
  if dtype == "complex64" then got = ms.ops.view_as_real(got) end
  local numbers, i, largest = flat(got:tolist(), {}), 0, 0
  for text in elements:gmatch "[^,]+" do
    local w = tonumber(text)
    if w and w == w and math.abs(w) < math.huge then largest = math.max(largest, math.abs(w)) end
  end
  for text in elements:gmatch "[^,]+" do
    i = i + 1
    local g = numbers[i]
    if dtype == "bool" then
      assert(g == (text == "1"), ("element %d is %s instead of %s"):format(i, g, text))
    elseif not close[dtype] then
      assert(g == math.tointeger(tonumber(text)), ("element %d is %s instead of %s"):format(i, g, text))
    else
      local w = text == "nan" and 0 / 0 or text == "inf" and math.huge or text == "-inf" and -math.huge or tonumber(text)
      -- Sums lose as much as their largest terms round.
      local off = math.abs(g - w)
      local fits = off <= close[dtype] * (math.abs(w) + 0.25 * largest) or g == w or (g ~= g and w ~= w) or off <= close[dtype] * 1e-1
      assert(fits, ("element %d is %.17g instead of %.17g"):format(i, g, w))
    end
  end
  assert(i == #numbers, ("%d elements instead of %d"):format(#numbers, i))
end

--- Runs the calls of a file with these names in scope. Gives how many there were.
return function(path, scope)
  local env = setmetatable({ T = T, nan = 0 / 0, inf = math.huge, ms = ms }, { __index = scope })
  local names, failed, count = {}, {}, 0
  for line in io.lines(path) do
    local fields = {}
    for field in (line .. "\t"):gmatch "([^\t]*)\t" do fields[#fields + 1] = field end
    local name = fields[1]:match "^[%w_%.]+" or "several"
    names[name] = names[name] or { 0, 0 }
    names[name][1] = names[name][1] + 1
    count = count + 1
    local ok, message = pcall(function()
      local results = table.pack(assert(load("return " .. fields[1], "=call", "t", env))())
      if results.n == 1 and type(results[1]) == "table" then results = table.pack(table.unpack(results[1])) end
      if results.n == 2 and type(results[2]) == "table" then results = table.pack(results[1], table.unpack(results[2])) end
      assert(results.n == #fields - 1, ("%d results instead of %d"):format(results.n, #fields - 1))
      for i = 1, results.n do compare(fields[i + 1], results[i]) end
    end)
    if not ok then
      names[name][2] = names[name][2] + 1
      message = tostring(message):gsub("^%S+:%d+: ", "")
      failed[name] = failed[name] or (fields[1] .. " => " .. fields[2] .. ": " .. message)
    end
  end

  for name, counts in pairs(names) do
    t.test(("%s: %d calls"):format(name, counts[1]), function()
      if counts[2] > 0 then error(("%d of %d: %s"):format(counts[2], counts[1], failed[name]), 0) end
    end)
  end
  return count
end
