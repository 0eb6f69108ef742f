-- Hints for habits of other languages and frameworks: called with the message of an error that ends a
-- program, the line at which it happened, the place ("file.lua:3"), the lines above it and the variables there (name =
-- what it holds, false for nil).
-- Gives the message with a line "hint: ..." behind its first line, and with the name of the variable that is nil.
-- luacheck: no max line length
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"
local foreign = require "lunaria.help.foreign"
local habits = require "lunaria.help.habits"
local of_lua = require "lunaria.help.lua_errors"
local origins = require "lunaria.help.origins"
local path_hint = require "lunaria.help.paths"
local remedies = require "lunaria.help.remedies"
local usage = require "lunaria.help.usage"

local quoted, said, is_operator = foreign.quoted, foreign.said, foreign.is_operator

local modules = {}
for name in ("torch F np numpy optim mindspore tf tensorflow keras jax jnp lax optax flax torchvision transforms datasets"):gmatch "%a+" do modules[name] = true end
local own_modules = {
  ms = 'local ms = require "lunaria" stands at the top of a program',
  lunaria = 'local ms = require "lunaria" stands at the top of a program; ms holds everything',
  nn = 'local nn = require "lunaria".nn stands at the top of a program',
  ops = 'local ops = require "lunaria".ops stands at the top of a program',
}

-- The lines of earlier cells that declare locals, and what the variables of the line hold; set for each message.
local earlier_locals, variables_here = "", {}

local function nearest_global(name)
  local names = {}
  for key in pairs(variables_here) do names[#names + 1] = key end
  for key in pairs(_G) do
    if type(key) == "string" then names[#names + 1] = key end
  end
  table.sort(names)
  return arguments.nearest(name, names)
end

local function receiver(name, line) return foreign.receiver(name, line, variables_here) end

local function is_local_of_earlier_cell(name)
  for names in ("\n" .. earlier_locals):gmatch "\nlocal ([^=\n]*)" do
    if (names:match "^function ([%w_]+)" or names):find("%f[%w_]" .. name .. "%f[^%w_]") then return true end
  end
  return false
end

-- A module of another framework, by what the line takes of it.
local function about_module(name, line)
  local rest = line:match("%f[%w_]" .. name .. "%.([%w_%.]+)")
  local row = rest and (foreign.row_of_framework(name, rest) or foreign.row_of_path(rest))
  local last = rest and rest:match "[%w_]+$"
  if row then return said(row) end
  if last and is_operator(last) then return ("%s.%s is called ms.ops.%s here"):format(name, rest, last) end
  row = last and foreign.row_of_part(last)
  if row then return said(row) end
  local place = last and (foreign.elsewhere(last, name) or foreign.spelt(last))
  if place then return ("%s.%s is called %s here"):format(name, rest, place) end
  return 'there is no module of that name: local ms = require "lunaria" gives tensors, ms.ops, ms.nn'
end

-- A function of another language, by the value that it is called with.
local function about_call(name, line)
  local given = line:match("%f[%w_]" .. quoted(name) .. "%s*[%(%{]%s*([%a_][%w_%.%[%]]*)")
  local kind = given and foreign.kind(foreign.value(given, variables_here))
  local of_kind = kind and (habits.of_kind[kind] or {})[name]
  if of_kind then return of_kind end
  if kind == "tensor" and is_operator(name) then return ("of a tensor it is ops.%s(%s)"):format(name, given) end
end

-- A global that has no value.
local function about_global(name, line, _, _, above)
  if is_local_of_earlier_cell(name) then
    return ("%s was a local of an earlier cell, which ends with its cell: leave 'local' out there"):format(name)
  end
  if modules[name] then return about_module(name, line) end
  if (above or ""):find("self%." .. quoted(name) .. "%s*=") then return ("what init has set is a field: self.%s"):format(name) end
  if own_modules[name] then return own_modules[name] end
  local of_kind = about_call(name, line)
  if of_kind then return of_kind end
  if type(habits[name]) == "string" then return habits[name] end
  local row = foreign.row(name) or name:find "%u" and foreign.row_of_part(name)
  if row and (row[2] == "" or row[2]:find "%.") then return said(row) end
  if name == "f" and line:find "%f[%w_]f[\"']" then return 'values go into a text by: ("loss %g"):format(x:item())' end
  local near = nearest_global(name)
  if near and near:find("'" .. name:sub(1, 1), 1, true) then return near end
  local method = line:match("%f[%w_]" .. quoted(name) .. "[%.:]([%w_]+)")
  row = method and (foreign.row("x." .. method) or foreign.row("model." .. method) or foreign.row("optimizer." .. method))
  if row then return ("%s has no value; %s"):format(name, said(row)) end
  if is_operator(name) then return ("the operator is called ms.ops.%s"):format(name) end
  local place = foreign.elsewhere(name, "")
  if place then return ("it is called %s"):format((place:gsub("^%.", "ms."))) end
  return ("no value was given to %s before this line: is it misspelt, or defined further down?"):format(name)
end

local cell_names
local function names_of_cells()
  if not cell_names then
    cell_names = {}
    for _, class in ipairs { ms.nn.Cell, ms.nn.Optimizer } do
      for key, value in pairs(class) do
        if type(value) == "function" and not key:find "^_" then cell_names[#cell_names + 1] = key end
      end
    end
    table.sort(cell_names)
  end
  return cell_names
end

-- "ms.dataset.vision" of a line, before a name that a module lacks; nil where it is no module of ours.
local function module_before(name, line)
  local path = line:match("%f[%w_]([%w_%.]+)%." .. quoted(name) .. "%f[^%w_]")
  local full = path and (path:find "^ms%f[^%w_]" and path or "ms." .. path)
  local value = full and foreign.value(full, { ms = ms })
  return type(value) == "table" and not rawget(value, "_is_class") and foreign.kind(value) ~= "cell" and full or nil
end

-- A field or method that is nil where it is called.
local function about_field(name, line)
  local module = module_before(name, line)
  local of_module = module and foreign.of_module(module, name, line)
  if of_module then return of_module end
  local value, text = receiver(name, line)
  local kind = foreign.kind(value)
  if value ~= nil and (name == "forward" or name == "call") and kind == "cell" then return ("a cell is called itself: %s(x)"):format(text) end
  local near = kind == "table" and not habits[name] and foreign.fields(value, text, name)
  local of_object = near or foreign.of_object(name, value, kind, text, line)
  if of_object then return of_object end
  local habit = kind ~= "data set" and kind ~= "tensor" and remedies.habit(name, line)
  if habit then return habit end
  return kind == nil and arguments.nearest(name, names_of_cells())
    or ("%s has no value here: is it misspelt, or set further down?"):format(name)
end

local function with_colon(object, name) return ("a method is called with a colon: %s:%s(...)"):format(object, name) end

-- "x.sum(" of a line, for a method that was called with a dot.
local function dotted_call(name, line)
  for object in line:gmatch("([%w_%.%]%[\"':]+)%." .. quoted(name) .. "%s*%(") do
    if not object:find "^ms$" and not object:find "^ms%." and object ~= "ops" and object ~= "nn" then return object end
  end
end

-- "net.set_train(" of a line.
local function method_without_object(line)
  for _, name in ipairs(names_of_cells()) do
    local object = dotted_call(name, line)
    if object then return with_colon(object, name) end
  end
end

-- A method of a variable of the line, called with a dot: "x.detach(".
local function method_by_dot(line)
  for object, name in line:gmatch "([%a_][%w_]*)%.([%a_][%w_]*)%s*%(" do
    local value = variables_here[object] or rawget(_G, object)
    local kind = foreign.kind(value)
    if kind and kind ~= "table" and kind ~= "text" and kind ~= "class" and kind ~= "function" and value ~= ms.nn and value ~= ms.ops then
      local found, method = pcall(function() return value[name] end)
      if found and type(method) == "function" then return with_colon(object, name) end
    end
  end
end

local function colon_on_module(line)
  local module, name = line:match "%f[%w_](ms):([%w_]+)"
  if not module then module, name = line:match "%f[%w_]([on][pn]s?):([%w_]+)" end
  if module then return ("%s is a function of a module: it is called with a dot, %s.%s(...)"):format(name, module, name) end
end

-- A cell's or a tensor's method that was called with a dot gets its first argument in place of the object.
local function dotted_method(name, line)
  local object = dotted_call(name, line)
  if not object then return nil end
  if name == "construct" then return ("a cell is called itself: %s(x)"):format(object) end
  return with_colon(object, name)
end

-- Channels last, where a picture is (N, C, H, W).
local function about_channels(message)
  local sizes, channels = message:match "input is %(([%d, ]+)%).*must equal axis 1 of weight %((%d+)%)"
  local last = sizes and sizes:match "(%d+)$"
  local _, commas = (sizes or ""):gsub(",", "")
  if last == channels and commas == 3 then return "pictures are (N, C, H, W) here: x:permute(0, 3, 1, 2) puts the channels second" end
end

-- Lists of several values that were taken for several results.
local function about_list(name, above)
  for names, call in above:gmatch "local ([%w_, ]+)=([^\n]*)" do
    if names:find("," ) and names:find("%f[%w_]" .. name .. "%f[^%w_]") and call:find ":split%s*[%({]" then
      return "split of a data set gives one list: local a, b = table.unpack(ds:split{ ... })"
    end
    if names:find(",[^,]*%f[%w_]" .. name .. "%f[^%w_]") and call:find "ms%.grad%s*%(" then
      return "ms.grad gives the gradient alone: local loss, grads = ms.value_and_grad(f)(x)"
    end
  end
end

local fields = { size = "x:sizes(0) is the size of axis 0; x.size, the number of elements, is a field:", T = "x.T is a field:", ndim = "x.ndim is a field:", device = "x.device is a field:", name = "name is a field:" }

local function argument_list(text) return text:match "there are: ([^\n]*)" or "" end

-- The variable of the line that has no value, if there is only one; a global without a value comes before locals, of
-- which the machine may have forgotten some.
local function missing_variable(line, above, variables)
  local function is_declared(name)
    return above:find("local [^=\n]*%f[%w_]" .. name .. "%f[^%w_]") or above:find("%([^%)\n]*%f[%w_]" .. name .. "%f[^%w_][^%)\n]*%)")
      or above:find("for [^\n]*%f[%w_]" .. name .. "%f[^%w_]") or line:find("for%s[%w_, ]*%f[%w_]" .. name .. "%f[^%w_][%w_, ]*[=i]")
  end
  local found, count = {}, { global = 0, ["local"] = 0 }
  if line:find "%f[%w_]function%f[^%w_].*%f[%w_]end%f[^%w_]" then return nil end
  local code = " " .. line:gsub("%-%-.*$", ""):gsub("\"[^\"]*\"", '""'):gsub("'[^']*'", "''") .. " "
  for before, name, after in code:gmatch "()%f[%w_]([%a_][%w_]*)()" do
    local previous, following = code:sub(1, before - 1):match "(%S?)%s*$", code:sub(after):match "^%s*(%S?%S?)"
    local field = previous == "." or previous == ":"
    local assigned = following:find "^=[^=]" or following == "="
    if not field and not assigned and not following:find "^%(" and not found[name] and load("local " .. name) then
      local value = variables[name]
      local kind = value == false and "local" or value == nil and rawget(_G, name) == nil and not is_declared(name) and "global"
      if kind then
        found[name], found[kind] = kind, name
        count[kind] = count[kind] + 1
      end
    end
  end
  local kind = count.global == 1 and "global" or count.global == 0 and count["local"] == 1 and "local"
  if kind then return found[kind], kind end
end

-- Patterns of the first line without its place; the function gets the captures, the line and the whole message.
local rules = {
  { "attempt to %w+ .*nil value %(global '([%w_]+)'%)", about_global },
  { "attempt to %w+ .*nil value %(upvalue '([%w_]+)'%)", function(name, line, message, missing, above)
    return origins.of(name, above) or about_global(name, line, message, missing, above)
  end },
  { "attempt to %w+ .*nil value %(local '([%w_]+)'%)", function(name, _, _, _, above)
    return about_list(name, above) or origins.of(name, above) or ("%s was given no value: is an argument missing, or a result that is nil?"):format(name)
  end },
  { "attempt to .* nil value %(field 'integer index'%)", function(line, message)
    return of_lua(message:match "attempt to [^\n]*", { line = line, above = "", variables = variables_here }) or "count"
  end },
  { "attempt to .* nil value %(field '%?'%)", "count" },
  { "attempt to call a nil value %(%w+ '([%w_]+)'%)", about_field },
  { "attempt to %w+ .*nil value %(field '([%w_]+)'%)", function(name, line, message)
    local object, how = receiver(name, line)
    local own = how ~= "self" and not origins.is_length(name) and foreign.fields(object, how, name)
    if own then return own end
    local remedy = remedies.of(message, line)
    if remedy then return remedy end
    if name == "comm" and line:find "ms%.comm%f[^%w_]" then return "the pipes to a notebook's page are called ms.notebook.comm" end
    local module = module_before(name, line)
    local of_module = module and foreign.of_module(module, name, line)
    if of_module then return of_module end
    return foreign.of_object(name, object, foreign.kind(object), how, line) or foreign.fields(object, how, name)
      or ("%s is nil: is it misspelt, or set further down?"):format(name)
  end },
  { "attempt to call a table value", function(line)
    if not line:find "%f[%w_]for%f[^%w_].*%f[%w_]in%f[^%w_]" then return nil end
    if line:find "parameters_dict" then return "a table with names is gone through by: for name, value in pairs(t) do" end
    return "a table is gone through by: for i, v in ipairs(t) do; a data set by: for x, y in ds:create_tuple_iterator() do"
  end },
  { "attempt to call a number value %(for iterator", function() return habits.range end },
  { "^to: '(%w+).-' is neither", function(name)
    local device = ({ cuda = "GPU", gpu = "GPU", npu = "Ascend", cpu = "CPU" })[name:lower():match "^%a+"]
    return device and ("a tensor goes to that device by x:to \"%s\""):format(device) or remedies.dtypes
  end },
  { "attempt to call a [%w_%.]+ value %(%w+ '([%w_]+)'%)", function(name, line)
    if fields[name] then return fields[name] .. " without ()" end
    local module = type(rawget(ms, name)) == "table" and remedies.of(("attempt to call a table value (field '%s')"):format(name), line)
    if module then return module end
    if type(variables_here[name]) == "number" then return ("%s is the number %s, no function: is a sign missing before the parenthesis?"):format(name, variables_here[name]) end
    if line:find(quoted(name) .. "%s*%(") then return ("%s is no function: an element of a table is %s[i]"):format(name, name) end
  end },
  { "^attempt to perform arithmetic on a nil value$", function(line) return line:find "%[0%]" and "count" end },
  { "^attempt to index a nil value", function(line)
    local object = dotted_call("item", line)
    return object and ("a method is called with a colon: %s:item()"):format(object)
  end },
  { "table index is nil", function(line) return method_without_object(line) end },
  { "bad argument #1 to '%w+' %(%w+ expected", function(line) return method_without_object(line) end },
  { "attempt to get length of a ([%w_]+) value", function(kind) return ("# takes a table, a text or a tensor, not a %s"):format(kind) end },
  { "attempt to concatenate a table value", function() return "the texts of a list as one are table.concat(t, \", \"); tensors are joined by ops.concat({ a, b })" end },
  { "attempt to concatenate a %a+ value %(", function() return "a value as text is tostring(x)" end },
  { "tensor: is not a function", function(line)
    local construct = dotted_method("construct", line)
    if construct then return construct end
    local name = line:match "[:%.](T)%s*%(" or line:match "[:%.](mT)%s*%("
    return name and fields.T .. " without ()"
  end, true },
  { "tensor: a tensor has no field or method '[%w_]+'", function(line) return method_by_dot(line) end, true },
  { "tensor: a tensor has no field or method '([%w_]+)'", function(name)
    local row = foreign.row("x." .. name) or foreign.row("ndarray." .. name) or foreign.row("model." .. name)
    return row and said(row) or habits.of_kind.tensor[name]
  end, true },
  { "tensor: a tensor has no field or method '([%w_]+)'", function(name)
    local place = foreign.elsewhere(name, "x")
    return place and ("it is called %s(x)"):format(place) or foreign.similar(name) or ("ms.help(\"%s\") lists what is similar"):format(name)
  end },
  { "tensor: the field 'requires_grad' of a tensor cannot be set", function() return said(foreign.row "x.requires_grad") end, true },
  { "^(ms[%w_%.]*): there is no %w+ '([%w_]+)'", function(module, name, line) return foreign.of_module(module, name, line) end, true },
  { "^(ms[%w_%.]*): there is no %w+ '([%w_]+)'", function(module, name, line)
    local wanted = line:match("%f[%w_]" .. name .. "[%w_%.]*%.([%w_]+)") or name
    local place = foreign.spelt(wanted)
    return place and ("it is called %s here"):format(place) or foreign.similar(wanted, wanted == name and module) or ("ms.help(\"%s\") lists what is similar"):format(wanted)
  end },
  { "^value_and_grad: grad_position must be", function() return "parameters are named: ms.value_and_grad(f, { weights = net:trainable_params() })" end },
  { "^train: epoch must be an integer, got a data set", function() return "the number of epochs comes first: model:train(3, dataset)" end },
  { "^fit: epoch must be an integer, got a data set", function() return "the number of epochs comes first: model:fit(3, train, valid)" end },
  { "^jit: a function or another callable", function() return "it takes the function itself: f = ms.jit(function(x) return ... end)" end },
  { "^conv%dd?: ", function(_, message) return about_channels(message) end, true },
  { "^batch_norm: running_mean has shape %(%d+%): it must be %((%d+)%)", function(channels, line, _, _, above)
    local layer = line:match "BatchNorm%dd" or (above or ""):match ".*(BatchNorm%dd)" or "BatchNorm2d"
    return ("the layer's first argument is the number of channels of its input: nn.%s(%s)"):format(layer, channels)
  end, true },
  { "the table of %w+ has the integer 1 a", function() return "a list is an argument of its own: f(x, { 0, 1 }, { keepdims = true })" end },
  { "^(%w+): a tensor of shape %(%) has", function(name, line) return dotted_method(name, line) end, true },
  { "^([%w_%.]+): there is no %w+ '([%w_]+)'; there are: ", function(where, name, line, message)
    return foreign.of_argument(name, argument_list(message)) or usage.argument(where, name, line, variables_here)
  end, true },
  { "^([%w_%.]+): there is no (%w+) '?.-'?; there are: ", function(where, what, line)
    if what ~= "argument" and what ~= "parameter" and what ~= "option" then return ("the %s is one of these, spelt like this"):format(what) end
    return usage.of(where, "", line, variables_here)
      or ("help(\"%s\") says what each of them means"):format(where)
  end },
  { "^[%w_]+: missing argument .*%(local '([%w_]+)'%)$", function(name)
    return ("%s was given no value: is an argument missing where this function is called?"):format(name)
  end, true },
  { "^[%w_]+: missing argument %d: dtype is expected %(global '([%w_]+)'%)", function(name)
    local known = pcall(function() return assert(ms[name]) end)
    return ("dtypes are fields of ms: %s"):format(known and "ms." .. name or "ms.float32, ms.int64, ms.bool")
  end, true },
  { "^([%w_]+): missing argument", function(name, line, _, missing)
    if missing then return about_global(missing, line) end
    local object = dotted_call(name, line)
    return object and with_colon(object, name) or method_by_dot(line)
  end, true },
  { "^([%w_]+): a tensor is expected before the colon", function(name, line)
    local object = dotted_call(name, line)
    if not object then return method_by_dot(line) end
    return object and with_colon(object, name)
  end, true },
  { "got a cell", function(line) return colon_on_module(line) end, true },
  { "got a table", function(line) return colon_on_module(line) end, true },
  { "^set_context: mode must be", function() return "write mode = ms.GRAPH_MODE or mode = ms.PYNATIVE_MODE" end },
  { "^set_context: a table of settings", function() return "write ms.set_context{ mode = ms.GRAPH_MODE }" end },
  { "^cross_entropy: input has shape %(%d+%) and target has shape %(%d+, %d+%)", function()
    return "the scores come first, the labels second: loss(logits, labels)"
  end },
  { "^cross_entropy: input has shape %((%d+), .* and target has shape %((%d+), 1%)", function(rows, labels)
    return rows == labels and "labels have no axis of their own: labels:squeeze(1):long()"
  end },
  { "^cross_entropy: input has shape .* and target has shape", function()
    return "labels are integers, one for each row: labels:long(); probabilities have the shape of the logits"
  end },
  { "bad argument #%d+ to 'format' %(number expected, got Tensor%)", function()
    return "the number of a tensor of one element is x:item()"
  end },
  { "bad argument #%d+ to '[%w_ ]+' %(%w+ expected, got Tensor%)", function(line, message)
    local remedy = remedies.of(message:match "^[^\n]*", line)
    if remedy then return remedy end
    return "a tensor's rows are gone through by: for i, row in x:iter() do ... end; its number is x:item()"
  end },
  { "^tensor: index %-?%d+ is out of range", function(line)
    local several = line:match "ipairs%(%s*[%w_%.]*%f[%w_](chunk)%s*%(" or line:match "ipairs%(%s*[%w_%.]*%f[%w_](split)%s*%(" or
      line:match "ipairs%(%s*[%w_%.]*%f[%w_](unbind)%s*%("
    if several then return ("%s gives several values: ipairs({ ops.%s(...) })"):format(several, several) end
    if line:find "pairs%(" then return "a tensor's rows are gone through by: for i, row in x:iter() do ... end" end
    return "the first row is x[0]: for i = 0, #x - 1 do ... x[i] ... end"
  end },
  { "dim%d? %-?%d+ is out of range", function() return "axes count from 0: the first is 0, the last -1" end },
  { "axis %-?%d+ is out of range", function() return "axes count from 0: the first is 0, the last -1" end },
  { "label %d+ at position %d+ is out of range", function() return "labels count from 0: the first class is 0" end, true },
  { "^<=?: is a yes%-or%-no question", function(line)
    local greater = line:find ">" and not line:find "<"
    local name = greater and (line:find ">=" and "greater_equal" or "greater") or line:find "<=" and "less_equal" or "less"
    if line:find "%f[%w_]and%f[^%w_]" then return ("element by element: ops.logical_and(ops.%s(x, a), ops.%s(x, b))"):format(name, name) end
    if line:find "^%s*if%f[^%w_]" or line:find "^%s*while%f[^%w_]" or line:find "%f[%w_]if%f[^%w_]" or line:find "%f[%w_]while%f[^%w_]" then
      return ("a condition takes one answer: ops.any(ops.%s(a, b)):item(), or x:item() > 0 of a tensor of one element"):format(name)
    end
    return greater and ("compare element by element with ops.%s(a, b)"):format(name)
  end, true },
  { "^(%w+): [%w_]+ must be a tensor or a number, got the string", function(where, line)
    if where == "embedding" then return nil end
    if line:find "[\"'%]]%s*%+" or line:find "%+%s*[\"'%[]" then return 'texts are joined by ..: "loss: " .. tostring(x)' end
    return "a text becomes a number by tonumber(text)"
  end },
  { "^(%w+): [%w_]+ must be a tensor or a number, got nil", function(_, _, _, missing)
    if missing then return about_global(missing, "") end
    return "nil is what a variable without a value has: is an argument missing?"
  end },
  { "^([%w_]+): a function or another callable is expected", function(name)
    return ("it takes the function itself: ms.%s(function(x) return ... end)(x)"):format(name)
  end },
  { "^tensor: dtype must be a dtype .* got the %w+ %-?%d", function() return "several numbers go in as a table: ms.tensor{1, 2, 3}" end, true },
  { "^module '([%w_%.]+)' not found", function(name)
    if name:find "^torch" or name:find "^numpy" or name:find "^mindspore" then return 'tensors, layers and gradients are in require "lunaria"' end
    local ours = name:match "^lunaria%.(%a+)%."
    local has = ours and type(ms[ours]) == "table"
    if has then return ("%s are fields: local ms = require \"lunaria\"; ms.%s.%s"):format(ours == "nn" and "layers" or "its names", ours, ours == "nn" and "Dense" or "...") end
    return arguments.nearest(name, { "lunaria", "lunaria.nn", "lunaria.ops" }) or "require looks in the folders of package.path for " .. name:gsub("%.", "/") .. ".lua"
  end },
  { "^/usr/share/datasets/([%w%-]+)[^:]*: cannot be opened: No such file", function(name)
    return ("the Debian package dataset-%s has it: apt-get install dataset-%s; or name a folder that has the files"):format(name, name)
  end },
  { "^(.*): cannot be opened: No such file", path_hint },
  { "^[%w_]+: there is no f%a+ (/?[%w_%.%-/]+)", path_hint },
}

local function count_from_one(line)
  if line:find "%[0%]" then return "tables count from 1 in Lua: t[1] is the first element; tensors count from 0" end
  return "the table has no element there; tables count from 1 in Lua"
end

-- Where the virtual machine runs the library's Lua, its errors have the user's place: they speak of what the line does not do.
local function without_object(text, line)
  local of_library = text:find "^table index is nil" and not line:find "%["
    or text:find "^bad argument #1 to 'raw[gs]et'" and not line:find "raw"
  local called = of_library and method_without_object(line)
  return called and ("%s: is a method, and was called without its object (%s)"):format(called:match ":([%w_]+)%(", text) or text
end

-- An error of Lua's that the library's own code raised: what the user's line did, and the hint for a method that was called on its class.
local function raised_in_library(text, line)
  local called = line:match "([%w_]+)%s*[%({]" or line:match "([%w_]+)"
  local object = called and dotted_call(called, line)
  if object then return ("%s: is a method, and was called without its object (%s)"):format(called, text) end
  for path, name in line:gmatch "([%a_][%w_%.]*)%.([%a_][%w_]*)%s*[%({]" do
    if text:find "^attempt to" and foreign.kind(foreign.value(path, { ms = ms, nn = ms.nn })) == "class" then
      return ("%s: is a method, and was called on the class %s"):format(name, path:match "[%w_]+$"), ("an object is made first: %s(...):%s(...)"):format(path, name)
    end
  end
  return text
end

-- The hint of the first rule that fits, and whether it takes the place of one that the message has.
local function first_rule(text, line, message, missing, has_hint, above)
  for _, rule in ipairs(rules) do
    local captures = table.pack(text:find(rule[1]))
    if captures[1] and (not has_hint or rule[3]) then
      local hint = rule[2]
      if type(hint) == "function" then
        local given = table.pack(table.unpack(captures, 3, captures.n))
        local n = given.n
        given[n + 1], given[n + 2], given[n + 3], given[n + 4] = line, message, missing, above
        hint = hint(table.unpack(given, 1, n + 4))
      end
      if hint == "count" then hint = count_from_one(line) end
      if hint then return hint, rule[3] end
    end
  end
end

-- The hint for the first line of a message, and whether it takes the place of the message's own.
local function hint_for(text, at, line, message, missing, has_hint, above)
  local hint, replaces = first_rule(text, line, message, missing, has_hint, above)
  local dotted = at ~= "" and text:match "^([%w_]+): is a method, and"
  if dotted then hint = with_colon(dotted_call(dotted, line), dotted) end
  if hint then return hint, replaces end
  hint = remedies.of(text, line, has_hint)
  if hint then return hint, has_hint end
  if not has_hint then
    local name, kind = missing_variable(line, above, variables_here)
    if name and kind == "global" and text:find "nil" and text:find "^bad argument" then return about_global(name, line, nil, nil, above) end
    hint = of_lua(text, { line = line, above = above, variables = variables_here, name = name })
    if hint then return hint end
  end
  local where, what = text:match "^([%w_%.:]-): (.*)$"
  if has_hint or not where then return nil end
  return usage.of(where, what, line, variables_here)
end

return function(message, line, place, above, variables)
  earlier_locals, above = above:match "^([^\f]*)\f?(.*)$"
  variables_here = variables
  local first, rest = message:match "^([^\n]*)(.*)$"
  local at = first:match "^(.-:%d+: )" or ""
  local text = first:sub(#at + 1)
  -- Lua gives errors in its own functions, such as table.sort, no place.
  if at == "" and place ~= "" and (text:find "^attempt to " or text:find "^invalid order function") then at = place .. ": " end
  -- What the library's own Lua raised is the user's call.
  if at:find "^lunaria:lunaria/" and place ~= "" and not place:find "^lunaria:" then
    at = place .. ": "
    local own
    text, own = raised_in_library(text, line)
    rest = own and "\n  hint: " .. own .. rest or rest
  end
  text = without_object(text, line)
  if text == "attempt to index a nil value" and line:find "%)%s*[:%.]%s*%a" then text = text .. " (the result of a call)" end
  local missing, kind
  if text:find "got nil$" or text:find "got nil\n" or text:find "^[%w_]+: missing argument" then
    missing, kind = missing_variable(line, above, variables)
    if missing then text = ("%s (%s '%s')"):format(text, kind, missing) end
  end
  local hint, replaces = hint_for(text, at, line, message, missing, rest:find "\n  hint: " ~= nil, above)
  if hint and replaces then rest = rest:gsub("\n  hint: [^\n]*", "", 1) end
  if not hint or rest:find "\n  hint: " then return at .. text .. rest end
  return at .. text .. "\n  hint: " .. hint .. rest
end
