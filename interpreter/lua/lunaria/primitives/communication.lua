-- Primitives of MindSpore that ask other ranks: rows for nn/primitives.lua.
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"
local common = require "lunaria.primitives.common"
local communication = require "lunaria.communication"

local ops, comm = ms.ops, communication.comm_func
local fail, place_in = arguments.fail, communication._place_in
local P = {}

local of_group = "group=\"hccl_world_group\""
local combinations = { op = { "sum", "max", "min", "prod", "avg" } }

P.ReduceOp = { SUM = "sum", MAX = "max", MIN = "min", PROD = "prod", AVG = "avg" }
P.AllReduce = { "op=\"sum\", " .. of_group, "x", function(a, x) return ops.all_reduce(x, a.op, a.group) end, combinations }
P.AllGather = { of_group, "x", function(a, x) return ops.all_gather(x, 0, nil, a.group) end }
P.ReduceScatter = { "op=\"sum\", " .. of_group, "x", function(a, x) return ops.reduce_scatter(x, a.op, 0, nil, a.group) end,
  combinations }
P.Reduce = { "dest_rank, op=\"sum\", " .. of_group, "x", function(a, x)
  return ops.reduce_to(x, place_in("Reduce", a.dest_rank, a.group, "dest_rank"), a.op, a.group)
end, combinations }
P.Broadcast = { "root_rank, " .. of_group, "x", function(a, list)
  local root, results = place_in("Broadcast", a.root_rank, a.group, "root_rank"), {}
  for i, x in ipairs(list) do results[i] = ops.broadcast_from(x, root, a.group) end
  return table.unpack(results)
end }
P.CollectiveGather = { "dest_rank, " .. of_group, "x", function(a, x)
  return ops.gather_to(x, place_in("CollectiveGather", a.dest_rank, a.group, "dest_rank"), a.group)
end }
P.CollectiveScatter = { "src_rank=0, " .. of_group, "x", function(a, x)
  return ops.scatter_from(x, place_in("CollectiveScatter", a.src_rank, a.group, "src_rank"), a.group)
end }
P.Barrier = { of_group, "", function(a) comm.barrier(a.group) end }
P.AlltoAll = { "split_count, split_dim, concat_dim, " .. of_group, "x", function(a, x)
  local size = communication.get_group_size(a.group)
  if a.split_count ~= size then
    fail("AlltoAll", ("split_count must be %d, the number of ranks of the group, got %s"):format(size, tostring(a.split_count)))
  end
  return ops.all_to_all(x, a.split_dim, a.concat_dim, a.group)
end }
P.Send = { "sr_tag, dest_rank, " .. of_group, "x", function(a, x)
  return ops.send(x, place_in("Send", a.dest_rank, a.group, "dest_rank"), a.sr_tag, a.group)
end }
P.Receive = { "sr_tag, src_rank, shape, dtype, " .. of_group, "", function(a)
  return ops.recv(ms.zeros(a.shape, a.dtype), place_in("Receive", a.src_rank, a.group, "src_rank"), a.sr_tag, a.group)
end }
P.P2POp = comm.P2POp

-- Numbers of elements, in blocks.
local function elements(sizes, block)
  local list = {}
  for i, size in ipairs(common.numbers(sizes)) do list[i] = size * (block or 1) end
  return list
end
P.AllGatherV = { of_group, "x, output_split_sizes", function(a, x, sizes)
  return ops.all_gather(ops.reshape(x, { -1 }), 0, elements(sizes), a.group)
end }
P.ReduceScatterV = { "op=\"sum\", " .. of_group, "x, input_split_sizes", function(a, x, sizes)
  return ops.reduce_scatter(ops.reshape(x, { -1 }), a.op, 0, elements(sizes), a.group)
end, combinations }
P.AlltoAllV = { of_group .. ", block_size=1", "x, send_numel_list, recv_numel_list", function(a, x, sends, receives)
  return ops.all_to_all_v(ops.reshape(x, { -1 }), elements(sends, a.block_size), elements(receives, a.block_size), a.group)
end }
P.AlltoAllVC = { of_group .. ", block_size=1, transpose=false", "x, send_count_matrix", function(a, x, matrix)
  local n, counts = communication.get_group_size(a.group), common.numbers(matrix)
  local rows = {}
  for i = 1, n do
    rows[i] = {}
    for j = 1, n do
      local from, to = a.transpose and j or i, a.transpose and i or j
      local count = type(counts[from]) == "table" and counts[from][to] or counts[(from - 1) * n + to]
      if math.type(count) ~= "integer" then
        fail("AlltoAllVC", ("send_count_matrix has no count for ranks %d and %d"):format(from - 1, to - 1))
      end
      rows[i][j] = count * a.block_size
    end
  end
  return (comm.all_to_all_v_c(x, rows, a.group))
end }

-- Sends and receives together: the tensors of a list go to some ranks, and others come.
local function exchanged(where, sends, to, shapes, dtypes, from, group)
  local list = {}
  for i, rank in ipairs(to) do
    list[i] = comm.P2POp("isend", sends[i] or fail(where, "there are fewer tensors than ranks"), rank, group)
  end
  for i, rank in ipairs(from) do
    list[#list + 1] = comm.P2POp("irecv", ms.zeros(shapes[i], type(dtypes) == "table" and dtypes[i] or dtypes), rank, group)
  end
  return table.unpack(comm.batch_isend_irecv(list), #to + 1)
end
P.NeighborExchange = { "send_rank_ids, recv_rank_ids, recv_shapes, send_shapes, recv_type, " .. of_group, "x", function(a, list)
  for i, shape in ipairs(a.send_shapes) do
    local wanted, given = tostring(ms.zeros(shape).shape), list[i] and tostring(list[i].shape)
    if given and given ~= wanted then
      fail("NeighborExchange", ("send_shapes says %s for tensor %d of shape %s"):format(wanted, i, given))
    end
  end
  return exchanged("NeighborExchange", list, a.send_rank_ids, a.recv_shapes, a.recv_type, a.recv_rank_ids, a.group)
end }
P.BatchISendIRecv = { "op_types, remote_ranks, receive_shapes=nil, receive_types=nil, " .. of_group, "x", function(a, list)
  local transfers, sent, received = {}, 0, 0
  for i, kind in ipairs(a.op_types) do
    local tensor
    if kind == "isend" then
      sent = sent + 1
      tensor = list[sent]
    else
      received = received + 1
      tensor = ms.zeros((a.receive_shapes or {})[received] or fail("BatchISendIRecv", "receive_shapes has too few shapes"),
        (a.receive_types or {})[received])
    end
    transfers[i] = comm.P2POp(kind, tensor, a.remote_ranks[i], a.group)
  end
  return table.unpack(comm.batch_isend_irecv(transfers))
end }

return P
