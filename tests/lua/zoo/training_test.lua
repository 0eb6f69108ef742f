-- Every network of notebooks/zoo that is not in networks_test.lua has as many trained parameters as its authors say; all of them
-- compute and are trained for one step.
package.path = "tests/lua/?.lua;" .. package.path
local t = require "harness"
local ms = require "lunaria"
local ops = ms.ops

local function zoo(name) return dofile("notebooks/zoo/" .. name .. ".lua") end

local function count(net)
  local sum = 0
  for _, parameter in ipairs(net:trainable_params()) do sum = sum + parameter.size end
  return sum
end

-- Several steps, as graph mode compiles what is called again; every parameter is changed, and the first loss is the largest.
local function trains(net, loss_of, rate)
  net:set_train()
  local params, before = net:trainable_params(), {}
  for i, p in ipairs(params) do before[i] = p:copy() end
  local optimizer = ms.nn.Adam(params, rate or 1e-3)
  local step = ms.value_and_grad(loss_of, nil, params)
  local losses = {}
  for i = 1, 4 do
    local loss, grads = step()
    assert(ms.amp.all_finite(grads):item(), "gradients must be finite")
    losses[i] = loss:item()
    optimizer(grads)
  end
  for i, p in ipairs(params) do
    -- A normalisation behind takes a shift out again.
    assert(p.name:find "beta$" or (p - before[i]):abs():max():item() > 0, p.name .. " is not trained")
  end
  assert(losses[4] < losses[1], ("the loss went from %g to %g"):format(losses[1], losses[4]))
  net:set_train(false)
end

local cross_entropy = ops.cross_entropy
ms.set_seed(11)

local function classifies(title, make, input, rate)
  t.test(title .. " is trained", function()
    ms.set_seed(3)
    local net, labels = make(), ops.arange(1, input.shape[1] + 1)
    trains(net, function() return cross_entropy(net(input), labels) end, rate or 1e-4)
  end)
end

-- Enough values under every normalisation: over two of them it gives 1 and -1 whatever they are, and a step goes anywhere.
local pictures, picture = ms.randn { 4, 3, 64, 64 }, ms.randn { 2, 3, 32, 32 }
classifies("LeNet-5", function() return zoo("lenet").lenet5(10, { pad = 2 }) end, ms.randn { 2, 1, 28, 28 })
classifies("ResNet-18", function() return zoo("resnet").resnet18(5, 8) end, pictures)
classifies("ResNet-50", function() return zoo("resnet").resnet50(5, 8) end, pictures)
classifies("MobileNetV2", function() return zoo("mobilenet_v2").mobilenet_v2(5) end, pictures, 1e-3)
classifies("ViT", function()
  return zoo("vit").vit_b_16 { classes = 5, picture = 32, part = 16, width = 8, layers = 2, heads = 2 }
end, picture)

-- As many as there are with one layer, and that layer's for each further one: the largest do not fit everywhere.
local function by_layers(make, config, layers_of)
  local layers = config.layers
  config.layers = 1
  local net = make(config)
  return count(net) + (layers - 1) * count(layers_of(net)[1])
end

t.test("GPT-2 small to XL and BERT-large have the published sizes", function()
  local gpt2, bert = zoo "gpt2", zoo "bert"
  for size, parameters in pairs { small = 124439808, medium = 354823168, large = 774030080, xl = 1557611200 } do
    t.equal(by_layers(gpt2.gpt2, gpt2.config(size), function(net) return net.h end), parameters)
    collectgarbage()
  end
  t.equal(by_layers(bert.bert, bert.config "large", function(net) return net.encoder.layers end), 335141888)
  t.fails("there is no size huge", gpt2.config, "huge")
end)

local tiny = { vocabulary = 23, length = 8, width = 8, layers = 2, heads = 2 }
local tokens = ms.randint(0, 23, { 2, 8 })

t.test("GPT-2 is trained and writes", function()
  local gpt2 = zoo "gpt2"
  local net = gpt2.gpt2(tiny)
  trains(net, function() return cross_entropy(net(tokens):reshape { -1, 23 }, tokens:roll(-1, 1):reshape { -1 }) end)
  local written = gpt2.write(net, tokens[{ ms.slice(0, 1) }], 3, 1)
  t.equal(tostring(written.shape), "(1, 11)")
  t.equal(written[{ 0, ms.slice(0, 8) }], tokens[0])
  t.equal(written[{ 0, 8 }]:item(), ops.argmax(net(tokens[{ ms.slice(0, 1) }])[{ 0, -1 }], 0):item())
end)

t.test("BERT is trained to say what was masked", function()
  local net = zoo("bert").masked_lm(tiny)
  local masked = tokens:copy()
  masked[{ ms.slice(nil, nil), 3 }] = 0
  trains(net, function() return cross_entropy(net(masked)[{ ms.slice(nil, nil), 3 }], tokens[{ ms.slice(nil, nil), 3 }]) end)
end)

t.test("U-Net", function()
  local unet = zoo("unet").unet
  t.equal(count(unet(3, 1)), 31037633)
  t.equal(count(unet(3, 2)), 31037698)
  collectgarbage()
  ms.set_seed(5)
  local net, truth = unet(3, 1, 4), ops.greater(ms.randn { 2, 1, 32, 32 }, 0.0):astype(ms.float32)
  t.equal(tostring(net(picture).shape), "(2, 1, 32, 32)")
  trains(net, function() return ops.binary_cross_entropy_with_logits(net(picture), truth) end)
end)

t.test("the LSTM classifier", function()
  t.equal(count(zoo("lstm").classifier()), 2757761)
  local net = zoo("lstm").classifier { vocabulary = 23, width = 6, hidden = 5, layers = 2, classes = 3 }
  t.equal(tostring(net(tokens).shape), "(2, 3)")
  -- All words are seen, also those that a table's row is for.
  local all = ops.arange(24):reshape { 2, 12 } % 23
  trains(net, function() return cross_entropy(net(all), ms.tensor({ 0, 2 }, ms.int64)) end, 1e-2)
end)

t.test("the transformer", function()
  local transformer = zoo "transformer"
  -- 65 million in the paper, which counts in millions and says "about" of the table's 37,000 rows.
  t.equal(count(transformer.transformer()), 63082496)
  collectgarbage()
  ms.set_seed(2)
  local net = transformer.transformer { vocabulary = 23, length = 16, width = 8, heads = 2, inner = 16, layers = 2, dropout = 0.0 }
  local source, target = tokens, ms.randint(0, 23, { 2, 6 })
  t.equal(tostring(net(source, target).shape), "(2, 6, 23)")
  -- A later token changes nothing before it.
  local other = target:copy()
  other[{ 0, 5 }] = (target[{ 0, 5 }]:item() + 1) % 23
  t.near(net(source, target)[{ 0, 4 }], net(source, other)[{ 0, 4 }], 1e-5)
  trains(net, function() return cross_entropy(net(source, target):reshape { -1, 23 }, target:roll(-1, 1):reshape { -1 }) end)
  local written = net:translate(source, 1, 2, 4)
  assert(written.shape[1] == 2 and written.shape[2] >= 2 and written.shape[2] <= 5)
  net = transformer.transformer { vocabulary = 3, length = 3, width = 4, heads = 2, inner = 4, layers = 1, dropout = 0.0 }
  t.near(net.table_of_positions, { { 0, 1, 0, 1 }, { math.sin(1), math.cos(1), math.sin(0.01), math.cos(0.01) },
    { math.sin(2), math.cos(2), math.sin(0.02), math.cos(0.02) } }, 1e-6)
end)

t.test("DCGAN", function()
  local dcgan = zoo "dcgan"
  t.equal(count(dcgan.generator()), 3576704)
  t.equal(count(dcgan.discriminator()), 2765568)
  ms.set_seed(4)
  local generator, discriminator = dcgan.generator(4, 1, 10), dcgan.discriminator(4, 1)
  generator:set_train()
  discriminator:set_train()
  t.equal(tostring(generator(ms.randn { 3, 10, 1, 1 }).shape), "(3, 1, 64, 64)")
  local step, real = dcgan.trainer(generator, discriminator, 1e-3), ms.rand { 3, 1, 64, 64 }
  local first, last
  for _ = 1, 6 do
    local loss_d, loss_g = step(real, ms.randn { 3, 10, 1, 1 })
    assert(loss_g:item() == loss_g:item())
    first, last = first or loss_d:item(), loss_d:item()
  end
  assert(last < first, ("the discriminator's loss went from %g to %g"):format(first, last))
end)

t.test("the variational autoencoder", function()
  local vae = zoo "vae"
  t.equal(count(vae.vae()), 652824)
  local net, x = vae.vae(30, 12, 3), ms.rand { 4, 30 }
  trains(net, function() return net:loss(x) end, 1e-2)
  -- The divergence of a normal distribution from the standard one, where nothing is to be told.
  net.encode = function() return ms.ones { 4, 3 }, ops.log(ms.ones { 4, 3 } * 4.0) end
  net.decode = function() return (ms.rand { 4, 30 } - 0.5) * 0.0 + 200.0 end
  t.near(net:loss(ms.ones { 4, 30 }):item(), 3 * 0.5 * (1 + 4 - 1 - math.log(4)), 1e-5)
end)

t.test("networks over graphs", function()
  local graph = zoo "graph"
  t.equal(count(graph.gcn()), 23063)
  t.equal(count(graph.gat()), 92373)
  local edges = ms.tensor { { 0.0, 1.0, 0.0, 0.0 }, { 1.0, 0.0, 1.0, 0.0 }, { 0.0, 1.0, 0.0, 0.0 }, { 0.0, 0.0, 0.0, 0.0 } }
  local normalized = graph.normalized(edges)
  t.near(normalized[0], { 1 / 2, 1 / math.sqrt(6), 0, 0 }, 1e-6)
  t.near(normalized[3], { 0, 0, 0, 1 }, 1e-6)
  ms.set_seed(6)
  local x, labels = ms.randn { 4, 5 }, ms.tensor({ 0, 1, 0, 2 }, ms.int64)
  local gcn, gat = graph.gcn(5, 6, 3), graph.gat(5, 4, 2, 3)
  -- What a node does not reach changes nothing.
  local other = x:copy()
  other[3] = 9.0
  t.near(gcn(x, normalized)[{ ms.slice(0, 3) }], gcn(other, normalized)[{ ms.slice(0, 3) }], 1e-6)
  t.near(gat(x, edges)[{ ms.slice(0, 3) }], gat(other, edges)[{ ms.slice(0, 3) }], 1e-6)
  -- An attention of one head, written out for the first node.
  local first = gat.conv2
  local wide = x:repeat_interleave(2, 1)[{ ms.slice(nil, nil), ms.slice(0, 8) }]
  local h, y = first.lin(wide), first(wide, edges)
  local function score(i, j)
    local s = ops.sum(h[j] * first.att_src[0]):item() + ops.sum(h[i] * first.att_dst[0]):item()
    return math.exp(s > 0 and s or 0.2 * s)
  end
  local own, near = score(0, 0), score(0, 1)
  t.near(y[0], (h[0] * own + h[1] * near) / (own + near) + first.bias, 1e-5)
  gcn.dropout, gat.conv1.dropout, gat.conv2.dropout = ms.nn.Identity(), ms.nn.Identity(), ms.nn.Identity()
  trains(gcn, function() return cross_entropy(gcn(x, normalized), labels) end, 1e-2)
  trains(gat, function() return cross_entropy(gat(x, edges), labels) end, 1e-2)
end)

t.test("Wide & Deep", function()
  local make = zoo("clicks").wide_and_deep
  t.equal(count(make()), 200000 + 1 + 200000 * 80 + 3120 * 1024 + 1024 + 1024 * 512 + 512 + 512 * 256 + 256 + 256 * 128 + 128 + 128 + 1)
  local net = make { vocabulary = 6, fields = 3, width = 4, layers = { 8, 5 } }
  local ids, values = ms.tensor({ { 0, 1, 2 }, { 3, 4, 5 } }, ms.int64), ms.tensor { { 1.0, 0.5, 1.0 }, { 1.0, 2.0, 1.0 } }
  t.equal(tostring(net(ids, values).shape), "(2,)")
  local clicks = ms.tensor { 0.0, 1.0 }
  trains(net, function() return ops.binary_cross_entropy_with_logits(net(ids, values), clicks) end, 1e-2)
end)

t.test("DeepFM", function()
  local make = zoo("clicks").deepfm
  t.equal(count(make()), 200000 + 1 + 200000 * 10 + 390 * 400 + 400 + 2 * (400 * 400 + 400) + 400 + 1)
  local net = make { vocabulary = 6, fields = 3, width = 4, layers = { 8 }, dropout = 0.0 }
  local ids, values = ms.tensor({ { 0, 1, 2 }, { 3, 4, 5 } }, ms.int64), ms.tensor { { 1.0, 0.5, 1.0 }, { 1.0, 2.0, 1.0 } }
  -- Pairs of features, one after the other.
  local v, deep = net.embedding.embedding_table, net.deep(ops.flatten(net.embedding(ids) * ops.expand_dims(values, 2)))
  local wanted = deep[{ 1, 0 }]:item() + net.bias[0]:item()
  for i = 0, 2 do
    wanted = wanted + net.linear.embedding_table[{ 3 + i, 0 }]:item() * values[{ 1, i }]:item()
    for k = i + 1, 2 do
      wanted = wanted + ops.sum(v[3 + i] * v[3 + k]):item() * values[{ 1, i }]:item() * values[{ 1, k }]:item()
    end
  end
  t.near(net(ids, values)[1]:item(), wanted, 1e-5)
  local clicks = ms.tensor { 0.0, 1.0 }
  trains(net, function() return ops.binary_cross_entropy_with_logits(net(ids, values), clicks) end, 1e-2)
end)

t.finish()
