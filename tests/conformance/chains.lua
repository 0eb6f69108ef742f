-- The networks of the reference training runs in stages, one for each rank: lists of cells that follow one another.
local ms = require "lunaria"
local models = require "models"

local nn, ops = ms.nn, ms.ops

local Step = nn.Cell:extend("Step")
-- A cell that computes f(x) with other cells and parameters, which it has as fields.
function Step:init(f, fields)
  self.f = f
  for name, field in pairs(fields or {}) do self[name] = field end
end
Step.auto_prefix = false
function Step:construct(x) return self.f(x) end

local function pictures(x)
  local side = math.tointeger(x.shape[2] ^ 0.5)
  return x:reshape { -1, 1, side, side }
end

-- Of each network its cells in order.
local chains = {}
function chains.mlp(net) return { net.fc1, net.relu, net.fc2 } end
function chains.mlp_tanh(net) return { net.fc1, net.fc2, net.fc3 } end
function chains.lenet(net)
  return { Step(pictures), net.conv1, net.relu, net.pool, net.conv2, nn.ReLU(), nn.MaxPool2d(2, 2), net.flatten, net.fc1, nn.ReLU(),
    net.fc2 }
end
function chains.bnet(net)
  return { Step(pictures), net.conv, net.bn, net.gelu, Step(function(x) return ops.mean(x, { 2, 3 }) end), net.fc }
end

-- The embedding is the first and the last layer: both are in stage 0, in different segments.
local function gpt_parts(net, stages)
  local list, stage_of, segment_of = {}, {}, {}
  local function add(cell, stage, segment)
    list[#list + 1] = cell
    stage_of[tostring(#list)], segment_of[tostring(#list)] = stage, segment
  end
  add(Step(function(x) return ops.gather(net.wte, x, 0) + net.wpe end, { wte = net.wte, wpe = net.wpe }), 0, 0)
  local blocks = math.max(1, stages - 1)
  for stage = 1, stages - 1 do
    local first, last = (stage - 1) * net.count // blocks, stage * net.count // blocks - 1
    if first > last then add(nn.Identity(), stage, 0) end
    for i = first, last do
      local block = net["h" .. i]
      add(Step(function(h) return block(h, net.mask) end, { block = block }), stage, 0)
    end
  end
  add(Step(function(h) return ops.matmul(net.lnf(h), net.wte.T) end, { lnf = net.lnf, wte = net.wte }), 0, 1)
  for stage = 1, stages - 1 do add(nn.Identity(), stage, 1) end
  return list, stage_of, segment_of
end

-- The network of a run as a pipeline over all ranks; nil and a reason where it has fewer layers.
return function(net, run)
  local stages = ms.communication.get_group_size()
  local micro = run.batch % stages == 0 and stages or 1
  local list, stage_of, segment_of
  if run.model == "gpt_mini" then
    if micro == 1 or net.count < stages - 1 then return nil, "a pipeline of " .. stages .. " stages" end
    list, stage_of, segment_of = gpt_parts(net, stages)
  else
    -- Statistics of a batch are those of all of it.
    if run.model == "bnet" then micro = 1 end
    list, stage_of = chains[run.model](net), {}
    local layers, number = 0, 0
    for _, cell in ipairs(list) do layers = layers + (#cell:trainable_params() > 0 and 1 or 0) end
    if layers < stages then return nil, "a pipeline of " .. stages .. " stages" end
    for i, cell in ipairs(list) do
      stage_of[tostring(i)] = math.min(number * stages // layers, stages - 1)
      if #cell:trainable_params() > 0 then number = number + 1 end
    end
  end
  local Loss = nn.Cell:extend("Loss")
  function Loss:construct(logits, labels) return models.loss(logits, labels) / micro end -- luacheck: ignore 212
  return nn.PipelineCell(nn.WithLossCell(nn.SequentialCell(list), Loss()), micro, { stage_config = stage_of, segment_config = segment_of })
end
