-- The networks of the training benches; bench/networks.py has the same for PyTorch.
local ms = require "lunaria"
local nn, ops = ms.nn, ms.ops

local networks = {}

function networks.mlp()
  return nn.SequentialCell(nn.Dense(784, 512), nn.ReLU(), nn.Dense(512, 256), nn.ReLU(), nn.Dense(256, 10))
end

function networks.lenet()
  local function conv(inputs, outputs) return nn.Conv2d(inputs, outputs, 5, { pad_mode = "valid", has_bias = true }) end
  return nn.SequentialCell(conv(1, 6), nn.ReLU(), nn.MaxPool2d(2, 2), conv(6, 16), nn.ReLU(), nn.MaxPool2d(2, 2),
    nn.Flatten(), nn.Dense(400, 120), nn.ReLU(), nn.Dense(120, 84), nn.ReLU(), nn.Dense(84, 10))
end

local Block = nn.Cell:extend("Block")

function Block:init(width, heads)
  self.ln1, self.qkv, self.proj = nn.LayerNorm({ width }, { epsilon = 1e-5 }), nn.Dense(width, 3 * width), nn.Dense(width, width)
  self.ln2, self.fc, self.out = nn.LayerNorm({ width }, { epsilon = 1e-5 }), nn.Dense(width, 4 * width), nn.Dense(4 * width, width)
  self.width, self.heads = width, heads
  -- Sparse mode 2 hides the keys that come after the query.
  self.options = { scalar_value = 1 / math.sqrt(width // heads), input_layout = "BSH", sparse_mode = 2 }
end

function Block:construct(h)
  local q, k, v = ops.split(self.qkv(self.ln1(h)), self.width, 2)
  h = h + self.proj(ops.flash_attention_score(q, k, v, self.heads, self.options))
  return h + self.out(ops.gelu_erf(self.fc(self.ln2(h))))
end

local Gpt = nn.Cell:extend("Gpt")

function Gpt:init(vocabulary, width, heads, layers, length)
  self.wte = nn.Embedding(vocabulary, width)
  self.wpe = ms.Parameter(ops.randn({ length, width }) * 0.02, "wpe")
  self.blocks = nn.SequentialCell()
  for _ = 1, layers do self.blocks:append(Block(width, heads)) end
  self.ln, self.head = nn.LayerNorm({ width }, { epsilon = 1e-5 }), nn.Dense(width, vocabulary, { has_bias = false })
end

function Gpt:construct(x)
  return self.head(self.ln(self.blocks(self.wte(x) + self.wpe)))
end

function networks.gpt() return Gpt(256, 128, 4, 4, 128) end

local Residual = nn.Cell:extend("Residual")

function Residual:init(inputs, outputs, stride)
  local padded = { pad_mode = "pad", padding = 1, stride = stride }
  self.c1, self.b1 = nn.Conv2d(inputs, outputs, 3, padded), nn.BatchNorm2d(outputs)
  self.c2, self.b2 = nn.Conv2d(outputs, outputs, 3, { pad_mode = "pad", padding = 1 }), nn.BatchNorm2d(outputs)
  if stride ~= 1 or inputs ~= outputs then
    self.shortcut = nn.SequentialCell(nn.Conv2d(inputs, outputs, 1, { stride = stride, pad_mode = "valid" }), nn.BatchNorm2d(outputs))
  end
end

function Residual:construct(x)
  local y = self.b2(self.c2(ops.relu(self.b1(self.c1(x)))))
  if self.shortcut then x = self.shortcut(x) end
  return ops.relu(y + x)
end

-- ResNet-18 for images of 32 by 32, or with `large` for those of 224 by 224.
function networks.resnet18(classes, large)
  local stem = large and nn.Conv2d(3, 64, 7, { pad_mode = "pad", padding = 3, stride = 2 })
    or nn.Conv2d(3, 64, 3, { pad_mode = "pad", padding = 1 })
  local net = nn.SequentialCell(stem, nn.BatchNorm2d(64), nn.ReLU())
  if large then net:append(nn.MaxPool2d(3, 2, { pad_mode = "pad", padding = 1 })) end
  local inputs = 64
  for i, outputs in ipairs { 64, 128, 256, 512 } do
    net:append(Residual(inputs, outputs, i == 1 and 1 or 2))
    net:append(Residual(outputs, outputs, 1))
    inputs = outputs
  end
  net:append(nn.AdaptiveAvgPool2d(1))
  net:append(nn.Flatten())
  net:append(nn.Dense(512, classes or 10))
  return net
end

local Lstm = nn.Cell:extend("Lstm")

function Lstm:init(inputs, hidden, classes)
  self.lstm, self.out = nn.LSTM(inputs, hidden), nn.Dense(hidden, classes)
end

function Lstm:construct(x)
  local y = self.lstm(x)
  return self.out(y[-1])
end

-- Classifies sequences of shape (length, batch, inputs).
function networks.lstm() return Lstm(128, 128, 10) end

-- Two layers of tanh units in a loop over the steps of x, (steps, 1, hidden).
function networks.rnn(x, start, w1, u1, b1, w2, u2, b2)
  local h1, h2 = start, start
  for t = 0, x.shape[1] - 1 do
    h1 = ops.tanh(ops.matmul(x[t], w1) + ops.matmul(h1, u1) + b1)
    h2 = ops.tanh(ops.matmul(h1, w2) + ops.matmul(h2, u2) + b2)
  end
  return ops.sum(h2 * h2)
end

-- Mean cross-entropy of all labels, of which a token model has several per sample.
function networks.loss(net)
  return function(x, y)
    local logits = net(x)
    return ops.cross_entropy(logits:reshape({ -1, logits.shape[#logits.shape] }), y:reshape({ -1 }))
  end
end

return networks
