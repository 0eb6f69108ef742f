-- Attacks for near adversarial inputs, on the networks of a file: handlers by the names of attacks, for attacks.lua.
local ms = require "lunaria"
local values = require "armour.values"

local ops, A = ms.ops, ms.armour.attacks
local float64 = values.float64

local handlers = {}

local function flat(x) return x:reshape { x.shape[1], -1 } end

local function classes_of(set) return set.model:classes(set.x) end

-- The predicted classes; on a boundary rounding decides between two of them.
local function predicted(set, case, adv)
  local z = set.model:logits(adv)
  local expected = ops.gather_elements(z, 1, values.classes(case.expected.predicted):astype(ms.int64):reshape { -1, 1 })
  local behind = ops.amax(z, 1) - expected:reshape { -1 }
  return values.differs("predicted: lag of the expected class", ops.relu(behind), ops.zeros_like(behind), 1e-9)
end

-- Where two steps of the search differ by rounding alone, another sample may be found; a nearer one is as good.
local function carlini_wagner(set, case)
  local c = case.config
  local attack = A.CarliniWagnerL2Attack(set.network, classes_of(set), { bin_search_steps = c.search_steps, max_iterations = c.iterations,
    learning_rate = c.lr, initial_const = c.initial_const, confidence = c.confidence, targeted = c.targets ~= nil, abort_early = false })
  local adv = attack:generate(set.x, c.targets and values.classes(c.targets) or set.y)
  if not values.differs("adversarial", adv, case.expected.adv, case.tolerance) then return predicted(set, case, adv) end
  local length = ops.sqrt(ops.sum(ops.square(flat(adv - set.x)), 1))
  local over = ops.amax(length / float64(case.expected.l2)):item()
  if over > 1.01 then return ("l2: %.4g times what is expected"):format(over) end
end
handlers.cw_l2, handlers.cw_l2_targeted = carlini_wagner, carlini_wagner

function handlers.ead_en(set, case)
  local c = case.config
  local attack = A.ElasticNetAttack(set.network, classes_of(set), { beta = c.beta, bin_search_steps = c.search_steps,
    max_iterations = c.iterations, learning_rate = c.lr, initial_const = c.initial_const, abort_early = false })
  local adv = attack:generate(set.x, set.y)
  local change = flat(adv - set.x)
  local value = ops.sum(ops.abs(change), 1) * c.beta + ops.sum(ops.square(change), 1)
  local found = ops.not_equal(set.model:predicted(adv), set.y):tolist()
  for i, is_found in ipairs(case.expected.found) do
    if found[i] ~= is_found then return ("sample %d: found is %s"):format(i, tostring(found[i])) end
  end
  return values.first(values.differs("value", value, case.expected.value, case.tolerance), predicted(set, case, adv))
end

local function deep_fool(set, case)
  local c = case.config
  local attack = A.DeepFool(set.network, classes_of(set),
    { norm_level = c.norm, overshoot = c.overshoot, max_iters = c.max_iterations, bounds = { 0, 1 } })
  attack.beyond = c.plus
  local adv = attack:generate(set.x, set.y)
  return values.first(values.differs("adversarial", adv, case.expected.adv, case.tolerance), predicted(set, case, adv))
end
handlers.deepfool_2, handlers.deepfool_inf, handlers.deepfool_1 = deep_fool, deep_fool, deep_fool

function handlers.jsma(set, case)
  local c, paths = case.config, {}
  local attack = A.JSMAAttack(set.network, classes_of(set), { theta = c.theta, max_iteration = c.max_iterations, max_count = c.max_count })
  for i = 1, set.x.shape[1] do paths[i] = {} end
  local adv = attack:_search(set.x, values.classes(c.targets), function(p, q, is_on)
    local first, second = p:tolist(), q:tolist()
    for i, changes in ipairs(is_on:tolist()) do
      if changes then table.insert(paths[i], { first[i], second[i] }) end
    end
  end)
  for i, path in ipairs(case.expected.path) do
    local got, wanted = ms.json.encode(paths[i]), ms.json.encode(path)
    if #path > 0 and got ~= wanted then return ("path of sample %d: %s, expected %s"):format(i, got, wanted) end
  end
  return values.first(values.differs("adversarial", adv, case.expected.adv, case.tolerance), predicted(set, case, adv))
end

-- Any minimum at least as deep will do. The attack's weight is that of the loss, the file's that of the distance.
function handlers.lbfgs(set, case)
  local c = case.config
  local attack = A.LBFGS(set.network)
  local targets = values.classes(c.targets)
  local adv = attack:_minimise(set.x, targets, ops.full({ set.x.shape[1] }, 1 / c.c, { dtype = set.x.dtype }))
  local value = ops.sum(ops.square(flat(adv - set.x)), 1) * c.c + set.model:losses(adv, targets)
  local over = ops.amax(value / float64(case.expected.value)):item()
  if not (over <= 1 + 1e-6) then return ("value: %.9g times what is expected"):format(over) end
  if ops.amin(adv):item() < 0 or ops.amax(adv):item() > 1 then return "adversarial: outside of the box" end
end

function handlers.nes_gradient(set, case)
  local c, estimates = case.config, {}
  for i, list in ipairs(c.directions) do
    local sample, label = set.x[{ ms.slice(i - 1, i) }], set.y[{ ms.slice(i - 1, i) }]
    local u = float64(list):reshape { #list, table.unpack(sample:shape(), 2) }
    local points = ops.concat({ sample + u * c.sigma, sample - u * c.sigma }, 0)
    local losses = set.model:losses(points, ops.broadcast_to(label, { 2 * #list }))
    estimates[i] = A.black.NES.estimate(losses, u, c.sigma)
  end
  return values.differs("estimate", ops.stack(estimates, 0), case.expected.estimate, case.tolerance)
end

return handlers
