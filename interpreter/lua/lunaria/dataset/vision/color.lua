-- Colours, brightness and sharpness.
local arguments = require "lunaria.nn.arguments"
local steps = require "lunaria.dataset.steps"

local fail, describe, check = arguments.fail, arguments.describe, arguments.check

return function(vision)
  local function define(...) return steps.define(vision, ...) end
  local function level(name, parameter, value) return check.number_not_negative(name, parameter, value) end

  -- A factor, and what an image with one pixel (200, 100, 50) becomes of it.
  local function define_factor(name, parameter, kind, words, factor, result)
    define(name, parameter, ([[
%s %s: the factor, not negative; 1 leaves the image as it is. Bytes are rounded, and cut to 0 to 255.

    > x = ms.tensor({ { { 200, 100, 50 } } }, ms.uint8)
    > table.concat(ms.dataset.vision.%s(%s)(x):tolist()[1][1], " ")
    %s]]):format(words, parameter, name, factor, result), function(a) return kind, { level(name, parameter, a[parameter]) } end)
  end
  define_factor("AdjustBrightness", "brightness_factor", "brightness",
    "The image brighter or darker: each element times the factor.", "1.2", "240 120 60")
  define_factor("AdjustContrast", "contrast_factor", "contrast",
    "The image with more or less distance from the mean of its grey pixels.", "0.5", "162 112 87")
  define_factor("AdjustSaturation", "saturation_factor", "saturation", "The image with more or less distance from the grey image.",
    "0", "124 124 124")
  define_factor("AdjustSharpness", "sharpness_factor", "sharpness",
    "The image with more or less distance from the mean of neighbouring pixels.", "2", "200 100 50")

  define("AdjustHue", "hue_factor", [[
An image of uint8 with all hues turned. hue_factor: the part of a whole turn, in [-0.5, 0.5].

    > ms.dataset.vision.AdjustHue(0.5)(ms.tensor({ { { 200, 100, 100 } } }, ms.uint8)):tolist()[1][1][1]
    100]], function(a, name)
    local factor = check.number(name, "hue_factor", a.hue_factor)
    if not (factor >= -0.5 and factor <= 0.5) then fail(name, ("hue_factor must be in [-0.5, 0.5], got %s"):format(tostring(factor))) end
    return "hue", { factor }
  end)

  define("AdjustGamma", "gamma, gain=1", [[
gain * x ^ gamma, where x goes from 0 to 1: gamma below 1 makes dark parts brighter.

    > ms.dataset.vision.AdjustGamma(0.5)(ms.tensor({ { 64 } }, ms.uint8)):item()
    128]], function(a, name)
    return "gamma", { level(name, "gamma", a.gamma), check.number(name, "gain", a.gain) }
  end)

  define("RandomColorAdjust", "brightness=nil, contrast=nil, saturation=nil, hue=nil", [[
AdjustBrightness, AdjustContrast, AdjustSaturation and AdjustHue by chance, in an order by chance. brightness, contrast and
saturation: the range { low, high } of the factor, or how far it may be from 1. hue: the range of the turn within [-0.5, 0.5], or
how far it may be from 0. What is nil stays.

    > ms.dataset.vision.RandomColorAdjust({ brightness = { 2, 2 } })(ms.tensor({ { 7 } }, ms.uint8)):item()
    14]], function(a, name)
    local numbers = {}
    for _, what in ipairs { "brightness", "contrast", "saturation" } do
      local low, high = 1, 1
      if a[what] ~= nil then low, high = steps.around(name, what, a[what], 1, 0, 1e6) end
      steps.join(numbers, low, high)
    end
    local low, high = 0, 0
    if a.hue ~= nil then low, high = steps.around(name, "hue", a.hue, 0, -0.5, 0.5) end
    return "random_color_adjust", steps.join(numbers, low, high)
  end)

  for name, pair in pairs { RandomColor = { "random_color", "saturation: 0 is grey, 1 the image" },
    RandomSharpness = { "random_sharpness", "sharpness: 0 is blurred, 1 the image" } } do
    define(name, "degrees=nil", ([[
The image with another %s. degrees: the range { low, high } of the factor, { 0.1, 1.9 } without.

    > ms.dataset.vision.%s({ 1, 1 })(ms.tensor({ { { 9, 8, 7 } } }, ms.uint8)):tolist()[1][1][2]
    8]]):format(pair[2], name), function(a) return pair[1], { steps.range(name, "degrees", a.degrees or { 0.1, 1.9 }, 0, 1e6) } end)
  end

  -- The same by chance.
  local function define_random(name, signature, doc, kind, parameter, numbers_of)
    define(name, signature, doc .. (" prob: the probability that the image is changed; else it stays as it is.\n\n"
      .. "    > ms.dataset.vision.%s%s(ms.tensor({ { { 9, 8, 7 } } }, ms.uint8)):tolist()[1][1][2]\n    8"):format(name, parameter),
      function(a)
        local part = steps.made(kind, name, numbers_of(a), nil)
        return "random_apply", { check.probability(name, "prob", a.prob) }, nil, nil, { part }
      end)
  end

  define_random("RandomAdjustSharpness", "degree, prob=0.5", "AdjustSharpness with the factor degree, by chance.", "sharpness",
    "(2, 0.0)",
    function(a) return { level("RandomAdjustSharpness", "degree", a.degree) } end)

  local function cut_offs(name, a)
    local cutoff = level(name, "cutoff", a.cutoff)
    if cutoff >= 50 then fail(name, ("cutoff must be in [0, 50), got %s"):format(tostring(cutoff))) end
    local numbers = { cutoff }
    if a.ignore ~= nil then
      for i, x in ipairs(steps.numbers(name, "ignore", a.ignore)) do
        if x < 0 or x > 255 then fail(name, ("ignore[%d] must be in [0, 255], got %g"):format(i, x)) end
        numbers[#numbers + 1] = x
      end
    end
    return numbers
  end
  local cut_words = " cutoff: so many percent of the pixels at both ends do not count; ignore: levels that do not, a number or a list."

  define("AutoContrast", "cutoff=0.0, ignore=nil", [[
An image of uint8 with each channel spread from 0 to 255.]] .. cut_words .. [[


    > ms.dataset.vision.AutoContrast()(ms.tensor({ { 50, 100, 150 } }, ms.uint8)):tolist()[1][2]
    127]], function(a, name) return "auto_contrast", cut_offs(name, a) end)
  define_random("RandomAutoContrast", "cutoff=0.0, ignore=nil, prob=0.5", "AutoContrast by chance." .. cut_words, "auto_contrast",
    "({ prob = 0.0 })",
    function(a) return cut_offs("RandomAutoContrast", a) end)

  define("Equalize", "", [[
An image of uint8 whose levels are about equally frequent, channel by channel.

    > ms.dataset.vision.Equalize()(ms.tensor({ { 3, 3 } }, ms.uint8)):tolist()[1][2]
    3]], function() return "equalize" end)
  define_random("RandomEqualize", "prob=0.5", "Equalize by chance.", "equalize", "(0.0)", function() return {} end)

  define("Invert", "", [[
255 less each element.

    > ms.dataset.vision.Invert()(ms.tensor({ { 3 } }, ms.uint8)):item()
    252]], function() return "invert" end)
  define_random("RandomInvert", "prob=0.5", "Invert by chance.", "invert", "(0.0)", function() return {} end)

  local function bits_of(name, what, value)
    local bits = check.positive(name, what, value)
    if bits > 8 then fail(name, ("%s must be 1 to 8, got %d"):format(what, bits)) end
    return bits
  end
  define("Posterize", "bits", [[
An image of uint8 with only the upper bits of each element. bits: how many, 1 to 8.

    > ms.dataset.vision.Posterize(2)(ms.tensor({ { 200 } }, ms.uint8)):item()
    192]], function(a, name) return "posterize", { bits_of(name, "bits", a.bits) } end)
  define("RandomPosterize", "bits=8", [[
Posterize with a number of bits by chance. bits: the number, or the range { low, high }.

    > ms.dataset.vision.RandomPosterize({ 2, 2 })(ms.tensor({ { 200 } }, ms.uint8)):item()
    192]], function(a, name)
    local bits = math.type(a.bits) and { a.bits, a.bits } or a.bits
    local low, high = steps.range(name, "bits", bits, 1, 8)
    return "random_posterize", { bits_of(name, "bits", low), bits_of(name, "bits", high) }
  end)

  define("Solarize", "threshold", [[
An image of uint8 with bright elements inverted. threshold: those from it on, or from the first to the second of { low, high }.

    > ms.dataset.vision.Solarize(100)(ms.tensor({ { 99, 200 } }, ms.uint8)):tolist()[1][2]
    55]], function(a, name)
    local pair = math.type(a.threshold) and { a.threshold, 255 } or a.threshold
    local low, high = steps.range(name, "threshold", pair, 0, 255)
    return "solarize", { low, low == high and 255 or high }
  end)
  define("RandomSolarize", "threshold=nil", [[
Solarize with a range by chance. threshold: { low, high }, within which the range is; { 0, 255 } without.

    > ms.dataset.vision.RandomSolarize({ 200, 255 })(ms.tensor({ { 99 } }, ms.uint8)):item()
    99]], function(a, name)
    local low, high = steps.range(name, "threshold", a.threshold or { 0, 255 }, 0, 255)
    return "random_solarize", { low // 1, high // 1 }
  end)

  define("Grayscale", "num_output_channels=1", [[
An image of three channels as a grey one, (height, width), by the weights 0.299, 0.587 and 0.114 as Pillow rounds them.
num_output_channels: 3 gives the grey image in three channels.

    > ms.dataset.vision.Grayscale()(ms.tensor({ { { 200, 100, 50 } } }, ms.uint8)):item()
    124]], function(a, name)
    local channels = check.positive(name, "num_output_channels", a.num_output_channels)
    if channels ~= 1 and channels ~= 3 then fail(name, ("num_output_channels must be 1 or 3, got %d"):format(channels)) end
    return "grayscale", { channels }
  end)
  define("RandomGrayscale", "prob=0.1", [[
The grey image in as many channels as there are, by chance. prob: the probability that the image is changed.

    > ms.dataset.vision.RandomGrayscale(1.0)(ms.tensor({ { { 200, 100, 50 } } }, ms.uint8)):tolist()[1][1][3]
    124]], function(a, name) return "random_grayscale", { check.probability(name, "prob", a.prob) } end)

  define("RandomLighting", "alpha=0.05", [[
The image with a little more or less of the colours in which photographs vary most (Krizhevsky et al. 2012). alpha: the deviation.

    > ms.dataset.vision.RandomLighting(0)(ms.tensor({ { { 200, 100, 50 } } }, ms.uint8)):tolist()[1][1][1]
    200]], function(a, name) return "random_lighting", { level(name, "alpha", a.alpha) } end)

  steps.enumeration(vision, "ConvertMode", [[
What ConvertColor makes of what: COLOR_RGB2GRAY and so on; the orders of red, green, blue and alpha.

    > ms.dataset.vision.ConvertMode.COLOR_RGB2GRAY
    7]], { COLOR_BGR2BGRA = 0, COLOR_RGB2RGBA = 0, COLOR_BGRA2BGR = 1, COLOR_RGBA2RGB = 1, COLOR_BGR2RGBA = 2, COLOR_RGB2BGRA = 2,
    COLOR_RGBA2BGR = 3, COLOR_BGRA2RGB = 3, COLOR_BGR2RGB = 4, COLOR_RGB2BGR = 4, COLOR_BGRA2RGBA = 5, COLOR_RGBA2BGRA = 5,
    COLOR_BGR2GRAY = 6, COLOR_RGB2GRAY = 7, COLOR_GRAY2BGR = 8, COLOR_GRAY2RGB = 8, COLOR_GRAY2BGRA = 9, COLOR_GRAY2RGBA = 9,
    COLOR_BGRA2GRAY = 10, COLOR_RGBA2GRAY = 11 })
  define("ConvertColor", "convert_mode", [[
The image with its channels in another order, with or without alpha, or grey. convert_mode: one of ConvertMode.

    > ms.dataset.vision.ConvertColor("COLOR_RGB2BGR")(ms.tensor({ { { 200, 100, 50 } } }, ms.uint8)):tolist()[1][1][1]
    50]], function(a, name) return "convert_color", { steps.choice(name, "convert_mode", a.convert_mode, vision, "ConvertMode") } end)

  for name, kind in pairs { RgbToHsv = "rgb_to_hsv", HsvToRgb = "hsv_to_rgb" } do
    define(name, "is_hwc=false", ([[
%s of an image of floats from 0 to 1. is_hwc: the channels come last, else first.

    > ms.dataset.vision.%s(true)(ms.tensor { { { 0.5, 0.5, 0.5 } } }):tolist()[1][1][3]
    %s]]):format(kind == "rgb_to_hsv" and "Hue, saturation and value of red, green and blue"
      or "Red, green and blue of hue, saturation and value",
      name, kind == "rgb_to_hsv" and "0.5" or "0.5"), function(a) return kind, { check.boolean(name, "is_hwc", a.is_hwc) and 1 or 0 } end)
  end

  define("GaussianBlur", "kernel_size, sigma=nil", [[
The image blurred by a bell curve. kernel_size: how many pixels it covers, odd, or { in x, in y }; sigma: its deviation, or { in x,
in y }; without it kernel_size * 0.15 + 0.35. Beyond the edge the image is mirrored.

    > ms.dataset.vision.GaussianBlur(3)(ms.tensor({ { 0, 100, 0 } }, ms.uint8)):tolist()[1][2]
    52]], function(a, name)
    local kernel = check.sizes(name, "kernel_size", a.kernel_size, 2, 1)
    for _, k in ipairs(kernel) do
      if k % 2 == 0 or k > 9999 then fail(name, ("kernel_size must be odd, and below 10000, got %d"):format(k)) end
    end
    local sigma = a.sigma
    if math.type(sigma) then sigma = { sigma, sigma } end
    if sigma ~= nil then sigma = steps.numbers(name, "sigma", sigma, 2) else sigma = { 0, 0 } end
    for i = 1, 2 do
      if sigma[i] < 0 then fail(name, "sigma must not be negative, got " .. describe(sigma[i])) end
      if sigma[i] == 0 then sigma[i] = kernel[i] * 0.15 + 0.35 end
    end
    return "gaussian_blur", { kernel[1], kernel[2], sigma[1], sigma[2] }
  end)
end
