-- Names of other frameworks and what they are called here, for a name that a module, an object or a call does not have. The answer
-- comes from other_names, from the same name in another module, from names of the object that share words with it, and from habits.
-- luacheck: no max line length
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"
local other_names = require "lunaria.help.other_names"
local habits = require "lunaria.help.habits"
local words = require "lunaria.help.words"

local foreign = {}

-- { other name, ours, difference } by the other name, by the name in the form of words.names, and lists of them by its last part.
local rows_by_name, rows_by_spelling, rows_by_part = {}, {}, {}
for _, from in ipairs { "pytorch", "mindspore", "numpy", "tensorflow", "jax" } do
  for _, row in ipairs(other_names[from]) do
    rows_by_name[row[1]] = rows_by_name[row[1]] or row
    local spelt = words.names(row[1])[1] or row[1]
    rows_by_spelling[spelt] = rows_by_spelling[spelt] or row
    local part = row[1]:match "[%w_]+$" or row[1]
    rows_by_part[part] = rows_by_part[part] or {}
    table.insert(rows_by_part[part], row)
  end
end

local function quoted(text) return (text:gsub("[%^%$%(%)%%%.%[%]%*%+%-%?]", "%%%0")) end
foreign.quoted = quoted

--- A row as a sentence.
function foreign.said(row)
  local name, ours, difference = row[1], row[2], row[3]
  if ours:find "^guide%." then return ("%s: %s (help \"%s\")"):format(name, difference, ours) end
  if difference == "the same" then return ("%s is called %s here"):format(name, ours) end
  local last = ours:match "[%w_]+$" or ""
  local shown = difference:lower():find("%f[%w_]" .. last:lower() .. "%f[^%w_]")
  if ours == "" or shown and difference:find "[%(%{]" or difference:find "leave it out" then return ("%s: %s"):format(name, difference) end
  return ("%s is %s here: %s"):format(name, ours, difference)
end
local said = foreign.said

function foreign.is_operator(name)
  local found, op = pcall(function() return ms.ops[name] end)
  return found and op ~= nil
end

--- The row of a name as it is written elsewhere, or nil.
function foreign.row(name) return rows_by_name[name] end

-- Whether a row speaks of a name of a module, not of an object's method or an option.
local function of_module(row) return row[1]:find "%." and not row[1]:find "^x%." and not row[1]:find "^model%." and not row[1]:find "^optimizer%."
  and not row[1]:find "^ndarray%." and not row[1]:find "^dataset%." and not row[1]:find "^layer%." end

-- Beginnings of other frameworks' names that may stand before a name which was looked for in one of our modules.
local beginnings = { "torch.", "nn.", "nn.functional.", "F.", "optim.", "optim.lr_scheduler.", "torch.optim.", "torch.utils.data.", "torch.linalg.",
  "torchvision.", "torchvision.transforms.", "torchvision.datasets.", "nn.utils.", "nn.init.", "ms.", "ops.", "np.", "np.random.", "np.linalg.",
  "jax.", "tf.", "tf.data.", "tf.nn.", "tf.math.", "tf.keras.", "keras.", "keras.layers.", "keras.losses.", "keras.optimizers.",
  "keras.callbacks.", "keras.utils.", "" }

--- The row of a path such as "utils.data.DataLoader" behind the name of a module; the longest beginning of it that is known counts.
function foreign.row_of_path(path)
  while path do
    for _, beginning in ipairs(beginnings) do
      local row = rows_by_name[beginning .. path]
      if row and (path:find "%." or row[1]:find "%.") and (beginning == "" or of_module(row)) then return row end
    end
    path = path:match "^(.*)%.[%w_]*$"
  end
end

--- The row of a name behind the name of a framework's module: "torch" and "nn.Linear".
function foreign.row_of_framework(name, rest)
  local full = words.names(name .. "." .. rest)[1]
  if not full then return nil end
  return rows_by_name[name .. "." .. rest] or rows_by_spelling[full] or rows_by_spelling["jax." .. full] or rows_by_spelling["tf." .. full]
end

-- The first row whose name ends so; beginning: a pattern that is looked for first.
local function row_of_part(part, beginning)
  local first
  for _, row in ipairs(rows_by_part[part] or {}) do
    if beginning and row[1]:find(beginning) then return row end
    if of_module(row) then first = first or row end
  end
  return first
end
foreign.row_of_part = row_of_part

local modules = {}
for name in ([[ms.nn ms.ops ms ms.dataset ms.dataset.vision ms.dataset.transforms ms.dataset.text ms.dataset.audio ms.train ms.amp ms.numpy
  ms.nn.optim ms.experimental.optim ms.probability.distribution ms.common.initializer ms.runtime ms.communication ms.numpy.fft
  ms.scipy.linalg ms.scipy.stats ms.scipy.signal ms.scipy.special ms.scipy.optimize ms.plot ms.lite ms.insight ms.profiler ms.sparse]]):gmatch "%S+" do
  modules[#modules + 1] = name
end

-- The value of "ms.nn.Dense", or nil.
local function value_of(name)
  local value = ms
  for part in name:gmatch "%.([%w_]+)" do
    local found, field = pcall(function() return value[part] end)
    if not found or field == nil then return nil end
    value = field
  end
  return value
end

-- Whether a path leads to something else than a module.
local function is_named(path)
  local value = value_of(path)
  if type(value) ~= "table" then return value ~= nil end
  local meta = getmetatable(value)
  return rawget(value, "_is_class") ~= nil or type(meta) == "table" and meta.__call ~= nil
end

-- A name as our names are written: "Conv2D" is Conv2d.
local function spellings(name)
  local list = { name, (name:gsub("(%d)D", "%1d")), (name:gsub("(%l)(%u)", "%1_%2"):lower()), name:lower(), (name:gsub("^%l", string.upper)) }
  local seen, result = {}, {}
  for _, text in ipairs(list) do
    if not seen[text] then result[#result + 1] = text end
    seen[text] = true
  end
  return result
end

-- The name of a module that differs in the case of its letters alone.
local function in_other_case(name, module)
  for known in pairs(require "lunaria.help.entries".names()) do
    if #known == #module + #name + 1 and known:lower() == (module .. "." .. name):lower() then return known end
  end
end

--- "ms.nn.Dense" for a name that another module than the one named has, or that is spelt in another case; nil where none has it.
function foreign.elsewhere(name, module)
  local list = spellings(name)
  for _, text in ipairs { name .. "2d", name .. "1d" } do
    if is_named(module .. "." .. text) then return module .. "." .. text end
  end
  for i = 2, #list do
    if value_of(module .. "." .. list[i]) ~= nil then return module .. "." .. list[i] end
  end
  local lower = in_other_case(name, module)
  if lower then return lower end
  for _, text in ipairs(list) do
    for _, other in ipairs(modules) do
      if other ~= module and is_named(other .. "." .. text) then return other .. "." .. text end
    end
  end
end

-- A name without what frameworks spell in their own ways: "MaxPooling2D" and "MaxPool2d" have one form, "MNIST" and "MnistDataset" too.
local function form_of(name)
  name = name:lower():gsub("_", ""):gsub("normalization", "norm"):gsub("pooling", "pool"):gsub("average", "avg"):gsub("optimizer$", "")
  return (name:gsub("dataset$", ""):gsub("loss$", ""):gsub("layer$", ""):gsub("sampler$", ""):gsub("initializer$", ""))
end

local by_form
--- "ms.nn.MaxPool2d" for a name that another framework spells in its own way, or nil.
function foreign.spelt(name)
  if not by_form then
    by_form = {}
    for known, entry in pairs(require "lunaria.help.entries".names()) do
      if known:find "^ms%." and not known:find "^ms%.federated%." and not known:find "^ms%.armour%." and (entry.kind == "class" or entry.kind == "operator" or entry.kind == "function") then
        local form = form_of(known:match "[%w_]+$")
        local other = by_form[form]
        if not other or #known < #other or #known == #other and known < other then by_form[form] = known end
      end
    end
  end
  return #name > 2 and by_form[form_of((name:gsub("^Lazy", "")))] or nil
end

-- In which words names are compared; words of no meaning are left out.
local common = { of = true, get = true, set = true, is = true, to = true, ["in"] = true, create = true, num = true, n = true }
local function parts_of(name)
  local list = {}
  for part in name:gsub("(%l)(%u)", "%1_%2"):lower():gmatch "%a+" do
    if not common[part] then list[#list + 1] = words.stem(part) end
  end
  return list
end

local function shared(a, b)
  local count = 0
  for _, x in ipairs(a) do
    for _, y in ipairs(b) do
      if x == y or #x > 3 and #y > 3 and (x:find(y, 1, true) == 1 or y:find(x, 1, true) == 1) then
        count = count + 1
        break
      end
    end
  end
  return count
end

--- Of names at most two that share the most words with one, in the order of their lengths.
function foreign.akin(name, names)
  local own, best, found = parts_of(name), 0, {}
  for _, other in ipairs(names) do
    local theirs = parts_of(other)
    local count = shared(own, theirs)
    local score = count > 0 and count * 10 / (#own + #theirs) or 0
    if score > best then best, found = score, {} end
    if score > 0 and score == best then found[#found + 1] = other end
  end
  table.sort(found, function(a, b) return #a < #b or #a == #b and a < b end)
  return table.move(found, 1, math.min(#found, 2), 1, {})
end

local function did_you_mean(found)
  if not found[1] then return nil end
  return found[2] and ("did you mean '%s' or '%s'?"):format(found[1], found[2]) or ("did you mean '%s'?"):format(found[1])
end

-- The names of a module that has few: "bar, image, line".
local function names_of_module(module)
  local names, value = {}, value_of(module)
  for key in pairs(type(value) == "table" and value or {}) do
    if type(key) == "string" and not key:find "^_" then names[#names + 1] = key end
  end
  table.sort(names)
  return #names > 0 and #names <= 24 and ("%s has %s"):format(module, table.concat(names, ", ")) or nil
end

-- What is spelt nearly so in a module, in any case of its letters.
local function nearest_of_module(name, module)
  local names, ours = {}, {}
  for known in pairs(require "lunaria.help.entries".names()) do
    local last = known:match("^" .. quoted(module) .. "%.([%w_]+)$")
    if last and not ours[last:lower()] then names[#names + 1], ours[last:lower()] = last:lower(), last end
  end
  table.sort(names)
  local near = arguments.nearest(name:lower(), names)
  return near and (near:gsub("'(.-)'", function(lower) return ("'%s'"):format(ours[lower] or lower) end))
end

-- A name with one letter more than a name of a module.
local function without_last_letter(name)
  local best
  for known in pairs(require "lunaria.help.entries".names()) do
    local last = known:match "^ms%.[%w_%.]-%f[%w_]([%w_]+)$"
    if last and #last > 2 and #name == #last + 1 and name:find(last, 1, true) == 1 and is_named(known)
      and (not best or #known < #best or #known == #best and known < best) then
      best = known
    end
  end
  return best and ("did you mean '%s'?"):format(best)
end

--- What is there in place of a name that no rule knows: the names of a module that has few, a name with a letter less, or what the search
--- finds for the words of the name; nil where that is little.
function foreign.similar(name, module)
  if module == "ms.dataset" then
    return "rows of your own: ms.dataset.GeneratorDataset(f, { \"x\", \"y\" }); folders of pictures: ms.dataset.ImageFolderDataset(path)"
  end
  local found = module and module ~= "ms" and names_of_module(module) or without_last_letter(name) or module and nearest_of_module(name, module)
  if found then return found end
  local list, share = require "lunaria.help.search".find((name:gsub("(%l)(%u)", "%1 %2"):gsub("_", " ")), 12)
  local names = {}
  for _, entry in ipairs(list) do
    if #names < 2 and (entry.kind == "guide" or entry.name:find "^x[:.]" or is_named(entry.name)) then names[#names + 1] = entry.name end
  end
  return names[1] and share >= 0.8 and "similar here: " .. table.concat(names, ", ") or nil
end

--- A name that a module lacks: module "ms.nn", name "Linear", the line where it stands.
function foreign.of_module(module, name, line)
  local short = quoted(module:match "[%w_]+$")
  local path = line:match("%f[%w_]" .. short .. "%.(" .. quoted(name) .. "[%w_%.]*)") or name
  local inner = module:match "^ms%.(.*)$"
  local row = inner and (rows_by_name[inner .. "." .. path] or inner == "random" and (rows_by_name["jax.random." .. path] or rows_by_name["np.random." .. path]))
    or foreign.row_of_path(path)
  if row and (row[1]:find(path, 1, true) or not path:find "%.") then return said(row) end
  local last = path:match "[%w_]+$"
  if last ~= name then
    row = row_of_part(last, "%." .. quoted(path) .. "$")
    if row then return said(row) end
    local place = foreign.elsewhere(last, module) or value_of(module .. "." .. last) and module .. "." .. last
    place = place or foreign.spelt(last)
    if place then return ("it is called %s here"):format(place) end
    local similar = foreign.similar(last)
    if similar then return similar end
  end
  row = rows_by_name["torch." .. name] or row or row_of_part(name, inner == "nn" and "^nn%." or nil)
  if row then return said(row) end
  local place = module == "ms.ops" and name:find "^%l" and foreign.spelt(name) or foreign.elsewhere(name, module)
  if place then return (place:lower() == (module .. "." .. name):lower() and "it is spelt %s" or "it is called %s here"):format(place:gsub("^ms%.nn%.", "nn.")) end
  if (module == "ms" or module == "ms.plot") and name:find "^%l" and type(habits[name]) == "string" then return habits[name] end
end

--- An argument that a call lacks; list: the names that it takes, as a text.
function foreign.of_argument(name, list)
  local names = {}
  for known in list:gmatch "[%w_]+" do names[#names + 1] = known end
  local has = {}
  for _, known in ipairs(names) do has[known] = true end
  local row
  for _, other in ipairs(rows_by_part[name] or {}) do
    if not other[1]:find "%." then
      local ours = other[2]
      if has[ours] then return ("it is called %s here%s"):format(ours, other[3]:find "^the same" and "" or ": " .. other[3]) end
      if ours == "" or ours:find "%." then row = row or other end
    end
  end
  if row then return said(row) end
  for _, known in ipairs(names) do
    if #name > 2 and (known:find(name, 1, true) == 1 or #known > 2 and name:find(known, 1, true) == 1) then return ("did you mean '%s'?"):format(known) end
  end
  return did_you_mean(foreign.akin(name, names))
end

--- What a value is: "tensor", "cell", "optimizer", "data set", "model", "text", "table", or another word of messages; nil for nil.
function foreign.kind(value)
  if value == nil then return nil end
  if ms.is_tensor(value) then return "tensor" end
  if type(value) == "string" then return "text" end
  if type(value) ~= "table" then return type(value) end
  if rawget(value, "_is_class") then return "class" end
  local meta = debug.getmetatable(value)
  if meta == nil then return "table" end
  if type(meta) ~= "table" then return nil end
  if rawget(meta, "_name") == "Model" then return "model" end
  return rawget(meta, "_called") or meta._called or rawget(meta, "_name") and "object" or nil
end

--- The value of a variable of a line, or of a field of one, such as "net[1].weight"; nil where it is not known.
function foreign.value(text, variables)
  local root, rest = text:match "^([%a_][%w_]*)(.*)$"
  local value = root and variables[root]
  if root and (value == nil or value == false) then value = rawget(_G, root) end
  for separator, key in (rest or ""):gmatch "([%.%[])[\"']?([%w_]+)" do
    if value == nil then return nil end
    if separator == "[" then key = math.tointeger(tonumber(key)) or key end
    local found, field = pcall(function() return value[key] end)
    value = found and field or nil
  end
  return value
end

--- The value before ".name" or ":name" in a line, and how it is written.
function foreign.receiver(name, line, variables)
  for text in line:gmatch("([%a_][%w_%.%[%]\"']*)%s*[%.:]%s*" .. quoted(name) .. "%f[^%w_]") do
    local value = foreign.value(text, variables)
    if value ~= nil then return value, text end
  end
end

-- The names of the methods and fields of an object, without those that are its class's own affair.
local function names_of(value)
  local seen, list = {}, {}
  local function take(t)
    for key in pairs(t) do
      if type(key) == "string" and not key:find "^_" and not seen[key] then
        seen[key] = true
        list[#list + 1] = key
      end
    end
  end
  if type(value) == "table" then take(value) end
  local meta, depth = debug.getmetatable(value), 0
  local index = type(meta) == "table" and rawget(meta, "__index")
  while type(index) == "table" and depth < 8 do
    take(index)
    meta, depth = getmetatable(index), depth + 1
    index = type(meta) == "table" and rawget(meta, "__index") or nil
  end
  if type(meta) == "table" and type(index) == "function" then take(meta) end
  table.sort(list)
  return list
end

--- The fields of a plain table, for one that it lacks; nil where there are none or many.
function foreign.fields(value, text, name)
  if foreign.kind(value) ~= "table" then return nil end
  local names = {}
  for key in pairs(value) do
    if type(key) == "string" then names[#names + 1] = key end
  end
  table.sort(names)
  return #name > 2 and arguments.nearest(name, names) or #names > 0 and #names < 9 and ("%s has the fields %s"):format(text, table.concat(names, ", ")) or nil
end

local beginnings_of = {
  tensor = { "x.", "ndarray.", "Tensor.", "torch.Tensor.", "model." }, cell = { "model.", "layer.", "nn." },
  optimizer = { "optimizer.", "scheduler.", "model." }, model = { "model.", "optimizer." }, ["data set"] = { "dataset.", "tf.data.Dataset." },
}
local unknown, unknown_optimizer = { "model.", "optimizer." }, { "optimizer.", "model." }

--- A method or field that an object lacks; kind: of the object, or nil where it is not known, and only the line tells.
function foreign.of_object(name, value, kind, text, line)
  if kind == "table" or kind == "text" then
    local habit = habits[name]
    if habit then return habit end
    local found, field = pcall(function() return ms.tensor(0.0)[name] end)
    if kind == "table" and found and field ~= nil then return ("a table is no tensor: ms.tensor(%s) makes one of it"):format(text) end
    return nil
  end
  local optimizer = kind == nil and line:find("[Oo]pt[%w_]*[:%.]" .. quoted(name))
  for _, beginning in ipairs(beginnings_of[kind] or optimizer and unknown_optimizer or unknown) do
    local row = rows_by_name[beginning .. name]
    if row and not (name == "size" and kind ~= "tensor") then return said(row) end
  end
  if kind == nil then
    local row = not habits[name] and (rows_by_name["x." .. name] or rows_by_name["dataset." .. name])
    return row and said(row) or nil
  end
  local own = (habits.of_kind[kind] or {})[name]
  if own then return own end
  local names = names_of(value)
  local near = arguments.nearest(name, names) or did_you_mean(foreign.akin(name, names))
  if near then return near end
  if kind == "cell" and foreign.is_operator(name) then return ("it is an operator of the output: ops.%s(%s(x))"):format(name, text) end
  local shown = {}
  for key, field in pairs(type(value) == "table" and value or {}) do
    if type(key) == "string" and not key:find "^_" and (foreign.kind(field) == "cell" or foreign.kind(field) == "tensor") then shown[#shown + 1] = key end
  end
  table.sort(shown)
  if kind == "cell" and #shown > 0 and #shown < 9 then return ("%s has the fields %s"):format(text, table.concat(shown, ", ")) end
  if kind == "cell" and type(value) == "table" and value[1] then return ("its layers are %s[1], %s[2] ..."):format(text, text) end
end

return foreign
