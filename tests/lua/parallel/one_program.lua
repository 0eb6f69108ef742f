-- Programs that run on any number of ranks with one line before them: the lesson of twelve steps, a small GPT and three networks of the
-- zoo. Writes losses and parameters, bit by bit, to a file for each rank.
--   lunaria launch -n N tests/lua/parallel/one_program.lua FOLDER PROGRAM [graph] [long] [alone | laid]
-- alone: without that line. laid: tensors are laid out on four ranks, which this process simulates.
local ms = require "lunaria"
local nn, ops = ms.nn, ms.ops

local folder, name = arg[1], arg[2]
local flags = {}
for i = 3, #arg do flags[arg[i]] = true end
if flags.graph then ms.set_context { mode = ms.GRAPH_MODE } end
-- The line.
if flags.laid then
  ms.set_auto_parallel_context { device_num = 4, dataset_strategy = "full_batch" }
elseif not flags.alone then
  ms.set_auto_parallel_context { parallel_mode = "data_parallel", gradients_mean = true, full_batch = true, logical_shards = 8 }
end

local rank, ranks = ms.communication.get_rank(), ms.communication.get_group_size()
local out = assert(io.open(("%s/%d-of-%d.txt"):format(folder, rank, ranks), "w"))
local function write_parameters(net)
  for parameter, value in net:parameters_and_names() do
    local bits = {}
    for _, v in ipairs(value:full():reshape({ -1 }):tolist()) do bits[#bits + 1] = ("%a"):format(v) end
    out:write(parameter, " ", table.concat(bits, " "), "\n")
  end
end

-- In graph mode steps have to be compiled.
local function check_compiled(step, least)
  if not flags.graph then return end
  local calls = ms.jit_report(step.value_and_gradients).compiled_calls
  if calls < least then error(("%s: only %d calls are compiled"):format(name, calls)) end
end

-- Steps of training with batches that each rank makes alike.
local function train(net, loss, optimizer, batch, steps)
  local step = nn.TrainOneStepCell(nn.WithLossCell(flags.laid and ms.AutoParallel(net) or net, loss), optimizer)
  step:set_train()
  for _ = 1, steps do out:write(("loss %a\n"):format(step(batch()):item())) end
  if not flags.laid and not flags.alone then check_compiled(step, steps) end
  write_parameters(net)
end

local steps = flags.long and 100 or 6
local programs = {}

-- A notebook's cells, one after the other; a last line may be a value, as there.
local function run_notebook(path, changes)
  local file = assert(io.open(path))
  local notebook = ms.json.decode(file:read "a")
  file:close()
  local env = setmetatable({ ms = ms, print = function() end }, { __index = _G })
  for _, cell in ipairs(notebook.cells) do
    if cell.cell_type == "code" then
      local text = table.concat(cell.source)
      for from, to in pairs(changes) do text = text:gsub(from, to) end
      local f = load(text, path, "t", env)
      if not f then
        local before, last = text:match "^(.-)([^\n]+)\n*$"
        f = assert(load(before .. "return " .. last, path, "t", env))
      end
      f()
    end
  end
  return env
end

function programs.lesson()
  local changes = flags.long and {} or { ["num_samples = 9600"] = "num_samples = 192", ["num_samples = 2000"] = "num_samples = 100",
    ["num_samples = 1920"] = "num_samples = 64", ["epochs, steps = 3"] = "epochs, steps = 1" }
  local env = run_notebook("notebooks/07-twelve-steps.ipynb", changes)
  check_compiled(env.model.train_network, 6)
  write_parameters(env.net)
  write_parameters(env.other)
end

local function tokens(rows, length, most) return ms.randint(0, most, { rows, length }) end

function programs.gpt()
  local net = dofile "notebooks/zoo/gpt2.lua".gpt2 { vocabulary = 40, length = 16, width = 32, layers = 2, heads = 4 }
  local function loss(scores, y) return ops.cross_entropy(scores:reshape { -1, 40 }, y:reshape { -1 }) end
  train(net, loss, nn.AdamWeightDecay(net:trainable_params(), 3e-3), function()
    local text = tokens(16, 17, 40)
    return text[{ ms.slice(), ms.slice(0, 16) }], text[{ ms.slice(), ms.slice(1, 17) }]
  end, steps)
end

local function pictures(channels, size)
  return function() return ops.randn(16, channels, size, size), ms.randint(0, 10, { 16 }):astype(ms.int32) end
end

function programs.lenet()
  local net = dofile "notebooks/zoo/lenet.lua".lenet5(10)
  train(net, nn.CrossEntropyLoss(), nn.Momentum(net:trainable_params(), 0.05, 0.9), pictures(1, 32), steps)
end

function programs.resnet()
  local net = dofile "notebooks/zoo/resnet.lua".resnet18(10, 8, { 1, 1, 1, 1 })
  train(net, nn.CrossEntropyLoss(), nn.Adam(net:trainable_params(), 0.01), pictures(3, 32), steps)
end

function programs.transformer()
  local net = dofile "notebooks/zoo/transformer.lua".transformer { vocabulary = 30, length = 12, width = 16, heads = 2, inner = 32,
    layers = 1, dropout = 0.1 }
  local Translation = nn.Cell:extend "Translation"
  function Translation:init() self.net = net end
  function Translation:construct(pair) return self.net(pair[{ ms.slice(), 0 }], pair[{ ms.slice(), 1 }]) end
  local function loss(scores, y) return ops.cross_entropy(scores:reshape { -1, 30 }, y:reshape { -1 }) end
  local cell = Translation()
  train(cell, loss, nn.Adam(cell:trainable_params(), 0.003), function()
    return ms.randint(0, 30, { 16, 2, 8 }), tokens(16, 8, 30)
  end, steps)
end

ms.set_seed(5)
programs[name]()
out:close()
