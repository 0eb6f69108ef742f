-- ms.federated.client_rules: how a party trains. Rules are pure functions over vectors (rules.lua); train runs one on a cell.
local parts = require "lunaria.parts"

return parts("ms.federated.client_rules", "client rule", {
  { "lunaria.federated.client_rules.train", "train personalise find" },
})
