-- The C interface: the examples in C and C++ give what the program gives here, for ONNX and MindIR files.
--   lunaria library_test.lua EXAMPLE_IN_C EXAMPLE_IN_CPP
local ms = require "lunaria"

local folder = os.tmpname()
os.remove(folder)
assert(os.execute("mkdir " .. folder))
ms.set_seed(1)
local net = ms.nn.SequentialCell(ms.nn.Dense(4, 8), ms.nn.ReLU(), ms.nn.Dense(8, 3))
local x = ms.ones { 2, 4 } * 0.5
local files = {}
for _, format in ipairs { "ONNX", "MINDIR" } do
  ms.export(net, x, { file_name = folder .. "/net", file_format = format })
  files[#files + 1] = folder .. "/net." .. format:lower()
end

local function output(words)
  local pipe = assert(io.popen(words .. " 2>&1"))
  local text = pipe:read "a"
  return pipe:close(), text
end

for _, program in ipairs { arg[1], arg[2] } do
  for _, file in ipairs(files) do
    local ok, text = output(program .. " " .. file)
    assert(ok, text)
    local numbers = {}
    for number in text:gmatch "%-?%d+%.%d%d%d%d%d%d" do numbers[#numbers + 1] = tonumber(number) end
    local expected = net(x):reshape({ -1 }):tolist()
    assert(#numbers == #expected, text)
    for i, wanted in ipairs(expected) do assert(math.abs(numbers[i] - wanted) <= 2e-6, text) end
  end
  local ok, text = output(program .. " " .. folder .. "/not_there.onnx")
  assert(not ok and text:find("not_there.onnx", 1, true), text)
end
local _, text = output(arg[1] .. " " .. files[1])
assert(text:find("input x: dtype 9, shape (2, 4)", 1, true) and text:find("output output: dtype 9, shape (2, 3)", 1, true), text)
os.execute("rm -r " .. folder)
