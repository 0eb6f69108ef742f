-- ms.federated.partition: divisions of samples over clients. Takes about a second.
package.path = "tests/lua/?.lua;" .. package.path
local t = require "harness"
local ms = require "lunaria"
local chances = require "lunaria.federated.chances"
local partition = ms.federated.partition
local ops = ms.ops

local labels = ms.arange(2000) % 10

-- Every sample belongs to exactly one client.
local function is_whole(parts, n)
  local seen, count = {}, 0
  for client = 1, #parts do
    for _, row in ipairs(parts[client]:tolist()) do
      if seen[row] then return false end
      seen[row], count = true, count + 1
    end
  end
  return count == n
end

local function same(a, b)
  if #a ~= #b then return false end
  for client = 1, #a do
    if tostring(a[client].shape) ~= tostring(b[client].shape) or not ops.all(ops.equal(a[client], b[client])):item() then return false end
  end
  return true
end

local ways = {
  iid = function(seed) return partition.iid(labels, 7, seed) end,
  dirichlet = function(seed) return partition.dirichlet(labels, 7, { alpha = 0.5, seed = seed }) end,
  classes = function(seed) return partition.by_label(labels, 20, { labels_per_client = 2, seed = seed }) end,
  shards = function(seed) return partition.by_label(labels, 20, { labels_per_client = 2, method = "shards", seed = seed }) end,
  quantity = function(seed) return partition.by_quantity(2000, 7, { seed = seed }) end,
  id = function(seed) return partition.by_id(ms.arange(2000) % 50, { clients = 7, seed = seed }) end,
}
for name, way in pairs(ways) do
  t.test(name .. ": all samples once, by the seed alone", function()
    local before = ms.get_rng_state()
    local one, again, other = way(1), way(1), way(2)
    t.equal(is_whole(one, 2000), true)
    t.equal(same(one, again), true)
    t.equal(same(one, other), false)
    t.equal(ops.all(ops.equal(ms.get_rng_state(), before)):item(), true)
  end)
end

t.test("even parts differ by one sample at most", function()
  local sizes = partition.iid(2000, 7):sizes()
  table.sort(sizes)
  t.equal(sizes[7] - sizes[1], 1)
end)

t.test("a small alpha makes classes rare", function()
  -- The share of the largest class of a client, on average.
  local function purity(alpha)
    local counts = partition.dirichlet(labels, 10, { alpha = alpha, seed = 1 }):counts(labels):astype(ms.float32)
    return ops.mean(ops.amax(counts, 1) / ops.sum(counts, 1)):item()
  end
  local rare, medium, even = purity(0.1), purity(1.0), purity(1000.0)
  assert(rare > 0.4 and rare > medium and medium > even and even < 0.15, ("%g %g %g"):format(rare, medium, even))
end)

t.test("shares have the moments of the Dirichlet distribution", function()
  local stream, alpha, n, rounds = chances.of(3, "test"), 0.5, 4, 4000
  local mean, square = 0.0, 0.0
  for _ = 1, rounds do
    local share = stream:dirichlet(alpha, n)[2]
    mean, square = mean + share / rounds, square + share * share / rounds
  end
  -- Mean 1/n, variance (1/n)(1 - 1/n) / (n alpha + 1); three deviations of the means.
  local variance = (1 / n) * (1 - 1 / n) / (n * alpha + 1)
  assert(math.abs(mean - 1 / n) < 3 * math.sqrt(variance / rounds), mean)
  assert(math.abs(square - mean * mean - variance) < 0.005, square - mean * mean)
end)

t.test("every client has as many classes as were asked for", function()
  for _, count in ipairs { 1, 2, 3 } do
    local has = partition.by_label(labels, 20, { labels_per_client = count, seed = 4 }):counts(labels)
    local classes = ops.sum(ops.greater(has, 0):astype(ms.int64), 1)
    t.equal(ops.all(ops.equal(classes, count)):item(), true)
  end
  -- A shard lies in one class or over one border.
  local has = partition.by_label(labels, 20, { method = "shards", seed = 4 }):counts(labels)
  t.equal(ops.max(ops.sum(ops.greater(has, 0):astype(ms.int64), 1)):item() <= 4, true)
end)

t.test("ids stay together, and clients are in their order", function()
  local parts = partition.by_id { "cy", "ann", "bob", "ann" }
  t.equal(parts[1]:tolist(), { 1, 3 })
  t.equal(parts[3]:tolist(), { 0 })
end)

t.test("features shift by client", function()
  local x = ms.rand(6, 1, 5, 5)
  local parts = partition.iid(6, 3, { seed = 1 })
  local turned = parts:with_rotation { 0, 90, 180 }
  for client, times in ipairs { 0, 1, 2 } do
    local want = ops.rot90(parts:take(client, x), times, { 2, 3 })
    t.equal(ops.max(ops.abs(turned:take(client, x) - want)):item() < 1e-5, true)
  end
  t.equal(turned[2]:tolist(), parts[2]:tolist())
  local noisy = partition.iid(3000, 3, { seed = 1 }):with_noise(0.09, { seed = 2 })
  local deviation = ops.std(noisy:take(3, ms.zeros { 3000, 4 })):item()
  assert(math.abs(deviation - 0.3) < 0.01, deviation)
  t.equal(noisy:take(1, ms.zeros { 3000, 4 }):tolist(), noisy:take(1, ms.zeros { 3000, 4 }):tolist())
  -- One after the other.
  local both = parts:with_rotation({ 90, 90, 90 }):with_rotation { 90, 90, 90 }
  t.equal(ops.max(ops.abs(both:take(1, x) - ops.rot90(parts:take(1, x), 2, { 2, 3 }))):item() < 1e-5, true)
end)

t.test("streams depend on each of their keys", function()
  local function first(...) return chances.of(...):uniform() end
  local values = { first(1, "a", 2, 3), first(2, "a", 2, 3), first(1, "b", 2, 3), first(1, "a", 3, 3), first(1, "a", 2, 4),
    first(1, "a", 3, 2) }
  for i = 1, #values do
    for k = i + 1, #values do assert(values[i] ~= values[k], i .. " " .. k) end
  end
  t.equal(first(1, "a", 2, 3), values[1])
  local list = chances.of(1, "a"):sample(10, 10)
  t.equal(list, { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10 })
  local hits, stream = 0, chances.of(5, "a")
  for _ = 1, 3000 do
    for _, k in ipairs(stream:sample(10, 3)) do hits = hits + (k <= 5 and 1 or 0) end
  end
  assert(math.abs(hits / 9000 - 0.5) < 0.02, hits)
end)

t.test("mistakes are named", function()
  t.fails({ "4 clients cannot share 3 samples" }, function() partition.iid(3, 4) end)
  t.fails({ "need 3000, and there are 2000" }, function() partition.dirichlet(labels, 300) end)
  t.fails({ "no argument 'alpa'" }, function() partition.dirichlet(labels, 5, { alpa = 1 }) end)
  t.fails({ "alpha must be a positive number" }, function() partition.dirichlet(labels, 5, { alpha = 0 }) end)
  t.fails({ "labels must be" }, function() partition.dirichlet({ 1.5 }, 5) end)
  t.fails({ "there are 10 classes" }, function() partition.by_label(labels, 5, { labels_per_client = 11 }) end)
  t.fails({ "classes count from 0" }, function() partition.by_label({ -1 }, 1) end)
  t.fails({ "all must be of one kind" }, function() partition.by_id { "a", 2 } end)
  t.fails({ "integers from 0" }, function() partition.Partition { { 0, 1.5 } } end)
  t.fails({ "there is no client 3" }, function() partition.iid(4, 2):take(3, ms.ones { 4 }) end)
  t.fails({ "the tensor has 3 rows" }, function() partition.iid(4, 1):take(1, ms.ones { 3 }) end)
  t.fails({ "pictures" }, function() partition.iid(4, 2):with_rotation(10):take(1, ms.ones { 4, 2 }) end)
end)

t.finish()
