-- Detectors: verdicts that depend on a sample alone, thresholds by clean samples, and what each finds. Two seconds.
package.path = "tests/lua/?.lua;" .. package.path
local t = require "harness"
local ms = require "lunaria"
local D, nn, ops = ms.armour.detectors, ms.nn, ms.ops

ms.set_seed(7)
local size = 6
local net = nn.SequentialCell(nn.Conv2d(1, 3, 3), nn.ReLU(), nn.Flatten(), nn.Dense(3 * size * size, 4))
local clean = ops.clamp(0.5 + 0.1 * ms.randn { 40, 1, size, size }, 0.0, 1.0)
local classes = ops.argmax(net(clean), 1):astype(ms.int32)
local function encoder(x) return ops.clamp(x, 0.2, 0.8) * 0.9 + 0.05 end

local function made()
  local error_based = D.ErrorBasedDetector(encoder, { false_positive_rate = 0.1 })
  local divergence = D.DivergenceBasedDetector(encoder, net, { false_positive_rate = 0.1, t = 2 })
  local region = D.RegionBasedDetector(net, { number_points = 7, max_radius = 0.2, search_step = 0.05, degrade_limit = 0.1, seed = 3 })
  local median = D.SpatialSmoothing(net, { ksize = 3 })
  local similar = D.SpatialSmoothing(net, { ksize = 3, is_local_smooth = false, metric = "l2" })
  local ensemble = D.EnsembleDetector({ D.ErrorBasedDetector(encoder, 0.2), D.SpatialSmoothing(net),
    D.SpatialSmoothing(net, { ksize = 2 }) })
  local list = { error_based, divergence, region, median, similar, ensemble }
  for _, detector in ipairs(list) do detector:fit(clean, classes) end
  return list
end

local suspicious = ops.concat({ clean[{ ms.slice(0, 5) }], ms.rand { 5, 1, size, size } }, 0)

t.test("a verdict does not depend on what else is in the batch, nor on its order", function()
  for _, detector in ipairs(made()) do
    local name = getmetatable(detector)._name
    local whole = detector:detect(suspicious):tolist()
    t.equal(#whole, 10)
    for i = 0, 9 do
      t.equal({ name, detector:detect(suspicious[{ ms.slice(i, i + 1) }]):item() }, { name, whole[i + 1] })
    end
    local back = detector:detect(suspicious:flip { 0 }):tolist()
    for i = 1, 10 do t.equal(back[11 - i], whole[i]) end
    local bright = detector:detect(ops.concat({ suspicious, ms.ones { 3, 1, size, size } }, 0))
    t.equal(bright[{ ms.slice(0, 10) }]:tolist(), whole)
  end
end)

t.test("at most the share of clean samples that was asked for lies above the threshold, and one less would be more", function()
  for _, rate in ipairs { 0.0, 0.1, 0.125, 1.0 } do
    local detector = D.ErrorBasedDetector(encoder, { false_positive_rate = rate })
    detector:fit(clean)
    local count = ops.sum(detector:detect(clean)):item()
    t.equal(count, rate == 1 and 39 or math.floor(40 * rate))
  end
end)

t.test("marks are those of the papers", function()
  local list = made()
  t.near(list[1]:detect_diff(clean), ops.mean(ops.square(clean - encoder(clean)), { 1, 2, 3 }), 1e-6)
  local p, q = ops.softmax(net(clean) / 2, 1):tolist()[1], ops.softmax(net(encoder(clean)) / 2, 1):tolist()[1]
  local js = 0
  for k = 1, 4 do
    local m = (p[k] + q[k]) / 2
    js = js + (p[k] * math.log(p[k] / m) + q[k] * math.log(q[k] / m)) / 2
  end
  t.near(list[2]:detect_diff(clean)[0]:item(), js, 1e-7)
  t.near(list[4]:detect_diff(clean), ops.sum(ops.abs(net(list[4]:transform(clean)) - net(clean)), 1), 1e-6)
end)

t.test("a median is taken within a picture, which goes on as its mirror image", function()
  local x = ms.rand { 2, 2, 3, 4 }
  local got = D.SpatialSmoothing(net, { ksize = 3 }):transform(x):tolist()
  local from = x:tolist()
  local function at(plane, i, j)
    if i < 1 then i = 1 elseif i > 3 then i = 3 end
    if j < 1 then j = 1 elseif j > 4 then j = 4 end
    return plane[i][j]
  end
  for n = 1, 2 do
    for c = 1, 2 do
      for i = 1, 3 do
        for j = 1, 4 do
          local list = {}
          for a = -1, 1 do
            for b = -1, 1 do list[#list + 1] = at(from[n][c], i + a, j + b) end
          end
          table.sort(list)
          t.equal(got[n][c][i][j], list[5])
        end
      end
    end
  end
end)

t.test("samples beside a border are found by their region", function()
  local function threshold_net(x)
    local s = (ops.mean(x, 1) - 0.5):reshape { -1, 1 } * 50
    return ops.concat({ -s, s }, 1)
  end
  local x = ms.full({ 6, 20 }, 0.3)
  local detector = D.RegionBasedDetector(threshold_net, { number_points = 31, max_radius = 0.3, search_step = 0.1, seed = 1 })
  t.near(detector:fit(x, ms.zeros({ 6 }, ms.int32)), 0.3, 1e-12)
  -- Just beyond the border, most points around are of the other side's class where a mean of 20 pixels rarely gets.
  local beyond = ms.full({ 1, 20 }, 0.501)
  local low = D.RegionBasedDetector(threshold_net, { number_points = 31, bounds = { 0.0, 0.55 }, seed = 1 })
  low:set_radius(0.3)
  t.equal(low:detect(ops.concat({ x, beyond }, 0)):tolist(), { 0, 0, 0, 0, 0, 0, 1 })
  t.equal(tostring(detector:transform(x).shape), "(6, 31, 20)")
end)

t.test("an ensemble votes", function()
  local function says(value)
    local Says = ms.armour.Detector:extend("Says")
    function Says:_marks(x) return x[{ ms.slice(), 0 }] * value end -- luacheck: ignore 212
    local detector = Says()
    detector:set_threshold(0.5)
    return detector
  end
  local x = ms.ones { 1, 2 }
  for _, row in ipairs { { "vote", { 1, 1, 0 }, 1 }, { "vote", { 1, 0 }, 0 }, { "all", { 1, 1, 0 }, 0 }, { "all", { 1, 1 }, 1 },
    { "any", { 0, 0, 1 }, 1 }, { "any", { 0, 0 }, 0 } } do
    local list = {}
    for i, value in ipairs(row[2]) do list[i] = says(value) end
    t.equal(D.EnsembleDetector(list, row[1]):detect(x):item(), row[3])
  end
end)

t.test("queries of an attack are found, whatever batches they come in", function()
  local function fresh()
    local detector = D.SimilarityDetector(nn.Flatten(), { max_k_neighbor = 3, fpr = 0.05, chunk_size = 16, max_buffer_size = 30 })
    detector:fit(clean)
    return detector
  end
  local attack = clean[{ ms.slice(0, 1) }] + 0.001 * ms.randn { 9, 1, size, size }
  local queries = ops.clamp(ops.concat({ ms.rand { 6, 1, size, size }, attack }, 0), 0.0, 1.0)
  local detector = fresh()
  local whole = detector:detect(queries):tolist()
  -- By the third query of the attack two of three neighbours are its own; then the buffer fills again.
  t.equal(whole, { 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0 })
  t.equal(detector:get_detected_queries(), { 9, 13 })
  t.equal(detector:get_detection_interval(), { 4 })
  local pieces, again = fresh(), {}
  for i = 0, 14, 4 do
    for _, v in ipairs(pieces:detect(queries[{ ms.slice(i, math.min(15, i + 4)) }]):tolist()) do again[#again + 1] = v end
  end
  t.equal(again, whole)
  local counts, thresholds = D.SimilarityDetector(nn.Flatten(), { max_k_neighbor = 2, fpr = 0.0, tuning = true }):fit(clean)
  t.equal(counts, { 1, 2 })
  local least = math.huge
  local distances = ops.cdist(clean:reshape { 40, -1 }, clean:reshape { 40, -1 }):tolist()
  for i = 1, 40 do
    for j = 1, 40 do if i ~= j then least = math.min(least, distances[i][j]) end end
  end
  t.near(thresholds[1], least, 1e-6)
  -- The oldest go first.
  local short = D.SimilarityDetector(function(x) return x end, { max_k_neighbor = 1, max_buffer_size = 2 })
  short:set_threshold(1, 0.5)
  t.equal(short:detect(ms.tensor { { 0.0 }, { 5.0 }, { 10.0 }, { 0.0 }, { 10.0 } }):tolist(), { 0, 0, 0, 0, 1 })
end)

t.test("what is wrong is said", function()
  t.fails({ "there is no threshold yet", "fit" }, function() D.ErrorBasedDetector(encoder):detect(clean) end)
  t.fails({ "there is no radius yet" }, function() D.RegionBasedDetector(net):detect(clean) end)
  t.fails({ "of the inputs' shape" }, function() D.ErrorBasedDetector(function(x) return ops.sum(x) end):fit(clean) end)
  t.fails({ "hold no sample" }, function() D.ErrorBasedDetector(encoder):fit(ms.zeros { 0, 1, size, size }) end)
  t.fails({ "false_positive_rate must be a probability" }, D.ErrorBasedDetector, encoder, { false_positive_rate = 2 })
  t.fails({ "policy must be one of" }, D.EnsembleDetector, { D.ErrorBasedDetector(encoder) }, "most")
  t.fails({ "detectors[1] must be a detector" }, D.EnsembleDetector, { net })
  t.fails({ "there are 40 samples, and 40 neighbours" }, function()
    D.SimilarityDetector(nn.Flatten(), { max_k_neighbor = 40 }):fit(clean)
  end)
  t.fails({ "initial_radius is 2" }, D.RegionBasedDetector, net, { initial_radius = 2 })
  t.fails({ "already at the initial radius" }, function()
    D.RegionBasedDetector(net, { initial_radius = 0.9 }):fit(clean, classes)
  end)
  t.fails({ "ksize must be odd" }, D.SpatialSmoothing, net, { ksize = 2, is_local_smooth = false })
  t.fails({ "does not change samples" }, function() D.EnsembleDetector({ D.ErrorBasedDetector(encoder) }):transform(clean) end)
end)

t.finish()
