-- Operators of one's own: ms.op turns a function of numbers into an operator on tensors. The function is followed once,
-- when it is defined (interpreter/watchers/formula_trace.h); what it computes is compiled into one loop over the elements.
local core = require "lunaria.custom_ops"

local known_fields = { name = "string", inputs = "table", expr = "function", doc = "string", output = "string",
  reduce = "string" }
local reductions = { sum = "sum", mean = "mean", max = "amax", min = "amin", prod = "prod" }

local function fail(level, message, ...) error("op: " .. message:format(...), level + 1) end

local function is_name(text) return text:match("^[%a_][%w_]*$") ~= nil end

-- "i, k" -> { "i", "k" }
local function indices_of(text, level)
  local list, seen = {}, {}
  for word in (text .. ","):gmatch("%s*(.-)%s*,") do
    if word ~= "" or text:match("%S") then
      if not is_name(word) then fail(level + 1, "'%s' is no index in '%s'", word, text) end
      if seen[word] then fail(level + 1, "index %s stands twice in '%s'", word, text) end
      seen[word] = true
      list[#list + 1] = word
    end
  end
  return list
end

-- "x", "m: bool", "a[i, k]"
local function input_of(text, level)
  if type(text) ~= "string" then fail(level + 1, "inputs must be texts such as \"x\", got a %s", type(text)) end
  local rest, kind = text:match("^(.-)%s*:%s*(%w+)%s*$")
  if kind and kind ~= "bool" then fail(level + 1, "'%s': the only type to be given is bool", text) end
  rest = rest or text
  local name, indices = rest:match("^%s*([%w_]+)%s*%[(.*)%]%s*$")
  name = name or rest:match("^%s*(.-)%s*$")
  if not is_name(name) then fail(level + 1, "'%s' is no name of an input", text) end
  return name, kind == "bool", indices and indices_of(indices, level + 1)
end

local function names_of_parameters(f)
  local names, info = {}, debug.getinfo(f, "u")
  for i = 1, info.nparams do names[i] = debug.getlocal(f, i) end
  return names, info
end

--- An operator that is defined by what it does with numbers. expr is an ordinary function of one number for each
--- input: arithmetic, comparisons, if, loops of fixed length, locals, other functions, operators that work element by
--- element (by their bare names too: sigmoid(x)), functions of math. It is followed once, now; the operator broadcasts
--- its inputs, runs as one compiled loop, and has a gradient of any order, under jit and vmap as well.
--- fields: name, inputs ("x", "mask: bool"; the function's parameters where left out), expr, doc.
--- With a rule for indices it computes at each point of an index space and reduces over those that the output has not:
--- inputs = {"a[i,k]", "b[k]"}, output = "i", reduce = "sum" (mean, max, min, prod).
--- ms.op(name, expr) is short for the fields name and expr.
--- @example ms.op("swish2", function(x, beta) return x * sigmoid(beta * x) end)(ms.tensor{0.0, 1.0}, 2) --> ms.tensor{0.0, 0.8808}
local function op(given, expr)
  if type(given) == "string" then given = { name = given, expr = expr } end
  if type(given) == "function" then given = { expr = given } end
  if type(given) ~= "table" then fail(2, "a table {name = ..., expr = function ... end} is expected, got a %s", type(given)) end
  for key, value in pairs(given) do
    if not known_fields[key] then
      fail(2, "there is no field '%s'; there are: name, inputs, expr, doc, output, reduce", tostring(key))
    elseif type(value) ~= known_fields[key] then
      fail(2, "%s must be a %s, got a %s", key, known_fields[key], type(value))
    end
  end
  local f = given.expr
  if not f then fail(2, "the field expr is missing: a function of one number for each input") end
  local name = given.name or "custom"
  if not is_name(name) then fail(2, "'%s' is no name of an operator: letters, digits and _ are", name) end
  local parameters, info = names_of_parameters(f)
  if info.isvararg then fail(2, "the expression must name its parameters, without '...'") end
  local names, masks, indices, seen, with_indices = {}, {}, {}, {}, 0
  for i, text in ipairs(given.inputs or parameters) do
    names[i], masks[i], indices[i] = input_of(text, 2)
    if seen[names[i]] then fail(2, "there are two inputs '%s'", names[i]) end
    seen[names[i]] = true
    with_indices = with_indices + (indices[i] and 1 or 0)
  end
  if #names == 0 then fail(2, "an operator has at least one input") end
  if #names ~= info.nparams then
    fail(2, "there are %d inputs and the expression takes %d numbers", #names, info.nparams)
  end
  local doc = given.doc or ("What `" .. name .. "` is was defined with ms.op.")
  if not given.output and not given.reduce and with_indices == 0 then return core.define(name, doc, names, masks, f) end

  if with_indices < #names then
    fail(2, "input '%s' has no indices: write '%s[i]', or '%s[]' for a scalar", names[1], names[1], names[1])
  end
  if not given.output then fail(2, "the field output is missing: the indices of the result, \"\" for a scalar") end
  if given.reduce and not reductions[given.reduce] then
    fail(2, "reduce must be sum, mean, max, min or prod, got '%s'", given.reduce)
  end
  local output, known, in_output, reduces = indices_of(given.output, 2), {}, {}, false
  for _, index in ipairs(output) do in_output[index] = true end
  for _, list in ipairs(indices) do
    for _, index in ipairs(list) do
      known[index] = true
      reduces = reduces or not in_output[index]
    end
  end
  for _, index in ipairs(output) do
    if not known[index] then fail(2, "no input has the output's index %s, so that nothing tells its size", index) end
  end
  if reduces and not given.reduce then
    fail(2, "the output leaves out indices of the inputs: reduce says how (sum, mean, max, min, prod)")
  end
  return core.define(name, doc, names, masks, f, output, indices, reduces and reductions[given.reduce] or nil)
end

return op
