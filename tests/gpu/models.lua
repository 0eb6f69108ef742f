-- Training steps of the six models of the benches on the GPU behind the mock of its driver: what is left to the host, how
-- many kernels run, how many bytes travel and in how many launches may not rise above what bench/README.md tells.
--   usage: models.lua [print]
-- With `print` it gives the lines of that table.
package.path = "tests/lua/?.lua;./?.lua;" .. package.path
local ms = require "lunaria"
local mock = require "mock_control"
local t = require "harness"
local networks = require "bench.networks"
local nn, ops = ms.nn, ms.ops

ms.set_context { device_target = "GPU" }

local function classes(count) return ops.randint(0, 10, { count }) end
local function tokens() return ops.randint(0, 256, { 1, 128 }) end
local function momentum(params) return nn.Momentum(params, 1e-5, 0.9) end

-- Small batches: the number of kernels does not depend on them. They do nothing while they are counted.
local models = {
  { "mlp", networks.mlp, function(params) return nn.Adam(params, 1e-6) end, function() return ops.randn { 4, 784 }, classes(4) end },
  { "lenet", networks.lenet, momentum, function() return ops.randn { 2, 1, 32, 32 }, classes(2) end },
  { "resnet18", networks.resnet18, momentum, function() return ops.randn { 2, 3, 8, 8 }, classes(2) end },
  { "gpt", networks.gpt, function(params) return ms.mint.optim.AdamW(params, { lr = 1e-6, weight_decay = 0.01 }) end,
    function() return tokens(), tokens() end },
  { "lstm", networks.lstm, momentum, function() return ops.randn { 4, 2, 128 }, classes(2) end },
}

local function step_of(make, make_optimizer, inputs)
  local net = make()
  net:set_train(true)
  local params = net:trainable_params()
  local optimizer = make_optimizer(params)
  local gradient = ms.value_and_grad(networks.loss(net), nil, params)
  local x, y = inputs()
  return function()
    local value, grads = gradient(x, y)
    optimizer(grads)
    return value
  end
end

-- Two layers of tanh units in a loop over the time.
local function rnn_step()
  local hidden = 32
  local x, start = ops.randn { 8, 1, hidden }, ops.zeros { 1, hidden }
  local function matrix() return ops.randn { hidden, hidden } * 0.1 end
  local w1, u1, w2, u2 = matrix(), matrix(), matrix(), matrix()
  local b1, b2 = ops.zeros { hidden }, ops.zeros { hidden }
  local gradient = ms.value_and_grad(networks.rnn, { 2, 3, 4, 5, 6, 7 })
  return function()
    local value = gradient(x, start, w1, u1, b1, w2, u2, b2)
    return value
  end
end

local moved = { "cuMemcpyHtoDAsync_v2", "cuMemcpyDtoHAsync_v2", "cuMemcpyDtoDAsync_v2" }
local function counted()
  local bytes = 0
  for _, name in ipairs(moved) do bytes = bytes + mock.bytes(name) end
  return mock.calls "kernels", bytes, mock.calls "cuLaunchKernel" + mock.calls "cuGraphLaunch"
end

-- Of one step: what was left to the host, kernels, bytes, launches.
local function measure(step)
  -- Compiled functions compile in their first calls.
  for _ = 1, 4 do step() end
  ms.synchronize "GPU"
  ms.runtime.forget_fallbacks()
  local kernels, bytes, launches = counted()
  step()
  ms.synchronize "GPU"
  local more_kernels, more_bytes, more_launches = counted()
  local left, names = 0, {}
  for _, entry in ipairs(ms.runtime.fallbacks()) do
    left = left + entry.calls
    names[#names + 1] = entry.operator
  end
  return { left = left, kernels = more_kernels - kernels, bytes = more_bytes - bytes, launches = more_launches - launches,
    names = table.concat(names, " ") }
end

-- name mode -> numbers
local told = {}
for line in io.lines "bench/README.md" do
  local name, mode, left, kernels, bytes, launches = line:match "^| (%w+) | (%w+) | (%d+) | (%d+) | (%d+) | (%d+) |"
  if name then
    told[name .. " " .. mode] = { left = tonumber(left), kernels = tonumber(kernels), bytes = tonumber(bytes),
      launches = tonumber(launches) }
  end
end

local function check(name, mode, make)
  t.test(name .. ", " .. mode, function()
    ms.set_seed(1)
    local step = make()
    mock.skip_kernels(true)
    local found = measure(mode == "graph" and ms.jit(step) or step)
    mock.skip_kernels(false)
    if arg[1] == "print" then
      print(("| %s | %s | %d | %d | %d | %d |"):format(name, mode, found.left, found.kernels, found.bytes, found.launches))
      return
    end
    local bound = told[name .. " " .. mode] or error "bench/README.md tells nothing of it"
    if found.left > bound.left then error(("%d calls are left to the host: %s"):format(found.left, found.names)) end
    for _, what in ipairs { "kernels", "bytes", "launches" } do
      if found[what] > bound[what] then error(("%d %s, and there were %d"):format(found[what], what, bound[what])) end
    end
  end)
end

for _, mode in ipairs { "eager", "graph" } do
  for _, model in ipairs(models) do
    check(model[1], mode, function() return step_of(table.unpack(model, 2)) end)
  end
  check("rnn", mode, rnn_step)
end

t.test("the driver was used as it is to be used", function() t.equal(mock.blamed(), "") end)

t.finish()
