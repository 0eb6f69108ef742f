-- Unlearning: a model that can forget samples exactly. The data is divided into shards, each with a network of its own that is trained
-- slice by slice; to forget a sample, the network of its shard goes back to the state before the sample's slice and is trained on from
-- there (SISA, Bourtoule et al., 2021). The result is the one of a training that never had the sample, to the bit where the training
-- repeats itself.
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"
local cells = require "lunaria.nn.cell"
local class = require "lunaria.nn.class"
local common = require "lunaria.armour.common"

local ops = ms.ops
local fail, check, describe = arguments.fail, arguments.check, arguments.describe

local SISA = class.define(nil, "SISA", "make, train, shards=5, slices=5, seed=0",
  [[Networks that can forget: shards of the data with a network each, trained slice by slice. make(seed): gives a new network, the same one
for the same seed. train(network, x, y, seed): trains a network on the samples x, y, which are all slices so far. shards, slices: into how
many parts the data and each of them are divided, at random by seed. Forgetting a sample costs the training of at most one shard.

  > make = function(seed) ms.set_seed(seed) return ms.nn.SequentialCell(ms.nn.Dense(2, 2)) end
  > train = function(net, x) net[1].bias:set_data(ms.ops.mean(x, 0)) end
  > sisa = ms.armour.privacy.unlearning.SISA(make, train, { shards = 2, slices = 2 })
  > sisa:fit(ms.ops.rand(12, 2), ms.ops.arange(12) % 2)
  > sisa:unlearn { 3, 5 } >= 1 --> true
  > sisa:predict(ms.ops.rand(4, 2)).shape --> (4, 2)]])
SISA._called = "ensemble"

function SISA:setup(a)
  for _, name in ipairs { "make", "train" } do
    if not arguments.is_callable(a[name]) then fail("SISA", ("%s must be a function, got %s"):format(name, describe(a[name]))) end
    self["_" .. name] = a[name]
  end
  for _, name in ipairs { "shards", "slices" } do self["_" .. name] = check.positive("SISA", name, a[name]) end
  self._seed = check.not_negative("SISA", "seed", a.seed)
end

-- The values of a network's parameters.
local function state_of(network)
  local state = {}
  for i, p in ipairs(network:get_parameters()) do state[i] = p:copy() end
  return state
end

-- Trains a shard from a slice on, which counts from 1.
local function train_from(self, shard, first)
  local network = self._make(self._seed + shard.number)
  if not cells.is_cell(network) then fail("SISA", "make must give a cell, got " .. describe(network)) end
  if first > 1 then
    for i, p in ipairs(network:get_parameters()) do p:set_data(shard.states[first - 1][i]) end
  end
  for slice = first, self._slices do
    local indices = {}
    for k = 1, slice do table.move(shard.slices[k], 1, #shard.slices[k], #indices + 1, indices) end
    if #indices > 0 then
      local at = ms.tensor(indices, ms.int64)
      network:set_train(true)
      self._train(network, ops.gather(self._x, at, 0), ops.gather(self._y, at, 0), self._seed + 1000003 * shard.number + slice)
    end
    shard.states[slice] = state_of(network)
  end
  network:set_train(false)
  shard.network = network
end

--- Divides the data and trains all shards. x: samples (N, ...). y: what belongs to them, (N, ...).
function SISA:fit(x, y)
  local where = "fit"
  common.images(where, x)
  if not ms.is_tensor(y) or y.ndim == 0 or y.shape[1] ~= x.shape[1] then
    fail(where, ("there are %d samples, and y is %s"):format(x.shape[1], describe(y)))
  end
  local n, parts = x.shape[1], self._shards * self._slices
  if n < parts then fail(where, ("%d samples can't be divided into %d shards of %d slices"):format(n, self._shards, self._slices)) end
  self._x, self._y, self._of, self._forgotten = x, y, {}, {}
  local order = common.generator(self._seed):permutation(n):tolist()
  self._parts = {}
  for s = 1, self._shards do
    local shard = { number = s, slices = {}, states = {} }
    for k = 1, self._slices do
      local part = (s - 1) * self._slices + k
      local slice = {}
      for i = (part - 1) * n // parts + 1, part * n // parts do
        slice[#slice + 1] = order[i]
        self._of[order[i]] = { shard, k }
      end
      shard.slices[k] = slice
    end
    self._parts[s] = shard
    train_from(self, shard, 1)
  end
end

local function expect_fitted(self, where)
  if not self._parts then fail(where, "nothing has been learnt yet", "sisa:fit(x, y)") end
end

--- Forgets samples: takes them out of the data and trains their shards again from the first slice that had one of them. indices: places of
--- samples in what fit got, from 0, as a list. Gives how many slices were trained again.
function SISA:unlearn(indices)
  local where = "unlearn"
  expect_fitted(self, where)
  if type(indices) ~= "table" or getmetatable(indices) ~= nil or #indices == 0 then
    fail(where, "indices must be a list of places of samples, from 0, got " .. describe(indices))
  end
  for _, index in ipairs(indices) do
    if math.type(index) ~= "integer" or not self._of[index] then
      fail(where, ("there is no sample %s: they count from 0 to %d"):format(describe(index), self._x.shape[1] - 1))
    end
    if self._forgotten[index] then fail(where, ("sample %d is forgotten already"):format(index)) end
  end
  local first = {}
  for _, index in ipairs(indices) do
    local shard, k = table.unpack(self._of[index])
    if not self._forgotten[index] then
      self._forgotten[index] = true
      local slice = shard.slices[k]
      for i, other in ipairs(slice) do
        if other == index then
          table.remove(slice, i)
          break
        end
      end
    end
    first[shard] = math.min(first[shard] or k, k)
  end
  local trained = 0
  for _, shard in ipairs(self._parts) do
    if first[shard] then
      train_from(self, shard, first[shard])
      trained = trained + self._slices - first[shard] + 1
    end
  end
  return trained
end

--- What the networks of all shards give on average: of logits (N, classes) the mean of their probabilities.
function SISA:predict(x)
  expect_fitted(self, "predict")
  local sum
  for _, shard in ipairs(self._parts) do
    local p = ops.softmax(shard.network(x), 1)
    sum = sum and sum + p or p
  end
  return sum / self._shards
end

--- The networks of the shards, a list.
function SISA:networks()
  expect_fitted(self, "networks")
  local list = {}
  for i, shard in ipairs(self._parts) do list[i] = shard.network end
  return list
end

return { SISA = SISA }
