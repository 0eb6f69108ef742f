-- Characters: a small transformer learns a text letter by letter and writes on.
local ms = require "lunaria"
local nn, ops = ms.nn, ms.ops
if arg[1] == "graph" then ms.set_context { mode = ms.GRAPH_MODE } end
ms.set_seed(1)

local TEXT = ("the quick brown fox jumps over the lazy dog. "):rep(40)
local LETTERS, WIDTH, HEADS, LENGTH, BATCH, STEPS = 128, 32, 2, 24, 16, 120
local codes = ms.tensor({ TEXT:byte(1, -1) }, ms.int32)

local Block = nn.Cell:extend "Block"
function Block:init()
  self.norm1, self.norm2 = nn.LayerNorm { WIDTH }, nn.LayerNorm { WIDTH }
  self.qkv, self.out = nn.Dense(WIDTH, 3 * WIDTH), nn.Dense(WIDTH, WIDTH)
  self.up, self.down = nn.Dense(WIDTH, 4 * WIDTH), nn.Dense(4 * WIDTH, WIDTH)
end
function Block:construct(x, mask)
  local batch, length = x.shape[1], x.shape[2]
  local q, k, v = ops.split(self.qkv(self.norm1(x)), WIDTH, 2)
  local function heads(t) return t:reshape(batch, length, HEADS, WIDTH // HEADS):permute(0, 2, 1, 3) end
  q, k, v = heads(q), heads(k), heads(v)
  local scores = ops.matmul(q, k:permute(0, 1, 3, 2)) / math.sqrt(WIDTH / HEADS) + mask
  local mixed = ops.matmul(ops.softmax(scores, -1), v):permute(0, 2, 1, 3):reshape(batch, length, WIDTH)
  x = x + self.out(mixed)
  return x + self.down(ops.gelu(self.up(self.norm2(x))))
end

local Net = nn.Cell:extend "Net"
function Net:init()
  self.letters, self.places = nn.Embedding(LETTERS, WIDTH), nn.Embedding(LENGTH, WIDTH)
  self.blocks = nn.CellList { Block(), Block() }
  self.norm, self.head = nn.LayerNorm { WIDTH }, nn.Dense(WIDTH, LETTERS)
end
function Net:construct(x)
  local length = x.shape[2]
  local mask = ops.triu(ops.full({ length, length }, -1e9), 1)
  local h = self.letters(x) + self.places(ops.arange(length):astype(ms.int32))
  for _, block in ipairs(self.blocks) do h = block(h, mask) end
  return self.head(self.norm(h))
end

math.randomseed(1)
local function batch()
  local x, y = {}, {}
  for k = 1, BATCH do
    local at = math.random(0, #TEXT - LENGTH - 2)
    x[k], y[k] = codes[ms.slice(at, at + LENGTH)], codes[ms.slice(at + 1, at + LENGTH + 1)]
  end
  return ops.stack(x), ops.stack(y)
end

local net = Net()
local optimizer = nn.AdamWeightDecay(net:trainable_params(), 3e-3)
local step = ms.value_and_grad(function(x, y)
  return ops.cross_entropy(net(x):reshape(-1, LETTERS), y:reshape(-1))
end, nil, net:trainable_params())
for k = 1, STEPS do
  local loss, grads = step(batch())
  optimizer(grads)
  if k % 40 == 0 then print(("%d: %.4f"):format(k, loss:item())) end
end

local text = { ("the quick "):byte(1, -1) }
for _ = 1, 30 do
  local from = math.max(1, #text - LENGTH + 1)
  local logits = net(ms.tensor({ { table.unpack(text, from) } }, ms.int32))
  text[#text + 1] = ops.argmax(logits[0][-1], -1):item()
end
print(string.char(table.unpack(text)))
