-- Saliency by changed inputs: Occlusion, RISE. The network is only asked; it may be anything that gives (N, classes).
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"
local common = require "lunaria.explain.common"

local ops = ms.ops
local fail, check, describe = arguments.fail, arguments.check, arguments.describe

-- Probabilities for many inputs.
local function probabilities(self, where, x)
  return common.answers(where, common.activated(self.network, self.activation_fn), x, self.perturbation_per_eval)
end

local Occlusion = common.method("Occlusion", "network, activation_fn, perturbation_per_eval=32, window=nil, stride=nil, base_value=0.0",
  [[How much the probability of the target falls when a window that moves over the picture hides a part of it; a pixel gets the mean of
the windows that cover it. network: a cell that gives logits. activation_fn: what makes probabilities of them, as nn.Softmax(). window,
stride: in pixels, one number or { height, width }; a thirty-second of the picture, and 3 and 1 for pictures of at most 32 pixels.
base_value: what is seen in the window. perturbation_per_eval: how many pictures at once.

  > net = ms.nn.SequentialCell(ms.nn.Flatten(), ms.nn.Dense(16, 3))
  > ms.explain.Occlusion(net, ms.nn.Softmax())(ms.ones { 2, 1, 4, 4 }, 1).shape --> (2, 1, 4, 4)]])

function Occlusion:setup(a)
  self:_keep(a)
  for _, name in ipairs { "window", "stride" } do
    if a[name] ~= nil then self[name] = check.sizes("Occlusion", name, a[name], 2, 1) end
  end
  self.base_value = check.number("Occlusion", "base_value", a.base_value)
end

-- A window that moves over (H, W): a tensor (P, 1, H, W) of 0 and 1.
local function windows(self, height, width)
  local sides = {}
  for axis, size in ipairs { height, width } do
    local window = self.window and self.window[axis] or size > 32 and size // 32 or 3
    local stride = self.stride and self.stride[axis] or size > 32 and size // 32 or 1
    if window > size then fail("Occlusion", ("the window of %d pixels is larger than the picture of %d"):format(window, size)) end
    local rows = {}
    for from = 0, size - window, stride do
      local row = {}
      for i = 0, size - 1 do row[i + 1] = i >= from and i < from + window and 1 or 0 end
      rows[#rows + 1] = row
    end
    sides[axis] = ms.tensor(rows, ms.float32)
  end
  local down, across = sides[1], sides[2]
  local masks = down:reshape { down.shape[1], 1, height, 1 } * across:reshape { 1, across.shape[1], 1, width }
  return masks:reshape { down.shape[1] * across.shape[1], 1, height, width }
end

function Occlusion:_compute(inputs, targets)
  local height, width = inputs.shape[3], inputs.shape[4]
  local masks = windows(self, height, width):astype(inputs.dtype)
  local count, maps = masks.shape[1], {}
  local covered = ops.sum(masks, 0)
  local own = probabilities(self, "Occlusion", inputs)
  common.check_targets("Occlusion", own, targets)
  for n = 0, inputs.shape[1] - 1 do
    local x, target = inputs[{ ms.slice(n, n + 1) }], targets[{ n, 0 }]:item()
    local parts = {}
    for from = 0, count - 1, self.perturbation_per_eval do
      local mask = masks[{ ms.slice(from, math.min(count, from + self.perturbation_per_eval)) }]
      parts[#parts + 1] = probabilities(self, "Occlusion", x * (1 - mask) + mask * self.base_value)
    end
    local hidden = ops.concat(parts, 0)
    local falls = own[{ n, target }] - hidden[{ ms.slice(), target }]
    maps[n + 1] = ops.sum(falls:reshape { count, 1, 1, 1 } * masks, 0) / ops.maximum(covered, 1)
  end
  return ops.abs(ops.stack(maps, 0))
end

local RISE = common.method("RISE",
  "network, activation_fn, perturbation_per_eval=32, num_masks=6000, mask_probability=0.5, down_sample_size=10, base_value=0.0, masks=nil",
  [[What random masks have in common under which the probability of the target stays high: their mean, weighted by it. network: a cell that
gives logits. activation_fn: what makes probabilities of them. num_masks: how many masks, each drawn as a coarse grid of down_sample_size
squares a side, of which a share of mask_probability is seen, enlarged smoothly and shifted at random. masks: a tensor (P, 1, H, W) with
masks of one's own. base_value: what is seen elsewhere. perturbation_per_eval: how many pictures at once. targets may be (N, l), which gives
(N, l, H, W).

  > net = ms.nn.SequentialCell(ms.nn.Flatten(), ms.nn.Dense(16, 3))
  > rise = ms.explain.RISE(net, ms.nn.Softmax(), { num_masks = 64 })
  > rise(ms.ones { 2, 1, 4, 4 }, ms.tensor { { 0, 1 }, { 1, 2 } }).shape --> (2, 2, 4, 4)]])

function RISE:setup(a)
  self:_keep(a)
  self.num_masks = check.positive("RISE", "num_masks", a.num_masks)
  self.down_sample_size = check.positive("RISE", "down_sample_size", a.down_sample_size)
  self.mask_probability = check.probability("RISE", "mask_probability", a.mask_probability)
  self.base_value = check.number("RISE", "base_value", a.base_value)
  if a.masks ~= nil and (not ms.is_tensor(a.masks) or a.masks.ndim ~= 4 or a.masks.shape[2] ~= 1) then
    fail("RISE", "masks must be a tensor (P, 1, H, W), got " .. describe(a.masks))
  end
  self.masks, self.many_targets = a.masks, true
end

local function drawn_masks(self, count, height, width)
  local side = self.down_sample_size
  local coarse = ops.less(ms.rand { count, 1, side, side }, self.mask_probability):astype(ms.float32)
  local fine = ops.interpolate(coarse, { height + side, width + side }, nil, "bilinear")
  local shifts, parts = ms.randint(0, side + 1, { count, 2 }):tolist(), {}
  for i, shift in ipairs(shifts) do
    parts[i] = fine[{ i - 1, ms.slice(), ms.slice(shift[1], shift[1] + height), ms.slice(shift[2], shift[2] + width) }]
  end
  return ops.stack(parts, 0)
end

function RISE:_compute(inputs, targets)
  local height, width = inputs.shape[3], inputs.shape[4]
  if self.masks and (self.masks.shape[3] ~= height or self.masks.shape[4] ~= width) then
    fail("RISE", ("masks are %d x %d, the inputs %d x %d"):format(self.masks.shape[3], self.masks.shape[4], height, width))
  end
  local total = self.masks and self.masks.shape[1] or self.num_masks
  local own, maps = targets.shape[2], {}
  for n = 0, inputs.shape[1] - 1 do
    local x, target = inputs[{ ms.slice(n, n + 1) }], targets[n]
    local sum = ms.zeros({ own, height * width }, inputs.dtype)
    for from = 0, total - 1, self.perturbation_per_eval do
      local to = math.min(total, from + self.perturbation_per_eval)
      local masks = self.masks and self.masks[{ ms.slice(from, to) }] or drawn_masks(self, to - from, height, width)
      masks = masks:astype(inputs.dtype)
      local y = probabilities(self, "RISE", x * masks + (1 - masks) * self.base_value)
      if ops.max(target):item() >= y.shape[2] then
        fail("RISE", ("the network has %d classes, and the target is %d"):format(y.shape[2], ops.max(target):item()))
      end
      local weights = ops.gather(y, target, 1)
      sum = sum + ops.matmul(ops.swapaxes(weights, 0, 1), masks:reshape { to - from, height * width })
    end
    maps[n + 1] = (sum / total):reshape { own, height, width }
  end
  return ops.stack(maps, 0)
end

return { Occlusion = Occlusion, RISE = RISE }
