-- Decoders from files: folders of Hugging Face's transformers (config.json with one or several safetensors files) and GGUF files.
-- Their names of weights become those of `decoder`; what is in blocks in a GGUF file stays so, and is read where it is looked at.
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"
local decoders = require "lunaria.lite.language.decoder"

local ops, io_, json = ms.ops, ms.io, ms.json
local fail, check = arguments.fail, arguments.check

local M = {}

-- A name of the decoder as { outside of layers }, { prefix of a layer, names in it }.
local gguf_names = {
  { embed = "token_embd", places = "position_embd", norm = "output_norm", head = "output" }, "blk.%d.",
  { norm1 = "attn_norm", norm2 = "ffn_norm", q = "attn_q", k = "attn_k", v = "attn_v", o = "attn_output", q_norm = "attn_q_norm",
    k_norm = "attn_k_norm", gate = "ffn_gate", up = "ffn_up", down = "ffn_down", joined = "attn_qkv" },
}
local llama_names = {
  { embed = "model.embed_tokens", norm = "model.norm", head = "lm_head" }, "model.layers.%d.",
  { norm1 = "input_layernorm", norm2 = "post_attention_layernorm", q = "self_attn.q_proj", k = "self_attn.k_proj",
    v = "self_attn.v_proj", o = "self_attn.o_proj", q_norm = "self_attn.q_norm", k_norm = "self_attn.k_norm", gate = "mlp.gate_proj",
    up = "mlp.up_proj", down = "mlp.down_proj" },
}
local gpt2_names = {
  { embed = "wte", places = "wpe", norm = "ln_f", head = "lm_head" }, "h.%d.",
  { norm1 = "ln_1", norm2 = "ln_2", o = "attn.c_proj", up = "mlp.c_fc", down = "mlp.c_proj", joined = "attn.c_attn" },
  turned = { o = true, up = true, down = true, joined = true },
}

-- The file's name of a weight, and its part of a layer.
local function file_name(names, name)
  local layer, part, kind = name:match "^layers%.(%d+)%.([%w_]+)%.(%w+)$"
  if layer then
    if not names[3][part] and names[3].joined then part = "joined" end
    return names[2]:format(math.tointeger(layer)) .. names[3][part] .. "." .. kind, part
  end
  part, kind = name:match "^(%w+)%.(%w+)$"
  return names[1][part] .. "." .. kind, part
end
M.gguf_names, M.file_name = gguf_names, file_name

-- The rows of q, k or v among those of all three.
local function rows_of(c, name, value)
  local part = name:match "%.(%w)%.%w+$"
  local q, kv = c.heads * c.head_size, c.kv_heads * c.head_size
  local first = part == "q" and 0 or part == "k" and q or q + kv
  return ops.narrow(value, 0, first, part == "q" and q or kv)
end

-- What `get` of a decoder is: source has find(name), which gives a tensor and its form.
local function weights(path, c, names, source, options)
  return function(name, shape)
    local own, part = file_name(names, name)
    local value, form = source(own)
    if not value and part ~= "joined" and gguf_names[3].joined and name:find "%.[qkv]%.%w+$" then
      own = file_name({ {}, names[2], { joined = names[3].joined } }, name)
      value, form = source(own)
      part = value and "joined" or part
    end
    if not value then fail(path, ("has no tensor '%s'"):format(own)) end
    if not form then
      value = value:astype(ms.float32)
      if names.turned and names.turned[part] and value.ndim == 2 then value = ops.swapaxes(value, 0, 1) end
    end
    if part == "joined" then value = rows_of(c, name, value) end
    local columns = form and shape[#shape] // (form:find "_k$" and 256 or 32) * ({ q8_0 = 34, q4_0 = 18, q4_k = 144, q6_k = 210 })[form]
      or shape[#shape]
    if value.ndim ~= #shape or value:sizes(0) < shape[1] or value:sizes(-1) ~= columns then
      fail(path, ("tensor '%s' has shape %s, where the configuration says (%s)"):format(own, tostring(value.shape),
        table.concat(shape, ", ")))
    end
    local wanted = options.quantize
    if wanted and not form and #shape == 2 and shape[2] % 32 == 0 and not name:find "^places" then
      return ops.quantize_blocks(value, wanted), wanted
    end
    return value, form
  end
end

local function scaling_of(path, s)
  local kind = s and (s.rope_type or s.type) or "default"
  if kind == "default" or kind == json.null then return nil end
  local wanted = { linear = { "factor" }, llama3 = { "factor", "low_freq_factor", "high_freq_factor", "original_max_position_embeddings" } }
  for _, key in ipairs(wanted[kind] or {}) do
    if type(s[key]) ~= "number" or s[key] <= 0 then fail(path, ("scales its positions without a %s above 0"):format(key)) end
  end
  if kind == "linear" then return { type = "linear", factor = s.factor } end
  if kind == "llama3" then
    return { type = "llama3", factor = s.factor, low_freq_factor = s.low_freq_factor, high_freq_factor = s.high_freq_factor,
      original_length = s.original_max_position_embeddings }
  end
  fail(path, ("scales its positions by '%s', which is not supported: none, linear and llama3 are"):format(tostring(kind)))
end

local kinds = { llama = "llama", mistral = "llama", qwen2 = "qwen2", qwen3 = "qwen3", gpt2 = "gpt2" }

local function given(value, otherwise)
  if value == nil or value == json.null then return otherwise end
  return value
end

local activations = { silu = "swiglu", swish = "swiglu" }

-- A configuration of transformers.
local function from_transformers(path, h)
  if type(h) ~= "table" then fail(path, "is no object of JSON") end
  local kind = kinds[h.model_type] or fail(path,
    ("is a model of type '%s', which is not supported: llama, mistral, qwen2, qwen3 and gpt2 are"):format(tostring(h.model_type)))
  if kind == "gpt2" then
    local activation = given(h.activation_function, "gelu_new")
    if activation ~= "gelu_new" and activation ~= "gelu_pytorch_tanh" then
      fail(path, "has the activation '" .. tostring(activation) .. "', which is not supported")
    end
    return {
      kind = kind, vocabulary = h.vocab_size, width = h.n_embd, layers = h.n_layer, heads = h.n_head, length = h.n_positions,
      inner = given(h.n_inner, math.tointeger(h.n_embd) and 4 * h.n_embd), epsilon = h.layer_norm_epsilon,
      normalization = "layer", mlp = "gelu", positions = "learned", qkv_bias = true, out_bias = true,
      tied = given(h.tie_word_embeddings, true),
    }
  end
  if not activations[given(h.hidden_act, "silu")] then
    fail(path, "has the activation '" .. tostring(h.hidden_act) .. "', which is not supported")
  end
  for _, key in ipairs { "attention_bias", "mlp_bias" } do
    if given(h[key], false) then fail(path, ("has %s, which is not supported"):format(key)) end
  end
  local rope = given(h.rope_parameters, given(h.rope_scaling, nil))
  if rope ~= nil and type(rope) ~= "table" then fail(path, "has rope parameters that are no object") end
  local length = h.max_position_embeddings
  -- Up to the window's length a window hides nothing.
  local window = given(h.use_sliding_window, kind ~= "qwen2" and kind ~= "qwen3") and given(h.sliding_window, nil)
  if math.type(window) == "integer" and math.type(length) == "integer" then length = math.min(length, window) end
  return {
    kind = kind, vocabulary = h.vocab_size, width = h.hidden_size, layers = h.num_hidden_layers, heads = h.num_attention_heads,
    kv_heads = given(h.num_key_value_heads, h.num_attention_heads), head_size = given(h.head_dim, nil), inner = h.intermediate_size,
    length = length, epsilon = h.rms_norm_eps, base = given(h.rope_theta, rope and given(rope.rope_theta, nil) or 10000.0),
    scaling = scaling_of(path, rope), qkv_bias = kind == "qwen2",
    qk_norm = kind == "qwen3", tied = given(h.tie_word_embeddings, false),
  }
end

local function from_gguf(path, m, tensors)
  local arch = m["general.architecture"]
  local kind = kinds[arch] or fail(path, ("is a model of architecture '%s', which is not supported: llama, qwen2, qwen3 and gpt2 are")
    :format(tostring(arch)))
  local function value(name, otherwise)
    local found = m[arch .. "." .. name]
    if found == nil then found = otherwise end
    return found
  end
  local function need(name)
    local found = value(name)
    if found == nil then fail(path, ("has no value '%s.%s'"):format(arch, name)) end
    return found
  end
  local embed = tensors["token_embd.weight"] or fail(path, "has no tensor 'token_embd.weight'")
  local scaling = value "rope.scaling.type"
  if scaling ~= nil and scaling ~= "none" and scaling ~= "linear" then
    fail(path, ("scales its positions by '%s', which is not supported: none and linear are"):format(tostring(scaling)))
  end
  local factors = tensors["rope_freqs.weight"]
  return {
    kind = kind, vocabulary = embed:sizes(0), width = need "embedding_length", layers = need "block_count",
    heads = need "attention.head_count", kv_heads = value "attention.head_count_kv", head_size = value "attention.key_length",
    inner = need "feed_forward_length", length = need "context_length",
    epsilon = kind == "gpt2" and value("attention.layer_norm_epsilon", 1e-5) or value("attention.layer_norm_rms_epsilon", 1e-5),
    normalization = kind == "gpt2" and "layer" or "rms", mlp = kind == "gpt2" and "gelu" or "swiglu",
    positions = kind == "gpt2" and "learned" or "rotary", base = value("rope.freq_base", 10000.0), interleaved = kind == "llama",
    scaling = scaling == "linear" and { type = "linear", factor = need "rope.scaling.factor" } or nil,
    factors = factors and factors:astype(ms.float32):tolist() or nil,
    qkv_bias = kind == "gpt2" or tensors["blk.0.attn_q.bias"] ~= nil, out_bias = kind == "gpt2",
    qk_norm = tensors["blk.0.attn_q_norm.weight"] ~= nil, tied = tensors["output.weight"] == nil,
  }
end

local option_types = { quantize = "string", length = "number" }

-- Positions cost memory for their angles, so that the length is no longer than this unless it is asked for.
local usual_length = 4096

local function limited(config, options)
  -- What is no number is named where the decoder is made.
  if math.type(config.length) ~= "integer" then return config end
  config.trained_length = config.length
  config.length = options.length or (config.positions == "learned" and config.length) or math.min(config.length, usual_length)
  if config.positions == "learned" and config.length > config.trained_length then
    fail("load_decoder", ("length must be at most %d, as many positions as were learned"):format(config.trained_length))
  end
  return config
end

-- The rows of q, k and v; the decoder checks what they are made of.
local function sizes_of(c)
  local whole = math.type(c.width) == "integer" and math.type(c.heads) == "integer" and c.heads > 0
  return { heads = c.heads, kv_heads = c.kv_heads or c.heads, head_size = c.head_size or whole and c.width // c.heads }
end

local function load_gguf(path, options)
  local tensors, metadata, forms = ms.load_gguf(path)
  local config = limited(from_gguf(path, metadata, tensors), options)
  local sizes = sizes_of(config)
  local decoder = decoders.Decoder(config, weights(path, sizes, gguf_names, function(name) return tensors[name], forms[name] end, options))
  decoder.metadata = metadata
  return decoder
end

local function load_folder(path, options)
  local config_path = path .. "/config.json"
  if io_.kind(config_path) ~= "file" then fail(path, "has no file config.json") end
  local config = limited(from_transformers(config_path, json.decode(io_.read_text(config_path))), options)
  local single = path .. "/model.safetensors"
  local values = ms.load_checkpoint(io_.kind(single) == "file" and single or path, { mmap = true })
  local names = config.kind == "gpt2" and gpt2_names or llama_names
  local sizes = sizes_of(config)
  return decoders.Decoder(config, weights(path, sizes, names, function(name)
    local value = values[name] or values["transformer." .. name]
    return ms.is_tensor(value) and value or nil
  end, options))
end

--- Reads a decoder: the folder of a model of Hugging Face's transformers (Llama, Mistral, Qwen 2, Qwen 3 or GPT-2; config.json and
--- safetensors files), or a GGUF file of such a model. Weights in blocks stay in blocks, and in the file until they are looked at;
--- halves become float32. path: the folder or the file. options: quantize = "q8_0" or "q4_0" puts matrices that are not in blocks
--- into blocks; length: how long texts may become (what the model was trained for, at most 4096). decoder.config is the
--- configuration, decoder.metadata what a GGUF file says about itself, its words among it.
---     > config = { vocabulary = 64, width = 32, layers = 1, heads = 2, inner = 64, length = 8 }
---     > ms.lite.save_decoder(ms.lite.Decoder(config), "/tmp/lunaria_help.gguf", { form = "q8_0" })
---     > decoder = ms.lite.load_decoder("/tmp/lunaria_help.gguf")
---     > decoder(ms.tensor { { 1, 2 } }).shape --> (1, 2, 64)
---     > (os.remove("/tmp/lunaria_help.gguf")) --> true
function M.load_decoder(path, options)
  local where = "load_decoder"
  if type(path) ~= "string" then fail(where, "path must be a string, got " .. arguments.describe(path)) end
  options = options and arguments.options(where, options, option_types, "{ quantize = \"q8_0\" }") or {}
  if options.quantize then check.choice(where, "quantize", options.quantize, { "q8_0", "q4_0" }) end
  if options.length then check.positive(where, "length", options.length) end
  if io_.kind(path) == "folder" then return load_folder(path, options) end
  return load_gguf(path, options)
end

-- llama.cpp turns neighbours: the rows of q and k of halves are brought into that order.
local function neighbours(value, heads)
  local rows, columns = value:sizes(0), value.ndim == 2 and value:sizes(1) or 1
  local turned = ops.swapaxes(ops.reshape(value, { heads, 2, rows // heads // 2, columns }), 1, 2)
  return ops.reshape(turned, value.ndim == 2 and { rows, columns } or { rows })
end

local function metadata_of(decoder, extra)
  local c, m = decoder.config, {}
  for key, value in pairs(extra or decoder.metadata or {}) do m[key] = value end
  local arch = c.kind
  m["general.architecture"] = arch
  for key, value in pairs {
    ["context_length"] = c.trained_length or c.length, ["embedding_length"] = c.width, ["block_count"] = c.layers,
    ["feed_forward_length"] = c.inner, ["attention.head_count"] = c.heads, ["attention.head_count_kv"] = c.kv_heads,
    ["attention.key_length"] = c.head_size, ["attention.value_length"] = c.head_size,
    [c.kind == "gpt2" and "attention.layer_norm_epsilon" or "attention.layer_norm_rms_epsilon"] = c.epsilon,
  } do m[arch .. "." .. key] = value end
  if c.positions == "rotary" then
    m[arch .. ".rope.freq_base"], m[arch .. ".rope.dimension_count"] = c.base + 0.0, c.head_size
    if c.scaling and c.scaling.type == "linear" then
      m[arch .. ".rope.scaling.type"], m[arch .. ".rope.scaling.factor"] = "linear", c.scaling.factor + 0.0
    elseif c.scaling then
      fail("save_decoder", "positions that are scaled as Llama 3.1's are not written")
    end
  end
  return m
end

--- Writes a decoder as a GGUF file, as llama.cpp reads it. decoder: of ms.lite.Decoder or ms.lite.load_decoder. path: the file. options:
--- form = "q8_0" or "q4_0" puts matrices into blocks, which have a multiple of 32 columns; metadata: what the file says besides,
--- as ms.save_gguf has it, in place of what the decoder was read with.
---     > config = { vocabulary = 20, width = 32, layers = 1, heads = 2, inner = 64, length = 8 }
---     > ms.lite.save_decoder(ms.lite.Decoder(config), "/tmp/lunaria_help.gguf")
---     > select(2, ms.load_gguf("/tmp/lunaria_help.gguf"))["llama.block_count"] --> 1
---     > (os.remove("/tmp/lunaria_help.gguf")) --> true
function M.save_decoder(decoder, path, options)
  local where = "save_decoder"
  options = options and arguments.options(where, options, { form = "string", metadata = "table" }, "{ form = \"q8_0\" }") or {}
  if options.form then check.choice(where, "form", options.form, { "q8_0", "q4_0" }) end
  local c, tensors, forms = decoder.config, {}, {}
  local turn = c.kind == "llama" and c.positions == "rotary" and not c.interleaved
  local function put(name, value, form)
    local own, part = file_name(gguf_names, name)
    if turn and (part == "q" or part == "k") then value = neighbours(value, part == "q" and c.heads or c.kv_heads) end
    tensors[own] = value
    if form == nil and options.form and value.ndim == 2 and value:sizes(1) % 32 == 0 and part ~= "places" then form = options.form end
    forms[own] = form
  end
  local function put_cell(name, cell)
    if not cell then return end
    put(name .. ".weight", cell.weight or cell.gamma, cell.form)
    local bias = cell.bias or cell.beta
    if bias then put(name .. ".bias", bias) end
  end
  for _, name in ipairs { "embed", "places", "norm", "head" } do put_cell(name, decoder[name]) end
  for i = 1, #decoder.layers do
    for _, name in ipairs { "norm1", "q", "k", "v", "o", "q_norm", "k_norm", "norm2", "gate", "up", "down" } do
      put_cell(("layers.%d.%s"):format(i - 1, name), decoder.layers[i][name])
    end
  end
  if c.factors then tensors["rope_freqs.weight"] = ms.tensor(c.factors, ms.float32) end
  -- GPT-2's queries, keys and values are one matrix there.
  if c.kind == "gpt2" then
    for i = 0, c.layers - 1 do
      for _, kind in ipairs { "weight", "bias" } do
        local parts = {}
        for k, part in ipairs { "q", "k", "v" } do
          local name = ("blk.%d.attn_%s.%s"):format(i, part, kind)
          parts[k], tensors[name] = tensors[name], nil
          forms[("blk.%d.attn_qkv.%s"):format(i, kind)], forms[name] = forms[name], nil
        end
        tensors[("blk.%d.attn_qkv.%s"):format(i, kind)] = ops.concat(parts, 0)
      end
    end
  end
  ms.save_gguf(path, tensors, { forms = forms, metadata = metadata_of(decoder, options.metadata) })
end

return M
