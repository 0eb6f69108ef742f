-- Tokenizers and chat templates on the files of tests/data/words, which the packages tokenizers and jinja2 wrote what is expected for.
-- Eager mode only: nothing here is computed by tensors.
package.path = "tests/lua/?.lua;" .. package.path
local t = require "harness"
local ms = require "lunaria"

local folder = "tests/data/words/"
local function read(name)
  local file <close> = assert(io.open(folder .. name, "rb"))
  return file:read "a"
end
local function same(a, b, what)
  assert(#a == #b, ("%s: %d instead of %d"):format(what, #a, #b))
  for i = 1, #b do assert(a[i] == b[i], ("%s: item %d is %s instead of %s"):format(what, i, a[i], b[i])) end
end

for name, rows in pairs(ms.json.decode(read "expected.json")) do
  t.test(name .. " cuts texts as the package tokenizers does", function()
    local tokenizer = ms.lite.Tokenizer(folder .. name .. ".json")
    for _, row in ipairs(rows) do
      local pair = row.pair ~= ms.json.null and row.pair or nil
      local made = tokenizer:encoding(row.text, pair)
      local what = name .. " " .. row.text
      same(made.ids, row.ids, what)
      same(made.begins, row.begins, what .. ": begins")
      same(made.ends, row.ends, what .. ": ends")
      same(made.type_ids, row.types, what .. ": types")
      t.equal(tokenizer:decode(made.ids), row.decoded)
      t.equal(tokenizer:decode(made.ids, { skip_special_tokens = false }), row.whole)
      same(tokenizer:encode(row.text, { pair = pair }), row.ids, what)
    end
  end)
end

t.test("a stream holds back the bytes of a character that is not complete", function()
  local tokenizer = ms.lite.Tokenizer(folder .. "gpt2.json")
  local ids, stream, parts = tokenizer:encode "né 日本 👩‍👩‍👧 end", tokenizer:stream(), {}
  for i, id in ipairs(ids) do
    parts[i] = stream:next(id)
    assert(utf8.len(parts[i]), "a part is no UTF-8")
    assert(not parts[i]:find "\u{FFFD}")
  end
  t.equal(table.concat(parts) .. stream:rest(), "né 日本 👩‍👩‍👧 end")
  stream = tokenizer:stream()
  t.equal(stream:next(tokenizer:encode "é"[1]), "")
  t.equal(stream:rest(), "\u{FFFD}")
end)

t.test("a damaged tokenizer is an error that names the part", function()
  local make = ms.lite.Tokenizer.from_json
  t.fails("is no JSON: the problem is at byte", make, "{")
  t.fails("it has no model", make, "[]")
  t.fails("the model 'RNN' is not supported", make, '{"model": {"type": "RNN"}}')
  t.fails("a merge makes 'ab', which the vocabulary lacks", make,
    '{"model": {"type": "BPE", "vocab": {}, "merges": ["a b"]}}')
  t.fails("the number of 'a' is -1", make, '{"model": {"type": "BPE", "vocab": {"a": -1}, "merges": []}}')
  t.fails("the normalizer 'Upper' is not supported", make,
    '{"model": {"type": "BPE", "vocab": {}, "merges": []}, "normalizer": {"type": "Upper"}}')
  t.fails("is no regular expression", make, '{"model": {"type": "BPE", "vocab": {}, "merges": []}, "pre_tokenizer": {"type": "Split", ' ..
    '"pattern": {"Regex": "("}, "behavior": "Isolated"}}')
  t.fails("unk_id is 7 of 1 pieces", make, '{"model": {"type": "Unigram", "vocab": [["a", 0.5]], "unk_id": 7}}')
  for _, special in ipairs { '{}', '{"ids": [0]}', '{"ids": [0], "tokens": []}', '{"ids": ["a"], "tokens": ["a"]}' } do
    t.fails("special_tokens['S'] needs ids and tokens", make, '{"model": {"type": "WordLevel", "vocab": {"a": 0}, "unk_token": "a"}, ' ..
      '"post_processor": {"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "S", "type_id": 0}}], "pair": [], ' ..
      '"special_tokens": {"S": ' .. special .. '}}}')
  end
  t.fails("Tokenizer", ms.lite.Tokenizer, "/nowhere/tokenizer.json")
end)

-- What a GGUF file has of a tokenizer.json: bytes and pairs, or pieces with scores.
local function metadata_of(name, kind)
  local tree = ms.json.decode(read(name .. ".json"))
  local tokens, types = {}, {}
  for token, id in pairs(tree.model.vocab) do tokens[id + 1], types[id + 1] = token, 1 end
  for _, added in ipairs(tree.added_tokens) do
    tokens[added.id + 1], types[added.id + 1] = added.content, added.special and not added.content:find "^<0x" and 3 or 1
  end
  local merges, scores = {}, {}
  for i in ipairs(tokens) do scores[i] = -1000.0 - i end
  for i, merge in ipairs(tree.model.merges) do
    merges[i] = type(merge) == "table" and table.concat(merge, " ") or merge
    local made = tree.model.vocab[(merges[i]:gsub(" ", ""))]
    scores[made + 1] = math.max(scores[made + 1], -i + 0.0)
  end
  return { ["tokenizer.ggml.model"] = kind, ["tokenizer.ggml.tokens"] = tokens, ["tokenizer.ggml.token_type"] = types,
    ["tokenizer.ggml.merges"] = merges, ["tokenizer.ggml.scores"] = scores, ["tokenizer.ggml.bos_token_id"] = 1,
    ["tokenizer.ggml.eos_token_id"] = 2, ["tokenizer.chat_template"] = "{{ bos_token }}" }
end

t.test("tokenizers come from the metadata of GGUF files", function()
  local llama3 = metadata_of("llama3", "gpt2")
  llama3["tokenizer.ggml.pre"], llama3["tokenizer.ggml.bos_token_id"], llama3["tokenizer.ggml.add_bos_token"] = "llama-bpe", 0, true
  local ours, other = ms.lite.Tokenizer.from_gguf(llama3), ms.lite.Tokenizer(folder .. "llama3.json")
  for _, text in ipairs { "Hello world, don't 12345", "naïve 日本語 \n\n x", "a <|end|> b" } do
    same(ours:encode(text), other:encode(text), text)
  end
  t.equal(ours.bos_token, "<s>")
  local llama2 = metadata_of("llama2", "llama")
  llama2["tokenizer.ggml.unknown_token_id"] = 0
  ours, other = ms.lite.Tokenizer.from_gguf(llama2), ms.lite.Tokenizer(folder .. "llama2.json")
  for _, text in ipairs { "Hello world", "naïve 日本語 test of the files", "In the tests" } do
    same(ours:encode(text), other:encode(text), text)
    t.equal(ours:decode(ours:encode(text)), text)
  end
  t.equal(ours:apply_chat_template {}, "<s>")
  llama3["tokenizer.ggml.pre"] = "nothing-known"
  t.fails("the pre-tokenizer 'nothing-known'", ms.lite.Tokenizer.from_gguf, llama3)
end)

local conversations, texts = ms.json.decode(read "conversations.json", { ordered = true }), ms.json.decode(read "texts.json")
for _, file in ipairs(ms.io.list_folder(folder .. "templates")) do
  t.test(file .. " gives the texts of jinja2", function()
    local template = ms.lite.chat_template(read("templates/" .. file))
    for name, values in pairs(conversations) do
      values.bos_token, values.eos_token = "<s>", "</s>"
      local wanted = texts[file:gsub("%.jinja$", "") .. " " .. name]
      if type(wanted) == "table" then
        t.fails("chat_template: line ", template, values)
      else
        t.equal(template(values), wanted)
      end
    end
  end)
end

t.test("an error of a template names its line", function()
  local function failing(text, wanted) t.fails(wanted, function() return ms.lite.chat_template(text) {} end) end
  failing("\n{% for x in y %}", "line 2: the tag that begins here has no 'endfor'")
  failing("{{ 1 +\n }}", "line 1: an expression is expected")
  failing("a\n\n{{ x.y.z }}", "line 3: 'x' is undefined")
  failing("{{ 'a' | shout }}", "line 1: there is no filter 'shout'")
  failing("{{ 1 is odder }}", "line 1: there is no test 'odder'")
  failing("{% include 'x' %}", "line 1: the tag 'include' is not supported")
  failing("{% if true %}\n{{ raise_exception('no ' ~ 1) }}{% endif %}", "line 2: no 1")
  failing("{{ 'open }}", "line 1: a text has no end")
  failing("{{ range(10000000) }}", "a range has at most 100000 numbers")
  failing("{{ 1 + 'a' }}", "'+' takes no values of types int and str")
  failing("{# never closed", "has no end '#}'")
  t.fails("the template must be a text", ms.lite.chat_template, 1)
end)

t.test("texts are cut at white space as Python cuts them, long ones too", function()
  local template = ms.lite.chat_template "{{ text.split() }} {{ text.split(none, 1) }} {{ ' '.split() }}"
  t.equal(template { text = " a\u{a0}b  c " }, "['a', 'b', 'c'] ['a', 'b  c '] []")
  t.equal(ms.lite.chat_template "{{ text.split() | length }}" { text = ("word "):rep(50000) }, "50000")
end)

t.test("a JSON text that is read in order is written in order", function()
  local text = '{"b":1,"a":{"z":null,"y":[]},"c":2}'
  t.equal(ms.json.encode(ms.json.decode(text, { ordered = true })), text)
  local read_again = ms.json.decode(text, { ordered = true })
  read_again.a, read_again.d = nil, 5
  t.equal(ms.json.encode(read_again), '{"b":1,"c":2,"d":5}')
end)

t.finish()
