-- The conditions of watchpoints: names, short names, parameters and defaults as in MindInsight's debugger. Several parameters of a
-- condition are alternatives. What they ask is computed in core/watch.
local arguments = require "lunaria.nn.arguments"
local report = require "lunaria.rich.report"

local fail, describe = arguments.fail, arguments.describe

local too_large, too_small = { "abs_mean_gt", "max_gt", "min_gt", "mean_gt" }, { "abs_mean_lt", "max_lt", "min_lt", "mean_lt" }
local range = { "range_percentage_lt", "range_percentage_gt", "max_min_lt", "max_min_gt" }
local bounds = { "range_start_inclusive", "range_end_inclusive" }
local no_number = { { "not_finite" } }
-- Operators whose results are finite if their operands are.
local preserving = { "relu", "relu_grad", "max_window", "sigmoid", "tanh", "relu6", "where", "neg", "abs", "maximum", "minimum" }

-- `questions`: without parameters. `settings`: parameters that ask nothing themselves.
local rows = {
  { "weight_initialization", "WI", "weight", { "zero_percentage_ge", "max_gt", "min_lt" }, at_start = true, only_matrices = true,
    defaults = { zero_percentage_ge = 100 }, doc = "weights as the program begins with them" },
  { "weight_overflow", "WO", "weight", {}, questions = no_number, doc = "NaN or an infinity in a weight" },
  { "gradient_exploding", "GE", "gradient", {}, questions = no_number, doc = "NaN or an infinity in a weight's gradient" },
  { "tensor_overflow", "TO", "tensor", {}, questions = no_number, preserving = preserving, doc = "NaN or an infinity in a result" },
  { "operator_overflow", "OO", "tensor", {}, questions = { { "overflow" } }, doc = "the overflow flag of the simulated Ascend" },
  { "weight_too_large", "WL", "weight", too_large, doc = "a weight's elements beyond a bound" },
  { "tensor_too_large", "TL", "tensor", too_large, doc = "a result's elements beyond a bound" },
  { "gradient_too_large", "GL", "gradient", too_large, doc = "a gradient's elements beyond a bound" },
  { "weight_too_small", "WS", "weight", too_small, doc = "a weight's elements below a bound" },
  { "tensor_too_small", "TS", "tensor", too_small, doc = "a result's elements below a bound" },
  { "gradient_vanishing", "GV", "gradient", too_small, doc = "a gradient's elements below a bound" },
  { "tensor_all_zero", "TZ", "tensor", { "zero_percentage_ge" }, defaults = { zero_percentage_ge = 100 }, doc = "zeros in a result" },
  { "weight_not_changed", "WNC", "weight", {}, only_matrices = true, questions = { { "unchanged" } },
    settings = { "rtol", "atol", "equal_nan" }, defaults = { rtol = 1e-5, atol = 1e-8, equal_nan = false },
    doc = "a step that leaves a weight as it was" },
  { "weight_change_too_large", "WCL", "weight", { "abs_mean_update_ratio_gt" }, only_matrices = true, settings = { "epsilon" },
    defaults = { abs_mean_update_ratio_gt = 0.1, epsilon = 1e-9 }, doc = "mean |change| / mean |weight| in a step" },
  { "weight_change_too_small", "WCS", "weight", { "abs_mean_update_ratio_lt" }, only_matrices = true, settings = { "epsilon" },
    defaults = { abs_mean_update_ratio_lt = 1e-4, epsilon = 1e-9 }, doc = "mean |change| / mean |weight| in a step" },
  { "activation_range", "AR", "activation", range, settings = bounds, doc = "the range of what relu, sigmoid and tanh give" },
  { "tensor_range", "TR", "tensor", range, settings = bounds, doc = "the range of a result" },
}

local ACTIVATIONS = { "relu", "sigmoid", "tanh" }

local by_name, names = {}, {}
for i, row in ipairs(rows) do
  row.name, row.id, row.target, row.asks = row[1], row[2], row[3], row[4]
  row.settings, row.defaults = row.settings or {}, row.defaults or {}
  by_name[row.name], by_name[row.id] = row, row
  names[i] = row.name
end

local quantities = { abs_mean_update_ratio = "update_ratio" }
local compares = { gt = "greater", lt = "less", ge = "at_least" }

-- { quantity, comparison, bound } of a parameter such as abs_mean_gt.
local function question(parameter, bound)
  local what, how = parameter:match "^(.*)_(%a%a)$"
  return { quantities[what] or what, compares[how], bound }
end

local function contains(list, value)
  for _, one in ipairs(list) do
    if one == value then return true end
  end
  return false
end

local function check_name(where, text)
  if type(text) ~= "string" then
    fail(where, "a watchpoint is the name of a condition, or a table with it and parameters, got " .. describe(text))
  end
  local row = by_name[text]
  if not row then fail(where, ("there is no condition '%s'"):format(text), arguments.nearest(text, names)) end
  return row
end

local function check_texts(where, name, list, row)
  if type(list) == "string" then list = { list } end
  if type(list) ~= "table" or #list == 0 then
    fail(where, ("%s: %s must be a name or a list of names, got %s"):format(row.name, name, describe(list)))
  end
  for _, one in ipairs(list) do
    if type(one) ~= "string" then fail(where, ("%s: %s holds names, got %s"):format(row.name, name, describe(one))) end
  end
  return list
end

-- The names of the numbers that a condition takes.
local function parameters_of(row)
  return table.move(row.settings, 1, #row.settings, #row.asks + 1, table.move(row.asks, 1, #row.asks, 1, {}))
end

-- A watchpoint as core/watch takes it: { "tensor_too_large", max_gt = 10, nodes = { "conv1" } } or only the condition's name.
local function watchpoint(where, given)
  if type(given) == "string" then given = { given } end
  if type(given) ~= "table" then check_name(where, given) end
  local row = check_name(where, given.condition or given[1])
  local point = { condition = row.name, id = row.id, target = row.target, at_start = row.at_start, only_matrices = row.only_matrices,
    preserving = row.preserving,
    parameters = {}, questions = {} }
  for key, value in pairs(given) do
    if key == "nodes" then
      point.nodes = check_texts(where, key, value, row)
    elseif key == "operators" and row.target == "activation" then
      point.operators = check_texts(where, key, value, row)
    elseif key ~= 1 and key ~= "condition" then
      if not contains(row.asks, key) and not contains(row.settings, key) then
        local known = parameters_of(row)
        fail(where, ("%s has no parameter '%s'; it has: %s"):format(row.name, tostring(key),
          #known > 0 and table.concat(known, ", ") or "none"))
      end
      if key == "equal_nan" and type(value) ~= "boolean" or key ~= "equal_nan" and type(value) ~= "number" then
        fail(where, ("%s: %s must be a %s, got %s"):format(row.name, key, key == "equal_nan" and "boolean" or "number", describe(value)))
      end
      point.parameters[key] = value
    end
  end
  local asks = false
  for key in pairs(point.parameters) do asks = asks or contains(row.asks, key) end
  for key, value in pairs(row.defaults) do
    -- The default question is asked where no other one is.
    if point.parameters[key] == nil and not (asks and contains(row.asks, key)) then point.parameters[key] = value end
  end
  for i, one in ipairs(row.questions or {}) do point.questions[i] = one end
  for _, key in ipairs(row.asks) do
    if point.parameters[key] ~= nil then point.questions[#point.questions + 1] = question(key, point.parameters[key]) end
  end
  if #point.questions == 0 then
    fail(where, ("%s needs a bound: one of %s"):format(row.name, table.concat(row.asks, ", ")))
  end
  local p = point.parameters
  point.low, point.high, point.rtol, point.atol = p.range_start_inclusive, p.range_end_inclusive, p.rtol, p.atol
  point.equal_nan, point.epsilon = p.equal_nan, p.epsilon
  if row.target == "activation" and not point.operators then point.operators = ACTIVATIONS end
  if (p.range_percentage_lt or p.range_percentage_gt) and not (point.low or point.high) then
    fail(where, row.name .. ": a share of a range needs range_start_inclusive or range_end_inclusive")
  end
  return point
end

local Conditions = {}
Conditions.__index = Conditions
Conditions.__name = "conditions"

function Conditions:_table()
  local list = {}
  for i, row in ipairs(self) do
    local parameters = {}
    for _, name in ipairs(row.parameters) do
      local default = row.defaults[name]
      parameters[#parameters + 1] = default ~= nil and ("%s=%s"):format(name, tostring(default)) or name
    end
    list[i] = { row.id, row.name, row.target, table.concat(parameters, ", "), row.doc }
  end
  return list, { "id", "condition", "of", "parameters", "meaning" }, { "left", "left", "left", "left", "left" }
end

function Conditions:_totals() return ("%d conditions; several parameters of one are alternatives"):format(#self) end

report.shows(Conditions)

--- The 17 conditions that watchpoints can have: a table that prints, with name, id, target ("weight", "gradient", "activation",
--- "tensor"), parameters, defaults and doc of each.
---     > #ms.insight.conditions() --> 17
---     > ms.insight.conditions()[8].name, ms.insight.conditions()[8].id --> gradient_too_large	GL
local function conditions()
  local list = {}
  for i, row in ipairs(rows) do
    list[i] = { name = row.name, id = row.id, target = row.target, parameters = parameters_of(row), defaults = row.defaults, doc = row.doc }
  end
  return setmetatable(list, Conditions)
end

--- Watchpoints that suit any training: weights that are zero at the start, a step that changes a weight by more than its own size,
--- vanishing gradients, NaN and infinities, the Ascend's overflow, results that are all zero, and activations that are dead (relu: fewer
--- than one element of a thousand is positive) or saturated (sigmoid and tanh: fewer than one of a hundred is not).
---     > #ms.insight.recommended() --> 9
local function recommended()
  return {
    { "weight_initialization", zero_percentage_ge = 100 },
    { "weight_change_too_large", abs_mean_update_ratio_gt = 1 },
    { "gradient_vanishing", abs_mean_lt = 1e-9 },
    { "operator_overflow" },
    { "tensor_overflow" },
    { "tensor_all_zero", zero_percentage_ge = 100 },
    { "activation_range", operators = { "relu" }, range_percentage_lt = 0.1, range_start_inclusive = 1e-30 },
    { "activation_range", operators = { "sigmoid" }, range_percentage_lt = 1, range_start_inclusive = 0.001, range_end_inclusive = 0.999 },
    { "activation_range", operators = { "tanh" }, range_percentage_lt = 1, range_start_inclusive = -0.999, range_end_inclusive = 0.999 },
  }
end

return { conditions = conditions, recommended = recommended, watchpoint = watchpoint }
