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
  return { make = function() return make(require("zoo." .. file)) end, inputs = inputs, forward = forward, optimizer = optimizer,
    dtype = dtype }
end

local function bert(size, optimizer)
  return row("bert", function(z)
    local c = z.config(size)
    c.vocabulary = 21128
    return z.masked_lm(c)
  end, function(batch) return ops.zeros({ batch, 128 }, ms.int32), ops.zeros({ batch * 20 }, ms.int32) end, masked, optimizer, "mixed")
end

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
for name, size in pairs { gpt2 = "small", gpt2_medium = "medium", gpt2_large = "large", gpt2_xl = "xl" } do
  M[name] = row("gpt2", function(z) return z.gpt2(size) end, words(1024), predict, "adamw", "mixed")
end

return M
