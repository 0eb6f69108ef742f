-- Trajectories of federated training: parties with quadratic losses, their client rules, and strategies. The name of an expectation says
-- the rule and its settings, as "fedadam_eta0.1_b2_0.99_tau1e-3_v0_1e-6".
local ms = require "lunaria"
local values = require "armour.values"

local strategies, rules = ms.federated.strategies, ms.federated.client_rules

local function number(name, key) return tonumber(name:match(key .. "_?(%d[%d.]*e?-?%d*)")) end

local function adaptive(class)
  return function(name)
    return class { server_lr = number(name, "eta"), beta2 = number(name, "b2"), tau = number(name, "tau"), initial = number(name, "v0") }
  end
end

-- By the first letters of an expectation's name.
local made = {
  { "^fedavg$", function() return strategies.FedAvg() end },
  { "^fedprox", function(name) return strategies.FedProx { mu = number(name, "mu") } end },
  { "^fednova", function() return strategies.FedNova() end },
  { "^scaffold", function(name) return strategies.Scaffold { weighted = not name:find "uniform" } end },
  { "^fedadagrad", adaptive(strategies.FedAdagrad) },
  { "^fedadam", adaptive(strategies.FedAdam) },
  { "^fedyogi", adaptive(strategies.FedYogi) },
  { "^qfedavg", function(name, part) return strategies.QFedAvg { q = number(name, "q"), settings = { lr = part.lr } } end },
}

local function strategy_of(name, part)
  for _, row in ipairs(made) do
    if name:find(row[1]) then return row[2](name, part) end
  end
  return nil
end

-- loss and gradient of 0.5 sum_j D_j (w_j - c_j)^2
local function quadratic(curvature, centre)
  return function(w)
    local d = w - centre
    return ms.ops.sum(curvature * d * d) * 0.5, curvature * d
  end
end

-- The step of each rule, compiled in graph mode.
local steps = {}
local function step_of(name)
  if not steps[name] then
    local rule = rules.find(name)
    local function step(carry, s, k, curvature, centre) return rule.step(carry, quadratic(curvature, centre), s, k) end
    steps[name] = ms.get_context("mode") == ms.GRAPH_MODE and ms.jit(step) or step
  end
  return steps[name]
end

local function parties_of(part)
  local list = {}
  for i, samples in ipairs(part.samples) do
    list[i] = { id = ("party %03d"):format(i), samples = samples, steps = part.local_steps[i],
      curvature = ms.tensor(part.curvature[i], ms.float64), centre = ms.tensor(part.centres[i], ms.float64) }
  end
  return list
end

local function train(party, settings, global)
  local rule, step, w0 = rules.find(settings.rule), step_of(settings.rule), global:vector()
  party.state = party.state or rule.initial and rule.initial(w0) or {}
  local carry = rule.begin(w0, settings, party.state)
  for k = 0, party.steps - 1 do carry = step(carry, settings, k, party.curvature, party.centre) end
  local w, extra, metrics, state = rule.finish(carry, w0, settings, party.steps, party.state)
  party.state, metrics.initial_loss = state, quadratic(party.curvature, party.centre)(w0):item()
  return { id = party.id, samples = party.samples, weights = global:with_vector(w), extra = extra, metrics = metrics }
end

local function trajectory(strategy, part)
  local global = ms.federated.FeatureMap { w = ms.tensor(part.w0, ms.float64) }
  if strategy.prepare then global = strategy:prepare(global) end
  local parties, list = parties_of(part), {}
  for number_of = 1, part.rounds do
    local round = { number = number_of, seed = number_of, clients = #parties, population = #parties }
    local settings, updates = strategies.configure(strategy, round), {}
    settings.lr = part.lr
    -- They come in another order than that of their ids.
    for i = #parties, 1, -1 do updates[#updates + 1] = train(parties[i], settings, global) end
    local refused
    global, refused = strategies.aggregate(strategy, round, global, updates)
    if #refused > 0 then error(refused[1].reason) end
    list[number_of] = global.w:tolist()
  end
  return list
end

return function(section, case)
  for i, part in ipairs(section[1] and section or { section }) do
    local tolerance = part.tolerance or section.tolerance or 1e-11
    for name, expected in pairs(part.expected) do
      case(("federated/%s/%d"):format(name, i), function()
        local strategy = strategy_of(name, part)
        if not strategy then return "waiting" end
        return values.differs(name, trajectory(strategy, part), expected, tolerance)
      end)
    end
  end
end
