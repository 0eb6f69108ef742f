-- ms.explain: each method against what it must give for networks whose answer is known in closed form.
package.path = "tests/lua/?.lua;" .. package.path
local t = require "harness"
local ms = require "lunaria"
local E, ops, nn = ms.explain, ms.ops, ms.nn

ms.set_seed(11)
local height, width, classes = 4, 5, 3

-- Logits W x of all pixels of two channels.
local weights = ms.randn { classes, 2 * height * width }
local linear = nn.SequentialCell(nn.Flatten(), nn.Dense(2 * height * width, classes, { has_bias = false }))
linear[2].weight:assign(weights)
local function weights_of(class) return weights[class]:reshape { 2, height, width } end
local Same = nn.Cell:extend("Same")
function Same:construct(x) return x end -- luacheck: ignore 212
local same = Same()
local x = ms.randn { 2, 2, height, width }

t.test("the gradient of a linear network is its weights", function()
  local map = E.Gradient(linear)(x, { 0, 2 })
  t.equal(tostring(map.shape), ("(2, 1, %d, %d)"):format(height, width))
  for n, class in ipairs { 0, 2 } do t.near(map[n - 1], ops.amax(ops.abs(weights_of(class)), 0, true), 1e-6) end
  t.near(E.Gradient(linear)(x, 1)[0], E.Gradient(linear)(x, ms.tensor { 1, 1 })[0], 0)
end)

local convolutional = nn.SequentialCell(nn.Conv2d(2, 3, 3), nn.Tanh(), nn.Flatten(), nn.Dense(3 * height * width, classes))

t.test("the gradient of a network is that of finite differences", function()
  local map, wide = E.Gradient(convolutional)(x, 1), 0.01
  local function score(input) return ops.sum(convolutional(input)[{ ms.slice(), 1 }]):item() end
  for _, place in ipairs { { 0, 0, 0 }, { 1, 3, 4 }, { 0, 2, 2 } } do
    local most = 0
    for channel = 0, 1 do
      local step = ms.zeros(x.shape)
      step[{ place[1], channel, place[2], place[3] }] = wide
      most = math.max(most, math.abs(score(x + step) - score(x - step)) / (2 * wide))
    end
    t.near(map[{ place[1], 0, place[2], place[3] }]:item(), most, 2e-3)
  end
end)

t.test("deconvolution and guided backpropagation change what comes back through a ReLU", function()
  local pixels = 2 * height * width
  local hidden = nn.Dense(pixels, 6, { has_bias = false })
  local net = nn.SequentialCell(nn.Flatten(), hidden, nn.ReLU(), nn.Dense(6, classes, { has_bias = false }))
  local first, last = hidden.weight, net[4].weight
  local back = ops.relu(last[{ ms.slice(2, 3) }])
  local function map(v) return ops.amax(ops.abs(ops.matmul(v, first):reshape { -1, 2, height, width }), 1, true) end
  t.near(E.Deconvolution(net)(x, 2)[0], map(back)[0], 1e-5)
  local is_on = ops.greater(hidden(x:reshape { 2, pixels }), 0):astype(ms.float32)
  t.near(E.GuidedBackprop(net)(x, 2), map(back * is_on), 1e-5)
  t.near(E.Gradient(net)(x, 2), map(last[{ ms.slice(2, 3) }] * is_on), 1e-5)
  t.fails({ "GuidedBackprop: the network has no nn.ReLU cell" }, E.GuidedBackprop(linear), x, 1)
end)

t.test("integrated gradients add up to the difference of the outputs", function()
  local base = ms.full({ 2, 2, height, width }, 0.25)
  local map = E.IntegratedGradients(linear, base, 1)(x, { 0, 2 })
  for n, class in ipairs { 0, 2 } do
    t.near(map[n - 1], ops.sum((x - base)[n - 1] * weights_of(class), 0, true), 1e-5)
  end
  local sums = ops.sum(E.IntegratedGradients(convolutional, { steps = 40, perturbation_per_eval = 7 })(x, 1), { 1, 2, 3 })
  t.near(sums, (convolutional(x) - convolutional(x * 0))[{ ms.slice(), 1 }], 2e-3)
end)

t.test("Grad-CAM weights channels by their mean gradient", function()
  local Pooled = nn.Cell:extend("Pooled")
  function Pooled:init() self.conv, self.fc = nn.Conv2d(2, 3, 3), nn.Dense(3, classes) end
  function Pooled:construct(input) return self.fc(ops.mean(self.conv(input), { 2, 3 })) end
  local net = Pooled()
  local speaks = net.fc.weight[1]:reshape { 1, 3, 1, 1 } / (height * width)
  local wanted = ops.relu(ops.sum(net.conv(x) * speaks, 1, true))
  t.near(E.GradCAM(net, "conv")(x, 1), wanted, 1e-6)
  t.near(E.GradCAM(net)(x, 1), wanted, 1e-6)
  t.near(E.GradCAM(net, net.conv)(x, 1), wanted, 1e-6)
  t.fails({ "GradCAM: the network has no layer the string 'conf'", "did you mean 'conv'?" }, E.GradCAM, net, "conf")
  t.fails({ "the layer must give a tensor (N, C, h, w)" }, E.GradCAM(net, "fc"), x, 1)
  t.fails({ "the network has no nn.Conv2d" }, E.GradCAM, linear)
end)

t.test("occlusion is the mean fall of the windows over a pixel", function()
  local map = E.Occlusion(linear, same, { window = { 2, 3 }, stride = { 1, 2 }, perturbation_per_eval = 3, base_value = 0.5 })(x, 1)
  for n = 0, 1 do
    local falls = ops.sum((x[n] - 0.5) * weights_of(1), 0):tolist()
    for i = 1, height do
      for j = 1, width do
        local sum, count = 0, 0
        for top = 1, height - 1 do
          for left = 1, width - 2, 2 do
            if i >= top and i < top + 2 and j >= left and j < left + 3 then
              count = count + 1
              for a = top, top + 1 do
                for b = left, left + 2 do sum = sum + falls[a][b] end
              end
            end
          end
        end
        t.near(map[{ n, 0, i - 1, j - 1 }]:item(), count > 0 and math.abs(sum / count) or 0, 1e-4)
      end
    end
  end
end)

t.test("RISE is the mean of masks, weighted by the answer under them", function()
  local masks = ops.less(ms.rand { 7, 1, height, width }, 0.5):astype(ms.float32)
  local map = E.RISE(linear, nn.Softmax(), { masks = masks, perturbation_per_eval = 3 })(x, ms.tensor { { 0, 2 }, { 1, 1 } })
  local wanted = ms.zeros { 2, 2, height, width }
  for n, labels in ipairs { { 0, 2 }, { 1, 1 } } do
    for i = 0, 6 do
      local answer = nn.Softmax()(linear(x[{ ms.slice(n - 1, n) }] * masks[i]))
      for k, label in ipairs(labels) do
        wanted[{ n - 1, k - 1 }] = wanted[{ n - 1, k - 1 }] + masks[{ i, 0 }] * answer[{ 0, label }] / 7
      end
    end
  end
  t.near(map, wanted, 1e-5)
  -- Drawn masks: what the answer rests on stands out.
  local net = nn.SequentialCell(nn.Flatten(), nn.Dense(256, 2, { has_bias = false }))
  local spot = ms.zeros { 2, 16, 16 }
  spot[{ 1, ms.slice(2, 8), ms.slice(9, 15) }] = 0.2
  net[2].weight:assign(spot:reshape { 2, 256 })
  ms.set_seed(5)
  local found = E.RISE(net, nn.Softmax(), { num_masks = 400, down_sample_size = 4 })(ms.ones { 1, 1, 16, 16 }, 1)[{ 0, 0 }]
  local place = ops.argmax(found:reshape { -1 }):item()
  assert(place // 16 >= 2 and place // 16 < 8 and place % 16 >= 9 and place % 16 < 15, place)
end)

local picture = ms.rand { 1, 1, height, width } + 0.5
local single = nn.SequentialCell(nn.Flatten(), nn.Dense(height * width, 2, { has_bias = false }))
single[2].weight:assign(ops.stack({ ms.rand { height * width }, -ms.rand { height * width } }, 0))
local shares = (single[2].weight[0] * picture:reshape { -1 }):reshape { 1, 1, height, width }

t.test("faithfulness is 1 where the map is what pixels add, 0 where it is the contrary", function()
  local explainer, pixels = E.Gradient(single), height * width
  local naive = E.Faithfulness(2, same, { perturb_percent = 1.0, num_perturbations = pixels })
  t.near(naive:evaluate(explainer, picture, 0, shares):item(), 1.0, 1e-6)
  t.near(naive:evaluate(explainer, picture, 0, -shares):item(), 0.0, 1e-6)
  t.near(naive:evaluate(explainer, picture, 0, shares * 0):item(), 0.5, 1e-6)
  -- Curves of sums, from the largest on.
  local sorted = shares:reshape({ -1 }):tolist()
  table.sort(sorted, function(a, b) return a > b end)
  local area, sum = 0, 0
  for _, value in ipairs(sorted) do
    area = area + (sum + value / 2) / pixels
    sum = sum + value
  end
  for _, metric in ipairs { "DeletionAUC", "InsertionAUC" } do
    local score = E.Faithfulness(2, same, metric, { perturb_percent = 1.0, num_perturbations = pixels })
    t.near(score:evaluate(explainer, picture, 0, shares):item(), area, 1e-5)
    assert(score:evaluate(explainer, picture, 0, -shares):item() < area - 0.01)
  end
  t.equal(tostring(naive:evaluate(explainer, picture, 0).shape), "(1,)")
end)

t.test("localization", function()
  local explainer, map, mask = E.Gradient(single), ms.zeros { 1, 1, height, width }, ms.zeros { 1, 1, height, width }
  map[{ 0, 0, 1, 1 }], map[{ 0, 0, 1, 2 }], map[{ 0, 0, 3, 3 }], map[{ 0, 0, 0, 0 }] = 1.0, 0.9, 0.6, 0.4
  mask[{ 0, 0, ms.slice(0, 2), ms.slice(0, 3) }] = 1
  t.near(E.Localization(2, "IoSR"):evaluate(explainer, picture, 0, map, mask):item(), 2 / 3, 1e-6)
  t.near(E.Localization(2, "IoSR", { threshold = 0.3 }):evaluate(explainer, picture, 0, map, mask):item(), 3 / 4, 1e-6)
  local far = ms.zeros { 1, 1, height, width }
  far[{ 0, 0, 3, 3 }] = 1
  local function pointing(tolerance, object)
    return E.Localization(2, { tolerance = tolerance }):evaluate(explainer, picture, 0, map, object):item()
  end
  -- The largest value lies at (1, 1), the root of 8 from (3, 3).
  t.equal({ pointing(1, mask), pointing(1, far), pointing(2.8, far), pointing(2.9, far) }, { 1.0, 0.0, 0.0, 1.0 })
end)

t.test("robustness and class sensitivity", function()
  local robust = E.Robustness(2, same, { num_perturbations = 3, radius = 0.1 })
  t.near(robust:evaluate(E.Gradient(single), picture, 0):item(), 1.0, 1e-6)
  -- Maps w x change by at most radius |w|.
  local explainer = E.IntegratedGradients(single, { steps = 1 })
  local score = robust:evaluate(explainer, picture, 0):item()
  local most = 0.1 * ops.norm(single[2].weight[0]):item() / ops.norm(explainer(picture, 0)):item()
  assert(score < 1 and score >= math.exp(-most), score)
  local blind = robust:evaluate(explainer, picture * 0, 0, picture * 0):item()
  assert(blind ~= blind)

  local apart = ms.zeros { 2, height * width }
  apart[{ 0, ms.slice(0, 10) }], apart[{ 1, ms.slice(10, 20) }] = 2.0, 1.0
  local net = nn.SequentialCell(nn.Flatten(), nn.Dense(height * width, 2, { has_bias = false }))
  net[2].weight:assign(apart)
  local both = ms.ones { 2, 1, height, width }
  t.near(E.ClassSensitivity():evaluate(E.Gradient(net), both), ms.tensor { 1.0, 1.0 }, 1e-6)
  net[2].weight:assign(ops.stack({ apart[0], apart[0] * -1 }, 0))
  local sensitivity = E.ClassSensitivity()
  t.near(sensitivity:evaluate(E.Gradient(net), both), ms.tensor { 0.0, 0.0 }, 1e-6)
  sensitivity:aggregate(ms.tensor { 0.0, 0.5 })
  t.equal({ sensitivity:performance(), sensitivity.count }, { 0.25, 2 })
  local by_label = E.Localization(3)
  by_label:aggregate(ms.tensor { 1.0, 0.0, 0.5 }, ms.tensor { 0, 0, 2 })
  t.equal(by_label:class_performances(), { 0.5, 0.0, 0.5 })
end)

-- The probability of class 1 is the share of a patch that is there.
local Patch = nn.Cell:extend("Patch")
function Patch:construct(input) -- luacheck: ignore 212
  local p = ops.mean(input[{ ms.slice(), 0, ms.slice(5, 9), ms.slice(10, 14) }], { 1, 2 })
  return ops.stack({ 1 - p, p }, 1)
end

t.test("hierarchical occlusion finds the boxes that are enough, and those that are needed", function()
  local net, image = Patch(), ms.ones { 1, 16, 16 }
  for _, by_masking in ipairs { false, true } do
    local searcher = E.Searcher(net, { 8, 2 }, { 2, 1 }, { threshold = 0.9, by_masking = by_masking })
    if by_masking then searcher = E.Searcher(net, { 8, 2 }, { 2, 1 }, { threshold = 0.1, by_masking = true }) end
    local root, outputs = searcher:search(image, 1, 0.0)
    t.equal({ root.layer, #root.children, root.children[1].box[3] }, { -1, 1, 8 })
    t.equal(outputs[1], by_masking and 0.0 or 1.0)
    -- A large box around the patch, and within it small ones that cover it.
    local x0, y0 = table.unpack(root.children[1].box)
    assert(x0 <= 10 and x0 + 8 >= 14 and y0 <= 5 and y0 + 8 >= 9)
    assert(#root.children[1].children >= 4)
    for _, step in ipairs(root:leaf_steps()) do
      local u, v, w = table.unpack(step.box)
      t.equal(w, 2)
      assert(u >= x0 and v >= y0 and u + 2 <= x0 + 8 and v + 2 <= y0 + 8)
    end
    local last = outputs[#outputs]
    assert(#outputs == 2 and (by_masking and last <= 0.1 or not by_masking and last >= 0.9))
  end
  t.fails({ "search: the output for the picture is 0, which must be larger than the threshold, 0.5" }, E.Searcher(net, { 8 }, { 2 }).search,
    E.Searcher(net, { 8 }, { 2 }), image, 0, 0.0)
  t.fails({ "no boxes bring the output to the threshold" }, function()
    E.Searcher(Patch(), { 2 }, { 1 }, { threshold = 0.99, by_masking = true }):search(image, 1, image)
  end)
  t.fails({ "win_sizes must fall from layer to layer" }, E.Searcher, net, { 2, 4 }, { 1, 1 })
  -- A mask that smooths leaves a constant picture as it is, and spreads a spot.
  t.fails({ "no boxes bring" }, E.Searcher(net, { 8 }, { 8 }).search, E.Searcher(net, { 8 }, { 8 }), image, 1, "gaussian:2")
  local spot = ms.zeros { 1, 16, 16 }
  spot[{ 0, ms.slice(5, 9), ms.slice(10, 14) }] = 1
  local root, outputs = E.Searcher(net, { 8 }, { 4 }, { threshold = 0.9 }):search(spot, 1, "gaussian:2")
  t.equal({ #root.children, outputs[1] }, { 1, 1.0 })
end)

t.test("a runner leaves explanations that a run has", function()
  local folder = os.tmpname()
  os.remove(folder)
  local net = nn.SequentialCell(nn.Conv2d(1, 2, 3), nn.ReLU(), nn.Flatten(), nn.Dense(2 * 64, 3))
  local images, labels = ms.rand { 3, 1, 8, 8 }, ms.tensor { 0, 2, 1 }
  local boxes = ms.tensor { { { 0, 0, 4, 4 } }, { { 2, 2, 4, 4 } }, { { 4, 4, 4, 4 } } }
  local runner = E.ImageClassificationRunner(folder, { { { images, labels, boxes } }, { "<a>", "b", "c" } }, net, nn.Softmax())
  runner:register_saliency({ E.Gradient(net), E.GradCAM(net) }, { E.Localization(3), E.ClassSensitivity() })
  local scores = runner:run()
  t.equal(scores.Gradient.Localization, 1.0)
  local run = ms.insight.read(folder)
  local seen = { explanation = 0, image_path = 0, inference = 0, benchmark = 0, metadata = 0 }
  for _, message in ipairs(run.explanations) do
    for name in pairs(seen) do seen[name] = seen[name] + (message[name] and 1 or 0) end
    if message.image_path then t.equal(ms.io.kind(folder .. "/" .. message.image_path), "file") end
    if message.explanation then t.equal(ms.io.kind(folder .. "/" .. message.explanation[1].heatmap_path), "file") end
  end
  t.equal(run.explanations[1].metadata.explain_method, { "Gradient", "GradCAM" })
  assert(seen.explanation >= 6 and seen.image_path == 3 and seen.inference == 3 and seen.benchmark == 1)
  t.equal(#run.images["explain/original"], 3)
  assert(#run.images["explain/GradCAM/<a>"] >= 1)
  t.near(run.scalars["explain/Localization/Gradient"].value[0]:item(), 1.0, 0)
  t.fails({ "register_saliency: it was called already" }, runner.register_saliency, runner, { E.Gradient(net) })
  os.execute("rm -rf '" .. folder .. "'")
  local patch = ms.zeros { 1, 1, 16, 16 }
  patch[{ 0, 0, ms.slice(5, 9), ms.slice(10, 14) }] = 1
  local searching = E.ImageClassificationRunner(folder, { { { patch, ms.tensor { 1 } } }, { "no", "yes" } }, Patch(), same)
  searching:register_hierarchical_occlusion { win_sizes = { 8 }, strides = { 4 }, mask = 0.0 }
  searching:run()
  local found = ms.insight.read(folder).explanations
  t.equal(found[#found].hoc, { { label = 1, mask = "0.0", layer = { { prob = 1.0, box = { 8, 4, 8, 8 } } } } })
  local other = E.ImageClassificationRunner(folder, { { { images } }, { "a", "b" } }, net, nn.Softmax())
  t.fails({ "run: nothing is registered" }, other.run, other)
  t.fails({ "Gradient has another network" }, other.register_saliency, other, { E.Gradient(linear) })
  other:register_saliency { E.Gradient(net) }
  t.fails({ "the network has 3 classes, and there are 2 labels" }, other.run, other)
  os.execute("rm -rf '" .. folder .. "'")
end)

t.test("mistakes say what is wrong, and networks are left as they were", function()
  local gradient = E.Gradient(linear)
  t.fails({ "Gradient: inputs must be a tensor (N, C, H, W)" }, gradient, ms.ones { 2, 3 }, 0)
  t.fails({ "there are 2 inputs, but targets for 3" }, gradient, x, { 0, 1, 2 })
  t.fails({ "the network has 3 classes, and the target is 3" }, gradient, x, 3)
  t.fails({ "targets must not be negative" }, gradient, x, -1)
  t.fails({ "targets must be a class" }, gradient, x, ms.tensor { 0.5 })
  t.fails({ "Gradient: network must be a cell" }, E.Gradient, print)
  t.fails({ "there is no name 'Gradent'", "did you mean 'Gradient'?" }, function() return E.Gradent end)
  local net = nn.SequentialCell(nn.Flatten(), nn.Dropout { p = 0.5 }, nn.Dense(2 * height * width, 3))
  net:set_train(true)
  t.near(E.Gradient(net)(x, 1), E.Gradient(net)(x, 1), 0)
  t.equal({ net.training, net[2].training }, { true, true })
  pcall(E.Gradient(net), x, 7)
  t.equal({ net.training, net[2].training }, { true, true })
end)

t.finish()
