-- Operators of one's own: ms.op turns a function of numbers into an operator on tensors. The function is followed once,
-- when it is defined (interpreter/watchers/formula_trace.h); what it computes is compiled into one loop over the elements.
local core = require "lunaria.custom_ops"

local known_fields = { name = "string", inputs = "table", expr = "function", doc = "string", output = "string",
  reduce = "string", sizes = "table", outside = "number", call = "function", grad = "any", library = "string", symbol = "string" }
local reductions = { sum = "sum", mean = "mean", max = "amax", min = "amin", prod = "prod" }

local function fail(level, message, ...) error("op: " .. message:format(...), level + 1) end

local function is_name(text) return text:match("^[%a_][%w_]*$") ~= nil end

-- "i, k" -> { "i", "k" }
local function words_of(text)
  local list = {}
  if not text:match("%S") then return list end
  for word in (text .. ","):gmatch("%s*(.-)%s*,") do list[#list + 1] = word end
  return list
end

local function check_new(seen, index, text, level)
  if seen[index] then fail(level + 1, "index %s stands twice in '%s'", index, text) end
  seen[index] = true
end

local function indices_of(text, level)
  local list, seen = words_of(text), {}
  for _, word in ipairs(list) do
    if not is_name(word) then fail(level + 1, "'%s' is no index in '%s'", word, text) end
    check_new(seen, word, text, level + 1)
  end
  return list
end

-- "2*i + p - 1" -> { -1, "i", 2, "p", 1 }
local function access_of(word, seen, text, level)
  local access, rest, sign = { 0 }, word, "+"
  while true do
    local factor, index = rest:match("^%s*(%d*)%s*%*?%s*([%a_][%w_]*)")
    local number = not index and rest:match("^%s*(%d+)")
    local stop
    if index then
      stop = select(2, rest:find("^%s*%d*%s*%*?%s*[%a_][%w_]*"))
      if sign == "-" then
        fail(level + 1, "'%s' counts index %s down: only numbers can be taken off, as in x[i + p - 1]", word, index)
      end
      check_new(seen, index, text, level + 1)
      access[#access + 1] = index
      access[#access + 1] = factor == "" and 1 or math.tointeger(tonumber(factor)) or 0
      if access[#access] < 1 or access[#access] > 1 << 31 then
        fail(level + 1, "the factor of index %s in '%s' must be at least 1", index, word)
      end
    elseif number then
      stop = select(2, rest:find("^%s*%d+"))
      local value = math.tointeger(tonumber(number))
      if not value or value > 1 << 31 then fail(level + 1, "the number in '%s' is too large", word) end
      access[1] = access[1] + (sign == "+" and value or -value)
    else
      fail(level + 1, "'%s' is no index in '%s': a sum of indices and numbers is, such as i or 2*i + p - 1", word, text)
    end
    rest = rest:sub(stop + 1)
    if not rest:match("%S") then return access end
    local next_sign, behind = rest:match("^%s*([+-])(.*)$")
    if not next_sign then
      fail(level + 1, "'%s' is no index in '%s': a sum of indices and numbers is, such as i or 2*i + p - 1", word, text)
    end
    sign, rest = next_sign, behind
  end
end

local function accesses_of(text, level)
  local list, seen = words_of(text), {}
  for k, word in ipairs(list) do list[k] = access_of(word, seen, text, level + 1) end
  return list
end

-- Sizes of indices as a list { index, size, ... } in the order of their names.
local function sizes_of(given, known, level)
  local list, names = {}, {}
  for index in pairs(given) do
    if not known[index] then fail(level + 1, "sizes names '%s', which is no index of an input", tostring(index)) end
    names[#names + 1] = index
  end
  table.sort(names)
  for _, index in ipairs(names) do
    local size = math.tointeger(given[index])
    if not size or size < 1 then
      fail(level + 1, "the size of index %s must be an integer above 0, got %s", index, tostring(given[index]))
    end
    list[#list + 1] = index
    list[#list + 1] = size
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
  return name, kind == "bool", indices and accesses_of(indices, level + 1)
end

local function names_of_parameters(f)
  local names, info = {}, debug.getinfo(f, "u")
  for i = 1, info.nparams do names[i] = debug.getlocal(f, i) end
  return names, info
end

-- "..., n, 3" -> { leading = true, "n", "3" }
local function sizes_in(text, level)
  local list = {}
  for i, word in ipairs(words_of(text)) do
    if word == "..." and i == 1 then
      list.leading = true
    elseif is_name(word) or word:match "^%d+$" then
      list[#list + 1] = word
    else
      fail(level + 1, "'%s' is no size in '%s': a name or a number is, and ... in front of the others", word, text)
    end
  end
  return list
end

-- An operator in a shared library.
local function foreign(given, name, level)
  if not given.symbol then fail(level, "the field symbol is missing: the name of a function in %s", given.library) end
  if not given.inputs or #given.inputs == 0 then fail(level, "the field inputs is missing: texts such as \"x[n, m]\"") end
  if not given.output then fail(level, "the field output is missing: the sizes of the result, \"\" for a scalar") end
  local names, axes, seen, known = {}, {}, {}, {}
  for i, text in ipairs(given.inputs) do
    local input, sizes = tostring(text):match "^%s*([%w_]+)%s*%[(.*)%]%s*$"
    if not input or not is_name(input) then
      fail(level, "'%s' is no input: a name with its sizes is, such as \"x[n, m]\"", tostring(text))
    end
    if seen[input] then fail(level, "there are two inputs '%s'", input) end
    names[i], axes[i], seen[input] = input, sizes_in(sizes, level), true
    for _, size in ipairs(axes[i]) do known[size] = true end
    known["..."] = known["..."] or axes[i].leading
  end
  local output = sizes_in(given.output:match "^%s*%[(.*)%]%s*$" or given.output, level)
  for _, size in ipairs(output) do
    if not known[size] and not size:match "^%d+$" then fail(level, "no input has the output's size %s", size) end
  end
  if output.leading and not known["..."] then fail(level, "no input has '...', so that nothing tells the output's") end
  local back = given.grad
  if back ~= nil and type(back) ~= "string" and type(back) ~= "function" then
    fail(level, "grad must be a function or the name of one in the library, got a %s", type(back))
  end
  local symbol = type(back) == "string" and back or nil
  local doc = given.doc or ("What `" .. name .. "` is was defined with ms.op.")
  local inputs = table.concat(given.inputs, ";")
  local content = table.concat({ name, doc, given.library, given.symbol, symbol or "", inputs, given.output }, "\n")
  local made = core.define_foreign(name, doc, content, names, axes, output, given.library, given.symbol, symbol)
  return type(back) == "function" and require "lunaria".custom_vjp(made, back) or made
end

-- An operator that is a function of whole tensors.
local function whole(given, name, level)
  if given.call and given.library then fail(level, "call and library are two ways to say what the operator does: give one") end
  for _, key in ipairs { "expr", "reduce", "sizes", "outside" } do
    if given[key] ~= nil then fail(level, "%s has no meaning beside %s", key, given.call and "call" or "library") end
  end
  if given.library then return foreign(given, name, level + 1) end
  if given.grad == nil then return given.call end
  if type(given.grad) ~= "function" then fail(level, "grad must be a function, got a %s", type(given.grad)) end
  return require "lunaria".custom_vjp(given.call, given.grad)
end

--- An operator that is defined by what it does with numbers. expr is an ordinary function of one number for each
--- input: arithmetic, comparisons, if, loops of fixed length, locals, other functions, operators that work element by
--- element (by their bare names too: sigmoid(x)), functions of math. It is followed once, now; the operator broadcasts
--- its inputs, runs as one compiled loop, and has a gradient of any order, under jit and vmap as well.
--- fields: name, inputs ("x", "mask: bool"; the function's parameters where left out), expr, doc.
--- With a rule for indices it computes at each point of an index space and reduces over those that the output has not:
--- inputs = {"a[i,k]", "b[k]"}, output = "i", reduce = "sum" (mean, max, min, prod).
--- An input is read at sums of indices, too: "x[i + p, 2*j + q - 1]". An index that stands alone somewhere has the size
--- of that axis; of the others one has as many values as fit, and the field sizes gives the rest: sizes = {p = 3}.
--- outside = number is what lies beyond the edges of the inputs; the index then goes along the whole axis. There are
--- derivatives of all of these, and the loops are compiled.
--- An operator may also be a function on whole tensors: call = function(x, w) ... end in Lua, of anything that tensors and
--- other values can do, or library = "FILE", symbol = "NAME", a function in a shared library (lunaria.h: lunaria_operator).
--- For the latter the inputs name the sizes of their axes, "x[..., n, m]" (... stands for any axes in front, over which vmap
--- goes as well), and output says those of the result, "..., n". grad is their gradient: a function in Lua of the inputs, the
--- result and its cotangent that gives one cotangent for each input, or the name of a function of the library.
--- ms.op(name, expr) is short for the fields name and expr; ms.define_op is another name of ms.op.
---     > ms.op("swish2", function(x, beta) return x * sigmoid(beta * x) end)(ms.tensor{0.0, 1.0}, 2):tolist()[1] --> 0.0
local function op(given, expr)
  if type(given) == "string" then given = { name = given, expr = expr } end
  if type(given) == "function" then given = { expr = given } end
  if type(given) ~= "table" then fail(2, "a table {name = ..., expr = function ... end} is expected, got a %s", type(given)) end
  for key, value in pairs(given) do
    if not known_fields[key] then
      fail(2, "there is no field '%s'; there are: name, inputs, expr, doc, output, reduce, sizes, outside, call, library, symbol, grad",
        tostring(key))
    elseif known_fields[key] ~= "any" and type(value) ~= known_fields[key] then
      fail(2, "%s must be a %s, got a %s", key, known_fields[key], type(value))
    end
  end
  local f = given.expr
  local name = given.name or "custom"
  if not is_name(name) then fail(2, "'%s' is no name of an operator: letters, digits and _ are", name) end
  if given.call or given.library then return whole(given, name, 3) end
  for _, key in ipairs { "grad", "symbol" } do
    if given[key] ~= nil then fail(2, "%s belongs to a function on whole tensors: give call or library as well", key) end
  end
  if not f then fail(2, "the field expr is missing: a function of one number for each input") end
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
  if with_indices == 0 and not (given.output or given.reduce or given.sizes or given.outside) then
    return core.define(name, doc, names, masks, f)
  end

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
    for _, access in ipairs(list) do
      for k = 2, #access, 2 do
        known[access[k]] = true
        reduces = reduces or not in_output[access[k]]
      end
    end
  end
  for _, index in ipairs(output) do
    if not known[index] then fail(2, "no input has the output's index %s, so that nothing tells its size", index) end
  end
  if reduces and not given.reduce then
    fail(2, "the output leaves out indices of the inputs: reduce says how (sum, mean, max, min, prod)")
  end
  return core.define(name, doc, names, masks, f, output, indices, reduces and reductions[given.reduce] or nil,
    sizes_of(given.sizes or {}, known, 2), given.outside)
end

return op
