-- The shared library of light models: the examples in C and C++, as gcc and clang build them, give what the program gives.
--   lunaria examples_test.lua FOLDER_OF_THE_LIBRARY [instrumented]
local ms = require "lunaria"

local library, instrumented = arg[1], arg[2] == "instrumented"
local folder = os.tmpname()
os.remove(folder)
assert(os.execute("mkdir " .. folder))

local function output(words)
  local pipe = assert(io.popen(words .. " 2>&1"))
  local text = pipe:read "a"
  return pipe:close(), text
end

local function bytes_of(x)
  local parts = {}
  for i, number in ipairs(x:reshape({ -1 }):tolist()) do parts[i] = string.pack("<f", number) end
  return table.concat(parts)
end

ms.set_seed(1)
local nn = ms.nn
local nets = {
  mlp = { nn.SequentialCell(nn.Dense(16, 32), nn.ReLU(), nn.Dense(32, 5), nn.Softmax()), ms.ops.randn { 3, 16 } },
  lenet = {
    nn.SequentialCell(nn.Conv2d(1, 6, 5, { pad_mode = "valid", has_bias = true }), nn.ReLU(), nn.MaxPool2d(2, 2),
      nn.Conv2d(6, 16, 5, { pad_mode = "valid", has_bias = true }), nn.ReLU(), nn.MaxPool2d(2, 2), nn.Flatten(),
      nn.Dense(400, 120), nn.ReLU(), nn.Dense(120, 84), nn.ReLU(), nn.Dense(84, 10)),
    ms.ops.randn { 2, 1, 32, 32 },
  },
}

local function built(name)
  local programs = {}
  for _, compiler in ipairs { "gcc -std=c11 %s.c", "clang-19 -std=c11 %s.c", "g++ -std=c++17 %s.cpp", "clang++-19 -std=c++17 %s.cpp" } do
    local program = folder .. "/" .. name .. #programs
    if os.execute("command -v " .. compiler:match "%S+" .. " >/dev/null") then
      local ok, text = output(compiler:format("tests/lite/examples/" .. name) .. " -Wall -Wextra -Werror -O1 -Icore/lite/runtime -L" ..
        library .. " -Wl,-rpath," .. library .. " -llunaria-lite -o " .. program .. (instrumented and " -fsanitize=address" or ""))
      assert(ok, text)
      programs[#programs + 1] = program
    end
  end
  assert(#programs >= 2)
  return programs
end
local programs = built "run"

for name, case in pairs(nets) do
  local net, x = case[1], case[2]
  local model, data = folder .. "/" .. name .. ".lite", folder .. "/" .. name .. ".bin"
  ms.lite.convert(net, { inputs = { x }, outputFile = model })
  local expected = net(x):reshape({ -1 }):tolist()
  local got = ms.lite.Model(model):predict(x):reshape({ -1 }):tolist()
  for i, wanted in ipairs(expected) do assert(math.abs(got[i] - wanted) <= 1e-5, name) end
  local file <close> = io.open(data, "wb")
  file:write(bytes_of(x))
  file:flush()
  for k, program in ipairs(programs) do
    local ok, text = output(program .. " " .. model .. " " .. k .. " 0 " .. data)
    assert(ok, text)
    local numbers = {}
    for number in text:gmatch "%-?%d+%.%d%d%d%d%d%d" do numbers[#numbers + 1] = tonumber(number) end
    assert(#numbers == #expected, text)
    for i, wanted in ipairs(expected) do assert(math.abs(numbers[i] - wanted) <= 1e-5, name .. ": " .. text) end
  end
end
-- Training: losses and the exported network are those of the program itself.
do
  local net, x = nets.lenet[1], nets.lenet[2]
  local labels = ms.tensor({ 3, 7 }, ms.int32)
  local loss_fn = nn.SoftmaxCrossEntropyWithLogits { sparse = true, reduction = "mean" }
  local optimizer = nn.Momentum(net:trainable_params(), 0.05, 0.9)
  local model, exported = folder .. "/train.lite", folder .. "/exported.lite"
  local files = { folder .. "/x.bin", folder .. "/y.bin" }
  ms.lite.convert_training(net, loss_fn, optimizer, { inputs = { x, labels }, outputFile = model })
  for i, bytes in ipairs { bytes_of(x), string.pack("<i4i4", 3, 7) } do
    local file <close> = io.open(files[i], "wb")
    file:write(bytes)
  end
  local step = ms.value_and_grad(function() return loss_fn(net(x), labels) end, nil, optimizer.parameters)
  local losses = {}
  net:set_train(true)
  for i = 1, 5 do
    local loss, gradients = step()
    losses[i] = loss:item()
    optimizer(gradients)
  end
  net:set_train(false)
  local expected = net(x)
  for _, program in ipairs(built "train") do
    local ok, text = output(table.concat({ program, model, 5, 0.05, exported, files[1], files[2] }, " "))
    assert(ok, text)
    local i = 0
    for number in text:gmatch "%-?%d+%.%d+" do
      i = i + 1
      assert(math.abs(tonumber(number) - losses[i]) <= 1e-4 * (1 + losses[i]), text)
    end
    assert(i == 5, text)
    local error = ms.ops.amax(ms.ops.abs(ms.lite.Model(exported):predict(x) - expected)):item()
    assert(error <= 1e-3 * ms.ops.amax(ms.ops.abs(expected)):item(), error)
  end
end
local ok, text = output(programs[1] .. " " .. folder .. "/not_there.lite")
assert(not ok and text:find("not_there.lite", 1, true), text)

if not instrumented then
  local file = library .. "/liblunaria-lite.so"
  assert(output("strip -o " .. folder .. "/stripped " .. file))
  local stripped <close> = io.open(folder .. "/stripped", "rb")
  local size = stripped:seek "end"
  assert(size <= 1.5 * 1024 * 1024, ("the library has %d bytes"):format(size))
  local _, needed = output("ldd " .. file)
  for _, name in ipairs { "lua", "LLVM", "blas", "dnnl", "gomp", "json" } do assert(not needed:find(name), needed) end
end
os.execute("rm -r " .. folder)
