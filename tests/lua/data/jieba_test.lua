-- Words of Chinese texts against what jieba makes of them by the same files (tests/data/transforms/jieba.py).
-- Eager mode only: nothing here is called often enough to be compiled.
package.path = "tests/lua/?.lua;" .. package.path
local t = require "harness"
local ms = require "lunaria"
local D = ms.dataset
local text = D.text

local words, model = "tests/data/transforms/jieba-words.txt", "tests/data/transforms/jieba-model.txt"

local function fails(pattern, f, ...)
  local ok, message = pcall(f, ...)
  assert(not ok, "no error")
  assert(tostring(message):find(pattern), message)
end

local file <close> = assert(io.open "tests/data/transforms/jieba.json")
local cases = ms.json.decode(file:read "a")

for column, mode in ipairs { "MP", "MIX", "HMM" } do
  t.test(mode .. " cuts as jieba does", function()
    local cut = text.JiebaTokenizer(model, words, { mode = mode })
    for _, case in ipairs(cases) do t.equal(cut(case[1]), case[column + 1]) end
  end)
end

t.test("what is not Chinese", function()
  local hmm, mp = text.JiebaTokenizer(model, nil, text.JiebaMode.HMM), text.JiebaTokenizer(nil, words, text.JiebaMode.MP)
  t.equal(hmm "abc12 3.14x，GPT-4。", { "abc12", " ", "3.14", "x", "，", "GPT", "-", "4", "。" })
  t.equal(hmm "今天ab", { "今天", "ab" })
  t.equal(mp "今天 ab。", { "今天", " ", "a", "b", "。" })
  t.equal(text.JiebaTokenizer(model, words) "今天GPT很好", { "今天", "GPT", "很", "好" })
  t.equal(mp "", { "" })
  t.equal(mp "龘靐", { "龘", "靐" })
  fails("UTF%-8", mp, "今\xFF")
end)

t.test("offsets are bytes", function()
  local tokens, begins, ends = text.JiebaTokenizer(model, words, "MIX", true)("今天x很")
  t.equal(tokens, { "今天", "x", "很" })
  t.equal({ begins:tolist(), ends:tolist() }, { { 0, 6, 7 }, { 6, 7, 10 } })
end)

t.test("words of the user", function()
  local cut = text.JiebaTokenizer(model, words)
  local before = cut "今天天气很好"
  cut:add_word("天天气", 100000)
  cut:add_word "很好"
  t.equal(cut "今天天气很好", { "今", "天天气", "很好" })
  t.equal(before, { "今天", "天气", "很", "好" })
  t.equal(text.JiebaTokenizer(model, words) "今天天气很好", before)
  local other = text.JiebaTokenizer(model, words)
  other:add_dict { ["气很好"] = 900000 }
  t.equal(other "今天天气很好", { "今天", "天", "气很好" })
  local path = os.tmpname()
  D.vision.write_file(path, "今天天气 7000\r\n\n很好\n")
  other = text.JiebaTokenizer(nil, words, "MP")
  other:add_dict(path)
  t.equal(other "今天天气很好", { "今天天气", "很好" })
  D.vision.write_file(path, "很好 7\n天气 often\n")
  fails("JiebaTokenizer.add_dict: .*, line 2: a word and perhaps its frequency are expected, got '天气 often'", other.add_dict, other, path)
  os.remove(path)
  t.equal(other "今天天气很好", { "今天天气", "很好" })
  fails("word must be a text without white space", cut.add_word, cut, "a b")
  fails("word must be UTF%-8", cut.add_word, cut, "\xFF")
  fails("freq must", cut.add_word, cut, "很好", -1)
  fails("words must be a table", cut.add_dict, cut, 3)
end)

t.test("in a pipeline, on threads", function()
  local texts, want = {}, {}
  for i, case in ipairs(cases) do texts[i], want[i] = case[1], case[3] end
  local ds = D.NumpySlicesDataset({ text = texts }, { shuffle = false })
    :map(text.JiebaTokenizer(model, words), "text", { num_parallel_workers = 2 })
  local got = {}
  for row in ds:create_dict_iterator { num_epochs = 1 } do got[#got + 1] = row.text end
  t.equal(got, want)
end)

t.test("files that are none", function()
  local path = os.tmpname()
  local function with(content, mode)
    D.vision.write_file(path, content)
    if mode == "HMM" then return text.JiebaTokenizer(path, nil, mode) end
    return text.JiebaTokenizer(nil, path, "MP")
  end
  fails("line 2: a word, its frequency and perhaps a tag are expected", with, "好 1\n天\n")
  fails("line 1: 'x' is no number", with, "好 x n\n")
  fails("line 3: the frequency must be positive, got 0", with, "好 1\n\n天 0\n")
  fails("line 1: the text is no UTF%-8", with, "\xFF 1\n")
  fails("has no words", with, "\n \n")
  fails("line 1: 'inf' is no number", with, "好 inf\n")
  fails("frequencies are too large", with, "好 1e308\n天 1e308\n")
  fails("the file ends before the model does", with, "# nothing\n", "HMM")
  fails("line 1: four numbers are expected, got 3", with, "1 2 3\n", "HMM")
  local head = ("0 0 0 0\n"):rep(5)
  fails("line 6: '好' must be a character, : and a number", with, head .. "好\n", "HMM")
  fails("line 6: '天好:1' must be a character", with, head .. "天好:1\n", "HMM")
  fails("line 7: 'z' is no number", with, head .. "好:1\n好:z\n", "HMM")
  os.remove(path)
  fails("cannot be opened", text.JiebaTokenizer, nil, path, "MP")
  fails("mp_path must be the path of a file, got nil", text.JiebaTokenizer, model)
  fails("hmm_path must be the path of a file", text.JiebaTokenizer, nil, words)
  fails("mode must be one of", text.JiebaTokenizer, model, words, "FAST")
end)

t.finish()
