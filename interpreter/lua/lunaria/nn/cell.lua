-- Cell: what networks and layers are made of. A cell is a table; parameters and cells that are assigned to its fields
-- are registered in that order, so that it knows its parameters, their dotted names and its parts:
--
--     local Net = nn.Cell:extend("Net")
--     function Net:init(hidden)
--       self.fc1 = nn.Dense(784, hidden)
--       self.fc2 = nn.Dense(hidden, 10)
--     end
--     function Net:construct(x)
--       return self.fc2(ms.ops.relu(self.fc1(x)))
--     end
--
-- A class is the metatable of its cells. Fields are plain fields: reading one costs nothing extra, and a field that gets
-- another parameter or cell later is noticed when the cell is next gone through.
local ms = require "lunaria"
local with_own_derivative = require "lunaria.nn.own_derivative"
local arguments = require "lunaria.nn.arguments"
local classes = require "lunaria.nn.class"
local naming = require "lunaria.nn.naming"

local devices = require "lunaria.devices"
local jit = require "lunaria.jit"
local graph_mode = jit.mode
local fail, describe, check = arguments.fail, arguments.describe, arguments.check
local is_parameter, is_tensor = ms.is_parameter, ms.is_tensor

local Cell = { _name = "Cell", _called = "cell" }
Cell.bprop, Cell.training, Cell.requires_grad, Cell._special, Cell._uncompiled, Cell.auto_prefix = false, false, false, false, false, true
Cell._parameters = ""
Cell._doc = [[What networks and layers are made of. A class of your own extends it:

  local Net = nn.Cell:extend("Net")
  function Net:init(hidden)
    self.fc1 = nn.Dense(784, hidden)
    self.fc2 = nn.Dense(hidden, 10)
  end
  function Net:construct(x)
    return self.fc2(ms.ops.relu(self.fc1(x)))
  end
  local net = Net(128)
  local logits = net(images)

Parameters and cells that are assigned to fields are registered: net:trainable_params(), net:parameters_and_names(),
net:set_train(), net:cells_and_names() ... go through them. bprop(self, inputs..., results..., cotangents...) replaces the
cell's derivative. auto_prefix = false leaves the parameters of its parts the names that they have; requires_grad is what
set_grad said.
  > net = ms.nn.Cell:extend("Net")
  > function net:construct(x) return x * 2 end
  > net()(ms.tensor(3.0)):item() --> 6.0]]
Cell.__index = Cell
-- What tells classes of cells from those of metrics, callbacks and the like.
Cell._is_cell = true

local function class_of(value)
  local meta = type(value) == "table" and getmetatable(value)
  return type(meta) == "table" and rawget(meta, "_is_class") and meta._is_cell and meta or nil
end

--- Whether a value is a cell.
local function is_cell(value) return class_of(value) ~= nil end

-- The cell that a value is, or that it is compiled from (ms.jit(cell)); or nil.
local function part_of(value)
  if is_cell(value) then return value end
  local target = jit.is_jit(value) and jit.target(value)
  return target and is_cell(target) and target or nil
end

local function shown_key(key) return math.type(key) and tostring(key - 1) or tostring(key) end

-- Wrappers around a network leave its parameters the names that they have: auto_prefix is false.
local function name_parameters(cell, key, child)
  naming.changed(cell, child)
  if not cell.auto_prefix then return end
  for _, pair in ipairs(naming.parameters(child)) do pair[2].name = shown_key(key) .. "." .. pair[1] end
end

-- Has its construct see the cell in another dtype. What normalisations and state give in float32 goes on in that dtype.
local function see_in_dtype(cell, special)
  local has_state
  special.view, has_state = require "lunaria.nn.casts".view(cell, special.dtype)
  if cell._full_precision or has_state then special.output, special.only_lowered = special.dtype, false end
end

local function register(cell, key, value)
  local known = rawget(cell, "_known")
  if known[key] == nil then
    local order = rawget(cell, "_order")
    order[#order + 1] = key
  end
  known[key] = value
  if is_parameter(value) then
    if value.name == "Parameter" then value.name = shown_key(key) end
    naming.changed(cell)
    local special = cell._special
    if special and special.dtype then see_in_dtype(cell, special) end
  else
    name_parameters(cell, key, part_of(value))
  end
end

-- A field that did not exist so far.
function Cell.__newindex(cell, key, value)
  if is_parameter(value) or part_of(value) then
    register(cell, key, value)
  end
  rawset(cell, key, value)
end

-- Fields that hold a parameter or a cell now, in the order in which they were first assigned.
local function fields(cell)
  local known, list = rawget(cell, "_known"), {}
  for _, key in ipairs(rawget(cell, "_order")) do
    local value = rawget(cell, key)
    local parameter = is_parameter(value)
    local part = parameter and value or part_of(value)
    if part then
      if not rawequal(known[key], value) then
        register(cell, key, value)
      end
      list[#list + 1] = { key = key, value = part, parameter = parameter }
    end
  end
  return list
end

local function compute(cell, ...)
  if cell.bprop and ms.custom_vjp then
    return with_own_derivative(cell, getmetatable(cell)._name, ...)
  end
  return cell:construct(...)
end

-- Most programs need neither: loaded by special_of().
local around, casts, as_float

-- Seen from its own construct or bprop, in the dtype.
local function lowered(special, cell, ...)
  local dtype = special.dtype
  if cell.bprop then return compute(special.view, as_float(dtype, select("#", ...), ...)) end
  local x = ...
  if select("#", ...) == 1 and is_tensor(x) and x.dtype == dtype then return cell.construct(special.view, x) end
  return cell.construct(special.view, as_float(dtype, select("#", ...), ...))
end

local function computed_in(special, cell, ...)
  if not special.dtype then return compute(cell, ...) end
  -- Means over many elements are taken in float32 whatever the inputs are.
  if cell._full_precision then return compute(cell, as_float(ms.float32, select("#", ...), ...)) end
  return lowered(special, cell, ...)
end

-- A hook may replace what it gets by what it gives.
local function hooked(hooks, cell, ...)
  local values = table.pack(...)
  for _, hook in ipairs(hooks) do
    local given = table.pack(hook(cell, table.unpack(values, 1, values.n)))
    if given.n > 0 and given[1] ~= nil then values = given end
  end
  return table.unpack(values, 1, values.n)
end

local function finished(special, cell, ...)
  local output = special.output
  if output then
    if #special.after > 0 then return as_float(output, select("#", ...), hooked(special.after, cell, ...)) end
    return as_float(output, select("#", ...), ...)
  end
  return hooked(special.after, cell, ...)
end

local function again(special, cell, ...) return around.again(computed_in, special, cell, ...) end

local function computed(special, cell, ...)
  if special.inputs then special.inputs(...) end
  local run = special.recompute and again or computed_in
  if #special.backward + #special.backward_pre == 0 then return run(special, cell, ...) end
  return around.hooked(run, special, cell, ...)
end

local function call(cell, ...)
  local special = cell._special
  if special then
    if special.only_lowered then return lowered(special, cell, ...) end
    if #special.before > 0 then return finished(special, cell, computed(special, cell, hooked(special.before, cell, ...))) end
    return finished(special, cell, computed(special, cell, ...))
  end
  return compute(cell, ...)
end

local function special_of(cell)
  if not cell._special then
    if not casts then
      around, casts = require "lunaria.nn.around", require "lunaria.nn.casts"
      as_float = casts.as_float
    end
    rawset(cell, "_special", { before = {}, after = {}, backward = {}, backward_pre = {} })
  end
  return cell._special
end

-- Whether the dtype is all that is special: such a cell is called without a look at the rest. After each change.
local function settle(cell, special)
  local hooks = #special.before + #special.after + #special.backward + #special.backward_pre
  special.only_lowered = special.dtype ~= nil and not cell._full_precision and hooks == 0 and not special.output
    and not special.recompute and not special.inputs
end

-- In graph mode a cell that is called from outside is compiled from its second call on.
local compiled, always = setmetatable({}, { __mode = "k" }), setmetatable({}, { __mode = "k" })

local function compile_with(cell, options)
  compiled[cell] = require "lunaria.graph"._compile(function(...) return call(cell, ...) end, options)
  jit.note_compiled(cell, compiled[cell])
  return cell
end

--- Has the cell compiled when it is called, whatever the mode; options as for ms.jit. Gives the cell back.
---     > ms.nn.ReLU():compile()(ms.tensor { -1.0, 2.0 }):tolist()[2] --> 2.0
function Cell:compile(options)
  if not is_cell(self) then fail("compile", "is called on a cell, as net:compile(), got " .. describe(self)) end
  always[self] = true
  return compile_with(self, options)
end

--- Has graph mode compile the cell with the options of a ms.JitConfig. Gives the cell back. jit_config: it.
---     > ms.nn.Dense(3, 2):set_jit_config(ms.JitConfig { jit_level = "O1" })(ms.ones { 1, 3 }).ndim --> 2
function Cell:set_jit_config(jit_config) return compile_with(self, { jit_config = jit_config }) end

-- How many inputs a construct takes: what is given beyond them would be lost without a word.
local function count_inputs(construct)
  local info = type(construct) == "function" and debug.getinfo(construct, "Su")
  if not info or info.isvararg or info.what == "C" then return math.huge end
  -- Those of the library that take none say why they cannot be called.
  if info.nparams <= 1 and info.source:find "^@lunaria:" then return math.huge end
  return math.max(info.nparams - 1, 0)
end

-- More was given than the construct took when it was looked at last; it may be another one by now.
local function check_inputs(cell, ...)
  local most, given = count_inputs(cell.construct), select("#", ...)
  while given > most and select(given, ...) == nil do given = given - 1 end
  if given <= most then return end
  local name = getmetatable(cell)._name
  if most == 0 then
    fail(name, ("its method construct takes no input, and got %d"):format(given),
      ("a method is defined with a colon: function %s:construct(x) ... end"):format(name))
  end
  fail(name, ("takes %d input%s, got %d"):format(most, most == 1 and "" or "s", given), "they are the arguments of its method construct")
end

local function call_compiled(cell, ...)
  local f = compiled[cell]
  if not f then
    if cell._uncompiled then return call(cell, ...) end
    require "lunaria.graph"
    local class = getmetatable(cell)
    f = jit.make(function(...) return call(cell, ...) end,
      { patience = 1, label = "cell " .. tostring(class and class._name or cell) })
    compiled[cell] = f
    jit.note_compiled(cell, f)
  end
  return f(...)
end

function Cell.__call(cell, ...)
  if not (graph_mode.graph or always[cell]) or jit.inside() then return call(cell, ...) end
  return call_compiled(cell, ...)
end

-- Cell.__call of a construct that takes so many inputs, by their number. The text is written out with a name for each, so
-- that a call neither makes another nor counts what it was given; differentiated code pays most for both.
local counted_text = [[
local graph_mode, always, inside, call, call_compiled, with_more = ...
return function(cell, INPUTS...)
  if (...) ~= nil then return with_more(cell, INPUTS...) end
  if not (graph_mode.graph or always[cell]) or inside() then return call(cellINPUTS) end
  return call_compiled(cellINPUTS)
end]]

-- Where the construct has become another one, it may take what is given.
local function with_more(cell, ...)
  check_inputs(cell, ...)
  return Cell.__call(cell, ...)
end

local counted_calls, is_counted = {}, { [Cell.__call] = true }

local function counted_call(count)
  if not counted_calls[count] then
    local names = {}
    for i = 1, count do names[i] = "x" .. i end
    local list = table.concat(names, ", ")
    local text = counted_text:gsub("INPUTS%.", count > 0 and list .. ", ." or "."):gsub("INPUTS", count > 0 and ", " .. list or "")
    local f = load(text, "@lunaria:lunaria/nn/cell.lua")(graph_mode, always, jit.inside, call, call_compiled, with_more)
    counted_calls[count], is_counted[f] = f, true
  end
  return counted_calls[count]
end

-- When a cell is made: how its class is called from now on.
local function choose_call(class)
  local construct = class.construct
  if rawget(class, "_counted") == construct then return end
  rawset(class, "_counted", construct)
  if not is_counted[rawget(class, "__call")] then return end
  local count = construct ~= Cell.construct and count_inputs(construct) or math.huge
  rawset(class, "__call", count < 100 and counted_call(count) or Cell.__call)
end

-- Adds the text of a cell, whose lines but for the first have a margin, to the pieces. What lies deep in other cells is made once, not
-- once for each level above, and its margin grows no further. outer: the cells that it lies in.
local widest = 200
local function add_text(pieces, cell, margin, outer)
  local function add(text) pieces[#pieces + 1] = text end
  local name = getmetatable(cell)._name
  if outer[cell] then return add(name .. "<...>") end
  outer[cell] = true
  local inner = #margin < widest and margin .. "  " or margin
  local extra, has_parts = cell:extend_repr():gsub("\n", "\n" .. margin), false
  add(name .. "<")
  for _, field in ipairs(fields(cell)) do
    if not field.parameter then
      if not has_parts and extra ~= "" then add("\n" .. inner .. extra) end
      has_parts = true
      add(("\n%s(%s): "):format(inner, shown_key(field.key)))
      if getmetatable(field.value).__tostring == Cell.__tostring then
        add_text(pieces, field.value, inner, outer)
      else
        add((tostring(field.value):gsub("\n", "\n" .. inner)))
      end
    end
  end
  add(has_parts and "\n" .. inner .. ">" or extra .. ">")
  outer[cell] = nil
end

function Cell.__tostring(cell)
  local pieces = {}
  add_text(pieces, cell, "", {})
  return table.concat(pieces)
end

-- What runs when a class is called: a new cell.
local function make_cell(class, ...)
  local strange = rawget(class, "__init") and "__init" or rawget(class, "__init__") and "__init__"
  if strange then
    fail(class._name, ("has a method %s, which nothing calls"):format(strange),
      ("the method is called init: function %s:init(...) ... end"):format(class._name))
  end
  choose_call(class)
  local cell = setmetatable({ _order = {}, _known = {} }, class)
  cell:init(...)
  return cell
end
classes.make_class(Cell, nil, make_cell)

--- A class of cells of your own, which inherits from this one: local Net = nn.Cell:extend("Net"). Its method
--- init(self, ...) gets the arguments of Net(...), construct(self, ...) those of a call of the cell.
---     > tostring(ms.nn.Cell:extend("Net")) --> class Net(...)
function Cell:extend(name) return classes.extend(self, name, "nn.Cell:extend(\"Net\")") end

--- Called with the arguments of the class to set up a new cell; yours overrides it.
function Cell:init() end

--- What a cell computes; every class and every cell has its own.
---     > ms.nn.ReLU():construct(ms.tensor { -1.0, 2.0 }):tolist()[2] --> 2.0
function Cell:construct()
  local hint = "define it: function net:construct(x) return ... end"
  if self.forward then hint = "its method forward is called construct here: function net:construct(x) return ... end" end
  fail(getmetatable(self)._name, "has no construct method", hint)
end

--- What stands between the brackets when a cell is printed, beside its parts.
---     > ms.nn.Dropout({ p = 0.1 }):extend_repr() --> p=0.1
function Cell:extend_repr() return "" end

-- Cells with their paths, this one first, each cell once.
local function walk(cell, path, seen, visit)
  if seen[cell] then return end
  seen[cell] = true
  local list = fields(cell)
  visit(path, cell, list)
  for _, field in ipairs(list) do
    if not field.parameter then
      walk(field.value, path .. shown_key(field.key) .. ".", seen, visit)
    end
  end
end

local function named_parameters(cell)
  local list, seen = {}, {}
  walk(cell, "", {}, function(path, _, own)
    for _, field in ipairs(own) do
      if field.parameter and not seen[field.value] then
        seen[field.value] = true
        list[#list + 1] = { path .. shown_key(field.key), field.value }
      end
    end
  end)
  return list
end

naming.of.fields, naming.of.named_parameters, naming.of.shown_key = fields, named_parameters, shown_key

local function iterate(list)
  local i = 0
  return function()
    i = i + 1
    if list[i] then
      return list[i][1], list[i][2]
    end
  end
end

--- Parameters with their names, for a loop: for name, parameter in net:parameters_and_names() do ... end
---     > for name, p in ms.nn.Dense(2, 3):parameters_and_names() do print(name, p.shape) end --> weight	(3, 2)\nbias	(3,)
function Cell:parameters_and_names() return iterate(named_parameters(self)) end

--- A list of all parameters: those of the cell itself, then those of its parts.
---     > #ms.nn.Dense(2, 3):get_parameters() --> 2
function Cell:get_parameters()
  local list = {}
  for i, pair in ipairs(named_parameters(self)) do
    list[i] = pair[2]
  end
  return list
end

--- A table from names to parameters.
---     > ms.nn.Dense(2, 3):parameters_dict().weight.shape --> (3, 2)
function Cell:parameters_dict()
  local dictionary = {}
  for _, parameter in ipairs(self:get_parameters()) do
    dictionary[parameter.name] = parameter
  end
  return dictionary
end

local function filtered(cell, wanted)
  local list = {}
  for _, pair in ipairs(named_parameters(cell)) do
    if pair[2].requires_grad == wanted then
      list[#list + 1] = pair[2]
    end
  end
  return list
end

--- A list of the parameters that are trained (requires_grad is true).
---     > #ms.nn.Dense(2, 3):trainable_params() --> 2
function Cell:trainable_params()
  naming.warn_of_overlooked(self)
  return filtered(self, true)
end

--- A list of the parameters that are not trained.
---     > #ms.nn.Dense(2, 3):requires_grad_(false):untrainable_params() --> 2
function Cell:untrainable_params() return filtered(self, false) end

--- A list of the cells in this one's fields.
---     > #ms.nn.SequentialCell(ms.nn.Dense(2, 3), ms.nn.ReLU()):cells() --> 2
function Cell:cells()
  local list = {}
  for _, field in ipairs(fields(self)) do
    if not field.parameter then
      list[#list + 1] = field.value
    end
  end
  return list
end

--- A table from the names of this cell's fields to the cells in them.
---     > ms.nn.SequentialCell(ms.nn.ReLU()):name_cells()["0"] --> ReLU<>
function Cell:name_cells()
  local names = {}
  for _, field in ipairs(fields(self)) do
    if not field.parameter then
      names[shown_key(field.key)] = field.value
    end
  end
  return names
end

--- All cells below this one and itself with their names, for a loop: for name, cell in net:cells_and_names() do ... end
---     > for name, cell in ms.nn.SequentialCell(ms.nn.Dense(2, 3)):cells_and_names() do print(name, #cell:cells()) end --> 	1\n0	0
function Cell:cells_and_names()
  local list = {}
  walk(self, "", {}, function(path, cell)
    list[#list + 1] = { path:sub(1, -2), cell }
  end)
  return iterate(list)
end

--- Switches this cell and all below it to training (dropout is active, batch statistics are used) or, with false, back
--- to evaluation. Gives the cell back.
---     > ms.nn.Dropout({ p = 0.5 }):set_train(false)(ms.ones { 2 }):sum():item() --> 2.0
function Cell:set_train(mode)
  mode = arguments.named("set_train", { "mode" }, mode)
  if mode == nil then
    mode = true
  end
  check.boolean("set_train", "mode", mode)
  walk(self, "", {}, function(_, cell)
    rawset(cell, "training", mode)
  end)
  return self
end

--- Says whether gradients of the cell are wanted, which its field requires_grad keeps; here for programs written for
--- MindSpore, grad does not need it.
---     > ms.nn.ReLU():set_grad() --> ReLU<>
function Cell:set_grad(requires_grad)
  self.requires_grad = requires_grad ~= false
  return self
end

local function float_type(where, dtype)
  local names = require "lunaria.nn.casts".float_names
  local name = tostring(dtype)
  if not names[name] then
    for known in pairs(names) do
      if known:lower() == name then return ms[name] end
    end
    fail(where, "dst_type must be ms.float16, ms.bfloat16, ms.float32 or ms.float64, got " .. describe(dtype))
  end
  return dtype
end

--- This cell and all below it compute in another dtype: floating inputs and parameters are cast when they are used, the
--- parameters themselves stay as they are. Batch normalisation goes on in float32, and so do parameters to which the cell's own
--- methods write, as self.count:assign(...) does: they are its state. Gives the cell back. dst_type: the dtype.
---     > ms.nn.Dense(3, 2):to_float(ms.float16)(ms.ones { 1, 3 }).dtype --> Float16
function Cell:to_float(dst_type)
  dst_type = float_type("to_float", dst_type)
  walk(self, "", {}, function(_, cell)
    local special = special_of(cell)
    special.dtype = dst_type
    see_in_dtype(cell, special)
    settle(cell, special)
  end)
  return self
end

-- The cell's results are cast to dtype.
local function cast_output(cell, dtype)
  local special = special_of(cell)
  special.output = dtype
  settle(cell, special)
end

local function add_hook(where, cell, list, hook)
  if not arguments.is_callable(hook) then fail(where, "hook_fn must be a function, got " .. describe(hook)) end
  local special = special_of(cell)
  local hooks = special[list]
  hooks[#hooks + 1] = hook
  settle(cell, special)
  local handle = {}
  --- Takes the hook away again.
  function handle.remove()
    for i, other in ipairs(hooks) do
      if other == hook then
        table.remove(hooks, i)
        return settle(cell, special)
      end
    end
  end
  return handle
end

--- Calls hook_fn(cell, inputs...) before each call of the cell; what it gives replaces the inputs. Gives a handle, whose
--- remove() takes the hook away.
---     > cell = ms.nn.ReLU()
---     > handle = cell:register_forward_pre_hook(function(_, x) return -x end)
---     > cell(ms.tensor { -2.0 }):tolist()[1] --> 2.0
function Cell:register_forward_pre_hook(hook_fn) return add_hook("register_forward_pre_hook", self, "before", hook_fn) end

--- Calls hook_fn(cell, outputs...) after each call of the cell; what it gives replaces the outputs. Gives a handle, whose
--- remove() takes the hook away.
---     > cell = ms.nn.ReLU()
---     > handle = cell:register_forward_hook(function(_, y) return y + 1 end)
---     > cell(ms.tensor { -2.0 }):tolist()[1] --> 1.0
function Cell:register_forward_hook(hook_fn) return add_hook("register_forward_hook", self, "after", hook_fn) end

--- Calls hook_fn(cell, grad_output) when a gradient comes to the cell's results; grad_output is a list with one for each
--- floating tensor among them, and what the hook gives replaces it. Gives a handle, whose remove() takes the hook away.
function Cell:register_backward_pre_hook(hook_fn) return add_hook("register_backward_pre_hook", self, "backward_pre", hook_fn) end

--- Calls hook_fn(cell, grad_input, grad_output) when gradients leave the cell for its inputs; both are lists with one for
--- each floating tensor, and what the hook gives, a list or one tensor, replaces grad_input. Where no gradient of the inputs
--- is taken, as of data, it is not called. Gives a handle, whose remove() takes the hook away.
function Cell:register_backward_hook(hook_fn) return add_hook("register_backward_hook", self, "backward", hook_fn) end

--- Has the values between the cell's inputs and results computed again for the gradient instead of kept, which takes less
--- memory and more time; with false, no more. Gives the cell back.
function Cell:recompute(mode)
  mode = arguments.named("recompute", { "mode" }, mode)
  if mode == nil then mode = true end
  local special = special_of(self)
  special.recompute = check.boolean("recompute", "mode", mode)
  settle(self, special)
  return self
end

--- Has what a training cell keeps on another device for its gradient, or an optimizer from step to step, wait in host memory meanwhile;
--- with false, no more.
---     > ms.nn.Dense(2, 3):offload()(ms.ones { 1, 2 }).shape --> (1, 3)
function Cell:offload(mode) return require "lunaria.nn.offload".set(self, mode) end

--- Says what the inputs of the cell are: tensors, or tables {shape = {-1, 3}, dtype = ms.float32} where a size may be any (-1).
--- Calls with other sizes or dtypes are errors from then on; without arguments all are allowed again. Gives the cell back.
function Cell:set_inputs(...)
  local special = special_of(self)
  special.inputs = around.expected_inputs(getmetatable(self)._name, ...)
  settle(self, special)
  rawset(self, "_inputs", { ... })
  return self
end

--- What set_inputs said, one value for each input.
function Cell:get_inputs() return table.unpack(rawget(self, "_inputs") or {}) end

--- Lays the inputs, results and parameters of the cell out on ranks. in_strategy: a table with a layout for each input, or a table with
--- the number of parts along each axis. out_strategy: the same for the results, or nil. parameter_plan: layouts of parameters by their
--- names; all others are whole on every rank. Gives the cell back.
---     > mesh = ms.mesh({ 2 }, { "dp" })
---     > ms.nn.Dense(3, 2):shard({ mesh("dp") })(ms.zeros { 4, 3 }).layout --> [4@dp, 2]
function Cell:shard(in_strategy, out_strategy, parameter_plan)
  return require "lunaria.parallel.shard".shard_cell(self, in_strategy, out_strategy, parameter_plan)
end

--- Calls f with every cell below this one, then with this one. Gives the cell back.
---     > #ms.nn.SequentialCell(ms.nn.ReLU()):apply(function(cell) print(#cell:cells()) end):cells() --> 0\n1\n1
function Cell:apply(f)
  if not arguments.is_callable(f) then fail("apply", "f must be a function of a cell, got " .. describe(f)) end
  local list = {}
  walk(self, "", {}, function(_, cell)
    table.insert(list, 1, cell)
  end)
  for _, cell in ipairs(list) do
    f(cell)
  end
  return self
end

local function insert(cell, where, kind, is_kind, name, value)
  if type(name) ~= "string" or name == "" then
    fail(where, kind .. "_name must be a string that is not empty, got " .. describe(name))
  elseif not is_kind(value) then
    fail(where, (kind == "param" and "param must be a parameter, got " or "child_cell must be a cell, got ") .. describe(value))
  end
  register(cell, name, value)
  rawset(cell, name, value)
end

--- Registers a parameter under a name, which may have dots.
---     > net = ms.nn.Cell:extend("Net")()
---     > net:insert_param_to_cell("w", ms.Parameter(ms.ones { 2 }))
---     > #net:get_parameters() --> 1
function Cell:insert_param_to_cell(name, parameter)
  insert(self, "insert_param_to_cell", "param", is_parameter, name, parameter)
end

--- Registers a cell under a name.
---     > (function() local net = ms.nn.Cell:extend("Net")() net:insert_child_to_cell("act", ms.nn.ReLU()) return #net:cells() end)() --> 1
function Cell:insert_child_to_cell(name, child) insert(self, "insert_child_to_cell", "child", part_of, name, child) end

--- Puts a prefix in front of the names of all parameters.
---     > (function() local net = ms.nn.Dense(2, 3) net:update_parameters_name("head.") return net.weight.name end)() --> head.weight
function Cell:update_parameters_name(prefix)
  prefix = arguments.named("update_parameters_name", { "prefix" }, prefix)
  if prefix ~= nil and type(prefix) ~= "string" then fail("update_parameters_name", "prefix must be a string, got " .. describe(prefix)) end
  for path, parameter in self:parameters_and_names() do
    parameter.name = (prefix or "") .. path
  end
end

--- Says for all parameters of the cell whether they are trained.
---     > #ms.nn.Dense(2, 3):requires_grad_(false):trainable_params() --> 0
function Cell:requires_grad_(mode)
  for _, parameter in ipairs(self:get_parameters()) do
    parameter.requires_grad = mode ~= false
  end
  return self
end

--- Moves all parameters to a device, and gives the cell back. device: its name.
---     > ms.nn.Dense(3, 2):to("CPU").weight.device --> CPU
function Cell:to(device)
  for _, parameter in ipairs(self:get_parameters()) do
    devices.move(parameter, device)
  end
  return self
end

return { Cell = Cell, layer = classes.define, is_cell = is_cell, class_of = class_of, part_of = part_of, cast_output = cast_output }
