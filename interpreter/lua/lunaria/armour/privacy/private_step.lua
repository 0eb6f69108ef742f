-- One private step of training as a cell: clipped per-sample gradients, their sum, noise, division by the expected size of a batch, and
-- the optimizer. In graph mode all of it is one compiled function, for batches of any size; noise that is drawn outside of the session's
-- random numbers (secure, seeded, of a tree) is made between two compiled halves.
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"
local cells = require "lunaria.nn.cell"
local compiled = require "lunaria.armour.common".compiled
local clipping = require "lunaria.armour.privacy.clipping"
local per_sample = require "lunaria.armour.privacy.per_sample"

local ops = ms.ops
local fail = arguments.fail

local PrivateStep = cells.Cell:extend("PrivateStep")
PrivateStep._called = "private step"
PrivateStep.auto_prefix = false

-- Loss, how many gradients were within the bound, and the sums of the clipped gradients.
local function clipped_sums(self, bound, ...)
  local parts, losses = self.each:parts(...)
  if self.micro_batches then parts = clipping.micro_batches(parts, self.micro_batches) end
  local factors, norms = self.policy(parts, bound)
  local sums = {}
  for i = 1, #parts do sums[i] = parts[i].sum(factors[i]) end
  return ops.mean(losses), self.clip_mech and ops.sum(ops.less_equal(norms, bound):astype(norms.dtype)) or false, sums
end

local function apply(self, deviation, sums, noise)
  local gradients, share = {}, 1 / self.divisor
  for i = 1, #sums do
    local unit = noise and noise[i] or ops.randn_like(sums[i]) * deviation
    gradients[i] = (sums[i] + unit) * share
  end
  local optimizer = self.optimizer
  -- One of DPOptimizerClassFactory has its noise from here.
  if optimizer.plain_step then optimizer:plain_step(gradients) else optimizer(gradients) end
end

--- each: PerSampleGradients. settings: optimizer, noise_mech, clip_mech, clipping, norm_bound, micro_batches, expected_batch_size,
--- max_physical_batch_size.
function PrivateStep:init(each, settings)
  self.network = each.network
  rawset(self, "each", each)
  for key, value in pairs(settings) do rawset(self, key, value) end
  rawset(self, "policy", clipping.policies[settings.clipping])
  rawset(self, "divisor", settings.micro_batches or settings.expected_batch_size)
  rawset(self, "_uncompiled", true)
  rawset(self, "_sums", compiled(function(bound, ...) return clipped_sums(self, bound, ...) end))
  rawset(self, "_apply", compiled(function(deviation, sums) apply(self, deviation, sums) end))
  rawset(self, "_whole", compiled(function(bound, deviation, ...)
    local loss, within, sums = clipped_sums(self, bound, ...)
    apply(self, deviation, sums)
    return loss, within
  end))
end

-- The noise multiplier that counts: where the bound adapts, the share of gradients within it is told as well, with noise of its own. Each
-- sample moves the centred count by 1/2 (Andrew and others 2021, theorem 1).
function PrivateStep:noise_multiplier(step)
  local sigma = self.noise_mech:noise_multiplier(step)
  if not self.clip_mech then return sigma end
  local told = 2 * self.clip_mech.fraction_stddev * self.divisor
  return 1 / math.sqrt(1 / (sigma * sigma) + 1 / (told * told))
end

local function rows(x, n, from, to)
  if ms.is_tensor(x) and x.ndim > 0 and x.shape[1] == n then return x[{ ms.slice(from, to) }] end
  return x
end

-- The sums of a batch in pieces that fit into memory.
function PrivateStep:_in_pieces(n, bound, ...)
  local most, inputs = self.max_physical_batch_size or n, table.pack(...)
  local loss, within, sums = 0.0, 0.0, nil
  for from = 0, n - 1, most do
    local piece, to = {}, math.min(n, from + most)
    for i = 1, inputs.n do piece[i] = rows(inputs[i], n, from, to) end
    local own, inside, part = self._sums(bound, table.unpack(piece, 1, inputs.n))
    loss = loss + own * ((to - from) / n)
    if inside then within = within + inside end
    if sums then
      for i = 1, #sums do sums[i] = sums[i] + part[i] end
    else
      sums = part
    end
  end
  return loss, within, sums
end

local function scalar(value, like) return ms.tensor(value, like.dtype):to(like.device) end

function PrivateStep:construct(...)
  local n = per_sample.count_of("DPModel", (...))
  if n > 0 and not self.each.mode then self.each:_choose(...) end
  if not self.divisor then rawset(self, "divisor", n) end
  if self.micro_batches and n % self.micro_batches ~= 0 then
    fail("DPModel", ("a batch of %d samples does not divide into %d micro-batches"):format(n, self.micro_batches))
  end
  local like = self.each.parameters[1]
  local mechanism = self.noise_mech
  local scale = self.norm_bound * mechanism:noise_multiplier()
  local bound, deviation = scalar(self.norm_bound, like), scalar(scale, like)
  local loss, within = self._last_loss or scalar(0.0, like), nil
  local own_noise = mechanism.secure or mechanism.seed ~= 0 or mechanism.is_tree
  local at_once = n > 0 and not own_noise and n <= (self.max_physical_batch_size or n)
  if at_once then
    loss, within = self._whole(bound, deviation, ...)
  else
    local sums
    if n > 0 then
      loss, within, sums = self:_in_pieces(n, bound, ...)
    else
      sums = {}
      for i, parameter in ipairs(self.each.parameters) do sums[i] = ops.zeros_like(parameter) end
    end
    if own_noise then
      mechanism.norm_bound = self.norm_bound
      apply(self, deviation, sums, mechanism(sums))
    else
      self._apply(deviation, sums)
    end
  end
  rawset(self, "_last_loss", loss)
  mechanism:advance()
  if self.clip_mech then
    local centred = (within and within:item() or 0.0) - (self.micro_batches or n) / 2
    if n == 0 then centred = 0.0 end
    rawset(self, "norm_bound", self.clip_mech(centred / self.divisor + 0.5, self.norm_bound))
    mechanism.norm_bound = self.norm_bound
  end
  return loss
end

-- In graph mode its halves are compiled, and what lies between them changes with every step.
function PrivateStep:compile() return self end

--- What sums are divided by from now on: the expected number of samples in a batch.
function PrivateStep:divide_by(count) if not self.micro_batches then rawset(self, "divisor", count) end end

--- What a checkpoint keeps beside parameters and optimizer.
function PrivateStep:training_numbers()
  return { norm_bound = self.norm_bound, noise = self.noise_mech:state_dict(), clip = self.clip_mech and self.clip_mech:state_dict() }
end

--- Takes up what training_numbers gave.
function PrivateStep:set_training_numbers(numbers)
  rawset(self, "norm_bound", numbers.norm_bound)
  self.noise_mech:load_state_dict(numbers.noise)
  if self.clip_mech and numbers.clip then self.clip_mech:load_state_dict(numbers.clip) end
end

return PrivateStep
