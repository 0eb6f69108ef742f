-- Chinese texts cut into words.
local arguments = require "lunaria.nn.arguments"
local native = require "lunaria.steps"
local steps = require "lunaria.dataset.steps"

local fail, describe, check = arguments.fail, arguments.describe, arguments.check

return function(text, offsets)
  steps.enumeration(text, "JiebaMode", [[How JiebaTokenizer cuts: MP by the most probable path through the words of a dictionary, HMM by
a hidden Markov model of characters, MIX by the first, and by the second what is left in single characters.

    > ms.dataset.text.JiebaMode.HMM
    2]], { MIX = 0, MP = 1, HMM = 2 })

  local name = "JiebaTokenizer"
  local Tokenizer = steps.define(text, name, "hmm_path=nil, mp_path=nil, mode='MIX', with_offsets=false", [[
Chinese texts cut into words. mp_path: a dictionary, with a word, its frequency and perhaps a tag in each line (jieba.dict.utf8 of
cppjieba). hmm_path: a hidden Markov model (its hmm_model.utf8). mode: one of JiebaMode; MP needs no model, HMM no dictionary.
t:add_word(word, freq) adds a word, t:add_dict(words) those of a table { word = frequency } or of a file, for the pipelines that are made
then; without a frequency, or with 0, a word has a middling one.]] .. offsets .. [[


    > path = os.tmpname()
    > ms.dataset.vision.write_file(path, "今天 20\n天气 30\n气 5\n很 8\n好 9\n今 1\n")
    > t = ms.dataset.text.JiebaTokenizer(nil, path, { mode = "MP" })
    > table.concat(t("今天天气很好"), "|")
    今天|天气|很|好
    > t:add_word("很好")
    > table.concat(t("今天天气很好"), "|"), os.remove(path)
    今天|天气|很好	true]], function() return "segments" end)

  local function build(self) self._transform = native.make("segments", name, self._numbers, self._texts) end

  local function source(what, path, wanted)
    if not wanted then return "", "" end
    if type(path) ~= "string" then fail(name, ("%s must be the path of a file, got %s"):format(what, describe(path))) end
    return text._read(name, path), path
  end

  function Tokenizer:setup(a)
    local mode = steps.choice(name, "mode", a.mode, text, "JiebaMode")
    local words, words_path = source("mp_path", a.mp_path, mode ~= text.JiebaMode.HMM)
    local model, model_path = source("hmm_path", a.hmm_path, mode ~= text.JiebaMode.MP)
    self._numbers = { check.boolean(name, "with_offsets", a.with_offsets) and 1 or 0, mode }
    self._texts = { words, words_path, model, model_path, "" }
    self._given = a
    self._random = false
    build(self)
  end

  -- A line of the words that are added.
  local function line(where, word, freq)
    if type(word) ~= "string" or word == "" or word:find "%s" or word:find "\0" then
      fail(where, "word must be a text without white space, got " .. describe(word))
    end
    if not utf8.len(word) then fail(where, "word must be UTF-8, got " .. describe(word)) end
    return ("%s %d\n"):format(word, freq == nil and 0 or check.not_negative(where, "freq", freq))
  end

  local function add(self, lines)
    local before = self._texts[5]
    self._texts[5] = before .. lines
    local ok, problem = pcall(build, self)
    if ok then return end
    self._texts[5] = before
    error(problem, 0)
  end

  --- Adds a word; freq: how often it is met, which may be left out.
  function Tokenizer:add_word(word, freq) add(self, line(name .. ".add_word", word, freq)) end

  --- Adds the words of a table { word = frequency }, or of a file with a word and perhaps its frequency in each line.
  function Tokenizer:add_dict(words)
    local where, lines = name .. ".add_dict", {}
    if type(words) == "string" then
      local number = 0
      for given in (text._read(where, words) .. "\n"):gmatch "(.-)\r?\n" do
        number = number + 1
        local word, freq = given:match "^%s*(%S+)%s*(%d*)%s*$"
        if word then
          lines[#lines + 1] = line(where, word, math.tointeger(tonumber(freq)))
        elseif given:find "%S" then
          fail(where, ("%s, line %d: a word and perhaps its frequency are expected, got '%s'"):format(words, number, given))
        end
      end
    elseif type(words) == "table" then
      for word, freq in pairs(words) do lines[#lines + 1] = line(where, word, freq) end
      table.sort(lines)
    else
      fail(where, "words must be a table { word = frequency } or the path of a file, got " .. describe(words))
    end
    add(self, table.concat(lines))
  end
end
