-- ms.lite: light inference. Networks are quantised, pruned, distilled, converted to light files and run from them.
return require "lunaria.parts" ("ms.lite", "name", {
  { "lunaria.lite.distil", "Distillation" },
  { "lunaria.lite.prune", "ChannelPruning MagnitudePruning prune" },
  { "lunaria.lite.quantise", "quantize" },
  { "lunaria.lite.quantise_train", "quantize_aware quantize_trained" },
  { "lunaria.lite.convert", "convert" },
  { "lunaria.lite.model", "Model", whole = true },
  { "lunaria.lite.training", "Trainer convert_training" },
  { "lunaria.lite.micro", "micro" },
  { "lunaria.lite.language.decoder", "Decoder" },
  { "lunaria.lite.language.generate", "generate perplexity" },
  { "lunaria.lite.language.load", "load_decoder save_decoder" },
  { "lunaria.lite.language.lora", "add_lora merge_lora", of = "functions" },
  { "lunaria.lite.language.sample", "Sampler" },
  { "lunaria.lite.words.tokenizer", "Tokenizer" },
  { "lunaria.lite.words.chat_template", "chat_template" },
  { "lunaria.lite.serving.serve", "serve" },
})
