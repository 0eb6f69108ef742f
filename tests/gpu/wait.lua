-- LUNARIA_GPU_WAIT=1 on the GPU behind the mock of its driver: what fails in a kernel is told by the call itself.
package.path = "tests/lua/?.lua;" .. package.path
local ms = require "lunaria"
local mock = require "mock_control"
local t = require "harness"
local ops = ms.ops

ms.set_context { device_target = "GPU" }
local illegal_address = 700

t.test("an operator that fails says so itself", function()
  local x = ops.ones { 5000 } + 1
  mock.fail("kernel", 1, illegal_address)
  local line = debug.getinfo(1, "l").currentline + 1
  local ok, message = pcall(function() return ops.tanh(x) end)
  t.equal(ok, false)
  for _, part in ipairs { "wait.lua:" .. line .. ": tanh: the device failed", "CUDA_ERROR_ILLEGAL_ADDRESS" } do
    if not message:find(part, 1, true) then error(part .. " is not in " .. message) end
  end
  t.equal((ops.ones { 3 } + 1):tolist(), { 2.0, 2.0, 2.0 })
end)

t.test("every kernel is waited for", function()
  local x = ops.ones { 5000 }
  local waits, kernels = mock.calls "cuStreamSynchronize", mock.calls "cuLaunchKernel"
  for _ = 1, 10 do x = ops.tanh(x) end
  t.equal(mock.calls "cuLaunchKernel" - kernels, 10)
  t.equal(mock.calls "cuStreamSynchronize" - waits, 10)
end)

t.finish()
