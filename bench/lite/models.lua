-- Networks as light models and as ONNX files, for bench/lite/models.py.
--   lunaria bench/lite/models.lua FOLDER
package.path = "notebooks/?.lua;" .. package.path
local ms = require "lunaria"
local nn, ops = ms.nn, ms.ops

local function mlp() return nn.SequentialCell(nn.Dense(784, 512), nn.ReLU(), nn.Dense(512, 512), nn.ReLU(), nn.Dense(512, 10)) end
local function bert()
  local zoo = require "lunaria.zoo.bert"
  local config = zoo.config "base"
  config.layers = 4
  return zoo.bert(config)
end

local nets = {
  lenet = { require "lunaria.zoo.lenet".lenet5, { 1, 1, 32, 32 } },
  mlp = { mlp, { 1, 784 } },
  mlp_64 = { mlp, { 64, 784 } },
  resnet18 = { require "lunaria.zoo.resnet".resnet18, { 1, 3, 224, 224 } },
  mobilenet_v2 = { require "lunaria.zoo.mobilenet_v2".mobilenet_v2, { 1, 3, 224, 224 } },
  bert_4_layers = { bert, { 1, 128 }, "tokens" },
}
ms.set_seed(1)
for name, row in pairs(nets) do
  local net = row[1]()
  net:set_train(false)
  local x = row[3] and ops.randint(0, 1000, row[2]) or ops.randn(row[2])
  ms.export(net, x, { file_name = arg[1] .. "/" .. name, file_format = "ONNX" })
  ms.lite.convert(net, { inputs = { x }, outputFile = arg[1] .. "/" .. name .. ".lite" })
end
