-- Parameters and the states of optimizers divided among the ranks (hsdp of MindSpore, ZeRO of DeepSpeed): at rest a rank has its rows of
-- each. A cell sees whole parameters: it computes with a view of itself that gathers what is read.
--
--   level1  all parameters are gathered before the step; gradients are combined whole, and each rank takes its rows
--   level2  a parameter is gathered where it is read; the gradient of gathering leaves each rank its rows of the sum
--   level3  the same, and cells with parameters compute again in the backward pass, so that no gathered parameter waits for it
--
-- Of r rows a rank has ceil(r / n); the rows that the last ranks lack are zeros, which stay zeros.
local core = require "lunaria.gradients"
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"
local cells = require "lunaria.nn.cell"
local checkpoint = require "lunaria.parallel.checkpoint"
local data = require "lunaria.parallel.data"

local ops = ms.ops
local fail = arguments.fail
local is_cell = cells.is_cell

local M = {}

-- Optimizers whose step of an element depends on that element alone.
local elementwise = {}
for name in ([[SGD Momentum Adam AdamW FusedAdamW AdamWeightDecay Adagrad Adadelta AdaMax Adamax RMSProp RMSprop FTRL ProximalAdagrad
  LazyAdam NAdam RAdam ASGD Rprop]]):gmatch "%S+" do
  elementwise[name] = true
end

local function gathered(piece, rows)
  local whole = ops.all_gather(piece)
  if whole.shape[1] == rows then return whole end
  return whole[{ ms.slice(0, rows) }]
end

--- The states that an optimizer has of a parameter, element by element.
function M.states_of(optimizer, parameter)
  local list, ending = {}, "." .. parameter.name
  for name, state in optimizer:parameters_and_names() do
    local shape = tostring(state.shape) == tostring(parameter.shape)
    if shape and (name:sub(-#ending) == ending or name:find(ending .. ".", 1, true)) then list[#list + 1] = state end
  end
  return list
end

-- What checkpoints are told of the rows of a tensor that a rank has.
local function piece_of(parameter, first, count)
  local shape, offsets, sizes = {}, {}, {}
  for axis = 1, parameter.ndim do shape[axis], offsets[axis], sizes[axis] = parameter.shape[axis], 0, parameter.shape[axis] end
  offsets[1] = math.min(first, shape[1])
  sizes[1] = math.max(0, math.min(count, shape[1] - first))
  return { shape = shape, offsets = offsets, sizes = sizes }
end

-- Divides the parameters that are large enough. rows: by parameter, how many there were.
local function divide(plan, optimizer)
  local rows = {}
  for _, parameter in ipairs(optimizer.parameters) do
    local bytes = parameter.nbytes
    if parameter.ndim > 0 and parameter.shape[1] >= plan.ranks and bytes >= plan.threshold then
      local whole, states = parameter.shape[1], M.states_of(optimizer, parameter)
      local each = (whole + plan.ranks - 1) // plan.ranks
      states[#states + 1] = parameter
      local piece = piece_of(parameter, plan.rank * each, each)
      for _, tensor in ipairs(states) do
        core.become(tensor, core.rows(tensor, plan.rank * each, each))
        checkpoint.set_piece(tensor, piece)
      end
      rows[parameter] = whole
    end
  end
  return rows
end

-- What cells of a network compute with: themselves, but that divided parameters are read whole. read(parameter, value) gives one; value:
-- what the cell itself reads, which may be of another dtype.
local function views(network, rows, read)
  local known = setmetatable({}, { __mode = "k" })
  local inside = {}
  local function view(cell)
    if known[cell] then return known[cell] end
    local class = getmetatable(cell)
    local own = setmetatable({}, {
      __index = function(_, key)
        local value = cell[key]
        if is_cell(value) and inside[value] then return view(value) end
        local parameter = inside[cell] and inside[cell][key]
        if parameter and ms.is_tensor(value) then return read(parameter, value) end
        return value
      end,
      __newindex = function(_, key, value) cell[key] = value end,
      __len = function() return #cell end,
      __call = function(_, ...) return cell(...) end,
      _name = class._name,
    })
    known[cell] = own
    return own
  end
  for _, cell in network:cells_and_names() do
    local divided = {}
    for key, value in pairs(cell) do
      if ms.is_parameter(value) and rows[value] then divided[key] = value end
    end
    inside[cell] = divided
  end
  local with_parameters = {}
  for cell, divided in pairs(inside) do
    local construct = cell.construct
    rawset(cell, "construct", function(self, ...)
      -- In another dtype a cell is seen by a view already, whose parameters are those of the cell.
      if not inside[self] then inside[self] = divided end
      return construct(view(self), ...)
    end)
    if next(divided) then with_parameters[#with_parameters + 1] = cell end
  end
  return with_parameters
end

-- Parameters are gathered first, and the function is differentiated by the whole ones.
local function level1(where, plan, f, network, parameters, rows, current, has_aux)
  local divided, others = {}, {}
  for _, parameter in ipairs(parameters) do
    local list = rows[parameter] and divided or others
    list[#list + 1] = parameter
  end
  local gradient = ms.value_and_grad(function(whole, ...)
    for i, parameter in ipairs(divided) do current[parameter] = whole[i] end
    return f(...)
  end, 0, #others > 0 and others or nil, has_aux)
  -- One table for all steps: another one would be another case of the compiled step.
  local whole = {}
  local function of_all(...)
    local value, of_divided, of_others = gradient(whole, ...)
    local list, d, o = {}, 0, 0
    for i, parameter in ipairs(parameters) do
      if rows[parameter] then
        d = d + 1
        list[i] = of_divided[d]
      else
        o = o + 1
        list[i] = of_others[o]
      end
    end
    return value, list
  end
  local function own(gradients)
    local list = {}
    for i, parameter in ipairs(parameters) do
      local each = parameter.ndim > 0 and parameter.shape[1]
      -- Copies, since a part of a bucket keeps the whole of it.
      list[i] = rows[parameter] and core.rows(gradients[i], plan.rank * each, each) or core.rows(gradients[i])
    end
    return list
  end
  local step
  local function all(...)
    for i, parameter in ipairs(divided) do whole[i] = gathered(parameter, rows[parameter]) end
    if not step then
      local likes, k = {}, 0
      for i, parameter in ipairs(parameters) do
        if rows[parameter] then k = k + 1 end
        likes[i] = rows[parameter] and whole[k] or parameter
      end
      local noted
      step, noted = data.combined_step(where, plan, of_all, network, likes, {}, nil, data.names_of(parameters))
      noted.step = all
    end
    local value, gradients = step(...)
    for i = 1, #whole do whole[i] = nil end
    for parameter in pairs(current) do current[parameter] = nil end
    return value, own(gradients)
  end
  return all
end

-- Gathering has the sums of the ranks' gradients as its own gradient, so that only those of whole parameters are left to combine.
local function level2(where, plan, f, network, parameters, rows, has_aux)
  local gradient = ms.value_and_grad(f, nil, parameters, has_aux)
  local factor = plan.mean and 1 / plan.ranks or 1
  local others = {}
  for i, parameter in ipairs(parameters) do
    if not rows[parameter] then others[#others + 1] = i end
  end
  local function picked(gradients)
    local list = {}
    for k, i in ipairs(others) do list[k] = gradients[i] end
    return list
  end
  local whole = picked(parameters)
  return data.combined_step(where, plan, gradient, network, whole, whole, function(gradients, combine)
    local combined = #others > 0 and combine(picked(gradients)) or {}
    local result = {}
    for i, parameter in ipairs(parameters) do
      if rows[parameter] then result[i] = factor == 1 and gradients[i] or gradients[i] * factor end
    end
    for k, i in ipairs(others) do result[i] = combined[k] end
    return result
  end)
end

--- As data.value_and_grad, with the parameters and states of the optimizer divided. The gradients are those of the rows that a rank has.
--- The second result gives the whole parameters by name.
function M.value_and_grad(where, plan, f, network, optimizer, has_aux, states)
  -- Sums of several steps are divided as the parameters are.
  local inner = optimizer.optimizer or optimizer
  local class = (getmetatable(inner) or {})._name or "the step"
  if not elementwise[class] then
    local why = "%s looks at whole parameters, of which ranks have rows: enable_parallel_optimizer takes Adam, Momentum and the like"
    fail(where, why:format(class))
  end
  if plan.shards > 0 and plan.level ~= "level1" then
    fail(where, "logical_shards goes with optimizer_level \"level1\": beyond it sums are taken where a parameter is gathered")
  end
  if plan.level ~= "level1" and (plan.reduction ~= "sum" or plan.compression ~= "none") then
    fail(where, "adasum and compressed gradients go with optimizer_level \"level1\"")
  end
  data.agree(where, plan, table.move(states, 1, #states, #optimizer.parameters + 1,
    table.move(optimizer.parameters, 1, #optimizer.parameters, 1, {})))
  local rows = divide(plan, optimizer)
  local parameters, current = optimizer.parameters, {}
  local function whole(parameter, value)
    return current[parameter] or gathered(value, rows[parameter])
  end
  local with_parameters = views(network, rows, whole)
  local function whole_parameters()
    local result = {}
    for _, parameter in ipairs(parameters) do
      result[parameter.name] = rows[parameter] and gathered(parameter, rows[parameter]) or parameter
    end
    return result
  end
  if plan.level == "level1" then
    return level1(where, plan, f, network, parameters, rows, current, has_aux), whole_parameters
  end
  if plan.level == "level3" then
    for _, cell in ipairs(with_parameters) do cell:recompute() end
  end
  return level2(where, plan, f, network, parameters, rows, has_aux), whole_parameters
end

return M
