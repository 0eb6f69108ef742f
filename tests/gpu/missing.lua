-- Machines that lack the GPU, its driver or a part of it: what is said, and that the rest goes on.
--   usage: missing.lua LUNARIA FOLDER_OF_THE_MOCK
package.path = "tests/lua/?.lua;" .. package.path
local t = require "harness"
local program, folder = arg[1], arg[2]

local script = [[
local ms = require "lunaria"
local ok, message = pcall(%s)
print(ok, message)
print((ms.tensor { 1, 2 } + 1):sum():item(), table.concat(ms.runtime.devices(), " "))
]]

-- What the call says with these variables in the environment, and what the session computes afterwards.
local function said(call, environment)
  local path = os.tmpname()
  local file = assert(io.open(path, "w"))
  file:write(script:format(call))
  file:close()
  local pipe = assert(io.popen(("env %s '%s' %s 2>&1"):format(environment, program, path)))
  local text = pipe:read "a"
  pipe:close()
  os.remove(path)
  return text
end

local function expect(name, environment, ...)
  local parts = { ... }
  for _, call in ipairs { "ms.set_device, 'GPU'", "ms.set_context, { device_target = 'GPU' }", "ms.tensor(1).to, ms.tensor(1), 'GPU'" } do
    t.test(name .. ": " .. call, function()
      local text = said(call, environment)
      for _, part in ipairs(parts) do
        if not text:find(part, 1, true) then error(("%q is not in %q"):format(part, text)) end
      end
      t.equal(text:match "\n(5\tCPU Separate Ascend)\n$", "5\tCPU Separate Ascend")
    end)
  end
end

local mock = "LD_LIBRARY_PATH=" .. folder .. " "
local none = os.tmpname()
os.remove(none)
-- A file of this name that is no library hides a driver that is there.
os.execute(("mkdir -p %s && : > %s/libcuda.so.1"):format(none, none))
expect("no driver", "LD_LIBRARY_PATH=" .. none, "false", "GPU", "no CUDA driver: libcuda.so.1", "11.8",
  "hint: there are: CPU, Separate, Ascend")
expect("an old driver", mock .. "LUNARIA_MOCK_VERSION=11040", "false", "libcuda.so.1 is for CUDA 11.4", "11.8")
expect("no processor", mock .. "LUNARIA_MOCK_COUNT=0", "false", "libcuda.so.1 finds no processor")
expect("an old processor", mock .. "LUNARIA_MOCK_MAJOR=7", "false", "the processor Mock has the architecture sm_70", "sm_80")
os.execute(("rm -r %s"):format(none))

t.test("with a driver there is a third device", function()
  local text = said("ms.set_device, 'GPU'", mock)
  t.equal(text, "true\tnil\n5\tCPU Separate GPU Ascend\n")
end)

t.finish()
