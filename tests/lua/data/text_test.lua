-- Transforms of texts against what MindSpore, tokenizers and sentencepiece make of the same texts (tests/data/transforms).
-- Eager mode only: nothing here is called often enough to be compiled.
package.path = "tests/lua/?.lua;" .. package.path
local t = require "harness"
local ms = require "lunaria"
local D = ms.dataset
local text = D.text

local function fails(pattern, f, ...)
  local ok, message = pcall(f, ...)
  assert(not ok, "no error")
  assert(tostring(message):find(pattern), message)
end

local function plain(value) return ms.is_tensor(value) and value:tolist() or value end

local file <close> = assert(io.open "tests/data/transforms/text.json")
local stored = ms.json.decode(file:read "a")
local vocab = text.Vocab.from_list(stored.words)
local names = setmetatable({ vocab = vocab, ms = ms }, { __index = text })

for _, case in ipairs(stored.cases) do
  t.test(case.lua, function()
    local transform = assert(load("return " .. case.lua, "=case", "t", names))()
    local got = table.pack(transform(case.given))
    t.equal(got.n, #case.results)
    for i = 1, got.n do t.equal(plain(got[i]), case.results[i]) end
  end)
end

t.test("lower case keeps special tokens", function()
  t.equal(text.BasicTokenizer(true)("Ünü [CLS] [unused7] [Cls]"), { "unu", "[CLS]", "[unused7]", "[", "cls", "]" })
end)

t.test("pairs are cut where they are longest", function()
  local a, b = text.TruncateSequencePair(5)(ms.tensor { 1, 2, 3, 4 }, ms.tensor { 5, 6, 7, 8 })
  t.equal({ a:tolist(), b:tolist() }, { { 1, 2, 3 }, { 5, 6 } })
  a, b = text.TruncateSequencePair(4)({ "a", "b", "c", "d" }, { "e" })
  t.equal({ a, b }, { { "a", "b", "c" }, { "e" } })
  t.equal(text.SlidingWindow(3)(ms.arange(5)):tolist(), { { 0, 1, 2 }, { 1, 2, 3 }, { 2, 3, 4 } })
end)

t.test("vocabularies come from lists, tables, files and data sets", function()
  local v = text.Vocab.from_list({ "a", "b" }, { special_tokens = { "<p>" }, special_first = false })
  t.equal(v:vocab(), { a = 0, b = 1, ["<p>"] = 2 })
  t.equal(v:tokens_to_ids { "b", "q" }, { 1, -1 })
  t.equal(v:ids_to_tokens(ms.tensor { 2, 0 }), { "<p>", "a" })
  t.equal(text.Lookup(text.Vocab.from_dict { x = 7, y = 3 })({ "y", "x" }):tolist(), { 3, 7 })
  local ds = D.NumpySlicesDataset({ words = { "b a", "b c", "b a d" } }, { shuffle = false }):map(text.WhitespaceTokenizer(), "words")
  v = text.Vocab.from_dataset(ds, "words", { top_k = 3, special_tokens = { "<unk>" } })
  t.equal(v:vocab(), { ["<unk>"] = 0, b = 1, a = 2, c = 3 })
  t.equal(text.Vocab.from_dataset(ds, nil, { 2, 2 }):vocab(), { a = 0 })
  local rows = {}
  for row in ds:map(text.Lookup(v, "<unk>"), "words", { num_parallel_workers = 2 }):create_dict_iterator({ num_epochs = 1 }) do
    rows[#rows + 1] = row.words:tolist()
  end
  t.equal(rows, { { 1, 2 }, { 1, 3 }, { 1, 2, 0 } })
  fails("word_list has 'a' twice", text.Vocab.from_list, { "a", "a" })
  fails("Lookup: the vocabulary has no word 'q'", text.Lookup(v), "q")
end)

t.test("vectors of words", function()
  local path = os.tmpname()
  D.vision.write_file(path, "3 2\nok 0.5 0.25\n! 1 2\nthis 3 4\n")
  local vectors = text.FastText.from_file(path)
  t.equal(text.ToVectors(vectors, { -1, -1 }, true)({ "ok", "THIS", "q" }):tolist(), { { 0.5, 0.25 }, { 3.0, 4.0 }, { -1.0, -1.0 } })
  t.equal(text.ToVectors(vectors)("THIS"):tolist(), { 0.0, 0.0 })
  D.vision.write_file(path, "ok 0.5 0.25\nno 1\n")
  fails("line 2 has 1 numbers, but the first has 2", text.GloVe.from_file, path)
  os.remove(path)
end)

t.test("functions cut texts", function()
  local ds = D.NumpySlicesDataset({ s = { "a-b" } }):map(text.LuaTokenizer(function(s)
    local list = {}
    for part in s:gmatch "[^-]+" do list[#list + 1] = part end
    return list
  end), "s")
  t.equal(ds:create_tuple_iterator()(), { "a", "b" })
end)

t.test("bad texts and arguments are errors", function()
  fails("WhitespaceTokenizer: the text is no UTF%-8: byte 1 begins no character", text.WhitespaceTokenizer(), "a\xff")
  fails("WhitespaceTokenizer: a text or a list of texts is expected", text.WhitespaceTokenizer(), ms.ones { 2 })
  fails("RegexTokenizer: '%(' is no regular expression", text.RegexTokenizer, "(")
  fails("RegexReplace: the pattern cannot be matched", text.RegexReplace("(a+)+$", ""), ("a"):rep(40) .. "b")
  fails("ToNumber: '300' is no number that int8 can hold", text.ToNumber(ms.int8), "300")
  fails("ToNumber: 'x' is no number", text.ToNumber(ms.float32), "x")
  fails("Ngram: n%[1%] must be positive", text.Ngram, 0)
  fails("WordpieceTokenizer: vocab must be a Vocab, got a table", text.WordpieceTokenizer, { "a" })
  fails("the model cannot be read", text.SentencePieceTokenizer, "tests/data/transforms/text.json", "int")
  fails("the texts make no model", text.SentencePieceVocab.from_dataset, D.NumpySlicesDataset({ s = { "ab" } }), "s", 5000)
end)

t.finish()
