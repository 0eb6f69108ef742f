-- The networks of notebooks/zoo have as many trained parameters as their authors say, and compute.
package.path = "tests/lua/?.lua;" .. package.path
local t = require "harness"
local ms = require "lunaria"

local function zoo(name) return dofile("notebooks/zoo/" .. name .. ".lua") end

local function count(net)
  local sum = 0
  for _, parameter in ipairs(net:trainable_params()) do sum = sum + parameter.size end
  return sum
end

-- The number of parameters, and the shape of what the network (or a smaller one of its kind) gives.
local function network(title, parameters, make, small, input, shape)
  t.test(title, function()
    t.equal(count(make()), parameters)
    collectgarbage()
    local net = small()
    local y
    for _ = 1, 2 do y = net(input) end
    t.equal(tostring(y.shape), shape)
    assert(ms.amp.all_finite(y):item())
  end)
end

local lenet, resnet, gpt2, bert, vit = zoo "lenet", zoo "resnet", zoo "gpt2", zoo "bert", zoo "vit"
local mobilenet = zoo "mobilenet_v2"
ms.set_seed(7)
local picture = ms.randn { 2, 3, 64, 64 }
local tokens = ms.randint(0, 50, { 2, 7 })
local tiny = { vocabulary = 50, length = 16, width = 8, layers = 2, heads = 2 }

network("LeNet-5", 61706, lenet.lenet5, function() return lenet.lenet5(10, { pad = 2 }) end, ms.randn { 2, 1, 28, 28 }, "(2, 10)")
network("ResNet-18", 11689512, resnet.resnet18, function() return resnet.resnet18(5) end, picture, "(2, 5)")
network("ResNet-50", 25557032, resnet.resnet50, function() return resnet.resnet50(5) end, picture, "(2, 5)")
network("MobileNetV2", 3504872, mobilenet.mobilenet_v2, function() return mobilenet.mobilenet_v2(5) end, picture, "(2, 5)")
network("AlexNet", 61100840, zoo("alexnet").alexnet, function() return zoo("alexnet").alexnet(5) end, ms.randn { 1, 3, 64, 64 }, "(1, 5)")
network("GPT-2 small", 124439808, gpt2.gpt2, function() return gpt2.gpt2(tiny) end, tokens, "(2, 7, 50)")
network("BERT-base", 109482240, bert.bert, function() return bert.bert(tiny) end, tokens, "(2, 7, 8)")
network("ViT-B/16", 86567656, vit.vit_b_16, function()
  return vit.vit_b_16 { classes = 5, picture = 64, part = 16, width = 8, layers = 2, heads = 2 }
end, picture, "(2, 5)")

t.test("VGG16", function()
  t.equal(count(zoo("vgg").vgg16()), 138357544)
end)

t.test("GPT-2 does not look ahead, and learns", function()
  ms.set_seed(1)
  local net = gpt2.gpt2(tiny)
  local other = tokens:copy()
  other[{ 0, 6 }] = (tokens[{ 0, 6 }]:item() + 1) % 50
  local a, b = net(tokens), net(other)
  t.near(a[{ 0, 5 }], b[{ 0, 5 }], 1e-5)
  assert((a[{ 0, 6 }] - b[{ 0, 6 }]):abs():max():item() > 1e-4)
  local loss_fn = ms.nn.CrossEntropyLoss()
  local model = ms.Model(net, function(scores, labels)
    return loss_fn(scores:reshape { -1, 50 }, labels:reshape { -1 })
  end, ms.nn.optim.AdamW(net:trainable_params(), 0.02))
  local history = ms.train.History()
  model:train(40, { { tokens, tokens:roll(-1, 1) } }, history)
  local losses = history.history.loss
  assert(losses[40] < 0.3 * losses[1], losses[40])
end)

t.finish()
