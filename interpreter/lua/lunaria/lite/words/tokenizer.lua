-- ms.lite.Tokenizer: texts to the numbers of a language model's tokens and back.
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"
local class = require "lunaria.nn.class"
local files = require "lunaria.dataset.files"
local native = require "lunaria.words"

local fail, describe, check = arguments.fail, arguments.describe, arguments.check

local Tokenizer = class.Object:extend "Tokenizer"
Tokenizer._parameters = "path"
Tokenizer._doc = [[
The tokenizer of a language model. path: a tokenizer.json of Hugging Face, or the folder of a model that has one; then special tokens
and the chat template are read from tokenizer_config.json there. It gives what the package `tokenizers` gives. Byte-level BPE, BPE with
bytes for unknown characters, Unigram, WordPiece and WordLevel are known, with their normalizers, pre-tokenizers, post-processors and
decoders. Tokenizer.from_json has the file's text instead, Tokenizer.from_gguf a GGUF file's metadata. `bos_token`, `eos_token` and
`chat_template` are texts, or nil.

    > model = '{"type": "WordLevel", "vocab": {"good": 0, "day": 1, "?": 2}, "unk_token": "?"}'
    > path = os.tmpname()
    > ms.dataset.vision.write_file(path, '{"model": ' .. model .. ', "pre_tokenizer": {"type": "Whitespace"}}')
    > words = ms.lite.Tokenizer(path)
    > table.concat(words:encode "good day", " ")
    0 1
    > words:decode { 0, 1 }
    good day
    > os.remove(path)
    true]]

local function text_of(where, name, value)
  if type(value) ~= "string" then fail(where, ("%s must be a text, got %s"):format(name, describe(value))) end
  return value
end

local function from_text(text)
  return setmetatable({ _handle = native.load(text) }, Tokenizer)
end

-- A special token of tokenizer_config.json is a text, or a table that has it.
local function token_of(value)
  if type(value) == "table" then value = value.content end
  return type(value) == "string" and value or nil
end

-- A model may have several templates, by name.
local function template_of(value)
  if type(value) == "string" then return value end
  local found
  for _, one in ipairs(type(value) == "table" and value or {}) do
    if type(one) == "table" and type(one.template) == "string" and (one.name == "default" or not found) then found = one.template end
  end
  return found
end

local function read_config(self, folder)
  local path = folder .. "/tokenizer_config.json"
  if ms.io.kind(path) then
    local config = ms.json.decode(files.text_of("Tokenizer", path))
    if type(config) ~= "table" then fail("Tokenizer", path .. " has no table") end
    self.bos_token, self.eos_token = token_of(config.bos_token), token_of(config.eos_token)
    self.chat_template = template_of(config.chat_template)
  end
  local template = folder .. "/chat_template.jinja"
  if ms.io.kind(template) then self.chat_template = files.text_of("Tokenizer", template) end
end

function Tokenizer:init(path)
  if type(path) ~= "string" or path == "" then fail("Tokenizer", "the path of a tokenizer.json is expected, got " .. describe(path)) end
  local folder = path:match "^(.*)/[^/]*$" or "."
  if ms.io.kind(path) == "folder" then
    folder = files.folder_of("Tokenizer", "path", path)
    path = folder .. "/tokenizer.json"
  end
  self._handle = native.load(files.text_of("Tokenizer", path))
  read_config(self, folder)
end

--- A tokenizer of the text of a tokenizer.json.
---     > words = ms.lite.Tokenizer.from_json '{"model": {"type": "WordLevel", "vocab": {"day": 0, "?": 1}, "unk_token": "?"}}'
---     > words:encode("day")[1] --> 0
function Tokenizer.from_json(text) return from_text(text_of("Tokenizer.from_json", "text", text)) end

--- A tokenizer of the metadata of a GGUF file, a table of values by name such as tokenizer.ggml.tokens.
---     > metadata = { ["tokenizer.ggml.model"] = "gpt2", ["tokenizer.ggml.tokens"] = { "a", "b", "ab" } }
---     > metadata["tokenizer.ggml.merges"] = { "a b" }
---     > ms.lite.Tokenizer.from_gguf(metadata):encode("ab")[1] --> 2
function Tokenizer.from_gguf(metadata)
  if type(metadata) ~= "table" then fail("Tokenizer.from_gguf", "the metadata must be a table, got " .. describe(metadata)) end
  local made, more = require "lunaria.lite.words.gguf"(metadata)
  local self = from_text(ms.json.encode(made))
  self.bos_token, self.eos_token, self.chat_template = more.bos_token, more.eos_token, more.chat_template
  return self
end

local encode_signature = arguments.signature "text, pair=nil, add_special_tokens=true"
local function encoded(where, f, self, ...)
  local a = arguments.bind(where, encode_signature, ...)
  local pair = a.pair ~= nil and text_of(where, "pair", a.pair) or nil
  return f(self._handle, text_of(where, "text", a.text), pair, check.boolean(where, "add_special_tokens", a.add_special_tokens))
end

--- The numbers of a text's tokens, as a list. pair: a second text, for models that take two; add_special_tokens: false leaves out those
--- that the tokenizer puts around a text.
---     > words = ms.lite.Tokenizer.from_json('{"model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2}, "merges": ["a b"]}}')
---     > #words:encode "abab" --> 2
function Tokenizer:encode(...) return encoded("Tokenizer:encode", native.encode_ids, self, ...) end

--- All that is known of a text's tokens: a table of lists, `ids`, `tokens`, `begins` and `ends` (where each stands in the text, in bytes
--- that count from 0), `type_ids` (of which text of a pair it is) and `special` (whether it was put around the text).
---     > words = ms.lite.Tokenizer.from_json('{"model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2}, "merges": ["a b"]}}')
---     > all = words:encoding("abb")
---     > all.tokens[1], all.begins[2], all.ends[2] --> ab	2	3
function Tokenizer:encoding(...) return encoded("Tokenizer:encoding", native.encode, self, ...) end

local decode_signature = arguments.signature "ids, skip_special_tokens=true"
--- The text of tokens. ids: a list of numbers, or a tensor; skip_special_tokens: false shows special tokens, too.
---     > model = '{"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2}, "merges": ["a b"]}'
---     > words = ms.lite.Tokenizer.from_json('{"model": ' .. model .. ', "decoder": {"type": "Fuse"}}')
---     > words:decode { 2, 1 } --> abb
function Tokenizer:decode(...)
  local a = arguments.bind("Tokenizer:decode", decode_signature, ...)
  return native.decode(self._handle, a.ids, check.boolean("Tokenizer:decode", "skip_special_tokens", a.skip_special_tokens))
end

--- The number of a token, or nil.
---     > words = ms.lite.Tokenizer.from_json '{"model": {"type": "WordLevel", "vocab": {"day": 0, "?": 1}, "unk_token": "?"}}'
---     > words:token_to_id "day", words:token_to_id "night" --> 0	nil
function Tokenizer:token_to_id(token)
  return (native.number(self._handle, text_of("Tokenizer:token_to_id", "token", token)))
end

--- The token of a number, id, or nil; and whether it is a special one.
---     > words = ms.lite.Tokenizer.from_json '{"model": {"type": "WordLevel", "vocab": {"day": 0, "?": 1}, "unk_token": "?"}}'
---     > words:id_to_token(0) --> day	false
function Tokenizer:id_to_token(id) return native.token(self._handle, check.integer("Tokenizer:id_to_token", "id", id)) end

--- How many numbers there are: one more than the largest.
function Tokenizer:__len() return native.size(self._handle) end

function Tokenizer.__tostring(self) return ("Tokenizer<%d tokens>"):format(#self) end

local Stream = { __name = "stream of tokens" }
Stream.__index = Stream
--- The text that one more token adds, "" where it ends within a character.
function Stream:next(id) return native.next(self._handle, id) end
--- What was held back; the stream is as new then.
function Stream:rest() return native.rest(self._handle) end

local stream_signature = arguments.signature "skip_special_tokens=true"
--- A stream that turns tokens that come one after the other into text: `next(id)` gives what the token adds, "" where its bytes end
--- within a character; `rest()` gives what is still held back.
---     > model = '{"type": "BPE", "vocab": {"<0xC3>": 0, "<0xA9>": 1}, "merges": []}'
---     > words = ms.lite.Tokenizer.from_json('{"model": ' .. model .. ', "decoder": {"type": "ByteFallback"}}')
---     > stream = words:stream()
---     > stream:next(0) == "", stream:next(1) --> true	é
function Tokenizer:stream(...)
  local a = arguments.bind("Tokenizer:stream", stream_signature, ...)
  local skips = check.boolean("Tokenizer:stream", "skip_special_tokens", a.skip_special_tokens)
  return setmetatable({ _handle = native.stream(self._handle, skips) }, Stream)
end

local template_names = { add_generation_prompt = "boolean", tools = "table", template = "string", values = "table" }
--- The text of a conversation as the model's chat template writes it. messages: a list of tables with `role` and `content`.
--- options: add_generation_prompt = true ends with the beginning of an answer; tools: descriptions of functions; template: another
--- template; values: further values that the template may ask for.
---     > words = ms.lite.Tokenizer.from_json '{"model": {"type": "WordLevel", "vocab": {"day": 0, "?": 1}, "unk_token": "?"}}'
---     > words.chat_template = "{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}"
---     > words:apply_chat_template { { role = "user", content = "Good day" } } --> <user>Good day
function Tokenizer:apply_chat_template(messages, options)
  local where = "Tokenizer:apply_chat_template"
  options = arguments.options(where, options, template_names, "{ add_generation_prompt = true }")
  if type(messages) ~= "table" then fail(where, "messages must be a list of tables, got " .. describe(messages)) end
  local text = options.template or self.chat_template
    or fail(where, "the model has no chat template", "pass one as { template = \"...\" }")
  if not self._template or self._template.text ~= text then
    self._template = { text = text, run = ms.lite.chat_template(text) }
  end
  local values = { bos_token = self.bos_token, eos_token = self.eos_token }
  for name, value in pairs(options.values or {}) do values[name] = value end
  values.messages, values.tools = messages, options.tools
  values.add_generation_prompt = options.add_generation_prompt or false
  return self._template.run(values)
end

return { Tokenizer = Tokenizer }
