-- Arguments of constructors that are written in Lua: by position and by one trailing table of names, with the messages
-- that operators give. Errors carry the line of the user who called into the library.
local ms = require "lunaria"

local arguments = {}

-- The function of the user's that called into the library, and its level as the caller of this function counts; nil and 0 where Lua
-- knows none.
local function user_frame()
  local level = 2
  while true do
    local frame = debug.getinfo(level, "Sl")
    if not frame then return nil, 0 end
    if frame.currentline > 0 and frame.source:sub(1, 9) ~= "@lunaria:" then return frame, level - 1 end
    level = level + 1
  end
end

--- Raises an error at the user's line: "where: message", with the hint on a line of its own.
function arguments.fail(where, message, hint)
  message = where .. ": " .. message .. (hint and "\n  hint: " .. hint or "")
  -- Where the virtual machine runs the program, Lua knows no line of it.
  if require "lunaria.jit".inside() then require "lunaria.autodiff".fail(message) end
  local _, level = user_frame()
  error(ms.io.printable(message), level)
end

local fail = arguments.fail

--- Says something at the user's line, once for each line, and goes on: "file:line: warning: where: message", with the hint below.
function arguments.warn(where, message, hint)
  local frame = user_frame()
  local place = frame and ("%s:%d"):format(frame.short_src, frame.currentline) or where
  ms.io.warn(place, where .. ": " .. message, hint)
end

--- The line of the user's that called into the library, as its text; empty where it is not known.
function arguments.calling_line()
  local _, level = user_frame()
  local frame = level > 0 and debug.getinfo(level, "Slf")
  local listing = frame and frame.func and require "lunaria.registry".listing(frame.func)
  if not listing or not listing.text then return "" end
  local number = frame.currentline - math.max(frame.linedefined, 1)
  for line in (listing.text .. "\n"):gmatch "(.-)\n" do
    if number == 0 then return line end
    number = number - 1
  end
  return ""
end

local function with_article(name) return (name:find "^[aeiouAEIOU]" and "an " or "a ") .. name end

-- What an object is by its metatable: "a cell (Dense)", "a compiled function"; nil where that does not say.
local function object_text(value)
  if type(value) == "table" and rawget(value, "_is_class") then return "the class " .. value._name end
  local meta = debug.getmetatable(value)
  if type(meta) ~= "table" then return nil end
  local kind, name = rawget(meta, "_called"), rawget(meta, "__name")
  if kind and rawget(meta, "_name") then return ("%s (%s)"):format(with_article(kind), meta._name) end
  if meta == debug.getmetatable(ms.float32) then return "the dtype " .. tostring(value):lower() end
  if io.type(value) then return "a file" end
  return type(name) == "string" and with_article((name:gsub("^lunaria%.", ""):gsub("%.", " "))) or nil
end

--- What messages call a value.
function arguments.describe(value)
  local kind = math.type(value) or type(value)
  if kind == "string" then
    return ("the string '%s'"):format(#value > 40 and value:sub(1, 40) .. "..." or value)
  elseif kind == "integer" or kind == "float" then
    return tostring(value)
  elseif ms.is_tensor(value) then
    return ("a tensor of shape %s"):format(tostring(value.shape))
  elseif kind == "table" then
    return object_text(value) or next(value) == nil and "an empty table" or "a table"
  elseif kind == "nil" or kind == "boolean" then
    return tostring(value)
  elseif kind == "userdata" then
    return object_text(value) or "an object of a C library"
  end
  return "a " .. kind
end

local describe = arguments.describe

--- "did you mean 'x'?" for the name nearest to the one given; nil when none is near.
arguments.nearest = ms.io.nearest

--- Reads a signature such as "in_channels, out_channels, weight_init=nil, has_bias=true": a list of
--- { name =, required =, default =, other_names = }. Whether there is a bias is has_bias in MindSpore and bias in PyTorch: both are taken.
function arguments.signature(text)
  local list = { text = text, names = {} }
  for part in text:gmatch("[^,]+") do
    local name, default = part:match("^%s*([%w_]+)%s*=%s*(.-)%s*$")
    name = name or part:match("^%s*([%w_]+)%s*$")
    local value
    if default then
      value = assert(load("return " .. default, "=signature", "t", {}))()
    end
    list[#list + 1] = { name = name, required = not default, default = value }
    list.names[#list.names + 1] = name
    list[name] = list[#list]
  end
  if list.has_bias and not list.bias then
    list.has_bias.other_names = { "bias" }
    list.bias = list.has_bias
  end
  return list
end

-- A table of names, as opposed to a list, a cell or an object.
local function is_options(value)
  return type(value) == "table" and getmetatable(value) == nil and type(next(value)) == "string"
end
arguments.is_options = is_options

--- Raises an error where an argument is not its default and has no effect. a: bound arguments of the signature; names: those without an
--- effect; setting: where that is so, as "where scene is 'Query_Limit'".
function arguments.without_effect(where, signature, a, names, setting)
  for _, name in ipairs(names) do
    if a[name] ~= signature[name].default then fail(where, ("%s has no effect %s"):format(name, setting), "leave " .. name .. " out") end
  end
end

-- What is called only as a method of the tensor whose field it is: x:shape(), x:dtype().
local called_fields = { ["lunaria.shape"] = true, ["lunaria.dtype"] = true }

--- Whether the value can be called: a function, or an object with __call that is no tensor and no tensor's field.
function arguments.is_callable(value)
  if type(value) == "function" then return true end
  local meta = getmetatable(value)
  return type(meta) == "table" and meta.__call ~= nil and not called_fields[meta.__name] and not ms.is_tensor(value)
end

--- A table of options, which may be nil, as a table. known: for each name the type of its value, or a function that gives
--- whether a value is one, and in words what it has to be. example: such a table, for messages.
function arguments.options(where, options, known, example)
  if options == nil then return {} end
  if type(options) ~= "table" or getmetatable(options) ~= nil then
    fail(where, ("a table of options is expected, such as %s, got %s"):format(example, describe(options)))
  end
  for name, value in pairs(options) do
    local wanted = known[name]
    if wanted == nil then
      local names = {}
      for other in pairs(known) do names[#names + 1] = other end
      table.sort(names)
      if type(name) ~= "string" then
        fail(where, ("the table of options has %s as a name; there are: %s"):format(describe(name), table.concat(names, ", ")))
      end
      fail(where, ("there is no option '%s'; there are: %s"):format(name, table.concat(names, ", ")), arguments.nearest(name, names))
    end
    local fits, words = type(value) == wanted, wanted == "boolean" and "true or false" or "a " .. tostring(wanted)
    if type(wanted) == "function" then fits, words = wanted(value) end
    if not fits then fail(where, ("%s must be %s, got %s"):format(name, words, describe(value))) end
  end
  return options
end

--- For arguments.options: a positive integer, and one of some texts.
function arguments.positive(value) return (math.tointeger(value) or 0) > 0 and math.type(value) ~= nil, "a positive integer" end
function arguments.one_of(...)
  local texts, words = {}, {}
  for i, text in ipairs { ... } do texts[text], words[i] = true, ("'%s'"):format(text) end
  local last = table.remove(words)
  local all = #words > 0 and table.concat(words, ", ") .. " or " .. last or last
  return function(value) return type(value) == "string" and texts[value] ~= nil, all end
end

-- Whether an empty table at the end stands for no options, as { dtype = nil } does: where nothing needs it as an argument.
local function is_no_options(signature, last, count)
  if type(last) ~= "table" or getmetatable(last) ~= nil or next(last) ~= nil then return false end
  local parameter = signature[count]
  return not (parameter and parameter.required)
end

--- The arguments of a call by name: those given by position, those in a trailing table of names, and defaults.
function arguments.bind(where, signature, ...)
  local count, values = select("#", ...), {}
  local options
  if count > 0 then
    local last = select(count, ...)
    if is_options(last) or is_no_options(signature, last, count) then
      options, count = last, count - 1
    end
  end
  if count > #signature then
    fail(where, ("takes at most %d arguments, got %d"):format(#signature, count), ("the signature is %s(%s)"):format(where, signature.text))
  end
  for i = 1, count do
    values[signature[i].name] = (select(i, ...))
  end
  for name, value in pairs(options or {}) do
    local parameter = signature[name]
    if type(name) ~= "string" then
      fail(where, ("the table of names has %s among its names"):format(describe(name)))
    elseif type(parameter) ~= "table" or not parameter.name then
      fail(where, ("there is no argument '%s'; there are: %s"):format(name, table.concat(signature.names, ", ")),
        arguments.nearest(name, signature.names))
    elseif values[parameter.name] ~= nil then
      fail(where, parameter.name .. " is given twice")
    end
    values[parameter.name] = value
  end
  for i, parameter in ipairs(signature) do
    if values[parameter.name] == nil then
      if parameter.required then
        fail(where, ("missing argument %d: %s is expected"):format(i, parameter.name),
          ("the signature is %s(%s)"):format(where, signature.text))
      end
      values[parameter.name] = parameter.default
    end
  end
  return values
end

-- Whether a table of names is what the last parameter takes, not names of parameters.
local function is_own_table(names, options)
  if not names.last_has_names then return false end
  for _, name in ipairs(names) do
    if options[name] ~= nil then return false end
  end
  return true
end

--- Spreads a trailing table of names over the optional parameters of a function, names, whose values follow:
--- b, c = arguments.named("f", { "b", "c" }, b, c) at the beginning of f(a, b, c) lets f(a, { c = 1 }) be f(a, nil, 1). With
--- last_has_names = true in names the last parameter takes a table of names of its own, which is told by its names.
function arguments.named(where, names, ...)
  local count, last = #names, nil
  local values = { ... }
  for i = count, 1, -1 do
    if values[i] ~= nil then
      last = i
      break
    end
  end
  if not last or not is_options(values[last]) or last == count and is_own_table(names, values[last]) then return ... end
  local options = values[last]
  values[last] = nil
  for name, value in pairs(options) do
    local found
    for i = 1, count do
      if names[i] == name then found = i end
    end
    if not found then
      fail(where, ("there is no argument '%s'; there are: %s"):format(tostring(name), table.concat(names, ", ")),
        arguments.nearest(tostring(name), names))
    elseif values[found] ~= nil then
      fail(where, name .. " is given twice")
    end
    values[found] = value
  end
  return table.unpack(values, 1, count)
end

-- The value at the place where a table of names was, and those behind it.
local function named_from(where, names, options, i, given, ...)
  local name = names[i]
  if name == nil then return end
  local value = given
  if rawequal(given, options) then value = nil end
  if options[name] ~= nil then
    if value ~= nil then fail(where, name .. " is given twice") end
    value = options[name]
  end
  return value, named_from(where, names, options, i + 1, ...)
end

--- Whether an optional input of a cell's call is a table, which by_name takes for one of names. Saved programs ask this where the
--- input is not known, and have no by_name then.
function arguments.is_table(value)
  return not ms.is_tensor(value) and type(value) == "table"
end

--- The optional inputs of a cell's call, which are tensors, numbers or booleans, where the last one may be a table of names:
--- net(x, { src_mask = mask }). names: those of the inputs, in order.
function arguments.by_name(where, names, ...)
  for i = select("#", ...), 1, -1 do
    local options = select(i, ...)
    if options ~= nil then
      -- As is_options has it, without the look at the metatable, which saved programs do not have.
      if type(options) ~= "table" or type(next(options)) ~= "string" then return ... end
      for name in pairs(options) do
        local known = false
        for _, other in ipairs(names) do known = known or other == name end
        if not known then
          fail(where, ("there is no input '%s'; there are: %s"):format(tostring(name), table.concat(names, ", ")),
            arguments.nearest(tostring(name), names))
        end
      end
      return named_from(where, names, options, 1, ...)
    end
  end
  return ...
end

--- Checks of single arguments: each gives the value back or raises an error that names the argument.
local check = {}
arguments.check = check

local function wrong(where, name, what, value)
  fail(where, ("%s must be %s, got %s"):format(name, what, describe(value)))
end

-- 2.0 is as good as 2.
local function integer(where, name, value)
  local i = math.type(value) and math.tointeger(value)
  return i or wrong(where, name, "an integer", value)
end
check.integer = integer

function check.positive(where, name, value)
  value = integer(where, name, value)
  if value <= 0 then
    wrong(where, name, value < 0 and "positive, not negative" or "positive", value)
  end
  return value
end

function check.not_negative(where, name, value)
  value = integer(where, name, value)
  if value < 0 then
    fail(where, ("%s must not be negative, got %d"):format(name, value))
  end
  return value
end

function check.number(where, name, value)
  if math.type(value) then
    return value
  elseif ms.is_tensor(value) and value.size == 1 then
    return value:item()
  end
  return wrong(where, name, "a number", value)
end

-- Also infinity, but not nan, with which every comparison is false.
function check.real(where, name, value)
  value = check.number(where, name, value)
  if value ~= value then fail(where, name .. " must not be nan") end
  return value
end

-- Neither infinity nor nan.
function check.finite(where, name, value)
  value = check.number(where, name, value)
  if value - value ~= 0 then fail(where, ("%s must be finite, got %s"):format(name, tostring(value))) end
  return value
end

-- From 0 up; nan is none of these.
function check.number_not_negative(where, name, value)
  value = check.number(where, name, value)
  if not (value >= 0) then
    fail(where, ("%s must not be negative, got %s"):format(name, tostring(value)))
  end
  return value
end

-- From 0 up, but no infinity.
function check.finite_not_negative(where, name, value)
  return check.finite(where, name, check.number_not_negative(where, name, value))
end

-- Above 0; infinity and nan are none of these.
function check.number_positive(where, name, value)
  value = check.number(where, name, value)
  if not (value > 0 and value < math.huge) then
    wrong(where, name, "a positive number", value)
  end
  return value
end

function check.probability(where, name, value)
  value = check.number(where, name, value)
  if not (value >= 0 and value <= 1) then
    wrong(where, name, "a probability in [0, 1]", value)
  end
  return value
end

-- In [0, 1): decay rates of running averages.
function check.rate(where, name, value)
  value = check.number(where, name, value)
  if not (value >= 0 and value < 1) then
    wrong(where, name, "in [0, 1)", value)
  end
  return value
end

function check.boolean(where, name, value)
  if type(value) ~= "boolean" then
    wrong(where, name, "true or false", value)
  end
  return value
end

function check.choice(where, name, value, choices)
  for _, choice in ipairs(choices) do
    if value == choice then
      return value
    end
  end
  return wrong(where, name, "one of '" .. table.concat(choices, "', '") .. "'", value)
end

local reductions = { "mean", "sum", "none" }
function check.reduction(where, name, value) return check.choice(where, name, value, reductions) end

-- A key of AES, or nil. Messages say nothing of what is in it.
function check.optional_key(where, name, value)
  if value == nil then return nil end
  if type(value) ~= "string" then fail(where, ("%s must be a text or nil, got a value of type %s"):format(name, type(value))) end
  if #value ~= 16 and #value ~= 24 and #value ~= 32 then
    fail(where, ("%s must have 16, 24 or 32 bytes, got %d"):format(name, #value))
  end
  require "lunaria.common.secrets".keep()
  return value
end

function check.optional_tensor(where, name, value)
  if value ~= nil and not ms.is_tensor(value) then fail(where, name .. " must be a tensor, got " .. describe(value)) end
  return value
end

--- setup(self, a) of a class whose objects keep arguments as they are, each after a check: "weight:optional_tensor, margin:number".
function arguments.settings(where, list)
  local checks = {}
  for name, kind in list:gmatch "([%w_]+):([%w_]+)" do checks[#checks + 1] = { name, check[kind] } end
  return function(self, a)
    for _, row in ipairs(checks) do self[row[1]] = row[2](where, row[1], a[row[1]]) end
  end
end

-- One size for `count` axes, or a list of that many: always as a list of integers from `least` up.
function check.sizes(where, name, value, count, least)
  if math.type(value) then
    local list = {}
    for i = 1, count do
      list[i] = value
    end
    value = list
  end
  if type(value) ~= "table" or #value ~= count then
    wrong(where, name, count == 1 and "an integer" or ("an integer or a table of %d integers"):format(count), value)
  end
  local list = {}
  for i = 1, count do
    list[i] = integer(where, name, value[i])
    if list[i] < least then
      fail(where, ("%s must %s, got %d"):format(name, least == 0 and "not be negative" or "be positive, not negative or 0", list[i]))
    end
  end
  return list
end

return arguments
