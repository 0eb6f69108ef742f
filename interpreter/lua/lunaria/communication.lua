-- ms.communication: ranks and groups of ranks by MindSpore's names, and comm_func, functions that ask other ranks. One rank alone is a
-- group of one. Processes that were started together (lunaria launch, msrun, torchrun, mpirun, srun) find each other by themselves.
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"
local core = require "lunaria.ranks"

local fail, describe, named = arguments.fail, arguments.describe, arguments.named
local ops = ms.ops

local M = {}

--- The name of the group of all ranks.
M.HCCL_WORLD_COMM_GROUP, M.NCCL_WORLD_COMM_GROUP, M.MCCL_WORLD_COMM_GROUP = "hccl_world_group", "nccl_world_group", "mccl_world_group"
M.GlobalComm = { WORLD_COMM_GROUP = M.HCCL_WORLD_COMM_GROUP, BACKEND = core.engine() }

local function group_name(where, group)
  if group == nil then return "" end
  if type(group) ~= "string" then fail(where, "group must be the name of a group, got " .. describe(group)) end
  return group
end

--- Connects this process with the other ranks of its job; they are connected at the first request anyway. backend_name: nil takes what
--- there is; the name of another engine than that is an error.
---     > ms.communication.init()
---     > ms.communication.get_group_size() --> 1
function M.init(backend_name)
  backend_name = named("init", { "backend_name" }, backend_name)
  local engine = core.engine()
  if backend_name ~= nil and backend_name ~= engine and backend_name ~= "mccl" then
    fail("init", ("the ranks of this program are connected by '%s', not by %s"):format(engine, describe(backend_name)),
      "init() takes the engine that there is")
  end
end

--- Groups that create_group made are forgotten; the group of all ranks stays until the program ends.
---     > ms.communication.release()
function M.release()
  for name in pairs(M._created) do core.forget_group("release", name) end
  M._created = {}
end
M._created = {}

--- The number of this rank in a group (default: of all ranks), from 0.
---     > ms.communication.get_rank() --> 0
function M.get_rank(group)
  group = named("get_rank", { "group" }, group)
  local rank = core.rank("get_rank", group_name("get_rank", group))
  if rank < 0 then fail("get_rank", ("this rank is not in the group '%s'"):format(group)) end
  return rank
end

--- The number of ranks of a group (default: of all).
---     > ms.communication.get_group_size() --> 1
function M.get_group_size(group)
  group = named("get_group_size", { "group" }, group)
  return core.size("get_group_size", group_name("get_group_size", group))
end

local function of_world(where, group)
  if group ~= nil and #core.members(where, group_name(where, group)) ~= core.size(where, "") then
    fail(where, "only the group of all ranks has places on hosts")
  end
end

--- The number of this rank among those of its host.
---     > ms.communication.get_local_rank() --> 0
function M.get_local_rank(group)
  group = named("get_local_rank", { "group" }, group)
  of_world("get_local_rank", group)
  return (core.place())
end

--- The number of ranks of this host.
---     > ms.communication.get_local_rank_size() --> 1
function M.get_local_rank_size(group)
  group = named("get_local_rank_size", { "group" }, group)
  of_world("get_local_rank_size", group)
  return (select(2, core.place()))
end

--- The ranks of a group as numbers among all.
---     > #ms.communication.get_process_group_ranks() --> 1
function M.get_process_group_ranks(group)
  group = named("get_process_group_ranks", { "group" }, group)
  return core.members("get_process_group_ranks", group_name("get_process_group_ranks", group))
end

--- The number among all ranks of a member of a group.
---     > ms.communication.get_world_rank_from_group_rank("hccl_world_group", 0) --> 0
function M.get_world_rank_from_group_rank(group, group_rank_id)
  local where = "get_world_rank_from_group_rank"
  local members = core.members(where, group_name(where, group))
  local rank = math.type(group_rank_id) == "integer" and members[group_rank_id + 1]
  if not rank then
    fail(where, ("group_rank_id must be one of 0 to %d, got %s"):format(#members - 1, describe(group_rank_id)))
  end
  return rank
end

--- The number in a group of one of all ranks.
---     > ms.communication.get_group_rank_from_world_rank(0, "hccl_world_group") --> 0
function M.get_group_rank_from_world_rank(world_rank_id, group)
  local where = "get_group_rank_from_world_rank"
  for i, rank in ipairs(core.members(where, group_name(where, group))) do
    if rank == world_rank_id then return i - 1 end
  end
  fail(where, ("rank %s is not in the group '%s'"):format(describe(world_rank_id), group))
end

--- Makes a group of some ranks, in this order, and gives it a name. Every member makes it; the others need not.
---     > ms.communication.create_group("mine", { 0 })
---     > ms.communication.get_group_size "mine" --> 1
---     > ms.communication.destroy_group "mine"
function M.create_group(group, rank_ids)
  if type(group) ~= "string" or group == "" then fail("create_group", "group must be a name, got " .. describe(group)) end
  core.name_group(group, rank_ids)
  M._created[group] = true
end

--- Forgets the name of a group.
---     > ms.communication.create_group("mine", { 0 })
---     > ms.communication.destroy_group "mine"
---     > (pcall(ms.communication.get_group_size, "mine")) --> false
function M.destroy_group(group)
  core.forget_group("destroy_group", group_name("destroy_group", group))
  M._created[group] = nil
end

--- The name of the engine that connects the ranks: "one rank", "shared memory", "mpi" ...
---     > ms.communication.get_backend() --> one rank
function M.get_backend() return core.engine() end

--- What this rank has asked of others, by the kind of request: { all_reduce = { calls = 3, bytes = 96 } }, with the bytes that came from
--- other ranks at least; reset: true begins anew.
---     > type(ms.communication.get_traffic { reset = true }) --> table
---     > next(ms.communication.get_traffic())
function M.get_traffic(reset)
  reset = named("get_traffic", { "reset" }, reset)
  local traffic = core.traffic()
  if reset then core.reset_traffic() end
  return traffic
end

--- The seconds that a rank waits for another one that is alive; 0: for ever. At first 600, or LUNARIA_COMMUNICATION_TIMEOUT. A rank that
--- is dead, has ended or asks for something else is told at once.
---     > ms.communication.set_timeout(60)
function M.set_timeout(seconds)
  if type(seconds) ~= "number" or not (seconds >= 0) then fail("set_timeout", "seconds must be 0 or more, got " .. describe(seconds)) end
  core.set_timeout(seconds)
end

local Handle = {}
Handle.__index, Handle.__name, Handle._called, Handle._name = Handle, "handle", "handle", "request"
--- Waits until the request is done; only then its result may be read.
function Handle:wait()
  if self._started then core.wait(self._started) end
  if self._got then ops.assign(self._result, self._got:to(self._result.device)) end
  self._got = nil
end
--- Whether the request is done.
function Handle:is_completed() return not self._started or core.is_done(self._started) end

-- The tensor as requests that are carried out meanwhile take it: dense and of the host.
local function dense(where, tensor)
  if not ms.is_tensor(tensor) then fail(where, "tensor must be a tensor, got " .. describe(tensor)) end
  return ops.to_device(tensor, "host"):contiguous()
end

--- What f(tensor, ...) gives, and a handle where the request is carried out meanwhile. For the files of this folder.
function M._asked(where, async_op, f, tensor, ...)
  if async_op == nil or async_op == false then return f(tensor, ...), nil end
  if async_op ~= true then fail(where, "async_op must be true or false, got " .. describe(async_op)) end
  local result, started
  local is_of_host = not ms.is_tensor(tensor) or tensor.device == "CPU"
  -- Another device does what it is asked for in order and meanwhile by itself. Transfers may wait for one another, and travel by way of
  -- the host.
  if not is_of_host and f ~= ops.send and f ~= ops.recv then return f(tensor, ...), setmetatable({}, Handle) end
  result, started = core.start(f, dense(where, tensor), ...)
  if is_of_host or f == ops.send then return result, setmetatable({ _started = started }, Handle) end
  local here = tensor:copy()
  return here, setmetatable({ _started = started, _got = result, _result = here }, Handle)
end
M._core, M._group_name = core, group_name

local comm = {}
M.comm_func = comm

--- The sum ("max", "min", "prod", "avg") of the tensors of all ranks of a group, on each of them, and a handle if async_op is true.
---     > ms.communication.comm_func.all_reduce(ms.tensor { 1, 2 }):tolist()[2] --> 2
function comm.all_reduce(tensor, op, group, async_op)
  op, group, async_op = named("all_reduce", { "op", "group", "async_op" }, op, group, async_op)
  return M._asked("all_reduce", async_op, ops.all_reduce, tensor, op, group_name("all_reduce", group))
end

--- The tensors of all ranks of a group one after the other along axis 0, and a handle if async_op is true.
---     > #ms.communication.comm_func.all_gather_into_tensor(ms.tensor { 1, 2 }) --> 2
function comm.all_gather_into_tensor(tensor, group, async_op)
  group, async_op = named("all_gather_into_tensor", { "group", "async_op" }, group, async_op)
  return M._asked("all_gather_into_tensor", async_op, ops.all_gather, tensor, 0, nil, group_name("all_gather_into_tensor", group))
end

--- This rank's piece along axis 0 of the sum ("max", "min", "prod", "avg") of the tensors of all ranks of a group, and a handle if
--- async_op is true.
---     > ms.communication.comm_func.reduce_scatter_tensor(ms.tensor { 1, 2 }):tolist()[2] --> 2
function comm.reduce_scatter_tensor(tensor, op, group, async_op)
  op, group, async_op = named("reduce_scatter_tensor", { "op", "group", "async_op" }, op, group, async_op)
  return M._asked("reduce_scatter_tensor", async_op, ops.reduce_scatter, tensor, op, 0, nil, group_name("reduce_scatter_tensor", group))
end

-- The place in a group of one of all ranks, as comm_func counts those that give and get.
local function place_in(where, rank, group, what)
  for i, member in ipairs(core.members(where, group_name(where, group))) do
    if member == rank then return i - 1 end
  end
  fail(where, ("%s must be a rank of the group, got %s"):format(what, describe(rank)))
end
M._place_in = place_in

--- The sum ("max", "min", "prod", "avg") of the tensors of all ranks of a group, on rank dst; zeros on the others.
---     > ms.communication.comm_func.reduce(ms.tensor { 1, 2 }, 0):tolist()[2] --> 2
function comm.reduce(tensor, dst, op, group)
  op, group = named("reduce", { "op", "group" }, op, group)
  return ops.reduce_to(tensor, place_in("reduce", dst, group, "dst"), op, group_name("reduce", group))
end

--- The tensor of rank src (0), on all ranks of a group.
---     > ms.communication.comm_func.broadcast(ms.tensor { 1, 2 }):tolist()[2] --> 2
function comm.broadcast(tensor, src, group)
  src, group = named("broadcast", { "src", "group" }, src, group)
  return ops.broadcast_from(tensor, place_in("broadcast", src or 0, group, "src"), group_name("broadcast", group))
end

--- This rank's piece along axis 0 of the tensor of rank src (0); the tensors of the others have the same shape.
---     > ms.communication.comm_func.scatter_tensor(ms.tensor { 1, 2 }):tolist()[2] --> 2
function comm.scatter_tensor(tensor, src, group)
  src, group = named("scatter_tensor", { "src", "group" }, src, group)
  return ops.scatter_from(tensor, place_in("scatter_tensor", src or 0, group, "src"), group_name("scatter_tensor", group))
end

--- The tensors of all ranks of a group one after the other along axis 0, on rank dst (0); zeros on the others.
---     > ms.communication.comm_func.gather_into_tensor(ms.tensor { 1, 2 }):tolist()[2] --> 2
function comm.gather_into_tensor(tensor, dst, group)
  dst, group = named("gather_into_tensor", { "dst", "group" }, dst, group)
  return ops.gather_to(tensor, place_in("gather_into_tensor", dst or 0, group, "dst"), group_name("gather_into_tensor", group))
end

local function whole(where, name, value)
  if value ~= nil and math.type(value) ~= "integer" then fail(where, ("%s must be an integer, got %s"):format(name, describe(value))) end
  return value or 0
end

--- Sends the tensor to rank dst (0), which receives it with the same tag (0).
---     > (pcall(ms.communication.comm_func.send, ms.ones { 2 })) -- there is no other rank --> false
function comm.send(tensor, dst, group, tag)
  dst, group, tag = named("send", { "dst", "group", "tag" }, dst, group, tag)
  ops.send(tensor, place_in("send", dst or 0, group, "dst"), whole("send", "tag", tag), group_name("send", group))
end

--- The tensor that rank src (0) sends with the same tag (0); `tensor` has its shape and dtype.
---     > (pcall(ms.communication.comm_func.recv, ms.ones { 2 })) --> false
function comm.recv(tensor, src, group, tag)
  src, group, tag = named("recv", { "src", "group", "tag" }, src, group, tag)
  return ops.recv(tensor, place_in("recv", src or 0, group, "src"), whole("recv", "tag", tag), group_name("recv", group))
end

--- send without waiting: a handle.
---     > (pcall(ms.communication.comm_func.isend, ms.ones { 2 })) --> false
function comm.isend(tensor, dst, group, tag)
  dst, group, tag = named("isend", { "dst", "group", "tag" }, dst, group, tag)
  return (select(2, M._asked("isend", true, ops.send, tensor, place_in("isend", dst or 0, group, "dst"), whole("isend", "tag", tag),
    group_name("isend", group))))
end

--- recv without waiting: the tensor, which may be read when the handle's wait has returned, and the handle.
---     > (pcall(ms.communication.comm_func.irecv, ms.ones { 2 })) --> false
function comm.irecv(tensor, src, group, tag)
  src, group, tag = named("irecv", { "src", "group", "tag" }, src, group, tag)
  return M._asked("irecv", true, ops.recv, tensor, place_in("irecv", src or 0, group, "src"), whole("irecv", "tag", tag),
    group_name("irecv", group))
end

--- Waits until all ranks of a group have come so far.
---     > ms.communication.comm_func.barrier()
function comm.barrier(group)
  group = named("barrier", { "group" }, group)
  ops.barrier(ms.zeros { 0 }, group_name("barrier", group))
end

local Transfer = {}
Transfer.__index, Transfer.__name, Transfer._called, Transfer._name = Transfer, "transfer", "transfer", "P2POp"

--- A send or recv for batch_isend_irecv. op: "isend" or "irecv", or these functions; tensor: what is sent, or a tensor of the shape and
--- dtype that comes; peer: the other rank.
---     > type(ms.communication.comm_func.P2POp("isend", ms.ones { 2 }, 0)) --> table
function comm.P2POp(op, tensor, peer, group, tag)
  group, tag = named("P2POp", { "group", "tag" }, group, tag)
  local kind = op == comm.isend and "isend" or op == comm.irecv and "irecv" or op
  if kind ~= "isend" and kind ~= "irecv" then fail("P2POp", "op must be 'isend' or 'irecv', got " .. describe(op)) end
  if not ms.is_tensor(tensor) then fail("P2POp", "tensor must be a tensor, got " .. describe(tensor)) end
  return setmetatable({ kind == "isend" and "send" or "recv", tensor, place_in("P2POp", peer, group, "peer"),
    whole("P2POp", "tag", tag), group_name("P2POp", group) }, Transfer)
end

--- Several sends and receives that may cross: for each recv the tensor that came, for each send an empty tensor.
---     > #ms.communication.comm_func.batch_isend_irecv {} --> 0
function comm.batch_isend_irecv(p2p_op_list)
  for i, transfer in ipairs(p2p_op_list) do
    if getmetatable(transfer) ~= Transfer then
      fail("batch_isend_irecv", ("item %d must be a P2POp, got %s"):format(i, describe(transfer)))
    end
  end
  local results = core.together(p2p_op_list)
  for i = 1, #results do results[i] = results[i] and results[i]:to(p2p_op_list[i][2].device) or ms.zeros { 0 } end
  return results
end

-- Sizes of pieces along axis 0, equal ones where the call gives none.
local function sizes_of(where, name, sizes, count, total)
  if sizes == nil then
    if total % count ~= 0 then fail(where, ("%d rows cannot be divided among %d ranks; give %s"):format(total, count, name)) end
    sizes = {}
    for i = 1, count do sizes[i] = total // count end
  end
  return sizes
end
M._sizes_of = sizes_of

--- Sends the rows of a tensor to all ranks of a group, input_split_sizes[i] of them to rank i - 1, and gives a tensor of shape
--- output_shape of the rows that come, output_split_sizes[i] of them from rank i - 1, and a handle if async_op is true.
---     > ms.communication.comm_func.all_to_all_single_with_output_shape({ 2 }, ms.tensor { 1, 2 }):tolist()[2] --> 2
function comm.all_to_all_single_with_output_shape(output_shape, tensor, output_split_sizes, input_split_sizes, group, async_op)
  local where = "all_to_all_single_with_output_shape"
  output_split_sizes, input_split_sizes, group, async_op = named(where, { "output_split_sizes", "input_split_sizes", "group", "async_op" },
    output_split_sizes, input_split_sizes, group, async_op)
  local n = core.size(where, group_name(where, group))
  local rows = ms.is_tensor(output_shape) and output_shape:tolist()[1] or output_shape[1]
  return M._asked(where, async_op, ops.all_to_all_v, tensor,
    sizes_of(where, "input_split_sizes", input_split_sizes, n, tensor.shape[1]),
    sizes_of(where, "output_split_sizes", output_split_sizes, n, rows), group_name(where, group))
end

local function elements_of(shape)
  local n = 1
  for _, size in ipairs(shape) do n = n * size end
  return n
end

--- Sends tensor i of a list to rank i - 1 of a group, for all i, and gives the list of those that come, of the shapes in
--- output_shape_list (or those of its tensors).
---     > #ms.communication.comm_func.all_to_all_with_output_shape({ { 2 } }, { ms.tensor { 1, 2 } }) --> 1
function comm.all_to_all_with_output_shape(output_shape_list, input_tensor_list, group)
  local where = "all_to_all_with_output_shape"
  group = named(where, { "group" }, group)
  local n = core.size(where, group_name(where, group))
  if #input_tensor_list ~= n or #output_shape_list ~= n then
    fail(where, ("%d tensors and %d shapes for a group of %d"):format(#input_tensor_list, #output_shape_list, n))
  end
  local flat, sends, receives, shapes = {}, {}, {}, {}
  for i = 1, n do
    flat[i] = ops.reshape(input_tensor_list[i], { -1 })
    local shape = output_shape_list[i]
    shapes[i] = ms.is_tensor(shape) and shape.shape or shape
    sends[i], receives[i] = flat[i].size, elements_of(shapes[i])
  end
  local came, results, begin = ops.all_to_all_v(ops.concat(flat), sends, receives, group_name(where, group)), {}, 0
  for i = 1, n do
    results[i] = ops.reshape(ops.narrow(came, 0, begin, receives[i]), shapes[i])
    begin = begin + receives[i]
  end
  return results
end

--- all_to_all with a matrix of the sizes: rank i sends send_count_matrix[i + 1][j + 1] elements to rank j. The tensor is flat, and so is
--- what comes; and a handle if async_op is true.
---     > ms.communication.comm_func.all_to_all_v_c(ms.tensor { 1, 2 }, { { 2 } }):tolist()[2] --> 2
function comm.all_to_all_v_c(input, send_count_matrix, group, async_op)
  local where = "all_to_all_v_c"
  group, async_op = named(where, { "group", "async_op" }, group, async_op)
  local matrix = ms.is_tensor(send_count_matrix) and send_count_matrix:tolist() or send_count_matrix
  local n, own = core.size(where, group_name(where, group)), core.rank(where, group_name(where, group))
  if type(matrix[1]) ~= "table" then
    local rows = {}
    for i = 1, #matrix do
      local row = (i - 1) // n + 1
      rows[row] = rows[row] or {}
      rows[row][#rows[row] + 1] = matrix[i]
    end
    matrix = rows
  end
  if #matrix ~= n then fail(where, ("send_count_matrix has %d rows for a group of %d"):format(#matrix, n)) end
  local receives = {}
  for i = 1, n do receives[i] = matrix[i][own + 1] end
  local flat = ops.reshape(input, { -1 })
  return M._asked(where, async_op, ops.all_to_all_v, flat, matrix[own + 1], receives, group_name(where, group))
end

return M
