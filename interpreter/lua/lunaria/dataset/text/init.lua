-- ms.dataset.text: transforms of texts, which are strings and lists of strings, and what they need: vocabularies, SentencePiece
-- models, vectors of words.
local steps = require "lunaria.dataset.steps"

local text = {}
for _, part in ipairs { "vocab", "tokenizers" } do require("lunaria.dataset.text." .. part)(text) end

return steps.module(text, "ms.dataset.text")
