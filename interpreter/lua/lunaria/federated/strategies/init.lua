-- ms.federated.strategies: rules of aggregation, each a class; strategies of your own extend ms.federated.Strategy or are tables of two
-- functions.
local parts = require "lunaria.parts"

return parts("ms.federated.strategies", "strategy", {
  { "lunaria.federated.strategies.strategy", "aggregate" },
  { "lunaria.federated.strategies.averaging", "FedAvg FedAvgM FedProx Ditto" },
})
