-- A rank of tests/gpu/collectives_test.py: requests of tensors on the GPU. The argument says what happens.
local ms = require "lunaria"
local mock = require "mock_control"
local f = ms.communication.comm_func
local rank, n = ms.communication.get_rank(), ms.communication.get_group_size()
local what = arg[1]
local x = ms.ones({ 4 }):to "GPU" * (rank + 1)

if what == "host" then
  local sum = f.all_reduce(x)
  assert(sum.device == "GPU" and sum:sum():item() == 4 * n * (n + 1) / 2)
  assert(#ms.runtime.fallbacks() == 1)
elseif what == "refused" then
  f.all_reduce(x)
elseif what == "differ" then
  f.all_reduce(rank == 1 and ms.ones { 4 } or x)
elseif what == "killed" then
  f.all_reduce(x):sum():item()
  -- Its part of the second one is agreed on, but never comes.
  if rank == 1 then os.execute "kill -9 $PPID" end
  ms.runtime.synchronize()
  print(f.all_reduce(x):sum():item())
else
  local weight = ms.ones { 3, 4 }:to "GPU"
  local function loss(w, v) return ms.ops.reduce_scatter(ms.ops.all_reduce(w:matmul(v)):tile { n }, "sum", 0):sum() end
  local value, gradient = ms.value_and_grad(loss, 0)(weight, x)
  assert(value.device == "GPU")
  -- Every rank's loss counts every rank's product n times.
  assert(math.abs(value:item() - 3 * n * 4 * n * (n + 1) / 2) < 1e-3, value:item())
  assert(math.abs(gradient:sum():item() - 3 * 4 * (rank + 1) * n * n) < 1e-3, gradient:sum():item())
  local uneven = f.all_to_all_single_with_output_shape({ 3 }, ms.arange(3):to "GPU" + 10 * rank,
    rank == 0 and { 1, 2 } or { 2, 1 }, rank == 0 and { 1, 2 } or { 2, 1 })
  assert(uneven.device == "GPU")
  assert(table.concat(uneven:tolist(), " ") == (rank == 0 and "0 10 11" or "1 2 12"), table.concat(uneven:tolist(), " "))
  assert(mock.collectives "all_reduce" >= 2 and mock.collectives "reduce_scatter" >= 1 and mock.collectives "send" == 2)
  -- What the library has no type for travels by way of the host.
  local flags = f.all_gather_into_tensor(ms.ops.greater(x, 1))
  assert(flags.device == "GPU" and flags.size == 4 * n)
  assert(#ms.runtime.fallbacks() == 1)
  -- The other ranks compare with what they ask for by way of the host.
  assert(mock.blamed() == "", mock.blamed())
end
if rank == 0 then print "right" end
