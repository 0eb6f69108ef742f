-- ms.lite.generate: a text goes on, token by token. ms.lite.perplexity: how well a network foretells a text.
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"
local samplers = require "lunaria.lite.language.sample"

local ops = ms.ops
local fail, check, describe = arguments.fail, arguments.check, arguments.describe

local M = {}

-- Whether the text ends within a character of UTF-8: further bytes are to come.
local function is_cut(text)
  for back = 1, math.min(4, #text) do
    local byte = text:byte(-back)
    if byte >= 0xC0 then return back < (byte >= 0xF0 and 4 or byte >= 0xE0 and 3 or 2) end
    if byte < 0x80 then return false end
  end
  return false
end

-- What tokens add to a text, as soon as it is certain. Tokens are decoded together with some before them: the first of a text may be
-- decoded without the space that it has within.
local Writer = {}
Writer.__index = Writer

local function writer(tokenizer, ids)
  local first = math.max(1, #ids - 4)
  return setmetatable({ tokenizer = tokenizer, ids = ids, from = first, read = #ids, held = "" }, Writer)
end

local function decoded(self, last) return self.tokenizer:decode(table.move(self.ids, self.from, last, 1, {})) end

function Writer:added()
  local before, now = self.read >= self.from and decoded(self, self.read) or "", decoded(self, #self.ids)
  if is_cut(now) or now:sub(-3) == "\u{FFFD}" or #now < #before then return "" end
  -- The tokens that were read last stay in front of the next ones.
  self.from, self.read = self.read + 1 > self.from and math.max(self.from, self.read - 3) or self.from, #self.ids
  return now:sub(#before + 1)
end

-- The place where one of the texts begins in what is held back, or the beginning of one that may be.
local function find_stop(text, stops)
  local whole, begun
  for _, stop in ipairs(stops) do
    local at = text:find(stop, 1, true)
    if at and (not whole or at < whole) then whole = at end
    for size = math.min(#stop - 1, #text), 1, -1 do
      if text:sub(-size) == stop:sub(1, size) then
        begun = math.min(begun or #text + 1, #text - size + 1)
        break
      end
    end
  end
  return whole, begun
end

local option_types = {
  max_tokens = "number", stop = "table", stream = "function", tokenizer = "table", temperature = "number", top_k = "number",
  top_p = "number", min_p = "number", repetition_penalty = "number", seed = "number", compile = "boolean", continued = "boolean",
}

local function stops_of(decoder, stop, tokenizer)
  local ids, texts = {}, {}
  for i, value in ipairs(stop or {}) do
    if math.type(value) == "integer" then
      ids[value] = true
    elseif type(value) == "string" and value ~= "" and tokenizer then
      texts[#texts + 1] = value
    else
      fail("generate", ("stop[%d] must be a token%s, got %s"):format(i, tokenizer and " or a text" or " (texts need a tokenizer)",
        describe(value)))
    end
  end
  local last = decoder.metadata and decoder.metadata["tokenizer.ggml.eos_token_id"]
  if not stop and last then ids[last] = true end
  return ids, texts
end

--- Has a decoder write on: gives a list of the new tokens and, with a tokenizer, their text.
---
--- decoder: of ms.lite.load_decoder or ms.lite.Decoder. prompt: a list of tokens or, with a tokenizer, a text. options: max_tokens (as many
--- as fit, at most 256); tokenizer, an object with encode(text) and decode(tokens); stop, a list of tokens (which are not part of the
--- result) and of texts, at which writing ends (what a GGUF file says ends a text, where it is left out); stream, a function that gets
--- each new piece of text (complete characters only; "" without a tokenizer) and its token, and ends the writing by returning false;
--- temperature, top_k, top_p, min_p, repetition_penalty, seed as ms.lite.Sampler has them; continued = true goes on behind the
--- tokens that are in the caches; compile = false has no step compiled. Ctrl-C ends the writing as it ends any program.
---     > config = { vocabulary = 20, width = 16, layers = 1, heads = 2, inner = 32, length = 16 }
---     > #ms.lite.generate(ms.lite.Decoder(config), { 1, 2, 3 }, { max_tokens = 5, temperature = 0 }) --> 5
function M.generate(decoder, prompt, options)
  local where = "generate"
  options = options and arguments.options(where, options, option_types, "{ max_tokens = 20 }") or {}
  local tokenizer = options.tokenizer
  local ids = type(prompt) == "string" and tokenizer and tokenizer:encode(prompt) or prompt
  if type(ids) ~= "table" or #ids == 0 then
    fail(where, "prompt must be a list of tokens that is not empty, or a text with a tokenizer, got " .. describe(prompt))
  end
  if not options.continued then decoder:begin(1, nil, { compile = options.compile }) end
  local free = decoder._state.length - decoder:position() - #ids
  local most = math.min(options.max_tokens and check.positive(where, "max_tokens", options.max_tokens) or 256, free + 1)
  if free < 0 then fail(where, ("a prompt of %d tokens is too long for %d places"):format(#ids, free + #ids)) end
  local sampler = samplers.Sampler { temperature = options.temperature, top_k = options.top_k, top_p = options.top_p, min_p = options.min_p,
    repetition_penalty = options.repetition_penalty, seed = options.seed }
  local stop_ids, stop_texts = stops_of(decoder, options.stop, tokenizer)
  local history, new, text, held = table.move(ids, 1, #ids, 1, {}), {}, {}, ""
  local out = tokenizer and writer(tokenizer, history)
  local function give(piece, id)
    text[#text + 1] = piece
    return options.stream and options.stream(piece, id) == false
  end
  local scores = decoder:step(ids)
  while #new < most do
    local id = sampler:next(scores[0], history)
    if stop_ids[id] then break end
    history[#history + 1], new[#new + 1] = id, id
    local piece = out and out:added() or ""
    local whole
    if #stop_texts > 0 then
      local begun
      held = held .. piece
      whole, begun = find_stop(held, stop_texts)
      local ready = (whole or begun or #held + 1) - 1
      piece, held = held:sub(1, ready), held:sub(ready + 1)
    end
    if give(piece, id) or whole then held = "" break end
    if #new < most then scores = decoder:step { id } end
  end
  if held ~= "" then give(held) end
  return new, out and table.concat(text) or nil
end

--- How well a decoder foretells a text: the exponential of the mean negative log-likelihood of its tokens but the first. decoder: of
--- ms.lite.load_decoder or ms.lite.Decoder. tokens: a list. options: length, the tokens that are looked at at a time (at most the
--- decoder's length): each such part begins without a past, and its first token is not counted.
---     > config = { vocabulary = 20, width = 16, layers = 1, heads = 2, inner = 32, length = 16 }
---     > ms.lite.perplexity(ms.lite.Decoder(config), { 1, 2, 3, 4 }) > 1 --> true
function M.perplexity(decoder, tokens, options)
  local where = "perplexity"
  options = options and arguments.options(where, options, { length = "number" }, "{ length = 512 }") or {}
  if type(tokens) ~= "table" or #tokens < 2 then fail(where, "tokens must be a list of at least two tokens, got " .. describe(tokens)) end
  local length = math.min(options.length and check.positive(where, "length", options.length) or 512, decoder.config.length)
  if length < 2 then fail(where, "length must be at least 2") end
  local sum, count = 0.0, 0
  for first = 1, #tokens - 1, length do
    local part = table.move(tokens, first, math.min(first + length - 1, #tokens), 1, {})
    if #part > 1 then
      local all = ms.tensor({ part }, ms.int64)
      local scores = decoder(ops.narrow(all, 1, 0, #part - 1))
      local likely = ops.gather_elements(ops.log_softmax(scores, -1), 2, ops.expand_dims(ops.narrow(all, 1, 1, #part - 1), 2))
      sum, count = sum - ops.sum(likely):item(), count + #part - 1
    end
  end
  return math.exp(sum / count)
end

return M
