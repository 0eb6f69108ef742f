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

local function zoo(name) return dofile("notebooks/zoo/" .. name .. ".lua") end

local function export(name, net, x)
  net:set_train(false)
  ms.export(net, x, { file_name = ("%s/%s"):format(folder, name), file_format = "ONNX" })
  local results, named = { net(x) }, {}
  for i, y in ipairs(results) do named["o" .. i - 1] = y end
  local _, _, about = ms.load(("%s/%s.onnx"):format(folder, name))
  ms.save(("%s/%s.in.safetensors"):format(folder, name), { [about.inputs[1].name] = x })
  ms.save(("%s/%s.out.safetensors"):format(folder, name), named)
end

ms.set_seed(7)
local picture, tokens = ms.randn { 2, 3, 64, 64 }, ms.randint(0, 50, { 2, 7 })
local tiny = { vocabulary = 50, length = 16, width = 8, layers = 2, heads = 2 }
export("lenet", zoo("lenet").lenet5(10, { pad = 2 }), ms.randn { 2, 1, 28, 28 })
export("resnet18", zoo("resnet").resnet18(5), picture)
export("resnet50", zoo("resnet").resnet50(5), picture)
export("mobilenet_v2", zoo("mobilenet_v2").mobilenet_v2(5), picture)
export("alexnet", zoo("alexnet").alexnet(5), picture)
export("gpt2", zoo("gpt2").gpt2(tiny), tokens)
export("bert", zoo("bert").bert(tiny), tokens)
export("vit", zoo("vit").vit_b_16 { classes = 5, picture = 64, part = 16, width = 8, layers = 2, heads = 2 }, picture)
export("unet", zoo("unet").unet(3, 2, 8), picture)
export("yolo", zoo("yolo").yolov3_tiny(5), picture)
export("lstm", zoo("lstm").classifier { vocabulary = 50, width = 8, hidden = 8, classes = 2 }, tokens)
export("ssd", zoo("ssd").ssd300(5), ms.randn { 1, 3, 300, 300 })
export("generator", zoo("dcgan").generator(), ms.randn { 2, 100, 1, 1 })
export("discriminator", zoo("dcgan").discriminator(), picture)
