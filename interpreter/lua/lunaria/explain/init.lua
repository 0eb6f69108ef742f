-- ms.explain: what in a picture a network's answer rests on, and how far such explanations can be trusted.
local parts = require "lunaria.parts"

return parts("ms.explain", "name", {
  { "lunaria.explain.backprop", "Deconvolution GradCAM Gradient GuidedBackprop IntegratedGradients" },
  { "lunaria.explain.perturbation", "Occlusion RISE" },
  { "lunaria.explain.counterfactual", "EditStep HierarchicalOcclusion Searcher" },
  { "lunaria.explain.benchmark", "ClassSensitivity Faithfulness Localization Robustness" },
  { "lunaria.explain.runner", "ImageClassificationRunner" },
})
