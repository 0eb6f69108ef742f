-- DPModel: ms.Model whose steps are private ones (private_step.lua), and optimizers that add the noise themselves.
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"
local class = require "lunaria.nn.class"
local clipping = require "lunaria.armour.privacy.clipping"
local noise = require "lunaria.armour.privacy.noise"
local per_sample = require "lunaria.armour.privacy.per_sample"
local PrivateStep = require "lunaria.armour.privacy.private_step"

local fail, check, describe = arguments.fail, arguments.check, arguments.describe

local Model = ms.Model

local DPModel = Model:extend("DPModel")
DPModel._signature = arguments.signature(
  "network, loss_fn=nil, optimizer=nil, metrics=nil, eval_network=nil, eval_indexes=nil, norm_bound=1.0, noise_mech=nil, clip_mech=nil, "
    .. "micro_batches=nil, clipping=\"flat\", expected_batch_size=nil, max_physical_batch_size=nil, poisson_sampling=true, mode=\"auto\", "
    .. "loss_reduction=nil, secure=false, seed=0")
DPModel._doc = [[A ms.Model whose training is differentially private (Abadi and others 2016): each step sums the gradients of the samples,
every one clipped to norm_bound, adds normal noise, and divides by the expected size of a batch.

network, loss_fn, optimizer, metrics, eval_network, eval_indexes: as for ms.Model; the optimizer is any of ms.nn, or one of
DPOptimizerClassFactory, which has the noise. norm_bound: the bound C of one sample's gradient. noise_mech: a noise mechanism, by default
NoiseGaussianRandom with norm_bound and the multiplier 1. clip_mech: what adapts the bound (clipping = "adaptive" takes its defaults).
clipping: "flat" (over all parameters), "per_layer" (each parameter to C / sqrt(their number)), "automatic" (C / (norm + 0.01)) or
"adaptive". micro_batches: so many means of samples are clipped instead of the samples; wants batches of one size. expected_batch_size:
what sums are divided by; by default that of the data. max_physical_batch_size: larger batches are computed in pieces. poisson_sampling:
whether train draws the batches by chance from what it is given (ms.dataset.PoissonSampler), so that accountants' bounds hold; false
takes them as they come. mode, loss_reduction: as for PerSampleGradients. secure, seed: of the default noise.

Monitors (PrivacyMonitorFactory) as callbacks stop the training before the step that would pass the budget.

  > dp = ms.armour.privacy.diff_privacy
  > net = ms.nn.Dense(2, 3)
  > optimizer = ms.nn.SGD(net:trainable_params(), 0.1)
  > model = dp.DPModel(net, ms.nn.CrossEntropyLoss(), optimizer, { norm_bound = 1.0, noise_mech = dp.NoiseGaussianRandom(1.0, 1.1) })
  > model:train(1, { { ms.ones { 4, 2 }, ms.zeros({ 4 }, ms.int64) } })
  > tostring(model) --> Model<Dense>]]

local function mechanism_of(a, optimizer)
  local own = optimizer.noise_mech
  if own and a.noise_mech ~= nil then
    fail("DPModel", "noise_mech is given, and the optimizer adds noise of its own",
      "take a plain optimizer of ms.nn, or leave noise_mech out")
  end
  if own or a.noise_mech ~= nil then
    arguments.without_effect("DPModel", DPModel._signature, a, { "secure", "seed" }, "where the noise mechanism is given: it has its own")
  end
  local mechanism = own or a.noise_mech or noise.NoiseGaussianRandom(a.norm_bound, 1.0, a.seed, a.secure)
  if not class.is_a(mechanism, noise.Noise) then
    fail("DPModel", "noise_mech must be a noise mechanism, got " .. describe(mechanism), "NoiseMechanismsFactory():create(\"Gaussian\")")
  end
  if mechanism.norm_bound ~= a.norm_bound then
    fail("DPModel", ("norm_bound is %g, that of the noise mechanism is %g: the noise must fit the bound"):format(
      a.norm_bound, mechanism.norm_bound))
  end
  if mechanism.is_tree and a.poisson_sampling then
    fail("DPModel", "a tree's noise is for batches that go through the data, and Poisson sampling draws rows again",
      "poisson_sampling = false")
  end
  if mechanism.is_tree and (a.clip_mech ~= nil or a.clipping == "adaptive") then
    fail("DPModel", "a tree's noise keeps its scale, and an adaptive bound would change it")
  end
  return mechanism
end

function DPModel:init(...)
  local a = arguments.bind("DPModel", DPModel._signature, ...)
  local name = "DPModel"
  a.norm_bound = check.number_positive(name, "norm_bound", a.norm_bound) + 0.0
  check.choice(name, "clipping", a.clipping, clipping.names)
  for _, option in ipairs { "poisson_sampling", "secure" } do check.boolean(name, option, a[option]) end
  check.not_negative(name, "seed", a.seed)
  for _, option in ipairs { "micro_batches", "expected_batch_size", "max_physical_batch_size" } do
    if a[option] ~= nil then a[option] = check.positive(name, option, a[option]) end
  end
  local settings = package.loaded["lunaria.parallel.settings"]
  if settings and settings.of_training(a.network) then
    fail(name, "private training is for one rank: each of several would add noise of its own")
  end
  if a.optimizer == nil then fail(name, "optimizer is missing: there is nothing to train with") end
  -- What Model checks, without its step.
  self:setup { network = a.network, loss_fn = a.loss_fn, optimizer = a.optimizer, metrics = a.metrics, eval_network = a.eval_network,
    eval_indexes = a.eval_indexes, amp_level = "O0", boost_level = "O0" }
  local each = per_sample.PerSampleGradients(a.network, a.loss_fn, { mode = a.mode, loss_reduction = a.loss_reduction })
  local of_optimizer = {}
  for _, parameter in ipairs(a.optimizer.parameters) do of_optimizer[parameter] = true end
  for i, parameter in ipairs(each.parameters) do
    if not rawequal(a.optimizer.parameters[i], parameter) then
      fail(name, ("the optimizer must have all trained parameters of the network in their order; %s is %s"):format(parameter.name,
        of_optimizer[parameter] and "at another place" or "not among them"), "net:trainable_params() gives them")
    end
  end
  if #a.optimizer.parameters ~= #each.parameters then fail(name, "the optimizer has parameters that are not trained in the network") end
  local mechanism = mechanism_of(a, a.optimizer)
  if a.clipping == "adaptive" and a.clip_mech == nil then a.clip_mech = noise.AdaClippingWithGaussianRandom() end
  if a.clip_mech ~= nil then
    if not class.is_a(a.clip_mech, noise.AdaClippingWithGaussianRandom) then
      fail(name, "clip_mech must be a clip mechanism, got " .. describe(a.clip_mech), "ClipMechanismsFactory():create(\"Gaussian\")")
    end
    if a.clipping ~= "flat" and a.clipping ~= "adaptive" then
      fail(name, ("clip_mech adapts one bound for all parameters, and clipping is '%s'"):format(a.clipping))
    end
  end
  if a.micro_batches then
    arguments.without_effect(name, DPModel._signature, a, { "expected_batch_size" }, "with micro_batches: sums are divided by their number")
  end
  if a.micro_batches and (a.poisson_sampling or a.max_physical_batch_size) then
    fail(name, a.poisson_sampling and "micro_batches need batches of one size, and Poisson sampling gives others"
      or "micro_batches and max_physical_batch_size exclude each other", a.poisson_sampling and "poisson_sampling = false" or nil)
  end
  rawset(self, "private", PrivateStep(each, {
    optimizer = a.optimizer, noise_mech = mechanism, clip_mech = a.clip_mech,
    clipping = a.clipping, norm_bound = a.norm_bound, micro_batches = a.micro_batches, expected_batch_size = a.expected_batch_size,
    max_physical_batch_size = a.max_physical_batch_size,
  }))
  self.train_network, self.poisson_sampling = self.private, a.poisson_sampling
end

-- The batches of a training, and what their sums are divided by.
function DPModel:_batches(where, dataset, asked)
  local Sampler = ms.dataset.PoissonSampler
  if not class.is_a(dataset, Sampler) then
    if self.poisson_sampling then
      if type(dataset) == "function" then
        fail(where, "batches of a function cannot be drawn by chance",
          "give a data set or tensors, or make the model with poisson_sampling = false")
      end
      dataset = Sampler(dataset)
    elseif asked == nil then
      return dataset
    end
  elseif self.private.micro_batches then
    fail(where, "micro_batches need batches of one size, and Poisson sampling gives others")
  end
  if class.is_a(dataset, Sampler) and asked == nil then self.private:divide_by(dataset.expected_batch_size) end
  return dataset
end

-- A step asks for noise and bounds between its compiled halves.
local function refuse_sink(where, sinks)
  if sinks == true then fail(where, "a private training sinks no steps: dataset_sink_mode must be false") end
end

local function with_batches(method)
  return function(self, epoch, train_dataset, ...)
    local last = select("#", ...) > 0 and select(select("#", ...), ...) or nil
    for _, given in ipairs { epoch, train_dataset, last } do
      if arguments.is_options(given) then refuse_sink(method, given.dataset_sink_mode) end
    end
    -- By position it comes behind the callbacks.
    refuse_sink(method, (select(method == "train" and 2 or 4, ...)))
    local asked = self.private.expected_batch_size
    if arguments.is_options(epoch) then
      local given = {}
      for key, value in pairs(epoch) do given[key] = value end
      given.train_dataset = self:_batches(method, epoch.train_dataset, asked)
      return Model[method](self, given)
    end
    if arguments.is_options(train_dataset) and train_dataset.train_dataset ~= nil then
      local given = {}
      for key, value in pairs(train_dataset) do given[key] = value end
      given.train_dataset = self:_batches(method, given.train_dataset, asked)
      return Model[method](self, epoch, given)
    end
    return Model[method](self, epoch, self:_batches(method, train_dataset, asked), ...)
  end
end

--- Trains as ms.Model's train does; every step is a private one. With poisson_sampling the batches are drawn by chance from train_dataset
--- (a data set, a list of batches, a PoissonSampler): as many an epoch, and as large, as the data set's own, but their sizes vary, and a
--- batch may be empty.
---     > dp = ms.armour.privacy.diff_privacy
---     > net = ms.nn.Dense(2, 3)
---     > model = dp.DPModel(net, ms.nn.CrossEntropyLoss(), ms.nn.Adam(net:trainable_params()))
---     > model:train(1, { { ms.ones { 4, 2 }, ms.zeros({ 4 }, ms.int64) } })
DPModel.train = with_batches "train"

--- Trains as train does, and evaluates as ms.Model's fit does.
---     > dp = ms.armour.privacy.diff_privacy
---     > net = ms.nn.Dense(2, 3)
---     > model = dp.DPModel(net, ms.nn.CrossEntropyLoss(), ms.nn.Adam(net:trainable_params()))
---     > batches = { { ms.ones { 4, 2 }, ms.zeros({ 4 }, ms.int64) } }
---     > model:fit(1, batches, batches)
DPModel.fit = with_batches "fit"

--- The noise multiplier that an accountant has to count for a step. step: its number from 0; without it the next one.
---     > dp = ms.armour.privacy.diff_privacy
---     > net = ms.nn.Dense(2, 3)
---     > dp.DPModel(net, ms.nn.CrossEntropyLoss(), ms.nn.Adam(net:trainable_params())):noise_multiplier() --> 1.0
function DPModel:noise_multiplier(step) return self.private:noise_multiplier(step) end

-- The class of optimizers with noise that a factory makes of a class without.
local function noisy(base, name, factory)
  local made = base:extend(name)
  made._signature = base._signature
  function made:init(...)
    base.init(self, ...)
    rawset(self, "noise_mech", factory._make(table.unpack(factory._arguments, 1, factory._arguments.n)))
    rawset(self, "divisor", factory.micro_batches)
  end
  -- The step without noise, for a DPModel, which adds it.
  function made:plain_step(gradients) return base.construct(self, gradients) end
  function made:construct(gradients)
    if ms.is_tensor(gradients) then gradients = { gradients } end
    local drawn, noised = self.noise_mech(gradients), {}
    for i = 1, #gradients do noised[i] = (gradients[i] + drawn[i]) / self.divisor end
    self.noise_mech:advance()
    return base.construct(self, noised)
  end
  return made
end

local DPOptimizerClassFactory = class.define(nil, "DPOptimizerClassFactory", "micro_batches=2",
  [[Makes classes of optimizers that add noise to the sums of gradients which they get, and divide them by micro_batches before their step:
set_mechanisms(policy, { ... }) chooses the noise as NoiseMechanismsFactory does, create(name) gives the class for any optimizer of ms.nn.
As the optimizer of a DPModel it is divided by the expected size of its batches.

  > factory = ms.armour.privacy.diff_privacy.DPOptimizerClassFactory(8)
  > factory:set_mechanisms("Gaussian", { norm_bound = 1.0, initial_noise_multiplier = 1.5 })
  > net = ms.nn.Dense(2, 3)
  > optimizer = factory:create("Adam")(net:trainable_params(), 0.01)
  > optimizer(ms.nn.WithGradCell(net, ms.nn.MSELoss("sum"))(ms.ones { 8, 2 }, ms.zeros { 8, 3 })) --> true]])

function DPOptimizerClassFactory:setup(a)
  self.micro_batches = check.positive("DPOptimizerClassFactory", "micro_batches", a.micro_batches)
end

--- Chooses the noise. policy: "Gaussian" or "AdaGaussian"; what follows are its arguments.
---     > ms.armour.privacy.diff_privacy.DPOptimizerClassFactory():set_mechanisms("AdaGaussian", { noise_decay_rate = 1e-4 })
function DPOptimizerClassFactory:set_mechanisms(policy, ...)
  self._make = function(...) return noise.NoiseMechanismsFactory():create(policy, ...) end
  self._arguments = table.pack(...)
  self._make(...)
end

--- The class of optimizers. policy: the name of a class of ms.nn, as "SGD", "Momentum", "Adam".
---     > factory = ms.armour.privacy.diff_privacy.DPOptimizerClassFactory()
---     > factory:set_mechanisms("Gaussian")
---     > factory:create("SGD")(ms.nn.Dense(2, 3):trainable_params(), 0.1):get_lr() --> 0.1
function DPOptimizerClassFactory:create(policy)
  local name = "DPOptimizerClassFactory"
  if not self._make then fail(name, "there is no noise yet", "factory:set_mechanisms(\"Gaussian\", { norm_bound = 1.0 })") end
  local base = type(policy) == "string" and ms.nn[policy]
  if type(base) ~= "table" or base.construct == nil or base.get_lr == nil then
    fail(name, ("create wants the name of an optimizer of ms.nn, got %s"):format(describe(policy)))
  end
  return noisy(base, "DP" .. policy, self)
end

return { DPModel = DPModel, DPOptimizerClassFactory = DPOptimizerClassFactory }
