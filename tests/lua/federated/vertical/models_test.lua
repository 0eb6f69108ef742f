-- Logistic regression and boosted trees over vertical parties. About 3 seconds.
-- Eager mode only: sums of integers and trees of Lua tables; nothing is compiled.
package.path = "tests/lua/?.lua;" .. package.path
local t = require "harness"
local ms = require "lunaria"
local V, ops = ms.federated.vertical, ms.ops

local function part(x, from, to) return x[{ ms.slice(), ms.slice(from, to) }] end

local function data(n, columns)
  ms.set_seed(7)
  local x = ms.randn(n, columns):astype(ms.float64)
  local z = x[{ ms.slice(), 0 }] - 1.5 * x[{ ms.slice(), columns - 1 }] + x[{ ms.slice(), 1 }] * x[{ ms.slice(), 2 }]
  return x, ops.greater(z + 0.3 * ms.randn(n), 0):astype(ms.int32), z
end

-- The trees as text, with the columns of followers numbered behind those of the leader.
local function text_of(trees, splits, first)
  local function text(node)
    if node.value then return ("%.17g"):format(node.value) end
    local split = splits[node.party or "leader"][node.split]
    return ("(%d %.17g %s %s)"):format(split.column + first[node.party or "leader"], split.threshold, text(node.left), text(node.right))
  end
  local list = {}
  for i, tree in ipairs(trees) do list[i] = text(tree) end
  return list
end

t.test("trees of a leader and two followers are those of one party with all columns, to the bit", function()
  local x, y, z = data(600, 7)
  -- Columns with few values, and one value only.
  x = ops.concat({ x, ops.round(part(x, 0, 1)), ops.zeros({ 600, 1 }, ms.float64) }, 1)
  for _, case in ipairs { { "binary", y, 32 }, { "regression", z, 9 } } do
    local options = { rounds = 4, depth = 3, bins = case[3], objective = case[1], gamma = 0.01 }
    local whole = V.BoostedTrees(options)
    whole:fit(x, case[2])
    local expected = whole:predict(x)
    local leader = V.BoostedTrees(options)
    options.role = "follower"
    local one, two = V.BoostedTrees(options), V.BoostedTrees(options)
    local got = V.run_parties {
      leader = function(l)
        leader:fit(part(x, 0, 3), case[2], l)
        return leader:predict(part(x, 0, 3), l)
      end,
      f1 = function(l) one:fit(part(x, 3, 4), nil, l) one:predict(part(x, 3, 4), l) end,
      f2 = function(l) two:fit(part(x, 4, 9), nil, l) two:predict(part(x, 4, 9), l) end,
      dealer = function(l)
        V.deal(l)
        -- Its links stay open for the others.
      end,
    }.leader
    t.equal(got, expected)
    t.equal(text_of(leader.trees, { leader = leader.splits, f1 = one.splits, f2 = two.splits }, { leader = 0, f1 = 3, f2 = 4 }),
      text_of(whole.trees, { leader = whole.splits }, { leader = 0 }))
    assert(#one.splits + #two.splits > 0)
  end
end)

t.test("a leader without columns grows trees from those of its followers", function()
  local x, y = data(200, 4)
  local whole = V.BoostedTrees { rounds = 2 }
  whole:fit(x, y)
  local leader, one = V.BoostedTrees { rounds = 2 }, V.BoostedTrees { role = "follower" }
  local got = V.run_parties {
    leader = function(l) leader:fit(nil, y, l) return leader:predict(nil, l) end,
    f = function(l) one:fit(x, nil, l) one:predict(x, l) end,
    dealer = V.deal,
  }.leader
  t.equal(got, whole:predict(x))
end)

t.test("both halves of the trees are saved and loaded", function()
  local x, y = data(300, 4)
  local leader, one = V.BoostedTrees { rounds = 3 }, V.BoostedTrees { role = "follower" }
  V.run_parties {
    leader = function(l) leader:fit(part(x, 0, 2), y, l) end,
    f = function(l) one:fit(part(x, 2, 4), nil, l) end,
    dealer = V.deal,
  }
  local function predicted(a, b)
    return V.run_parties {
      leader = function(l) return a:predict(part(x, 0, 2), l) end,
      f = function(l) b:predict(part(x, 2, 4), l) end,
    }.leader
  end
  local paths = { os.tmpname(), os.tmpname() }
  leader:save(paths[1])
  one:save(paths[2])
  t.equal(predicted(V.BoostedTrees.load(paths[1]), V.BoostedTrees.load(paths[2])), predicted(leader, one))
  for _, bad in ipairs { "{}", "", "[1]", '{"trees": [{}], "splits": []}', '{"trees": [], "splits": [{}]}' } do
    local file = io.open(paths[1], "w")
    file:write(bad)
    file:close()
    t.fails({ "load", paths[1] }, V.BoostedTrees.load, paths[1])
  end
  for _, path in ipairs(paths) do os.remove(path) end
end)

t.test("trees learn", function()
  local x, y = data(1000, 5)
  local trees = V.BoostedTrees { rounds = 20 }
  trees:fit(x[{ ms.slice(0, 700) }], y[{ ms.slice(0, 700) }])
  local right = ops.equal(ops.greater(trees:predict(x[{ ms.slice(700, 1000) }]), 0.5):astype(ms.int32), y[{ ms.slice(700, 1000) }])
  assert(ops.mean(right:astype(ms.float32)):item() > 0.85)
end)

-- Runs parties and gives all messages that each got, by receiver.
local function transcripts(parties)
  local seen = {}
  local watched = {}
  for name, f in pairs(parties) do
    watched[name] = function(links)
      for peer, link in pairs(links) do
        local channel = link._channel
        local own = setmetatable({}, { __index = channel })
        function own:send(bytes)
          seen[peer] = seen[peer] or {}
          table.insert(seen[peer], bytes)
          channel:send(bytes)
        end
        link._channel = own
      end
      return f(links)
    end
  end
  V.run_parties(watched)
  return seen
end

local core = require "lunaria.vertical"

-- All masked integers of messages, as a tensor of their bytes.
local function masked_bytes(messages)
  local list = {}
  for _, bytes in ipairs(messages) do
    local _, values = core.unpack(bytes, "test")
    if values.masked then list[#list + 1] = values.masked:reshape { -1 } end
  end
  return ops.concat(list, 0)
end

t.test("a follower of trees sees numbers that tell neither labels nor gradients", function()
  local x, y = data(400, 4)
  local function seen_by_follower(labels)
    local leader, one = V.BoostedTrees { rounds = 1, depth = 1 }, V.BoostedTrees { role = "follower" }
    return transcripts {
      leader = function(l) leader:fit(part(x, 0, 2), labels, l) end,
      f = function(l) one:fit(part(x, 2, 4), nil, l) end,
      dealer = V.deal,
    }.f
  end
  local seen = seen_by_follower(y)
  local words = masked_bytes(seen)
  -- Bits are ones and zeros alike, and the numbers have nothing in common with the gradients of the labels.
  local n, ones = words.size * 63, 0
  for bit = 0, 62 do ones = ones + ops.sum(ops.bitwise_and(ops.bitwise_right_shift(words, bit), 1)):item() end
  assert(math.abs(ones - n / 2) / math.sqrt(n / 4) < 4.5, ones / n)
  local g = (y:astype(ms.float64) - 0.5) / 0.5
  local told = words[{ ms.slice(0, 400) }]:astype(ms.float64)
  local correlation = ops.mean(told * g):item() / ops.sqrt(ops.mean(told * told)):item()
  assert(math.abs(correlation) < 4.5 / 20, correlation)
  -- Labels that give the same split tell the same: other messages have the same sizes.
  local again = seen_by_follower(1 - y)
  t.equal(#again, #seen)
  for i, bytes in ipairs(seen) do t.equal(#again[i], #bytes) end
end)

t.test("logistic regression over parties is that of one party, but for the rounding of what is shared", function()
  local x, y = data(500, 6)
  local options = { epochs = 15, batch_size = 64, learning_rate = 0.5, weight_decay = 0.01 }
  local whole = V.LogisticRegression(options)
  whole:fit(x, y)
  local leader, one, two = V.LogisticRegression(options), V.LogisticRegression { role = "follower" }, V.LogisticRegression {
    role = "follower" }
  local got = V.run_parties {
    leader = function(l)
      leader:fit(part(x, 0, 1), y, l)
      return leader:predict(part(x, 0, 1), l)
    end,
    f1 = function(l) one:fit(part(x, 1, 3), nil, l) one:predict(part(x, 1, 3), l) end,
    f2 = function(l) two:fit(part(x, 3, 6), nil, l) two:predict(part(x, 3, 6), l) end,
    dealer = V.deal,
  }.leader
  t.near(ops.concat({ leader.weights, one.weights, two.weights }, 0), whole.weights, 1e-6)
  t.near(leader.bias, whole.bias, 1e-6)
  t.near(got, whole:predict(x), 1e-6)
  assert(ops.mean(ops.equal(ops.greater(got, 0.5):astype(ms.int32), y):astype(ms.float32)):item() > 0.75)
end)

t.test("with two followers the leader does not see the scores of one", function()
  local x, y = data(100, 4)
  local leader, one, two = V.LogisticRegression { epochs = 1, batch_size = 100 }, V.LogisticRegression { role = "follower" },
    V.LogisticRegression { role = "follower" }
  local seen = transcripts {
    leader = function(l) leader:fit(part(x, 0, 1), y, l) end,
    f1 = function(l) one:fit(part(x, 1, 2), nil, l) end,
    f2 = function(l) two:fit(part(x, 2, 4), nil, l) end,
    dealer = V.deal,
  }.leader
  local scores = {}
  for _, bytes in ipairs(seen) do
    local kind, values = core.unpack(bytes, "test")
    if kind == "scores" then scores[#scores + 1] = values.scores end
  end
  t.equal(#scores, 2)
  -- Weights are zeros at first: what is sent is the mask alone, large numbers whose sum is 0.
  assert(ops.min(ops.abs(scores[1]:astype(ms.float64))):item() > 1e12)
  t.equal(ops.max(ops.abs(core.sum(scores[1], scores[2]))):item(), 0)
end)

t.test("a dealer refuses what would use its numbers twice, and unknown parties", function()
  local function dealt(f) return V.run_parties { dealer = V.deal, leader = f, f = function() end } end
  t.fails({ "'product' is expected" }, function()
    dealt(function(l)
      l.dealer:send("end", {})
      error "'product' is expected"
    end)
  end)
  t.fails({ "party 'dealer'", "there is no link" }, dealt, function(l) l.dealer:send("matrix", { owner = "x", rows = 1, n = 1,
    number = 0 }) end)
  t.fails({ "party 'dealer'", "a matrix that is not known" }, dealt, function(l)
    l.dealer:send("product", { owner = "f", number = 0, first = 0, count = 1 })
  end)
  t.fails({ "party 'dealer'", "'first'", "an integer from 1 to 1" }, dealt, function(l)
    l.dealer:send("matrix", { owner = "f", rows = 1, n = 1, number = 0 })
    l.dealer:send("product", { owner = "f", number = 0, first = 0, count = 1 })
    l.dealer:send("product", { owner = "f", number = 0, first = 0, count = 1 })
  end)
  t.fails({ "which a dealer does not know" }, dealt, function(l) l.dealer:send("other", {}) end)
end)

t.test("settings and data are checked", function()
  local x, y = data(10, 3)
  t.fails({ "BoostedTrees", "bins must be from 2 to 256" }, V.BoostedTrees, { bins = 1 })
  t.fails({ "role must be one of 'leader', 'follower'" }, V.BoostedTrees, { role = "boss" })
  t.fails({ "there is no argument 'dept'", "did you mean 'depth'?" }, V.BoostedTrees, { dept = 2 })
  t.fails({ "labels must be 0 or 1" }, function() V.BoostedTrees():fit(x, y + 1) end)
  t.fails({ "nan or infinity" }, function() V.BoostedTrees():fit(x / 0, y) end)
  t.fails({ "the leader needs labels" }, function() V.BoostedTrees():fit(x) end)
  t.fails({ "there are no columns" }, function() V.BoostedTrees():fit(nil, y) end)
  t.fails({ "there are 10 rows of columns and 4 labels" }, function() V.BoostedTrees():fit(x, y[{ ms.slice(0, 4) }]) end)
  t.fails({ "there is no link to a party 'leader'" }, function() V.BoostedTrees { role = "follower" }:fit(x) end)
  t.fails({ "fit comes first" }, function() V.LogisticRegression():predict(x) end)
  t.fails({ "'f' has sent 9 as 'bins' where an integer from 8 to 8 is expected" }, V.run_parties, {
    leader = function(l) V.BoostedTrees { bins = 8 }:fit(x, y, l) end,
    f = function(l) V.BoostedTrees { role = "follower", bins = 9 }:fit(x, nil, l) end,
    dealer = V.deal,
  })
  t.fails({ "batch 3 has 2 rows for 3 columns", "batch_size" }, V.run_parties, {
    leader = function(l) V.LogisticRegression { batch_size = 4 }:fit(nil, y, l) end,
    f = function(l) V.LogisticRegression { role = "follower" }:fit(x, nil, l) end,
    dealer = V.deal,
  })
  t.fails({ "has no room in 64 bits", "scale the data" }, V.run_parties, {
    leader = function(l) V.LogisticRegression():fit(nil, y, l) end,
    f = function(l) V.LogisticRegression { role = "follower" }:fit(x * 1e14, nil, l) end,
    dealer = V.deal,
  })
end)

t.finish()
