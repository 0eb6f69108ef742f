-- Models to be served: networks (tensors in, tensors out) and language models (a decoder with its tokenizer).
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
  if not about then
    arguments.fail("serve", ("'%s' has no network"):format(path),
      "MindIR, ONNX and light files, folders of language models and GGUF files can be served")
  end
  local run = ms.get_context "mode" == ms.GRAPH_MODE and ms.jit(f) or f
  return {
    kind = "network", inputs = described(about.inputs), outputs = described(about.outputs),
    run = function(tensors) return { run(table.unpack(tensors)) } end,
  }
end

-- A light file. Its sizes may be open: the runtime knows which, and is told of others when they come.
local function light(path)
  local model = ms.lite.Model(path)
  local function rows(list)
    local described_rows = {}
    for i, one in ipairs(list) do described_rows[i] = { name = one.name, dtype = tostring(one.dtype):lower() } end
    return described_rows
  end
  local function sizes_of(list)
    local shapes, parts = {}, {}
    for i, one in ipairs(list) do
      shapes[i] = {}
      for axis = 1, #one.shape do shapes[i][axis] = one.shape[axis] end
      parts[i] = table.concat(shapes[i], ",")
    end
    return table.concat(parts, ";"), shapes
  end
  local present = sizes_of(model:inputs())
  return {
    kind = "network", inputs = rows(model:inputs()), outputs = rows(model:outputs()),
    run = function(tensors)
      local list = {}
      for i, tensor in ipairs(tensors) do list[i] = { shape = tensor.shape } end
      local wanted, shapes = sizes_of(list)
      if wanted ~= present then
        model:resize(table.unpack(shapes))
        present = wanted
      end
      return { model:predict(table.unpack(tensors)) }
    end,
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

-- A language model: decoder, tokenizer, stops (ids that end an answer), cached (the ids that are in the decoder's caches).
local Language = { kind = "language" }
Language.__index = Language

--- As ms.lite.generate, with ids as the prompt; ids that the last prompt and its answer began with are not computed again.
function Language:generate(ids, options)
  local decoder, cached, same = self.decoder, self.cached, 0
  -- A penalty counts the tokens that it is given: all of them.
  local most = options.repetition_penalty and 0 or math.min(#ids - 1, #cached, decoder:position())
  while same < most and cached[same + 1] == ids[same + 1] do same = same + 1 end
  if same > 0 then decoder:rewind(same) end
  self.cached = {}
  options.continued, options.tokenizer = same > 0, self.tokenizer
  local new, text = ms.lite.generate(decoder, table.move(ids, same + 1, #ids, 1, {}), options)
  local all = table.move(new, 1, #new, #ids + 1, table.move(ids, 1, #ids, 1, {}))
  self.cached = table.move(all, 1, math.min(#all, decoder:position()), 1, {})
  return new, text
end

function models.language(decoder, tokenizer)
  return setmetatable({ decoder = decoder, tokenizer = tokenizer, stops = stops_of(tokenizer, decoder), cached = {} }, Language)
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
  local model
  if is_language then
    model = language(path, options)
  else
    model = path:find "%.lite$" and light(path) or network(path)
  end
  model.name = path:gsub("/+$", ""):match "[^/]+$"
  return model
end

return models
