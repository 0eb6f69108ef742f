-- ImageClassificationRunner: explanations of a data set's pictures and scores of the methods, written into a run.
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"
local cells = require "lunaria.nn.cell"
local class = require "lunaria.nn.class"
local common = require "lunaria.explain.common"
local counterfactual = require "lunaria.explain.counterfactual"
local source = require "lunaria.train.batches"

local ops = ms.ops
local fail, describe = arguments.fail, arguments.describe

local Runner = class.define(nil, "ImageClassificationRunner", "summary_dir, data, network, activation_fn",
  [[Explains the answers for the pictures of a data set and writes them into a run: as MindSpore's explanations, with pictures in a folder
beside, and as pictures under the tags explain/METHOD/LABEL, with the number of the sample as step, which lunaria insight shows.

summary_dir: the folder of the run. data: { dataset, labels }: the data set gives batches of images (N, C, H, W), of images and labels
(N,) or (N, l), or of these and boxes (N, l, 4) of x, y, width and height in pixels; labels are the names of the classes. network: a cell
that gives logits. activation_fn: what makes probabilities of them.

  > net = ms.nn.SequentialCell(ms.nn.Flatten(), ms.nn.Dense(16, 2))
  > data = { { { ms.rand { 2, 1, 4, 4 }, ms.tensor { 0, 1 } } }, { "cat", "dog" } }
  > runner = ms.explain.ImageClassificationRunner("/tmp/lunaria_help_runner", data, net, ms.nn.Softmax())
  > runner.labels[2] --> dog]])

function Runner:setup(a)
  local name = "ImageClassificationRunner"
  if type(a.summary_dir) ~= "string" or a.summary_dir == "" then
    fail(name, "summary_dir must be a path, got " .. describe(a.summary_dir))
  end
  if type(a.data) ~= "table" or #a.data ~= 2 then fail(name, "data must be { dataset, labels }, got " .. describe(a.data)) end
  local labels = a.data[2]
  if type(labels) ~= "table" or #labels == 0 then
    fail(name, "data[2] must be a list of the names of the classes, got " .. describe(labels))
  end
  for i, label in ipairs(labels) do
    if type(label) ~= "string" then fail(name, ("label %d must be a string, got %s"):format(i, describe(label))) end
  end
  if not cells.is_cell(a.network) then fail(name, "network must be a cell, got " .. describe(a.network)) end
  if not arguments.is_callable(a.activation_fn) then fail(name, "activation_fn must be a cell, got " .. describe(a.activation_fn)) end
  self.summary_dir, self.labels, self.network, self.activation_fn = a.summary_dir, labels, a.network, a.activation_fn
  self.source, self.explainers, self.benchmarkers = source(name, a.data[1]), {}, {}
end

local function name_of(object) return getmetatable(object)._name end

-- A list of objects of different classes.
local function objects(where, what, list, is_one)
  if type(list) ~= "table" or getmetatable(list) ~= nil then fail(where, ("%s must be a list, got %s"):format(what, describe(list))) end
  local seen = {}
  for i, object in ipairs(list) do
    if not is_one(object) then fail(where, ("%s[%d] must be one of ms.explain, got %s"):format(what, i, describe(object))) end
    if seen[name_of(object)] then fail(where, ("%s has %s twice"):format(what, name_of(object))) end
    seen[name_of(object)] = true
  end
  return list
end

--- Says what explains and what is scored. explainers: a list of methods of ms.explain, of different classes, with the runner's network.
--- benchmarkers: a list of scores of ms.explain.
---     > net = ms.nn.SequentialCell(ms.nn.Flatten(), ms.nn.Dense(16, 2))
---     > data = { { { ms.rand { 2, 1, 4, 4 } } }, { "cat", "dog" } }
---     > runner = ms.explain.ImageClassificationRunner("/tmp/lunaria_help_runner", data, net, ms.nn.Softmax())
---     > runner:register_saliency({ ms.explain.Gradient(net) }, { ms.explain.ClassSensitivity() })
---     > #runner.explainers --> 1
function Runner:register_saliency(explainers, benchmarkers)
  local where = "register_saliency"
  explainers, benchmarkers = arguments.named(where, { "explainers", "benchmarkers" }, explainers, benchmarkers)
  if #self.explainers > 0 then fail(where, "it was called already") end
  explainers = objects(where, "explainers", explainers, function(object) return class.is_a(object, common.Attribution) end)
  if #explainers == 0 then fail(where, "explainers is an empty list") end
  for _, explainer in ipairs(explainers) do
    if explainer.network ~= self.network then fail(where, ("%s has another network than the runner"):format(name_of(explainer))) end
  end
  self.benchmarkers = objects(where, "benchmarkers", benchmarkers or {}, function(object)
    return type(object) == "table" and type(object.aggregate) == "function"
  end)
  self.explainers = explainers
end

--- Has counterfactuals searched too: the boxes that are enough for each label (see ms.explain.Searcher). win_sizes, strides, threshold,
--- by_masking, mask: as there.
---     > net = ms.nn.SequentialCell(ms.nn.Flatten(), ms.nn.Dense(16, 2))
---     > data = { { { ms.rand { 2, 1, 4, 4 } } }, { "cat", "dog" } }
---     > runner = ms.explain.ImageClassificationRunner("/tmp/lunaria_help_runner", data, net, ms.nn.Softmax())
---     > runner:register_hierarchical_occlusion { win_sizes = { 2 }, strides = { 1 }, mask = 0.0 }
---     > runner.searcher.threshold --> 0.5
function Runner:register_hierarchical_occlusion(options)
  local where = "register_hierarchical_occlusion"
  if self.searcher then fail(where, "it was called already") end
  local given = {}
  for name, value in pairs(arguments.options(where, options, { win_sizes = "table", strides = "table", threshold = "number",
    by_masking = "boolean", mask = function() return true end }, "{ win_sizes = { 8, 4 }, strides = { 2, 1 } }")) do
    if name == "mask" then self.mask = value else given[name] = value end
  end
  given.network, given.activation_fn = self.network, self.activation_fn
  self.searcher = counterfactual.HierarchicalOcclusion(given)
end

-- A picture (1 or 3, H, W) with values from 0 to 1.
local function picture_of(x)
  local least, most = ops.min(x):item(), ops.max(x):item()
  x = (x - least) / math.max(most - least, 1e-10)
  if x.shape[1] == 1 or x.shape[1] == 3 then return x end
  return ops.mean(x, 0, true)
end

-- A map over a picture: dark, red, yellow, white.
local function overlaid(picture, map)
  local least, most = ops.min(map):item(), ops.max(map):item()
  map = (map - least) / math.max(most - least, 1e-10)
  local parts = {}
  for i = 0, 2 do parts[i + 1] = ops.clamp(map * 3 - i, 0.0, 1.0) end
  return ops.concat(parts, 0) * 0.65 + ops.mean(picture, 0, true) * 0.35
end

-- Writes a picture as a PNG file; gives its path below the run's folder.
local function save(self, folder, name, picture)
  local below = ("_explain_%d/%s"):format(self.time, folder)
  ms.io.make_folder(self.summary_dir .. "/" .. below)
  local path = ("%s/%s.png"):format(below, name)
  local pixels = ops.transpose(ops.round(picture * 255):astype(ms.uint8), { 1, 2, 0 }):contiguous()
  local file, message = io.open(self.summary_dir .. "/" .. path, "wb")
  if not file then fail("run", message) end
  file:write(require("lunaria.rendering").png(pixels, picture.shape[3], picture.shape[2], picture.shape[1]))
  file:close()
  return path
end

local function labels_of(labels, n)
  if labels == nil then return {} end
  local own = labels[n]
  if own.ndim == 0 then return { own:item() } end
  local list = {}
  -- What is negative fills up lists of different lengths.
  for _, label in ipairs(own:tolist()) do
    if label >= 0 then list[#list + 1] = label end
  end
  return list
end

-- The mask (1, 1, H, W) of a label's boxes, or nil.
local function mask_of(bboxes, n, own, label, height, width)
  if bboxes == nil then return nil end
  local rows = bboxes[n]
  if rows.ndim == 1 then rows = rows:reshape { 1, 4 } end
  local mask = ms.zeros { 1, 1, height, width }
  for i, box in ipairs(rows:tolist()) do
    if own[i] == label then
      local x, y = math.max(0, math.floor(box[1])), math.max(0, math.floor(box[2]))
      local right, bottom = math.min(width, math.floor(box[1] + box[3])), math.min(height, math.floor(box[2] + box[4]))
      if right > x and bottom > y then mask[{ 0, 0, ms.slice(y, bottom), ms.slice(x, right) }] = 1 end
    end
  end
  return mask
end

local function add_explanation(record, message) record:add_value("explainer", "explanation", message) end

-- The answers for a picture, and which labels are explained: its own and the likely ones.
local function infer(self, record, sample)
  local y = common.predicting(self.network, common.outputs, "run", common.activated(self.network, self.activation_fn), sample.x)
  if y.shape[2] ~= #self.labels then
    fail("run", ("the network has %d classes, and there are %d labels"):format(y.shape[2], #self.labels))
  end
  local probabilities, explained, seen = y[0]:tolist(), {}, {}
  local message = { sample_id = sample.id, ground_truth_label = sample.own,
    inference = { ground_truth_prob = {}, predicted_label = {}, predicted_prob = {} } }
  local function explain(label)
    if not seen[label] then explained[#explained + 1], seen[label] = label, true end
  end
  for i, label in ipairs(sample.own) do
    if label >= #self.labels then fail("run", ("sample %d has the label %d, and there are %d"):format(sample.id, label, #self.labels)) end
    message.inference.ground_truth_prob[i] = probabilities[label + 1]
    explain(label)
  end
  local likeliest = 1
  for i, p in ipairs(probabilities) do
    if p > probabilities[likeliest] then likeliest = i end
    if p > 0.5 then
      table.insert(message.inference.predicted_label, i - 1)
      table.insert(message.inference.predicted_prob, p)
      explain(i - 1)
    end
  end
  if #explained == 0 then explain(likeliest - 1) end
  add_explanation(record, { sample_id = sample.id, image_path = save(self, "origin_images", tostring(sample.id), sample.picture) })
  add_explanation(record, message)
  record:add_value("image", "explain/original", sample.picture)
  return explained
end

local function score(self, explainer, sample, label, map)
  for _, bench in ipairs(self.benchmarkers) do
    local kind, result = name_of(bench), nil
    local scores = self.scores[explainer]
    if kind == "ClassSensitivity" then
      -- It is of the picture, whatever the label.
      if not sample.is_sensed[explainer] then
        sample.is_sensed[explainer] = true
        result = bench:evaluate(explainer, sample.x)
      end
    elseif kind == "Localization" then
      local mask = mask_of(sample.bboxes, sample.row, sample.own, label, sample.x.shape[3], sample.x.shape[4])
      if mask and ops.sum(mask):item() > 0 then result = bench:evaluate(explainer, sample.x, label, map, mask) end
    else
      result = bench:evaluate(explainer, sample.x, label, map)
    end
    if result then table.insert(scores[bench], { result, label }) end
  end
end

local function explain_sample(self, record, sample, explained)
  for _, explainer in ipairs(self.explainers) do
    local method = name_of(explainer)
    for _, label in ipairs(explained) do
      local map = explainer(sample.x, label)
      local picture = overlaid(sample.picture, map[0])
      add_explanation(record, { sample_id = sample.id, explanation = { { explain_method = method, label = label,
        heatmap_path = save(self, "heatmap/" .. method, ("%d_%d"):format(sample.id, label), picture) } } })
      record:add_value("image", ("explain/%s/%s"):format(method, self.labels[label + 1]), picture)
      score(self, explainer, sample, label, map)
    end
  end
  if not self.searcher then return end
  for _, label in ipairs(explained) do
    -- Where there are no such boxes, as for an unlikely label, there is nothing to show.
    local root, outputs = counterfactual.find(self.searcher, "run", sample.x, label, self.mask)
    if root then
      local layers = {}
      for i, output in ipairs(outputs) do
        local box = {}
        for _, step in ipairs(root:get_layer_or_leaf_steps(i - 1)) do table.move(step.box, 1, 4, #box + 1, box) end
        layers[i] = { prob = output, box = box }
      end
      local mask = tostring(self.mask or "gaussian")
      add_explanation(record, { sample_id = sample.id, hoc = { { label = label, mask = mask, layer = layers } } })
    end
  end
end

-- The mean scores of each method, also as a figure for each.
local function write_scores(self, record)
  local list, found = {}, {}
  for _, explainer in ipairs(self.explainers) do
    found[name_of(explainer)] = {}
    for _, bench in ipairs(self.benchmarkers) do
      bench:reset()
      for _, entry in ipairs(self.scores[explainer][bench]) do bench:aggregate(entry[1], entry[2]) end
      local method, metric = name_of(explainer), name_of(bench)
      found[method][metric] = bench:performance()
      list[#list + 1] = { explain_method = method, benchmark_method = metric, total_score = bench:performance(),
        label_score = bench.num_labels and bench:class_performances() or nil }
      record:add_value("scalar", ("explain/%s/%s"):format(metric, method), bench:performance())
    end
  end
  if #list > 0 then add_explanation(record, { benchmark = list }) end
  return found
end

--- Explains all pictures and writes what it finds. Gives the mean scores: a table by method and score.
---     > folder = "/tmp/lunaria_help_runner"
---     > net = ms.nn.SequentialCell(ms.nn.Flatten(), ms.nn.Dense(16, 2))
---     > data = { { { ms.rand { 2, 1, 4, 4 }, ms.tensor { 0, 1 } } }, { "cat", "dog" } }
---     > runner = ms.explain.ImageClassificationRunner(folder, data, net, ms.nn.Softmax())
---     > runner:register_saliency({ ms.explain.Gradient(net) }, { ms.explain.ClassSensitivity() })
---     > scores = runner:run()
---     > scores.Gradient.ClassSensitivity >= 0, #ms.insight.read(folder).images["explain/original"] --> true	2
---     > os.execute("rm -r " .. folder) --> true	exit	0
function Runner:run()
  if #self.explainers == 0 and not self.searcher then
    fail("run", "nothing is registered", "runner:register_saliency({ ms.explain.Gradient(network) })")
  end
  self.time, self.scores = os.time(), {}
  local methods, metrics = {}, {}
  for i, bench in ipairs(self.benchmarkers) do metrics[i] = name_of(bench) end
  for i, explainer in ipairs(self.explainers) do
    methods[i], self.scores[explainer] = name_of(explainer), {}
    for _, bench in ipairs(self.benchmarkers) do self.scores[explainer][bench] = {} end
  end
  local record <close> = ms.train.SummaryRecord { log_dir = self.summary_dir, raise_exception = true }
  add_explanation(record, { metadata = { label = self.labels, explain_method = methods, benchmark_method = metrics } })
  record:record(1)
  local id, next_batch = 0, self.source.epoch()
  while true do
    local images, labels, bboxes = next_batch()
    if images == nil then break end
    images = common.inputs("run", images)
    for n = 0, images.shape[1] - 1 do
      local x = images[{ ms.slice(n, n + 1) }]
      local sample = { id = id, row = n, x = x, picture = picture_of(x[0]), own = labels_of(labels, n), bboxes = bboxes, is_sensed = {} }
      explain_sample(self, record, sample, infer(self, record, sample))
      record:record(id)
      id = id + 1
    end
  end
  if id == 0 then fail("run", "the data set gives no batch") end
  local found = write_scores(self, record)
  record:record(id)
  return found
end

return { ImageClassificationRunner = Runner }
