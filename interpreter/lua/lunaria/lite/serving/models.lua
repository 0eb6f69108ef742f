-- What can be served: networks (tensors in, tensors out) and language models (a decoder with its tokenizer).
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"

local models = {}

-- { name, dtype, shape }: sizes that are not fixed are -1. Files of ONNX have them in `type`.
local function described(list)
  local rows = {}
  for i, one in ipairs(list or {}) do
    local type = one.type or one
    local shape
    if type.shape then
      shape = ms.json.array {}
      for k, size in ipairs(type.shape) do shape[k] = math.type(size) == "integer" and size or -1 end
    end
    rows[i] = { name = one.name, dtype = type.dtype, shape = shape }
  end
  return rows
end

-- A network of a file: { kind, name, inputs, outputs, run = f(list of tensors) -> list of tensors }.
local function network(path)
  local f, _, about = ms.load(path)
  if type(f) == "table" and arguments.is_callable(f) == false or not about then
    arguments.fail("serve", ("'%s' has no network: MindIR and ONNX files, folders of language models and GGUF files can be served"):format(path))
  end
  local run = ms.get_context "mode" == ms.GRAPH_MODE and ms.jit(f) or f
  return {
    kind = "network", inputs = described(about.inputs), outputs = described(about.outputs),
    run = function(tensors) return { run(table.unpack(tensors)) } end,
  }
end

-- Tokens at which answers of published models end, beside the tokenizer's own.
local ends = { "<|eot_id|>", "<|im_end|>", "<|end|>", "<end_of_turn>", "<|endoftext|>", "<|end_of_text|>", "</s>", "<|eom_id|>" }

local function stops_of(tokenizer, decoder)
  local ids, seen = {}, {}
  local function add(id)
    if id and not seen[id] then ids[#ids + 1], seen[id] = id, true end
  end
  if tokenizer.eos_token then add(tokenizer:token_to_id(tokenizer.eos_token)) end
  add(decoder.metadata and decoder.metadata["tokenizer.ggml.eos_token_id"])
  for _, token in ipairs(ends) do
    local id = tokenizer:token_to_id(token)
    if id and select(2, tokenizer:id_to_token(id)) then add(id) end
  end
  return ids
end

--- A language model: { kind, decoder, tokenizer, stops = ids that end an answer }.
function models.language(decoder, tokenizer)
  return { kind = "language", decoder = decoder, tokenizer = tokenizer, stops = stops_of(tokenizer, decoder) }
end

local function language(path, options)
  local decoder = ms.lite.load_decoder(path, { length = options.length, quantize = options.quantize })
  local tokenizer
  if ms.io.kind(path) == "folder" then
    tokenizer = ms.lite.Tokenizer(path)
  else
    tokenizer = ms.lite.Tokenizer.from_gguf(decoder.metadata or {})
  end
  return models.language(decoder, tokenizer)
end

--- The model of a file or a folder. options: those of ms.lite.load_decoder for language models.
function models.open(path, options)
  local is_language = ms.io.kind(path) == "folder" or path:find "%.gguf$" ~= nil
  if not is_language then
    for name in pairs(options) do arguments.fail("serve", ("the option '%s' is for language models"):format(name)) end
  end
  local model = is_language and language(path, options) or network(path)
  model.name = path:gsub("/+$", ""):match "[^/]+$"
  return model
end

return models
