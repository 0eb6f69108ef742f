-- SimilarityDetector (Chen et al., 2019): queries that are too close to earlier ones are those of a black-box attack. Its verdict is on a
-- sequence of queries: the same for the same sequence, in whichever batches it comes.
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"
local class = require "lunaria.nn.class"
local common = require "lunaria.armour.common"
local Detector = require "lunaria.armour.detectors.detector".Detector

local ops = ms.ops
local fail, check = arguments.fail, arguments.check

local Similarity = class.define(Detector, "SimilarityDetector",
  "trans_model, max_k_neighbor=1000, chunk_size=1000, max_buffer_size=10000, tuning=false, fpr=0.001",
  [[Finds black-box attacks by queries that are too close to earlier ones (Chen et al., 2019).

trans_model: a cell or a function that gives an encoding (N, ...) of queries in which likeness is nearness. max_k_neighbor: how many
nearest earlier queries count. chunk_size: how many distances fit takes at once, rows by all samples. max_buffer_size: how many earlier
queries are kept; the oldest go first. tuning: whether fit gives thresholds for 1 to max_k_neighbor neighbours or for max_k_neighbor
alone. fpr: the share of clean queries that fit lets lie below the threshold.

  > detector = ms.armour.detectors.SimilarityDetector(function(x) return x end, { max_k_neighbor = 2, fpr = 0.1 })
  > detector:fit(ms.rand { 50, 8 })
  > x = ms.rand { 1, 8 }
  > detector:detect(x + 0.001 * ms.rand { 6, 8 }):tolist()[3] --> 1]])

function Similarity:setup(a)
  local name = "SimilarityDetector"
  self._encode = common.predictor(name, a.trans_model)
  self._most_neighbors = check.positive(name, "max_k_neighbor", a.max_k_neighbor)
  self._chunk = check.positive(name, "chunk_size", a.chunk_size)
  self._room = check.positive(name, "max_buffer_size", a.max_buffer_size)
  if self._room < self._most_neighbors then
    fail(name, ("max_buffer_size is %d and max_k_neighbor is %d: so many neighbours do not fit"):format(self._room, self._most_neighbors))
  end
  self._tuning = check.boolean(name, "tuning", a.tuning)
  self.rate = check.probability(name, "fpr", a.fpr)
  self._count, self._filled, self._next, self._detected = 0, 0, 0, {}
end

function Similarity:_encoded(inputs)
  common.images("SimilarityDetector", inputs)
  local codes = self._encode(inputs)
  if not ms.is_tensor(codes) or codes.ndim == 0 or codes.shape[1] ~= inputs.shape[1] then
    fail("SimilarityDetector", "trans_model must give a tensor (N, ...), got " .. arguments.describe(codes))
  end
  codes = codes:reshape { inputs.shape[1], -1 }
  local width = self._width or codes.shape[2]
  if codes.shape[2] ~= width then
    fail("SimilarityDetector", ("encodings of earlier samples have %d numbers, these have %d"):format(width, codes.shape[2]))
  end
  self._width = width
  return codes
end

--- Sets threshold and number of neighbours by clean samples; gives a list of numbers of neighbours and a list of the thresholds for them,
--- and takes the last ones. The distances of a sample are those to the others, not to itself. inputs: clean samples (N, ...), more than
--- max_k_neighbor.
---     > detector = ms.armour.detectors.SimilarityDetector(function(x) return x end, { max_k_neighbor = 3, tuning = true })
---     > #detector:fit(ms.rand { 20, 4 }) --> 3
function Similarity:fit(inputs)
  local codes = self:_encoded(inputs)
  local n, most = codes.shape[1], self._most_neighbors
  if n <= most then
    fail("fit", ("there are %d samples, and %d neighbours of each are asked for"):format(n, most), "fewer max_k_neighbor")
  end
  local nearest = {}
  for from = 0, n - 1, self._chunk do
    local distances = ops.cdist(codes[{ ms.slice(from, math.min(n, from + self._chunk)) }], codes)
    local sorted = (ops.sort(distances, 1))
    -- The first one is the sample itself.
    nearest[#nearest + 1] = sorted[{ ms.slice(), ms.slice(1, most + 1) }]
  end
  local whole = ops.concat(nearest, 0):astype(ms.float64)
  local sums, counts, thresholds = ops.cumsum(whole, 1), {}, {}
  for k = self._tuning and 1 or most, most do
    local means = (ops.sort(sums[{ ms.slice(), k - 1 }] / k, 0))
    counts[#counts + 1] = k
    thresholds[#thresholds + 1] = means[math.min(n - 1, math.floor(n * self.rate + 1e-9))]:item()
  end
  self._neighbors, self.threshold = counts[#counts], thresholds[#thresholds]
  return counts, thresholds
end

-- The mean distance of a query (1, d) from its nearest earlier ones, or nil where there are too few of these.
function Similarity:_mean_distance(code)
  if self._filled < self._neighbors then return nil end
  local earlier = self._buffer[{ ms.slice(0, self._filled) }]
  return ops.mean((ops.topk(ops.cdist(code, earlier):reshape { -1 }, self._neighbors, nil, false))):item()
end

function Similarity:_remember(code)
  self._buffer = self._buffer or ops.zeros({ self._room, code.shape[2] }, code.dtype)
  self._buffer[{ ms.slice(self._next, self._next + 1) }] = code
  self._next = (self._next + 1) % self._room
  self._filled = math.min(self._room, self._filled + 1)
end

--- Takes queries in their order: 1 for each one by which an attack was found, else 0, (N,) of int32. An attack that was found empties the
--- buffer. inputs: queries (N, ...).
---     > detector = ms.armour.detectors.SimilarityDetector(function(x) return x end)
---     > detector:set_threshold(1, 0.5)
---     > detector:detect(ms.tensor { { 0.0 }, { 2.0 }, { 2.25 } }):tolist()[3] --> 1
function Similarity:detect(inputs)
  if self.threshold == nil then fail("detect", "there is no threshold yet", "call fit with clean samples, or set_threshold") end
  local codes, verdicts = self:_encoded(inputs), {}
  for i = 0, codes.shape[1] - 1 do
    local code = codes[{ ms.slice(i, i + 1) }]
    local distance = self:_mean_distance(code)
    self:_remember(code)
    self._count = self._count + 1
    local is_attack = distance ~= nil and distance < self.threshold
    if is_attack then
      table.insert(self._detected, self._count)
      self:clear_buffer()
    end
    verdicts[i + 1] = is_attack and 1 or 0
  end
  return ms.tensor(verdicts, ms.int32)
end

--- Forgets the queries.
---     > ms.armour.detectors.SimilarityDetector(function(x) return x end):clear_buffer()
function Similarity:clear_buffer() self._filled, self._next = 0, 0 end

--- Sets the number of neighbours and the threshold. num_of_neighbors: up to max_buffer_size. threshold: a mean distance, above 0.
---     > ms.armour.detectors.SimilarityDetector(function(x) return x end):set_threshold(10, 0.25)
function Similarity:set_threshold(num_of_neighbors, threshold)
  local where = "set_threshold"
  num_of_neighbors, threshold = arguments.named(where, { "num_of_neighbors", "threshold" }, num_of_neighbors, threshold)
  num_of_neighbors = check.positive(where, "num_of_neighbors", num_of_neighbors)
  if num_of_neighbors > self._room then
    fail(where, ("num_of_neighbors is %d, but only %d queries are kept"):format(num_of_neighbors, self._room))
  end
  self._neighbors, self.threshold = num_of_neighbors, check.number_positive(where, "threshold", threshold)
end

--- The numbers of the queries by which attacks were found, from 1, a list.
---     > #ms.armour.detectors.SimilarityDetector(function(x) return x end):get_detected_queries() --> 0
function Similarity:get_detected_queries() return table.move(self._detected, 1, #self._detected, 1, {}) end

--- How many queries lie between attacks that were found one after the other, a list.
---     > #ms.armour.detectors.SimilarityDetector(function(x) return x end):get_detection_interval() --> 0
function Similarity:get_detection_interval()
  local gaps = {}
  for i = 2, #self._detected do gaps[i - 1] = self._detected[i] - self._detected[i - 1] end
  return gaps
end

--- A query has no mark without those before it: it is an error.
---     > (pcall(ms.armour.detectors.SimilarityDetector(function(x) return x end).detect_diff)) --> false
function Similarity:detect_diff() -- luacheck: ignore 212
  fail("detect_diff", "a query has no mark without those before it", "detect(inputs)")
end

return { SimilarityDetector = Similarity }
