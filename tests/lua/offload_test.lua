-- Memory of a device that waits in host memory, of forward passes and optimizers: the same bits, and less memory of the device.
package.path = "tests/lua/?.lua;" .. package.path
local t = require "harness"
local ms = require "lunaria"
local moved_bytes = require "lunaria.autodiff".swapped_bytes
local nn, ops = ms.nn, ms.ops

local device, width, rows, layers = "Separate", 64, 256, 6

-- What is not needed any more is given back, also what finalizers hold.
local function settle()
  collectgarbage()
  collectgarbage()
  ms.synchronize(device)
end

local function network(swaps)
  ms.set_seed(3)
  local list = {}
  for i = 1, layers do
    list[i] = nn.SequentialCell(nn.Dense(width, width), nn.Tanh(), nn.Dense(width, width), nn.LayerNorm { width }, nn.GELU(),
      nn.Dropout { p = 0.1 })
    if swaps then list[i]:offload() end
  end
  return nn.SequentialCell(list):to(device)
end

local function steps(swaps)
  local net = network(swaps)
  local step = nn.TrainOneStepCell(nn.WithLossCell(net, nn.MSELoss()), nn.Adam(net:trainable_params(), 0.01))
  step:set_train()
  local x, y = ops.randn({ rows, width }, nil, 1):to(device), ops.randn({ rows, width }, nil, 2):to(device)
  local losses, peak, moved = {}, nil, nil
  for k = 1, 3 do
    settle()
    local before = ms.runtime.memory_allocated(device)
    local bytes = moved_bytes()
    ms.runtime.reset_peak_memory_stats(device)
    losses[k] = step(x, y):item()
    peak, moved = ms.runtime.max_memory_allocated(device) - before, moved_bytes() - bytes
  end
  local list = {}
  for i, p in ipairs(net:trainable_params()) do list[i] = p:to "CPU":tolist() end
  return losses, list, peak, moved
end

t.test("losses and parameters have the same bits, the device has less to keep", function()
  local losses, parameters, peak, moved = steps(false)
  local others, same, less, swapped = steps(true)
  t.equal(others, losses)
  t.equal(same, parameters)
  t.equal(moved, 0)
  assert(swapped >= layers * 4 * rows * width * 4, swapped)
  assert(less < 0.8 * peak, less / peak)
end)

t.test("between the passes a layer has its result on the device, and nothing else", function()
  local autodiff = require "lunaria.autodiff"
  local one = rows * width * 4
  local function kept(swaps)
    local list = {}
    for i = 1, layers do
      list[i] = nn.SequentialCell(nn.Dense(width, width), nn.Tanh(), nn.Dense(width, width), nn.LayerNorm { width }, nn.GELU())
      if swaps then list[i]:offload() end
    end
    local net = nn.SequentialCell(list):to(device):set_train()
    local params, x = net:trainable_params(), ops.randn({ rows, width }, nil, 1):to(device)
    settle()
    local before = ms.runtime.memory_allocated(device)
    ms.runtime.reset_peak_memory_stats(device)
    local pull, _, y = autodiff.vjp(function(v) return net(v) end, { [0] = true }, params, x)
    settle()
    local live, peak = ms.runtime.memory_allocated(device) - before, ms.runtime.max_memory_allocated(device) - before
    return live / one, peak / one, pull(ops.ones_like(y))
  end
  local all = kept(false)
  local few, peak = kept(true)
  -- Dense, tanh, dense and normalisation each keep a tensor; at most one layer has them there.
  t.equal(all, 4.0 * layers)
  t.equal(few, 1.0 * layers)
  assert(peak <= layers + 4, peak)
end)

t.test("states of an optimizer are on the device in its steps alone", function()
  local function run(swaps)
    ms.set_seed(3)
    local net = nn.Dense(width, width):to(device)
    local optimizer = nn.Adam(net:trainable_params(), 0.01)
    local step = nn.TrainOneStepCell(nn.WithLossCell(net, nn.MSELoss()), optimizer)
    if swaps then optimizer:offload() end
    local x = ops.randn({ rows, width }, nil, 1):to(device)
    local losses = {}
    for k = 1, 4 do
      -- States that are saved and loaded between steps are those on the host.
      if k == 3 then optimizer:load_state_dict(optimizer:state_dict()) end
      losses[k] = step(x, x):item()
    end
    local where, bytes = {}, 0
    for _, state in optimizer:parameters_and_names() do
      if state.ndim > 0 then where[state.device], bytes = true, bytes + state.nbytes end
    end
    return losses, where, bytes, optimizer
  end
  local losses, where, bytes = run(false)
  t.equal(where, { [device] = true })
  local others, there, same, optimizer = run(true)
  t.equal(others, losses)
  t.equal(there, { CPU = true })
  t.equal(same, bytes)
  optimizer:offload(false)
  for _, state in optimizer:parameters_and_names() do assert(state.ndim == 0 or state.device == device) end
end)

t.test("gradients of inputs, several inputs, none of data, cells that do not train, and the way back", function()
  local Two = nn.Cell:extend "Two"
  function Two:init() self.w = ms.Parameter(ops.randn({ 4, 4 }, nil, 5), "w") end
  function Two:construct(x, y, labels) return ops.tanh(x:matmul(self.w)) * y + labels:float() end
  local cell = Two():to(device):set_train()
  local x, y = ops.randn({ 4, 4 }, nil, 6):to(device), ops.randn({ 4, 4 }, nil, 7):to(device)
  local labels = ops.ones({ 4, 4 }, ms.int32):to(device)
  local function all()
    local of_inputs, of_weights = ms.grad(function(a, b) return cell(a, b, labels):sum() end, { 0, 1 }, { cell.w })(x, y)
    return { of_inputs[1]:to "CPU":tolist(), of_inputs[2]:to "CPU":tolist(), of_weights[1]:to "CPU":tolist() }
  end
  local plain = all()
  local before = moved_bytes()
  cell:offload()
  t.equal(all(), plain)
  assert(moved_bytes() > before)
  before = moved_bytes()
  cell:set_train(false)
  t.equal(all(), plain)
  cell:set_train(true):offload(false)
  t.equal(all(), plain)
  t.equal(moved_bytes(), before)
  -- In host memory there is nothing to move.
  cell:to "CPU":offload()
  x, y, labels = x:to "CPU", y:to "CPU", labels:to "CPU"
  t.near(all()[3], plain[3], 1e-6)
  t.equal(moved_bytes(), before)
  t.fails("mode must be", cell.offload, cell, "yes")
end)

t.finish()
