-- ms.federated.compression: vectors in fewer bytes on their way between clients and server.
return require "lunaria.parts" ("ms.federated.compression", "name", {
  { "lunaria.federated.compression.quantized", "quantize dequantize pack_bits unpack_bits sparse_places DiffSparseQuant" },
  { "lunaria.federated.compression.largest", "top_k TopK Sign" },
  { "lunaria.federated.compression.low_rank", "PowerSGD" },
  { "lunaria.federated.compression.sketch", "CountSketch" },
  { "lunaria.federated.compression.signds", "SignDS" },
  { "lunaria.federated.compression.secured", "secured" },
})
