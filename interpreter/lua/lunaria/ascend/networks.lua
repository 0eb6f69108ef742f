-- Networks that estimates know by name: how each is made, fed and trained.
local ms = require "lunaria"
local ops, nn = ms.ops, ms.nn

local function pictures(size, classes)
  return function(batch) return ops.zeros { batch, 3, size, size }, ops.zeros({ batch }, ms.int32), classes end
end

local function words(length)
  return function(batch) return ops.zeros({ batch, length }, ms.int32), ops.zeros({ batch * length }, ms.int32) end
end

local function entropy() return nn.SoftmaxCrossEntropyWithLogits { sparse = true, reduction = "mean" } end

local function classify(net)
  local loss = entropy()
  return function(x, y) return loss(net(x), y) end
end

local function predict(net)
  local loss = entropy()
  return function(x, y)
    local scores = net(x)
    return loss(ops.reshape(scores, { -1, scores.shape[#scores.shape] }), y)
  end
end

-- Masked language modelling: 20 places of each text are predicted, and whether two texts follow each other.
local function masked(net)
  local loss = entropy()
  return function(x, y)
    local features = net:features(x)
    local width = features.shape[3]
    local chosen = ops.reshape(features[{ ms.slice(nil, nil), ms.slice(0, 20) }], { -1, width })
    local z = net.transform_norm(ops.gelu_erf(net.transform(chosen)))
    return loss(ops.matmul(z, ops.swapaxes(net.word_embeddings.embedding_table, 0, 1)) + net.bias, y)
  end
end

local function row(file, make, inputs, forward, optimizer, dtype)
  return { make = function() return make(require("lunaria.zoo." .. file)) end, inputs = inputs, forward = forward, optimizer = optimizer,
    dtype = dtype }
end

local function bert(size, optimizer)
  return row("bert", function(z)
    local c = z.config(size)
    c.vocabulary = 21128
    return z.masked_lm(c)
  end, function(batch) return ops.zeros({ batch, 128 }, ms.int32), ops.zeros({ batch * 20 }, ms.int32) end, masked, optimizer, "mixed")
end

local function binary(scores, y) return ops.binary_cross_entropy_with_logits(scores, y) end

-- Clicks by 39 fields of Criteo, each with a number and a value.
local function clicks(batch) return ops.zeros({ batch, 39 }, ms.int32), ops.zeros { batch, 39 }, ops.zeros { batch } end

local function score_clicks(net)
  return function(ids, values, y) return binary(net(ids, values), y) end
end

-- Cora has 2,708 nodes, which are one batch whatever the batch is.
local function nodes() return ops.zeros { 2708, 1433 }, ops.zeros { 2708, 2708 }, ops.zeros({ 2708 }, ms.int32) end

local function classify_nodes(net)
  local loss = entropy()
  return function(x, edges, y) return loss(net(x, edges), y) end
end

local detectors = {
  ssd300 = function(net)
    local loss = require("lunaria.zoo.ssd").loss
    return function(x, labels, wanted)
      local scores, offsets = net(x)
      return loss(scores, offsets, labels, wanted)
    end
  end,
  yolov3_tiny = function(net)
    local loss = require("lunaria.zoo.yolo").loss
    return function(x, fine, coarse)
      local a, b = net(x)
      return loss(a, fine) + loss(b, coarse)
    end
  end,
}

local M = {
  resnet18 = row("resnet", function(z) return z.resnet18(1001) end, pictures(224), classify, "momentum"),
  resnet50 = row("resnet", function(z) return z.resnet50(1001) end, pictures(224), classify, "momentum"),
  resnet101 = row("resnet", function(z) return z.resnet50(1001, 64, { 3, 4, 23, 3 }) end, pictures(224), classify, "momentum"),
  resnet152 = row("resnet", function(z) return z.resnet50(1001, 64, { 3, 8, 36, 3 }) end, pictures(224), classify, "momentum"),
  lenet = row("lenet", function(z) return z.lenet5() end, function(batch)
    return ops.zeros { batch, 1, 32, 32 }, ops.zeros({ batch }, ms.int32)
  end, classify, "momentum"),
  alexnet = row("alexnet", function(z) return z.alexnet(1000) end, pictures(224), classify, "momentum"),
  vgg16 = row("vgg", function(z) return z.vgg16(1000) end, pictures(224), classify, "momentum"),
  mobilenet_v2 = row("mobilenet_v2", function(z) return z.mobilenet_v2(1000) end, pictures(224), classify, "momentum"),
  vit_b_16 = row("vit", function(z) return z.vit_b_16(1001) end, pictures(224), classify, "adamw"),
  bert_base = bert("base", "lamb"),
  bert_large = bert("large", "lamb"),
}
M.ssd300 = row("ssd", function(z) return z.ssd300() end, function(batch)
  return ops.zeros { batch, 3, 300, 300 }, ops.zeros({ batch, 8732 }, ms.int32), ops.zeros { batch, 8732, 4 }
end, detectors.ssd300, "momentum")
M.yolov3_tiny = row("yolo", function(z) return z.yolov3_tiny() end, function(batch)
  return ops.zeros { batch, 3, 416, 416 }, ops.zeros { batch, 3, 26, 26, 85 }, ops.zeros { batch, 3, 13, 13, 85 }
end, detectors.yolov3_tiny, "momentum")
M.unet = row("unet", function(z) return z.unet() end, function(batch)
  return ops.zeros { batch, 3, 256, 256 }, ops.zeros { batch, 1, 256, 256 }
end, function(net)
  return function(x, y) return binary(net(x), y) end
end, "adam")
M.lstm = row("lstm", function(z) return z.classifier() end, function(batch)
  return ops.zeros({ batch, 200 }, ms.int32), ops.zeros { batch, 1 }
end, function(net)
  return function(x, y) return binary(net(x), y) end
end, "adam")
M.transformer = row("transformer", function(z) return z.transformer() end, function(batch)
  return ops.zeros({ batch, 128 }, ms.int32), ops.zeros({ batch, 128 }, ms.int32), ops.zeros({ batch * 128 }, ms.int32)
end, function(net)
  local loss = entropy()
  return function(source, target, y)
    local scores = net(source, target)
    return loss(ops.reshape(scores, { -1, scores.shape[3] }), y)
  end
end, "adam", "mixed")
M.dcgan_generator = row("dcgan", function(z) return z.generator() end, function(batch)
  return ops.zeros { batch, 100, 1, 1 }
end, function(net)
  return function(noise) return ops.mean(net(noise)) end
end, "adam")
M.dcgan_discriminator = row("dcgan", function(z) return z.discriminator() end, function(batch)
  return ops.zeros { batch, 3, 64, 64 }, ops.zeros { batch }
end, function(net)
  return function(x, y) return binary(net(x), y) end
end, "adam")
M.vae = row("vae", function(z) return z.vae() end, function(batch) return ops.zeros { batch, 784 } end, function(net)
  return function(x) return net:loss(x) end
end, "adam")
M.gcn = row("graph", function(z) return z.gcn() end, nodes, classify_nodes, "adam")
M.gat = row("graph", function(z) return z.gat() end, nodes, classify_nodes, "adam")
M.wide_and_deep = row("clicks", function(z) return z.wide_and_deep() end, clicks, score_clicks, "adam", "mixed")
M.deepfm = row("clicks", function(z) return z.deepfm() end, clicks, score_clicks, "adam", "mixed")
M.dqn = row("dqn", function(z) return z.q_network() end, function(batch)
  return ops.zeros { batch, 4 }, ops.zeros { batch, 2 }
end, function(net)
  return function(states, wanted) return ops.smooth_l1_loss(net(states), wanted, 1.0, "mean") end
end, "adam")
M.ppo = row("ppo", function(z) return z.actor_critic() end, function(batch)
  return ops.zeros { batch, 4 }, ops.zeros({ batch }, ms.int32), ops.zeros { batch }, ops.zeros { batch }, ops.zeros { batch }
end, function(net)
  return function(states, actions, old, advantages, wanted)
    return require("lunaria.zoo.ppo").loss(net, states, actions, old, advantages, wanted, 0.2)
  end
end, "adam")
for name, size in pairs { gpt2 = "small", gpt2_medium = "medium", gpt2_large = "large", gpt2_xl = "xl" } do
  M[name] = row("gpt2", function(z) return z.gpt2(size) end, words(1024), predict, "adamw", "mixed")
end
-- Networks for many devices: GPT-3 (Brown and others 2020), PanGu-alpha (Zeng and others 2021), as far as published without its
-- query layer.
for name, c in pairs { gpt3 = { vocabulary = 50257, length = 2048, width = 12288, layers = 96, heads = 96 },
  pangu_alpha = { vocabulary = 40000, length = 1024, width = 16384, layers = 64, heads = 128 } } do
  M[name] = row("gpt2", function(z) return z.gpt2(c) end, words(c.length), predict, "adam", "mixed")
end

return M
