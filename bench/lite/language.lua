-- A network of 100 million parameters in Llama's shape with random weights writes tokens, one text at a time, weights in blocks of 8 and
-- of 4 bits: beside the time in which memory gives as many bytes, a token late in a text beside an early one, and a prompt.
local harness = require "bench.harness"
local ms = require "lunaria"

local config = { vocabulary = 32000, width = 768, layers = 12, heads = 12, kv_heads = 4, inner = 2048, length = 1040, tied = true }
local decoders = {}

local function decoder(form)
  if not decoders[form] then
    ms.set_seed(1)
    local path = os.tmpname()
    ms.lite.save_decoder(ms.lite.Decoder(config), path, { form = form })
    decoders[form] = ms.lite.load_decoder(path)
    -- It stays mapped.
    os.remove(path)
  end
  return decoders[form]
end

local function prompt(count)
  local tokens = {}
  for i = 1, count do tokens[i] = i * 37 % config.vocabulary end
  return tokens
end

-- Tokens behind the first `count` of a text.
local function tokens_after(form, count)
  local net = decoder(form)
  net:begin(1)
  net:step(prompt(count))
  return function(n)
    for i = 1, n do
      if net:position() >= count + 16 then net:rewind(count) end
      net:step { i % config.vocabulary }
    end
  end
end

for _, form in ipairs { "q8_0", "q4_0" } do
  harness.workload("decode_" .. form, { bandwidth = 0.8 }, function() return tokens_after(form, 1) end)
end
-- Behind 1,000 tokens a step reads 25 MB of keys and values beside 106 or 56 MB of weights.
harness.workload("decode_q8_0_at_1000", { decode_q8_0 = 0.78 }, function() return tokens_after("q8_0", 1000) end)
harness.workload("decode_q4_0_at_1000", { decode_q4_0 = 0.68 }, function() return tokens_after("q4_0", 1000) end)
for _, form in ipairs { "q8_0", "q4_0" } do
  -- 512 tokens in less time than it takes to write 100 one by one.
  harness.workload("prompt_512_" .. form, { ["decode_" .. form] = 0.01 }, function()
    local net, tokens = decoder(form), prompt(512)
    return function(n)
      for _ = 1, n do
        net:begin(1)
        net:step(tokens)
      end
    end
  end)
end

harness.serve()
