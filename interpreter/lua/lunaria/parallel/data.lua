-- Data parallel training: every rank has the network and computes the gradients of its rows; what is done with them is done with the
-- gradients of all. The rows of a batch are dealt out as cards are: row j goes to rank j mod n, as the samplers of data sets do.
--
-- With a fixed number of shards a batch is dealt out to the shards, row j to shard j mod L, and the shards to the ranks. A shard's
-- gradients, its random numbers and its statistics depend on its number alone, and sums over shards are taken in pairs by their numbers
-- (core/parallel/gradients.h): the same bits for 1, 2, 4 ... L ranks.
local core = require "lunaria.gradients"
local jit = require "lunaria.jit"
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"

local ops = ms.ops
local fail, describe = arguments.fail, arguments.describe

local M = {}

-- Buckets are chosen by measured times after so many steps; before that, and without times, they have this size.
local settles_after, megabytes = 4, 25
-- Calls for nothing before the first that counts: in graph mode a function is compiled then.
local rehearsals = 6

-- Another seed for each number, far from all others: a round of splitmix64.
local function seed_of(seed, number)
  local z = seed + (number + 1) * -7046029254386353131
  z = (z ~ (z >> 30)) * -4658895280553007687
  z = (z ~ (z >> 27)) * -7723592293110705685
  return (z ~ (z >> 31)) & math.maxinteger
end

local function backwards(count, k)
  local result = 0
  while count > 1 do
    count, result, k = count // 2, result * 2 + k % 2, k // 2
  end
  return result
end

-- Every `count`-th row from `first` on, dense.
local function rows(where, x, first, count)
  if count == 1 then return x end
  if x.shape[1] % count ~= 0 then
    fail(where, ("a batch of %d rows cannot be divided into %d equal parts"):format(x.shape[1], count),
      "a data set leaves out what is less than a batch: dataset:batch(n, { drop_remainder = true })")
  end
  return core.rows(x[{ ms.slice(first, nil, count) }])
end

local function dealt(where, first, count, ...)
  local inputs = table.pack(...)
  for i = 1, inputs.n do
    local x = inputs[i]
    if ms.is_tensor(x) and x.ndim > 0 then inputs[i] = rows(where, x, first, count) end
  end
  return table.unpack(inputs, 1, inputs.n)
end

-- This rank's rows of what a step got.
local function own_rows(where, plan, ...)
  if plan.whole_batch then return dealt(where, plan.rank, plan.ranks, ...) end
  if not plan.cuts then return ... end
  local inputs = table.pack(...)
  if #plan.cuts ~= inputs.n then
    fail(where, ("dataset_strategy has the cuts of %d inputs, got %d"):format(#plan.cuts, inputs.n))
  end
  for i = 1, inputs.n do
    if plan.cuts[i][1] > 1 then inputs[i] = rows(where, inputs[i], plan.rank, plan.ranks) end
  end
  return table.unpack(inputs, 1, inputs.n)
end

-- The running statistics of normalisations, which a forward pass moves.
local function running_values(network)
  local list = {}
  for _, cell in network:cells_and_names() do
    for _, key in ipairs { "moving_mean", "moving_variance" } do
      if ms.is_parameter(cell[key]) then list[#list + 1] = cell[key] end
    end
  end
  return list
end
-- What does not go with gradients that are combined by a step. Statistics over the ranks are others for each number of ranks; where an
-- operator has laid tensors out on the ranks, its gradients are those of all ranks already.
local function check_network(where, plan, network)
  local name = require "lunaria.parallel.strategies"(network)
  if name and plan.ranks > 1 then
    fail(where, ("%s has a strategy, which goes with the parallel_mode 'semi_auto_parallel', not with 'data_parallel'"):format(name))
  end
  for name, cell in network:cells_and_names() do -- luacheck: ignore 421
    if plan.ranks > 1 and cell.divided_params and #cell:divided_params() > 0 then
      fail(where, ("%s has parameters that differ from rank to rank, which 'data_parallel' would combine"):format(
        name == "" and "the network" or name),
        "leave parallel_mode out, and combine the gradients of the other parameters by nn.DistributedGradReducer")
    end
  end
  if plan.shards == 0 then return end
  for name, cell in network:cells_and_names() do -- luacheck: ignore 421
    if cell.together then fail(where, ("logical_shards does not go with SyncBatchNorm, which %s is"):format(name)) end
  end
end

local function copies(list)
  local result = {}
  for i = 1, #list do result[i] = list[i]:copy() end
  return result
end

--- The names of parameters; other tensors are "value 0" and so on.
function M.names_of(list)
  local names = {}
  for i, value in ipairs(list) do names[i] = ms.is_parameter(value) and value.name or ("value %d"):format(i - 1) end
  return names
end

-- The ends of the buckets, which the settings count by parameters from 0 and the exchange by gradients from the last one on.
local function ends_of(buckets, count)
  if buckets.each then
    local all = {}
    for i = 1, count do all[i] = i end
    return all
  end
  if not buckets.ends then return nil end
  local list = {}
  for i = #buckets.ends, 1, -1 do
    local place = count - 1 - buckets.ends[i]
    if place > 0 and place < count then list[#list + 1] = place end
  end
  list[#list + 1] = count
  return list
end

--- What combines gradients of these parameters over the ranks: an object with give(gradients) and take(). plan: that of
--- settings.of_training(). names: of the parameters, for messages. factor: what results are multiplied by.
function M.exchange(plan, parameters, names, factor)
  local count, likes, backward_names = #parameters, {}, {}
  -- The backward pass has the gradients of the last layers first.
  for i = 1, count do likes[i], backward_names[i] = parameters[count + 1 - i], names[count + 1 - i] end
  local share = type(plan.compression) == "table" and plan.compression.top_k
  local packing = share and "top_k" or plan.compression
  if packing == "none" and plan.half_messages then
    packing = "fp16"
    for i = 1, count do
      if likes[i].dtype == ms.bfloat16 then packing = "bf16" end
      if likes[i].dtype == ms.float32 or likes[i].dtype == ms.float64 then packing = "none" break end
    end
  end
  local handle = core.exchange(likes, backward_names, {
    combination = plan.shards > 0 and "tree" or plan.reduction, packing = packing, fraction = share or nil,
    shards = plan.shards > 0 and plan.shards // plan.ranks or 1, factor = factor, ends = ends_of(plan.buckets, count),
    most_bytes = (plan.buckets.most_megabytes or megabytes) * 1048576, settles_after = plan.buckets.automatic and settles_after or 0,
  })
  local exchange = { handle = handle, number = core.number(handle) }
  function exchange.give(gradients)
    for i = 1, count do core.give(handle, i, gradients[count + 1 - i]) end
  end
  function exchange.take()
    local results = {}
    for i = 1, count do results[count + 1 - i] = core.take(handle, i) end
    return results
  end
  return exchange
end

--- Has all ranks begin with the same values: those of rank 0 where the settings say so, else it is an error if they differ.
function M.agree(where, plan, values)
  if plan.ranks == 1 or #values == 0 then return end
  if plan.broadcast then return core.share(values) end
  local place, rank = core.difference(values)
  if not place then return end
  local name = ms.is_parameter(values[place]) and values[place].name or tostring(place)
  fail(where, ("%s is not the same on rank %d as on rank 0"):format(name, rank),
    "ms.set_seed before the network is made, or parameter_broadcast = true in ms.set_auto_parallel_context")
end

-- Runs f(number of the shard, how many this rank has, ...) for this rank's shards in turn, in the order in which sums are taken in pairs,
-- each with random numbers of its own. Without shards there is one, that of the rank.
local function each_shard(plan, f, ...)
  local state = ms.get_rng_state()
  local seed, counter, drawn = state[0]:item(), state[1]:item(), 0
  local own, threads = 1, ms.get_num_threads()
  if plan.shards > 0 then
    -- Some sums, as those over the pixels of a picture, are taken in parts by as many threads as there are.
    own = plan.shards // plan.ranks
    ms.set_num_threads(1)
  end
  for k = 0, own - 1 do
    local shard = plan.rank + plan.ranks * backwards(own, k)
    ms.set_rng_state(ms.tensor({ seed_of(seed, shard), counter }, ms.int64))
    f(shard, own, ...)
    drawn = math.max(drawn, ms.get_rng_state()[1]:item() - counter)
  end
  ms.set_num_threads(threads)
  ms.set_rng_state(ms.tensor({ seed, counter + drawn }, ms.int64))
end

-- Floating values among the results of a forward pass, and their places.
local function floats(value)
  local list = type(value) == "table" and not ms.is_tensor(value) and value or { value }
  local tensors, places = {}, {}
  for i, item in ipairs(list) do
    if ms.is_tensor(item) and item:is_floating_point() then
      tensors[#tensors + 1], places[#places + 1] = item, i
    end
  end
  return tensors, places
end

-- The values with others at the places.
local function replaced(value, places, others)
  if type(value) ~= "table" or ms.is_tensor(value) then return others[1] or value end
  local result = table.move(value, 1, #value, 1, {})
  for k, i in ipairs(places) do result[i] = others[k] end
  return result
end

-- In graph mode the first calls of a function are run by its text and later ones compiled, which may round otherwise: with a fixed
-- number of shards all that count have to be alike.
local function rehearse(where, plan, gradient, exchange, running, ...)
  if plan.shards == 0 or not jit.mode.graph then return end
  local state, before, threads = ms.get_rng_state(), copies(running), ms.get_num_threads()
  if exchange then core.deaf(exchange.handle, true) end
  ms.set_num_threads(1)
  for _ = 1, rehearsals do gradient(dealt(where, 0, plan.shards // plan.ranks, ...)) end
  if exchange then core.deaf(exchange.handle, false) end
  ms.set_num_threads(threads)
  for i = 1, #running do running[i]:assign(before[i]) end
  ms.set_rng_state(state)
end

-- gradient(...), which hands each gradient to the exchange and gives the values alone. In graph mode they are one program, in which a
-- message leaves as soon as its gradients are there. noted.step: the function for which ms.jit_report tells of it.
local function giving(gradient, exchange, noted)
  local give, number = ops.give_gradient, exchange.number
  local function step(...)
    local value, gradients = gradient(...)
    local count = #gradients
    for i = count, 1, -1 do give(gradients[i], number, count - i) end
    return value
  end
  local compiled
  return function(...)
    if not jit.mode.graph or jit.inside() then return step(...) end
    if not compiled then
      compiled = ms.jit(step)
      jit.note_compiled(noted.step, compiled)
    end
    return compiled(...)
  end
end

--- A step of all ranks: f(inputs...) gives the mean of the values over the ranks, and the gradients as the settings combine them.
--- gradient(inputs...) gives values and gradients of some rows. where: the cell that trains, for messages. network: the cell that is
--- trained. parameters: those whose gradients are combined. agreed: what is the same on all ranks at the beginning. finish(gradients,
--- combine), where there is one, gives the gradients of the step in place of the combined ones. names: of the parameters. The second
--- result has as its field step the function for which ms.jit_report tells of what is compiled.
function M.combined_step(where, plan, gradient, network, parameters, agreed, finish, names)
  check_network(where, plan, network)
  local parts = plan.shards > 0 and plan.shards or plan.ranks
  local running = plan.shards > 0 and running_values(network) or {}
  local exchange, of_values, begun
  if #parameters > 0 then
    exchange = M.exchange(plan, parameters, names or M.names_of(parameters), plan.mean and plan.reduction ~= "adasum" and 1 / parts or 1)
  end
  local noted = {}
  if not finish then gradient = giving(gradient, exchange, noted) end
  local function combine(gradients)
    exchange.give(gradients)
    return exchange.take()
  end
  -- Values and statistics of a shard, on their way to their means.
  local function give_values(value)
    local tensors, places = floats(value)
    local count = #tensors
    table.move(running, 1, #running, count + 1, tensors)
    if #tensors == 0 then return places end
    if not of_values then
      local plain = { ranks = plan.ranks, shards = plan.shards, reduction = "sum", compression = "none", buckets = {} }
      of_values = M.exchange(plain, tensors, M.names_of(tensors), 1 / parts)
    end
    of_values.give(tensors)
    return places
  end
  local function step(...)
    local before, value, places, gradients = copies(running), nil, nil, nil
    each_shard(plan, function(shard, count, ...)
      for i = 1, #running do running[i]:assign(before[i]) end
      value, gradients = gradient(dealt(where, (shard - plan.rank) // plan.ranks, count, ...))
      places = give_values(value)
    end, ...)
    if of_values then
      local means = of_values.take()
      for i = 1, #running do running[i]:assign(means[#places + i]) end
      value = replaced(value, places, means)
    end
    if finish then return value, finish(gradients, combine) end
    return value, exchange.take()
  end
  noted.step = function(...)
    if begun then return step(own_rows(where, plan, ...)) end
    begun = true
    M.agree(where, plan, agreed)
    rehearse(where, plan, gradient, not finish and exchange, running, own_rows(where, plan, ...))
    return step(own_rows(where, plan, ...))
  end
  return noted.step, noted
end

--- What ms.value_and_grad(f, nil, parameters, has_aux) is, for the batches of all ranks. states: what else must be the same on all ranks
--- at the beginning. Where `delayed` is true gradients are left as they are, and the second result combines them later.
function M.value_and_grad(where, plan, f, network, parameters, has_aux, states, delayed)
  local gradient = ms.value_and_grad(f, nil, parameters, has_aux)
  local agreed = table.move(states, 1, #states, #parameters + 1, table.move(parameters, 1, #parameters, 1, {}))
  local combined
  local step = M.combined_step(where, plan, gradient, network, parameters, agreed, delayed and function(gradients, combine)
    combined = combine
    return gradients
  end)
  return step, function(gradients) return combined(gradients) end
end

--- The reducer of gradients that a program calls itself, and parameters that it has. mean, degree: see nn.DistributedGradReducer.
function M.reducer(where, parameters, mean, degree)
  local plan = require "lunaria.parallel.settings".of_training()
    or { ranks = core.ranks(), rank = core.rank(), shards = 0, reduction = "sum", compression = "none", buckets = { automatic = true } }
  if plan.shards > 0 then
    fail(where, "logical_shards divides batches, of which nn.TrainOneStepCell and Model know: gradients that are there cannot be divided")
  end
  local exchange
  return function(gradients)
    for i, gradient in ipairs(gradients) do
      if not ms.is_tensor(gradient) then fail(where, ("gradient %d must be a tensor, got %s"):format(i, describe(gradient))) end
    end
    exchange = exchange or M.exchange(plan, parameters, M.names_of(parameters), mean and plan.reduction ~= "adasum" and 1 / degree or 1)
    exchange.give(gradients)
    return exchange.take()
  end
end

return M
