-- Audits of private training: what the scores of runs with a row and of runs without it prove about epsilon.
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"
local binomial = require "lunaria.armour.binomial"

local ops, f64 = ms.ops, ms.float64
local fail, check, describe = arguments.fail, arguments.check, arguments.describe
local M = {}

--- The interval in which the probability lies with a confidence, after `hits` of `n` trials (Clopper and Pearson 1934): two numbers. Each
--- side alone has half of what is left of the confidence.
---     > ("%.4f"):format((ms.armour.privacy.evaluation.clopper_pearson(0, 10, 0.95))) --> 0.0000
function M.clopper_pearson(hits, n, confidence)
  local where = "clopper_pearson"
  n, confidence = arguments.named(where, { "n", "confidence" }, n, confidence)
  n, hits = check.positive(where, "n", n), check.not_negative(where, "hits", hits)
  if hits > n then fail(where, ("hits must be at most n, got %d of %d"):format(hits, n)) end
  confidence = confidence == nil and 0.95 or check.rate(where, "confidence", confidence)
  local tail = (1 - confidence) / 2
  return binomial.lower(hits, n, tail), binomial.upper(hits, n, tail)
end

local function sorted(where, name, scores)
  if ms.is_tensor(scores) and scores.ndim == 1 then scores = scores:astype(f64):tolist() end
  if type(scores) ~= "table" or getmetatable(scores) ~= nil or #scores < 4 then
    fail(where, ("%s must be a tensor (n,) or a list of at least 4 scores, got %s"):format(name, describe(scores)))
  end
  local list = {}
  for i, score in ipairs(scores) do
    list[i] = check.real(where, name, score)
  end
  return list
end

local function above(list, threshold)
  local count = 0
  for _, score in ipairs(list) do
    if score > threshold then count = count + 1 end
  end
  return count
end

-- The epsilon that a threshold proves, by runs with the row above it and by runs without it below it. Both need the same two bounds: the
-- least share of the former, and the largest share of the latter that lies above.
local function proved(with, without, threshold, delta, confidence)
  local hits, alarms = above(with, threshold), above(without, threshold)
  local hit_low = M.clopper_pearson(hits, #with, confidence)
  local _, alarm_high = M.clopper_pearson(alarms, #without, confidence)
  local best = 0.0
  if hit_low > delta then best = math.max(best, math.log((hit_low - delta) / alarm_high)) end
  if 1 - alarm_high > delta then best = math.max(best, math.log((1 - alarm_high - delta) / (1 - hit_low))) end
  return best, hits / #with, alarms / #without
end

--- A lower bound of epsilon, true with the confidence, from scores of runs whose data had the row and of runs without it (Jagielski, Ullman
--- and Oprea 2020, Nasr and others 2021): a table with epsilon, threshold, tpr and fpr. A private mechanism's claim is at least that. The
--- threshold is chosen on the first half of the runs and judged on the second, so that the choice does not count. with, without: tensors
--- (n,) or lists of scores of independent runs, higher where the row is thought to be in. Options: delta (0), confidence (0.95).
---     > with, without = {}, {}
---     > for i = 1, 200 do with[i], without[i] = 1.0 + i / 1000, i / 1000 end
---     > ms.armour.privacy.evaluation.audit(with, without).epsilon > 2 --> true
function M.audit(with, without, options)
  local where = "audit"
  local o = arguments.options(where, options, { delta = "number", confidence = "number" }, "{ delta = 1e-5 }")
  local delta = check.rate(where, "delta", o.delta or 0.0)
  local confidence = check.rate(where, "confidence", o.confidence or 0.95)
  with, without = sorted(where, "with", with), sorted(where, "without", without)
  local function halves(list)
    local half = #list // 2
    return table.move(list, 1, half, 1, {}), table.move(list, half + 1, #list, 1, {})
  end
  local with_1, with_2 = halves(with)
  local without_1, without_2 = halves(without)
  local candidates = {}
  for _, list in ipairs { with_1, without_1 } do table.move(list, 1, #list, #candidates + 1, candidates) end
  table.sort(candidates)
  local best, equals = -1.0, {}
  -- Up to 64 thresholds at equal distances in rank: the bounds of two neighbours hardly differ.
  for i = 1, #candidates, math.max(1, #candidates // 64) do
    local middle = 0.5 * (candidates[i] + candidates[math.min(i + 1, #candidates)])
    local epsilon = proved(with_1, without_1, middle, delta, confidence)
    if epsilon > best then best, equals = epsilon, {} end
    if epsilon == best then equals[#equals + 1] = middle end
  end
  -- Of equally good ones the middle one, which is furthest from scores that the first half has not seen.
  local threshold = equals[(#equals + 1) // 2]
  local epsilon, tpr, fpr = proved(with_2, without_2, threshold, delta, confidence)
  return { epsilon = epsilon, threshold = threshold, tpr = tpr, fpr = fpr }
end

--- Trains with a canary and without it, many times, and audits the scores: a table as audit gives, with the scores as `with` and `without`.
--- train: a function train(has_canary, seeds) that trains a model for each of the seeds, an int64 tensor (k,), on data with or without the
--- canary, and gives their scores (k,), higher where the canary was seen; ms.vmap over the runs makes many small models as quick as a large
--- one. Options: runs (1000: of each kind half), batch (250: runs at a time), delta, confidence, seed (1).
---     > noise = function(has_canary, seeds) return ms.ops.randn({ seeds.shape[1] }) + (has_canary and 1.0 or 0.0) end
---     > ms.armour.privacy.evaluation.canary_audit(noise, { runs = 400, delta = 1e-5 }).epsilon < 4.4 --> true
function M.canary_audit(train, options)
  local where = "canary_audit"
  local known = { runs = "number", batch = "number", delta = "number", confidence = "number", seed = "number" }
  local o = arguments.options(where, options, known, "{ runs = 1000 }")
  if not arguments.is_callable(train) then fail(where, "train must be a function train(has_canary, seeds), got " .. describe(train)) end
  local half = check.positive(where, "runs", o.runs or 1000) // 2
  local batch, first = check.positive(where, "batch", o.batch or 250), check.not_negative(where, "seed", o.seed or 1)
  if half < 4 then fail(where, ("runs must be at least 8, got %d"):format(o.runs)) end
  local function scores(has_canary, offset)
    local parts = {}
    for from = 0, half - 1, batch do
      local count = math.min(batch, half - from)
      local part = train(has_canary, ms.arange(first + offset + from, first + offset + from + count):astype(ms.int64))
      if not ms.is_tensor(part) or part.size ~= count then
        fail(where, ("train must give %d scores, one for each seed, got %s"):format(count, describe(part)))
      end
      parts[#parts + 1] = part:reshape { count }
    end
    return ops.concat(parts, 0)
  end
  local with, without = scores(true, 0), scores(false, half)
  local found = M.audit(with, without, { delta = o.delta, confidence = o.confidence })
  found.with, found.without = with, without
  return found
end

return M
