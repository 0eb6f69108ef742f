-- Pictures from what a network's part makes of them: by descent on the picture (Mahendran and Vedaldi 2015), by a network that was trained
-- the other way round, and by a shadow of a part that is not known (He, Zhang and Lee 2019).
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"
local armour = require "lunaria.armour.common"
local batches = require "lunaria.train.batches"
local cells = require "lunaria.nn.cell"
local class = require "lunaria.nn.class"

local ops = ms.ops
local fail, check, describe = arguments.fail, arguments.check, arguments.describe
local M = {}

local function checked_shape(where, shape)
  if type(shape) ~= "table" or getmetatable(shape) ~= nil or #shape == 0 then
    fail(where, "input_shape must be the sizes of one input, such as { 1, 28, 28 }, got " .. describe(shape))
  end
  for _, size in ipairs(shape) do check.positive(where, "input_shape", size) end
  return shape
end

local function checked_network(where, name, network)
  if not arguments.is_callable(network) then
    fail(where, ("%s must be a cell or a function of inputs (N, ...), got %s"):format(name, describe(network)))
  end
  return network
end

-- For each sample, (N,).
local function sums(x) return ops.sum(x:reshape { x.shape[1], -1 }, 1) end

-- The total variation of pictures: distances of neighbours along the last two axes; of other inputs 0.
local function variation(x)
  if x.ndim < 3 then return ms.zeros({ x.shape[1] }, x.dtype) end
  local height, width = x.shape[x.ndim - 1], x.shape[x.ndim]
  local flat = x:reshape { x.shape[1], -1, height, width }
  local all = ms.slice()
  local down = flat[{ all, all, ms.slice(1, height), all }] - flat[{ all, all, ms.slice(0, height - 1), all }]
  local across = flat[{ all, all, all, ms.slice(1, width) }] - flat[{ all, all, all, ms.slice(0, width - 1) }]
  return sums(ops.abs(down)) + sums(ops.abs(across))
end

local ImageInversionAttack = class.define(nil, "ImageInversionAttack", "network, input_shape, input_bound, loss_weights=nil",
  [[Finds inputs whose features are those that are given. network: a cell or a function from inputs (N, ...) to features. input_shape: the
sizes of one input. input_bound: { lo, hi }. loss_weights: of the distance of the features relative to their size, of the total variation
over the number of elements, and, in hundredths, of the mean square of the input's distance from the middle of the bounds; default
{ 1, 0.2, 5 }.

  > net = ms.nn.SequentialCell(ms.nn.Flatten(), ms.nn.Dense(4, 8))
  > attack = ms.armour.privacy.evaluation.ImageInversionAttack(net, { 1, 2, 2 }, { 0, 1 })
  > attack:generate(net(ms.ones { 2, 1, 2, 2 }), 5).shape --> (2, 1, 2, 2)]])
M.ImageInversionAttack = ImageInversionAttack
ImageInversionAttack._called = "attack"

function ImageInversionAttack:setup(a)
  local where = "ImageInversionAttack"
  self._network = checked_network(where, "network", a.network)
  self._shape = checked_shape(where, a.input_shape)
  self._lo, self._hi = armour.bounds(where, a.input_bound)
  if not math.type(self._lo) or not math.type(self._hi) then
    fail(where, "input_bound must be two numbers, got " .. describe(a.input_bound))
  end
  local weights = a.loss_weights == nil and { 1.0, 0.2, 5.0 } or a.loss_weights
  if type(weights) ~= "table" or #weights ~= 3 then fail(where, "loss_weights must be three numbers, got " .. describe(weights)) end
  for _, weight in ipairs(weights) do check.finite_not_negative(where, "loss_weights", weight) end
  local middle = 0.5 * (self._lo + self._hi)
  local network, count = self._network, 1
  for _, size in ipairs(self._shape) do count = count * size end
  local function losses(x, target)
    local distance = sums(ops.square(network(x) - target)) / (sums(ops.square(target)) + 1e-12)
    return distance * weights[1] + variation(x) * (weights[2] / count) + sums(ops.square(x - middle)) * (0.01 * weights[3] / count)
  end
  self._gradient = armour.compiled(function(x, target)
    return ms.grad(function(z) return ops.sum(losses(z, target)) end)(x)
  end)
end

--- Inputs (N, ...) whose features come near target_features (N, ...), by steps of their own length for every element (as of resilient
--- propagation): it grows by a fifth while the sign of its derivative stays and halves when that changes. iters: default 100.
---     > net = ms.nn.SequentialCell(ms.nn.Flatten(), ms.nn.Dense(4, 8))
---     > attack = ms.armour.privacy.evaluation.ImageInversionAttack(net, { 1, 2, 2 }, { 0, 1 }, { 1, 0, 0 })
---     > x = ms.full({ 1, 1, 2, 2 }, 0.9)
---     > ms.ops.max(ms.ops.abs(attack:generate(net(x), 200) - x)):item() < 0.05 --> true
function ImageInversionAttack:generate(target_features, iters)
  local where = "generate"
  target_features, iters = arguments.named(where, { "target_features", "iters" }, target_features, iters)
  iters = check.positive(where, "iters", iters or 100)
  if not ms.is_tensor(target_features) or target_features.ndim < 2 or not ops.is_floating_point(target_features) then
    fail(where, "target_features must be a floating tensor (N, ...), got " .. describe(target_features))
  end
  if not ops.all(ops.isfinite(target_features)):item() then fail(where, "target_features hold nan or infinity") end
  local shape = { target_features.shape[1], table.unpack(self._shape) }
  local range = self._hi - self._lo
  return armour.predicting(self._network, function()
    local x = ops.full(shape, 0.5 * (self._lo + self._hi), { dtype = target_features.dtype })
    local length, before = ops.full_like(x, 0.05 * range), nil
    for _ = 1, iters do
      local sign = ops.sign(self._gradient(x, target_features))
      if before ~= nil then
        local turned = ops.less(sign * before, 0)
        length = ops.clamp(ops.where(turned, length * 0.5, length * 1.2), 1e-5 * range, 0.1 * range)
      end
      before, x = sign, ops.clamp(x - sign * length, self._lo, self._hi)
    end
    return x
  end)
end

--- How near inverted inputs are: the mean of their distances from the originals over the originals' norms, the mean structural similarity
--- (nil for pictures below 7 x 7), and with labels and another network the mean probability that it gives the labels (else nil).
--- original_images, inversion_images: tensors (N, ...). labels: class numbers or one-hot rows. new_network: a cell or a function that gives
--- logits.
---     > net = ms.nn.SequentialCell(ms.nn.Flatten(), ms.nn.Dense(4, 8))
---     > attack = ms.armour.privacy.evaluation.ImageInversionAttack(net, { 1, 2, 2 }, { 0, 1 })
---     > (attack:evaluate(ms.ones { 1, 1, 2, 2 }, ms.ones { 1, 1, 2, 2 })) --> 0.0
function ImageInversionAttack:evaluate(original_images, inversion_images, labels, new_network)
  local where = "evaluate"
  original_images, inversion_images, labels, new_network = arguments.named(where,
    { "original_images", "inversion_images", "labels", "new_network" }, original_images, inversion_images, labels, new_network)
  if (labels == nil) ~= (new_network == nil) then fail(where, "labels and new_network go together: one of them is missing") end
  local x, y = armour.images(where, original_images), armour.images(where, inversion_images)
  if tostring(x.shape) ~= tostring(y.shape) then
    fail(where, ("the originals are %s and the inverted ones %s"):format(tostring(x.shape), tostring(y.shape)))
  end
  local distance = ops.mean(armour.norms(x - y, 2) / (armour.norms(x, 2) + 1e-12)):item()
  local ssim
  if x.ndim >= 3 and x.ndim <= 4 and x.shape[x.ndim] >= 7 and x.shape[x.ndim - 1] >= 7 then
    ssim = ops.mean(ms.armour.evaluations.ssim(x, y, { data_range = self._hi - self._lo })):item()
  end
  if not new_network then return distance, ssim end
  local logits = armour.classifier(where, new_network):logits(y)
  local hot = armour.one_hot(armour.labels(where, labels, x.shape[1], logits.shape[2]), logits.shape[2], logits.dtype)
  return distance, ssim, ops.mean(ops.sum(ops.softmax(logits, 1) * hot, 1)):item()
end

-- Trains a cell: step(x, y) is a function of batches that gives a loss.
local function trained(where, net, loss, dataset, epochs, lr)
  if not cells.is_cell(net) then fail(where, "what is trained must be a cell, got " .. describe(net)) end
  -- Inputs and labels as they are make one batch.
  if type(dataset) == "table" and getmetatable(dataset) == nil and ms.is_tensor(dataset[1]) then dataset = { dataset } end
  epochs = check.positive(where, "epochs", epochs)
  local parameters = net:trainable_params()
  local optimizer = ms.nn.Adam(parameters, check.number_positive(where, "lr", lr))
  local step = armour.compiled(ms.value_and_grad(loss, nil, parameters))
  local source, last = batches(where, dataset), nil
  for _ = 1, epochs do
    for x, y in source.epoch() do
      local value, gradients = step(x, y)
      optimizer(gradients)
      last = value
    end
  end
  return last and last:item()
end

local ModelInversionAttack = class.define(nil, "ModelInversionAttack", "network, inv_network, input_shape",
  [[Trains a network that goes from features back to inputs. network: the part that is attacked, a cell or a function from inputs (N, ...)
to features. inv_network: a cell from features to inputs. input_shape: the sizes of one input.

  > net = ms.nn.SequentialCell(ms.nn.Flatten(), ms.nn.Dense(4, 8))
  > back = ms.nn.Dense(8, 4)
  > attack = ms.armour.privacy.evaluation.ModelInversionAttack(net, back, { 1, 2, 2 })
  > attack:inverse(net(ms.ones { 2, 1, 2, 2 })).shape --> (2, 1, 2, 2)]])
M.ModelInversionAttack = ModelInversionAttack
ModelInversionAttack._called = "attack"

function ModelInversionAttack:setup(a)
  local where = "ModelInversionAttack"
  self._network, self._shape = checked_network(where, "network", a.network), checked_shape(where, a.input_shape)
  if not cells.is_cell(a.inv_network) then fail(where, "inv_network must be a cell, got " .. describe(a.inv_network)) end
  self._inverse = a.inv_network
end

--- Trains inv_network on inputs of the same kind as those that are attacked, by the mean square of the difference. dataset: batches of
--- inputs, or of inputs and labels, which are not looked at. epochs: default 50. lr: of Adam, default 0.001. Gives the last loss.
---     > net = ms.nn.SequentialCell(ms.nn.Flatten(), ms.nn.Dense(4, 8))
---     > attack = ms.armour.privacy.evaluation.ModelInversionAttack(net, ms.nn.Dense(8, 4), { 1, 2, 2 })
---     > attack:train_inversion_model({ { ms.rand { 8, 1, 2, 2 } } }, { epochs = 2 }) > 0 --> true
function ModelInversionAttack:train_inversion_model(dataset, epochs, lr)
  local where = "train_inversion_model"
  dataset, epochs, lr = arguments.named(where, { "dataset", "epochs", "lr" }, dataset, epochs, lr)
  local network, inverse = self._network, self._inverse
  return armour.predicting(network, trained, where, inverse, function(x)
    return ops.mean(ops.square(inverse(network(x)):reshape { x.shape[1], -1 } - x:reshape { x.shape[1], -1 }))
  end, dataset, epochs or 50, lr or 1e-3)
end

--- Inputs (N, ...) for features. target_features: (N, ...).
---     > attack = ms.armour.privacy.evaluation.ModelInversionAttack(ms.nn.Dense(4, 8), ms.nn.Dense(8, 4), { 4 })
---     > attack:inverse(ms.ones { 2, 8 }).shape --> (2, 4)
function ModelInversionAttack:inverse(target_features)
  if not ms.is_tensor(target_features) or target_features.ndim < 2 then
    fail("inverse", "target_features must be a tensor (N, ...), got " .. describe(target_features))
  end
  local y = armour.predicting(self._inverse, self._inverse, target_features)
  return y:reshape { target_features.shape[1], table.unpack(self._shape) }
end

--- The means of structural similarity and of the ratio of signal and noise, in decibels, of inverted pictures of at least 7 x 7 pixels.
--- original_images, inversion_images: tensors (N, C, H, W) with values from 0 to 1.
---     > attack = ms.armour.privacy.evaluation.ModelInversionAttack(ms.nn.Dense(49, 8), ms.nn.Dense(8, 49), { 1, 7, 7 })
---     > x = ms.rand { 1, 1, 7, 7 }
---     > select(2, attack:evaluate(x, x)) --> inf
function ModelInversionAttack:evaluate(original_images, inversion_images) -- luacheck: ignore 212
  local E = ms.armour.evaluations
  local ssim = ops.mean(E.ssim(original_images, inversion_images, { data_range = 1 })):item()
  return ssim, ops.mean(E.psnr(original_images, inversion_images)):item()
end

local ShadowModelAttack = class.define(nil, "ShadowModelAttack", "shadow_network, rest, input_shape, input_bound, loss_weights=nil",
  [[Inverts features of a network whose first part is not known: a shadow of that part is trained so that the known rest, behind it, gives
the right labels, and inverted in its place (He, Zhang and Lee 2019, the attack without queries). shadow_network: a cell from inputs to
features. rest: the known part, a cell or a function from features to logits, which is not changed. input_shape, input_bound, loss_weights:
as of ImageInversionAttack.

  > shadow = ms.nn.SequentialCell(ms.nn.Flatten(), ms.nn.Dense(4, 6))
  > attack = ms.armour.privacy.evaluation.ShadowModelAttack(shadow, ms.nn.Dense(6, 3), { 1, 2, 2 }, { 0, 1 })
  > attack:train_shadow_model({ { ms.rand { 8, 1, 2, 2 }, ms.randint(0, 3, { 8 }) } }, { epochs = 2 }) > 0 --> true]])
M.ShadowModelAttack = ShadowModelAttack
ShadowModelAttack._called = "attack"

function ShadowModelAttack:setup(a)
  local where = "ShadowModelAttack"
  if not cells.is_cell(a.shadow_network) then fail(where, "shadow_network must be a cell, got " .. describe(a.shadow_network)) end
  self._shadow, self._rest = a.shadow_network, checked_network(where, "rest", a.rest)
  self._inversion = ImageInversionAttack(a.shadow_network, a.input_shape, a.input_bound, a.loss_weights)
end

--- Trains the shadow on labelled rows of the same kind as those that are attacked. dataset: batches of inputs and class numbers. epochs:
--- default 50. lr: of Adam, default 0.001. Gives the last loss.
---     > attack = ms.armour.privacy.evaluation.ShadowModelAttack(ms.nn.Dense(4, 6), ms.nn.Dense(6, 3), { 4 }, { 0, 1 })
---     > attack:train_shadow_model({ { ms.rand { 8, 4 }, ms.randint(0, 3, { 8 }) } }, { epochs = 2 }) > 0 --> true
function ShadowModelAttack:train_shadow_model(dataset, epochs, lr)
  local where = "train_shadow_model"
  dataset, epochs, lr = arguments.named(where, { "dataset", "epochs", "lr" }, dataset, epochs, lr)
  local shadow, rest = self._shadow, self._rest
  return armour.predicting(rest, trained, where, shadow, function(x, y)
    return ops.cross_entropy(rest(shadow(x)), y:astype(ms.int32))
  end, dataset, epochs or 50, lr or 1e-3)
end

--- Inputs (N, ...) for features of the network that is attacked. target_features: (N, ...). iters: steps, default 100.
---     > attack = ms.armour.privacy.evaluation.ShadowModelAttack(ms.nn.Dense(4, 6), ms.nn.Dense(6, 3), { 4 }, { 0, 1 })
---     > attack:inverse(ms.ones { 2, 6 }, 3).shape --> (2, 4)
function ShadowModelAttack:inverse(target_features, iters)
  return self._inversion:generate(target_features, iters)
end

return M
