-- The training of one party: a client rule run on a cell and its data.
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"
local cells = require "lunaria.nn.cell"
local source = require "lunaria.train.batches"
local FeatureMap = require("lunaria.federated.feature_map").FeatureMap
local rules = require "lunaria.federated.client_rules.rules"

local ops = ms.ops
local fail, check, describe = arguments.fail, arguments.check, arguments.describe

local M = {}

--- A client rule: a table of the functions begin, step and finish, as the head of client_rules/rules.lua has them. rule: its name, or
--- such a
--- table.
---     > type(ms.federated.client_rules.find("prox").step) --> function
function M.find(rule)
  if type(rule) == "string" then
    local names = {}
    for name in pairs(rules) do names[#names + 1] = name end
    table.sort(names)
    return rules[rule] or fail("client_rules.find", ("there is no client rule '%s'; there are: %s"):format(rule, table.concat(names, ", ")),
      arguments.nearest(rule, names))
  end
  for _, name in ipairs { "begin", "step", "finish" } do
    if type(rule) ~= "table" or not arguments.is_callable(rule[name]) then
      fail("client_rules.find", "a client rule is a name, or a table with the functions begin, step and finish, got " .. describe(rule))
    end
  end
  return rule
end

-- The network and the function from a batch to its loss.
local function trainee(where, net)
  if cells.is_cell(net) then return net, net end
  if type(net) == "table" and getmetatable(net) == nil and cells.is_cell(net.network) and arguments.is_callable(net.loss_fn) then
    return net.network, ms.nn.WithLossCell(net.network, net.loss_fn)
  end
  return fail(where, "net must be a cell that gives the loss of a batch, or { network = cell, loss_fn = loss }, got " .. describe(net))
end

-- gradient(vector, batch...) -> loss, vector of a cell: the vector is written into its parameters.
local function gradient_of(network, loss)
  local parameters = network:trainable_params()
  local forward = ms.value_and_grad(function(...) return loss(...) end, nil, parameters)
  local function write(vector)
    local first = 0
    for _, parameter in ipairs(parameters) do
      parameter:assign(vector[{ ms.slice(first, first + parameter.size) }]:reshape(parameter.shape):astype(parameter.dtype))
      first = first + parameter.size
    end
  end
  local function read() return ms.boost.flat(parameters) end
  return function(vector, ...)
    write(vector)
    local value, gradients = forward(...)
    return value, ms.boost.flat(gradients)
  end, write, read
end

--- Trains a cell by a client rule and gives the update: { samples, weights, metrics, extra }. net: a cell that gives the loss of a
--- batch, or
--- { network = cell, loss_fn = loss }; it has the weights that training begins with, and has those of the update afterwards. data:
--- batches,
--- as for ms.Model:train. settings: what the strategy's configure gave: rule ("sgd"), lr, epochs (1), steps (at most so many), momentum,
--- weight_decay and what the rule needs. state: a table that the party keeps from round to round, which is written to.
---     > net = ms.nn.Dense(1, 1)
---     > data = { { ms.ones { 2, 1 }, ms.ones { 2, 1 } } }
---     > update = ms.federated.client_rules.train({ network = net, loss_fn = ms.nn.MSELoss() }, data, { lr = 0.1 }, {})
---     > update.samples, update.metrics.steps --> 2	1
function M.train(net, data, settings, state)
  local where = "client_rules.train"
  if type(settings) ~= "table" then fail(where, "settings must be a table such as { lr = 0.1 }, got " .. describe(settings)) end
  if type(state) ~= "table" then fail(where, "state must be a table, got " .. describe(state)) end
  local rule = M.find(settings.rule or "sgd")
  local network, loss = trainee(where, net)
  check.number_positive(where, "settings.lr", settings.lr)
  local epochs = check.positive(where, "settings.epochs", settings.epochs or 1)
  local most = settings.steps and check.positive(where, "settings.steps", settings.steps) or math.huge
  local gradient, write, read = gradient_of(network, loss)
  local w0 = read()
  local carry = rule.begin(w0, settings, state)
  local batches, steps, samples, sum = source(where, data), 0, 0, 0.0
  for epoch = 1, epochs do
    local next_batch = batches.epoch()
    while steps < most do
      local batch = table.pack(next_batch())
      if batch[1] == nil then break end
      local count = ms.is_tensor(batch[1]) and batch[1].ndim > 0 and batch[1].shape[1] or 1
      if epoch == 1 then samples = samples + count end
      local value
      carry, value = rule.step(carry, gradient, settings, steps, table.unpack(batch, 1, batch.n))
      steps, sum = steps + 1, sum + ops.mean(value):item()
    end
  end
  if steps == 0 then fail(where, "the data give no batch") end
  local w, extra, metrics, kept = rule.finish(carry, w0, settings, steps, state)
  write(w)
  for key in pairs(state) do state[key] = nil end
  for key, value in pairs(kept) do state[key] = value end
  metrics.loss, metrics.steps = sum / steps, steps
  return { samples = samples, weights = FeatureMap(network), metrics = metrics, extra = extra }
end

return M
