-- ms.dataset.vision: transforms of images, which are tensors (height, width, channels) of uint8 or float32, or (height, width).
-- Where MindSpore computes by OpenCV, its rules hold, so that networks see the same pixels; see core/data/vision.
local steps = require "lunaria.dataset.steps"

local vision = {}
for _, part in ipairs { "layout", "crops", "color", "warp", "augment" } do require("lunaria.dataset.vision." .. part)(vision) end

return steps.module(vision, "ms.dataset.vision")
