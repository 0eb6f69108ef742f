-- ms.mint.distributed: ranks and groups by PyTorch's names. Functions write into the tensors that they are given.
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"
local communication = require "lunaria.communication"

local fail, describe, named = arguments.fail, arguments.describe, arguments.named
local core, ops = communication._core, ms.ops
local group_name, place_in, sizes_of = communication._group_name, communication._place_in, communication._sizes_of

local M = { P2POp = communication.comm_func.P2POp, ReduceOp = { SUM = "sum", MAX = "max", MIN = "min", PROD = "prod", AVG = "avg" } }

--- Connects this process with the other ranks of its job. world_size and rank, where they are given, are checked; the rest comes from
--- the program that started the processes.
---     > ms.mint.distributed.init_process_group()
function M.init_process_group(backend, world_size, rank)
  backend, world_size, rank = named("init_process_group", { "backend", "world_size", "rank" }, backend, world_size, rank)
  communication.init(backend)
  if world_size ~= nil and world_size ~= M.get_world_size() then
    fail("init_process_group", ("world_size is %s, and there are %d ranks"):format(describe(world_size), M.get_world_size()),
      "lunaria launch -n N starts N of them")
  end
  if rank ~= nil and rank ~= communication.get_rank() then
    fail("init_process_group", ("rank is %s, and this is rank %d"):format(describe(rank), communication.get_rank()))
  end
end

--- Forgets a group; without a name, all groups that were made.
function M.destroy_process_group(group)
  group = named("destroy_process_group", { "group" }, group)
  if group == nil then return communication.release() end
  communication.destroy_group(group)
end

--- Ranks can always be asked; a process alone is a group of one.
---     > ms.mint.distributed.is_available() --> true
function M.is_available() return true end
--- Whether the ranks are connected: they are, when the program starts.
---     > ms.mint.distributed.is_initialized() --> true
function M.is_initialized() return true end
--- The name of the engine that connects the ranks.
---     > ms.mint.distributed.get_backend() --> one rank
function M.get_backend(group)
  group = named("get_backend", { "group" }, group)
  core.size("get_backend", group_name("get_backend", group))
  return core.engine()
end
--- The number of this rank in a group (default: of all ranks); -1 where it is not in it.
---     > ms.mint.distributed.get_rank() --> 0
function M.get_rank(group)
  group = named("get_rank", { "group" }, group)
  return core.rank("get_rank", group_name("get_rank", group))
end
--- The number of ranks of a group (default: of all).
---     > ms.mint.distributed.get_world_size() --> 1
function M.get_world_size(group)
  group = named("get_world_size", { "group" }, group)
  return core.size("get_world_size", group_name("get_world_size", group))
end
--- The number among all ranks of a member of a group.
---     > ms.mint.distributed.get_global_rank("hccl_world_group", 0) --> 0
function M.get_global_rank(group, group_rank) return communication.get_world_rank_from_group_rank(group, group_rank) end
--- The number in a group of one of all ranks.
---     > ms.mint.distributed.get_group_rank("hccl_world_group", 0) --> 0
function M.get_group_rank(group, global_rank) return communication.get_group_rank_from_world_rank(global_rank, group) end
--- The ranks of a group as numbers among all.
---     > #ms.mint.distributed.get_process_group_ranks() --> 1
function M.get_process_group_ranks(group) return communication.get_process_group_ranks(group) end

--- Makes a group of some ranks (default: all) and gives its name, which follows from the ranks unless one is given.
---     > ms.mint.distributed.new_group { 0 } --> ranks_0
function M.new_group(ranks, group)
  group = named("new_group", { "group" }, group)
  ranks = ranks or communication.get_process_group_ranks()
  group = group or "ranks_" .. table.concat(ranks, "_")
  communication.create_group(group, ranks)
  return group
end

-- Gives `target` the elements of what was asked for, at once or by the handle.
local Handle = {}
Handle.__index, Handle.__name, Handle._called, Handle._name = Handle, "handle", "handle", "request"
--- Waits until the request is done; then the tensors have what came.
function Handle:wait()
  self._request:wait()
  if self._finish then self._finish() end
  self._finish = nil
end
--- Whether what was asked for has come.
function Handle:is_completed() return self._request:is_completed() end

local function finished(handle, finish)
  if not handle then finish() return nil end
  return setmetatable({ _request = handle, _finish = finish }, Handle)
end

local function into(target, result, handle)
  return finished(handle, function() ops.assign(target, result) end)
end

--- Gives the tensor the sum ("max", "min", "prod", "avg") of the tensors of all ranks of a group; a handle if async_op is true.
function M.all_reduce(tensor, op, group, async_op)
  op, group, async_op = named("all_reduce", { "op", "group", "async_op" }, op, group, async_op)
  return into(tensor, communication._asked("all_reduce", async_op, ops.all_reduce, tensor, op, group_name("all_reduce", group)))
end

--- Writes the tensors of all ranks of a group, one after the other along axis 0, into output_tensor; a handle if async_op is true.
function M.all_gather_into_tensor(output_tensor, input_tensor, group, async_op)
  local where = "all_gather_into_tensor"
  group, async_op = named(where, { "group", "async_op" }, group, async_op)
  return into(output_tensor, communication._asked(where, async_op, ops.all_gather, input_tensor, 0, nil, group_name(where, group)))
end

--- The same for tensors of different sizes, which output_split_sizes says.
function M.all_gather_into_tensor_uneven(output, input, output_split_sizes, group, async_op)
  local where = "all_gather_into_tensor_uneven"
  output_split_sizes, group, async_op = named(where, { "output_split_sizes", "group", "async_op" }, output_split_sizes, group, async_op)
  return into(output, communication._asked(where, async_op, ops.all_gather, input, 0, output_split_sizes, group_name(where, group)))
end

--- Gives the tensors of a list those of all ranks of a group; a handle if async_op is true.
function M.all_gather(tensor_list, tensor, group, async_op)
  group, async_op = named("all_gather", { "group", "async_op" }, group, async_op)
  local row = tensor:reshape { 1, -1 }
  local all, handle = communication._asked("all_gather", async_op, ops.all_gather, row, 0, nil, group_name("all_gather", group))
  return finished(handle, function()
    for i, target in ipairs(tensor_list) do ops.assign(target, all[i - 1]:reshape(target.shape)) end
  end)
end

--- Writes this rank's piece along axis 0 of the sum ("max" ...) of the tensors of all ranks into output; a handle if async_op is true.
function M.reduce_scatter_tensor(output, input, op, group, async_op)
  local where = "reduce_scatter_tensor"
  op, group, async_op = named(where, { "op", "group", "async_op" }, op, group, async_op)
  return into(output, communication._asked(where, async_op, ops.reduce_scatter, input, op, 0, nil, group_name(where, group)))
end

--- The same for pieces of different sizes, which input_split_sizes says.
function M.reduce_scatter_tensor_uneven(output, input, input_split_sizes, op, group, async_op)
  local where = "reduce_scatter_tensor_uneven"
  input_split_sizes, op, group, async_op = named(where, { "input_split_sizes", "op", "group", "async_op" }, input_split_sizes, op, group,
    async_op)
  return into(output, communication._asked(where, async_op, ops.reduce_scatter, input, op, 0, input_split_sizes, group_name(where, group)))
end

--- Writes the sum ("max" ...) of the tensors at this rank's place in the lists of all ranks into output; a handle if async_op is true.
function M.reduce_scatter(output, input_list, op, group, async_op)
  op, group, async_op = named("reduce_scatter", { "op", "group", "async_op" }, op, group, async_op)
  local result, handle = communication._asked("reduce_scatter", async_op, ops.reduce_scatter, ops.stack(input_list), op, 0, nil,
    group_name("reduce_scatter", group))
  return finished(handle, function() ops.assign(output, result:reshape(output.shape)) end)
end

--- Gives the tensor of rank dst the sum ("max" ...) of those of all ranks of a group.
function M.reduce(tensor, dst, op, group)
  op, group = named("reduce", { "op", "group" }, op, group)
  local sum = communication.comm_func.reduce(tensor, dst, op, group)
  if communication.get_rank() == dst then ops.assign(tensor, sum) end
end

--- Gives the tensor that of rank src (0); a handle if async_op is true.
function M.broadcast(tensor, src, group, async_op)
  src, group, async_op = named("broadcast", { "src", "group", "async_op" }, src, group, async_op)
  return into(tensor, communication._asked("broadcast", async_op, ops.broadcast_from, tensor,
    place_in("broadcast", src or 0, group, "src"), group_name("broadcast", group)))
end

--- Gives the tensor the one at this rank's place in the list of rank src (0); the lists of the others are not read.
function M.scatter(tensor, scatter_list, src, group)
  scatter_list, src, group = named("scatter", { "scatter_list", "src", "group" }, scatter_list, src, group)
  local n, root = M.get_world_size(group), place_in("scatter", src or 0, group, "src")
  local all
  if communication.get_rank() == (src or 0) then
    if type(scatter_list) ~= "table" or #scatter_list ~= n then fail("scatter", ("scatter_list must have %d tensors"):format(n)) end
    all = ops.stack(scatter_list)
  else
    local shape = { n }
    for _, size in ipairs(tensor.shape) do shape[#shape + 1] = size end
    all = ms.zeros(shape, tensor.dtype)
  end
  ops.assign(tensor, ops.scatter_from(all, root, group_name("scatter", group)):reshape(tensor.shape))
end

--- Gives the tensors of the list of rank dst (0) those of all ranks of a group.
function M.gather(tensor, gather_list, dst, group)
  gather_list, dst, group = named("gather", { "gather_list", "dst", "group" }, gather_list, dst, group)
  local all = ops.gather_to(tensor:reshape { 1, -1 }, place_in("gather", dst or 0, group, "dst"), group_name("gather", group))
  if communication.get_rank() ~= (dst or 0) then return end
  for i, target in ipairs(gather_list or fail("gather", "rank dst needs a gather_list")) do
    ops.assign(target, all[i - 1]:reshape(target.shape))
  end
end

--- Sends the tensor to rank dst (0).
function M.send(tensor, dst, group, tag)
  dst, group, tag = named("send", { "dst", "group", "tag" }, dst, group, tag)
  communication.comm_func.send(tensor, dst, group, tag)
end

--- Gives the tensor that of rank src (0).
function M.recv(tensor, src, group, tag)
  src, group, tag = named("recv", { "src", "group", "tag" }, src, group, tag)
  ops.assign(tensor, communication.comm_func.recv(tensor, src, group, tag))
end

--- send without waiting: a handle.
function M.isend(tensor, dst, group, tag)
  dst, group, tag = named("isend", { "dst", "group", "tag" }, dst, group, tag)
  return communication.comm_func.isend(tensor, dst, group, tag)
end

--- recv without waiting: a handle, after whose wait the tensor has what came.
function M.irecv(tensor, src, group, tag)
  src, group, tag = named("irecv", { "src", "group", "tag" }, src, group, tag)
  return into(tensor, communication.comm_func.irecv(tensor, src, group, tag))
end

--- Several sends and receives that may cross; the tensors of the receives have what came.
---     > ms.mint.distributed.batch_isend_irecv {}
function M.batch_isend_irecv(p2p_op_list)
  for i, result in ipairs(communication.comm_func.batch_isend_irecv(p2p_op_list)) do
    if p2p_op_list[i][1] == "recv" then ops.assign(p2p_op_list[i][2], result) end
  end
end

--- Waits until all ranks of a group have come so far.
---     > ms.mint.distributed.barrier()
function M.barrier(group)
  group = named("barrier", { "group" }, group)
  communication.comm_func.barrier(group)
end

--- Sends tensor i of input_tensor_list to rank i - 1, for all i, and gives those of output_tensor_list what comes.
function M.all_to_all(output_tensor_list, input_tensor_list, group)
  group = named("all_to_all", { "group" }, group)
  local results = communication.comm_func.all_to_all_with_output_shape(output_tensor_list, input_tensor_list, group)
  for i, result in ipairs(results) do ops.assign(output_tensor_list[i], result) end
end

--- Sends the rows of input to all ranks of a group, equally many or as input_split_sizes says, and writes those that come into output; a
--- handle if async_op is true.
function M.all_to_all_single(output, input, output_split_sizes, input_split_sizes, group, async_op)
  local where = "all_to_all_single"
  output_split_sizes, input_split_sizes, group, async_op = named(where, { "output_split_sizes", "input_split_sizes", "group", "async_op" },
    output_split_sizes, input_split_sizes, group, async_op)
  local n = M.get_world_size(group)
  return into(output, communication._asked(where, async_op, ops.all_to_all_v, input,
    sizes_of(where, "input_split_sizes", input_split_sizes, n, input.shape[1]),
    sizes_of(where, "output_split_sizes", output_split_sizes, n, output.shape[1]), group_name(where, group)))
end

-- Values of tables, texts and numbers travel as JSON.
local function exchanged(where, object, group)
  local texts = core.exchange_texts(ms.json.encode({ object }), group_name(where, group))
  local objects = {}
  for i, text in ipairs(texts) do objects[i] = ms.json.decode(text)[1] end
  return objects
end

--- Fills object_list with the values (tables, texts, numbers) of all ranks of a group.
---     > local all = {} ms.mint.distributed.all_gather_object(all, { a = 1 }) return all[1].a --> 1
function M.all_gather_object(object_list, object, group)
  group = named("all_gather_object", { "group" }, group)
  for i, value in ipairs(exchanged("all_gather_object", object, group)) do object_list[i] = value end
end

--- Fills the list of rank dst (0) with the values of all ranks of a group.
function M.gather_object(object, object_gather_list, dst, group)
  object_gather_list, dst, group = named("gather_object", { "object_gather_list", "dst", "group" }, object_gather_list, dst, group)
  place_in("gather_object", dst or 0, group, "dst")
  local all = exchanged("gather_object", object, group)
  if communication.get_rank() ~= (dst or 0) then return end
  for i, value in ipairs(all) do object_gather_list[i] = value end
end

--- Gives the list of each rank the values of that of rank src (0).
function M.broadcast_object_list(object_list, src, group)
  src, group = named("broadcast_object_list", { "src", "group" }, src, group)
  local place = place_in("broadcast_object_list", src or 0, group, "src")
  local own = communication.get_rank() == (src or 0) and object_list or {}
  for i, value in ipairs(exchanged("broadcast_object_list", own, group)[place + 1]) do object_list[i] = value end
end

--- Gives item 1 of the output list the value at this rank's place in the list of rank src (0).
function M.scatter_object_list(scatter_object_output_list, scatter_object_input_list, src, group)
  local where = "scatter_object_list"
  src, group = named(where, { "src", "group" }, src, group)
  local place = place_in(where, src or 0, group, "src")
  local own = communication.get_rank() == (src or 0) and scatter_object_input_list or {}
  scatter_object_output_list[1] = exchanged(where, own, group)[place + 1][M.get_rank(group) + 1]
end

return M
