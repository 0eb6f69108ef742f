-- Names by language: a recurrent network goes through the letters of one name after the other, which have 4 to 9 letters.
local ms = require "lunaria"
local nn, ops = ms.nn, ms.ops
if arg[1] == "graph" then ms.set_context { mode = ms.GRAPH_MODE } end
ms.set_seed(1)

math.randomseed(1)
local LETTERS, HIDDEN, LANGUAGES, STEPS = 26, 64, 4, 1000

-- A name of a language has some letters more often than others.
local function name()
  local language, letters = math.random(0, LANGUAGES - 1), {}
  for k = 1, math.random(4, 9) do
    letters[k] = math.random() < 0.6 and (language * 6 + math.random(0, 5)) or math.random(0, LETTERS - 1)
  end
  return ops.one_hot(ms.tensor(letters, ms.int32), LETTERS), ms.tensor({ language }, ms.int32)
end

local RNN = nn.Cell:extend "RNN"
function RNN:init()
  self.hidden = nn.Dense(LETTERS + HIDDEN, HIDDEN)
  self.out = nn.Dense(HIDDEN, LANGUAGES)
end
function RNN:construct(letters)
  local h = ops.zeros({ 1, HIDDEN })
  for k = 0, letters.shape[1] - 1 do
    h = ops.tanh(self.hidden(ops.concat({ letters[k]:reshape(1, LETTERS), h }, 1)))
  end
  return self.out(h)
end

local net = RNN()
local optimizer = nn.SGD(net:trainable_params(), 0.05)
local step = ms.value_and_grad(function(x, y) return ops.cross_entropy(net(x), y) end, nil, net:trainable_params())
local mean = 0
for k = 1, STEPS do
  local x, y = name()
  local loss, grads = step(x, y)
  optimizer(grads)
  mean = mean + loss:item() / 250
  if k % 250 == 0 then
    print(("%d: %.4f"):format(k, mean))
    mean = 0
  end
end
local right = 0
for _ = 1, 100 do
  local x, y = name()
  if ops.argmax(net(x), -1):item() == y:item() then right = right + 1 end
end
print(right .. " of 100 are right")
