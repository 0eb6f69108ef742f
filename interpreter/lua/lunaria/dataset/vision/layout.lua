-- Transforms of the places and the numbering of pixels.
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"
local steps = require "lunaria.dataset.steps"

local fail, describe, check = arguments.fail, arguments.describe, arguments.check

return function(vision)
  local function define(...) return steps.define(vision, ...) end

  steps.enumeration(vision, "Border", [[
How Pad fills what is beyond the image: CONSTANT with a colour, EDGE with the last pixel, REFLECT with the image
mirrored at its last pixel, SYMMETRIC with the image mirrored beside it. The names may be given as texts too.

    > ms.dataset.vision.Border.EDGE
    1]], { CONSTANT = 0, EDGE = 1, REFLECT = 2, SYMMETRIC = 3 })
  steps.enumeration(vision, "SliceMode", [[
What SlicePatches does with pixels that do not go into the patches: PAD the image, or DROP them.

    > ms.dataset.vision.SliceMode.DROP
    1]], { PAD = 0, DROP = 1 })
  steps.enumeration(vision, "ImageBatchFormat", [[Where the channels of a batch of images are: NHWC or NCHW.

    > ms.dataset.vision.ImageBatchFormat.NCHW
    1]], { NHWC = 0, NCHW = 1 })

  local function border(name, value) return steps.choice(name, "padding_mode", value, vision, "Border") end

  -- left, top, right, bottom of one number, two (left and right, top and bottom) or four.
  local function sides(name, what, value)
    if math.type(value) then value = { value, value, value, value } end
    if type(value) == "table" and #value == 2 then value = { value[1], value[2], value[1], value[2] } end
    return table.unpack(check.sizes(name, what, value, 4, 0))
  end
  vision._sides, vision._border = sides, border

  define("CenterCrop", "size", [[
The middle of an image. size: a number, or { height, width }; where it is larger than the image, that gets a border of zeros.

    > ms.dataset.vision.CenterCrop({ 2, 4 })(ms.zeros({ 5, 8, 3 }, { dtype = ms.uint8 })).shape
    (2, 4, 3)]], function(a, name) return "center_crop", { steps.size(name, "size", a.size) } end)

  define("Crop", "coordinates, size", [[
A part of an image. coordinates: { top, left }; size: a number, or { height, width }.

    > ms.dataset.vision.Crop({ 1, 0 }, 2)(ms.zeros({ 5, 8, 3 }, { dtype = ms.uint8 })).shape
    (2, 2, 3)]], function(a, name)
    local top, left = table.unpack(check.sizes(name, "coordinates", a.coordinates, 2, 0))
    return "crop", { top, left, steps.size(name, "size", a.size) }
  end)

  define("HWC2CHW", "", [[
An image (height, width, channels) as (channels, height, width).

    > ms.dataset.vision.HWC2CHW()(ms.zeros({ 4, 5, 3 })).shape
    (3, 4, 5)]], function() return "hwc2chw" end)

  define("HorizontalFlip", "", [[
The image with left and right exchanged.

    > ms.dataset.vision.HorizontalFlip()(ms.tensor({ { 1, 2, 3 } }, ms.uint8)):tolist()[1][1]
    3]], function() return "horizontal_flip" end)

  define("VerticalFlip", "", [[
The image upside down.

    > ms.dataset.vision.VerticalFlip()(ms.tensor({ { 1 }, { 2 } }, ms.uint8)):tolist()[1][1]
    2]], function() return "vertical_flip" end)

  for name, words in pairs { RandomHorizontalFlip = "left and right exchanged", RandomVerticalFlip = "top and bottom exchanged" } do
    define(name, "prob=0.5", ([[
The image with %s, or as it is. prob: the probability that it is changed.

    > ms.dataset.vision.%s(1.0)(ms.tensor({ { 1, 2 }, { 3, 4 } }, ms.uint8)):tolist()[1][1]
    %d]]):format(words, name, name == "RandomHorizontalFlip" and 2 or 3), function(a)
      return name == "RandomHorizontalFlip" and "random_horizontal_flip" or "random_vertical_flip", { check.probability(name,
        "prob", a.prob) }
    end)
  end

  define("Pad", "padding, fill_value=0, padding_mode='constant'", [[
The image with a border. padding: its width; { left and right, top and bottom }, or { left, top, right, bottom }. fill_value: a
number, or three for red, green and blue. padding_mode: one of Border, or its name.

    > ms.dataset.vision.Pad(1, { padding_mode = "edge" })(ms.tensor({ { 7, 8 } }, ms.uint8)):tolist()[1][4]
    8]], function(a, name)
    local numbers = steps.join({ sides(name, "padding", a.padding) }, border(name, a.padding_mode))
    return "pad", steps.join(numbers, steps.color(name, "fill_value", a.fill_value))
  end)

  define("PadToSize", "size, offset=nil, fill_value=0, padding_mode='constant'", [[
The image with a border that makes it as large as size, a number or { height, width }. offset: { top, left } of the image, or
nil for the middle. fill_value: a number, or three for red, green and blue. padding_mode: one of Border, or its name.

    > ms.dataset.vision.PadToSize({ 4, 6 })(ms.zeros({ 2, 3 })).shape
    (4, 6)]], function(a, name)
    local numbers = { steps.size(name, "size", a.size) }
    local top, left = -1, -1
    if a.offset ~= nil and not (type(a.offset) == "table" and #a.offset == 0) then
      top, left = table.unpack(check.sizes(name, "offset", a.offset, 2, 0))
    end
    steps.join(numbers, top, left, border(name, a.padding_mode))
    return "pad_to_size", steps.join(numbers, steps.color(name, "fill_value", a.fill_value))
  end)

  define("Erase", "top, left, height, width, value=0, inplace=false", [[
The image with a rectangle of one colour: top and left are its corner, height and width its size, value is a number or three.
inplace is for programs from Python: the image that is given never changes.

    > ms.dataset.vision.Erase(0, 0, 1, 1, 9)(ms.zeros({ 2, 2 }, { dtype = ms.uint8 })):tolist()[1][1]
    9]], function(a, name)
    check.boolean(name, "inplace", a.inplace)
    local numbers = { check.not_negative(name, "top", a.top), check.not_negative(name, "left", a.left),
      check.positive(name, "height", a.height), check.positive(name, "width", a.width) }
    return "erase", steps.join(numbers, steps.color(name, "value", a.value))
  end)

  define("CutOut", "length, num_patches=1, is_hwc=true", [[
The image with num_patches black squares of length pixels at places by chance. is_hwc: the channels come last, else first.

    > ms.dataset.vision.CutOut(2)(ms.ones({ 4, 4, 3 })):sum():item()
    36.0]], function(a, name)
    return "cut_out", { check.positive(name, "length", a.length), check.positive(name, "num_patches", a.num_patches),
      check.boolean(name, "is_hwc", a.is_hwc) and 1 or 0 }
  end)

  define("RandomErasing", "prob=0.5, scale=nil, ratio=nil, value=0, inplace=false, max_attempts=10", [[
An image (channels, height, width) with a rectangle erased by chance (Zhong et al. 2017), with the probability prob. scale: its
share of the image, { 0.02, 0.33 } without; ratio: height by width, { 0.3, 3.3 } without; value: a number, three, or "random".
max_attempts: how often a rectangle that fits is looked for. inplace is for programs from Python.

    > ms.dataset.vision.RandomErasing(0.0)(ms.ones({ 3, 4, 4 })):sum():item()
    48.0]], function(a, name)
    local numbers = { check.probability(name, "prob", a.prob) }
    check.boolean(name, "inplace", a.inplace)
    for _, x in ipairs { steps.range(name, "scale", a.scale or { 0.02, 0.33 }, 0, 1) } do numbers[#numbers + 1] = x end
    local low, high = steps.range(name, "ratio", a.ratio or { 0.3, 3.3 }, 1e-6, 1e6)
    steps.join(numbers, low, high, check.positive(name, "max_attempts", a.max_attempts), a.value == "random" and 1 or 0)
    return "random_erasing", steps.join(numbers, steps.color(name, "value", a.value == "random" and 0 or a.value))
  end)

  -- Means and deviations of the channels.
  local function moments(name, a)
    local mean, std = steps.numbers(name, "mean", a.mean), steps.numbers(name, "std", a.std)
    if #mean ~= #std then fail(name, ("mean has %d numbers and std %d"):format(#mean, #std)) end
    for i, x in ipairs(std) do
      if not (x > 0) then fail(name, ("std[%d] must be positive, got %g"):format(i, x)) end
    end
    local numbers = { check.boolean(name, "is_hwc", a.is_hwc) and 1 or 0 }
    steps.join(numbers, table.unpack(mean))
    return steps.join(numbers, table.unpack(std))
  end

  define("Normalize", "mean, std, is_hwc=true", [[
(x - mean) / std of each channel as float32. mean and std: a number for each channel, in the units of the image's elements, or one
for all. is_hwc: the channels come last, else first.

    > ms.dataset.vision.Normalize({ 1, 2, 3 }, { 2, 2, 2 })(ms.ones({ 1, 1, 3 })):tolist()[1][1][3]
    -1.0]], function(a, name) return "normalize", moments(name, a) end)

  define("NormalizePad", "mean, std, dtype='float32', is_hwc=true", [[
As Normalize, with a channel of zeros behind the others. mean and std: a number for each channel. dtype: "float32" or "float16".
is_hwc: the channels come last, else first.

    > ms.dataset.vision.NormalizePad({ 1, 2, 3 }, { 2, 2, 2 })(ms.ones({ 5, 6, 3 })).shape
    (5, 6, 4)]], function(a, name)
    local half = check.choice(name, "dtype", a.dtype, { "float32", "float16" }) == "float16"
    return "normalize_pad", { half and 1 or 0, table.unpack(moments(name, a)) }
  end)

  define("Rescale", "rescale, shift", [[
x * rescale + shift as float32.

    > ms.dataset.vision.Rescale(1 / 255, -0.5)(ms.tensor({ { 255 } }, ms.uint8)):item()
    0.5]], function(a, name)
    return "rescale", { check.number(name, "rescale", a.rescale), check.number(name, "shift", a.shift) }
  end)

  define("ToTensor", "output_type='float32'", [[
An image (height, width, channels) as (channels, height, width), with bytes as numbers from 0 to 1. output_type: the dtype.

    > ms.dataset.vision.ToTensor()(ms.tensor({ { 255, 51 } }, ms.uint8)):tolist()[1][1][2]
    0.20000000298023]], function(a, name)
    return "to_tensor", {}, { steps.dtype_name(name, "output_type", a.output_type) }
  end)

  define("ToType", "data_type", [[
The image with elements of the dtype data_type.

    > ms.dataset.vision.ToType(ms.float32)(ms.zeros({ 2, 2 }, { dtype = ms.uint8 })).dtype
    Float32]], function(a, name) return "type_cast", {}, { steps.dtype_name(name, "data_type", a.data_type) } end)

  for _, name in ipairs { "ToNumpy", "ToPIL" } do
    define(name, "", ([[
For programs from Python, where images have several types: the image as it is.

    > ms.dataset.vision.%s()(ms.zeros({ 2, 2 })).shape
    (2, 2)]]):format(name), function() return "compose" end)
  end

  define("FiveCrop", "size", [[
Five images: the corners, and the middle. size: a number, or { height, width }.

    > select("#", ms.dataset.vision.FiveCrop(2)(ms.zeros({ 4, 4, 3 })))
    5]], function(a, name) return "five_crop", { steps.size(name, "size", a.size) } end)

  define("TenCrop", "size, use_vertical_flip=false", [[
Ten images: the corners and the middle, and those of the image with left and right exchanged, or top and bottom where
use_vertical_flip is true. size: a number, or { height, width }.

    > select("#", ms.dataset.vision.TenCrop(2)(ms.zeros({ 4, 4, 3 })))
    10]], function(a, name)
    return "ten_crop", steps.join({ steps.size(name, "size", a.size) }, check.boolean(name, "use_vertical_flip",
      a.use_vertical_flip) and 1 or 0)
  end)

  define("SlicePatches", "num_height=1, num_width=1, slice_mode=0, fill_value=0", [[
num_height * num_width images, row by row. slice_mode: SliceMode.PAD fills up what is too small for the last ones with fill_value,
SliceMode.DROP leaves out what does not go in.

    > select("#", ms.dataset.vision.SlicePatches(2, 3)(ms.zeros({ 4, 6, 3 })))
    6]], function(a, name)
    local rows, columns = check.positive(name, "num_height", a.num_height), check.positive(name, "num_width", a.num_width)
    if rows * columns > 4096 then fail(name, ("num_height * num_width must be at most 4096, got %d"):format(rows * columns)) end
    local fill = check.not_negative(name, "fill_value", a.fill_value)
    if fill > 255 then fail(name, ("fill_value must be in [0, 255], got %d"):format(fill)) end
    return "slice_patches", { rows, columns, steps.choice(name, "slice_mode", a.slice_mode, vision, "SliceMode"), fill }
  end)

  define("LinearTransformation", "transformation_matrix, mean_vector", [[
The image as one row of numbers, less mean_vector, times transformation_matrix, a square with a row for each number of the image:
whitening.

    > ms.dataset.vision.LinearTransformation(ms.eye(4) * 2, ms.zeros({ 4 }))(ms.ones({ 2, 2 })):sum():item()
    8.0]], function(a, name)
    for _, what in ipairs { "transformation_matrix", "mean_vector" } do
      if not ms.is_tensor(a[what]) then fail(name, ("%s must be a tensor, got %s"):format(what, describe(a[what]))) end
    end
    return "linear_transformation", {}, nil, { a.transformation_matrix, a.mean_vector }
  end)
end
