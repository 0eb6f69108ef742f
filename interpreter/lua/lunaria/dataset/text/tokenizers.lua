-- Texts cut into tokens, and what is done with tokens.
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"
local steps = require "lunaria.dataset.steps"

local fail, describe, check = arguments.fail, arguments.describe, arguments.check

return function(text)
  local function define(...) return steps.define(text, ...) end
  local function flag(name, what, value) return check.boolean(name, what, value) and 1 or 0 end
  local function string_of(name, what, value)
    if type(value) ~= "string" then fail(name, ("%s must be a text, got %s"):format(what, describe(value))) end
    return value
  end
  local offsets = [[ with_offsets: two more values, where
each token begins and ends, in bytes from 0.]]
  local function example(call, result)
    return ([[


    > table.concat(ms.dataset.text.%s, "|")
    %s]]):format(call, result)
  end

  steps.enumeration(text, "NormalizeForm", [[A normal form of Unicode: NONE, NFC, NFKC, NFD or NFKD.

    > ms.dataset.text.NormalizeForm.NFKC
    2]], { NONE = 0, NFC = 1, NFKC = 2, NFD = 3, NFKD = 4 })
  local function form(name, what, value) return steps.choice(name, what, value, text, "NormalizeForm") end

  define("WhitespaceTokenizer", "with_offsets=false", "A text cut at white space." .. offsets
    .. example("WhitespaceTokenizer()(\"to  be\")", "to|be"), function(a, name)
    return "white_space_tokens", { flag(name, "with_offsets", a.with_offsets) }
  end)
  define("UnicodeCharTokenizer", "with_offsets=false", "The characters of a text." .. offsets
    .. example("UnicodeCharTokenizer()(\"né\")", "n|é"), function(a, name)
    return "character_tokens", { flag(name, "with_offsets", a.with_offsets) }
  end)
  define("UnicodeScriptTokenizer", "keep_whitespace=false, with_offsets=false", [[
A text cut where its script changes, as from Latin to Cyrillic letters, and at white space. keep_whitespace: white space is a token
too.]] .. offsets .. example("UnicodeScriptTokenizer()(\"abcДа 12\")", "abc|Да|12"), function(a, name)
    return "script_tokens", { flag(name, "with_offsets", a.with_offsets), flag(name, "keep_whitespace", a.keep_whitespace) }
  end)

  local basic_words = [[ lower_case: lower case, without accents. keep_whitespace: white space is a
token too. normalization_form: one of NormalizeForm, where lower_case is false. preserve_unused_token: [CLS], [SEP], [UNK], [PAD],
[MASK] and [unused1] and so on stay as they are.]]
  local function basic(name, a)
    return { flag(name, "with_offsets", a.with_offsets), flag(name, "lower_case", a.lower_case), flag(name, "keep_whitespace",
      a.keep_whitespace),
      form(name, "normalization_form", a.normalization_form), flag(name, "preserve_unused_token", a.preserve_unused_token) }
  end
  define("BasicTokenizer",
    "lower_case=false, keep_whitespace=false, normalization_form=0, preserve_unused_token=true, with_offsets=false", [[
A text cut at white space, with punctuation and Chinese characters as tokens of their own, as BERT does first.]] .. basic_words .. offsets
    .. [[ These are places in the text after normalization.]] .. example("BasicTokenizer(true)(\"Naïve, no?\")", "naive|,|no|?"),
      function(a, name)
    return "basic_tokens", basic(name, a)
  end)

  local piece_words = [[ vocab: a Vocab. suffix_indicator: what pieces within a word begin with. max_bytes_per_token: longer
words are unknown. unknown_token: what stands for words that have no pieces; an empty text: the words themselves.]]
  local function longest(name, a) return check.positive(name, "max_bytes_per_token", a.max_bytes_per_token) end
  local function piece_texts(name, a)
    return { string_of(name, "suffix_indicator", a.suffix_indicator), string_of(name, "unknown_token", a.unknown_token) }
  end
  define("WordpieceTokenizer", "vocab, suffix_indicator='##', max_bytes_per_token=100, unknown_token='[UNK]', with_offsets=false", [[
Words cut into the longest pieces that a vocabulary has.]] .. piece_words .. offsets .. [==[


    > v = ms.dataset.text.Vocab.from_list { "un", "##able", "[UNK]" }
    > table.concat(ms.dataset.text.WordpieceTokenizer(v) { "unable", "able" }, "|")
    un|##able|[UNK]]==], function(a, name)
    return "word_pieces", { flag(name, "with_offsets", a.with_offsets), longest(name, a) }, piece_texts(name, a), nil, nil,
      text._vocab(name, a.vocab)._shared
  end)
  local bert = [[vocab, suffix_indicator='##', max_bytes_per_token=100, unknown_token='[UNK]', lower_case=false, keep_whitespace=false, ]]
    .. [[normalization_form=0, preserve_unused_token=true, with_offsets=false]]
  define("BertTokenizer", bert, [[
BasicTokenizer and WordpieceTokenizer in a row (Devlin et al. 2018).]] .. piece_words .. basic_words .. offsets .. [[


    > v = ms.dataset.text.Vocab.from_list { "un", "##able", "[UNK]", "." }
    > table.concat(ms.dataset.text.BertTokenizer(v, { lower_case = true })("Unable."), "|")
    un|##able|.]], function(a, name)
    return "bert_tokens", steps.join(basic(name, a), longest(name, a)), piece_texts(name, a), nil, nil, text._vocab(name, a.vocab)._shared
  end)

  define("RegexTokenizer", "delim_pattern, keep_delim_pattern='', with_offsets=false", [[
A text cut where the regular expression delim_pattern matches (PCRE2's syntax over Unicode, which is nearly that of ICU and Perl). What
keep_delim_pattern matches as a whole stays as a token.]] .. offsets .. example("RegexTokenizer(\"[ ,]\", \",\")(\"a b,c\")",
  "a|b|,|c"), function(a, name)
    return "pattern_tokens", { flag(name, "with_offsets", a.with_offsets) },
      { string_of(name, "delim_pattern", a.delim_pattern), string_of(name, "keep_delim_pattern", a.keep_delim_pattern) }
  end)
  define("RegexReplace", "pattern, replace, replace_all=true", [[
Texts with what the regular expression pattern matches replaced by replace, in which $1 stands for the first group. replace_all: false
is for the first match only.

    > ms.dataset.text.RegexReplace("(\\w+) (\\w+)", "$2 $1")("be to")
    to be]], function(a, name)
    return "pattern_replace", { flag(name, "replace_all", a.replace_all) },
      { string_of(name, "pattern", a.pattern), string_of(name, "replace", a.replace) }
  end)
  define("CaseFold", "", [[
Texts in lower case, by Unicode's folding.

    > ms.dataset.text.CaseFold()("STRAẞE")
    strasse]], function() return "fold_case" end)
  define("NormalizeUTF8", "normalize_form=2", [[
Texts in a normal form of Unicode. normalize_form: one of NormalizeForm.

    > ms.dataset.text.NormalizeUTF8("NFKC")("Ａ①")
    A1]], function(a, name) return "normalize_text", { form(name, "normalize_form", a.normalize_form) } end)

  define("SentencePieceTokenizer", "mode, out_type", [[
Texts cut by a SentencePiece model. mode: a SentencePieceVocab, or the path of a model. out_type: one of SPieceTokenizerOutType, the
pieces or their numbers.

    > ds = ms.dataset.NumpySlicesDataset({ text = { "low lower lowest", "new newer newest", "wide wider widest" } })
    > v = ms.dataset.text.SentencePieceVocab.from_dataset(ds, "text", 20, 1.0, "bpe")
    > table.concat(ms.dataset.text.SentencePieceTokenizer(v, "string")("lower"), ""):gsub("▁", "")
    lower	1]], function(a, name)
    local kind = steps.choice(name, "out_type", a.out_type, text, "SPieceTokenizerOutType")
    return "sentence_pieces", { kind }, nil, nil, nil, text._model(name, a.mode)
  end)

  require "lunaria.dataset.text.jieba"(text, offsets)

  define("ByteLevelBPETokenizer", "vocab, merges, out_type='string', add_prefix_space=false", [[
Texts cut into byte pairs as GPT-2 does, so that no text is unknown. vocab: a Vocab, or the path of a vocab.json. merges: the path of a
merges.txt. out_type: one of SPieceTokenizerOutType, the tokens or their numbers. add_prefix_space: the first word gets a space too.

    > path = os.tmpname()
    > ms.dataset.vision.write_file(path, "l o\nlo w\n")
    > t = ms.dataset.text.ByteLevelBPETokenizer(ms.dataset.text.Vocab.from_list { "low" }, path)
    > table.concat(t("lowly"), "|"), os.remove(path)
    low|l|y	true]], function(a, name)
    local vocab = a.vocab
    if type(vocab) == "string" then vocab = text.Vocab.from_dict(ms.json.decode(text._read(name, vocab))) end
    local kind = steps.choice(name, "out_type", a.out_type, text, "SPieceTokenizerOutType")
    return "byte_pairs", { kind, flag(name, "add_prefix_space", a.add_prefix_space) },
      { text._read(name, string_of(name, "merges", a.merges)) }, nil, nil, text._vocab(name, vocab)._shared
  end)

  for _, name in ipairs { "LuaTokenizer", "PythonTokenizer" } do
    local class = steps.define(text, name, "tokenizer", ([[
Texts cut by a function: tokenizer gets one and returns the list of its tokens. PythonTokenizer is another name of LuaTokenizer.

    > halves = function(s) return { s:sub(1, #s // 2), s:sub(#s // 2 + 1) } end
    > table.concat(ms.dataset.text.%s(halves)("tobe"), "|")
    to|be]]):format(name), function() return "compose" end)
    function class:setup(a)
      if not arguments.is_callable(a.tokenizer) then fail(name, "tokenizer must be a function, got " .. describe(a.tokenizer)) end
      self._tokenizer = a.tokenizer
    end
    function class:__call(value)
      local tokens = self._tokenizer(string_of(name, "the value", value))
      if type(tokens) ~= "table" then fail(name, "tokenizer must return a list of texts, got " .. describe(tokens)) end
      return tokens
    end
  end

  define("Lookup", "vocab, unknown_token=nil, data_type='int32'", [[
The numbers of words. vocab: a Vocab. unknown_token: the word whose number others get; without it they are an error. data_type: the
dtype of the numbers.

    > v = ms.dataset.text.Vocab.from_list { "to", "be" }
    > ms.dataset.text.Lookup(v)({ "be", "to" }):tolist()[1]
    1]], function(a, name)
    local vocab, unknown = text._vocab(name, a.vocab), -1
    if a.unknown_token ~= nil then
      unknown = vocab:tokens_to_ids(string_of(name, "unknown_token", a.unknown_token))
      if unknown < 0 then fail(name, ("unknown_token is '%s', which the vocabulary does not have"):format(a.unknown_token)) end
    end
    return "lookup", { unknown }, { steps.dtype_name(name, "data_type", a.data_type) }, nil, nil, vocab._shared
  end)

  define("ToVectors", "vectors, unk_init=nil, lower_case_backup=false", [[
The vectors of words as float32. vectors: Vectors, GloVe or FastText. unk_init: what stands for words that are not there, a list of
numbers, without it zeros. lower_case_backup: looks for the word in lower case too.

    > path = os.tmpname()
    > ms.dataset.vision.write_file(path, "ok 0.5 0.25\nno 1 2\n")
    > v = ms.dataset.text.Vectors.from_file(path)
    > ms.dataset.text.ToVectors(v)("ok"):tolist()[2], os.remove(path)
    0.25	true]], function(a, name)
    if not text._is_vectors(a.vectors) then fail(name, "vectors must be Vectors, GloVe or FastText, got " .. describe(a.vectors)) end
    local width = a.vectors.vectors.shape[2]
    local other = a.unk_init == nil and ms.zeros({ width }) or ms.tensor(steps.numbers(name, "unk_init", a.unk_init, width), ms.float32)
    return "to_vectors", { flag(name, "lower_case_backup", a.lower_case_backup) }, nil, { a.vectors.vectors, other }, nil,
      a.vectors._shared
  end)

  define("ToNumber", "data_type", [[
Texts as numbers of the dtype data_type.

    > ms.dataset.text.ToNumber(ms.int32)({ "7", "-2" }):tolist()[2]
    -2]], function(a, name) return "to_number", {}, { steps.dtype_name(name, "data_type", a.data_type) } end)

  -- { text, how often } of a padding.
  local function padding(name, what, value)
    if value == nil then return "", 0 end
    if type(value) ~= "table" or #value ~= 2 then fail(name, ("%s must be { text, number }, got %s"):format(what, describe(value))) end
    return string_of(name, what .. "[1]", value[1]), check.not_negative(name, what .. "[2]", value[2])
  end
  define("Ngram", "n, left_pad=nil, right_pad=nil, separator=' '", [[
Neighbouring words joined, n of them, or of each length of a list. left_pad and right_pad: { text, number }, what stands before the first
and behind the last word, and how often at most. separator: what is between the words.]]
  .. example("Ngram(2)({ \"a\", \"b\", \"c\" })", "a b|b c"),
    function(a, name)
      local lengths = math.type(a.n) and { a.n } or a.n
      if type(lengths) ~= "table" or #lengths == 0 then fail(name, "n must be a number or a list of them, got " .. describe(a.n)) end
      local left, before = padding(name, "left_pad", a.left_pad)
      local right, behind = padding(name, "right_pad", a.right_pad)
      local numbers = { before, behind }
      for i, n in ipairs(lengths) do numbers[#numbers + 1] = check.positive(name, ("n[%d]"):format(i), n) end
      return "ngram", numbers, { left, right, string_of(name, "separator", a.separator) }
    end)

  define("SlidingWindow", "width, axis=0", [[
All windows of width neighbours of a list of texts or of a tensor of one axis. axis: 0, or -1.

    > ms.dataset.text.SlidingWindow(2)(ms.tensor { 1, 2, 3 }):tolist()[2][1]
    2]], function(a, name)
    local axis = check.integer(name, "axis", a.axis)
    if axis ~= 0 and axis ~= -1 then fail(name, ("axis must be 0 or -1, got %d"):format(axis)) end
    return "sliding_window", { check.positive(name, "width", a.width) }
  end)
  define("Truncate", "max_seq_len", [[
A list of texts or a tensor, at most max_seq_len long.]] .. example("Truncate(2)({ \"a\", \"b\", \"c\" })", "a|b"), function(a, name)
    return "truncate", { check.not_negative(name, "max_seq_len", a.max_seq_len) }
  end)
  define("TruncateSequencePair", "max_length", [[
Two lists of texts or tensors, which are together at most max_length long: the longer one is cut first.

    > a, b = ms.dataset.text.TruncateSequencePair(3)(ms.tensor { 1, 2, 3 }, ms.tensor { 4, 5 })
    > a.size, b.size
    2	1]], function(a, name) return "truncate_pair", { check.not_negative(name, "max_length", a.max_length) } end)
  define("AddToken", "token, begin=true", [[
A list of texts with token before them; begin = false: behind them.]] .. example("AddToken(\"[CLS]\")({ \"a\" })", "[CLS]|a"),
  function(a, name)
    return "add_token", { flag(name, "begin", a.begin) }, { string_of(name, "token", a.token) }
  end)

  -- After the words of a page of Wikipedia's dumps: links, references, markup and entities go, digits are spelled.
  local digits = { ["0"] = "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine" }
  local filter = define("FilterWikipediaXML", "", [==[
A text of Wikipedia's dumps as lower case letters a to z and single spaces: without markup, links as what they show, digits as words.

    > ms.dataset.text.FilterWikipediaXML()("Welcome to [[w:China|China]], 2 <b>you</b>")
    welcome to china two you]==], function() return "compose" end)
  function filter:setup() self._filter = true end
  function filter:__call(value)
    local s = string_of("FilterWikipediaXML", "the value", value)
    s = s:gsub("<.->", ""):gsub("&amp;", "&"):gsub("&lt;", "<"):gsub("&gt;", ">"):gsub("<ref[^<]*</ref>", ""):gsub("<[^>]*>", "")
    s = s:gsub("%[http:[^%]%s]*", "["):gsub("|thumb", ""):gsub("|left", ""):gsub("|right", ""):gsub("|%d+px", "")
    s = s:gsub("%[%[image:[^%[%]]*|", ""):gsub("%[%[category:([^|%]]*)[^%]]*%]%]", "[[%1]]"):gsub("%[%[[a-z%-]*:[^%]|]*%]%]", "")
    s = s:gsub("%[%[[^|%]]*|", "[["):gsub("{{[^}]*}}", ""):gsub("{[^}]*}", ""):gsub("%[", ""):gsub("%]", ""):gsub("&[^;]*;", " ")
    s = s:lower():gsub("%d", function(d) return " " .. digits[d == "0" and d or tonumber(d)] .. " " end):gsub("[^a-z]+", " ")
    return (s:gsub("^ ", ""):gsub(" $", ""))
  end
end
