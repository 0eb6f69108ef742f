-- Every class of ms.armour, as the registry has them, against arguments that are wrong: nan, texts where numbers belong, budgets and noise
-- of 0, inputs and labels of another kind. Each is an error at the user's line in words of its own. A new class needs a row. 8 seconds.
package.path = "tests/lua/?.lua;" .. package.path
local t = require "harness"
local ms = require "lunaria"
local ops, nn, armour = ms.ops, ms.nn, ms.armour
local attacks, defenses, detectors = armour.attacks, armour.defenses, armour.detectors
local privacy = armour.privacy

local nan = 0 / 0
local x = ms.rand { 4, 1, 4, 4 } * 0.8 + 0.1
local y = ms.tensor({ 0, 1, 2, 1 }, ms.int32)
local function network() return nn.SequentialCell(nn.Flatten(), nn.Dense(16, 8), nn.ReLU(), nn.Dense(8, 3)) end
local function nearly(z) return z * 0.9 + 0.02 end
local probabilities = ops.softmax(network()(x), 1)
local counts, seconds = ms.tensor { 1, 2, 3, 4 }, ms.full({ 4 }, 0.5)

local function optimizer(net) return nn.SGD(net:trainable_params(), 0.1) end
local monitored = { num_samples = 100, batch_size = 10, initial_noise_multiplier = 1.5 }

-- What a class needs beside a network; false for one that is left out.
local needs = {
  AdversarialDefenseWithAttacks = function(net) return { attacks = { attacks.FastGradientSignMethod(net) } } end,
  AdversarialTraining = function(net) return { defense = defenses.AdversarialDefense(net) } end,
  AttackEvaluate = { inputs = x, labels = ms.tensor { { 1.0, 0, 0 }, { 0, 1.0, 0 }, { 0, 0, 1.0 }, { 0, 1.0, 0 } }, adv_inputs = x,
    adv_preds = probabilities },
  AttributeInference = { model = network(), column = 0 },
  BlackDefenseEvaluate = { raw_preds = probabilities, def_preds = probabilities, raw_query_counts = counts, def_query_counts = counts,
    raw_query_time = seconds, def_query_time = seconds, def_detection_counts = ms.tensor { 0, 1, 0, 1 }, true_labels = y,
    max_queries = 10 },
  DPModel = function(net) return { optimizer = optimizer(net), loss_fn = nn.CrossEntropyLoss() } end,
  DefenseEvaluate = { raw_preds = probabilities, def_preds = probabilities, true_labels = y },
  DivergenceBasedDetector = { auto_encoder = nearly },
  EnsembleDetector = function() return { detectors = { detectors.ErrorBasedDetector(nearly) } } end,
  ErrorBasedDetector = { auto_encoder = nearly },
  GeneticAttack = { is_targeted = false },
  ImageInversionAttack = { input_shape = { 1, 4, 4 }, input_bound = { 0, 1 } },
  KMultisectionNeuronCoverage = { train_dataset = x },
  LiRA = { confidences = ms.rand { 4, 2 }, membership = ms.tensor { { 1, 0 }, { 1, 0 }, { 0, 1 }, { 0, 1 } } },
  MaskLayerDes = { layer_name = "1.weight", grad_idx = 0 },
  ModelInversionAttack = { inv_network = network(), input_shape = { 1, 4, 4 } },
  NES = { scene = "Query_Limit", num_class = 3 },
  NeuronBoundsCoverage = { train_dataset = x },
  NeuronMetric = { inputs = x, adv_inputs = x, hook_names = { "1" } },
  NoiseTreeRandom = { leaves = 8 },
  OodDetectorFeatureCluster = { ds_train = x, n_cluster = 2, layer = "1" },
  OodDetectorMahalanobis = { ds_train = x, label = y, layer = "1" },
  PATE = { sigma = 20.0 },
  PRVMonitor = monitored, RDPMonitor = monitored, ZCDPMonitor = monitored,
  Perspective = { ori_pos = { { 0, 0 }, { 0, 3 }, { 3, 0 }, { 3, 3 } }, dst_pos = { { 1, 0 }, { 0, 3 }, { 2, 0 }, { 3, 3 } } },
  RadarMetric = { metrics_name = { "a", "b", "c" }, metrics_data = { { 0.1, 0.2, 0.3 } }, labels = { "m" } },
  RobustnessCurve = { at = { 0.0, 0.1 }, accuracy = { 1.0, 0.5 } },
  SISA = { make = network, train = function() end },
  ShadowModelAttack = { shadow_network = network(), rest = network(), input_shape = { 1, 4, 4 }, input_bound = { 0, 1 } },
  SimilarityDetector = { trans_model = function(z) return z end, max_k_neighbor = 2 },
  SuperNeuronActivateCoverage = { train_dataset = x },
  SuppressMasker = false, -- has the objects of a factory as arguments
  TriggerSet = { shape = { 1, 4, 4 }, classes = 3 },
  Watermark = { parameter = network():trainable_params()[1], bits = { 1, 0, 1 }, key = 7 },
  WordSubstitutionAttack = { model = function(texts) return ms.zeros { #texts, 2 } end, words = { "good", "fine" },
    embeddings = ms.tensor { { 1.0, 0.0 }, { 0.9, 0.3 } } },
}
needs.EnsembleAdversarialDefense = needs.AdversarialDefenseWithAttacks

local function arguments_of(name, class)
  local net, own = network(), needs[name]
  if type(own) == "function" then own = own(net) end
  local a = {}
  for _, parameter in ipairs(class._signature) do
    local key = parameter.name
    a[key] = own and own[key]
    if a[key] == nil and parameter.required then
      if key == "num_classes" then a[key] = 3 else a[key] = net end
    end
  end
  if name == "AdversarialDefenseWithAttacks" or name == "EnsembleAdversarialDefense" then a.network = net end
  return a
end

local classes = {}
local function walk(place, seen)
  if seen[place] then return end
  seen[place] = true
  for name in pairs(place) do
    local value = place[name]
    if type(value) == "table" and rawget(value, "_is_class") then
      if rawget(value, "_signature") and #value._signature > 0 and needs[name] ~= false then classes[name] = value end
    elseif type(value) == "table" and not (getmetatable(value) and getmetatable(value).__call) then
      walk(value, seen)
    end
  end
end
walk(armour, {})
local names = {}
for name in pairs(classes) do names[#names + 1] = name end
table.sort(names)

-- What is wrong with how f(...) fails; nil where it fails as it should.
local function fault(f, ...)
  local ok, message = pcall(f, ...)
  if ok then return "no error" end
  message = tostring(message)
  if not message:find "^tests/lua/armour/bad_input_test%.lua:%d+: [%w_%.]+: " then return "not at the user's line: " .. message end
  if message:find "attempt to" or message:find "bad argument" then return "not in words of its own: " .. message end
end

local function check_faults(list) t.equal(table.concat(list, "\n"), "") end

-- Numbers that may be 0, by the name of the argument; "Class.name" where only there.
local may_be_0 = {}
for name in ([[alpha_max angle beta.ElasticNetAttack beta.Contrast beta.FastAdaptiveBoundary bright_rate c c1 c2 clip_min box_min column
  confidence curves decay_factor degrade_limit
  depth factor false_positive_rate false_positive_ratio fpr fraction_stddev grad_idx initial_radius key max_count min_num
  min_similarity min_text_similarity mutation_rate noise_decay_rate overshoot p_init per_print_times pm prob replace_ratio reserve_ratio
  scope search_iter seed target_unclipped_quantile thr_decr threshold threshold_index x_bias y_bias ratio
  alpha.Contrast target_label momentum conservative zero_iters adv_thresh starting_delta_eps]]):gmatch "%S+" do
  may_be_0[name] = true
end

t.test("each class is made of its row", function()
  local faults = {}
  for _, name in ipairs(names) do
    local ok, message = pcall(classes[name], arguments_of(name, classes[name]))
    if not ok then faults[#faults + 1] = name .. ": " .. tostring(message) end
  end
  check_faults(faults)
  t.equal(#names > 100, true)
end)

t.test("nan, texts and budgets of 0 are errors of the constructor", function()
  local faults = {}
  for _, name in ipairs(names) do
    for _, parameter in ipairs(classes[name]._signature) do
      local key, default = parameter.name, parameter.default
      local given = default == nil and arguments_of(name, classes[name])[key] or default
      local tries = {}
      if math.type(given) then
        tries = { nan, "three" }
        if not may_be_0[key] and not may_be_0[key .. "." .. name] then tries[3] = 0 end
      elseif type(given) == "boolean" then
        tries = { 1, "no" }
      elseif type(given) == "string" and key ~= "layer" and key ~= "layer_name" and key ~= "title" then
        tries = { 3, "no such" }
      end
      for _, bad in ipairs(tries) do
        local a = arguments_of(name, classes[name])
        a[key] = bad
        local wrong = fault(function() return classes[name](a) end)
        if wrong then faults[#faults + 1] = ("%s { %s = %s }: %s"):format(name, key, tostring(bad), wrong) end
      end
    end
  end
  check_faults(faults)
end)

-- Inputs and labels that no attack, defence or detector may take.
local function with(value)
  local z = x:copy()
  z[{ 1, 0, 2, 2 }] = value
  return z
end
local bad_inputs = { nan = with(nan), infinity = with(math.huge), empty = ms.zeros { 0, 1, 4, 4 }, ["of one axis"] = ms.rand { 16 },
  integers = ms.ones({ 4, 1, 4, 4 }, ms.int32), ["a text"] = "x", ["a table"] = { { 0.5 } } }
local bad_labels = { floats = ms.tensor { 0.0, 1, 2, 1 }, negative = ms.tensor({ 0, -1, 2, 1 }, ms.int32), few = ms.tensor { 0, 1 },
  ["beyond the classes"] = ms.tensor({ 0, 1, 3, 1 }, ms.int32), empty = ms.zeros({ 0 }, ms.int32), booleans = ms.full({ 4 }, true),
  ["two ones"] = ms.tensor { { 1.0, 1, 0 }, { 0, 1, 0 }, { 0, 0, 1 }, { 0, 1, 0 } }, ["a table"] = { 0, 1, 2, 1 }, ["a number"] = 1,
  ["of another width"] = ms.tensor { { 1.0, 0, 0, 0 }, { 0, 1, 0, 0 }, { 0, 0, 1, 0 }, { 0, 1, 0, 0 } },
  ["of three axes"] = ms.zeros({ 4, 1, 1 }, ms.int32), ["nan"] = ms.tensor { { nan, 0, 0 }, { 0, 1, 0 }, { 0, 0, 1 }, { 0, 1, 0 } } }

-- How an object takes inputs and labels.
local function used(name, object, inputs, labels)
  if object.set_target_images then object:set_target_images(x) end
  if object.generate then return object:generate(inputs, labels) end
  if object.defense then return object:defense(inputs, labels) end
  if object.detect then return object:detect(inputs) end
  if object.get_metrics then return object:get_metrics(inputs) end
  if object.scores then return object:scores(inputs) end
  if name == "SmoothedClassifier" then return object:predict(inputs, { n = 10 }) end
  return object(inputs)
end

local function takes_inputs(name, class)
  if name == "WordSubstitutionAttack" or name == "EmbeddingAttack" or name:find "Inversion" then return false end
  return class.generate or class.defense or class.detect or class._called == "transform" or name == "SmoothedClassifier"
end

t.test("inputs and labels of another kind are errors", function()
  local faults, count = {}, 0
  for _, name in ipairs(names) do
    local class = classes[name]
    if takes_inputs(name, class) then
      count = count + 1
      local a = arguments_of(name, class)
      for _, few in ipairs { "max_iterations", "max_iters", "nb_iter", "max_iteration", "search_iters", "max_steps", "t_max", "max_iter",
        "num_iterations", "max_queries" } do
        if class._signature[few] then a[few] = 2 end
      end
      local object = class(a)
      if object.fit then object:fit(x, y) end
      for what, inputs in pairs(bad_inputs) do
        -- Pictures have no axis of samples, and may be bytes.
        if class._called ~= "transform" or what ~= "of one axis" then
          local wrong = fault(function() return used(name, object, inputs, y) end)
          if wrong then faults[#faults + 1] = ("%s: inputs that are %s: %s"):format(name, what, wrong) end
        end
      end
      for what, labels in pairs(object.generate and bad_labels or object.defense and bad_labels or {}) do
        local wrong = fault(function() return used(name, object, x, labels) end)
        if wrong then faults[#faults + 1] = ("%s: labels that are %s: %s"):format(name, what, wrong) end
      end
    end
  end
  check_faults(faults)
  t.equal(count > 60, true)
end)

t.test("samples outside of the bounds are errors where there are bounds", function()
  local above, net = with(1.5), network()
  local makers = { attacks.ProjectedGradientDescent(net), attacks.black.SquareAttack(net), defenses.TradesDefense(net),
    defenses.NaturalAdversarialDefense(net) }
  for _, object in ipairs(makers) do t.fails({ "outside of the bounds 0.0 and 1.0" }, used, "", object, above, y) end
  local region = detectors.RegionBasedDetector(net)
  region:set_radius(0.1)
  t.fails({ "outside of the bounds" }, used, "", region, above)
end)

t.test("a loss, a similarity, an encoding of another kind is told", function()
  local net = network()
  local loss = attacks.FastGradientSignMethod(net, { loss_fn = function() end })
  t.fails({ "loss_fn must give a number, or one for each of 4 samples, got nil" }, used, "", loss, x, y)
  local wide = attacks.FastGradientSignMethod(net, { loss_fn = function(z) return z[{ ms.slice(0, 2), 0 }] end })
  t.fails({ "loss_fn must give" }, used, "", wide, x, y)
  t.fails({ "init_attack must be an attack, got 3" }, attacks.black.PointWiseAttack, net, { init_attack = 3 })
  t.fails({ "more than 1000000 radii" }, detectors.RegionBasedDetector, net, { search_step = 1e-9 })
  local queries = detectors.SimilarityDetector(function(z) return z end, { max_k_neighbor = 2 })
  queries:fit(x)
  t.fails({ "encodings of earlier samples have 16 numbers, these have 25" }, used, "", queries, ms.rand { 2, 1, 5, 5 })
  t.fails({ "num_classes is 7, and the network gives 3 logits" }, used, "", attacks.DeepFool(net, 7), x, y)
end)

t.test("accountants, mechanisms and statistics", function()
  local accountants, dp, statistics = privacy.accountants, privacy.diff_privacy, privacy.statistics
  local accountant = accountants.Accountant()
  local calls = {
    function() accountant:step { noise_multiplier = -1 } end, function() accountant:step { noise_multiplier = nan } end,
    function() accountant:step { noise_multiplier = 1, sample_rate = 1.5 } end,
    function() accountant:step { noise_multiplier = 1, steps = 2.5 } end, function() accountant:step { sigma = 1 } end,
    function() accountant:step { noise_multiplier = 1, mechanism = "cauchy" } end, function() accountant:step(3) end,
    function() accountant:epsilon(-1e-5) end, function() accountant:epsilon(1) end, function() accountant:epsilon "small" end,
    function() accountant:epsilon(nan) end, function() accountant:delta(-1) end, function() accountant:delta(nan) end,
    function() accountants.calibrate { epsilon = 0, delta = 1e-5 } end,
    function() accountants.calibrate { epsilon = nan, delta = 1e-5 } end,
    function() accountants.calibrate { epsilon = 1, delta = 0 } end, function() accountants.calibrate { epsilon = 1 } end,
    function() accountants.analytic_gaussian(nan, 1e-5) end, function() accountants.analytic_gaussian(1, 0) end,
    function() dp.NoiseGaussianRandom(1.0, 0) end, function() dp.NoiseGaussianRandom(0) end,
    function() dp.NoiseGaussianRandom { secure = {} } end, function() dp.NoiseGaussianRandom()("x") end,
    function() dp.NoiseMechanismsFactory():create("Laplace") end, function() dp.PrivacyMonitorFactory():create("gdp", 100, 10) end,
    function() dp.RDPMonitor(100, 200) end, function() dp.RDPMonitor(100, 10, { max_eps = 0 }) end,
    function() dp.RDPMonitor(100, 10, { target_delta = 0 }) end,
    function() dp.DPModel(network(), { optimizer = optimizer(network()) }) end,
    function() statistics.mean(ms.rand { 5 }, { 0, 1 }, { epsilon = 0 }) end, function() statistics.mean(ms.zeros { 0 }, 0, 1, 1.0) end,
    function() statistics.count(ms.tensor { true }, nan) end,
    function() privacy.local_privacy.randomized_response(ms.tensor { 0, 1 }, 2, 0 / 0) end,
    function() privacy.local_privacy.laplace(ms.tensor { 0.5 }, 0) end,
    function() privacy.PATE(0) end, function() privacy.PATE(20):answer(ms.tensor { { 1.5, 2.0 } }) end,
  }
  local faults = {}
  for i, call in ipairs(calls) do
    local wrong = fault(call)
    if wrong then faults[#faults + 1] = ("call %d: %s"):format(i, wrong) end
  end
  check_faults(faults)
end)

t.finish()
