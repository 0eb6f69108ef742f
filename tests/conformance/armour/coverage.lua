-- Coverage of units by a test set, with bounds from a training set. The model is a table of what the layers give, asked for by row.
local ms = require "lunaria"
local values = require "armour.values"
local fuzz, ops = ms.armour.fuzz_testing, ms.ops

return function(section, case)
  local layers = {}
  for i, layer in ipairs(section.train) do
    layers[i] = ops.concat({ values.float64(layer), values.float64(section.test[i]) }, 0)
  end
  local n, m = #section.train[1], #section.test[1]
  local function model(x)
    local rows, found = x:reshape { -1 }:astype(ms.int64), {}
    for i, layer in ipairs(layers) do found[i] = ops.gather(layer, rows, 0) end
    return found
  end
  local function rows(from, to) return ops.arange(from, to):astype(ms.float64):reshape { -1, 1 } end
  local train, test = rows(0, n), rows(n, n + m)
  local metrics = {
    neuron_coverage = fuzz.NeuronCoverage(model, section.threshold),
    top_k_neuron_coverage = fuzz.TopKNeuronCoverage(model, section.top_k),
    super_neuron_activate_coverage = fuzz.SuperNeuronActivateCoverage(model, train),
    neuron_bounds_coverage_mindarmour = fuzz.NeuronBoundsCoverage(model, train),
    neuron_bounds_coverage_deepgauge = fuzz.NeuronBoundsCoverage(model, train, { corners = true }),
    k_multisection_neuron_coverage = fuzz.KMultisectionNeuronCoverage(model, train, section.sections),
  }
  for name, metric in pairs(metrics) do
    if section.expected[name] ~= nil then
      case("coverage/" .. name, function()
        return values.differs(name, metric:get_metrics(test), section.expected[name], section.tolerance)
      end)
    end
  end
end
