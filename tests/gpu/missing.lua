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

-- Libraries beside the driver.
local function libraries_said(environment)
  return said("function() return table.concat(ms.runtime.libraries 'GPU', '; ') end", environment)
end
for _, file in ipairs { "cublasLt.so.13", "cublasLt.so.12", "cublasLt.so.11", "cudnn.so.9", "cudnn.so.8" } do
  os.execute((": > %s/lib%s"):format(none, file))
end
local none_of_them = ("LD_LIBRARY_PATH=%s:%s "):format(folder, none)
local libraries = "LD_LIBRARY_PATH=" .. folder .. ":" .. folder .. "/libraries "
for _, case in ipairs {
  { "no libraries", none_of_them, "cuBLASLt was not found: libcublasLt.so.13, libcublasLt.so.12, libcublasLt.so.11", "LD_LIBRARY_PATH",
    "cuDNN was not found: libcudnn.so.9, libcudnn.so.8" },
  { "libraries", libraries, "cuBLASLt 13.1.0 (libcublasLt.so.13); cuDNN 9.19.0 (libcudnn.so.9)" },
  { "an old cuBLASLt", libraries .. "LUNARIA_MOCK_CUBLASLT=110205", "cuBLASLt is too old: libcublasLt.so.13 is 11.2.5; it takes 11.4.1" },
  { "an old cuDNN", libraries .. "LUNARIA_MOCK_CUDNN=8005", "cuDNN is too old: libcudnn.so.9 is 8.0.5; it takes 8.1.0" },
  { "libraries that are not to be used", libraries .. "LUNARIA_GPU_LIBRARIES=0", "cuBLASLt is not to be used: LUNARIA_GPU_LIBRARIES is 0" },
} do
  t.test(case[1], function()
    local text = libraries_said(case[2])
    for i = 3, #case do
      if not text:find(case[i], 1, true) then error(("%q is not in %q"):format(case[i], text)) end
    end
    t.equal(text:match "\n(5\tCPU Separate GPU Ascend)\n$", "5\tCPU Separate GPU Ascend")
  end)
end

os.execute(("rm -r %s"):format(none))

t.test("with a driver there is a third device", function()
  local text = said("ms.set_device, 'GPU'", mock)
  t.equal(text, "true\tnil\n5\tCPU Separate GPU Ascend\n")
end)

t.finish()
