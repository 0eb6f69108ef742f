-- A model that a server sent, in the network of a party.
local arguments = require "lunaria.nn.arguments"
local FeatureMap = require("lunaria.federated.feature_map").FeatureMap

local fail = arguments.fail

--- Writes the features of a model, a list of { name, tensor, aggregated }, into the parameters of a network: those that parties send, and
--- with `all` also the others. Gives them as a feature map, and the parameters that are the party's own by name.
return function(where, network, features, all)
  local own, names = {}, {}
  for name, parameter in network:parameters_and_names() do
    own[name], names[#names + 1] = parameter, name
  end
  local map = FeatureMap()
  for _, feature in ipairs(features) do
    local parameter = own[feature.name]
    if not parameter then
      fail(where, ("the job's model has the feature '%s', and the network has no such parameter"):format(feature.name),
        arguments.nearest(feature.name, names))
    elseif tostring(parameter.shape) ~= tostring(feature.tensor.shape) then
      fail(where, ("the parameter '%s' has the shape %s, and the job's model %s"):format(feature.name, tostring(parameter.shape),
        tostring(feature.tensor.shape)))
    end
    map:add_feature(feature.name, feature.tensor, { require_aggr = feature.aggregated })
    if feature.aggregated or all then parameter:assign(feature.tensor:astype(parameter.dtype)) end
    if feature.aggregated then own[feature.name] = nil end
  end
  return map, own
end
