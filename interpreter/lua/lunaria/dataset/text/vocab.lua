-- Vocabularies, models and vectors of words.
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"
local class = require "lunaria.nn.class"
local files = require "lunaria.dataset.files"
local native = require "lunaria.steps"
local steps = require "lunaria.dataset.steps"

local fail, describe, check = arguments.fail, arguments.describe, arguments.check

return function(text)
  local function texts_of(where, name, value)
    if type(value) ~= "table" then fail(where, ("%s must be a list of texts, got %s"):format(name, describe(value))) end
    for i, item in ipairs(value) do
      if type(item) ~= "string" then fail(where, ("%s[%d] must be a text, got %s"):format(name, i, describe(item))) end
    end
    return value
  end

  local function read(where, path) return files.text_of(where, path, "file_path") end
  text._read = read

  local Vocab = class.Object:extend("Vocab")
  Vocab._parameters = ""
  Vocab._doc = [[Words and their numbers, which count from 0. Vocab.from_list, from_dict, from_file and from_dataset make one.

    > v = ms.dataset.text.Vocab.from_list({ "deep", "learning" })
    > v:tokens_to_ids("learning")
    1]]
  text.Vocab = Vocab

  local function new(words, numbers)
    local self = setmetatable({ _numbers = {}, _words = {} }, Vocab)
    for i, word in ipairs(words) do
      self._numbers[word], self._words[numbers[i]] = numbers[i], word
    end
    self._shared = native.words(words, numbers)
    return self
  end

  function Vocab:init() fail("Vocab", "is made by Vocab.from_list, from_dict, from_file or from_dataset") end

  -- Words in this order, with special ones before or behind them.
  local function ordered(where, words, special, first)
    special = special == nil and {} or texts_of(where, "special_tokens", special)
    first = first == nil or check.boolean(where, "special_first", first)
    local list, numbers, seen = {}, {}, {}
    local function add(some, what)
      for _, word in ipairs(some) do
        if seen[word] then fail(where, ("%s has '%s' twice"):format(what, word)) end
        seen[word] = true
        list[#list + 1], numbers[#numbers + 1] = word, #numbers
      end
    end
    if first then add(special, "special_tokens") end
    add(words, "word_list")
    if not first then add(special, "special_tokens") end
    return new(list, numbers)
  end

  local from_list = arguments.signature "word_list, special_tokens=nil, special_first=true"
  --- A vocabulary of the words of a list, word_list, in this order. special_tokens: further ones; special_first: before the others,
  --- unless it is false.
  ---     > v = ms.dataset.text.Vocab.from_list({ "deep", "learning" }, { special_tokens = { "<pad>" } })
  ---     > v:tokens_to_ids { "<pad>", "deep" }[2] --> 1
  function Vocab.from_list(word_list, ...)
    local a = arguments.bind("Vocab.from_list", from_list, texts_of("Vocab.from_list", "word_list", word_list), ...)
    return ordered("Vocab.from_list", a.word_list, a.special_tokens, a.special_first)
  end

  --- A vocabulary of a table word_dict, which has the number of each word.
  ---     > ms.dataset.text.Vocab.from_dict({ home = 3, world = 2 }):ids_to_tokens(2) --> world
  function Vocab.from_dict(word_dict)
    local where = "Vocab.from_dict"
    if type(word_dict) ~= "table" then fail(where, "word_dict must be a table of numbers by words, got " .. describe(word_dict)) end
    local words, numbers = {}, {}
    for word in pairs(word_dict) do words[#words + 1] = type(word) == "string" and word or fail(where,
      "word_dict must have texts as keys") end
    table.sort(words)
    for i, word in ipairs(words) do numbers[i] = check.not_negative(where, ("word_dict['%s']"):format(word), word_dict[word]) end
    return new(words, numbers)
  end

  local from_file = arguments.signature "file_path, delimiter='', vocab_size=nil, special_tokens=nil, special_first=true"
  --- A vocabulary of the lines of the file file_path. delimiter: the word of a line ends there; vocab_size: at most so many words.
  --- special_tokens: further words; special_first: before the others, unless it is false.
  ---     > path = os.tmpname()
  ---     > ms.dataset.vision.write_file(path, "deep,1\nlearning,2\n")
  ---     > ms.dataset.text.Vocab.from_file(path, ","):tokens_to_ids("learning"), os.remove(path) --> 1	true
  function Vocab.from_file(file_path, ...)
    local where = "Vocab.from_file"
    local a = arguments.bind(where, from_file, file_path, ...)
    if type(a.delimiter) ~= "string" then fail(where, "delimiter must be a text, got " .. describe(a.delimiter)) end
    local most = a.vocab_size == nil and math.huge or check.positive(where, "vocab_size", a.vocab_size)
    local words = {}
    for line in (read(where, a.file_path):gsub("\r\n", "\n") .. "\n"):gmatch "(.-)\n" do
      local stop = a.delimiter ~= "" and line:find(a.delimiter, 1, true)
      if stop then line = line:sub(1, stop - 1) end
      if line ~= "" and #words < most then words[#words + 1] = line end
    end
    return ordered(where, words, a.special_tokens, a.special_first)
  end

  local from_dataset = arguments.signature "dataset, columns=nil, freq_range=nil, top_k=nil, special_tokens=nil, special_first=true"
  --- A vocabulary of the texts that dataset has in columns, a name or a list (without: all), the most frequent first. freq_range:
  --- { at least, at most } times; top_k: at most so many words. special_tokens: further words; special_first: before the others,
  --- unless it is false.
  ---     > ds = ms.dataset.NumpySlicesDataset({ word = { "a", "b", "b" } })
  ---     > ms.dataset.text.Vocab.from_dataset(ds, "word"):tokens_to_ids("b") --> 0
  function Vocab.from_dataset(dataset, ...)
    local where = "Vocab.from_dataset"
    local a = arguments.bind(where, from_dataset, dataset, ...)
    if type(a.dataset) ~= "table" or not a.dataset.create_dict_iterator then
      fail(where, "dataset must be a data set, got " .. describe(a.dataset))
    end
    local columns = type(a.columns) == "string" and { a.columns } or a.columns or a.dataset:get_col_names()
    local counts, words = {}, {}
    local function add(value, column)
      if type(value) == "table" then
        for _, item in ipairs(value) do add(item, column) end
      elseif type(value) == "string" then
        if not counts[value] then words[#words + 1] = value end
        counts[value] = (counts[value] or 0) + 1
      else
        fail(where, ("column '%s' must have texts, got %s"):format(column, describe(value)))
      end
    end
    for row in a.dataset:create_dict_iterator({ num_epochs = 1 }) do
      for _, column in ipairs(columns) do
        if row[column] == nil then fail(where, ("there is no column '%s'"):format(tostring(column))) end
        add(row[column], column)
      end
    end
    local low, high = 0, math.huge
    if a.freq_range ~= nil then
      if type(a.freq_range) ~= "table" then fail(where, "freq_range must be { at least, at most }, got " .. describe(a.freq_range)) end
      low, high = a.freq_range[1] or 0, a.freq_range[2] or math.huge
    end
    local kept = {}
    for _, word in ipairs(words) do
      if counts[word] >= low and counts[word] <= high then kept[#kept + 1] = word end
    end
    table.sort(kept, function(x, y) return counts[x] > counts[y] or (counts[x] == counts[y] and x < y) end)
    if a.top_k ~= nil then kept = { table.unpack(kept, 1, check.positive(where, "top_k", a.top_k)) } end
    return ordered(where, kept, a.special_tokens, a.special_first)
  end

  --- The number of a word, or the list of those of a list, tokens; -1 for words that are not there.
  ---     > ms.dataset.text.Vocab.from_list({ "deep", "learning" }):tokens_to_ids("blue") --> -1
  function Vocab:tokens_to_ids(tokens)
    if type(tokens) == "string" then return self._numbers[tokens] or -1 end
    local list = {}
    for i, word in ipairs(texts_of("tokens_to_ids", "tokens", tokens)) do list[i] = self._numbers[word] or -1 end
    return list
  end

  --- The word of a number, or the list of those of a list or tensor, ids; an empty text for numbers that are not there.
  ---     > ms.dataset.text.Vocab.from_list({ "deep", "learning" }):ids_to_tokens(1) --> learning
  function Vocab:ids_to_tokens(ids)
    if ms.is_tensor(ids) then ids = ids:tolist() end
    if type(ids) ~= "table" then return self._words[check.integer("ids_to_tokens", "ids", ids)] or "" end
    local list = {}
    for i, id in ipairs(ids) do list[i] = self._words[check.integer("ids_to_tokens", ("ids[%d]"):format(i), id)] or "" end
    return list
  end

  --- A table of the numbers by words.
  ---     > ms.dataset.text.Vocab.from_list({ "deep", "learning" }):vocab().deep --> 0
  function Vocab:vocab()
    local list = {}
    for word, number in pairs(self._numbers) do list[word] = number end
    return list
  end

  function Vocab:__len()
    local count = 0
    for _ in pairs(self._numbers) do count = count + 1 end
    return count
  end

  function text._vocab(where, value, name)
    if not class.is_a(value, Vocab) then fail(where, ("%s must be a Vocab, got %s"):format(name or "vocab", describe(value))) end
    return value
  end

  steps.enumeration(text, "SentencePieceModel", [[How a SentencePiece model cuts: UNIGRAM, BPE, CHAR or WORD.

    > ms.dataset.text.SentencePieceModel.BPE
    bpe]], { UNIGRAM = "unigram", BPE = "bpe", CHAR = "char", WORD = "word" })
  steps.enumeration(text, "SPieceTokenizerOutType", [[What SentencePieceTokenizer gives: STRING, the pieces, or INT, their numbers.

    > ms.dataset.text.SPieceTokenizerOutType.INT
    1]], { STRING = 0, INT = 1 })
  steps.enumeration(text, "SPieceTokenizerLoadType", [[What SentencePieceTokenizer is made of: FILE or MODEL. It tells by itself.

    > ms.dataset.text.SPieceTokenizerLoadType.MODEL
    1]], { FILE = 0, MODEL = 1 })

  local SentencePieceVocab = class.Object:extend("SentencePieceVocab")
  SentencePieceVocab._parameters = ""
  SentencePieceVocab._doc = [[
A SentencePiece model (Kudo and Richardson 2018). SentencePieceVocab.from_file and from_dataset make one of texts;
files of models are given to SentencePieceTokenizer.

    > ds = ms.dataset.NumpySlicesDataset({ text = { "low lower lowest", "new newer newest", "wide wider widest" } })
    > v = ms.dataset.text.SentencePieceVocab.from_dataset(ds, "text", 20, 1.0, "bpe")
    > #v
    20]]
  text.SentencePieceVocab = SentencePieceVocab

  local training_names = { "vocab_size", "character_coverage", "model_type", "params" }

  local function trained(where, list, size, coverage, kind, params)
    size = check.positive(where, "vocab_size", size)
    coverage = coverage == nil and 0.9995 or check.number(where, "character_coverage", coverage)
    if not (coverage > 0 and coverage <= 1) then fail(where,
      ("character_coverage must be in (0, 1], got %s"):format(tostring(coverage))) end
    kind = kind == nil and "unigram" or steps.choice(where, "model_type", kind, text, "SentencePieceModel")
    local options = {}
    for key, value in pairs(params or {}) do
      if type(key) ~= "string" or not key:match "^[%w_]+$" then fail(where,
        "params must be a table of options of the trainer by name") end
      options[#options + 1] = ("%s=%s"):format(key, tostring(value))
    end
    table.sort(options)
    local self = setmetatable({}, SentencePieceVocab)
    self._model = native.train(where, list, size, coverage, kind, options)
    self._shared, self._size = native.pieces(where, self._model)
    return self
  end

  function SentencePieceVocab:init() fail("SentencePieceVocab", "is made by SentencePieceVocab.from_file or from_dataset") end
  function SentencePieceVocab:__len() return self._size end

  --- A model of the texts that dataset has in the columns col_names. vocab_size: how many pieces; character_coverage: which share of
  --- the characters has pieces of its own, 0.9995 without; model_type: one of SentencePieceModel; params: further options of the
  --- trainer, a table.
  ---     > ds = ms.dataset.NumpySlicesDataset({ text = { "low lower lowest", "new newer newest", "wide wider widest" } })
  ---     > #ms.dataset.text.SentencePieceVocab.from_dataset(ds, "text", 20, 1.0, "bpe") --> 20
  function SentencePieceVocab.from_dataset(dataset, col_names, vocab_size, character_coverage, model_type, params)
    local where = "SentencePieceVocab.from_dataset"
    col_names, vocab_size, character_coverage, model_type, params = arguments.named(where,
      { "col_names", table.unpack(training_names) }, col_names, vocab_size, character_coverage, model_type, params)
    if type(dataset) ~= "table" or not dataset.create_dict_iterator then
      fail(where, "dataset must be a data set, got " .. describe(dataset))
    end
    local columns = type(col_names) == "string" and { col_names } or col_names or dataset:get_col_names()
    local list = {}
    for row in dataset:create_dict_iterator({ num_epochs = 1 }) do
      for _, column in ipairs(columns) do
        if type(row[column]) ~= "string" then fail(where, ("column '%s' must have texts, got %s"):format(tostring(column),
          describe(row[column]))) end
        list[#list + 1] = row[column]
      end
    end
    return trained(where, list, vocab_size, character_coverage, model_type, params)
  end

  --- A model of the lines of the files file_path, a path or a list. vocab_size: how many pieces; character_coverage: which share of
  --- the characters has pieces of its own; model_type: one of SentencePieceModel; params: further options of the trainer, a table.
  ---     > path = os.tmpname()
  ---     > ms.dataset.vision.write_file(path, "low lower lowest\nnew newer newest\nwide wider widest\n")
  ---     > #ms.dataset.text.SentencePieceVocab.from_file(path, 20, 1.0, "bpe"), os.remove(path) --> 20	true
  function SentencePieceVocab.from_file(file_path, vocab_size, character_coverage, model_type, params)
    local where = "SentencePieceVocab.from_file"
    vocab_size, character_coverage, model_type, params = arguments.named(where, training_names, vocab_size, character_coverage, model_type,
      params)
    local list = {}
    for _, path in ipairs(type(file_path) == "table" and file_path or { file_path }) do
      for line in read(where, path):gmatch "[^\r\n]+" do list[#list + 1] = line end
    end
    if #list == 0 then fail(where, "file_path must be a path or a list of paths of files with texts, got " .. describe(file_path)) end
    return trained(where, list, vocab_size, character_coverage, model_type, params)
  end

  --- Writes the model of vocab as filename in the folder path.
  ---     > ds = ms.dataset.NumpySlicesDataset({ text = { "low lower lowest", "new newer newest", "wide wider widest" } })
  ---     > v = ms.dataset.text.SentencePieceVocab.from_dataset(ds, "text", 20, 1.0, "bpe")
  ---     > ms.dataset.text.SentencePieceVocab.save_model(v, "/tmp", "lunaria_help.model")
  ---     > t = ms.dataset.text.SentencePieceTokenizer("/tmp/lunaria_help.model", "string")
  ---     > #t("newest") > 0, os.remove("/tmp/lunaria_help.model") --> true	true
  function SentencePieceVocab.save_model(vocab, path, filename)
    if not class.is_a(vocab, SentencePieceVocab) then fail("save_model", "vocab must be a SentencePieceVocab, got "
      .. describe(vocab)) end
    native.write(path .. "/" .. filename, vocab._model)
  end

  function text._model(where, mode)
    if class.is_a(mode, SentencePieceVocab) then return mode._shared end
    if type(mode) ~= "string" then fail(where, "mode must be a SentencePieceVocab or the path of a model, got " .. describe(mode)) end
    return (native.pieces(mode, read(where, mode)))
  end

  -- Vectors of words, by files of lines with a word and its numbers.
  local function define_vectors(name, doc)
    local Vectors = class.Object:extend(name)
    Vectors._parameters = ""
    Vectors._doc = doc .. ([[ %s.from_file reads one; ToVectors uses it.

    > path = os.tmpname()
    > ms.dataset.vision.write_file(path, "ok 0.5 0.25\nno 1 2\n")
    > ms.dataset.text.%s.from_file(path).vectors.shape, os.remove(path)
    (2, 2)	true]]):format(name, name)
    text[name] = Vectors
    function Vectors:init() fail(name, ("is made by %s.from_file"):format(name)) end

    --- The vectors in the file file_path, at most max_vectors of them. A first line with two numbers alone is left out.
    ---     > path = os.tmpname()
    ---     > ms.dataset.vision.write_file(path, "ok 0.5 0.25\nno 1 2\n")
    ---     > ms.dataset.text.Vectors.from_file(path, 1).vectors.shape, os.remove(path) --> (1, 2)	true
    function Vectors.from_file(file_path, max_vectors)
      local where = name .. ".from_file"
      max_vectors = arguments.named(where, { "max_vectors" }, max_vectors)
      local most = max_vectors == nil and math.huge or check.positive(where, "max_vectors", max_vectors)
      local words, numbers, rows, seen, number = {}, {}, {}, {}, 0
      for line in read(where, file_path):gmatch "[^\r\n]+" do
        number = number + 1
        local word, rest = line:match "^(%S+)%s+(.-)%s*$"
        if not word then fail(file_path, ("line %d has no word and numbers"):format(number)) end
        local row = {}
        for item in rest:gmatch "%S+" do row[#row + 1] = tonumber(item) or fail(file_path,
          ("line %d: '%s' is no number"):format(number, item)) end
        if not (number == 1 and #row == 1) and #rows < most and not seen[word] then
          if rows[1] and #rows[1] ~= #row then
            fail(file_path, ("line %d has %d numbers, but the first has %d"):format(number, #row, #rows[1]))
          end
          seen[word] = true
          words[#words + 1], numbers[#numbers + 1], rows[#rows + 1] = word, #numbers, row
        end
      end
      if #rows == 0 then fail(file_path, "there are no vectors") end
      return setmetatable({ vectors = ms.tensor(rows, ms.float32), _shared = native.words(words, numbers) }, Vectors)
    end
    return Vectors
  end
  define_vectors("Vectors", "Vectors of words, a line of a file each: the word and its numbers.")
  define_vectors("GloVe", "Vectors of words as the files of GloVe have them (Pennington et al. 2014).")
  define_vectors("FastText", "Vectors of words as the text files of fastText have them (Bojanowski et al. 2017).")
  function text._is_vectors(value)
    return class.is_a(value, text.Vectors) or class.is_a(value, text.GloVe) or class.is_a(value, text.FastText)
  end
end
