-- A small training in two stages, whose products are divided over the ranks of each stage: on 2 * width ranks, or in one process.
-- Arguments: the folder for what comes out, the ranks of a stage, how the products are divided, the scheduler, and
-- "again" for a block that is recomputed, "drop" for dropout, whose masks each stage draws by itself.
local ms = require "lunaria"
local nn, ops = ms.nn, ms.ops

local folder, width, how, scheduler = table.unpack(arg)
local flags = {}
for i = 5, #arg do flags[arg[i]] = true end
width = math.tointeger(tonumber(width))
local ranks = ms.communication.get_group_size()
local segments = scheduler == "zero_bubble_v" and 2 or 1
if ranks > 1 then ms.set_auto_parallel_context { pipeline_stages = 2, dataset_strategy = "full_batch" } end
ms.set_seed(4)

-- Two products: columns of the first and rows of the second are divided, or rows of the batch too.
local cuts = { columns = { { { 1, 1 }, { 1, width } }, { { 1, width }, { width, 1 } } },
  rows = { { { 2, 1 }, { 1, width // 2 } }, { { 2, width // 2 }, { width // 2, 1 } } } }
local Block = nn.Cell:extend "Block"
function Block:init(number)
  self.norm = nn.LayerNorm { 8 }
  self.drop = nn.Dropout { p = flags.drop and 0.25 or 0.0 }
  local mesh = ms.mesh({ width }, { "tp" })
  if how == "plan" then
    self.up, self.down = nn.Dense(8, 16), nn.Dense(16, 8)
    if ranks > 1 then
      self.up:shard({ mesh() }, nil, { weight = mesh("tp"), bias = mesh("tp") })
      self.down:shard({ mesh(nil, "tp") }, nil, { weight = mesh(nil, "tp") })
    end
  else
    self.first, self.second = ops.MatMul(), ops.MatMul()
    if ranks > 1 then self.first, self.second = self.first:shard(cuts[how][1]), self.second:shard(cuts[how][2]) end
    self.w1 = ms.Parameter(ops.randn({ 8, 16 }, nil, number) * 0.3, "w1")
    self.w2 = ms.Parameter(ops.randn({ 16, 8 }, nil, number + 10) * 0.3, "w2")
  end
end
function Block:construct(x)
  local y = self.norm(x)
  y = self.up and self.down(ops.tanh(self.up(y))) or self.second(ops.tanh(self.first(y, self.w1)), self.w2)
  return x + self.drop(y)
end

local list = {}
for i = 1, 2 * segments do
  list[i] = Block(i)
  if flags.again and i == 1 then list[i]:recompute() end
  list[i].pipeline_stage = segments == 2 and i > 2 and 4 - i or (i - 1) % 2
  list[i].pipeline_segment = (i - 1) // 2
end
local net = nn.SequentialCell(list)
local pipe = nn.PipelineCell(nn.WithLossCell(net, nn.MSELoss()), 4, { scheduler = scheduler })
local optimizer = nn.Adam(pipe:trainable_params(), 0.02)
local step = nn.TrainOneStepCell(pipe, optimizer)
step:set_train()
local out = assert(io.open(("%s/%d-of-%d.txt"):format(folder, ms.communication.get_rank(), ranks), "w"))
for k = 1, 5 do
  local x = ops.randn({ 8, 8 }, nil, 20 + k)
  out:write(("loss %.17g\n"):format(step(x, ops.tanh(x:flip(1))):item()))
end
-- The elements that this rank holds of its parameters.
local held = 0
for _, p in ipairs(optimizer.parameters) do
  held = held + (ranks > 1 and require "lunaria.laid".pieces(p)[1].size or p.size)
  local sum = ops.sum(ops.lay_out(p, 0) * ops.arange(p.size):reshape(p.shape)):item()
  out:write(("%s %.9g\n"):format(p.name, sum))
end
out:write(("held %d\n"):format(held))
out:close()
if ranks > 1 then
  ms.save_checkpoint(net, folder .. "/together", { sharded = true, step = 5 })
else
  ms.save_checkpoint(net, folder .. "/alone.safetensors")
end
