-- A small training in stages: on as many ranks as stages, or in one process. Arguments: the file for what comes out, the scheduler, the
-- micro-batches, the stages, the segments, the optimizer, and whether gradients are asked for apart from the training.
local ms = require "lunaria"
local nn = ms.nn

local out, scheduler, micro, stages, segments, optimizer_name, how, replicas = table.unpack(arg)
micro, stages, segments = math.tointeger(tonumber(micro)), math.tointeger(tonumber(stages)), math.tointeger(tonumber(segments))

-- With replicas of the pipeline each has a part of the rows, and of the micro-batches.
replicas = math.tointeger(tonumber(replicas or 1))
if ms.communication.get_group_size() > 1 and replicas > 1 then
  ms.set_auto_parallel_context { dataset_strategy = "full_batch" }
  micro = micro // replicas
else
  replicas = 1
end
ms.set_seed(11)
local list = {}
local layers = stages * segments
for i = 1, layers do
  list[#list + 1] = nn.Dense(6, 6)
  list[#list + 1] = nn.Tanh()
end
local net = nn.SequentialCell(table.unpack(list))
local stage_config, segment_config = {}, {}
for i = 1, layers do
  local stage, segment = (i - 1) % stages, (i - 1) // stages
  -- The second segments of a V begin where the first ones end.
  if scheduler == "zero_bubble_v" and segment == 1 then stage = stages - 1 - stage end
  stage_config[tostring(2 * i - 1)], segment_config[tostring(2 * i - 1)] = stage, segment
end
-- The stages of cells by attributes, the segments by names.
if segments == 1 then
  for i = 1, layers do net[2 * i - 1].pipeline_stage = i - 1 end
  stage_config, segment_config = nil, nil
end
local pipe = nn.PipelineCell(nn.WithLossCell(net, nn.MSELoss()), micro, { stage_config = stage_config, segment_config = segment_config,
  scheduler = scheduler })
local optimizer = nn[optimizer_name](pipe:trainable_params(), 0.05)
local losses = {}
if how == "cell" then
  local step = nn.TrainOneStepCell(pipe, optimizer)
  step:set_train()
  for k = 1, 5 do
    local x = ms.ops.randn { 8, 6 }
    losses[k] = replicas * step(x, ms.ops.tanh(x:flip(1))):item()
  end
else
  local gradient = ms.value_and_grad(function(x, y) return pipe(x, y) end, nil, optimizer.parameters)
  for k = 1, 5 do
    local x = ms.ops.randn { 8, 6 }
    local loss, grads = gradient(x, ms.ops.tanh(x:flip(1)))
    optimizer(grads)
    losses[k] = replicas * loss:item()
  end
end
local rank = ms.communication.get_rank()
if ms.communication.get_group_size() > 1 then
  -- What each rank holds goes to one checkpoint.
  ms.save_checkpoint(net, out, { sharded = true, step = 5 })
else
  ms.save_checkpoint(net, out .. ".safetensors")
end
if rank == 0 then print(ms.json.encode(losses)) end
