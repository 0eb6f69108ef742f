-- ms.federated: one model trained by many parties whose data stay where they are.
local parts = require "lunaria.parts"

return parts("ms.federated", "name", {
  { "lunaria.federated.feature_map", "FeatureMap" },
  { "lunaria.federated.rounds", "Rounds chosen" },
  { "lunaria.federated.strategies", "strategies", whole = true },
  { "lunaria.federated.strategies.strategy", "Strategy" },
  { "lunaria.federated.client_rules", "client_rules", whole = true },
  { "lunaria.federated.partition", "partition", whole = true },
  { "lunaria.federated.population", "Population" },
  { "lunaria.federated.simulate", "simulate" },
  { "lunaria.federated.simulation", "Simulation" },
  { "lunaria.federated.vertical", "vertical", whole = true },
  { "lunaria.federated.vertical.model", "FLModel", whole = true },
  { "lunaria.federated.vertical.yaml_data", "FLYamlData", whole = true },
  { "lunaria.federated.vertical.parties", "PartyOptimizer PartyGradOperation PartyGradScaler" },
  { "lunaria.federated.vertical.communicator", "ServerConfig VerticalFederatedCommunicator VFLTrainer" },
  { "lunaria.federated.vertical.cut_layer", "CompressConfig" },
  { "lunaria.federated.vertical.privacy", "LabelDP EmbeddingDP" },
  { "lunaria.federated.vertical.data_worker", "FLDataWorker", whole = true },
  { "lunaria.federated.secure", "secure", whole = true },
  { "lunaria.federated.compression", "compression", whole = true },
  { "lunaria.federated.privacy", "privacy", whole = true },
  { "lunaria.federated.server", "Server Callback CallbackContext SSLConfig FLServerJob FlSchedulerJob" },
  { "lunaria.federated.config", "read_config" },
  { "lunaria.federated.client", "Client" },
  { "lunaria.federated.manager", "FederatedLearningManager PushMetrics" },
})
