-- Transforms that choose among others by chance: what they consist of is put together here, from the native parts.
local arguments = require "lunaria.nn.arguments"
local steps = require "lunaria.dataset.steps"

local fail, describe, check = arguments.fail, arguments.describe, arguments.check

return function(vision)
  local function define(...) return steps.define(vision, ...) end

  -- Each operation with the largest magnitudes of the two families of methods: the first of AutoAugment and RandAugment,
  -- the second of TrivialAugmentWide. kind and numbers(m) make it; those with a sign come as m and -m.
  local function operations(name, inter, fill)
    local colour = { steps.color(name, "fill_value", fill) }
    local function made(kind, ...)
      return steps.made(kind, name, { ... })
    end
    local function moved(...) return made("affine", ...) end
    local r, g, b = table.unpack(colour)
    local function angle(m) return math.deg(math.atan(m)) end
    return {
      ShearX = { 0.3, 0.99, true, function(m) return moved(0, 0, 0, 1, angle(m), 0, inter, r, g, b) end },
      ShearY = { 0.3, 0.99, true, function(m) return moved(0, 0, 0, 1, 0, angle(m), inter, r, g, b) end },
      TranslateX = { 150 / 331, 32, true, function(m, wide)
        return wide and made("translate", m // 1, 0, inter, r, g, b) or moved(0, m, 0, 1, 0, 0, inter, r, g, b)
      end },
      TranslateY = { 150 / 331, 32, true, function(m, wide)
        return wide and made("translate", 0, m // 1, inter, r, g, b) or moved(0, 0, m, 1, 0, 0, inter, r, g, b)
      end },
      Rotate = { 30, 135, true, function(m) return made("rotate", m, inter, 0, 0, 0, 0, r, g, b) end },
      Brightness = { 0.9, 0.99, true, function(m) return made("brightness", 1 + m) end },
      Color = { 0.9, 0.99, true, function(m) return made("saturation", 1 + m) end },
      Contrast = { 0.9, 0.99, true, function(m) return made("contrast", 1 + m) end },
      Sharpness = { 0.9, 0.99, true, function(m) return made("sharpness", 1 + m) end },
      Posterize = { 4, 6, false, function(m) return made("posterize", 8 - math.floor(m + 0.5)) end },
      Solarize = { 255, 255, false, function(m) return made("solarize", 255 - m, 255) end },
      AutoContrast = { 0, 0, false, function() return made("auto_contrast", 0) end },
      Equalize = { 0, 0, false, function() return made("equalize") end },
      Invert = { 0, 0, false, function() return made("invert") end },
      Identity = { 0, 0, false, function() return made("compose") end },
    }
  end

  -- An operation with this part of its largest magnitude, with a sign by chance.
  local function operation(name, list, which, share, wide)
    local row = list[which]
    local m = row[wide and 2 or 1] * share
    if not row[3] or m == 0 then return row[4](m, wide) end
    return steps.made("random_choice", name, {}, { row[4](m, wide), row[4](-m, wide) })
  end

  local wide_names = { "Identity", "ShearX", "ShearY", "TranslateX", "TranslateY", "Rotate", "Brightness", "Color", "Contrast",
    "Sharpness", "Posterize", "Solarize", "AutoContrast", "Equalize" }

  steps.enumeration(vision, "AutoAugmentPolicy", [[The data set whose policy AutoAugment uses: IMAGENET, CIFAR10 or SVHN.

    > ms.dataset.vision.AutoAugmentPolicy.CIFAR10
    cifar10]], { IMAGENET = "imagenet", CIFAR10 = "cifar10", SVHN = "svhn" })

  local words = [[ An image of uint8 (height, width, 3) is expected. interpolation: one of Inter, for what
moves pixels. fill_value: the colour of what is beyond the image, a number or three.]]
  local function example(call)
    return ([[


    > ms.dataset.vision.%s(ms.zeros({ 8, 8, 3 }, { dtype = ms.uint8 })).shape
    (8, 8, 3)]]):format(call)
  end

  define("AutoAugment", "policy='imagenet', interpolation=0, fill_value=0", [[
Two operations in a row, a pair by chance of those that were found to be good for a data set (Cubuk et al. 2019). policy: one of
AutoAugmentPolicy. Shears are about the middle of the image.]] .. words .. example "AutoAugment(\"cifar10\")", function(a, name)
    local policy = steps.choice(name, "policy", a.policy, vision, "AutoAugmentPolicy")
    local list = operations(name, vision._plain_inter(name, a.interpolation), a.fill_value)
    local pairs_of = {}
    for first, p1, m1, second, p2, m2 in require("lunaria.dataset.vision.policies")[policy]
      :gmatch "(%a+) (%S+) (%S+) (%a+) (%S+) ([^%s;]+);" do
      local one = operation(name, list, first, (tonumber(m1) or 0) / 9)
      local two = operation(name, list, second, (tonumber(m2) or 0) / 9)
      pairs_of[#pairs_of + 1] = steps.made("compose", name, {}, {
        steps.made("random_apply", name, { tonumber(p1) }, { one }), steps.made("random_apply", name, { tonumber(p2) }, { two }) })
    end
    return "random_choice", {}, nil, nil, pairs_of
  end)

  local function bins_of(name, bins)
    bins = check.positive(name, "num_magnitude_bins", bins)
    if bins < 2 or bins > 1000 then fail(name, ("num_magnitude_bins must be 2 to 1000, got %d"):format(bins)) end
    return bins
  end

  define("RandAugment", "num_ops=2, magnitude=9, num_magnitude_bins=31, interpolation=0, fill_value=0", [[
num_ops operations in a row by chance, all with one magnitude (Cubuk et al. 2020). magnitude: how strong they are, 0 to
num_magnitude_bins - 1.]] .. words .. example "RandAugment()", function(a, name)
    local bins = bins_of(name, a.num_magnitude_bins)
    local magnitude = check.not_negative(name, "magnitude", a.magnitude)
    if magnitude >= bins then fail(name, ("magnitude must be less than num_magnitude_bins, got %d and %d"):format(magnitude, bins)) end
    local list = operations(name, vision._plain_inter(name, a.interpolation), a.fill_value)
    local parts = {}
    for i, which in ipairs(wide_names) do parts[i] = operation(name, list, which, magnitude / (bins - 1)) end
    return "random_several", { check.not_negative(name, "num_ops", a.num_ops) }, nil, nil, parts
  end)

  define("TrivialAugmentWide", "num_magnitude_bins=31, interpolation=0, fill_value=0", [[
One operation by chance with a magnitude by chance, up to strong ones (Müller and Hutter 2021). num_magnitude_bins: between how many
magnitudes is chosen.]] .. words .. example "TrivialAugmentWide()", function(a, name)
    local bins = bins_of(name, a.num_magnitude_bins)
    local list = operations(name, vision._plain_inter(name, a.interpolation), a.fill_value)
    local parts = {}
    for i, which in ipairs(wide_names) do
      local kinds = {}
      for bin = 0, list[which][1] == 0 and 0 or bins - 1 do kinds[#kinds + 1] = operation(name, list, which, bin / (bins - 1), true) end
      parts[i] = steps.made("random_choice", name, {}, kinds)
    end
    return "random_choice", {}, nil, nil, parts
  end)

  define("UniformAugment", "transforms, num_ops=2", [[
num_ops of the list transforms by chance, no one twice, each of which is applied with probability 1/2 (LingChen et al. 2020).]]
    .. example "UniformAugment { ms.dataset.vision.Invert(), ms.dataset.vision.Equalize() }", function(a, name)
    local parts = steps.parts_of(name, "transforms", a.transforms)
    local count = check.positive(name, "num_ops", a.num_ops)
    if count > #parts then fail(name, ("num_ops must be at most the number of transforms, %d, got %d"):format(#parts, count)) end
    return "random_some", { count, 0.5 }, nil, nil, parts
  end)

  define("RandomSelectSubpolicy", "policy", [[
One list by chance of policy, a list of lists of pairs { transform, probability }, which are applied in a row.]]
    .. example "RandomSelectSubpolicy { { { ms.dataset.vision.Invert(), 0.5 } } }", function(a, name)
    if type(a.policy) ~= "table" or #a.policy == 0 then fail(name, "policy must be a list of lists, got " .. describe(a.policy)) end
    local lists = {}
    for i, list in ipairs(a.policy) do
      local parts = {}
      if type(list) ~= "table" or #list == 0 then fail(name, ("policy[%d] must be a list of pairs, got %s"):format(i, describe(list))) end
      for k, pair in ipairs(list) do
        local what = ("policy[%d][%d]"):format(i, k)
        if type(pair) ~= "table" or not steps.is_transform(pair[1]) then
          fail(name, ("%s must be a pair { transform, probability }, got %s"):format(what, describe(pair)))
        end
        parts[k] = steps.made("random_apply", name, { check.probability(name, what .. "[2]", pair[2]) }, { pair[1]._transform })
      end
      lists[i] = steps.made("compose", name, {}, parts)
    end
    return "random_choice", {}, nil, nil, lists
  end)

  local batch_words = [[ It is given to ds:map after ds:batch, with two columns: the images and the labels (number, classes), as
OneHot makes them, which become float32.]]
  local function batch_example(call)
    return ([[


    > batch, labels = ms.ones({ 2, 4, 4, 3 }), ms.eye(2)
    > mixed, shares = ms.dataset.vision.%s(batch, labels)
    > shares:sum():item()
    2.0]]):format(call)
  end

  local function alpha_of(name, alpha) return check.number_positive(name, "alpha", alpha) end

  define("MixUpBatch", "alpha=1.0", [[
Each image of a batch mixed with another one, and the labels with the same share (Zhang et al. 2018). alpha: of the beta
distribution from which the share is drawn, one for the batch.]] .. batch_words .. batch_example "MixUpBatch(1.0)", function(a, name)
    return "mix_up_batch", { alpha_of(name, a.alpha) }
  end)

  define("MixUp", "batch_size, alpha, is_single=true", [[
As MixUpBatch, with a share for each image, which is mixed with the next one; is_single = false: with any one of the batch (not with the
batch before, as in MindSpore: what a batch is does not depend on others). batch_size: how many images the batches have. alpha: of the
beta distribution from which shares are drawn. The images become float32.]] .. batch_words .. batch_example "MixUp(2, 0.5)",
  function(a, name)
    return "mix_up", { check.positive(name, "batch_size", a.batch_size), alpha_of(name, a.alpha), check.boolean(name, "is_single",
      a.is_single) and 1 or 0 }
  end)

  define("CutMixBatch", "image_batch_format, alpha=1.0, prob=1.0", [[
A rectangle of each image from another one of the batch, and the labels mixed by its share of the area (Yun et al. 2019).
image_batch_format: one of ImageBatchFormat. alpha: of the beta distribution from which the area is drawn. prob: the probability that
an image is changed.]] .. batch_words .. batch_example "CutMixBatch(\"NHWC\")", function(a, name)
    return "cut_mix_batch", { steps.choice(name, "image_batch_format", a.image_batch_format, vision, "ImageBatchFormat"),
      alpha_of(name, a.alpha), check.probability(name, "prob", a.prob) }
  end)
end
