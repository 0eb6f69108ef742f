-- The vision transformer (Dosovitskiy et al. 2021): parts of a picture as tokens.
local ms = require "lunaria"
local nn, ops = ms.nn, ms.ops

local ViT = nn.Cell:extend("ViT")

function ViT:init(c)
  local count = (c.picture // c.part) ^ 2 // 1 | 0
  self.conv_proj = nn.Conv2d(3, c.width, c.part, { stride = c.part, pad_mode = "valid", has_bias = true })
  self.class_token = ms.Parameter(ops.zeros { 1, 1, c.width })
  self.pos_embedding = ms.Parameter(ms.initializer(ms.common.initializer.Normal(0.02), { 1, count + 1, c.width }))
  local layer = nn.TransformerEncoderLayer(c.width, c.heads, 4 * c.width, 0.0, "gelu", 1e-6, true, true)
  self.encoder = nn.TransformerEncoder(layer, c.layers, nn.LayerNorm({ c.width }, { epsilon = 1e-6 }))
  self.head = nn.Dense(c.width, c.classes)
end

function ViT:construct(x)
  local parts = self.conv_proj(x)
  local batch, width = parts:sizes(0, 1)
  local tokens = ops.transpose(ops.reshape(parts, { batch, width, -1 }), { 0, 2, 1 })
  tokens = ops.concat({ ops.broadcast_to(self.class_token, { batch, 1, width }), tokens }, 1) + self.pos_embedding
  return self.head(self.encoder(tokens):at(":", 0))
end

local M = {}

--- ViT-B/16, or one of { classes =, picture =, part =, width =, layers =, heads = }.
function M.vit_b_16(classes)
  if type(classes) == "table" then return ViT(classes) end
  return ViT { classes = classes or 1000, picture = 224, part = 16, width = 768, layers = 12, heads = 12 }
end

return M
