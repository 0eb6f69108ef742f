-- Networks of notebooks/zoo with the weights of transformers' and torchvision's give what those give. weights/ was written by
-- make_weights.py; another folder written by it is the first argument.
package.path = "tests/lua/?.lua;" .. package.path
local t = require "harness"
local ms = require "lunaria"

local folder = arg and arg[1] or "tests/lua/zoo/weights"
local weights = dofile "notebooks/zoo/weights.lua"
local file = assert(io.open(folder .. "/expected.json"))
local expected = ms.json.decode(file:read "a")
file:close()

local function near(got, wanted, count)
  got = got:reshape { -1 }:tolist()
  t.equal(#got, count or #wanted)
  local largest = 0
  for i, value in ipairs(wanted) do largest = math.max(largest, math.abs(value)) end
  for i, value in ipairs(wanted) do
    if math.abs(got[i] - value) > 2e-4 * largest then error(("element %d is %g, expected %g"):format(i, got[i], value), 2) end
  end
end

local function inputs(case)
  local list = {}
  for i, x in ipairs(case.inputs) do list[i] = ms.tensor(x, ms.int64) end
  return table.unpack(list)
end

t.test("GPT-2 from several files with an index", function()
  local case = expected.gpt2
  local net = dofile("notebooks/zoo/gpt2.lua").gpt2(case.config)
  t.equal(weights.load(net, folder .. "/gpt2", weights.gpt2), {})
  for _ = 1, 3 do near(net(inputs(case)), case.outputs[1]) end
  near(ms.ops.argmax(net(inputs(case)), -1), ms.ops.argmax(ms.tensor(case.outputs[1]):reshape { 2, 7, -1 }, -1):reshape { -1 }:tolist())
end)

t.test("BERT, its pooled token, and what was masked", function()
  local case = expected.bert
  local bert = dofile "notebooks/zoo/bert.lua"
  local tokens, segments, mask = inputs(case)
  local padding = ms.ops.equal(mask, 0)
  local kept = ms.ops.expand_dims(ms.ops.equal(mask, 1), 2)
  local net = bert.bert(case.config)
  local left = weights.load(net, folder .. "/bert.safetensors", weights.bert)
  table.sort(left)
  t.equal(left, { "bias", "transform.bias", "transform.weight", "transform_norm.beta", "transform_norm.gamma" })
  local head = bert.masked_lm(case.config)
  t.equal(weights.load(head, folder .. "/bert.safetensors", weights.bert), { "pooler.bias", "pooler.weight" })
  for _ = 1, 3 do
    local features, pooled = net(tokens, segments, padding)
    near(ms.ops.masked_select(features, kept), case.outputs[1])
    near(pooled, case.outputs[2])
    near(ms.ops.masked_select(head(tokens, segments, padding), kept), case.outputs[3])
  end
end)

for _, source in ipairs { "torchvision", "transformers" } do
  t.test("ResNet of " .. source, function()
    local case = expected["resnet_" .. source]
    local net = dofile("notebooks/zoo/resnet.lua").resnet50(5, case.config.width, case.config.counts)
    t.equal(weights.load(net, ("%s/resnet_%s.safetensors"):format(folder, source), weights.resnet), {})
    local x = ms.ops.sin(ms.ops.arange(3 * 32 * 32):astype(ms.float32) * 0.37):reshape { 1, 3, 32, 32 }
    for _ = 1, 3 do near(net(x), case.outputs[1]) end
  end)
end

t.test("weights of another network are an error", function()
  local net = dofile("notebooks/zoo/gpt2.lua").gpt2(expected.gpt2.config)
  t.fails("no parameter of the network has a name of the checkpoint", weights.load, net, folder .. "/bert.safetensors", weights.bert)
  local config = { vocabulary = 53, length = 16, width = 8, layers = 2, heads = 2 }
  t.fails("has shape", weights.load, dofile("notebooks/zoo/gpt2.lua").gpt2(config), folder .. "/gpt2", weights.gpt2)
  local values = ms.load_checkpoint(folder .. "/bert.safetensors")
  values["bert.encoder.layer.0.attention.self.key.weight"] = nil
  t.fails("key.weight is missing beside", weights.joined, values, weights.bert)
end)

t.finish()
