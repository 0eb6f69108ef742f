-- Decoders give what PyPI's transformers gives for the same weights. language/ was written by make.py; another folder written by it
-- is the first argument.
package.path = "tests/lua/?.lua;" .. package.path
local t = require "harness"
local ms = require "lunaria"
local ops = ms.ops

local folder = arg and arg[1] or "tests/lua/lite/language"
local expected = ms.json.decode(ms.io.read_text(folder .. "/expected.json"))
local path = os.tmpname()

local function near(got, wanted, most)
  local difference = ops.abs(got - ms.tensor(wanted):reshape(got.shape)):max():item()
  if not (difference <= (most or 1e-4)) then error(("differs by %g"):format(difference), 2) end
end

for _, name in ipairs { "llama", "qwen2", "qwen3", "gpt2" } do
  local case = expected[name]
  local tokens = ms.tensor(case.tokens, ms.int64)
  local count = tokens:sizes(1)

  t.test(name .. " scores a whole text and token by token as transformers does", function()
    local net = ms.lite.load_decoder(folder .. "/" .. name)
    local scores = net(tokens)
    near(scores, case.scores)
    local wanted = ms.tensor(case.scores):reshape(scores.shape)
    net:begin(1)
    for last = 4, count - 1 do
      local got = last == 4 and net:step(ops.narrow(tokens, 1, 0, 5)) or net:step { case.tokens[1][last + 1] }
      near(got, wanted[{ 0, last }]:tolist())
    end
    -- One record for prompts of up to eight tokens and one for single tokens, whatever the position.
    -- (In graph mode the loop around it may be recorded.)
    if ms.get_context "mode" == 1 then t.equal(#ms.jit_report(net._state.run).recordings, 2) end
  end)

  t.test(name .. " is the same from a GGUF file", function()
    local net = ms.lite.load_decoder(folder .. "/" .. name)
    if name == "llama" then
      t.fails("Llama 3.1", ms.lite.save_decoder, net, path)
      net.config.scaling = nil
    end
    ms.lite.save_decoder(net, path)
    local again = ms.lite.load_decoder(path)
    t.equal(again.metadata["general.architecture"], name)
    if name ~= "llama" then near(again(tokens), case.scores) end
  end)
end

t.test("weights in blocks stay in blocks, from a file or put there", function()
  ms.set_seed(3)
  local config = { vocabulary = 40, width = 64, layers = 2, heads = 4, kv_heads = 2, inner = 96, length = 32 }
  local net = ms.lite.Decoder(config)
  local tokens = ms.tensor { { 1, 2, 3, 4, 5 } }
  local scores = net(tokens)
  local limit = { q8_0 = 0.02, q4_0 = 0.3 }
  for form, most in pairs(limit) do
    ms.lite.save_decoder(net, path, { form = form })
    local packed = ms.lite.load_decoder(path)
    t.equal({ packed.layers[1].up.form, packed.layers[1].up.weight.dtype, packed.embed.form }, { form, ms.uint8, form })
    local got = packed(tokens)
    local error_ = (ops.norm(got - scores) / ops.norm(scores)):item()
    t.equal(error_ < most and error_ > 0, true)
    -- Written again, the bytes are the same.
    local bytes = packed.layers[2].down.weight:tolist()
    ms.lite.save_decoder(packed, path .. "2")
    t.equal(ms.lite.load_decoder(path .. "2").layers[2].down.weight:tolist(), bytes)
  end
  os.remove(path .. "2")
end)

t.test("large products by blocks are those of their numbers, but for 8 bits of the input", function()
  ms.set_seed(5)
  for form, size in pairs { q8_0 = 320, q4_0 = 320, q4_k = 512, q6_k = 512 } do
    local weight
    if form:find "_k" then
      -- Any bytes are weights; those of the scales of all are halves of at most 1.
      local block, at = form == "q6_k" and 210 or 144, form == "q6_k" and { 208 } or { 0, 2 }
      weight = ops.randint(0, 256, { 300, size // 256, block }):astype(ms.uint8)
      for _, place in ipairs(at) do weight[{ ms.slice(nil, nil), ms.slice(nil, nil), place + 1 }] = 0x30 end
      weight = weight:reshape { 300, -1 }
    else
      weight = ops.quantize_blocks(ops.randn { 300, size }, form)
    end
    local numbers, bias = ops.dequantize_blocks(weight, form), ops.randn { 300 }
    for _, rows in ipairs { 1, 5, 40 } do
      local x = ops.randn { 2, rows, size }
      local got, wanted = ops.block_dense(x, weight, form, bias), ops.dense(x, numbers, bias)
      t.equal((ops.norm(got - wanted) / ops.norm(wanted)):item() < (form:find "_k" and rows > 4 and 1e-5 or 0.01), true)
    end
  end
  local long = ops.quantize_blocks(ops.ones { 3, 64 }, "q8_0")
  t.fails({ "block_dense", "rows of", "64 numbers" }, ops.block_dense, ops.ones { 2, 32 }, long, "q8_0")
  t.fails("whole blocks of q8_0", ops.dequantize_blocks, ops.zeros({ 3, 33 }, ms.uint8), "q8_0")
end)

t.test("several texts at once, and another beginning", function()
  ms.set_seed(4)
  local net = ms.lite.Decoder { vocabulary = 20, width = 16, layers = 1, heads = 2, kv_heads = 1, inner = 24, length = 48 }
  local tokens = ops.randint(0, 20, { 3, 40 })
  local scores = net(tokens)
  net:begin(3)
  near(net:step(tokens), scores[{ ms.slice(nil, nil), 39 }]:tolist())
  net:rewind(30)
  near(net:step(ops.narrow(tokens, 1, 30, 10)), scores[{ ms.slice(nil, nil), 39 }]:tolist())
  t.equal(net:position(), 40)
  t.fails("do not fit into caches of 48", net.step, net, ops.zeros({ 3, 9 }, ms.int64))
end)

t.test("a wrong file or configuration is an error that names it", function()
  t.fails({ "config.inner", "positive integer" }, ms.lite.Decoder, { vocabulary = 4, width = 4, layers = 1, heads = 1, length = 4 })
  t.fails({ "heads (3)", "kv_heads (2)" }, ms.lite.Decoder,
    { vocabulary = 4, width = 6, layers = 1, heads = 3, kv_heads = 2, inner = 4, length = 4 })
  t.fails("has no file config.json", ms.lite.load_decoder, "tests/lua")
  t.fails("quantize must be", ms.lite.load_decoder, folder .. "/llama", { quantize = "q9" })
  ms.save_gguf(path, { x = ms.ones { 2 } }, { metadata = { ["general.architecture"] = "bert" } })
  t.fails({ "architecture 'bert'", "not supported" }, ms.lite.load_decoder, path)
  t.fails("GGUF", ms.load_gguf, "tests/lua/harness.lua")
end)

-- Megabytes of the program that are in memory.
local function resident()
  local file <close> = assert(io.open "/proc/self/statm")
  local _, pages = file:read("n", "n")
  return pages * 4096 / 1e6
end

t.test("weights stay in their file until they are looked at, and the file as it is when they are changed", function()
  local config = { vocabulary = 16, width = 1024, layers = 2, heads = 4, inner = 4096, length = 16, tied = true }
  ms.lite.save_decoder(ms.lite.Decoder(config), path, { form = "q8_0" })
  collectgarbage()
  ms.empty_cache()
  local before = resident()
  local net = ms.lite.load_decoder(path)
  t.equal(net.layers[1].up.weight.nbytes > 4e6 and resident() - before < 4, true)
  local file = path .. ".safetensors"
  ms.save_safetensors(file, { weight = ops.ones { 4, 4 } })
  local weight = ms.load_checkpoint(file, { mmap = true }).weight
  local optimizer = ms.nn.Adam({ weight }, { learning_rate = 0.1 })
  local slopes = ms.grad(function(x) return ops.sum(ops.dense(x, weight)) end, nil, { weight })
  for _ = 1, 12 do optimizer(slopes(ops.ones { 1, 4 })) end
  weight[0] = 5
  weight:add_(1)
  t.equal({ weight[{ 0, 0 }]:item(), weight[{ 1, 1 }]:item() < 1.5 }, { 6.0, true })
  t.equal(ms.load_safetensors(file).weight:sum():item(), 16.0)
  os.remove(file)
end)

t.test("a configuration with anything wrong in it is an error in the library's words", function()
  os.remove(path)
  ms.io.make_folder(path)
  for _, name in ipairs { "llama", "qwen3", "gpt2" } do
    local text = ms.io.read_text(folder .. "/" .. name .. "/config.json")
    if name ~= "llama" then
      local file <close> = assert(io.open(path .. "/model.safetensors", "wb"))
      file:write(ms.io.read_text(folder .. "/" .. name .. "/model.safetensors"))
    end
    local source = ms.json.decode(text)
    local function try(config)
      local file <close> = assert(io.open(path .. "/config.json", "w"))
      file:write(config)
      file:flush()
      local ok, message = pcall(ms.lite.load_decoder, path)
      if not ok and tostring(message):find "attempt to" then error(config .. "\n" .. tostring(message)) end
    end
    for key in pairs(source) do
      for _, value in ipairs { "nothing", -3, 0, 1e300, 2.5, true, { 1 }, ms.json.null } do
        local changed = ms.json.decode(text)
        changed[key] = value
        try(ms.json.encode(changed))
      end
    end
    for _, config in ipairs { "3", "[]", "{", "\"llama\"" } do try(config) end
  end
  os.remove(path .. "/config.json")
  os.remove(path .. "/model.safetensors")
end)

os.remove(path)
t.finish()
