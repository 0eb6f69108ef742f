-- Attacks by decisions alone that change single pixels: salt and pepper, and the pixel-wise way back from it.
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"
local class = require "lunaria.nn.class"
local common = require "lunaria.armour.common"
local asking = require "lunaria.armour.black.asking"

local ops = ms.ops
local fail, check = arguments.fail, arguments.check

local SaltAndPepperNoiseAttack = class.define(asking.BlackAttack, "SaltAndPepperNoiseAttack",
  "model, bounds=nil, max_iter=100, is_targeted=false, sparse=nil, max_queries=nil, batch_size=256, seed=0",
  [[Pixels set to the ends of their range at random: the smallest share of them that is found. model: a BlackModel, a cell or a function of
pictures that gives logits or class numbers. bounds: { low, high } of the pixels, { 0, 1 } if nil. max_iter: how many patterns of noise
are tried, each with up to nine shares below the smallest so far. is_targeted: labels are the classes to reach. sparse: true takes
labels as class numbers only, false as one-hot only. max_queries: questions for each sample at most. batch_size: points that the model
is asked for at once. seed: of the random numbers.

  > net = ms.nn.SequentialCell(ms.nn.Dense(9, 3))
  > found, adversarial, queries = ms.armour.attacks.black.SaltAndPepperNoiseAttack(net, { max_iter = 5 }):generate(ms.rand(2, 9))
  > adversarial.shape --> (2, 9)]])

function SaltAndPepperNoiseAttack:setup(a)
  self:_keep(a)
  self.max_iter = check.positive("SaltAndPepperNoiseAttack", "max_iter", a.max_iter)
end

-- Shares of a pattern that are tried, from small ones on.
local SHARES = 9

-- Sets sample.best to the noisy sample with the smallest share of noise that is found.
local function salted(self, sample, patterns)
  local least, x = 1.0, sample.x
  for _ = 1, patterns do
    local noise = sample.draws:uniform(x.shape, 0, 1, x.dtype)
    for part = 1, SHARES do
      local share = least * part / SHARES
      if sample.found and part == SHARES then break end
      local point = ops.where(ops.less(noise, share / 2), self.low, ops.where(ops.greater_equal(noise, 1 - share / 2), self.high, x))
      if self:_is_adversarial(sample, point) then
        sample.best, sample.found, least = point, true, share
        break
      end
    end
  end
end

function SaltAndPepperNoiseAttack:_attack(sample) salted(self, sample, self.max_iter) end

local PointWiseAttack = class.define(asking.BlackAttack, "PointWiseAttack",
  "model, max_iter=1000, search_iter=10, is_targeted=false, init_attack=nil, sparse=nil, bounds=nil, "
    .. "max_queries=nil, batch_size=256, seed=0",
  [[Few pixels changed (Schott and others 2018): from a noisy sample that is adversarial, pixels go back one by one, in random order, as
long as it stays so, and each that is left goes back as far as bisection finds. model: a BlackModel, a cell or a function of pictures
that gives logits or class numbers. max_iter: passes over the changed pixels at most. search_iter: bisections of each pixel that is
left. init_attack: an attack whose result is the start, salt and pepper if nil. is_targeted: labels are the classes to reach. bounds: {
low, high } of the pixels, { 0, 1 } if nil. sparse: true takes labels as class numbers only, false as one-hot only. max_queries:
questions for each sample at most. batch_size: points that the model is asked for at once. seed: of the random numbers.

  > net = ms.nn.SequentialCell(ms.nn.Dense(9, 3))
  > found, adversarial, queries = ms.armour.attacks.black.PointWiseAttack(net, { max_iter = 2 }):generate(ms.rand(2, 9))
  > adversarial.shape --> (2, 9)]])

function PointWiseAttack:setup(a)
  self:_keep(a)
  self.max_iter = check.positive("PointWiseAttack", "max_iter", a.max_iter)
  self.search_iter = check.not_negative("PointWiseAttack", "search_iter", a.search_iter)
  if a.init_attack ~= nil and not class.is_a(a.init_attack, common.Attack) then
    fail("PointWiseAttack", "init_attack must be an attack, got " .. arguments.describe(a.init_attack))
  end
  self.init_attack = a.init_attack
end

function PointWiseAttack:_prepare(samples, x, labels)
  if not self.init_attack then return end
  local first, second, queries = self.init_attack:generate(x, labels)
  local starts = second or first
  for i, sample in ipairs(samples) do
    sample.start = starts[i - 1]
    -- What another attack has asked before counts as well.
    sample.queries = queries and queries[i - 1]:item() or 0
  end
end

-- Patterns of noise for the start.
local PATTERNS = 10

local function differing(point, x)
  local flat, list = ops.not_equal(point, x):reshape { -1 }:tolist(), {}
  for i, differs in ipairs(flat) do
    if differs then list[#list + 1] = i - 1 end
  end
  return list
end

-- The point with the pixel (of all, flattened) as it is in `from`, or the number that it is given.
local function with_pixel(point, pixels, at, from)
  return ops.where(ops.equal(pixels, at), from, point)
end

-- One pass: pixels that may go back do so. Whether any did.
local function go_back(self, sample, pixels)
  local list, changed = differing(sample.best, sample.x), false
  if #list == 0 then return false end
  for _, place in ipairs(sample.draws:permutation(#list):tolist()) do
    local point = with_pixel(sample.best, pixels, list[place + 1], sample.x)
    if self:_is_adversarial(sample, point) then sample.best, changed = point, true end
  end
  return changed
end

function PointWiseAttack:_attack(sample)
  local x = sample.x
  if sample.start then
    if not self:_is_adversarial(sample, sample.start) then return end
    sample.best, sample.found = sample.start, true
  else
    salted(self, sample, PATTERNS)
    if not sample.found then return end
  end
  local pixels = ops.arange(x.size):reshape(x.shape)
  for _ = 1, self.max_iter do
    if not go_back(self, sample, pixels) then break end
  end
  for _, at in ipairs(differing(sample.best, x)) do
    local near, far = x:reshape { -1 }[at]:item(), sample.best:reshape { -1 }[at]:item()
    for _ = 1, self.search_iter do
      local middle = (near + far) / 2
      local point = with_pixel(sample.best, pixels, at, middle)
      if self:_is_adversarial(sample, point) then
        sample.best, far = point, middle
      else
        near = middle
      end
    end
  end
end

return { SaltAndPepperNoiseAttack = SaltAndPepperNoiseAttack, PointWiseAttack = PointWiseAttack }
