-- The tokenizer in a GGUF file's metadata (tokenizer.ggml.*), as the table of a tokenizer.json.
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"

local where = "Tokenizer.from_gguf"
local function fail(...) arguments.fail(where, ...) end

-- How texts are cut before pairs are merged, by the names that GGUF files have for it.
local gpt2 = [['s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+]]
local llama3 = [[(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+]]
local qwen2 = llama3:gsub("{1,3}", "")
local digits = { "digits", gpt2 }
local cuts = {
  default = gpt2, ["gpt-2"] = gpt2, phi = gpt2, mpt = gpt2, olmo = gpt2, jais = gpt2,
  ["llama-bpe"] = llama3, llama3 = llama3, ["llama-v3"] = llama3, ["smaug-bpe"] = llama3, ["dbrx"] = llama3,
  qwen2 = qwen2, ["deepseek-r1-qwen"] = qwen2, stablelm2 = qwen2,
  smollm = digits, starcoder = digits, refact = digits, ["command-r"] = digits, codeshell = digits,
}

local function split(pattern) return { type = "Split", pattern = { Regex = pattern }, behavior = "Isolated", invert = false } end

-- Kinds of tokens in tokenizer.ggml.token_type.
local unknown_kind, control_kind, user_kind = 2, 3, 4

local function list_of(metadata, name, needed)
  local list = metadata["tokenizer.ggml." .. name]
  if ms.is_tensor(list) then list = list:tolist() end
  if list == nil and not needed then return nil end
  if type(list) ~= "table" then fail(("tokenizer.ggml.%s must be a list, got %s"):format(name, arguments.describe(list))) end
  return list
end

local function vocabulary(tokens)
  local numbers = {}
  for i, token in ipairs(tokens) do
    if type(token) ~= "string" then fail(("token %d must be a text, got %s"):format(i - 1, arguments.describe(token))) end
    numbers[token] = numbers[token] or i - 1
  end
  return numbers
end

local function added_tokens(tokens, kinds)
  local list = ms.json.array {}
  for i, kind in ipairs(kinds or {}) do
    if kind == control_kind or kind == user_kind then
      list[#list + 1] = { id = i - 1, content = tokens[i], special = kind == control_kind, normalized = false }
    end
  end
  return list
end

-- Pairs of SentencePiece's BPE: every cut of a token into two tokens, the token of the highest score first.
local function merges_of_scores(tokens, scores, numbers)
  local list = {}
  for i, token in ipairs(tokens) do
    local some = {}
    for at in token:gmatch "()[\0-\x7F\xC2-\xFD]" do
      local left, right = numbers[token:sub(1, at - 1)], numbers[token:sub(at)]
      if at > 1 and left and right and numbers[token] == i - 1 then some[#some + 1] = { left, right, i, scores[i] or 0 } end
    end
    table.move(some, 1, #some, #list + 1, list)
  end
  table.sort(list, function(a, b)
    if a[4] ~= b[4] then return a[4] > b[4] end
    if a[3] ~= b[3] then return a[3] < b[3] end
    if a[1] ~= b[1] then return a[1] < b[1] end
    return a[2] < b[2]
  end)
  local merges = ms.json.array {}
  for i, merge in ipairs(list) do merges[i] = { tokens[merge[1] + 1], tokens[merge[2] + 1] } end
  return merges
end

local kinds = {}

-- Bytes as letters, pairs in the order in which they are merged.
function kinds.gpt2(metadata, tokens, numbers)
  local name = metadata["tokenizer.ggml.pre"] or "default"
  local cut = cuts[name] or fail(("the pre-tokenizer '%s' (tokenizer.ggml.pre) is not known"):format(tostring(name)))
  local steps = {}
  if cut == digits then
    steps[1], cut = { type = "Digits", individual_digits = true }, digits[2]
  end
  steps[#steps + 1] = split(cut)
  steps[#steps + 1] = { type = "ByteLevel", add_prefix_space = false, trim_offsets = true, use_regex = false }
  local merges = ms.json.array {}
  for i, merge in ipairs(list_of(metadata, "merges", true)) do
    -- A token that has a space itself is in none of these files; the first one stands between the two.
    merges[i] = merge
  end
  return {
    model = { type = "BPE", vocab = numbers, merges = merges, ignore_merges = cut == llama3 },
    pre_tokenizer = { type = "Sequence", pretokenizers = steps },
    decoder = { type = "ByteLevel", add_prefix_space = true, trim_offsets = true, use_regex = true },
  }
end

-- SentencePiece's BPE, with tokens for bytes.
function kinds.llama(metadata, tokens, numbers)
  local prefix = metadata["tokenizer.ggml.add_space_prefix"] ~= false
  local normalizers = ms.json.array { { type = "Replace", pattern = { String = " " }, content = "▁" } }
  local decoders = { { type = "Replace", pattern = { String = "▁" }, content = " " }, { type = "ByteFallback" }, { type = "Fuse" } }
  if prefix then
    table.insert(normalizers, 1, { type = "Prepend", prepend = "▁" })
    decoders[4] = { type = "Strip", content = " ", start = 1, stop = 0 }
  end
  local unknown = metadata["tokenizer.ggml.unknown_token_id"]
  for i, kind in ipairs(list_of(metadata, "token_type") or {}) do
    if unknown == nil and kind == unknown_kind then unknown = i - 1 end
  end
  return {
    model = {
      type = "BPE", vocab = numbers, merges = merges_of_scores(tokens, list_of(metadata, "scores", true), numbers),
      byte_fallback = true, fuse_unk = true, unk_token = unknown and tokens[unknown + 1],
    },
    normalizer = { type = "Sequence", normalizers = normalizers },
    decoder = { type = "Sequence", decoders = decoders },
  }
end

-- Gives the table, and { bos_token, eos_token, chat_template }.
return function(metadata)
  local tokens = list_of(metadata, "tokens", true)
  local name = metadata["tokenizer.ggml.model"]
  local make = kinds[name] or fail(("the tokenizer '%s' (tokenizer.ggml.model) is not supported; there are: gpt2, llama"):format(
    tostring(name)))
  local made = make(metadata, tokens, vocabulary(tokens))
  made.added_tokens = added_tokens(tokens, list_of(metadata, "token_type"))
  local function special(role)
    local id = metadata[("tokenizer.ggml.%s_token_id"):format(role)]
    return id and tokens[id + 1], id
  end
  local bos, bos_id = special "bos"
  local eos, eos_id = special "eos"
  -- Whether a text begins with bos, where the file does not say so: as llama.cpp has it.
  local adds_bos, adds_eos = metadata["tokenizer.ggml.add_bos_token"], metadata["tokenizer.ggml.add_eos_token"]
  if adds_bos == nil then adds_bos = name == "llama" end
  local single, pair, specials = {}, {}, {}
  local function add(list, token, id, type_id)
    specials[token] = { id = token, ids = { id }, tokens = { token } }
    list[#list + 1] = { SpecialToken = { id = token, type_id = type_id } }
  end
  for type_id, text in ipairs { "A", "B" } do
    for _, list in ipairs(type_id == 1 and { single, pair } or { pair }) do
      if adds_bos and bos then add(list, bos, bos_id, type_id - 1) end
      list[#list + 1] = { Sequence = { id = text, type_id = type_id - 1 } }
      if adds_eos and eos then add(list, eos, eos_id, type_id - 1) end
    end
  end
  made.post_processor = { type = "TemplateProcessing", single = single, pair = pair, special_tokens = specials }
  return made, { bos_token = bos, eos_token = eos, chat_template = metadata["tokenizer.chat_template"] }
end
