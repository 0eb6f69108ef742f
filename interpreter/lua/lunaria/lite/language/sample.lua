-- Sampling: the next token from the scores of all. Penalty, temperature, top-k, top-p and min-p in the order and with the meaning
-- that they have in Hugging Face's transformers. Random numbers come from a generator of each sampler, so that the same seed writes
-- the same text.
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"

local ops = ms.ops
local check = arguments.check

local Sampler = require "lunaria.nn.class".Object:extend("Sampler")

-- SplitMix64 (Steele, Lea, Flood, 2014): numbers in [0, 1).
local function next_random(self)
  self._random = self._random + 0x9E3779B97F4A7C15
  local z = self._random
  z = (z ~ (z >> 30)) * 0xBF58476D1CE4E5B9
  z = (z ~ (z >> 27)) * 0x94D049BB133111EB
  return ((z ~ (z >> 31)) >> 11) * 2.0 ^ -53
end

local option_types = { temperature = "number", top_k = "number", top_p = "number", min_p = "number", repetition_penalty = "number",
  seed = "number" }

function Sampler:init(options)
  local where = "Sampler"
  options = options and arguments.options(where, options, option_types, "{ temperature = 0.8 }") or {}
  self.temperature = check.number_not_negative(where, "temperature", options.temperature or 1.0)
  self.top_k = check.not_negative(where, "top_k", options.top_k or 0)
  self.top_p = check.probability(where, "top_p", options.top_p or 1.0)
  self.min_p = check.probability(where, "min_p", options.min_p or 0.0)
  self.repetition_penalty = check.number_positive(where, "repetition_penalty", options.repetition_penalty or 1.0)
  self.seed = check.integer(where, "seed", options.seed or math.random(0, 1 << 40))
  self._random = self.seed
end

-- Scores of tokens that were there are divided by the penalty, negative ones multiplied.
local function penalised(scores, history, penalty)
  local seen, ids = {}, {}
  for _, id in ipairs(history) do
    if not seen[id] then seen[id], ids[#ids + 1] = true, id end
  end
  if #ids == 0 then return scores end
  local index = ms.tensor(ids, ms.int64)
  local old = ops.gather(scores, index, 0)
  local new = ops.where(ops.greater(old, 0), old / penalty, old * penalty)
  return ops.tensor_scatter_update(scores, ops.reshape(index, { -1, 1 }), new)
end

-- The probabilities of the likeliest tokens, falling, and their numbers: all that one of top_k, top_p and min_p leaves. `shift` is the
-- logarithm of the sum over all.
local function candidates(self, scores)
  local size = scores:sizes(0)
  local k = self.top_k > 0 and math.min(self.top_k, size) or nil
  local count = k or math.min(size, 256)
  local shift = (not k) and ops.logsumexp(scores, 0):item()
  while true do
    local best, ids = ops.topk(scores, count)
    local p = (k and ops.softmax(best, 0) or ops.exp(best - shift)):tolist()
    -- Further ones are needed where what is there does not decide: neither top_p is reached nor min_p undercut.
    local sum = 0
    for i = 1, #p do sum = sum + p[i] end
    if k or count == size or sum >= self.top_p or p[#p] < self.min_p * p[1] then return p, ids:tolist() end
    count = math.min(size, count * 4)
  end
end

--- The probabilities of the tokens that may come next, falling, and their numbers. scores: a vector. history: a list of the tokens
--- so far, for the penalty.
function Sampler:distribution(scores, history)
  scores = scores:astype(ms.float32)
  if self.repetition_penalty ~= 1 and history then scores = penalised(scores, history, self.repetition_penalty) end
  if self.temperature == 0 then return { 1.0 }, { ops.argmax(scores):item() } end
  local p, ids = candidates(self, scores / self.temperature)
  -- The likeliest token always stays.
  local kept, sum = #p, 0
  if self.top_p < 1 then
    for i = 1, #p do
      sum = sum + p[i]
      if sum >= self.top_p then kept = i break end
    end
  end
  -- min_p is relative to the likeliest, so that the order of the two does not matter.
  if self.min_p > 0 then
    while kept > 1 and p[kept] < self.min_p * p[1] do kept = kept - 1 end
  end
  sum = 0
  for i = 1, kept do sum = sum + p[i] end
  for i = 1, #p do
    if i <= kept then p[i] = p[i] / sum else p[i], ids[i] = nil, nil end
  end
  return p, ids
end

--- The next token: a number. scores: a vector of all tokens' scores. history: a list of the tokens so far, for the penalty.
function Sampler:next(scores, history)
  local p, ids = self:distribution(scores, history)
  local at, sum = next_random(self), 0
  for i = 1, #p do
    sum = sum + p[i]
    if at < sum then return ids[i] end
  end
  return ids[#ids]
end

local M = { Sampler = Sampler }

Sampler._doc = [[Chooses the next token by the scores of all: ms.lite.Sampler(options); sampler:next(scores, history) is a token.

options: temperature (1; 0: always the likeliest), top_k (0: all), top_p (1), min_p (0), repetition_penalty (1; scores of tokens in the
history are divided by it, negative ones multiplied), seed: the same seed gives the same tokens. sampler:distribution(scores, history)
gives the probabilities of the tokens that are left, and their numbers.
  > sampler = ms.lite.Sampler { temperature = 0 }
  > sampler:next(ms.tensor { 0.1, 3.0, 0.2 }) --> 1]]

return M
