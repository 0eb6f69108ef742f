-- Runs PyTorch's models in FOLDER/trace and FOLDER/graph, eager and compiled, and writes networks of the zoo as FOLDER/NAME.onnx
-- with their inputs and outputs: a part of tests/lua/onnx_peers_test.py.
local ms = require "lunaria"
local folder = arg[1]

local function check_models(root)
  for _, name in ipairs { "resnet18", "mobilenet_v2", "gpt2", "bert" } do
    local place = ("%s/%s/%s/"):format(folder, root, name)
    local f, _, about = ms.load(place .. "model.onnx")
    local inputs, expected, list = ms.load(place .. "inputs.safetensors"), ms.load(place .. "outputs.safetensors"), {}
    for i, input in ipairs(about.inputs) do list[i] = inputs[input.name] end
    for mode, run in pairs { eager = f, graph = ms.jit(f) } do
      for _ = 1, 3 do
        local results = { run(table.unpack(list)) }
        for i, output in ipairs(about.outputs) do
          local wanted = expected[output.name]
          local worst = (results[i] - wanted):abs():max():item() / math.max(1, wanted:abs():max():item())
          assert(worst <= 1e-5, ("%s %s (%s): output '%s' differs by %g"):format(root, name, mode, output.name, worst))
        end
      end
    end
  end
end
for _, root in ipairs { "trace", "graph" } do
  local there = io.open(("%s/%s/bert/model.onnx"):format(folder, root))
  if there then check_models(root) end
end

local function export(name, net, x)
  ms.export(net, x, { file_name = ("%s/%s"):format(folder, name), file_format = "ONNX" })
  local results, named = { net(x) }, {}
  for i, y in ipairs(results) do named["o" .. i - 1] = y end
  local _, _, about = ms.load(("%s/%s.onnx"):format(folder, name))
  ms.save(("%s/%s.in.safetensors"):format(folder, name), { [about.inputs[1].name] = x })
  ms.save(("%s/%s.out.safetensors"):format(folder, name), named)
end

-- What the standard, or onnxruntime, does not have in the form that we do.
local kernel, bias = ms.randn { 3, 2, 3, 3 }, ms.randn { 2 }
for n, c in ipairs { { 1, 3, 0, 2 }, { 2, 3, 0, 2 }, { 1, 3, 1, 2 }, { 2, 1, 1, 1 } } do
  local function f(x) return ms.ops.conv_transpose2d(x, kernel, bias, c[1], c[3], c[4], 1, c[2]) end
  export("transposed_" .. n, f, ms.randn { 2, 3, 6, 6 })
end

export("truths", function(x)
  local list, b = {}, ms.ops.greater(x, 0)
  for _, f in ipairs { ms.ops.all, ms.ops.any } do
    for _, y in ipairs { b, x, ms.ops.floor(x) } do
      for _, axis in ipairs { 0, -1 } do list[#list + 1] = f(y, axis) end
      list[#list + 1], list[#list + 2] = f(y), f(y, { 0, 2 }, true)
    end
  end
  return table.unpack(list)
end, ms.randn { 2, 3, 4 })

local nn = ms.nn
local picture = nn.SequentialCell(nn.Conv2d(1, 16, 3), nn.ReLU(), nn.Conv2d(16, 32, 3, { has_bias = true, stride = 2 }), nn.ReLU(),
  nn.Flatten(), nn.Dense(512, 10)):set_train(false)
for name, options in pairs {
  whole = {}, wide = { bit_num = 16, activation_bit_num = 16 }, narrow = { per_channel = false, activation_bit_num = 6 },
  dynamic = { quant_type = "DYNAMIC_QUANT" }, blocks = { quant_type = "WEIGHT_QUANT", bit_num = 4 },
} do
  options.calibrate_data = { ms.randn { 50, 1, 8, 8 } }
  export("quantised_" .. name, ms.lite.quantize(picture, options), ms.randn { 3, 1, 8, 8 })
end

for _, network in ipairs(dofile "tests/lua/support/zoo_networks.lua") do export(table.unpack(network)) end
