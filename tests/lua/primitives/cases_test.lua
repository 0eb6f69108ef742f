-- Every class of primitives that MindSpore computes on a CPU against what it gave (make_reference.py wrote cases.json): values, and
-- what was written into parameters.
package.path = "tests/lua/?.lua;" .. package.path
local t = require "harness"
local ms = require "lunaria"
local ops = ms.ops

local file = assert(io.open "tests/lua/primitives/cases.json")
local cases = ms.json.decode(file:read "a")
file:close()

local null = ms.json.null
local special = { nan = 0 / 0, inf = math.huge, ["-inf"] = -math.huge }

local function data_of(v)
  if type(v) == "table" then
    local list = {}
    for i, x in ipairs(v) do list[i] = data_of(x) end
    return list
  end
  return special[v] or v
end

local function tensor_of(v)
  local data = data_of(v.t)
  if v.d == "complex64" then
    local pairs_of = ms.tensor(data, ms.float32)
    local function part(i) return ops.squeeze(ops.narrow(pairs_of, -1, i, 1), -1) end
    return ops.complex(part(0), part(1))
  end
  local x = ms.tensor(data, ms[v.d])
  return v.p and ms.Parameter(x) or x
end

local function value_of(v, parameters)
  if v == null then return nil end
  if type(v) ~= "table" then return special[v] or v end
  if v.dtype then return ms[v.dtype] end
  if v.d then
    local x = tensor_of(v)
    if v.p then parameters[#parameters + 1] = x end
    return x
  end
  local list = {}
  for i, x in ipairs(v) do list[i] = value_of(x, parameters) end
  return list
end

local function values_of(list, parameters)
  local values = { n = #list }
  for i = 1, #list do values[i] = value_of(list[i], parameters) end
  return values
end

-- Signs of vectors and the like may differ, counts of dtypes as well: numbers are compared, up to the roundings of float32.
local function close(a, b, tolerance)
  if a == b or a ~= a and b ~= b then return true end
  if type(a) == "boolean" then a = a and 1 or 0 end
  if type(b) == "boolean" then b = b and 1 or 0 end
  return math.abs(a - b) <= tolerance * math.max(1, math.abs(b))
end

local function compare(got, expected, tolerance)
  if ms.is_tensor(got) then got = got:tolist() end
  if type(expected) == "table" and expected.t ~= nil then return compare(got, data_of(expected.t), tolerance) end
  if type(expected) == "table" and expected.dtype then return tostring(got):lower() == expected.dtype:lower() end
  if type(expected) == "table" then
    if type(got) ~= "table" or #got ~= #expected then return false end
    for i = 1, #expected do
      if not compare(got[i], expected[i], tolerance) then return false end
    end
    return true
  end
  if expected == null then return got == nil end
  if type(expected) == "string" and not special[expected] then return got == expected end
  if type(got) == "table" and #got == 1 then got = got[1] end
  if type(got) == "table" then return false end
  return got ~= nil and close(got, special[expected] or expected, tolerance)
end

-- How many results are compared where the rest is not set or a placeholder: saved statistics, vectors that were not asked for.
local counted = { BatchNorm = 1, Svd = 1, Eig = 1, LSTM = 3, ["Median[true]"] = 1 }
-- What MindSpore's kernels give against their own documentation; these are only called.
local against_its_words = {
  ["ApplyMomentum[true]"] = "takes a plain step with use_nesterov",
  ["ApplyFtrl[]"] = "adds l1 where the sum is negative; SparseApplyFtrl takes it off",
}

local function show(v)
  if ms.is_tensor(v) then return tostring(v) end
  return type(v) == "table" and ms.json.encode(v) or tostring(v)
end

local function run(case)
  local name, attrs, inputs, expected = table.unpack(case, 1, 4)
  local class, parameters = ops[name], {}
  local made = #attrs == 0 and next(attrs) ~= nil and class(attrs)
  if not made then
    local values = values_of(attrs, {})
    made = class(table.unpack(values, 1, values.n))
  end
  local given = values_of(inputs, parameters)
  local results = table.pack(made(table.unpack(given, 1, given.n)))
  local text = name .. ms.json.encode(attrs)
  if expected == null or against_its_words[text] then return results end
  local wanted, written = expected.results or expected, expected.written
  -- A list in one result may come as several.
  if results.n == 1 and type(results[1]) == "table" and #wanted > 1 and not wanted.t then results = table.pack(table.unpack(results[1])) end
  if #wanted == 1 and type(wanted[1]) == "table" and wanted[1].t == nil and not wanted[1].dtype and results.n > 1 then
    wanted = wanted[1]
  end
  for i, value in ipairs(wanted) do
    if i > (counted[name] or counted[text] or i) then break end
    if not compare(results[i], value, 2e-4) then
      error(("result %d is %s, MindSpore gives %s"):format(i, show(results[i]), ms.json.encode(value)), 0)
    end
  end
  for i, value in ipairs(written or {}) do
    if not compare(parameters[i], value, 2e-4) then
      error(("input %d is %s afterwards, MindSpore writes %s"):format(i, show(parameters[i]), ms.json.encode(value)), 0)
    end
  end
  return results
end

for _, case in ipairs(cases) do
  t.test("as MindSpore: " .. case[1] .. ms.json.encode(case[2]), function() run(case) end)
end

t.finish()
