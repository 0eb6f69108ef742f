-- ms.federated.secure: sums of clients' vectors of which the server learns the sum alone.
return require "lunaria.parts" ("ms.federated.secure", "name", {
  { "lunaria.federated.secure.fixed_point", "FixedPoint" },
  { "lunaria.federated.secure.identity", "Identity verify" },
  { "lunaria.federated.secure.protocol", "Client Server" },
  { "lunaria.federated.secure.stable", "StableClient StableServer" },
  { "lunaria.federated.secure.sum", "sum" },
})
