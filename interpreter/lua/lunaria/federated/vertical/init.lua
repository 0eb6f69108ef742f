-- ms.federated.vertical: parties that have different columns of the same rows.
return require "lunaria.parts" ("ms.federated.vertical", "name", {
  { "lunaria.federated.vertical.link", "Link connect listen new_key pair run_parties" },
  { "lunaria.federated.vertical.psi", "psi", whole = true },
  { "lunaria.federated.vertical.products", "deal" },
  { "lunaria.federated.vertical.trees", "BoostedTrees", whole = true },
  { "lunaria.federated.vertical.logistic", "LogisticRegression", whole = true },
})
