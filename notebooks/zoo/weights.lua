-- Weights of others: files in the names that transformers and torchvision give, one or several with an index, for the networks
-- of this folder. Names are rewritten by rules until they are ours; the rest of the work is ms.load_weights'.
local ms = require "lunaria"
local ops = ms.ops

local M = {}

-- { pattern of a name, what it becomes (false: it is not a parameter) }, one after the other. transposed: matrices that are stored
-- the other way round. joined: { pattern of the first, of a further one by the first's captures ..., the name of all }.
M.gpt2 = {
  { "^transformer%.", "" }, { "^lm_head%.weight$", false }, { "%.attn%.bias$", false }, { "%.attn%.masked_bias$", false },
  { "%.attn%.c_", ".c_" }, { "%.mlp%.c_fc%.", ".c_fc." }, { "%.mlp%.c_proj%.", ".c_out." },
  { "^(w[tp]e)%.weight$", "%1.embedding_table" }, { "(ln_%w+)%.weight$", "%1.gamma" }, { "(ln_%w+)%.bias$", "%1.beta" },
  transposed = "%.c_%w+%.weight$",
}

M.bert = {
  { "^bert%.", "" }, { "%.position_ids$", false }, { "^cls%.seq_relationship%.", false }, { "^cls%.predictions%.decoder%.", false },
  { "%.LayerNorm%.weight$", ".LayerNorm.gamma" }, { "%.LayerNorm%.bias$", ".LayerNorm.beta" },
  { "^embeddings%.LayerNorm%.", "norm." }, { "^embeddings%.([%w_]+)%.weight$", "%1.embedding_table" }, { "^pooler%.dense%.", "pooler." },
  { "^encoder%.layer%.", "encoder.layers." }, { "%.attention%.output%.dense%.", ".self_attn.out_proj." },
  { "%.attention%.output%.LayerNorm%.", ".norm1." }, { "%.intermediate%.dense%.", ".linear1." },
  { "%.output%.dense%.", ".linear2." }, { "%.output%.LayerNorm%.", ".norm2." },
  { "^cls%.predictions%.transform%.dense%.", "transform." }, { "^cls%.predictions%.transform%.LayerNorm%.", "transform_norm." },
  { "^cls%.predictions%.bias$", "bias" },
  joined = { "^(.*)%.attention%.self%.query%.(%w+)$", "%1.attention.self.key.%2", "%1.attention.self.value.%2", "%1.self_attn.in_proj_%2" },
}

local function add_one(text) return ("%d"):format(text + 1) end

-- Names of torchvision, and of transformers, which become those first.
M.resnet = {
  { "%.num_batches_tracked$", false }, { "^resnet%.", "" }, { "^embedder%.embedder%.convolution%.", "conv1." },
  { "^embedder%.embedder%.normalization%.", "bn1." }, { "^classifier%.1%.", "fc." },
  { "^encoder%.stages%.(%d+)%.layers%.", function(stage) return ("layer%s."):format(add_one(stage)) end },
  { "%.shortcut%.convolution%.", ".downsample.0." }, { "%.shortcut%.normalization%.", ".downsample.1." },
  { "%.layer%.(%d+)%.convolution%.", function(i) return (".conv%s."):format(add_one(i)) end },
  { "%.layer%.(%d+)%.normalization%.", function(i) return (".bn%s."):format(add_one(i)) end },
  { "%.running_mean$", ".moving_mean" }, { "%.running_var$", ".moving_variance" },
  { "(bn%d)%.weight$", "%1.gamma" }, { "(bn%d)%.bias$", "%1.beta" },
  { "(downsample%.1)%.weight$", "%1.gamma" }, { "(downsample%.1)%.bias$", "%1.beta" },
}

--- The tensors of a file as ms.load_weights takes them with the rules: parts of what is one matrix here are joined, and those that are
--- stored the other way round are turned.
function M.joined(dictionary, rules)
  local result, parts = {}, {}
  local joined = rules.joined
  for name, value in pairs(dictionary) do
    if joined and name:find(joined[1]) then
      local list = { value }
      for i = 2, #joined - 1 do
        local other = name:gsub(joined[1], joined[i])
        list[i], parts[other] = dictionary[other] or error("weights: " .. other .. " is missing beside " .. name, 2), true
      end
      parts[name] = true
      result[name:gsub(joined[1], joined[#joined])] = ops.concat(list, 0)
    end
  end
  for name, value in pairs(dictionary) do
    if ms.is_tensor(value) and not parts[name] then
      result[name] = rules.transposed and name:find(rules.transposed) and ops.swapaxes(value, 0, 1) or value
    end
  end
  return result
end

--- Gives a network the weights of a safetensors file, of an index of several, or of their folder. rules: M.gpt2, M.bert, M.resnet
--- or rules of yours. Gives the names of the file's tensors that the network has no place for.
function M.load(net, path, rules)
  local missing, left = ms.load_weights(net, M.joined(ms.load_checkpoint(path), rules), { rename = rules })
  if #missing > 0 then
    error(("weights: %s has nothing for %s (%d in all)"):format(path, missing[1], #missing), 2)
  end
  return left
end

return M
