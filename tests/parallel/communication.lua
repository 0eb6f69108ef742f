-- Requests of three ranks by every public name, eager and compiled; run by `lunaria launch -n 3`. Each rank raises where something is
-- wrong, and rank 0 prints "right" at the end.
local ms = require "lunaria"
local c = ms.communication
local f, d, ops = c.comm_func, ms.mint.distributed, ms.ops
local rank, n = c.get_rank(), c.get_group_size()
assert(n == 3, "three ranks are expected")

local function equal(got, wanted, what)
  got = ms.is_tensor(got) and got:reshape { -1 }:tolist() or got
  local text = table.concat(got, " ")
  if text ~= wanted then error(("%s: got %s, expected %s"):format(what, text, wanted), 2) end
end
local function of(...) return ms.tensor({ ... }, ms.float32) end
local x = of(rank, 10 + rank, 20 + rank) -- rank 0: 0 10 20

equal(f.all_reduce(x), "3.0 33.0 63.0", "all_reduce")
equal(f.all_reduce(x, { op = "max" }), "2.0 12.0 22.0", "max")
equal(f.all_gather_into_tensor(x), "0.0 10.0 20.0 1.0 11.0 21.0 2.0 12.0 22.0", "all_gather")
equal(f.reduce_scatter_tensor(x), ("%.1f"):format(3 + 30 * rank), "reduce_scatter")
equal(f.reduce(x, 1), rank == 1 and "3.0 33.0 63.0" or "0.0 0.0 0.0", "reduce")
equal(f.broadcast(x, 2), "2.0 12.0 22.0", "broadcast")
equal(f.scatter_tensor(x, { src = 1 }), ("%.1f"):format(1 + 10 * rank), "scatter")
equal(f.gather_into_tensor(of(rank)), rank == 0 and "0.0 1.0 2.0" or "0.0 0.0 0.0", "gather")
f.barrier()

-- Round the ring.
local to, from = (rank + 1) % 3, (rank + 2) % 3
local got = f.batch_isend_irecv { f.P2POp("isend", x, to), f.P2POp(f.irecv, ms.zeros { 3 }, from) }
equal(got[2], ("%.1f %.1f %.1f"):format(from, 10 + from, 20 + from), "batch_isend_irecv")
local sending = f.isend(x, to, nil, 5)
local y, receiving = f.irecv(ms.zeros { 3 }, { src = from, tag = 5 })
receiving:wait()
sending:wait()
equal(y, ("%.1f %.1f %.1f"):format(from, 10 + from, 20 + from), "irecv")
if rank == 0 then f.send(x, 2) elseif rank == 2 then equal(f.recv(ms.zeros { 3 }, 0), "0.0 10.0 20.0", "recv") end

-- Meanwhile.
local sum, handle = f.all_reduce(x, nil, nil, true)
local all, other = f.all_gather_into_tensor(x, { async_op = true })
other:wait()
assert(handle:is_completed())
equal(sum, "3.0 33.0 63.0", "async all_reduce")
equal(all, "0.0 10.0 20.0 1.0 11.0 21.0 2.0 12.0 22.0", "async all_gather")

-- Rank i sends i + 1 rows to each.
local rows = ms.ones { (rank + 1) * 3 } * rank
equal(f.all_to_all_single_with_output_shape({ 6 }, rows, { 1, 2, 3 }, { rank + 1, rank + 1, rank + 1 }), "0.0 1.0 1.0 2.0 2.0 2.0",
  "all_to_all_single")
equal(f.all_to_all_v_c(rows, { { 1, 1, 1 }, { 2, 2, 2 }, { 3, 3, 3 } }), "0.0 1.0 1.0 2.0 2.0 2.0", "all_to_all_v_c")
local lists = f.all_to_all_with_output_shape({ { 1 }, { 1 }, { 1 } }, { of(rank), of(rank + 10), of(rank + 20) })
equal(ops.concat(lists), ("%.1f %.1f %.1f"):format(10 * rank, 10 * rank + 1, 10 * rank + 2), "all_to_all")

-- Groups.
c.create_group("ends", { 2, 0 })
if rank ~= 1 then
  equal(f.all_reduce(x, "sum", "ends"), "2.0 22.0 42.0", "all_reduce of a group")
  assert(c.get_rank "ends" == (rank == 2 and 0 or 1) and c.get_world_rank_from_group_rank("ends", 1) == 0)
end
assert(not pcall(c.create_group, "wrong", { 0, 7 }))
c.destroy_group "ends"
assert(not pcall(c.get_group_size, "ends"))

-- mint.distributed writes into its tensors.
local z = x:copy()
d.all_reduce(z)
equal(z, "3.0 33.0 63.0", "mint all_reduce")
local waiting = d.broadcast(z, rank == 5 and 1 or 0, nil, true)
waiting:wait()
local list = { ms.zeros { 3 }, ms.zeros { 3 }, ms.zeros { 3 } }
d.all_gather(list, x)
equal(list[2], "1.0 11.0 21.0", "mint all_gather")
local piece = ms.zeros { 1 }
d.reduce_scatter(piece, { of(rank), of(rank), of(rank) })
equal(piece, "3.0", "mint reduce_scatter")
d.scatter(piece, rank == 0 and { of(5), of(6), of(7) } or nil, 0)
equal(piece, ("%.1f"):format(5 + rank), "mint scatter")
local wide = ms.zeros { 6 }
d.all_gather_into_tensor_uneven(wide, ms.ones { rank + 1 } * rank, { 1, 2, 3 })
equal(wide, "0.0 1.0 1.0 2.0 2.0 2.0", "mint uneven")
local objects = {}
d.all_gather_object(objects, { rank = rank, name = "r" .. rank })
assert(objects[3].rank == 2 and objects[3].name == "r2")
local words = rank == 1 and { "a", { 1, 2 } } or {}
d.broadcast_object_list(words, 1)
assert(words[1] == "a" and words[2][2] == 2)
assert(d.new_group { 0, 1 } == "ranks_0_1" and d.get_world_size "ranks_0_1" == 2)

-- As objects.
equal(ops.AllReduce(ops.ReduceOp.MIN)(x), "0.0 10.0 20.0", "AllReduce")
equal(ops.AlltoAll(3, 0, 0)(x), ("%.1f %.1f %.1f"):format(10 * rank, 10 * rank + 1, 10 * rank + 2), "AlltoAll")
equal(ops.NeighborExchange { send_rank_ids = { to }, recv_rank_ids = { from }, recv_shapes = { { 3 } }, send_shapes = { { 3 } },
  recv_type = ms.float32 } { x }, ("%.1f %.1f %.1f"):format(from, 10 + from, 20 + from), "NeighborExchange")
if rank == 1 then ops.Send(3, 0)(x) elseif rank == 0 then equal(ops.Receive(3, 1, { 3 }, ms.float32)(), "1.0 11.0 21.0", "Receive") end
equal(ops.AllGatherV()(ms.ones { rank + 1 } * rank, { 1, 2, 3 }), "0.0 1.0 1.0 2.0 2.0 2.0", "AllGatherV")

-- Derivatives: of the sum of all ranks' results; a compiled function asks in the same order.
local function step(v) return ops.reduce_sum(ops.all_reduce(v * v) * (rank + 1)) + ops.reduce_sum(ops.all_gather(v * 2)) end
local wanted = ("%.1f %.1f %.1f"):format(12 * rank + 6, 12 * (10 + rank) + 6, 12 * (20 + rank) + 6)
equal(ms.grad(step)(x), wanted, "gradient")
local compiled = ms.jit(ms.grad(step))
for _ = 1, 4 do equal(compiled(x), wanted, "compiled gradient") end
local value = ms.jit(function(v)
  local a = ops.all_reduce(v)
  local b = ops.all_gather(v)
  return a, ops.reduce_scatter(b), ops.broadcast_from(a * rank, 1)
end)
for _ = 1, 4 do
  local a, b, e = value(x)
  equal(a, "3.0 33.0 63.0", "compiled all_reduce")
  equal(b, ("%.1f %.1f %.1f"):format(3 * rank, 3 * (10 + rank), 3 * (20 + rank)), "compiled reduce_scatter")
  equal(e, "3.0 33.0 63.0", "compiled broadcast_from")
end
local traffic = c.get_traffic(true)
assert(traffic.all_reduce.calls > 10 and traffic.barrier.bytes == 0 and next(c.get_traffic()) == nil)
f.barrier()
if rank == 0 then print "right" end
