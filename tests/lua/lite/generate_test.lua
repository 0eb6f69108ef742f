-- Texts that go on: sampling, streaming, stops; LoRA; how little a network loses in blocks.
package.path = "tests/lua/?.lua;" .. package.path
local t = require "harness"
local ms = require "lunaria"
local ops, nn = ms.ops, ms.nn

local function near(got, wanted, most)
  t.equal(#got, #wanted)
  for i = 1, #wanted do
    if math.abs(got[i] - wanted[i]) > most then error(("element %d is %g, expected %g"):format(i, got[i], wanted[i]), 2) end
  end
end

-- The same in plain Lua: every step over all tokens.
local function reference(scores, o, history)
  local list, seen = {}, {}
  for i, x in ipairs(scores) do list[i] = { id = i - 1, x = x } end
  for _, id in ipairs(history) do
    if not seen[id] then
      local item = list[id + 1]
      item.x, seen[id] = item.x > 0 and item.x / o.repetition_penalty or item.x * o.repetition_penalty, true
    end
  end
  table.sort(list, function(a, b) return a.x > b.x end)
  local function normalised()
    local sum = 0
    for _, item in ipairs(list) do sum = sum + item.p end
    for _, item in ipairs(list) do item.p = item.p / sum end
  end
  local function cut(count)
    for i = #list, count + 1, -1 do list[i] = nil end
    normalised()
  end
  for _, item in ipairs(list) do item.p = math.exp(item.x / o.temperature) end
  cut(o.top_k > 0 and math.min(o.top_k, #list) or #list)
  local sum, kept = 0, #list
  for i, item in ipairs(list) do
    sum = sum + item.p
    if sum >= o.top_p then kept = i break end
  end
  cut(kept)
  kept = 0
  for _, item in ipairs(list) do if item.p >= o.min_p * list[1].p then kept = kept + 1 end end
  cut(kept)
  local p, ids = {}, {}
  for i, item in ipairs(list) do p[i], ids[i] = item.p, item.id end
  return p, ids
end

t.test("what is left to draw from is what the definition leaves", function()
  for case = 1, 12 do
    local size = case % 2 == 0 and 2000 or 300
    local scores = ops.randn { size } * 3
    local o = { temperature = ({ 0.7, 1.3, 1.0 })[case % 3 + 1], top_k = ({ 0, 40, 5 })[case % 3 + 1], top_p = ({ 0.9, 1.0 })[case % 2 + 1],
      min_p = ({ 0.0, 0.05, 0.01 })[(case // 2) % 3 + 1], repetition_penalty = ({ 1.0, 1.3 })[(case // 3) % 2 + 1], seed = 1 }
    local history = { 3, 7, 7, 11 }
    local p, ids = ms.lite.Sampler(o):distribution(scores, history)
    local wanted, wanted_ids = reference(scores:tolist(), o, history)
    near(p, wanted, 1e-5)
    t.equal(ids, wanted_ids)
  end
end)

t.test("tokens are drawn as often as their probability says, and the same for a seed", function()
  local scores, counts = ms.tensor { 0.0, math.log(2), math.log(5) }, { [0] = 0, 0, 0 }
  local sampler = ms.lite.Sampler { seed = 7 }
  for _ = 1, 2000 do
    local id = sampler:next(scores)
    counts[id] = counts[id] + 1
  end
  near({ counts[0] / 2000, counts[1] / 2000, counts[2] / 2000 }, { 0.125, 0.25, 0.625 }, 0.03)
  t.fails("top_p must be", ms.lite.Sampler, { top_p = 2 })
  t.fails("top_q", ms.lite.Sampler, { top_q = 2 })
end)

-- Bytes are tokens.
local bytes = {}
function bytes:encode(text) return { text:byte(1, -1) } end
function bytes:decode(ids) return string.char(table.unpack(ids)) end

-- A decoder whose next token is always the next byte of a text, repeated.
local function speaker(text)
  local said = { length = 200, position = 0 }
  local decoder = { _state = said, position = function() return said.position end }
  function decoder.begin() said.position = 0 end
  function decoder.step(_, tokens)
    said.position = said.position + #tokens
    local scores = ops.zeros { 1, 256 }
    local at = (said.position - 1) % #text + 1
    scores[{ 0, text:byte(at) }] = 9.0
    return scores
  end
  return decoder
end

t.test("pieces of a stream are whole characters, and texts that stop are left out", function()
  local pieces = {}
  local ids, text = ms.lite.generate(speaker "häß€😀 END more", "x", { tokenizer = bytes, temperature = 0, stop = { "END" }, max_tokens = 40,
    stream = function(piece) if piece ~= "" then pieces[#pieces + 1] = piece end end })
  t.equal(text, "häß€😀 ")
  t.equal(table.concat(pieces), text)
  for _, piece in ipairs(pieces) do t.equal(utf8.len(piece) ~= nil, true) end
  t.equal(#ids, #"häß€😀 END")
  -- What only begins like a stop is given in the end.
  local _, begun = ms.lite.generate(speaker "abcEN", "x", { tokenizer = bytes, temperature = 0, stop = { "END" }, max_tokens = 5 })
  t.equal(begun, "abcEN")
  t.equal(ms.lite.generate(speaker "abc", { 1 }, { temperature = 0, stop = { 99 }, max_tokens = 9 }), { 97, 98 })
  local count = 0
  ms.lite.generate(speaker "abc", { 1 }, { temperature = 0, stream = function() count = count + 1 return count < 4 end })
  t.equal(count, 4)
  t.fails("texts need a tokenizer", ms.lite.generate, speaker "a", { 1 }, { stop = { "x" } })
  t.fails("prompt must be", ms.lite.generate, speaker "a", {})
  t.fails("too long", ms.lite.generate, speaker "a", ("1"):rep(300), { tokenizer = bytes })
end)

-- A small network that learns a text of words which follow one another in few ways.
local words = {}
for w in ("the cat sat on the mat and the dog ran to the man who had a hat for the cat . "):gmatch "%S+" do words[#words + 1] = w end
local ids_of, vocabulary = {}, 0
local function text_of(count, seed)
  local random, ids = ms.lite.Sampler { seed = seed }, {}
  local word = "the"
  for i = 1, count do
    if not ids_of[word] then ids_of[word], vocabulary = vocabulary, vocabulary + 1 end
    ids[i] = ids_of[word]
    local next_words = {}
    for k, w in ipairs(words) do
      if w == word then next_words[#next_words + 1] = words[k % #words + 1] end
    end
    word = next_words[random:next(ops.zeros { #next_words }) + 1]
  end
  return ids
end

local function train(net, ids, steps, rate)
  local length = 24
  local optimizer = nn.Adam(net:trainable_params(), { learning_rate = rate })
  local loss_of = nn.CrossEntropyLoss()
  local step = ms.value_and_grad(function(x, y)
    local scores = net(x)
    return loss_of(ops.reshape(scores, { -1, net.config.vocabulary }), ops.reshape(y, { -1 }))
  end, nil, optimizer.parameters)
  local all, loss = ms.tensor(ids, ms.int32), nil
  for i = 1, steps do
    local rows, wanted = {}, {}
    for b = 1, 8 do
      local first = (i * 37 + b * 53) % (#ids - length - 1)
      rows[b], wanted[b] = ops.narrow(all, 0, first, length), ops.narrow(all, 0, first + 1, length)
    end
    local grads
    loss, grads = step(ops.stack(rows), ops.stack(wanted))
    optimizer(grads)
  end
  return loss:item()
end

local trained, training_text, other_text
t.test("a network that was trained here loses at most 1 % with 8 bits and 5 % with 4", function()
  ms.set_seed(11)
  training_text, other_text = text_of(1200, 1), text_of(400, 2)
  trained = ms.lite.Decoder { vocabulary = 32, width = 64, layers = 2, heads = 4, kv_heads = 2, inner = 128, length = 64 }
  local before = ms.lite.perplexity(trained, other_text, { length = 64 })
  train(trained, training_text, 60, 3e-3)
  local float = ms.lite.perplexity(trained, other_text, { length = 64 })
  t.equal(before > 20 and float < 4, true)
  local path = os.tmpname()
  for form, most in pairs { q8_0 = 1.01, q4_0 = 1.05 } do
    ms.lite.save_decoder(trained, path, { form = form })
    local got = ms.lite.perplexity(ms.lite.load_decoder(path), other_text, { length = 64 })
    if got > float * most then error(("%s: %g where floats give %g"):format(form, got, float)) end
  end
  os.remove(path)
end)

t.test("LoRA layers learn beside weights in blocks and are merged", function()
  local path = os.tmpname()
  ms.lite.save_decoder(trained, path, { form = "q8_0" })
  local net = ms.lite.load_decoder(path)
  os.remove(path)
  local tokens = ms.tensor { { 1, 2, 3, 4 } }
  local scores = net(tokens)
  ms.lite.add_lora(net, { rank = 4, alpha = 8, targets = { "q", "v", "up", "down" } })
  t.equal(#net:trainable_params(), 2 * 4 * 2)
  t.equal(ops.abs(net(tokens) - scores):max():item(), 0.0)
  -- Another text: the words backwards.
  local turned = {}
  for i, id in ipairs(training_text) do turned[#training_text + 1 - i] = id end
  local before = ms.lite.perplexity(net, turned, { length = 64 })
  train(net, turned, 30, 1e-2)
  local after = ms.lite.perplexity(net, turned, { length = 64 })
  t.equal(after < before / 2, true)
  ms.lite.merge_lora(net)
  local merged = ms.lite.perplexity(net, turned, { length = 64 })
  t.equal(math.abs(merged / after - 1) < 0.02, true)
  t.equal({ net.layers[1].q.form, net.layers[1].q.base == nil }, { "q8_0", true })
  local written = ms.lite.generate(net, { turned[1], turned[2], turned[3] }, { max_tokens = 10, temperature = 0 })
  t.equal(#written, 10)
end)

t.test("what was trained before LoRA is trained after it, and nothing changes where LoRA is refused", function()
  local net = ms.lite.Decoder { vocabulary = 20, width = 16, layers = 1, heads = 2, inner = 32, length = 16 }
  local q = net.layers[1].q.weight
  q.requires_grad = false
  local count = #net:trainable_params()
  t.fails("rank", ms.lite.add_lora, net, { rank = 0 })
  t.equal(#net:trainable_params(), count)
  ms.lite.add_lora(net, { rank = 2 })
  t.fails("has LoRA layers already", ms.lite.add_lora, net, { targets = { "up", "v" } })
  t.equal({ #net:trainable_params(), net.layers[1].up.base == nil }, { 4, true })
  ms.lite.merge_lora(net)
  t.equal({ #net:trainable_params(), net.layers[1].q.weight.requires_grad }, { count, false })
end)

t.test("a cell with LoRA beside it is its base at first, and merged it is the sum", function()
  local base = nn.Dense(6, 4)
  local lora = nn.LoRADense(base, { rank = 2, alpha = 3 })
  local x = ops.randn { 5, 6 }
  t.equal(lora(x):tolist(), base(x):tolist())
  lora.B:assign(ops.randn { 4, 2 })
  t.equal(ops.abs(lora(x) - lora:merged()(x)):max():item() < 1e-5, true)
  t.fails("weight of two axes", nn.LoRADense, nn.ReLU())
end)

t.finish()
