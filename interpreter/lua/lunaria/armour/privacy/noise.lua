-- Noise on sums of clipped gradients, its decay over the steps, and bounds that adapt themselves. MindArmour's names; the noise belongs to
-- a step, not to a tensor, so that all parameters of a step have the same multiplier.
--
-- secure = true draws from the operating system's cryptographic generator, which has no seed, so that nothing that is written down
-- tells the noise. A normal number is then the sum of four, each of its own uniform numbers, over 2: the floating-point grid of a single
-- one would let an attacker tell apart results that the continuous distribution does not (Mironov 2012; Holohan and Braghin 2021).
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"
local class = require "lunaria.nn.class"
local draws = require "lunaria.common.draws"

local ops, is_tensor = ms.ops, ms.is_tensor
local fail, check, describe = arguments.fail, arguments.check, arguments.describe

local function count_of(shape)
  local count = 1
  for i = 1, #shape do count = count * shape[i] end
  return count
end

local function secure_normal(shape, dtype)
  local count = count_of(shape)
  if count == 0 then return ops.zeros(shape, dtype) end
  local total
  for _ = 1, 4 do
    local radius = ops.sqrt(ops.log(draws.secure_uniform(count)) * -2.0)
    local z = radius * ops.cos(draws.secure_uniform(count) * (2 * math.pi))
    total = total and total + z or z
  end
  return ops.reshape(total * 0.5, shape):astype(dtype)
end

local Noise = class.Object:extend("Noise")
Noise._called = "noise mechanism"

-- The multiplier before each step, from 0.
local decays = {
  Time = function(first, rate, step) return first / (1 + rate * step) end,
  Step = function(first, rate, step) return first * (1 - rate) ^ step end,
  Exp = function(first, rate, step) return first * math.exp(-rate * step) end,
}

local function setup(self, name, a)
  self.norm_bound = check.number_positive(name, "norm_bound", a.norm_bound) + 0.0
  self.initial_noise_multiplier = check.number_positive(name, "initial_noise_multiplier", a.initial_noise_multiplier) + 0.0
  self.seed = check.not_negative(name, "seed", a.seed)
  self.secure = check.boolean(name, "secure", a.secure)
  if self.secure and self.seed ~= 0 then
    fail(name, "secure noise has no seed, and one is given", "leave seed out")
  end
  if self.seed ~= 0 then self._generator = ms.Generator():manual_seed(self.seed) end
  self.step = 0
end

--- The noise multiplier of a step. step: its number from 0; without it the next one.
---     > ms.armour.privacy.diff_privacy.NoiseGaussianRandom(1.0, 1.5):noise_multiplier() --> 1.5
function Noise:noise_multiplier(step)
  step = step == nil and self.step or check.not_negative("noise_multiplier", "step", step)
  local decay = decays[self.decay_policy]
  return decay and decay(self.initial_noise_multiplier, self.noise_decay_rate, step) or self.initial_noise_multiplier
end

--- Ends a step: the noise that is drawn next has the multiplier of the step after it.
---     > noise = ms.armour.privacy.diff_privacy.NoiseAdaGaussianRandom(1.0, 2.0, { decay_policy = "Step", noise_decay_rate = 0.5 })
---     > noise:advance()
---     > noise:noise_multiplier() --> 1.0
function Noise:advance() self.step = self.step + 1 end

--- What a checkpoint keeps: the number of steps, the bound, and of a seed where its numbers are. Secure noise has nothing of this kind.
---     > ms.armour.privacy.diff_privacy.NoiseGaussianRandom():state_dict().step --> 0
function Noise:state_dict()
  return { step = self.step, norm_bound = self.norm_bound, random = self._generator and self._generator:get_state():tolist() }
end

--- Takes up what state_dict gave. state: that table.
---     > ms.armour.privacy.diff_privacy.NoiseGaussianRandom():load_state_dict({ step = 3, norm_bound = 1.0 })
function Noise:load_state_dict(state)
  self.step, self.norm_bound = state.step, state.norm_bound
  if self._generator and state.random then self._generator:set_state(ms.tensor(state.random, ms.int64)) end
end

-- Numbers of the standard normal distribution in a tensor's shape and dtype: the session's, or those of the mechanism's seed.
function Noise:_unit(like)
  if self.secure then return secure_normal(like.shape, like.dtype):to(like.device) end
  return ops.randn(like.shape, { dtype = like.dtype, generator = self._generator }):to(like.device)
end

-- mechanism(gradients): noise of the shape of a tensor, or a list of a list's.
function Noise:__call(gradients)
  local name = getmetatable(self)._name
  local scale = self.norm_bound * self:noise_multiplier()
  if is_tensor(gradients) then return self:_unit(gradients) * scale end
  if type(gradients) ~= "table" or #gradients == 0 then
    fail(name, "gradients must be a tensor or a list of them, got " .. describe(gradients))
  end
  local list = {}
  for i = 1, #gradients do
    if not is_tensor(gradients[i]) then fail(name, ("gradients[%d] must be a tensor, got %s"):format(i, describe(gradients[i]))) end
    list[i] = self:_unit(gradients[i]) * scale
  end
  return list
end

local NoiseGaussianRandom = class.define(Noise, "NoiseGaussianRandom", "norm_bound=1.0, initial_noise_multiplier=1.0, seed=0, secure=false",
  [[Normal noise of the standard deviation norm_bound * initial_noise_multiplier: mechanism(gradients) gives noise in their shapes.

norm_bound: the bound of what one sample gives. seed: a number of its own for the draws; 0 draws with the session. secure: draws from the
operating system's cryptographic generator, without a seed.

  > noise = ms.armour.privacy.diff_privacy.NoiseGaussianRandom(0.5, 1.2, { seed = 7 })
  > noise(ms.zeros { 2, 3 }).shape --> (2, 3)]])
function NoiseGaussianRandom:setup(a) setup(self, "NoiseGaussianRandom", a) end

local NoiseAdaGaussianRandom = class.define(Noise, "NoiseAdaGaussianRandom",
  "norm_bound=1.0, initial_noise_multiplier=1.0, seed=0, noise_decay_rate=6e-6, decay_policy=\"Exp\", secure=false",
  [[Normal noise that becomes less with the steps t = 0, 1, ...: multiplier s exp(-rate t) ("Exp"), s (1 - rate)^t ("Step") or
s / (1 + rate t) ("Time"), with s = initial_noise_multiplier and rate = noise_decay_rate. decay_policy: one of these names. norm_bound: the
bound of what one sample gives, with which the multiplier is multiplied. seed: a number of its own for the draws; 0 draws with the session.
secure: draws from the operating system's cryptographic generator, without a seed.

  > noise = ms.armour.privacy.diff_privacy.NoiseAdaGaussianRandom(1.0, 1.5, { noise_decay_rate = 0.5, decay_policy = "Time" })
  > noise:noise_multiplier(1) --> 1.0]])
function NoiseAdaGaussianRandom:setup(a)
  setup(self, "NoiseAdaGaussianRandom", a)
  self.noise_decay_rate = check.rate("NoiseAdaGaussianRandom", "noise_decay_rate", a.noise_decay_rate) + 0.0
  self.decay_policy = check.choice("NoiseAdaGaussianRandom", "decay_policy", a.decay_policy, { "Exp", "Step", "Time" })
end

local AdaClippingWithGaussianRandom = class.define(nil, "AdaClippingWithGaussianRandom",
  "decay_policy=\"Linear\", learning_rate=0.001, target_unclipped_quantile=0.9, fraction_stddev=0.01, seed=0, secure=false",
  [[A norm bound that follows a quantile of the gradients' norms (Andrew and others 2021): mechanism(fraction, norm_bound) gives the next
bound. fraction: the share of gradients that were not clipped; noise of the standard deviation fraction_stddev is added to it.
decay_policy: "Linear" (C - lr (b - q)) or "Geometric" (C exp(-lr (b - q))), with lr = learning_rate and q =
target_unclipped_quantile. seed: as for noise. secure: as for noise.

  > clip = ms.armour.privacy.diff_privacy.AdaClippingWithGaussianRandom("Geometric", 0.2, 0.5, 0.0)
  > clip(0.5, 1.0) --> 1.0]])
function AdaClippingWithGaussianRandom:setup(a)
  local name = "AdaClippingWithGaussianRandom"
  self.decay_policy = check.choice(name, "decay_policy", a.decay_policy, { "Linear", "Geometric" })
  self.learning_rate = check.number_positive(name, "learning_rate", a.learning_rate) + 0.0
  self.target_unclipped_quantile = check.probability(name, "target_unclipped_quantile", a.target_unclipped_quantile) + 0.0
  self.fraction_stddev = check.finite_not_negative(name, "fraction_stddev", a.fraction_stddev) + 0.0
  self._noise = NoiseGaussianRandom { seed = a.seed, secure = a.secure }
end

function AdaClippingWithGaussianRandom:__call(empirical_fraction, norm_bound)
  local name = "AdaClippingWithGaussianRandom"
  empirical_fraction = check.finite(name, "empirical_fraction", empirical_fraction)
  norm_bound = check.number_positive(name, "norm_bound", norm_bound)
  local noise = 0.0
  if self.fraction_stddev > 0 then noise = self._noise(ops.zeros({}, ms.float64)):item() * self.fraction_stddev end
  self._noise:advance()
  local difference = empirical_fraction + noise - self.target_unclipped_quantile
  if self.decay_policy == "Geometric" then return norm_bound * math.exp(-self.learning_rate * difference) end
  -- A bound of 0 or below would clip everything away for good.
  return math.max(norm_bound - self.learning_rate * difference, 1e-6)
end

--- What a checkpoint keeps: where the numbers of a seed are.
---     > ms.armour.privacy.diff_privacy.AdaClippingWithGaussianRandom():state_dict().step --> 0
function AdaClippingWithGaussianRandom:state_dict() return self._noise:state_dict() end

--- Takes up what state_dict gave. state: that table.
---     > clip = ms.armour.privacy.diff_privacy.AdaClippingWithGaussianRandom()
---     > clip:load_state_dict(clip:state_dict())
function AdaClippingWithGaussianRandom:load_state_dict(state) self._noise:load_state_dict(state) end

-- What a factory makes of a name and arguments for classes with different ones.
local function create(where, what, named, signature, mech_name, ...)
  local names = {}
  for known in pairs(named) do names[#names + 1] = known end
  table.sort(names)
  local chosen = named[mech_name]
  if not chosen then
    fail(where, ("there is no %s %s; there are: %s"):format(what, describe(mech_name), table.concat(names, ", ")),
      type(mech_name) == "string" and arguments.nearest(mech_name, names) or nil)
  end
  local given = arguments.bind(where .. ":create", arguments.signature(signature), ...)
  for key in pairs(given) do
    if chosen._signature[key] == nil then fail(where, ("%s has no argument '%s'"):format(mech_name, key)) end
  end
  return chosen(given)
end

local NoiseMechanismsFactory = class.define(nil, "NoiseMechanismsFactory", "",
  [[Noise mechanisms by name: create("Gaussian", { ... }) gives a NoiseGaussianRandom, "AdaGaussian" a NoiseAdaGaussianRandom.

  > factory = ms.armour.privacy.diff_privacy.NoiseMechanismsFactory()
  > factory:create("Gaussian", { norm_bound = 1.0, initial_noise_multiplier = 1.5 }):noise_multiplier() --> 1.5]])
function NoiseMechanismsFactory:setup() end -- luacheck: ignore 212

--- A noise mechanism. mech_name: "Gaussian" or "AdaGaussian"; what follows are its arguments.
---     > factory = ms.armour.privacy.diff_privacy.NoiseMechanismsFactory()
---     > factory:create("AdaGaussian", { initial_noise_multiplier = 2.0 }):noise_multiplier() --> 2.0
function NoiseMechanismsFactory:create(mech_name, ...) -- luacheck: ignore 212
  return create("NoiseMechanismsFactory", "noise mechanism", { Gaussian = NoiseGaussianRandom, AdaGaussian = NoiseAdaGaussianRandom },
    "norm_bound=nil, initial_noise_multiplier=nil, seed=nil, noise_decay_rate=nil, decay_policy=nil, secure=nil", mech_name, ...)
end

local ClipMechanismsFactory = class.define(nil, "ClipMechanismsFactory", "",
  [[Mechanisms for the norm bound by name: create("Gaussian", { ... }) gives an AdaClippingWithGaussianRandom.

  > clip = ms.armour.privacy.diff_privacy.ClipMechanismsFactory():create("Gaussian", { learning_rate = 0.1, fraction_stddev = 0.0 })
  > clip(1.0, 1.0) --> 0.99]])
function ClipMechanismsFactory:setup() end -- luacheck: ignore 212

--- A mechanism that adapts the norm bound. mech_name: "Gaussian"; what follows are its arguments.
---     > factory = ms.armour.privacy.diff_privacy.ClipMechanismsFactory()
---     > factory:create("Gaussian", { decay_policy = "Geometric", fraction_stddev = 0.0 })(0.9, 2.0) --> 2.0
function ClipMechanismsFactory:create(mech_name, ...) -- luacheck: ignore 212
  return create("ClipMechanismsFactory", "clip mechanism", { Gaussian = AdaClippingWithGaussianRandom },
    "decay_policy=nil, learning_rate=nil, target_unclipped_quantile=nil, fraction_stddev=nil, seed=nil, secure=nil", mech_name, ...)
end

return {
  Noise = Noise, decays = decays, setup = setup, NoiseGaussianRandom = NoiseGaussianRandom, NoiseAdaGaussianRandom = NoiseAdaGaussianRandom,
  AdaClippingWithGaussianRandom = AdaClippingWithGaussianRandom, NoiseMechanismsFactory = NoiseMechanismsFactory,
  ClipMechanismsFactory = ClipMechanismsFactory,
}
