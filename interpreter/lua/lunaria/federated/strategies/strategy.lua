-- Strategies: what the server tells parties before a round, and what it makes of their updates. Here are the base, the checks of
-- updates, and
-- sums in the order of the client ids.
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"
local class = require "lunaria.nn.class"
local FeatureMap = require("lunaria.federated.feature_map").FeatureMap

local fail, check, describe = arguments.fail, arguments.check, arguments.describe

local M = {}

local Strategy = class.define(nil, "Strategy", "settings=nil", [[The base of strategies. A strategy of your own extends it, or is a
plain table of two functions:

  configure(self, round)                    a table of settings for the parties: plain values and tensors
  aggregate(self, round, global, updates)   the new feature map

round: { number, seed, clients, population } (from 1; the seed of the round; how many parties take part, and how many there are).
global: the feature map that the parties began with. updates: a list in the order of the parties' ids of { id, samples, weights,
metrics, extra, staleness }. What else a strategy may have:

  client = "sgd"            the name of its client rule
  secure = true             the mean of all updates is enough, so that secure aggregation can be used: by samples, or with
                            weighted = false one in which all count the same; with sums(), means of what that says
  sends = "difference"      updates are what training has changed, not "weights"
  asynchronous = true       parties start and end when they like; buffer: updates after which it aggregates
  prepare(self, map)        the feature map with some features that are not aggregated, before the first round
  refusal(self, global, update)   what is wrong with an update, as text, or nil
  after(self, round, map)   the feature map after work on the server
  state(), load_state(t)    what it remembers from round to round: tensors, plain values and tables of them

settings: what configure gives.

  > mine = ms.federated.Strategy:extend("Last")
  > mine.aggregate = function(self, round, global, updates) return updates[#updates].weights end
  > mine { settings = { lr = 0.1 } }:configure({ number = 1 }).lr --> 0.1]])
Strategy._called = "strategy"
Strategy.client, Strategy.secure, Strategy.sends, Strategy.asynchronous, Strategy.buffer = "sgd", false, "weights", false, 1
Strategy.weighted = true
M.Strategy = Strategy

-- A plain table of settings, copied.
function M.copied(settings)
  local copy = {}
  for key, value in pairs(settings or {}) do copy[key] = value end
  return copy
end

function M.check_settings(where, settings)
  if settings == nil then return {} end
  if type(settings) ~= "table" or getmetatable(settings) ~= nil then
    fail(where, "settings must be a table such as { lr = 0.1, epochs = 1 }, got " .. describe(settings))
  end
  return M.copied(settings)
end

function Strategy:setup(a) self.settings = M.check_settings("Strategy", a.settings) end

--- The settings of a round for its parties: a table of plain values and tensors. round: its number, seed, clients and population.
---     > ms.federated.strategies.FedAvg({ settings = { epochs = 2 } }):configure({ number = 1 }).epochs --> 2
function Strategy:configure(round) -- luacheck: ignore round
  return M.copied(self.settings)
end

--- The new weights. round: its number, seed, clients and population. global: the feature map that parties began with. updates: what they
--- sent, a list in the order of their ids.
---     > global = ms.federated.FeatureMap { w = ms.zeros { 1 } }
---     > updates = { { id = 1, samples = 1, weights = ms.federated.FeatureMap { w = ms.ones { 1 } } } }
---     > ms.federated.strategies.FedAvg():aggregate({ number = 1 }, global, updates).w:item() --> 1.0
function Strategy:aggregate(round, global, updates) -- luacheck: ignore round global updates
  fail(getmetatable(self)._name, "has no method aggregate", "function Mine:aggregate(round, global, updates) return map end")
end

--- What the strategy remembers from round to round, for a server that goes on: a table of tensors and plain values.
---     > type(ms.federated.strategies.FedAvg():state()) --> table
function Strategy:state() -- luacheck: ignore self
  return {}
end

--- Takes up what state gave. state: that table.
---     > ms.federated.strategies.FedAvg():load_state({})
function Strategy:load_state(state) -- luacheck: ignore self
  if type(state) ~= "table" then fail("load_state", "a table that state() gave is expected, got " .. describe(state)) end
end

-- The fields of a plain table that take part in the checks below, with what each must be.
local optional = { client = "string", secure = "boolean", weighted = "boolean", sends = "string", asynchronous = "boolean",
  sums = "function", aggregate_sums = "function", state = "function", load_state = "function", prepare = "function",
  after = "function", refusal = "function" }

--- A strategy from a strategy, or a plain table with configure and aggregate, which is checked and gets what it lacks from the base.
function M.of(where, value)
  if class.is_a(value, Strategy) then return value end
  if type(value) ~= "table" or getmetatable(value) ~= nil then
    fail(where, "strategy must be a strategy, as ms.federated.strategies.FedAvg(), or a table with configure and aggregate, got "
      .. describe(value))
  end
  for _, name in ipairs { "configure", "aggregate" } do
    if not arguments.is_callable(value[name]) then
      fail(where, ("the strategy's %s must be a function, got %s"):format(name, describe(value[name])))
    end
  end
  for name, kind in pairs(optional) do
    if value[name] ~= nil and type(value[name]) ~= kind then
      fail(where, ("the strategy's %s must be a %s, got %s"):format(name, kind, describe(value[name])))
    end
  end
  if value.buffer ~= nil then check.positive(where, "buffer", value.buffer) end
  if value.sends ~= nil then check.choice(where, "sends", value.sends, { "weights", "difference" }) end
  return setmetatable({}, { __index = function(_, key)
    local own = value[key]
    if own ~= nil then return own end
    return Strategy[key]
  end, __newindex = value, _called = "strategy", _name = "table" })
end

--- What the parties of a round are told: what the strategy's configure gives, with rule, the name of the client rule, and sends.
--- strategy: a strategy, or a table of configure and aggregate. round: its number, seed, clients and population.
---     > ms.federated.strategies.configure(ms.federated.strategies.FedProx({ mu = 0.5 }), { number = 1 }).rule --> prox
function M.configure(strategy, round)
  strategy = M.of("configure", strategy)
  local settings = strategy:configure(round)
  if type(settings) ~= "table" or getmetatable(settings) ~= nil then
    fail(getmetatable(strategy)._name, "configure must give a table of settings, got " .. describe(settings))
  end
  settings = M.copied(settings)
  settings.rule, settings.sends = settings.rule or strategy.client, strategy.sends
  return settings
end

-- The order of ids: numbers by size, before texts by their bytes.
local function before(a, b)
  local x, y = math.type(a.id), math.type(b.id)
  if x and y then return a.id < b.id end
  if x or y then return x ~= nil end
  return a.id < b.id
end

--- A list of updates in the order of their ids.
function M.in_order(updates)
  local list = table.move(updates, 1, #updates, 1, {})
  table.sort(list, before)
  return list
end

-- What is wrong with an update, as text, or nil.
local function refusal(strategy, global, update, limit)
  local samples = update.samples
  if not math.type(samples) or not (samples > 0 and samples < 2 ^ 53) then
    return "samples must be a positive number, got " .. describe(samples)
  end
  for _, name in ipairs { "metrics", "extra" } do
    local given = update[name]
    if given ~= nil and type(given) ~= "table" then return ("%s must be a table, got %s"):format(name, describe(given)) end
  end
  for name, value in pairs(update.metrics or {}) do
    if math.type(value) and not (value == value and math.abs(value) < math.huge) then
      return ("the metric '%s' is %s"):format(tostring(name), tostring(value))
    end
  end
  local wrong = global:refusal(update.weights, limit)
  if wrong then return wrong end
  for name, tensor in pairs(update.extra or {}) do
    if ms.is_tensor(tensor) and tensor.size > 0 and ms.ops.is_floating_point(tensor) then
      local most = ms.ops.amax(ms.ops.abs(tensor:reshape { -1 }), 0):item()
      if not (most <= limit) then return ("the tensor '%s' holds %s"):format(name, tostring(most)) end
    end
  end
  return strategy.refusal and strategy:refusal(global, update)
end

-- What a strategy has made, if it can be used; else the strategy is as it was before.
local function check_result(strategy, global, state, map)
  local wrong = global:refusal(map, 1e300)
  if not wrong then return map end
  strategy:load_state(state)
  return fail(getmetatable(strategy)._name, "aggregate gave weights that cannot be used: " .. wrong)
end

--- One aggregation by any strategy: updates are put in order and checked, those that cannot be used are left out, and the result is
--- checked. Gives the new feature map (the old one where nothing is left), and a list of { id, reason } of what was left out. strategy: a
--- strategy, or a table of configure and aggregate. round: its number, seed, clients and population. global: the feature map that the
--- parties began with. updates: a list of { id, samples, weights, metrics, extra, staleness }. options: limit, the largest magnitude of a
--- number in an update.
---     > global = ms.federated.FeatureMap { w = ms.zeros { 1 } }
---     > bad = { id = 7, samples = 1, weights = ms.federated.FeatureMap { w = ms.tensor { 0 / 0 } } }
---     > map, refused = ms.federated.strategies.aggregate(ms.federated.strategies.FedAvg(), { number = 1 }, global, { bad })
---     > refused[1].id, refused[1].reason --> 7	the feature 'w' holds nan or infinity
function M.aggregate(strategy, round, global, updates, options)
  local where = "aggregate"
  options = arguments.options(where, options, { limit = "number" }, "{ limit = 1e6 }")
  strategy = M.of(where, strategy)
  if not class.is_a(global, FeatureMap) then fail(where, "global must be a feature map, got " .. describe(global)) end
  if type(updates) ~= "table" then fail(where, "updates must be a list, got " .. describe(updates)) end
  local limit = check.number_positive(where, "limit", options.limit or 1e10)
  local used, refused, last = {}, {}, nil
  for i, update in ipairs(updates) do
    local id = type(update) == "table" and update.id
    if math.type(id) == nil and type(id) ~= "string" then
      fail(where, ("updates[%d].id must be a number or a text, got %s"):format(i, describe(id or nil)))
    end
  end
  for _, update in ipairs(M.in_order(updates)) do
    local wrong = last ~= nil and update.id == last and "it has sent two updates" or refusal(strategy, global, update, limit)
    if wrong then
      refused[#refused + 1] = { id = update.id, reason = wrong }
    else
      local copy = M.copied(update)
      copy.weights = global:conformed(update.weights)
      used[#used + 1], last = copy, update.id
    end
  end
  if #used == 0 then return global, refused end
  local state = strategy:state()
  local map = check_result(strategy, global, state, strategy:aggregate(round, global, used))
  if strategy.after then map = check_result(strategy, global, state, strategy:after(round, map)) end
  return map, refused
end

--- The sum of shares[i] * vectors(i) for i = 1 to #shares, added up in this order in float64.
function M.weighted_sum(shares, vectors)
  local sum
  for i, share in ipairs(shares) do
    local term = vectors(i) * share
    sum = sum and sum + term or term
  end
  return sum
end

--- The shares of the updates by their samples, or equal ones.
function M.shares(updates, by_samples)
  local total, shares = 0.0, {}
  for _, update in ipairs(updates) do total = total + (by_samples and update.samples or 1) end
  for i, update in ipairs(updates) do shares[i] = (by_samples and update.samples or 1) / total end
  return shares
end

--- The mean of the updates' vectors, float64. by_samples: whether by their numbers of samples; else all count the same.
function M.mean(updates, by_samples)
  return M.weighted_sum(M.shares(updates, by_samples), function(i) return updates[i].weights:vector(ms.float64) end)
end

--- The updates' vectors as the rows of a matrix, float64.
function M.rows(updates)
  local list = {}
  for i, update in ipairs(updates) do list[i] = update.weights:vector(ms.float64) end
  return ms.ops.stack(list, 0)
end

--- The mean of what the updates have changed, float64: as they were sent, or less the global weights.
function M.mean_difference(strategy, global, updates, by_samples)
  local mean = M.mean(updates, by_samples)
  return strategy.sends == "difference" and mean or mean - global:vector(ms.float64)
end

return M
