-- Random chains of operators, written from the entries of the registry: an operator's samples say what it takes, sizes and
-- dtypes are varied from there. A chain is tried as it is written, so that most of its steps run; some raise.
--
--   chain = {
--     inputs = { input },   input = { name, value (a tensor or a number), other (what a second call passes for it) }
--     steps = { step },     step = { text with the names of what it uses, names of its results, names that it uses }
--     returned = { names },
--     random = whether it draws numbers }
local ms = require "lunaria"
local Maker = require "programs.maker"
local parse_sample = require "programs.sample"
local ops = ms.ops

local Chain = {}
Chain.__index = Chain

local ALL = { "float32", "float64", "float16", "bfloat16", "int8", "int16", "int32", "int64", "uint8",
  "uint16", "uint32", "uint64", "bool" }
local LARGEST = { int8 = 127, int16 = 32767, int32 = 2147483647, int64 = math.maxinteger, uint8 = 255, uint16 = 65535,
  uint32 = 4294967295, uint64 = math.maxinteger }
local SPECIAL = { 0.0, -0.0, 1.0, -1.0, math.huge, -math.huge, 0 / 0, 65504.0, 1e-8, 3e38, -1e30, 0.5 }
local NUMBERS = { "0", "1", "-1", "2", "3", "0.5", "-2.5", "3.7", "256", "65536", "1e-5", "-0.0", "1e30", "math.huge", "1 << 40",
  "0 / 0" }
local TENSORS = { same = true, float = true, tensor = true, index = true, mask = true }

-- Operators that are not for chains: uninitialised memory has no value to compare.
local LEFT_OUT = { empty = true, empty_like = true, new_empty = true }

local function is_float(dtype) return dtype:find("float", 1, true) ~= nil end
local function has_sign(dtype) return dtype:sub(1, 1) ~= "u" end

-- All operators, and those whose operands all have one dtype: what compiled loops are made of.
local entries, uniform
local function operators(which)
  if entries then return which == "uniform" and uniform or entries end
  entries, uniform = {}, {}
  for _, entry in ipairs(require("lunaria.registry").entries()) do
    if entry.effect ~= "state" and not LEFT_OUT[entry.name] then
      local samples = {}
      for _, text in ipairs(entry.samples) do
        local parsed = parse_sample(text, entry)
        if parsed then samples[#samples + 1] = parsed end
      end
      entry.samples = samples
      if #samples > 0 then
        entries[#entries + 1] = entry
        local same = #entry.parameters > 0
        for _, parameter in ipairs(entry.parameters) do
          local kind = parameter.type
          if kind == "tensor" or kind == "index" or kind == "mask" or kind == "tensors" then same = false end
        end
        if same then uniform[#uniform + 1] = entry end
      end
    end
  end
  return operators(which)
end

local function new(seed)
  local self = setmetatable({}, Chain)
  self.random = Maker.new(seed, {})
  self.chain = { inputs = {}, steps = {}, returned = {}, random = false }
  self.values = {} -- by name: what it holds
  self.pool = {} -- names of tensors
  -- Most tensors that come in have this dtype where the sample has a float.
  self.dtype = self.random:weighted { { 9, "float32" }, { 3, "float16" }, { 3, "bfloat16" }, { 2, "float64" }, { 1, "int32" },
    { 1, "int8" }, { 1, "int64" }, { 1, "uint8" }, { 1, "bool" }, { 1, "uint16" }, { 1, "uint32" }, { 1, "uint64" } }
  return self
end

local function size_of(shape)
  local n = 1
  for _, d in ipairs(shape) do n = n * d end
  return n
end

local function shape_of(tensor)
  local shape = {}
  for i = 1, #tensor.shape do shape[i] = tensor.shape[i] end
  return shape
end

-- One element. `style`: "plain", "small" (ties, zeros) or "special".
function Chain:element(dtype, low, high, style)
  local r = self.random
  if dtype == "bool" then return r:chance(0.5) end
  local function fraction() return r:between(0, 1000003) / 1000004 end
  if style == "special" and is_float(dtype) and r:chance(0.4) then return r:pick(SPECIAL) end
  if style == "special" and LARGEST[dtype] and r:chance(0.3) then
    local top = LARGEST[dtype]
    return r:pick { top, has_sign(dtype) and -top - 1 or 0, 0, 1 }
  end
  if style == "small" and not low then return is_float(dtype) and r:between(-2, 2) + 0.0 or r:between(has_sign(dtype) and -2 or 0, 2) end
  if low then
    local x = low + (high - low) * fraction()
    if is_float(dtype) then return x end
    local top = LARGEST[dtype]
    return math.max(has_sign(dtype) and -top or 0, math.min(math.floor(x), top))
  end
  if is_float(dtype) then return (fraction() + fraction() + fraction() - 1.5) * 2 end
  return r:between(has_sign(dtype) and -10 or 0, 9)
end

function Chain:tensor(dtype, shape, low, high)
  local style = self.random:weighted { { 14, "plain" }, { 4, "small" }, { low and 1 or 3, "special" } }
  if dtype == "complex64" or dtype == "complex128" then
    local pairs_of = { table.unpack(shape) }
    pairs_of[#pairs_of + 1] = 2
    return ops.view_as_complex(self:tensor(dtype == "complex64" and "float32" or "float64", pairs_of))
  end
  local list = {}
  for i = 1, size_of(shape) do list[i] = self:element(dtype, low, high, style) end
  if #list == 0 then return ops.zeros(shape, ms[dtype]) end
  return ms.tensor(list, ms[dtype]):reshape(shape)
end

function Chain:input(dtype, shape, low, high)
  local name = "a" .. #self.chain.inputs + 1
  local input = { name = name, value = self:tensor(dtype, shape, low, high), other = self:tensor(dtype, shape, low, high) }
  self.chain.inputs[#self.chain.inputs + 1] = input
  self.values[name] = input.value
  return name
end

-- A number operand: a literal, or an argument of the function.
function Chain:number()
  local text = self.random:pick(NUMBERS)
  if self.random:chance(0.75) then return text end
  local name, value = "a" .. #self.chain.inputs + 1, load("return " .. text)()
  self.chain.inputs[#self.chain.inputs + 1] = { name = name, value = value, other = value }
  self.values[name] = value
  return name
end

local function rank_fits(tensor, template)
  return #tensor.shape == #template.shape and is_float(tostring(tensor.dtype):lower()) == is_float(template.dtype)
end

-- The sizes of the sample, each replaced by one of our own everywhere.
function Chain:resize(sizes, shape)
  local result = {}
  for i, d in ipairs(shape) do result[i] = sizes[d] or d end
  return result
end

-- What stands for the operands of a sample: texts, and whether a variable is among them.
function Chain:operands(entry, sample)
  local r = self.random
  local sizes = {}
  local swapped = r:weighted { { 8, self.dtype }, { 1, "float32" }, { 1, r:pick(ALL) } }
  local function note_sizes(template, tensor)
    for i, d in ipairs(template.shape) do sizes[d] = sizes[d] or tensor.shape[i] end
  end
  local function vary_sizes(template)
    for _, d in ipairs(template.shape) do
      if not sizes[d] then sizes[d] = r:weighted { { 14, d }, { 2, 1 }, { 2, 0 }, { 2, r:between(1, 6) } } end
    end
  end
  local varied = r:chance(0.3)
  local function operand(template, parameter, first)
    local kind = parameter.type
    local free = kind == "same" or kind == "float" or kind == "tensor"
    if free and not template.text and #self.pool > 0 and r:chance(first and 0.75 or 0.4) then
      local fitting = {}
      for _, name in ipairs(self.pool) do
        if rank_fits(self.values[name], template) then fitting[#fitting + 1] = name end
      end
      local name = #fitting > 0 and r:chance(0.85) and r:pick(fitting) or r:chance(0.3) and r:pick(self.pool) or nil
      if name then
        if #self.values[name].shape == #template.shape then note_sizes(template, self.values[name]) end
        return name
      end
    end
    if template.text then return template.text end
    if not first and (kind == "same" or kind == "float") and r:chance(0.15) then
      return self:number()
    end
    if varied then vary_sizes(template) end
    local own = template.dtype
    if free and is_float(own) then own = swapped end
    return self:input(own, self:resize(sizes, template.shape), template.low, template.high)
  end
  local texts, first = {}, true
  for i, argument in ipairs(sample) do
    local value, parameter = argument.value, argument.parameter
    if TENSORS[parameter.type] then
      texts[i] = operand(value, parameter, first)
      first = false
    elseif parameter.type == "tensors" then
      local list = {}
      for k, item in ipairs(value.list) do list[k] = operand(item, parameter, first) end
      first = false
      texts[i] = "{ " .. table.concat(list, ", ") .. " }"
    else
      local function plain(v)
        if v.text then return v.text end
        if v.dtype then return self:input(v.dtype, v.shape, v.low, v.high) end
        local list = {}
        for k, item in ipairs(v.list) do list[k] = plain(item) end
        return "{" .. table.concat(list, ", ") .. "}"
      end
      texts[i] = plain(value)
    end
  end
  return texts
end

local function by_name(name, text)
  if name == "end" then return "[\"end\"] = " .. text end
  return name .. " = " .. text
end

-- A call of an operator: by position, with attributes in a trailing table, all by name, or as a method.
function Chain:call(entry, sample, texts)
  local r = self.random
  local style = r:weighted { { 8, "position" }, { 6, "attributes" }, { 3, "names" }, { entry.method and 4 or 0, "method" } }
  local given, in_order = {}, true
  for i, argument in ipairs(sample) do
    given[i] = argument.parameter.name
    if entry.parameters[i] ~= argument.parameter or argument.parameter.by_name_only then in_order = false end
  end
  if style == "names" and #sample > 0 then
    local parts = {}
    for i, name in ipairs(given) do parts[i] = by_name(name, texts[i]) end
    return ("ops.%s { %s }"):format(entry.name, table.concat(parts, ", "))
  end
  local positional, named = {}, {}
  for i, argument in ipairs(sample) do
    local tensor = TENSORS[argument.parameter.type] or argument.parameter.type == "tensors"
    local place = entry.parameters[#positional + 1] == argument.parameter and not argument.parameter.by_name_only
    if #named == 0 and place and (tensor or in_order and style ~= "attributes") then
      positional[#positional + 1] = texts[i]
    else
      named[#named + 1] = by_name(given[i], texts[i])
    end
  end
  if #named > 0 then positional[#positional + 1] = "{ " .. table.concat(named, ", ") .. " }" end
  if style == "method" and texts[1] and texts[1]:find "^[av]%d+$" then
    return ("%s:%s(%s)"):format(texts[1], entry.name, table.concat(positional, ", ", 2))
  end
  return ("ops.%s(%s)"):format(entry.name, table.concat(positional, ", "))
end

local SIGNS = { "+", "-", "*", "/", "//", "%", "^", "&", "|", "~" }
local VIEWS = { "%s.T", "%s:reshape(-1)", "%s[\"::2\"]", "%s[\"1:\"]", "%s[\"..., ::-1\"]", "%s[0]", "%s[-1]", "%s[{ ms.slice(0, 1) }]",
  "%s:expand_dims(0)", "%s:contiguous()", "%s[\"None, ...\"]", "%s:swapaxes(0, -1)", "%s[\"..., 0\"]", "%s:squeeze()" }

function Chain:sign()
  local r = self.random
  local a = r:pick(self.pool)
  if r:chance(0.1) then return (r:chance(0.7) and "-" or "~") .. a end
  local sign = r:weighted { { 8, "arithmetic" }, { 1, "any" } } == "any" and r:pick(SIGNS) or SIGNS[r:between(1, 7)]
  local number = r:chance(0.5)
  local other = number and self:number() or r:pick(self.pool)
  local left, right = "(" .. other .. ")", a
  if r:chance(0.6) then left, right = a, "(" .. other .. ")" end
  return left .. " " .. sign .. " " .. right
end

function Chain:view()
  local r = self.random
  local a = r:pick(self.pool)
  if r:chance(0.3) then return a .. ":astype(ms." .. r:pick(ALL) .. ")" end
  return r:pick(VIEWS):format(a)
end

local function names_in(text)
  local names, seen = {}, {}
  for name in text:gmatch "%f[%w_][av]%d+%f[^%w_]" do
    if not seen[name] then names[#names + 1], seen[name] = name, true end
  end
  return names
end

-- Runs one step on what is known. True and the results, or false and the message.
local function try(text, values)
  local names = names_in(text)
  local arguments = {}
  for i, name in ipairs(names) do arguments[i] = values[name] end
  local source = ("local ms, ops = ...\nreturn function(%s) return %s end"):format(table.concat(names, ", "), text)
  local f = assert(load(source, "=chain"))(ms, ops)
  return table.pack(pcall(f, table.unpack(arguments, 1, #names)))
end

local MOST_ELEMENTS = 600

-- A step that runs, or rarely one that raises; nil when what was tried does not.
function Chain:step()
  local r, chain = self.random, self.chain
  local inputs = #chain.inputs
  local text, draws
  local kind = #self.pool == 0 and "call" or r:weighted { { 12, "call" }, { 6, "sign" }, { 3, "view" } }
  if kind == "call" then
    local entry = r:pick(operators(r:chance(0.4) and "uniform" or "all"))
    local sample = r:pick(entry.samples)
    text = self:call(entry, sample, self:operands(entry, sample))
    draws = entry.effect == "random"
  else
    text = kind == "sign" and self:sign() or self:view()
  end
  ms.set_seed(1)
  local results = try(text, self.values)
  local function undo()
    for i = #chain.inputs, inputs + 1, -1 do
      self.values[chain.inputs[i].name] = nil
      chain.inputs[i] = nil
    end
  end
  if not results[1] and not r:chance(0.02) then return undo() end
  local outputs = {}
  for i = 2, results.n do
    local value = results[i]
    if ms.is_tensor(value) and value.size > MOST_ELEMENTS then return undo() end
    outputs[i - 1] = value
  end
  local step = { text = text, results = {}, uses = names_in(text) }
  for i = inputs + 1, #chain.inputs do
    if ms.is_tensor(chain.inputs[i].value) then self.pool[#self.pool + 1] = chain.inputs[i].name end
  end
  self.serial = self.serial or 0
  for i = 1, math.max(results.n - 1, 1) do
    self.serial = self.serial + 1
    local name = "v" .. self.serial
    step.results[i] = name
    self.values[name] = outputs[i]
    if ms.is_tensor(outputs[i]) then
      -- What comes out is more likely to be used next than what went in.
      self.pool[#self.pool + 1] = name
      self.pool[#self.pool + 1] = name
    end
  end
  chain.steps[#chain.steps + 1] = step
  chain.random = chain.random or draws
  if not results[1] then chain.raises = true end
  return step
end

--- A chain of at most `most` steps; the same for the same seed.
function Chain.make(seed, most)
  local self = new(seed)
  local r, chain = self.random, self.chain
  local wanted = r:between(1, most)
  for _ = 1, 40 do
    if #chain.steps == wanted or chain.raises then break end
    self:step()
  end
  -- Some results are not used; the last one mostly is.
  for i, step in ipairs(chain.steps) do
    for _, name in ipairs(step.results) do
      if r:chance(i == #chain.steps and 0.9 or 0.25) then chain.returned[#chain.returned + 1] = name end
    end
  end
  return chain
end

--- The chain's function as text: a chunk that takes ms and gives it. With `after`, a function that the chunk takes as well is
--- applied to each result of a step.
function Chain.source(chain, after)
  local names, lines = {}, {}
  for i, input in ipairs(chain.inputs) do names[i] = input.name end
  for _, step in ipairs(chain.steps) do
    lines[#lines + 1] = ("  local %s = %s"):format(table.concat(step.results, ", "), step.text)
    for _, name in ipairs(after and step.results or {}) do lines[#lines + 1] = ("  %s = after(%s)"):format(name, name) end
  end
  return ("local ms, after = ...\nlocal ops = ms.ops\nreturn function(%s)\n%s\n  return %s\nend"):format(table.concat(names, ", "),
    table.concat(lines, "\n"), table.concat(chain.returned, ", "))
end

--- The chain's function; with `after` each result of a step is what that makes of it.
function Chain.compile(chain, after) return assert(load(Chain.source(chain, after), "=chain"))(ms, after) end

--- The dtypes of all tensors in the chain, as the keys of a table.
function Chain.dtypes(chain)
  local found, values = {}, {}
  local function note(name, value)
    values[name] = value
    if ms.is_tensor(value) then found[tostring(value.dtype):lower()] = true end
  end
  for _, input in ipairs(chain.inputs) do note(input.name, input.value) end
  for _, step in ipairs(chain.steps) do
    local results = try(step.text, values)
    for i, name in ipairs(step.results) do note(name, results[1] and results[i + 1] or nil) end
  end
  return found
end

--- A value as Lua's text.
function Chain.literal(value)
  if math.type(value) == "integer" then return value == math.mininteger and "math.mininteger" or tostring(value) end
  if type(value) == "number" then
    if value ~= value then return "0 / 0" end
    if value == math.huge then return "math.huge" end
    if value == -math.huge then return "-math.huge" end
    return ("%.17g"):format(value):gsub("^(-?%d+)$", "%1.0")
  end
  if not ms.is_tensor(value) then return tostring(value) end
  local dtype = tostring(value.dtype):lower()
  if value.dtype == ms.complex64 or value.dtype == ms.complex128 then
    return "ms.ops.view_as_complex(" .. Chain.literal(ops.view_as_real(value)) .. ")"
  end
  local shape = "{" .. table.concat(shape_of(value), ", ") .. "}"
  if value.size == 0 then return ("ms.ops.zeros(%s, ms.%s)"):format(shape, dtype) end
  local list = value:reshape(-1):tolist()
  for i, x in ipairs(list) do list[i] = Chain.literal(x) end
  return ("ms.tensor({%s}, ms.%s):reshape(%s)"):format(table.concat(list, ", "), dtype, shape)
end

--- A program that runs the chain: what is printed when it fails.
function Chain.program(chain)
  local arguments, others = {}, {}
  for i, input in ipairs(chain.inputs) do
    arguments[i] = "  " .. Chain.literal(input.value)
    others[i] = "  " .. Chain.literal(input.other)
  end
  local function call(list) return #list == 0 and "f()" or "f(\n" .. table.concat(list, ",\n") .. ")" end
  return ("local ms = require \"lunaria\"\nlocal function make(...)\n%s\nend\nlocal f = make(ms)\nprint(%s)\nprint(%s)"):format(
    Chain.source(chain), call(arguments), call(others))
end

--- Shorter chains to try in place of this one: without a result, a step or an input, or with a step's results as inputs.
function Chain.simpler(chain)
  local list = {}
  local function copy()
    local inputs, steps = {}, {}
    for i, input in ipairs(chain.inputs) do inputs[i] = { name = input.name, value = input.value, other = input.other } end
    for i, step in ipairs(chain.steps) do steps[i] = step end
    return { inputs = inputs, steps = steps, returned = { table.unpack(chain.returned) }, random = chain.random }
  end
  local function offer(made)
    -- What nothing uses any more goes too.
    local used = {}
    for _, name in ipairs(made.returned) do used[name] = true end
    for _, step in ipairs(made.steps) do
      for _, name in ipairs(step.uses) do used[name] = true end
    end
    for i = #made.inputs, 1, -1 do
      if not used[made.inputs[i].name] then table.remove(made.inputs, i) end
    end
    list[#list + 1] = made
  end
  local used = {}
  for _, name in ipairs(chain.returned) do used[name] = true end
  for _, step in ipairs(chain.steps) do
    for _, name in ipairs(step.uses) do used[name] = true end
  end
  for i = #chain.steps, 1, -1 do
    local free = true
    for _, name in ipairs(chain.steps[i].results) do free = free and not used[name] end
    if free then
      local made = copy()
      table.remove(made.steps, i)
      offer(made)
    end
  end
  for i = #chain.returned, 1, -1 do
    if #chain.returned > 1 then
      local made = copy()
      table.remove(made.returned, i)
      offer(made)
    end
  end
  -- The first step's results, as inputs.
  local step = chain.steps[1]
  if step and #chain.steps > 1 then
    local function results_for(key)
      local values = {}
      for _, input in ipairs(chain.inputs) do values[input.name] = input[key] end
      ms.set_seed(1)
      return try(step.text, values)
    end
    local first, second = results_for "value", results_for "other"
    local fits = first[1] and second[1]
    for i in ipairs(step.results) do
      local a, b = first[i + 1], second[i + 1]
      fits = fits and ms.is_tensor(a) and ms.is_tensor(b) and tostring(a.shape) == tostring(b.shape)
    end
    if fits then
      local made = copy()
      table.remove(made.steps, 1)
      for i, name in ipairs(step.results) do
        made.inputs[#made.inputs + 1] = { name = name, value = first[i + 1], other = second[i + 1] }
      end
      offer(made)
    end
  end
  return list
end

return Chain
