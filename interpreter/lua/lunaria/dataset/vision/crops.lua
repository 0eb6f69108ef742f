-- Other sizes, parts by chance, files.
local arguments = require "lunaria.nn.arguments"
local native = require "lunaria.steps"
local steps = require "lunaria.dataset.steps"

local fail, describe, check = arguments.fail, arguments.describe, arguments.check

return function(vision)
  local function define(...) return steps.define(vision, ...) end

  steps.enumeration(vision, "Inter", [[
How pixels are found between pixels: NEAREST takes the nearest one, BILINEAR and BICUBIC (also LINEAR and CUBIC) mix 4 and
16 as OpenCV does, AREA takes the mean of those that a pixel covers, PILCUBIC and ANTIALIAS are Pillow's bicubic and Lanczos
filters, which smooth before an image gets smaller. The names may be given as texts too.

    > ms.dataset.vision.Inter.BILINEAR
    2]], { NEAREST = 0, ANTIALIAS = 1, BILINEAR = 2, LINEAR = 2, BICUBIC = 3, CUBIC = 3, AREA = 4, PILCUBIC = 5 })
  steps.enumeration(vision, "ImageReadMode", [[
What read_image makes of a file: UNCHANGED keeps its channels, GRAYSCALE gives one, COLOR three.

    > ms.dataset.vision.ImageReadMode.COLOR
    2]], { UNCHANGED = 0, GRAYSCALE = 1, COLOR = 2 })

  local function inter(name, value, what) return steps.choice(name, what or "interpolation", value, vision, "Inter") end
  -- Of rotations: the four of OpenCV.
  local function plain_inter(name, value, what)
    local kind = inter(name, value, what)
    if kind == 1 or kind == 5 then fail(name, (what or "interpolation") .. " must be Inter.NEAREST, BILINEAR, BICUBIC or AREA") end
    return kind == 4 and 2 or kind
  end
  vision._inter, vision._plain_inter = inter, plain_inter

  local function part_rule(name, a)
    local least, most = steps.range(name, "scale", a.scale or { 0.08, 1.0 }, 0, 1e3)
    local narrow, broad = steps.range(name, "ratio", a.ratio or { 3 / 4, 4 / 3 }, 1e-6, 1e6)
    return least, most, narrow, broad, check.positive(name, "max_attempts", a.max_attempts)
  end

  local function sized(name, a, kind, size)
    local height, width = size(name, "size", a.size)
    local numbers = { height, width, inter(name, a.interpolation) }
    return kind, numbers
  end

  define("Resize", "size, interpolation=2", [[
The image with another size. size: { height, width }, or a number for the shorter side, where the other one keeps the ratio.
interpolation: one of Inter; bilinear as OpenCV does, which is what MindSpore shows to networks.

    > ms.dataset.vision.Resize({ 3, 4 })(ms.zeros({ 6, 9, 3 }, { dtype = ms.uint8 })).shape
    (3, 4, 3)
    > ms.dataset.vision.Resize(4)(ms.zeros({ 8, 12, 3 }, { dtype = ms.uint8 })).shape
    (4, 6, 3)]], function(a, name) return sized(name, a, "resize", steps.side) end)

  define("RandomResize", "size", [[
The image with another size, by an interpolation by chance. size: { height, width }, or a number for the shorter side.

    > ms.dataset.vision.RandomResize({ 3, 4 })(ms.zeros({ 6, 9, 3 }, { dtype = ms.uint8 })).shape
    (3, 4, 3)]], function(a, name) return "random_resize", { steps.side(name, "size", a.size) } end)

  define("ResizedCrop", "top, left, height, width, size, interpolation=2", [[
A part of the image with another size: top and left are its corner, height and width what it has in the image. size: { height,
width }, or a number for the shorter side. interpolation: one of Inter.

    > ms.dataset.vision.ResizedCrop(0, 0, 2, 2, { 5, 7 })(ms.zeros({ 6, 9, 3 }, { dtype = ms.uint8 })).shape
    (5, 7, 3)]], function(a, name)
    local numbers = { check.not_negative(name, "top", a.top), check.not_negative(name, "left", a.left),
      check.positive(name, "height", a.height), check.positive(name, "width", a.width) }
    steps.join(numbers, steps.side(name, "size", a.size))
    return "resized_crop", steps.join(numbers, inter(name, a.interpolation))
  end)

  local crop_signature = "size, scale=nil, ratio=nil, interpolation=2, max_attempts=10"
  local crop_words = [[ size: a number, or { height, width }. scale: which share of the image
the part has, { 0.08, 1 } without; ratio: width by height of the part, { 3/4, 4/3 } without; max_attempts: how often a part that
fits is looked for before the middle is taken. interpolation: one of Inter.]]

  define("RandomResizedCrop", crop_signature, "A part of the image by chance, with another size (Szegedy et al. 2015)."
    .. crop_words .. [[


    > ms.dataset.vision.RandomResizedCrop(4)(ms.zeros({ 6, 9, 3 }, { dtype = ms.uint8 })).shape
    (4, 4, 3)]], function(a, name)
    local kind, numbers = sized(name, a, "random_resized_crop", steps.size)
    return kind, steps.join(numbers, part_rule(name, a))
  end)

  define("RandomCropDecodeResize", crop_signature, [[
Decode and RandomResizedCrop in one: only the rows and columns that are needed are decoded, and where the part is to become less
than half as large, the JPEG is decoded with half the size, which is also smoother than decoding the whole.]] .. crop_words .. [[


    > bytes = ms.dataset.vision.encode_jpeg(ms.zeros({ 32, 32, 3 }, { dtype = ms.uint8 }))
    > ms.dataset.vision.RandomCropDecodeResize(8)(bytes).shape
    (8, 8, 3)]], function(a, name)
    local kind, numbers = sized(name, a, "random_crop_decode_resize", steps.size)
    return kind, steps.join(numbers, part_rule(name, a))
  end)

  local random_crop_signature = "size, padding=nil, pad_if_needed=false, fill_value=0, padding_mode='constant'"
  local random_crop_words = [[ size: a number, or { height, width }. padding: the border that the
image gets first, as Pad has it; pad_if_needed: a smaller image gets a border. fill_value: the colour of the border, a number or
three. padding_mode: one of Border, or its name.]]
  local function random_crop(name, a)
    local numbers = { steps.size(name, "size", a.size) }
    steps.join(numbers, vision._sides(name, "padding", a.padding or 0))
    steps.join(numbers, vision._border(name, a.padding_mode))
    steps.join(numbers, steps.color(name, "fill_value", a.fill_value))
    return steps.join(numbers, check.boolean(name, "pad_if_needed", a.pad_if_needed) and 1 or 0)
  end

  define("RandomCrop", random_crop_signature, "A part of the image by chance." .. random_crop_words .. [[


    > ms.dataset.vision.RandomCrop(4, { padding = 2 })(ms.zeros({ 4, 4, 3 }, { dtype = ms.uint8 })).shape
    (4, 4, 3)]], function(a, name) return "random_crop", random_crop(name, a) end)

  local boxes = [[ The boxes, rows of x, y, width and height in pixels,
move with the image.]]
  local boxed_image = "(ms.zeros({ 8, 8, 3 }, { dtype = ms.uint8 }), ms.tensor { { 0.0, 0.0, 4.0, 4.0 } })"
  local function define_boxed(name, signature, doc, call, result, setup)
    define(name, signature, doc .. ([[


    > image, boxes = ms.dataset.vision.%s%s
    > boxes:tolist()[1][3]
    %s]]):format(call, boxed_image, result), setup)
  end

  define_boxed("RandomCropWithBBox", random_crop_signature, "As RandomCrop, of an image and its boxes; boxes outside go." .. boxes
    .. random_crop_words,
    "RandomCropWithBBox(8)", "4.0", function(a, name) return "random_crop_boxes", random_crop(name, a) end)
  define_boxed("RandomResizedCropWithBBox", crop_signature, "As RandomResizedCrop, of an image and its boxes; boxes outside go."
    .. boxes .. crop_words,
    "RandomResizedCropWithBBox(8, { scale = { 1, 1 }, ratio = { 1, 1 } })", "4.0", function(a, name)
      local kind, numbers = sized(name, a, "random_resized_crop_boxes", steps.size)
      return kind, steps.join(numbers, part_rule(name, a))
    end)
  define_boxed("ResizeWithBBox", "size, interpolation=2", "As Resize, of an image and its boxes." .. boxes
    .. " size: { height, width }, or a number for the shorter side. interpolation: one of Inter.",
    "ResizeWithBBox(16)", "8.0", function(a, name) return sized(name, a, "resize_boxes", steps.side) end)
  define_boxed("RandomResizeWithBBox", "size", "As RandomResize, of an image and its boxes." .. boxes
    .. " size: { height, width }, or a number for the shorter side.",
    "RandomResizeWithBBox(16)", "8.0", function(a, name) return "random_resize_boxes", { steps.side(name, "size", a.size) } end)
  for name, kind in pairs { RandomHorizontalFlipWithBBox = "horizontal_flip_boxes",
    RandomVerticalFlipWithBBox = "vertical_flip_boxes" } do
    define_boxed(name, "prob=0.5", ("As %s, of an image and its boxes."):format(name:match "^(.*)WithBBox") .. boxes
      .. " prob: the probability that it is changed.", name .. "(1.0)", "4.0",
      function(a) return kind, { check.probability(name, "prob", a.prob) } end)
  end

  define("BoundingBoxAugment", "transform, ratio=0.3", [[
Applies transform to the pixels of some boxes of an image; the boxes, rows of x, y, width and height, stay. ratio: the share of the
boxes, of which there is at least one.

    > t = ms.dataset.vision.BoundingBoxAugment(ms.dataset.vision.Invert())
    > image, boxes = t(ms.zeros({ 4, 4, 3 }, { dtype = ms.uint8 }), ms.tensor { { 0.0, 0.0, 2.0, 2.0 } })
    > image:tolist()[1][1][1]
    255]], function(a, name)
    if not steps.is_transform(a.transform) then fail(name, "transform must be a transform, got " .. describe(a.transform)) end
    return "bounding_box_augment", { check.probability(name, "ratio", a.ratio) }, nil, nil, { a.transform._transform }
  end)

  define("Decode", "to_pil=false, apply_exif_orientation=false", [[
The bytes of a JPEG, PNG or BMP, a tensor of uint8 or a text, as an image of uint8 (height, width, 3). Damaged files, and those that
claim more pixels than their bytes can hold, are errors. to_pil is for programs from Python, where images have several types.
apply_exif_orientation: whether the image is turned as the camera was held.

    > bytes = ms.dataset.vision.encode_png(ms.zeros({ 4, 5, 3 }, { dtype = ms.uint8 }))
    > ms.dataset.vision.Decode()(bytes).shape
    (4, 5, 3)]], function(a, name)
    check.boolean(name, "to_pil", a.to_pil)
    check.boolean(name, "apply_exif_orientation", a.apply_exif_orientation)
    return "decode", { 2, a.apply_exif_orientation and 1 or 0 }
  end)

  local function path_of(where, path)
    if type(path) ~= "string" then fail(where, "filename must be a path, got " .. describe(path)) end
    return path
  end

  --- The bytes of the file filename as a tensor of uint8.
  ---     > path = os.tmpname()
  ---     > ms.dataset.vision.write_file(path, "abc")
  ---     > ms.dataset.vision.read_file(path):tolist()[1], os.remove(path) --> 97	true
  function vision.read_file(filename) return native.read(path_of("read_file", filename)) end

  --- Writes data, a text or a tensor of uint8, to the file filename.
  ---     > path = os.tmpname()
  ---     > ms.dataset.vision.write_file(path, ms.tensor({ 104, 105 }, ms.uint8))
  ---     > io.open(path):read("a"), os.remove(path) --> hi	true
  function vision.write_file(filename, data) native.write(path_of("write_file", filename), data) end

  --- The image in the file filename, a JPEG, PNG or BMP, as uint8 (height, width, channels), or (height, width) where it has one
  --- channel; PNGs of 16 bits are int32. mode: one of ImageReadMode, without it the file decides about the channels.
  --- apply_exif_orientation = true turns the image as the camera was held, which the EXIF of a JPEG or PNG tells; without it
  --- the pixels come as they are stored.
  ---     > path = os.tmpname()
  ---     > ms.dataset.vision.write_png(path, ms.zeros({ 2, 3 }, { dtype = ms.uint8 }))
  ---     > ms.dataset.vision.read_image(path, "color").shape, os.remove(path) --> (2, 3, 3)	true
  function vision.read_image(filename, mode, apply_exif_orientation)
    mode, apply_exif_orientation = arguments.named("read_image", { "mode", "apply_exif_orientation" }, mode, apply_exif_orientation)
    mode = mode == nil and 0 or steps.choice("read_image", "mode", mode, vision, "ImageReadMode")
    if apply_exif_orientation ~= nil then check.boolean("read_image", "apply_exif_orientation", apply_exif_orientation) end
    return native.decode(path_of("read_image", filename), native.read(filename), mode, apply_exif_orientation)
  end

  --- The image in the file filename as uint8 (height, width, 3): read_image with ImageReadMode.COLOR.
  ---     > path = os.tmpname()
  ---     > ms.dataset.vision.write_png(path, ms.zeros({ 2, 3 }, { dtype = ms.uint8 }))
  ---     > ms.dataset.vision.decode_file(path).shape, os.remove(path) --> (2, 3, 3)	true
  function vision.decode_file(filename) return native.decode(path_of("decode_file", filename), native.read(filename), 2) end

  --- Height and width of an image: of a tensor, or of the bytes of a file, which is not decoded for that.
  ---     > table.unpack(ms.dataset.vision.get_image_size(ms.zeros({ 4, 5, 3 }))) --> 4	5
  function vision.get_image_size(image)
    if type(image) ~= "string" and image.ndim >= 2 then
      return image.ndim == 2 and { image.shape[1], image.shape[2] } or { image.shape[image.ndim - 2], image.shape[image.ndim - 1] }
    end
    local height, width = native.size("get_image_size", image)
    return { height, width }
  end

  --- How many channels an image has: a tensor, or the bytes of a file.
  ---     > ms.dataset.vision.get_image_num_channels(ms.zeros({ 4, 5, 3 })) --> 3
  function vision.get_image_num_channels(image)
    if type(image) ~= "string" and image.ndim >= 2 then return image.ndim == 2 and 1 or image.shape[image.ndim] end
    return (select(3, native.size("get_image_num_channels", image)))
  end

  --- The image, uint8 (height, width) or (height, width, 1 or 3), as the bytes of a JPEG. quality: 1 to 100, without it 75.
  ---     > ms.dataset.vision.encode_jpeg(ms.zeros({ 8, 8, 3 }, { dtype = ms.uint8 })):tolist()[1] --> 255
  function vision.encode_jpeg(image, quality)
    quality = arguments.named("encode_jpeg", { "quality" }, quality)
    quality = quality == nil and 75 or check.positive("encode_jpeg", "quality", quality)
    if quality > 100 then fail("encode_jpeg", ("quality must be 1 to 100, got %d"):format(quality)) end
    return native.jpeg("encode_jpeg", image, quality)
  end

  --- The image, uint8 (height, width) or (height, width, channels), as the bytes of a PNG.
  ---     > ms.dataset.vision.encode_png(ms.zeros({ 2, 2, 3 }, { dtype = ms.uint8 })):tolist()[2] --> 80
  function vision.encode_png(image) return native.png("encode_png", image) end

  --- Writes the image to the file filename as a JPEG. quality: 1 to 100, without it 75.
  ---     > path = os.tmpname()
  ---     > ms.dataset.vision.write_jpeg(path, ms.zeros({ 8, 8, 3 }, { dtype = ms.uint8 }))
  ---     > ms.dataset.vision.read_image(path).shape, os.remove(path) --> (8, 8, 3)	true
  function vision.write_jpeg(filename, image, quality)
    native.write(path_of("write_jpeg", filename), vision.encode_jpeg(image, quality))
  end

  --- Writes the image to the file filename as a PNG.
  ---     > path = os.tmpname()
  ---     > ms.dataset.vision.write_png(path, ms.zeros({ 2, 3 }, { dtype = ms.uint8 }))
  ---     > ms.dataset.vision.read_image(path).shape, os.remove(path) --> (2, 3)	true
  function vision.write_png(filename, image) native.write(path_of("write_png", filename), vision.encode_png(image)) end
end
