-- DefenseEvaluate and BlackDefenseEvaluate: what a defence gains and costs, beside the network without it.
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"
local class = require "lunaria.nn.class"
local given = require "lunaria.armour.evaluations.given"

local ops = ms.ops
local fail, check = arguments.fail, arguments.check

local function number(mask) return mask:astype(ms.float64) end
local function right(probabilities, labels) return number(ops.equal(given.argmax(probabilities), labels)) end

-- Probabilities of both networks and the labels, checked.
local function both(where, a)
  local raw = given.probabilities(where, "raw_preds", a.raw_preds)
  local count, classes = raw.shape[1], raw.shape[2]
  local defended = given.probabilities(where, "def_preds", a.def_preds, count)
  if defended.shape[2] ~= classes then
    fail(where, ("raw_preds has %d classes and def_preds has %d"):format(classes, defended.shape[2]))
  end
  return raw, defended, given.classes(where, a.true_labels, count, classes)
end

local DefenseEvaluate = class.define(nil, "DefenseEvaluate", "raw_preds, def_preds, true_labels",
  [[What a defence changes in a network's answers.

raw_preds, def_preds: probabilities (N, classes) of the same samples by the network without and with the defence. true_labels: class numbers
(N,) or one-hot. Source: Ling et al. 2019 (DEEPSEC).

  > raw, defended = ms.tensor { { 0.75, 0.25 }, { 0.75, 0.25 } }, ms.tensor { { 0.75, 0.25 }, { 0.25, 0.75 } }
  > ms.armour.evaluations.DefenseEvaluate(raw, defended, ms.tensor { 0, 1 }):cav() --> 0.5]])

function DefenseEvaluate:setup(a)
  self._raw, self._defended, self._labels = both("DefenseEvaluate", a)
  self._raw_right, self._defended_right = right(self._raw, self._labels), right(self._defended, self._labels)
end

--- The accuracy with the defence less that without it (CAV).
---     > p, q = ms.tensor { { 0.75, 0.25 } }, ms.tensor { { 0.25, 0.75 } }
---     > ms.armour.evaluations.DefenseEvaluate(p, q, ms.tensor { 0 }):cav() --> -1.0
function DefenseEvaluate:cav() return ops.mean(self._defended_right):item() - ops.mean(self._raw_right):item() end

--- The share of samples that the defence puts right (CRR).
---     > p, q = ms.tensor { { 0.75, 0.25 } }, ms.tensor { { 0.25, 0.75 } }
---     > ms.armour.evaluations.DefenseEvaluate(p, q, ms.tensor { 1 }):crr() --> 1.0
function DefenseEvaluate:crr() return ops.mean(self._defended_right * (1 - self._raw_right)):item() end

--- The share of samples that the defence gives up (CSR).
---     > p, q = ms.tensor { { 0.75, 0.25 } }, ms.tensor { { 0.25, 0.75 } }
---     > ms.armour.evaluations.DefenseEvaluate(p, q, ms.tensor { 0 }):csr() --> 1.0
function DefenseEvaluate:csr() return ops.mean(self._raw_right * (1 - self._defended_right)):item() end

--- The mean change of the largest probability where both networks are right (CCV); -1 where they never are.
---     > p, q = ms.tensor { { 0.75, 0.25 } }, ms.tensor { { 0.875, 0.125 } }
---     > ms.armour.evaluations.DefenseEvaluate(p, q, ms.tensor { 0 }):ccv() --> 0.125
function DefenseEvaluate:ccv()
  local change = ops.abs(ops.amax(self._defended, 1) - ops.amax(self._raw, 1))
  return given.masked_mean(change, self._raw_right * self._defended_right, -1.0)
end

-- The divergence of Jensen and Shannon of each pair of rows, in nats. p log(p / m) is 0 where p is.
local function divergence(p, q)
  p, q = p / ops.sum(p, 1, true), q / ops.sum(q, 1, true)
  local middle = (p + q) / 2
  local function relative(r) return ops.sum(ops.xlogy(r, r) - ops.xlogy(r, middle), 1) end
  return (relative(p) + relative(q)) / 2
end

--- The mean divergence of Jensen and Shannon of the probabilities, in nats, where both networks are right (COS); -1 where they never are.
---     > p = ms.tensor { { 0.75, 0.25 } }
---     > ms.armour.evaluations.DefenseEvaluate(p, p, ms.tensor { 0 }):cos() --> 0.0
function DefenseEvaluate:cos()
  return given.masked_mean(divergence(self._raw, self._defended), self._raw_right * self._defended_right, -1.0)
end

local BlackDefenseEvaluate = class.define(nil, "BlackDefenseEvaluate", "raw_preds, def_preds, raw_query_counts, def_query_counts, "
  .. "raw_query_time, def_query_time, def_detection_counts, true_labels, max_queries",
  [[What a defence against attacks by queries costs the attacker and those who mean well.

raw_preds, def_preds: probabilities (N, classes) by the network without and with the defence. raw_query_counts, def_query_counts: how many
queries each sample took (N,); 0 for a sample that is none of the attacker's. raw_query_time, def_query_time: how long they took, in any
unit (N,). def_detection_counts: how many queries of each sample the defence has called an attack (N,). true_labels: class numbers (N,) or
one-hot. max_queries: how many queries the attacker has. Without any sample of an attacker it is an error.

  > p, q = ms.tensor { { 0.25, 0.75 }, { 0.75, 0.25 } }, ms.tensor { { 0.75, 0.25 }, { 0.75, 0.25 } }
  > BlackDefenseEvaluate = ms.armour.evaluations.BlackDefenseEvaluate
  > black = BlackDefenseEvaluate(p, q, { 10, 0 }, { 60, 0 }, { 1, 1 }, { 6, 1.5 }, { 3, 0 }, ms.tensor { 0, 0 }, 100)
  > black:qcv(), black:asv() --> 0.5	1.0]])

function BlackDefenseEvaluate:setup(a)
  local where = "BlackDefenseEvaluate"
  self._raw, self._defended, self._labels = both(where, a)
  local count = self._raw.shape[1]
  for _, name in ipairs { "raw_query_counts", "def_query_counts", "raw_query_time", "def_query_time", "def_detection_counts" } do
    self["_" .. name] = given.amounts(where, name, a[name], count)
  end
  self._max_queries = check.positive(where, "max_queries", a.max_queries)
  self._attacks = ops.sum(number(ops.greater(self._raw_query_counts, 0))):item()
  self._others = count - self._attacks
  if self._attacks == 0 then fail(where, "raw_query_counts is 0 for all samples: no one of them is an attacker's") end
end

--- The change of the mean number of queries as a share of max_queries, at most 1 (QCV).
---     > p, n, t = ms.tensor { { 0.25, 0.75 } }, ms.tensor { 10 }, { 1 }
---     > ms.armour.evaluations.BlackDefenseEvaluate(p, p, n, n * 3, t, t, t, ms.tensor { 0 }, 100):qcv() --> 0.2
function BlackDefenseEvaluate:qcv()
  local defended, raw = ops.sum(self._def_query_counts):item() / self._attacks, ops.sum(self._raw_query_counts):item() / self._attacks
  -- An attack that has used up all its queries has failed.
  if defended == self._max_queries and raw < self._max_queries then return 1.0 end
  return math.min(defended - raw, self._max_queries) / self._max_queries
end

--- The share of the attacker's samples for which an attack succeeds without the defence less that with it (ASV).
---     > p, q, n = ms.tensor { { 0.25, 0.75 } }, ms.tensor { { 0.75, 0.25 } }, { 9 }
---     > ms.armour.evaluations.BlackDefenseEvaluate(p, q, n, n, n, n, n, ms.tensor { 0 }, 100):asv() --> 1.0
function BlackDefenseEvaluate:asv()
  local function successes(probabilities, counts)
    return ops.sum((1 - right(probabilities, self._labels)) * number(ops.greater(counts, 0))):item()
  end
  return (successes(self._raw, self._raw_query_counts) - successes(self._defended, self._def_query_counts)) / self._attacks
end

--- The share of other samples that the defence calls attacks (FPR); -1 where there are none.
---     > p, n, d = ms.tensor { { 0.25, 0.75 }, { 0.25, 0.75 } }, { 9, 0 }, { 0, 1 }
---     > ms.armour.evaluations.BlackDefenseEvaluate(p, p, n, n, n, n, d, ms.tensor { 0, 1 }, 100):fpr() --> 1.0
function BlackDefenseEvaluate:fpr()
  if self._others == 0 then return -1.0 end
  local is_other = number(ops.equal(self._def_query_counts, 0))
  return ops.sum(is_other * number(ops.greater(self._def_detection_counts, 0))):item() / self._others
end

--- The change of the mean time of other samples as a share of that without the defence (QRV); -1 where there are none.
---     > p, n, t = ms.tensor { { 0.25, 0.75 }, { 0.25, 0.75 } }, { 9, 0 }, { 1, 2 }
---     > qrv = ms.armour.evaluations.BlackDefenseEvaluate(p, p, n, n, t, { 1, 3 }, n, ms.tensor { 0, 1 }, 100):qrv()
---     > math.abs(qrv - 0.5) < 1e-9 --> true
function BlackDefenseEvaluate:qrv()
  if self._others == 0 then return -1.0 end
  local function mean(times, counts) return ops.sum(times * number(ops.equal(counts, 0))):item() / self._others end
  local raw, defended = mean(self._raw_query_time, self._raw_query_counts), mean(self._def_query_time, self._def_query_counts)
  return (defended - raw) / (raw + 1e-12)
end

return { DefenseEvaluate = DefenseEvaluate, BlackDefenseEvaluate = BlackDefenseEvaluate, divergence = divergence }
