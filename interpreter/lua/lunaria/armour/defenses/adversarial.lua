-- Adversarial training: steps of training with samples that an attack on the network as it is has changed. A defence is a cell; a call is
-- one step. Its parts are compiled (the attack, the step), the cell itself is not: the attack's draws and checks are Lua's.
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"
local cells = require "lunaria.nn.cell"
local class = require "lunaria.nn.class"
local common = require "lunaria.armour.common"

local ops = ms.ops
local fail, check, describe = arguments.fail, arguments.check, arguments.describe
local layer = cells.layer

local defenses = {}

local network_text = [[network: a cell that gives logits (N, classes). loss_fn: a cell or function of logits and labels (nil:
cross-entropy of class numbers). optimizer: an optimizer of the network's parameters (nil: Momentum with rate 0.01 and momentum 0.9).]]

local Defense = layer(cells.Cell, "Defense", "network, loss_fn=nil, optimizer=nil", [[What all defences are: cells whose call is one step of
training, which gives the loss. A class of your own extends it and has a method adversarial(self, inputs, labels), which gives what the
step is made with.

]] .. network_text .. [[


  > net = ms.nn.Dense(4, 3)
  > Noisy = ms.armour.Defense:extend("Noisy")
  > Noisy.adversarial = function(self, x, y) return x + 0.125 * ms.randn(x.shape), y end
  > Noisy(net):defense(ms.ones { 2, 4 }, ms.tensor { 0, 2 }) > 0 --> true]])
Defense._called = "defence"
Defense.auto_prefix = false
defenses.Defense = Defense

local function name_of(object) return getmetatable(object)._name end

--- The cell that gives the loss of what adversarial gives, for a model of one's own.
---     > defense = ms.armour.defenses.AdversarialDefense(ms.nn.Dense(4, 3))
---     > defense:loss_network()(ms.ones { 2, 4 }, ms.tensor({ 0, 2 }, ms.int32)).shape --> ()
function Defense:loss_network() return self.loss_net end

--- For init of a class of your own: keeps the network, the loss, and makes the step of training. a: network, loss_fn, optimizer.
--- loss_net: a cell that gives the loss of what adversarial gives; without it network and loss_fn.
---     > Own = ms.armour.Defense:extend("Own")
---     > Own.init = function(self, network) self:keep { network = network } end
---     > Own(ms.nn.Dense(2, 3)).optimizer ~= nil --> true
function Defense:keep(a, loss_net)
  local name = name_of(self)
  loss_net = arguments.named(name, { "loss_net" }, loss_net)
  if not cells.is_cell(a.network) then fail(name, "network must be a cell, got " .. describe(a.network)) end
  if a.loss_fn ~= nil and not arguments.is_callable(a.loss_fn) then
    fail(name, "loss_fn must be a cell or a function of logits and labels, got " .. describe(a.loss_fn))
  end
  if a.optimizer ~= nil and (not cells.is_cell(a.optimizer) or not a.optimizer.parameters) then
    fail(name, "optimizer must be an optimizer, got " .. describe(a.optimizer))
  end
  if #a.network:trainable_params() == 0 then fail(name, "the network has no trainable parameters") end
  rawset(self, "_uncompiled", true)
  rawset(self, "_loss_fn", a.loss_fn or false)
  self.network = a.network
  self.loss_net = loss_net or ms.nn.WithLossCell(a.network, a.loss_fn or ops.cross_entropy)
  self.optimizer = a.optimizer or ms.nn.Momentum(a.network:trainable_params(), 0.01, 0.9)
  self.train_net = ms.nn.TrainOneStepCell(self.loss_net, self.optimizer)
end

function Defense:setup(a) self:keep(a) end

-- The inputs, and the labels in the form that the loss takes: class numbers where it is the library's own.
function Defense:_checked(inputs, labels)
  local name = name_of(self)
  -- A ball around a sample outside of the bounds would not hold it.
  local ball = rawget(self, "_ball")
  common.images(name, inputs, ball and ball.lo, ball and ball.hi)
  -- A loss of the user's takes labels of its own kind.
  if self._loss_fn then
    common.labels(name, labels, inputs.shape[1])
    return inputs, labels
  end
  if not rawget(self, "_asked") then rawset(self, "_asked", common.classifier(name, self.network)) end
  return inputs, common.labels(name, labels, inputs.shape[1], self._asked:classes(inputs))
end

--- What a step is made with: the samples and labels, changed as the defence does it.
---     > x, y = ms.armour.defenses.AdversarialDefense(ms.nn.Dense(4, 3)):adversarial(ms.ones { 2, 4 }, ms.tensor({ 0, 2 }, ms.int32))
---     > y:tolist()[2] --> 2
function Defense:adversarial(inputs, labels) return inputs, labels end

function Defense:construct(inputs, labels)
  inputs, labels = self:_checked(inputs, labels)
  return self.train_net(self:adversarial(inputs, labels))
end

--- One step of training; gives the loss, a number. inputs: a tensor (N, ...). labels: class numbers (N,) or one-hot (N, classes), as
--- loss_fn takes them.
---     > net = ms.nn.Dense(4, 3)
---     > defense = ms.armour.defenses.AdversarialDefense(net)
---     > before = defense:defense(ms.ones { 2, 4 }, ms.tensor { 0, 2 })
---     > defense:defense(ms.ones { 2, 4 }, ms.tensor { 0, 2 }) < before --> true
function Defense:defense(inputs, labels)
  inputs, labels = arguments.named("defense", { "inputs", "labels" }, inputs, labels)
  return self(inputs, labels):item()
end

--- Epochs of training with shuffled batches; gives the mean loss of the last epoch and a list of those of all. batch_size: default 32; a
--- last batch may be smaller. epochs: default 5. seed: of the shuffling (nil: from the session's random numbers).
---     > defense = ms.armour.defenses.AdversarialDefense(ms.nn.Dense(4, 3))
---     > loss, all = defense:batch_defense(ms.rand { 7, 4 }, ms.ones({ 7 }, ms.int32), { batch_size = 2, epochs = 3 })
---     > #all --> 3
function Defense:batch_defense(...)
  local where = "batch_defense"
  local inputs, labels, batch_size, epochs, seed = arguments.named(where, { "inputs", "labels", "batch_size", "epochs", "seed" }, ...)
  self:_checked(inputs, labels)
  batch_size, epochs = check.positive(where, "batch_size", batch_size or 32), check.positive(where, "epochs", epochs or 5)
  local draws, losses, count = common.generator(seed, where), {}, inputs.shape[1]
  for epoch = 1, epochs do
    local order, sum = draws:permutation(count), 0.0
    for from = 0, count - 1, batch_size do
      local part = order[{ ms.slice(from, math.min(count, from + batch_size)) }]
      sum = sum + self:defense(inputs:index_select(0, part), labels:index_select(0, part)) * part.shape[1]
    end
    losses[epoch] = sum / count
  end
  return losses[epochs], losses
end

defenses.AdversarialDefense = class.define(Defense, "AdversarialDefense", "network, loss_fn=nil, optimizer=nil",
  [[Training with samples that are given: with adversarial ones it is adversarial training.

]] .. network_text .. [[


  > defense = ms.armour.defenses.AdversarialDefense(ms.nn.Dense(4, 3), ms.nn.CrossEntropyLoss())
  > defense:defense(ms.ones { 2, 4 }, ms.tensor({ 0, 2 }, ms.int32)) > 0 --> true]])
function defenses.AdversarialDefense:setup(a) self:keep(a) end

local WithAttacks = class.define(Defense, "AdversarialDefenseWithAttacks",
  "network, attacks, loss_fn=nil, optimizer=nil, bounds=nil, replace_ratio=0.5, seed=nil",
  [[Training in which attacks change a part of each batch (Goodfellow et al., 2015; Madry et al., 2018; with attacks on other networks
Tramèr et al., 2018).

]] .. network_text .. [[ attacks: a list of attacks of ms.armour.attacks; each changes an equal part. bounds: { lo, hi } of the inputs,
which attacks' results are clipped to (nil: { 0, 1 }; false: none). replace_ratio: the share of a batch that is changed, from 0 to 1,
rounded up. seed: of the choice of samples (nil: from the session's random numbers).

  > net = ms.nn.Dense(4, 3)
  > attack = ms.armour.attacks.FastGradientSignMethod(net, { eps = 0.1 })
  > defense = ms.armour.defenses.AdversarialDefenseWithAttacks(net, { attack }, { replace_ratio = 1.0 })
  > defense:defense(ms.rand { 2, 4 }, ms.tensor { 0, 2 }) > 0 --> true]])
defenses.AdversarialDefenseWithAttacks = WithAttacks

-- What is set beside the base: attacks, their number, the share of a batch.
local function keep_attacks(self, a, attacks)
  self:keep(a)
  local name = name_of(self)
  if type(attacks) ~= "table" or getmetatable(attacks) ~= nil or #attacks == 0 then
    fail(name, "attacks must be a list of attacks, got " .. describe(attacks))
  end
  for i, attack in ipairs(attacks) do
    if type(attack) ~= "table" or type(attack.generate) ~= "function" or rawget(attack, "_is_class") then
      fail(name, ("attacks[%d] must be an attack, got %s"):format(i, describe(attack)))
    end
  end
  local lo, hi = common.bounds(name, a.bounds, { 0.0, 1.0 })
  rawset(self, "_ball", { lo = lo, hi = hi })
  rawset(self, "_own", { attacks = attacks, lo = lo, hi = hi, draws = common.generator(a.seed, name),
    ratio = check.probability(name, "replace_ratio", a.replace_ratio) })
end

function WithAttacks:setup(a) keep_attacks(self, a, a.attacks) end

-- Black-box attacks give whether they succeeded first.
local function generated(attack, inputs, labels)
  local first, second = attack:generate(inputs, labels)
  return second ~= nil and second or first
end

--- The samples, a part of which the attacks have changed, and the labels.
---     > net = ms.nn.Dense(4, 3)
---     > attack = ms.armour.attacks.FastGradientSignMethod(net, { eps = 0.1 })
---     > defense = ms.armour.defenses.AdversarialDefenseWithAttacks(net, { attack }, { replace_ratio = 0.5 })
---     > x = ms.rand { 4, 4 } * 0.5 + 0.25
---     > adv = defense:adversarial(x, ms.tensor({ 0, 2, 1, 1 }, ms.int32))
---     > ms.ops.sum(ms.ops.greater(ms.ops.amax(ms.ops.abs(adv - x), 1), 0):astype(ms.int32)):item() --> 2
function WithAttacks:adversarial(inputs, labels)
  local own, n = self._own, inputs.shape[1]
  local changed = math.ceil(own.ratio * n)
  if changed == 0 then return inputs, labels end
  local order, pieces, count, from = own.draws:permutation(n), {}, #own.attacks, 0
  for i, attack in ipairs(own.attacks) do
    local last = changed * i // count
    if last > from then
      local part = order[{ ms.slice(from, last) }]
      local adv = generated(attack, inputs:index_select(0, part), labels:index_select(0, part))
      pieces[#pieces + 1] = common.clip(adv:astype(inputs.dtype), own.lo, own.hi)
      from = last
    end
  end
  if changed < n then pieces[#pieces + 1] = inputs:index_select(0, order[{ ms.slice(changed, n) }]) end
  local whole = #pieces == 1 and pieces[1] or ops.concat(pieces, 0)
  -- Back to the order of the labels.
  return ops.stop_gradient(whole:index_select(0, ops.argsort(order:astype(ms.int64)))), labels
end

local Ensemble = class.define(WithAttacks, "EnsembleAdversarialDefense",
  "network, attacks, loss_fn=nil, optimizer=nil, bounds=nil, replace_ratio=0.5, seed=nil",
  [[Training with several attacks, also ones on other networks (Tramèr et al., 2018): the same as
AdversarialDefenseWithAttacks, under the name that the paper has.

]] .. network_text .. [[ attacks: a list of attacks; each changes an equal part. bounds: { lo, hi } of the inputs, which attacks' results
are clipped to (nil: { 0, 1 }; false: none). replace_ratio: the share of a batch that is changed, from 0 to 1, rounded up. seed: of the
choice of samples (nil: from the session's random numbers).

  > net, other = ms.nn.Dense(4, 3), ms.nn.Dense(4, 3)
  > attacks = { ms.armour.attacks.FastGradientSignMethod(net), ms.armour.attacks.FastGradientSignMethod(other) }
  > defense = ms.armour.defenses.EnsembleAdversarialDefense(net, attacks)
  > defense:defense(ms.rand { 2, 4 }, ms.tensor { 0, 2 }) > 0 --> true]])
defenses.EnsembleAdversarialDefense = Ensemble
function Ensemble:setup(a) keep_attacks(self, a, a.attacks) end

local Natural = class.define(WithAttacks, "NaturalAdversarialDefense",
  "network, loss_fn=nil, optimizer=nil, bounds=nil, replace_ratio=0.5, eps=0.1, seed=nil",
  [[Training with the fast gradient sign method (Goodfellow et al., 2015).

]] .. network_text .. [[ bounds, replace_ratio, seed: as for AdversarialDefenseWithAttacks. eps: of the attack, a share of the range of
the bounds.

  > defense = ms.armour.defenses.NaturalAdversarialDefense(ms.nn.Dense(4, 3), { eps = 0.2 })
  > defense:defense(ms.rand { 2, 4 }, ms.tensor { 0, 2 }) > 0 --> true]])
defenses.NaturalAdversarialDefense = Natural
function Natural:setup(a)
  keep_attacks(self, a, { ms.armour.attacks.FastGradientSignMethod(a.network, { eps = a.eps, bounds = a.bounds, loss_fn = a.loss_fn }) })
end

local Projected = class.define(WithAttacks, "ProjectedAdversarialDefense", "network, loss_fn=nil, optimizer=nil, bounds=nil, "
  .. "replace_ratio=0.5, eps=0.3, eps_iter=0.1, nb_iter=5, norm_level=\"inf\", seed=nil",
  [[Training with projected gradient descent (Madry et al., 2018, whose replace_ratio is 1).

]] .. network_text .. [[ bounds, replace_ratio, seed: as for AdversarialDefenseWithAttacks. eps, eps_iter, nb_iter, norm_level: of the
attack, see ms.armour.attacks.ProjectedGradientDescent.

  > defense = ms.armour.defenses.ProjectedAdversarialDefense(ms.nn.Dense(4, 3), { replace_ratio = 1.0 })
  > defense:defense(ms.rand { 2, 4 }, ms.tensor { 0, 2 }) > 0 --> true]])
defenses.ProjectedAdversarialDefense = Projected
function Projected:setup(a)
  keep_attacks(self, a, { ms.armour.attacks.ProjectedGradientDescent(a.network, { eps = a.eps, eps_iter = a.eps_iter,
    nb_iter = a.nb_iter, norm_level = a.norm_level, bounds = a.bounds, loss_fn = a.loss_fn, seed = a.seed }) })
end

return defenses
