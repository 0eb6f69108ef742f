-- A classifier of texts: words as vectors, an LSTM in both directions, a dense layer. What a text means is taken from the last
-- state of each direction. One of the two biases of a gate is enough: the other is 0 and stays so.
local ms = require "lunaria"
local nn, ops = ms.nn, ms.ops

local Classifier = nn.Cell:extend("LSTMClassifier")

function Classifier:init(c)
  self.embedding = nn.Embedding(c.vocabulary, c.width, { embedding_table = ms.common.initializer.Uniform(0.05) })
  self.lstm = nn.LSTM(c.width, c.hidden, { num_layers = c.layers, batch_first = true, bidirectional = true })
  self.fc = nn.Dense(2 * c.hidden, c.classes)
  for name, parameter in self.lstm:parameters_and_names() do
    if name:find "^bias_hh" then
      parameter:assign(ops.zeros_like(parameter))
      parameter.requires_grad = false
    end
  end
end

-- tokens (batch, length) -> scores (batch, classes)
function Classifier:construct(tokens)
  local _, state = self.lstm(self.embedding(tokens))
  local h = state[1]
  local count = h:sizes(0)
  return self.fc(ops.concat({ h[count - 2], h[count - 1] }, 1))
end

local M = {}

--- The classifier of { vocabulary =, width =, hidden =, layers =, classes = }; without it that of Keras' example of film reviews.
function M.classifier(config)
  return Classifier(config or { vocabulary = 20000, width = 128, hidden = 64, layers = 2, classes = 1 })
end

return M
