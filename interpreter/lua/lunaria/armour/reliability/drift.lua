-- Concept drift in series of numbers: where what a series does from one window to the next changes.
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"
local class = require "lunaria.nn.class"
local common = require "lunaria.armour.common"

local ops = ms.ops
local fail, check, describe = arguments.fail, arguments.check, arguments.describe

local name = "ConceptDriftCheckTimeSeries"

local ConceptDriftCheckTimeSeries = class.define(nil, name, "window_size=100, rolling_window=10, step=10, threshold_index=1.5, seed=42",
  [[Finds where series change their kind. Each window of window_size values, at least 10 and at most a third of the series, is compared with
the one behind it by means and by what an echo-state network makes of them; step: from one pair of windows to the next. rolling_window: over
how many values the series is averaged before. threshold_index: a change is a score of at least 0.1 + threshold_index times the distance of
the scores' quartiles, within 0 and 1. seed: of the network's weights. Periodic data want windows of 2 to 5 periods.

  > wave = ms.ops.sin(ms.ops.arange(600) * 0.3)
  > series = ms.ops.concat({ wave[{ ms.slice(0, 300) }], wave[{ ms.slice(300, 600) }] * 4 + 3 }, 0)
  > check = ms.armour.reliability.ConceptDriftCheckTimeSeries(60)
  > _, _, places = check:concept_check(series)
  > places[1] > 200 and places[#places] < 400 --> true]])
ConceptDriftCheckTimeSeries._called = "check"

function ConceptDriftCheckTimeSeries:setup(a)
  self.window_size = check.positive(name, "window_size", a.window_size)
  if self.window_size < 10 then fail(name, ("window_size must be at least 10, got %d"):format(self.window_size)) end
  for _, option in ipairs { "rolling_window", "step" } do
    self[option] = check.positive(name, option, a[option])
    if self[option] > self.window_size then
      fail(name, ("%s must be at most window_size, %d, got %d"):format(option, self.window_size, self[option]))
    end
  end
  self.threshold_index = check.finite(name, "threshold_index", a.threshold_index)
  self.seed = check.not_negative(name, "seed", a.seed)
end

-- Series (n, m) averaged over so many values from each on, and then scaled to the range from 0 to 1; a constant one is 0.
local function smoothed(x, window)
  local n = x.shape[1]
  local sums = ops.concat({ ops.zeros({ 1, x.shape[2] }, x.dtype), ops.cumsum(x, 0) }, 0)
  local means = (sums[{ ms.slice(window, n + 1) }] - sums[{ ms.slice(0, n + 1 - window) }]) / window
  if window > 1 then
    means = ops.concat({ means, ops.broadcast_to(means[{ ms.slice(n - window, n - window + 1) }], { window - 1, x.shape[2] }) }, 0)
  end
  local lo, hi = ops.amin(means, 0), ops.amax(means, 0)
  local width = hi - lo
  return (means - lo) / ops.where(ops.greater(width, 0), width, ops.ones_like(width))
end

-- What an echo-state network gives back of each window: windows (w, size, m) to the same shape.
local function echoes(windows, seed)
  local size = windows.shape[2]
  local units = size // 10
  local draws = common.generator(seed)
  local w_in, w_own = draws:uniform({ units, size }, -0.5, 0.5, ms.float64), draws:uniform({ units, units }, -0.4, 0.4, ms.float64)
  local leak, state = 0.3, ops.zeros({ windows.shape[1], units, windows.shape[3] }, ms.float64)
  local driven = ops.matmul(w_in, windows)
  for _ = 1, 50 do state = state * (1 - leak) + leak * ops.tanh(driven + ops.matmul(w_own, state)) end
  -- Ridge regression from the state to the window; the small weight keeps the system regular.
  local turned = state:swapaxes(1, 2)
  local system = ops.matmul(state, turned) + 1e-8 * ops.eye(units):astype(ms.float64)
  local weights = ops.solve(system, ops.matmul(state, windows:swapaxes(1, 2)))
  return ops.matmul(weights:swapaxes(1, 2), state)
end

-- The scores (pairs,) of windows and those behind them, both (pairs, size, m).
local function distances(before, behind, seed)
  local answers = echoes(before, seed) - echoes(behind, seed)
  local distance = ops.mean(ops.abs(answers), 1) + ops.mean(ops.abs(ops.mean(before, 1) - ops.mean(behind, 1)), 1, true)
  return ops.mean(distance / (1 + distance), 1)
end

local function quantile(sorted, q)
  local at = q * (#sorted - 1) + 1
  local i = math.floor(at)
  return sorted[i] + (at - i) * ((sorted[i + 1] or sorted[i]) - sorted[i])
end

--- Finds the changes: gives the scores, a tensor (n,) that is 0 where none was computed; the threshold; and the places of changes, a list
--- of indices from 0, where the second window of a pair begins. A single pair above the threshold between pairs below it is no change.
--- data: a tensor (n,) of one series or (n, m) of m series.
function ConceptDriftCheckTimeSeries:concept_check(data)
  local where = "concept_check"
  if not ms.is_tensor(data) or data.ndim < 1 or data.ndim > 2 then
    fail(where, "data must be a tensor (n,) or (n, m), got " .. describe(data))
  end
  local n, size = data.shape[1], self.window_size
  if n < 3 * size then
    fail(where, ("data has %d values, and window_size is %d: at most a third of them"):format(n, size))
  end
  data = data:astype(ms.float64):reshape { n, -1 }
  if not ops.all(ops.isfinite(data)):item() then fail(where, "data hold nan or infinity") end
  local x = smoothed(data, self.rolling_window)
  local before, behind, places = {}, {}, {}
  for at = 0, n - 2 * size - 1, self.step do
    before[#before + 1], behind[#behind + 1] = x[{ ms.slice(at, at + size) }], x[{ ms.slice(at + size, at + 2 * size) }]
    places[#places + 1] = at + size
  end
  local scores = distances(ops.stack(before, 0), ops.stack(behind, 0), self.seed)
  local values, positive = scores:tolist(), {}
  for _, score in ipairs(values) do
    if score > 0 then positive[#positive + 1] = score end
  end
  table.sort(positive)
  local threshold = 1.0
  if #positive > 0 then
    threshold = math.max(0.0, math.min(1.0, 0.1 + self.threshold_index * (quantile(positive, 0.75) - quantile(positive, 0.25))))
  end
  local function is_above(i) return values[i] ~= nil and values[i] >= threshold end
  local changes = {}
  for i, place in ipairs(places) do
    if is_above(i) and (is_above(i - 1) or is_above(i + 1)) then changes[#changes + 1] = place end
  end
  local all = ops.tensor_scatter_update(ops.zeros({ n }, ms.float64), ms.tensor(places, ms.int64):reshape { -1, 1 }, scores)
  return all, threshold, changes
end

return { ConceptDriftCheckTimeSeries = ConceptDriftCheckTimeSeries }
