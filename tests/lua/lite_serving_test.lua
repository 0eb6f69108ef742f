-- Requests of a model server without sockets: contents, runs together, prefixes of prompts that are computed once. What a client sees
-- of a server is in tests/interpreter/model_server_test.py.
-- Eager mode only: the decoder compiles its steps in either mode, and the others are single operators.
package.path = "tests/lua/?.lua;" .. package.path
local t = require "harness"
local ms = require "lunaria"
local core = require "lunaria.serving"
local models = require "lunaria.lite.serving.models"
local predict = require "lunaria.lite.serving.predict"

local runs = 0
local model = {
  inputs = { { name = "x", dtype = "float32", shape = { -1, 2 } }, { name = "y", dtype = "float32", shape = { -1, 1 } } },
  outputs = { { name = "sum" } },
  run = function(tensors)
    runs = runs + 1
    return { tensors[1] + tensors[2] }
  end,
}

local function request(x, y)
  return predict.read(model, "application/json", ms.json.encode { inputs = { x = x, y = y } })
end

t.test("requests with the same sizes run together, and each gets its rows", function()
  local list = { request({ { 1, 2 } }, { { 10 } }), request({ { 3, 4 }, { 5, 6 } }, { { 20 }, { 30 } }) }
  t.equal(list[1].key, list[2].key)
  runs = 0
  predict.run(model, list)
  t.equal(runs, 1)
  t.equal(ms.json.decode((predict.written(model, list[1]))), { outputs = { sum = { { 11, 12 } } } })
  t.equal(list[2].outputs[1], ms.tensor { { 23.0, 24.0 }, { 35.0, 36.0 } })
end)

t.test("a network whose rows are not answered one by one runs each request by itself", function()
  local mean = setmetatable({ run = function(tensors) return { tensors[1]:mean() + tensors[2]:mean() } end }, { __index = model })
  local list = { request({ { 1, 3 } }, { { 10 } }), request({ { 3, 5 } }, { { 20 } }) }
  predict.run(mean, list)
  t.equal(list[1].outputs[1]:item(), 12.0)
  t.equal(list[2].outputs[1]:item(), 24.0)
end)

t.test("a request that fails takes no other with it", function()
  local picky = setmetatable({ run = function(tensors)
    if tensors[1]:sum():item() > 5 then error "too much" end
    return { tensors[1] }
  end }, { __index = model })
  local list = { request({ { 1, 3 } }, { { 10 } }), request({ { 30, 5 } }, { { 20 } }) }
  predict.run(picky, list)
  t.equal(list[1].outputs[1], ms.tensor { { 1.0, 3.0 } })
  assert(list[2].problem:find "too much")
end)

t.test("contents as safetensors and npy are read and written", function()
  local x, y = ms.tensor { { 1.0, 2.0 } }, ms.tensor { { 5.0 } }
  local one = predict.read(model, "application/x-safetensors", core.safetensors({ "x", "y" }, { x, y }))
  predict.run(model, { one })
  local body, type = predict.written(model, one)
  t.equal(type, "application/x-safetensors")
  t.equal(core.tensors_of(body).sum, ms.tensor { { 6.0, 7.0 } })
  local fine, problem = pcall(predict.read, model, "application/x-npy", core.npy(x))
  t.equal(fine, false)
  t.equal(problem.status, 400)
  t.equal(core.tensor_of(core.npy(x)), x)
end)

t.test("the beginning that two prompts share is computed once, and the answer stays the same", function()
  local file <close> = assert(io.open("tests/data/words/gpt2.json"))
  local tokenizer = ms.lite.Tokenizer.from_json(file:read "a")
  ms.set_seed(3)
  local config = { vocabulary = #tokenizer, width = 32, layers = 1, heads = 2, inner = 64, length = 128 }
  local decoder = ms.lite.Decoder(config)
  local language, fresh = models.language(decoder, tokenizer), models.language(ms.lite.Decoder(config), tokenizer)
  ms.load_param_into_net(fresh.decoder, decoder:parameters_dict())
  local steps, step = 0, decoder.step
  rawset(decoder, "step", function(self, tokens)
    steps = steps + (type(tokens) == "table" and #tokens or tokens.size)
    return step(self, tokens)
  end)
  local ids = tokenizer:encode "The files of a folder are read in order"
  local options = { max_tokens = 6, temperature = 0 }
  local first = language:generate(ids, { max_tokens = 6, temperature = 0 })
  local before = steps
  local longer = table.move(first, 1, #first, #ids + 1, table.move(ids, 1, #ids, 1, {}))
  longer[#longer + 1] = ids[1]
  local again = language:generate(longer, { max_tokens = 6, temperature = 0 })
  assert(steps - before < #ids, "the prompt was computed again")
  t.equal(again, (fresh:generate(longer, options)))
end)

t.finish()
