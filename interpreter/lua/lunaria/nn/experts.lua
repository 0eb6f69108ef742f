-- A mixture of experts, whose experts are divided among the ranks of a group: rows of tokens travel to the ranks of their experts and
-- back. Which tokens an expert takes depends on the tokens of all ranks in their order, not on how many ranks hold them.
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"
local cells = require "lunaria.nn.cell"
local communication = require "lunaria.communication"
local init = require "lunaria.common.initializer"
local activation = require "lunaria.nn.activation"

local ops = ms.ops
local fail, check = arguments.fail, arguments.check
local layer, Cell = cells.layer, cells.Cell
local core = communication._core

local MixtureOfExperts = layer(Cell, "MixtureOfExperts",
  "hidden_size, ffn_size, experts, top_k=2, capacity_factor=1.25, activation=\"gelu\", group=nil, weight_init=nil, dtype=nil",
  [[Sends each token to its top_k experts, networks with a hidden layer of ffn_size, and gives the sum of their results weighted by the
softmax of a gate; and the loss that keeps the experts equally busy.

hidden_size: elements of a token, the last axis of the input; all other axes count tokens. experts: how many there are on all ranks
together; their number is a multiple of the group's ranks, each of which has as many. group: the name of the ranks' group (nil: all
ranks); each has tokens of its own, the same number. capacity_factor: an expert takes at most capacity_factor * top_k * tokens /
experts tokens, of all ranks: first those for which it is the first choice, in the order of ranks and rows; what it does not take adds
nothing to the result. activation: of the hidden layer. weight_init: how the weights start; nil: uniform within 1 / sqrt(inputs).

The result is the same for any number of ranks. The second one, the balance loss, is experts * sum(share of tokens * mean probability)
over the experts, 1 where they are equally busy; add about a hundredth of it to the loss. With several weights of the gate (top_k > 1)
they are divided by their sum. Gradients of the experts, which each rank has by itself, are those of the sum of all ranks' losses; the
gate's and those of other cells have yet to be summed: nn.DistributedGradReducer does so for the parameters that are not in
moe:divided_params(). The parallel_mode "data_parallel", whose ranks have equal parameters, is an error. (Shazeer et al., Outrageously
large neural networks, 2017; Fedus et al., Switch Transformers, 2021.)
  > moe = ms.nn.MixtureOfExperts(8, 16, 4)
  > y, balance = moe(ms.ones { 2, 3, 8 })
  > y.shape --> (2, 3, 8)
  > balance.shape --> ()]])

local function drawn(shape, inputs, how, dtype)
  return init.initializer(how or init.Uniform(1 / math.sqrt(inputs)), shape, dtype)
end

function MixtureOfExperts:setup(a)
  local where = "MixtureOfExperts"
  self.hidden_size = check.positive(where, "hidden_size", a.hidden_size)
  self.ffn_size = check.positive(where, "ffn_size", a.ffn_size)
  self.experts = check.positive(where, "experts", a.experts)
  self.top_k = check.positive(where, "top_k", a.top_k)
  self.capacity_factor = check.number_positive(where, "capacity_factor", a.capacity_factor)
  if self.top_k > self.experts then fail(where, ("top_k is %d, and there are %d experts"):format(self.top_k, self.experts)) end
  self.group = communication._group_name(where, a.group)
  self.ranks, self.rank = core.size(where, self.group), core.rank(where, self.group)
  if self.rank < 0 then fail(where, ("this rank is not in the group '%s'"):format(self.group)) end
  if self.experts % self.ranks ~= 0 then
    fail(where, ("%d experts cannot be divided among %d ranks"):format(self.experts, self.ranks),
      "take a number of experts that is a multiple of the ranks")
  end
  self.act = activation.get_activation(a.activation)
  local e, h, f, own = self.experts, self.hidden_size, self.ffn_size, self.experts // self.ranks
  -- All are drawn, so that they start as they do on one rank.
  local first = self.rank * own
  local function divided(shape, inputs, how, name)
    local all = drawn({ e, table.unpack(shape) }, inputs, how, a.dtype)
    return ms.Parameter(all[{ ms.slice(first, first + own) }]:copy(), name)
  end
  self.gate = ms.Parameter(drawn({ h, e }, h, a.weight_init, a.dtype), "gate")
  self.weight1 = divided({ h, f }, h, a.weight_init, "weight1")
  self.bias1 = divided({ 1, f }, h, "zeros", "bias1")
  self.weight2 = divided({ f, h }, f, a.weight_init, "weight2")
  self.bias2 = divided({ 1, h }, f, "zeros", "bias2")
end

--- The parameters of this rank's experts, where other ranks have others.
function MixtureOfExperts:divided_params()
  if self.ranks == 1 then return {} end
  return { self.weight1, self.bias1, self.weight2, self.bias2 }
end

-- The tokens that an expert takes at most.
local function capacity(self, tokens)
  return math.max(1, math.ceil(self.capacity_factor * self.top_k * tokens / self.experts))
end

-- Where the requests of this rank's tokens for experts stand in the experts' queues: choice after choice, and in each of these rank after
-- rank. chosen: (top_k, tokens) experts. Gives the places (top_k * tokens), the counts (ranks, top_k, experts) of all requests, and what
-- stands before those of each rank and choice.
local function queue(self, chosen)
  local k, t, e, n = self.top_k, chosen.shape[2], self.experts, self.ranks
  local asks = ops.one_hot(chosen, e):astype(ms.int32) -- (k, t, e)
  local counts = ops.all_gather(asks:sum(1):reshape { 1, k, e }:astype(ms.int32), 0, nil, self.group)
  local by_choice = counts:transpose(1, 0, 2):reshape { k * n, e }
  local before = (ops.cumsum(by_choice, 0) - by_choice):reshape { k, n, e }
  local own = ops.cumsum(asks, 1) - asks + before[{ ms.slice(), ms.slice(self.rank, self.rank + 1) }]
  return (own * asks):sum(-1):reshape { k * t }:astype(ms.int32), counts, before
end

-- How many rows this rank sends to each, and gets from each.
local function sizes(self, counts, before, most)
  local own, sends, receives = self.experts // self.ranks, {}, {}
  local taken = ops.clamp(ops.minimum(counts, most - before:transpose(1, 0, 2)), 0):sum(1):tolist()
  for rank = 1, self.ranks do
    sends[rank], receives[rank] = 0, 0
    for i = 1, own do
      sends[rank] = sends[rank] + taken[self.rank + 1][(rank - 1) * own + i]
      receives[rank] = receives[rank] + taken[rank][self.rank * own + i]
    end
  end
  return sends, receives
end

local function balance(self, probabilities, tokens, counts)
  local share = counts[{ ms.slice(), 0 }]:sum(0):astype(probabilities.dtype) / tokens
  local mean = ops.all_reduce(probabilities:sum(0), "sum", self.group) / tokens
  return self.experts * (share * mean):sum()
end

function MixtureOfExperts:construct(x)
  local h, k, e, n = self.hidden_size, self.top_k, self.experts, self.ranks
  local own = e // n
  local tokens = x:reshape { -1, h }
  local t = tokens.shape[1]
  local probabilities = ops.softmax(ops.matmul(tokens, self.gate):astype(ms.float32), -1)
  local weights, chosen = ops.topk(probabilities, k)
  if k > 1 then weights = weights / weights:sum(-1, true) end
  chosen = ms.stop_gradient(chosen):t():astype(ms.int32)
  local places, counts, before = queue(self, chosen)
  local most = capacity(self, t * n)
  local sends, receives = sizes(self, counts, before, most)
  local sent = 0
  for rank = 1, n do sent = sent + sends[rank] end
  -- The requests that are served, expert after expert.
  local expert = chosen:reshape { k * t }
  local late = ops.greater_equal(places, most):astype(ms.int32) * e
  local order = ops.argsort(expert + late, -1, false, { stable = true })[{ ms.slice(0, sent) }]
  local slots = ops.gather(expert % own * most + places, order, 0)
  local token = order % t
  local rows = ops.all_to_all_v(ops.gather(tokens, token, 0), sends, receives, self.group)
  slots = ops.all_to_all_v(slots, sends, receives, self.group)
  local full = ops.index_add(ops.zeros({ own * most, h }, rows.dtype), slots, rows, 0):reshape { own, most, h }
  local hidden = self.act(ops.bmm(full, self.weight1) + self.bias1)
  local results = (ops.bmm(hidden, self.weight2) + self.bias2):reshape { own * most, h }
  local back = ops.all_to_all_v(ops.gather(results, slots, 0), receives, sends, self.group)
  local factor = ops.gather(weights:t():reshape { k * t }, order, 0):astype(back.dtype)
  local y = ops.index_add(ops.zeros({ t, h }, back.dtype), token, back * factor:reshape { -1, 1 }, 0)
  return y:reshape(x.shape), balance(self, probabilities, t * n, counts)
end

function MixtureOfExperts:extend_repr()
  return ("hidden_size=%d, ffn_size=%d, experts=%d, top_k=%d, ranks=%d"):format(self.hidden_size, self.ffn_size, self.experts, self.top_k,
    self.ranks)
end

return { MixtureOfExperts = MixtureOfExperts }
