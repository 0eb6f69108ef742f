-- ms.dataset.audio: transforms of sounds, by the formulas of torchaudio and SoX as MindSpore has them.
local steps = require "lunaria.dataset.steps"

local audio = {}
for _, part in ipairs { "spectra", "filters", "levels" } do require("lunaria.dataset.audio." .. part)(audio) end

return steps.module(audio, "ms.dataset.audio")
