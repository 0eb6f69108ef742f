-- Small classifiers of two classes that attacks on privacy train: logistic regression, nearest neighbours, a random forest, a perceptron.
-- Each is a function (x, y, settings, draws) -> predict, where x is a float64 tensor (n, d) with columns of mean 0 and deviation 1, y a
-- list of 0 and 1, and predict(x) gives a list of probabilities of 1. settings bear scikit-learn's names.
local ms = require "lunaria"

local ops, f64 = ms.ops, ms.float64
local learners = { fit = {}, defaults = {} }
local fit, defaults = learners.fit, learners.defaults

local function column(list) return ms.tensor(list, f64):reshape { #list, 1 } end
local function with_ones(x) return ops.concat({ x, ms.ones({ x.shape[1], 1 }, f64) }, 1) end

-- Newton's method on the convex objective |w|^2 / 2 + C sum of losses; the intercept is not penalized.
defaults.lr = { C = 1.0, max_iter = 30 }
function fit.lr(x, y, settings)
  local rows, target = with_ones(x), column(y)
  local d = rows.shape[2]
  local penalty = ops.concat({ ms.ones({ d - 1 }, f64), ms.full({ 1 }, 1e-9, f64) }, 0)
  local w = ms.zeros({ d, 1 }, f64)
  for _ = 1, settings.max_iter do
    local p = ops.sigmoid(ops.matmul(rows, w))
    local gradient = ops.matmul(rows:t(), p - target) * settings.C + penalty:reshape { d, 1 } * w
    local hessian = ops.matmul(rows:t(), rows * (p * (1 - p))) * settings.C + ops.diag(penalty)
    local step = ms.scipy.linalg.solve(hessian, gradient)
    -- A step of more than 5 in the weights leaves the region where the quadratic model holds.
    local longest = ops.max(ops.abs(step)):item()
    w = w - step * math.min(1.0, 5.0 / math.max(longest, 1e-300))
    if longest < 1e-10 then break end
  end
  return function(z) return ops.sigmoid(ops.matmul(with_ones(z), w)):reshape { -1 }:tolist() end
end

defaults.knn = { n_neighbors = 5 }
function fit.knn(x, y, settings)
  local k = math.min(settings.n_neighbors, #y)
  local labels, squares = ms.tensor(y, f64), ops.sum(x * x, 1):reshape { 1, -1 }
  return function(z)
    local result = {}
    for from = 0, z.shape[1] - 1, 512 do
      local part = z[{ ms.slice(from, math.min(z.shape[1], from + 512)) }]
      local distances = squares - 2 * ops.matmul(part, x:t())
      local _, nearest = ops.topk(-distances, k, 1)
      local shares = ops.mean(ops.gather(labels, nearest:astype(ms.int64):reshape { -1 }, 0):reshape { part.shape[1], k }, 1)
      table.move(shares:tolist(), 1, part.shape[1], #result + 1, result)
    end
    return result
  end
end

-- Trees split at quantiles of the columns, so that a split costs one pass over the rows of a node.
local most_bins = 32

local function bins_of(x)
  local n, edges, columns = x.shape[1], {}, {}
  for j = 1, x.shape[2] do
    local values = x[{ ms.slice(), j - 1 }]:tolist()
    local order = table.move(values, 1, n, 1, {})
    table.sort(order)
    local list = {}
    for b = 1, most_bins - 1 do
      local edge = order[math.max(1, b * n // most_bins)]
      if list[#list] ~= edge then list[#list + 1] = edge end
    end
    edges[j], columns[j] = list, values
  end
  return edges, columns
end

local function bin_of(edges, value)
  local low, high = 0, #edges
  while low < high do
    local middle = (low + high) // 2
    if value > edges[middle + 1] then low = middle + 1 else high = middle end
  end
  return low + 1
end

-- The split of a node's rows by one column with the least impurity (Gini's, times the number of rows), and that impurity.
local function best_edge(bins, edges, rows, y)
  local counts, ones = {}, {}
  for b = 1, #edges + 1 do counts[b], ones[b] = 0, 0 end
  local total = 0
  for i = 1, #rows do
    local row = rows[i]
    local b = bins[row]
    counts[b], ones[b], total = counts[b] + 1, ones[b] + y[row], total + y[row]
  end
  local n, left, left_ones, least, best = #rows, 0, 0, math.huge, nil
  for b = 1, #edges do
    left, left_ones = left + counts[b], left_ones + ones[b]
    local right, right_ones = n - left, total - left_ones
    if left > 0 and right > 0 then
      local impurity = left_ones * (left - left_ones) / left + right_ones * (right - right_ones) / right
      if impurity < least then least, best = impurity, b end
    end
  end
  return least, best
end

local function grow(bins, edges, rows, y, settings, pick, depth)
  local ones = 0
  for i = 1, #rows do ones = ones + y[rows[i]] end
  local leaf = { share = ones / #rows }
  if ones == 0 or ones == #rows or depth >= settings.max_depth or #rows < 2 * settings.min_samples_leaf then return leaf end
  local least, chosen, edge = math.huge, nil, nil
  for _, j in ipairs(pick()) do
    local impurity, at = best_edge(bins[j], edges[j], rows, y)
    if impurity < least then least, chosen, edge = impurity, j, at end
  end
  if not chosen then return leaf end
  local left, right = {}, {}
  for i = 1, #rows do
    local row = rows[i]
    if bins[chosen][row] <= edge then left[#left + 1] = row else right[#right + 1] = row end
  end
  if #left < settings.min_samples_leaf or #right < settings.min_samples_leaf then return leaf end
  return { column = chosen, edge = edge, left = grow(bins, edges, left, y, settings, pick, depth + 1),
    right = grow(bins, edges, right, y, settings, pick, depth + 1) }
end

-- Integers from 1 to n, many at a time from the generator.
local function picker(draws)
  local list, at = {}, 0
  return function(n)
    at = at + 1
    if at > #list then list, at = draws:uniform({ 4096 }, 0, 1, f64):tolist(), 1 end
    return math.min(n, 1 + math.floor(list[at] * n))
  end
end

defaults.rf = { n_estimators = 100, max_depth = 16, min_samples_leaf = 1 }
function fit.rf(x, y, settings, draws)
  local n, d = x.shape[1], x.shape[2]
  local edges, columns = bins_of(x)
  local bins, integer = {}, picker(draws)
  for j = 1, d do
    bins[j] = {}
    for i = 1, n do bins[j][i] = bin_of(edges[j], columns[j][i]) end
  end
  local wanted = math.max(1, math.floor(math.sqrt(d)))
  local function pick()
    local chosen, taken = {}, {}
    while #chosen < wanted do
      local j = integer(d)
      if not taken[j] then chosen[#chosen + 1], taken[j] = j, true end
    end
    return chosen
  end
  local trees = {}
  for k = 1, settings.n_estimators do
    local rows = {}
    for i = 1, n do rows[i] = integer(n) end
    trees[k] = grow(bins, edges, rows, y, settings, pick, 0)
  end
  return function(z)
    local values, result = z:tolist(), {}
    for i = 1, z.shape[1] do
      local row, sum = {}, 0
      for j = 1, d do row[j] = bin_of(edges[j], values[i][j]) end
      for k = 1, #trees do
        local node = trees[k]
        while node.column do node = row[node.column] <= node.edge and node.left or node.right end
        sum = sum + node.share
      end
      result[i] = sum / #trees
    end
    return result
  end
end

-- One hidden layer of ReLU for each of the sizes, Adam on the logistic loss with weight decay alpha.
defaults.mlp = { hidden_layer_sizes = { 64 }, alpha = 1e-4, learning_rate_init = 1e-3, max_iter = 100, batch_size = 200 }
function fit.mlp(x, y, settings, draws)
  local n, parameters, width = x.shape[1], {}, x.shape[2]
  local sizes = table.move(settings.hidden_layer_sizes, 1, #settings.hidden_layer_sizes, 1, {})
  sizes[#sizes + 1] = 1
  for k, size in ipairs(sizes) do
    local bound = math.sqrt(6 / (width + size))
    parameters[#parameters + 1] = ms.Parameter(draws:uniform({ width, size }, -bound, bound), "weight" .. k)
    parameters[#parameters + 1] = ms.Parameter(ms.zeros { size }, "bias" .. k)
    width = size
  end
  local function logits(z)
    for k = 1, #sizes do
      z = ops.matmul(z, parameters[2 * k - 1]) + parameters[2 * k]
      if k < #sizes then z = ops.relu(z) end
    end
    return z:reshape { -1 }
  end
  local optimizer = ms.nn.Adam(parameters, settings.learning_rate_init, { weight_decay = settings.alpha })
  local step = ms.value_and_grad(function(z, target) return ops.mean(ops.softplus(logits(z)) - logits(z) * target) end, nil, parameters)
  local inputs, target = x:astype(ms.float32), ms.tensor(y, ms.float32)
  local size = math.min(n, settings.batch_size)
  for _ = 1, settings.max_iter do
    local order = draws:permutation(n)
    -- Rows that do not fill a batch wait for the next epoch's order.
    for from = 0, n - size, size do
      local rows = order[{ ms.slice(from, from + size) }]
      local _, gradients = step(ops.gather(inputs, rows, 0), ops.gather(target, rows, 0))
      optimizer(gradients)
    end
  end
  return function(z) return ops.sigmoid(logits(z:astype(ms.float32))):tolist() end
end

return learners
