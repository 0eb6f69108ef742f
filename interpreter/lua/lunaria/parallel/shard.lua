-- Laid-out tensors for programs: ms.distribute and ms.reshard, and MindSpore's shard of functions, cells and operators, whose
-- strategies are layouts (ms.Layout, or what a mesh gives) or tables with the number of parts along each axis.
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"
local laid = require "lunaria.laid"

local ops = ms.ops
local fail, describe = arguments.fail, arguments.describe
local M = {}

-- The number of ranks that strategies of numbers divide tensors over, where one process simulates them.
local simulated = 1

local function rank_count()
  local ranks = laid.ranks()
  return ranks > 1 and ranks or simulated
end

local function prime_factors(n)
  local list, p = {}, 2
  while n > 1 do
    while n % p == 0 do
      list[#list + 1], n = p, n // p
    end
    p = p + 1
  end
  return list
end

-- The axes of a mesh of prime sizes on which each of these cuts is a run of axes, so that layouts of different strategies have as
-- many axes in common as they can. Gives the text of the mesh and for each cut that of its axes, or nil for 1.
local function mesh_of(where, cuts)
  local count, product = rank_count(), 1
  for _, cut in ipairs(cuts) do product = product * cut end
  if count % product ~= 0 then
    fail(where, ("the strategy divides over %d ranks, and there are %d"):format(product, count),
      ("the number of ranks must be a multiple; ms.set_parallel { ranks = %d } simulates as many"):format(product))
  end
  local sizes, runs = {}, {}
  for i, cut in ipairs(cuts) do
    local names = {}
    for _, size in ipairs(prime_factors(cut)) do
      names[#names + 1] = "d" .. #sizes
      sizes[#sizes + 1] = ("d%d=%d"):format(#sizes, size)
    end
    runs[i] = #names > 0 and "@" .. table.concat(names, ".") or "*"
  end
  for _, size in ipairs(prime_factors(count // product)) do sizes[#sizes + 1] = ("d%d=%d"):format(#sizes, size) end
  if #sizes == 0 then sizes[1] = "d0=1" end
  return table.concat(sizes, ", "), runs
end

local function is_layout(value) return laid.is_layout(value) end

local function check_parts(where, name, parts)
  if type(parts) ~= "table" then
    fail(where, ("%s must be a layout or a table with the number of parts along each axis, got %s"):format(name, describe(parts)))
  end
  for axis, n in ipairs(parts) do
    if math.type(n) ~= "integer" or n < 1 then
      fail(where, ("%s[%d] must be a whole number above 0, got %s"):format(name, axis, describe(n)))
    end
  end
end

local function check_axes(where, name, parts, ndim)
  if #parts ~= ndim then fail(where, ("%s has %d axes, and the tensor has %d"):format(name, #parts, ndim)) end
end

-- The numbers of layouts that were asked for, by the layout and the number of axes: a compiled function reads them here.
local numbers_by_layout = setmetatable({}, { __mode = "k" })

-- The number of the layout for a tensor with so many axes.
local function number_of(where, name, strategy, ndim)
  local known = numbers_by_layout[strategy]
  if known and known[ndim] then return known[ndim] end
  if is_layout(strategy) then
    known = known or {}
    numbers_by_layout[strategy], known[ndim] = known, laid.number_of(strategy, ndim, where, name)
    return known[ndim]
  end
  check_parts(where, name, strategy)
  check_axes(where, name, strategy, ndim)
  local mesh, runs = mesh_of(where, strategy)
  return laid.number(mesh, "[" .. table.concat(runs, ", ") .. "]")
end

local function lay(where, name, x, strategy)
  return ops.lay_out(x, number_of(where, name, strategy, x.ndim))
end

local function expect_tensor(where, x)
  if not ms.is_tensor(x) then fail(where, "a tensor is expected, got " .. describe(x)) end
end

--- The tensor laid out on the ranks of a mesh: each rank holds the pieces that the layout says, and operators on it run on all ranks.
--- A parameter stays itself and gets the layout. x: the tensor. layout: what a mesh or ms.Layout gives, or the number of parts of each
--- axis.
---     > mesh = ms.mesh({ 2 }, { "dp" })
---     > ms.distribute(ms.ones { 4, 3 }, mesh("dp")).layout --> [4@dp, 3]
function M.distribute(x, layout)
  x, layout = arguments.named("distribute", { "x", "layout" }, x, layout)
  expect_tensor("distribute", x)
  local result = lay("distribute", "layout", x, layout)
  if laid.is_parameter(x) then return laid.become(x, result) end
  return result
end

--- The tensor in another layout, whose pieces the ranks exchange. x: a laid-out tensor. layout: what a mesh or ms.Layout gives.
---     > mesh = ms.mesh({ 2 }, { "dp" })
---     > x = ms.distribute(ms.ones { 4, 3 }, mesh("dp"))
---     > ms.reshard(x, mesh(nil, "dp")).layout --> [4, 3@dp]
function M.reshard(x, layout)
  x, layout = arguments.named("reshard", { "x", "layout" }, x, layout)
  expect_tensor("reshard", x)
  return lay("reshard", "layout", x, layout)
end

--- Settings for laid-out tensors, in a table. on_reshard: what an operator does whose operands have to move before it can run: "silent"
--- (as at first), "warn" (a line for each place) or "error". ranks: the number of ranks over which strategies of numbers divide, where
--- one process simulates them; several processes are as many ranks as there are.
---     > ms.set_parallel { on_reshard = "warn", ranks = 4 }
---     > ms.set_parallel { on_reshard = "silent", ranks = 1 }
function M.set_parallel(options)
  arguments.options("set_parallel", options or false, { on_reshard = arguments.one_of("silent", "warn", "error"),
    ranks = arguments.positive }, "{ on_reshard = \"warn\" }")
  local mode, ranks = options.on_reshard, options.ranks
  if ranks ~= nil then
    if laid.ranks() > 1 and ranks ~= laid.ranks() then
      fail("set_parallel", ("ranks must be %d, the number of processes, got %d"):format(laid.ranks(), ranks))
    end
    simulated = ranks
  end
  if mode then laid.on_reshard(mode) end
end

-- Raises an error where a strategy does not have an entry for each tensor among the values.
local function check_count(where, what, strategy, ...)
  local count = select("#", ...)
  for i = #strategy + 1, select("#", ...) do
    if ms.is_tensor((select(i, ...))) then count = 0 end
  end
  if #strategy > count then
    fail(where, ("%s has %d %s, got %d"):format(what, #strategy, what == "in_strategy" and "inputs" or "results", select("#", ...)))
  end
end

-- Values in the layouts of a strategy, one for each; those that are no tensors stay.
local function lay_all(where, what, strategy, ...)
  check_count(where, what, strategy, ...)
  local values = table.pack(...)
  for i = 1, #strategy do
    if ms.is_tensor(values[i]) then
      values[i] = lay(where, ("%s[%d]"):format(what, i), values[i], strategy[i])
    end
  end
  return table.unpack(values, 1, values.n)
end

local function check_strategy(where, what, strategy)
  if type(strategy) ~= "table" or is_layout(strategy) then
    fail(where, ("%s must be a table with a layout, or a table of numbers, for each value, got %s"):format(what, describe(strategy)))
  end
  for i, parts in ipairs(strategy) do
    if not is_layout(parts) then check_parts(where, ("%s[%d]"):format(what, i), parts) end
  end
end

-- The same for values whose axes have nothing to do with those of others.
local function check_ranks(where, what, strategy)
  check_strategy(where, what, strategy)
  for _, parts in ipairs(strategy) do
    if not is_layout(parts) then mesh_of(where, parts) end
  end
end

-- Whether a strategy divides nothing, so that tensors stay where they are.
local function is_whole(strategy)
  for _, parts in ipairs(strategy or {}) do
    if is_layout(parts) then return false end
    for _, n in ipairs(parts) do
      if n ~= 1 then return false end
    end
  end
  return true
end

-- The parameters of a cell in the layouts of a plan by their names, and those that it does not name whole on all ranks.
local function lay_parameters(where, cell, plan)
  local named = {}
  for name, layout in pairs(plan or {}) do
    if type(name) ~= "string" then fail(where, "parameter_plan must have names of parameters, got " .. describe(name)) end
    named[(name:gsub("^self%.", ""))] = layout
  end
  local names = {}
  for name, parameter in cell:parameters_and_names() do
    local layout = named[name]
    names[#names + 1], named[name] = name, nil
    if layout then
      laid.become(parameter, lay(where, ("parameter_plan[%q]"):format(name), parameter, layout))
    elseif not laid.is_laid_out(parameter) then
      laid.become(parameter, laid.everywhere(parameter))
    end
  end
  local unknown = next(named)
  if unknown then
    fail(where, ("parameter_plan names %q, which is no parameter"):format(unknown), arguments.nearest(unknown, names))
  end
end

--- The function with what it takes and gives laid out on ranks. fn: the function, or a cell. in_strategy: a table with a layout for each
--- input, or a table with the number of parts along each axis. out_strategy: the same for the results, or nil. parameter_plan: of a cell,
--- the layouts of parameters by their names.
---     > mesh = ms.mesh({ 2 }, { "dp" })
---     > ms.shard(ms.ops.exp, { mesh("dp") })(ms.zeros { 4, 1 }).layout --> [4@dp, 1]
function M.shard(fn, in_strategy, out_strategy, parameter_plan)
  if not arguments.is_callable(fn) then fail("shard", "fn must be a function, got " .. describe(fn)) end
  -- A plan is a table of names itself.
  if parameter_plan == nil then
    in_strategy, out_strategy, parameter_plan = arguments.named("shard", { "in_strategy", "out_strategy", "parameter_plan" },
      in_strategy, out_strategy)
  end
  check_ranks("shard", "in_strategy", in_strategy)
  if out_strategy ~= nil then check_ranks("shard", "out_strategy", out_strategy) end
  if parameter_plan ~= nil then
    if type(fn) ~= "table" or not fn.parameters_and_names then
      fail("shard", "parameter_plan is for a cell, and fn is " .. describe(fn))
    end
    lay_parameters("shard", fn, parameter_plan)
  end
  local function laid_results(...)
    if out_strategy == nil then return ... end
    return lay_all("shard", "out_strategy", out_strategy, ...)
  end
  if is_whole(in_strategy) and is_whole(out_strategy) then
    return function(...)
      M.check_inputs("shard", in_strategy, ...)
      return fn(...)
    end
  end
  return function(...) return laid_results(fn(lay_all("shard", "in_strategy", in_strategy, ...))) end
end

--- Raises an error where a strategy, a list with an entry for each input, does not go with the inputs.
function M.check_inputs(where, strategy, ...)
  check_count(where, "in_strategy", strategy, ...)
  for i, parts in ipairs(strategy) do
    local x = select(i, ...)
    if ms.is_tensor(x) and not is_layout(parts) and #parts ~= x.ndim then
      fail(where, ("in_strategy has %d axes for input %d, got %s"):format(#parts, i, describe(x)))
    end
  end
end

--- Cell:shard.
function M.shard_cell(cell, in_strategy, out_strategy, parameter_plan)
  if parameter_plan == nil then
    in_strategy, out_strategy, parameter_plan = arguments.named("shard", { "in_strategy", "out_strategy", "parameter_plan" },
      in_strategy, out_strategy)
  end
  check_ranks("shard", "in_strategy", in_strategy)
  if out_strategy ~= nil then check_ranks("shard", "out_strategy", out_strategy) end
  for _, handle in ipairs(rawget(cell, "_sharded") or {}) do handle:remove() end
  rawset(cell, "_sharded", nil)
  if is_whole(in_strategy) and is_whole(out_strategy) and not parameter_plan then return cell end
  lay_parameters("shard", cell, parameter_plan)
  local handles = { cell:register_forward_pre_hook(function(_, ...)
    return lay_all("shard", "in_strategy", in_strategy, ...)
  end) }
  if out_strategy ~= nil then
    handles[2] = cell:register_forward_hook(function(_, ...) return lay_all("shard", "out_strategy", out_strategy, ...) end)
  end
  rawset(cell, "_sharded", handles)
  return cell
end

-- The letters of operators whose operands do not go together axis by axis from the right, for each operand. `.`: leading axes.
local letters_of = {
  MatMul = function(a) return a.transpose_a and "km" or "mk", a.transpose_b and "nk" or "kn" end,
  BatchMatMul = function(a) return a.transpose_a and ".km" or ".mk", a.transpose_b and ".nk" or ".kn" end,
  BiasAdd = function() return "nc.", "c" end,
  Conv2D = function() return "nchw", "ocij" end,
  Gather = function() return "vd", "." end,
}

-- One letter for each axis: those of leading axes count from the right.
local function spread_letters(text, ndim)
  local front, back = text:match("^(.-)%.(.*)$")
  if not front then return text end
  local letters = {}
  for i = 1, #front do letters[i] = front:sub(i, i) end
  local middle = ndim - #front - #back
  for i = 1, middle do letters[#letters + 1] = tostring(middle - i + (#front > 0 and 10 or 0)) end
  for i = 1, #back do letters[#letters + 1] = back:sub(i, i) end
  return letters
end

-- The numbers of the layouts of an operator's inputs: axes with one letter are cut the same way, along the same axes of the mesh.
local function numbers_of(primitive, where, strategy, inputs)
  local texts = letters_of[primitive.name] and { letters_of[primitive.name](primitive.attrs) } or {}
  local cut_of, said, order, axes = {}, {}, {}, {}
  for i, parts in ipairs(strategy) do
    local name = ("in_strategy[%d]"):format(i)
    check_parts(where, name, parts)
    local x = inputs[i]
    if ms.is_tensor(x) then
      check_axes(where, name, parts, x.ndim)
      local letters = spread_letters(texts[i] or ".", x.ndim)
      axes[i] = {}
      for axis, n in ipairs(parts) do
        local letter = type(letters) == "string" and letters:sub(axis, axis) or letters[axis]
        axes[i][axis] = letter
        -- An axis of one element goes with any other.
        if x.shape[axis] > 1 or n > 1 then
          if cut_of[letter] and cut_of[letter] ~= n then
            fail(where, ("axis %d of input %d is cut into %d parts, and axis %d of input %d, which goes with it, into %d"):format(
              axis - 1, i, n, said[letter][2] - 1, said[letter][1], cut_of[letter]))
          end
          if not cut_of[letter] then order[#order + 1] = letter end
          cut_of[letter], said[letter] = n, said[letter] or { i, axis }
        end
      end
    end
  end
  local cuts = {}
  for k, letter in ipairs(order) do cuts[k] = cut_of[letter] end
  local mesh, runs = mesh_of(where, cuts)
  local run_of, numbers = {}, {}
  for k, letter in ipairs(order) do run_of[letter] = runs[k] end
  for i, letters in pairs(axes) do
    local text = {}
    for axis, letter in ipairs(letters) do text[axis] = inputs[i].shape[axis] > 1 and run_of[letter] or "*" end
    numbers[i] = laid.number(mesh, "[" .. table.concat(text, ", ") .. "]")
  end
  return numbers
end

-- For each strategy of an operator the shapes that it was asked for, and the numbers of layouts that follow from them.
local known_numbers = setmetatable({}, { __mode = "k" })

local function is_alike(shape, x)
  if not shape or not ms.is_tensor(x) then return not shape and not ms.is_tensor(x) end
  if #shape ~= x.ndim then return false end
  for axis = 1, #shape do
    if shape[axis] ~= x.shape[axis] then return false end
  end
  return true
end

local function are_alike(shapes, strategy, values)
  if shapes.ranks ~= simulated then return false end
  for i, parts in ipairs(strategy) do
    if not is_alike(shapes[i], values[i]) then return false end
    for axis, n in ipairs(shapes.cuts[i]) do
      if parts[axis] ~= n then return false end
    end
  end
  return true
end

-- The numbers of the layouts of inputs, for each that is laid out.
local function input_numbers(primitive, strategy, values)
  local where = primitive.name
  for _, entry in ipairs(known_numbers[strategy] or {}) do
    if are_alike(entry.shapes, strategy, values) then return entry.numbers end
  end
  M.check_inputs(where, strategy, table.unpack(values, 1, values.n))
  local has_layouts, numbers = false, {}
  for _, parts in ipairs(strategy) do has_layouts = has_layouts or is_layout(parts) end
  if has_layouts then
    for i, parts in ipairs(strategy) do
      if ms.is_tensor(values[i]) then numbers[i] = number_of(where, ("in_strategy[%d]"):format(i), parts, values[i].ndim) end
    end
    return numbers
  end
  if not is_whole(strategy) then numbers = numbers_of(primitive, where, strategy, values) end
  local shapes = { ranks = simulated, cuts = {} }
  for i, parts in ipairs(strategy) do
    shapes[i] = ms.is_tensor(values[i]) and table.move(values[i].shape, 1, values[i].ndim, 1, {})
    shapes.cuts[i] = table.move(parts, 1, #parts, 1, {})
  end
  local list = known_numbers[strategy]
  if not list or #list >= 64 then list = {} end
  table.insert(list, { shapes = shapes, numbers = numbers })
  known_numbers[strategy] = list
  return numbers
end

--- The inputs of an operator with a strategy, laid out; out_strategy: see laid_results.
function M.laid_inputs(primitive, ...)
  local strategy, values = primitive.attrs.in_strategy, table.pack(...)
  local numbers = input_numbers(primitive, strategy, values)
  for i = 1, #strategy do
    if numbers[i] then values[i] = ops.lay_out(values[i], numbers[i]) end
  end
  return table.unpack(values, 1, values.n)
end

--- The results of an operator in the layouts of its out_strategy.
function M.laid_results(primitive, ...)
  local strategy = primitive.attrs.out_strategy
  if not strategy or is_whole(strategy) then return ... end
  return lay_all(primitive.name, "out_strategy", strategy, ...)
end

M.check_strategy = check_strategy

return M
