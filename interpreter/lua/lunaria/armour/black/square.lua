-- SquareAttack: random search with squares (Andriushchenko and others 2020).
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"
local class = require "lunaria.nn.class"
local common = require "lunaria.armour.common"
local margins = require "lunaria.armour.attacks.margins"
local asking = require "lunaria.armour.black.asking"

local ops = ms.ops
local fail, check = arguments.fail, arguments.check

local SquareAttack = class.define(asking.BlackAttack, "SquareAttack",
  "model, eps=0.3, norm_level=\"inf\", max_queries=5000, p_init=0.8, is_targeted=false, bounds=nil, sparse=nil, batch_size=256, seed=0",
  [[Random search with squares (Andriushchenko and others 2020): a square of pixels is changed to the edge of the ball, and stays so where
the lead of the true class (the lag of the target) falls. model: a BlackModel, a cell or a function of pictures (N, C, H, W) that gives
logits. eps: the radius of the ball, as a share of the range of the pixels. norm_level: "inf" or 2. max_queries: questions for each
sample at most. p_init: the share of the pixels that the first squares have, which is halved at fixed shares of the budget. is_targeted:
labels are the classes to reach. bounds: { low, high } of the pixels, { 0, 1 } if nil. sparse: true takes labels as class numbers only,
false as one-hot only. batch_size: points that the model is asked for at once. seed: of the random numbers.

  > net = ms.nn.SequentialCell(ms.nn.Flatten(), ms.nn.Dense(16, 3))
  > found, adversarial, queries = ms.armour.attacks.black.SquareAttack(net, { max_queries = 20 }):generate(ms.rand(2, 1, 4, 4))
  > adversarial.shape --> (2, 1, 4, 4)]])

function SquareAttack:setup(a)
  self:_keep(a)
  self.eps = check.number_positive("SquareAttack", "eps", a.eps) * (self.high - self.low)
  self.norm = common.norm_kind("SquareAttack", a.norm_level)
  if self.norm == 1 then fail("SquareAttack", "norm_level must be 'inf' or 2, got 1") end
  self.p_init = check.probability("SquareAttack", "p_init", a.p_init)
end

-- Shares of the budget, in ten thousandths, after which squares are half as large.
local HALVED = { 10, 50, 200, 500, 1000, 2000, 4000, 6000, 8000 }

-- The side of a square after so many questions.
local function side_of(self, asked, height, width)
  local share, at = self.p_init, asked / self.max_queries * 10000
  for _, mark in ipairs(HALVED) do
    if at > mark then share = share / 2 end
  end
  return math.max(1, math.min(math.floor(math.sqrt(share * height * width) + 0.5), height, width))
end

-- A whole number from 0 up to `most`, and numbers 1 and -1.
local function whole(draws, most) return draws:integers({ 1 }, 0, most + 1):item() end
local function signs(draws, shape, dtype) return draws:integers(shape, 0, 2):astype(dtype) * 2 - 1 end

-- 1 within the square of this side whose corner is (top, left), as (1, H, W).
local function window(x, top, left, height, width)
  local rows, columns = ops.arange(x.shape[2]):reshape { -1, 1 }, ops.arange(x.shape[3]):reshape { 1, -1 }
  local inside = ops.logical_and(ops.logical_and(ops.greater_equal(rows, top), ops.less(rows, top + height)),
    ops.logical_and(ops.greater_equal(columns, left), ops.less(columns, left + width)))
  return inside:astype(x.dtype):reshape { 1, x.shape[2], x.shape[3] }
end

local uniform = {}

-- Stripes down the picture.
function uniform.first(self, s)
  return ops.clip(s.x + signs(s.draws, { s.x.shape[1], 1, s.x.shape[3] }, s.x.dtype) * self.eps, self.low, self.high)
end

function uniform.next(self, s, point, side)
  local x = s.x
  local top, left = whole(s.draws, x.shape[2] - side), whole(s.draws, x.shape[3] - side)
  local change = signs(s.draws, { x.shape[1], 1, 1 }, x.dtype) * self.eps
  return ops.clip(ops.where(ops.greater(window(x, top, left, side, side), 0), x + change, point), self.low, self.high)
end

local euclidean = {}

-- A bump (height, width) that falls off from its middle: sums of squares within squares about it, of length 1.
local function half_bump(height, width)
  local rows = {}
  for i = 1, height do
    rows[i] = {}
    for j = 1, width do rows[i][j] = 0.0 end
  end
  local steps = math.max(height, width) // 2 + 1
  local row, column = height // 2, width // 2
  local top, left = row, column
  for k = 1, steps do
    for i = math.max(top, 0), math.min(row + k - 1, height - 1) do
      for j = math.max(left, 0), math.min(column + k - 1, width - 1) do
        rows[i + 1][j + 1] = rows[i + 1][j + 1] + 1 / k ^ 2
      end
    end
    top, left = top - 1, left - 1
  end
  local sum = 0.0
  for i = 1, height do
    for j = 1, width do sum = sum + rows[i][j] ^ 2 end
  end
  for i = 1, height do
    for j = 1, width do rows[i][j] = rows[i][j] / math.sqrt(sum) end
  end
  return rows
end

-- Two bumps of opposite sign beside each other, of length 1, across or down.
local function bump(s, side, dtype)
  local first, second = half_bump(side, side // 2), half_bump(side, side - side // 2)
  local rows, sum = {}, 0.0
  for i = 1, side do
    rows[i] = {}
    for j = 1, side do
      local v = j <= side // 2 and first[i][j] or -second[i][j - side // 2]
      rows[i][j], sum = v, sum + v * v
    end
  end
  local pattern = ms.tensor(rows, dtype) / math.sqrt(sum)
  return (whole(s.draws, 1) == 1 and pattern:t() or pattern):reshape { 1, side, side }
end

-- A pattern (1, side, side) at a place of a picture of zeros.
local function placed(x, pattern, top, left)
  local side = pattern.shape[3]
  return ops.pad(pattern, { left, x.shape[3] - side - left, top, x.shape[2] - side - top })
end

local function length(v) return math.sqrt(ops.sum(ops.square(v)):item()) end

function euclidean.first(self, s)
  local x = s.x
  local side = math.max(1, math.min(x.shape[2], x.shape[3]) // 5)
  local total = ops.zeros_like(x)
  for top = 0, x.shape[2] - side, side do
    for left = 0, x.shape[3] - side, side do
      total = total + placed(x, bump(s, side, x.dtype), top, left) * signs(s.draws, { x.shape[1], 1, 1 }, x.dtype)
    end
  end
  return ops.clip(x + total * (self.eps / length(total)), self.low, self.high)
end

-- A bump goes where a window is drawn; what it may use is what two windows, of which one is cleared, and the slack of the ball hold.
function euclidean.next(self, s, point, side)
  local x = s.x
  if side % 2 == 0 then side = math.max(1, side - 1) end
  local function place() return whole(s.draws, x.shape[2] - side), whole(s.draws, x.shape[3] - side) end
  local top, left = place()
  local other_top, other_left = place()
  local here, there = window(x, top, left, side, side), window(x, other_top, other_left, side, side)
  local either = ops.maximum(here, there)
  local change = point - x
  local slack = math.max(0, self.eps ^ 2 - ops.sum(ops.square(change)):item())
  local within = ops.sum(ops.square(change * either), { 1, 2 }, true)
  local old = change * here
  local old_length = ops.sqrt(ops.sum(ops.square(old), { 1, 2 }, true))
  local fresh = placed(x, bump(s, side, x.dtype), top, left) * signs(s.draws, { x.shape[1], 1, 1 }, x.dtype)
    + old / ops.maximum(old_length, 1e-12)
  fresh = fresh * here
  local scale = ops.sqrt(within + slack / x.shape[1]) / ops.maximum(ops.sqrt(ops.sum(ops.square(fresh), { 1, 2 }, true)), 1e-12)
  local total = change * (1 - either) + fresh * scale
  return ops.clip(x + total * (self.eps / math.max(self.eps, length(total))), self.low, self.high)
end

function SquareAttack:_attack(s)
  if s.x.ndim ~= 3 then
    fail("SquareAttack", "inputs must be pictures (N, C, H, W), got " .. arguments.describe(s.x) .. " as one of them")
  end
  local kind = self.norm == 2 and euclidean or uniform
  local function ask(point)
    local found, answers = self:_ask(s, ops.expand_dims(point, 0))
    if answers.ndim ~= 2 then fail("SquareAttack", "the model must give logits (N, classes), got " .. arguments.describe(answers)) end
    local mask = margins.mask(ms.tensor({ s.label }), answers.shape[2])
    return found[1], margins.distance(answers, mask, self.is_targeted, 0):item()
  end
  local point = kind.first(self, s)
  local found, lead = ask(point)
  while not found do
    local next_point = kind.next(self, s, point, side_of(self, s.queries, s.x.shape[2], s.x.shape[3]))
    local reached, next_lead = ask(next_point)
    if reached or next_lead < lead then point, lead, found = next_point, next_lead, reached end
    s.best = point
  end
  s.best, s.found = point, true
end

return { SquareAttack = SquareAttack }
