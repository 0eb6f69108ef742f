-- Attacks on the networks of a file. The random draws that an attack would make are those of the file: in place of its generator, or of the
-- function that gives its start.
local ms = require "lunaria"
local common = require "lunaria.armour.common"
local values = require "armour.values"

local ops, A = ms.ops, ms.armour.attacks
local float64 = values.float64

local handlers = {}

-- A generator that gives what the file has.
local function scripted(name, list, shape)
  return { [name] = function() return float64(list):reshape(shape) end }
end

local function compare(set, case, adv)
  local predicted = set.model:predicted(adv)
  return values.first(
    values.differs("adversarial", adv, case.expected.adv, case.tolerance),
    values.differs("predicted", predicted, case.expected.predicted, 0))
end

local function fast(set, case)
  local c = case.config
  return compare(set, case, A.FastGradientMethod(set.network, { eps = c.eps, norm_level = c.norm }):generate(set.x, set.y))
end
handlers.fgm_1, handlers.fgm_2, handlers.fgm_inf = fast, fast, fast

function handlers.least_likely_class(set, case)
  return compare(set, case, A.LeastLikelyClassMethod(set.network, { eps = case.config.eps }):generate(set.x))
end

function handlers.random_fgsm_paper(set, case)
  local c = case.config
  local attack = A.RandomFastGradientSignMethod(set.network, { eps = c.eps, alpha = c.alpha })
  attack._draws = scripted("normal", c.noise, set.shape)
  return compare(set, case, attack:generate(set.x, set.y))
end

-- MindArmour's formula, whose gradient is that at the image; no attack of ours.
function handlers.random_fgsm_mindarmour(set, case)
  local c = case.config
  local sign, gradient = ops.sign(float64(c.noise):reshape(set.shape)), set.model:input_gradient(set.x, set.y)
  return compare(set, case, ops.clamp(set.x + ops.sign(gradient) * (c.eps - c.alpha) + sign * c.alpha, 0.0, 1.0))
end

local function projected(set, case)
  local c = case.config
  local attack = A.ProjectedGradientDescent(set.network,
    { eps = c.eps, eps_iter = c.step, nb_iter = c.iterations, norm_level = c.norm, random_start = c.start ~= nil })
  if c.start then attack._draws = scripted("uniform", c.start, set.shape) end
  local adv = attack:generate(set.x, set.y)
  local last = {}
  for i, losses in ipairs(case.expected.losses or {}) do last[i] = losses[#losses] end
  return values.first(compare(set, case, adv),
    #last > 0 and values.differs("loss", set.model:losses(adv, set.y), last, case.tolerance) or nil)
end
handlers.pgd_1, handlers.pgd_2, handlers.pgd_inf = projected, projected, projected

local function momentum(name)
  return function(set, case)
    local c = case.config
    local attack = A[name](set.network, { eps = c.eps, eps_iter = c.step, nb_iter = c.iterations, decay_factor = c.mu })
    return compare(set, case, attack:generate(set.x, set.y))
  end
end
handlers.mi_fgsm, handlers.ni_fgsm = momentum "MomentumIterativeMethod", momentum "NesterovIterativeMethod"

local function variance(name)
  return function(set, case)
    local c = case.config
    local attack = A[name](set.network, { eps = c.eps, eps_iter = c.step, nb_iter = c.iterations, decay_factor = c.mu,
      nb_neighbor = c.neighbours, neighbor_beta = c.beta })
    -- (n, iterations, neighbours, size) in the file, (neighbours, n, ...) at each iteration.
    local noise, at = ops.transpose(float64(c.noise), { 1, 2, 0, 3 }), -1
    attack._draws = { uniform = function(_, shape)
      at = at + 1
      return noise[at]:reshape(shape)
    end }
    return compare(set, case, attack:generate(set.x, set.y))
  end
end
handlers.vmi_fgsm, handlers.vni_fgsm = variance "VarianceTuningMomentumIterativeMethod", variance "VarianceTuningNesterovIterativeMethod"

-- The draws of the file, sizes and places, as the shares that give them.
function handlers.di_fgsm(set, case)
  local c = case.config
  local attack = A.MomentumDiverseInputIterativeMethod(set.network,
    { eps = c.eps, eps_iter = c.step, nb_iter = c.iterations, decay_factor = c.mu, prob = 1.0, resize_rate = 1e-9 })
  local length, at = set.x.shape[3], 0
  local transforms = float64(c.transforms)
  -- In the order of the draws: whether an image stays as it is, its size, its place down, its place right.
  attack._draws = { uniform = function()
    local iteration, which = at // 4, at % 4
    at = at + 1
    local drawn = transforms[{ ms.slice(), iteration }]
    local size = drawn[{ ms.slice(), 0 }]
    if which == 0 then return ops.zeros_like(size) end
    if which == 1 then return (size - 0.5) / length end
    return (drawn[{ ms.slice(), which - 1 }] + 0.5) / (length - size + 1)
  end }
  return compare(set, case, attack:generate(set.x, set.y))
end

local function auto(loss)
  return function(set, case)
    local c = case.config
    local attack = A.AutoProjectedGradientDescent(set.network,
      { eps = c.eps, nb_iter = c.iterations, thr_decr = c.rho, loss_fn = loss })
    attack._random_start = function() return float64(c.start):reshape(set.shape) end
    local adv = attack:generate(set.x, set.y)
    local losses = attack:_objective(set.network(adv), set.y, set.y)
    return values.first(values.differs("loss", losses, case.expected.best_loss, 1e-8), compare(set, case, adv))
  end
end
handlers.apgd_ce_inf, handlers.apgd_dlr_inf = auto "ce", auto "dlr"

-- Attacks for the nearest adversarial input are in a file of their own.
local more = package.searchpath("armour.minimal_attacks", package.path)
for name, handler in pairs(more and dofile(more) or {}) do handlers[name] = handler end

return function(section, case)
  for name, given in pairs(section) do
    local network, n = values.network(given.net), #given.x
    local set = { network = network, model = common.classifier("case", network), shape = { n, table.unpack(given.net.shape) },
      y = values.classes(given.y), given = given }
    set.x = float64(given.x):reshape(set.shape)
    case(name .. "/logits", function() return values.differs("logits", set.model:logits(set.x), given.logits, 1e-11) end)
    case(name .. "/input_gradient", function()
      return values.differs("gradient", set.model:input_gradient(set.x, set.y), given.input_gradient, 1e-11)
    end)
    for _, one in ipairs(given.cases) do
      -- A name such as deepfool_2_plus0.0001 ends in a number of its settings.
      local handler = handlers[one.attack] or handlers[one.attack:gsub("_plus[%d.e-]+$", "")]
      case(one.id, function()
        if not handler then return "waiting" end
        return handler(set, one)
      end)
    end
  end
end
