-- Common parts of the conformance runners: options, files, comparison of numbers.
local ms = require "lunaria"

local support = {}

-- Splits `arg` into positional arguments and options. `known` maps an option to true (a flag) or to a default text.
function support.options(usage, known, count)
  local positional, options = {}, {}
  for name, default in pairs(known) do
    if default ~= true then options[name] = default end
  end
  local i = 1
  while i <= #arg do
    local name = arg[i]:match("^%-%-([%w-]+)$")
    if not name then
      positional[#positional + 1] = arg[i]
    elseif known[name] == nil then
      io.stderr:write("unknown option --", name, "\n", usage, "\n")
      os.exit(2)
    elseif known[name] == true then
      options[name] = true
    else
      i = i + 1
      if not arg[i] then
        io.stderr:write("option --", name, " needs a value\n", usage, "\n")
        os.exit(2)
      end
      options[name] = arg[i]
    end
    i = i + 1
  end
  if #positional ~= (count or 1) then
    io.stderr:write(usage, "\n")
    os.exit(2)
  end
  return positional[1], options
end

function support.read_json(path)
  local file = assert(io.open(path, "rb"))
  local text = file:read("a")
  file:close()
  return ms.json.decode(text)
end

-- "P0,P1" to a function that tells whether a name is among them; an empty text lets everything pass.
function support.filter(text)
  if not text or text == "" then return function() return true end end
  local set = {}
  for name in text:gmatch("[^,]+") do set[name] = true end
  return function(name) return set[name] end
end

-- All elements of a tensor in order, as numbers and booleans.
function support.elements(tensor)
  local list, n = {}, 0
  local function walk(item)
    if type(item) == "table" then
      for i = 1, #item do walk(item[i]) end
    else
      n = n + 1
      list[n] = item
    end
  end
  walk(tensor:tolist())
  return list
end

local function kind(dtype)
  if dtype == "bool" then return "bool" end
  if dtype:find("float", 1, true) then return "float" end
  return dtype:find("complex", 1, true) and "complex" or "integer"
end

local function as_number(x)
  if x == true then return 1 end
  return x or 0
end

local largest = { float16 = 65504.0, float32 = 2.0 ^ 127 * (2 - 2 ^ -23) }

-- Nil when `got` is what was expected, else what is wrong. saturates: infinities are expected as the largest number, NaN as 0.
function support.difference(got, expected, dtype, rtol, atol, saturates)
  if type(got) == "number" or type(got) == "boolean" then got = ms.tensor(got) end
  if not ms.is_tensor(got) then return "result is a " .. type(got) .. ", not a tensor" end
  if got.shape ~= expected.shape then return "shape " .. got.shape .. ", expected " .. expected.shape end
  local name = tostring(got.dtype):lower()
  local wanted = kind(dtype)
  if kind(name) ~= wanted or (wanted == "float" and name ~= dtype) then
    return "dtype " .. name .. ", expected " .. dtype
  end
  local a, b = support.elements(got), support.elements(expected)
  local worst, place = 0, nil
  for i = 1, #b do
    local x, y = as_number(a[i]), as_number(b[i])
    if saturates and largest[dtype] then y = y ~= y and 0 or math.max(-largest[dtype], math.min(largest[dtype], y)) end
    if x ~= y and not (x ~= x and y ~= y) then
      local tolerance = wanted == "float" and atol + rtol * math.abs(y) or 0
      local distance = math.abs(x - y)
      if not (distance <= tolerance and distance < math.huge) then
        if not place or distance > worst then worst, place = distance, i end
      end
    end
  end
  if place then
    return ("element %d is %s, expected %s"):format(place - 1, tostring(a[place]), tostring(b[place]))
  end
end

-- First line of an error message, cut.
function support.headline(message)
  return (tostring(message):match("^[^\n]*"):sub(1, 200))
end

-- What f gives in graph mode; the rest of the program stays as it is.
function support.in_graph_mode(f, ...)
  ms.set_context { mode = ms.GRAPH_MODE }
  local results = table.pack(pcall(f, ...))
  ms.set_context { mode = ms.PYNATIVE_MODE }
  if not results[1] then error(results[2], 0) end
  return table.unpack(results, 2, results.n)
end

-- What f gives in graph mode once it is compiled: it is called until calls are done without Lua. An error when none is. (Asked
-- for with ms.jit, as the mode itself leaves functions alone that make no tensors of their own: views.)
function support.compiled(f, ...)
  local compiled, results = ms.jit(f), nil
  for _ = 1, 4 do results = table.pack(support.in_graph_mode(compiled, ...)) end
  local report = ms.jit_report(compiled)
  if report.compiled_calls == 0 then error("is not compiled: " .. (report.eager or tostring(report)), 0) end
  return table.unpack(results, 1, results.n)
end

-- Cases that cannot run yet, counted by the name of what they wait for.
local waiting_list = {}
waiting_list.__index = waiting_list

function support.waiting_list() return setmetatable({ total = 0, counts = {} }, waiting_list) end

function waiting_list:add(name)
  self.total = self.total + 1
  self.counts[name] = (self.counts[name] or 0) + 1
end

function waiting_list:print()
  if self.total == 0 then return end
  local names = {}
  for name, count in pairs(self.counts) do names[#names + 1] = count > 1 and ("%s (%d)"):format(name, count) or name end
  table.sort(names)
  print(("%d waiting for: %s"):format(self.total, table.concat(names, ", ")))
end

return support
