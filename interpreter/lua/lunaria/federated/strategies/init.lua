-- ms.federated.strategies: rules of aggregation, each a class; strategies of your own extend ms.federated.Strategy or are tables of two
-- functions.
local parts = require "lunaria.parts"

return parts("ms.federated.strategies", "strategy", {
  { "lunaria.federated.strategies.strategy", "aggregate configure" },
  { "lunaria.federated.strategies.averaging", "FedAvg FedAvgM FedProx Ditto" },
  { "lunaria.federated.strategies.adaptive", "FedAdam FedYogi FedAdagrad" },
  { "lunaria.federated.strategies.corrected", "FedNova Scaffold QFedAvg" },
  { "lunaria.federated.strategies.personal", "FedBN PersonalHead Transfer PerFedAvg Reptile" },
  { "lunaria.federated.strategies.asynchronous", "FedAsync FedBuff" },
  { "lunaria.federated.strategies.robust", "Median TrimmedMean Krum MultiKrum Bulyan GeometricMedian NormBound" },
  { "lunaria.federated.strategies.combined", "Hierarchical Hybrid SemiSupervised" },
})
