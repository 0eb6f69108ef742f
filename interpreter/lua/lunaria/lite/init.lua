-- ms.lite: light inference. Networks are quantised, pruned, distilled, converted to light files and run from them.
return require "lunaria.parts" ("ms.lite", "name", {
  { "lunaria.lite.distil", "Distillation" },
  { "lunaria.lite.prune", "ChannelPruning MagnitudePruning prune" },
  { "lunaria.lite.quantise", "quantize" },
  { "lunaria.lite.convert", "convert" },
})
