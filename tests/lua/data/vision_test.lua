-- Transforms of images against what MindSpore, Pillow and torchvision make of the same images (tests/data/transforms), and
-- what is promised of those that choose by chance.
package.path = "tests/lua/?.lua;" .. package.path
local t = require "harness"
local ms = require "lunaria"
local D = ms.dataset
local vision = D.vision

local folder = "tests/data/transforms/"
local stored = ms.load(folder .. "vision.safetensors")
local file <close> = assert(io.open(folder .. "vision.json"))

-- The largest distance between elements of two tensors.
local function apart(a, b)
  assert(ms.is_tensor(a), "no tensor")
  assert(tostring(a.shape) == tostring(b.shape), ("shape %s instead of %s"):format(tostring(a.shape), tostring(b.shape)))
  return (a:astype(ms.float32) - b:astype(ms.float32)):abs():max():item()
end

for number, case in ipairs(ms.json.decode(file:read "a")) do
  t.test(("%s of %s"):format(case.lua, case.input), function()
    local transform = assert(load("return vision." .. case.lua, "=case", "t", { vision = vision }))()
    local results = { transform(stored["input." .. case.input]) }
    local expected = stored["case." .. number - 1]
    local got = results[case.kept]
    t.equal(tostring(got.dtype), expected.dtype == ms.float64 and "Float32" or tostring(expected.dtype))
    local distance = apart(got, expected)
    assert(distance <= case.apart, ("%g apart, at most %g is allowed"):format(distance, case.apart))
  end)
end

local function fails(pattern, f, ...)
  local ok, message = pcall(f, ...)
  assert(not ok, "no error")
  assert(tostring(message):find(pattern), message)
end

local images = "tests/data/samples/img/"
-- An image whose pixels say where they are.
local places = ms.ops.stack({ ms.arange(40):reshape { 40, 1 } + ms.zeros({ 40, 50 }), ms.arange(50) + ms.zeros({ 40, 50 }) },
  2):astype(ms.float32)

t.test("parts by chance are within the image, and as large as asked for", function()
  ms.set_seed(3)
  local crop = vision.RandomCrop({ 10, 12 })
  local tops = {}
  for _ = 1, 200 do
    local part = crop(places)
    t.equal(tostring(part.shape), "(10, 12, 2)")
    local top, left = part[{ 0, 0, 0 }]:item(), part[{ 0, 0, 1 }]:item()
    t.equal(apart(part, places[("%d:%d, %d:%d"):format(top, top + 10, left, left + 12)]), 0.0)
    tops[top] = true
  end
  local kinds = 0
  for _ in pairs(tops) do kinds = kinds + 1 end
  assert(kinds > 25 and tops[0.0] and tops[30.0], kinds)
  local resized = vision.RandomResizedCrop({ 10, 10 }, { scale = { 0.25, 0.5 }, ratio = { 0.5, 2 }, interpolation = "nearest" })
  for _ = 1, 200 do
    local part = resized(places)
    local high = (part[{ 9, 0, 0 }] - part[{ 0, 0, 0 }]):item() * 10 / 9
    local wide = (part[{ 0, 9, 1 }] - part[{ 0, 0, 1 }]):item() * 10 / 9
    assert(high * wide > 0.15 * 2000 and high * wide < 0.6 * 2000, high * wide)
    assert(wide / high > 0.35 and wide / high < 2.9, wide / high)
  end
  t.equal(tostring(vision.RandomCrop(60, { pad_if_needed = true })(places).shape), "(60, 60, 2)")
  fails("RandomCrop: size %(60, 60%) is larger than the image of 40 x 50 pixels", vision.RandomCrop(60), places)
end)

t.test("what is done by chance is done as often as asked for", function()
  ms.set_seed(5)
  local x = ms.tensor({ { 1, 2 }, { 3, 4 } }, ms.uint8)
  for name, changed in pairs { RandomHorizontalFlip = 2, RandomVerticalFlip = 3, RandomInvert = 254, RandomPerspective = false } do
    local count, transform = 0, vision[name]({ prob = 0.25 })
    for _ = 1, 2000 do
      local y = transform(x)
      if changed and y[{ 0, 0 }]:item() == changed then count = count + 1 end
    end
    if changed then assert(count > 400 and count < 600, name .. count) end
  end
end)

t.test("a seed decides, and several images of a row get the same part", function()
  local transform = vision.RandomResizedCrop(8)
  ms.set_seed(9)
  local a, b = transform(places), transform(places)
  ms.set_seed(9)
  t.equal(apart(transform(places), a), 0.0)
  t.equal(apart(transform(places), b), 0.0)
  assert(apart(a, b) > 0)
  local one, two = transform(places, places)
  t.equal(apart(one, two), 0.0)
end)

t.test("batches of images are transformed one by one", function()
  local batch = ms.ops.stack({ stored["input.smooth"], stored["input.smooth"]:flip(1) }, 0)
  local resized = vision.Resize({ 11, 13 })(batch)
  t.equal(apart(resized[0], vision.Resize({ 11, 13 })(batch[0])), 0.0)
  t.equal(apart(resized[1], vision.Resize({ 11, 13 })(batch[1])), 0.0)
end)

t.test("shares of mixed batches sum up, pixels come from two images", function()
  ms.set_seed(11)
  local batch = (ms.ones { 4, 6, 6, 3 }) * ms.tensor({ 0.0, 10.0, 100.0, 1000.0 }):reshape { 4, 1, 1, 1 }
  local labels = ms.eye(4)
  for _ = 1, 50 do
    local mixed, shares = vision.MixUpBatch(0.7)(batch, labels)
    local level = ms.ops.matmul(shares, ms.tensor { 0.0, 10.0, 100.0, 1000.0 })
    assert(apart(mixed["..., 0, 0, 0"], level) < 1e-3)
    mixed, shares = vision.CutMixBatch("NHWC", 1.0, 1.0)(batch, labels)
    local means = mixed:mean({ axis = { 1, 2, 3 } })
    assert(apart(means, ms.ops.matmul(shares, ms.tensor { 0.0, 10.0, 100.0, 1000.0 })) < 1e-2)
  end
  fails("labels %(number, classes%) of 4 images", vision.MixUpBatch(1.0), batch, ms.tensor { 1, 2, 3, 4 })
end)

t.test("MixUp mixes each image with the next one or with any one, by a share of its own", function()
  ms.set_seed(12)
  local levels = { 0.0, 10.0, 100.0, 1000.0 }
  local batch = (ms.ones { 4, 3, 5, 2 }) * ms.tensor(levels):reshape { 4, 1, 1, 1 }
  local labels, levels_of = ms.eye(4), ms.tensor(levels)
  for _, is_single in ipairs { true, false } do
    local partners, shares_drawn, sum = {}, {}, 0.0
    for _ = 1, 100 do
      local mixed, shares = vision.MixUp(4, 0.7, is_single)(batch, labels)
      t.equal(tostring(mixed.shape) .. tostring(mixed.dtype), tostring(batch.shape) .. "Float32")
      -- share * x[i] + (1 - share) * x[partner], for images as for labels.
      local level = ms.ops.matmul(shares, levels_of):reshape { 4, 1, 1, 1 }
      assert(apart(mixed, level * ms.ones { 4, 3, 5, 2 }) < 1e-3)
      local order = {}
      for i, row in ipairs(shares:tolist()) do
        local own, other, total = row[i], i, 0.0
        for k, share in ipairs(row) do
          if k ~= i and share > 0 then
            assert(other == i, "an image is mixed with two others")
            other = k
          end
          total = total + share
        end
        assert(math.abs(total - 1) < 1e-5)
        -- An image that is its own partner does not say which share was drawn.
        if other ~= i then
          shares_drawn[#shares_drawn + 1] = own
          sum = sum + own
          order[#order + 1] = ("%d-%d"):format(i, other)
          if is_single then t.equal(other, i % 4 + 1) end
        end
      end
      partners[table.concat(order, " ")] = true
    end
    -- Shares of beta(0.7, 0.7) have a mean of 1/2, and differ within a batch.
    assert(#shares_drawn > 200 and math.abs(sum / #shares_drawn - 0.5) < 0.1, sum / #shares_drawn)
    assert(math.abs(shares_drawn[1] - shares_drawn[2]) > 1e-6)
    local orders = 0
    for _ in pairs(partners) do orders = orders + 1 end
    assert(is_single and orders == 1 or not is_single and orders > 10, orders)
  end
  fails("batch_size is 3, but the batch has 4 images", vision.MixUp(3, 0.7, false), batch, labels)
  fails("labels %(number, classes%) of 4 images", vision.MixUp(4, 0.7, false), batch, ms.tensor { 1, 2, 3, 4 })
  fails("alpha", vision.MixUp, 4, 0.0, false)
  fails("is_single", vision.MixUp, 4, 0.7, 3)
end)

t.test("boxes move with the pixels", function()
  local image, boxes = stored["input.smooth"], ms.tensor { { 2.0, 3.0, 10.0, 8.0 }, { 20.0, 10.0, 5.0, 6.0 } }
  local flipped, moved = vision.RandomHorizontalFlipWithBBox(1.0)(image, boxes)
  t.equal(moved:tolist()[1], { 31.0 - 12, 3.0, 10.0, 8.0 })
  t.equal(apart(flipped, vision.HorizontalFlip()(image)), 0.0)
  t.equal((select(2, vision.RandomVerticalFlipWithBBox(1.0)(image, boxes))):tolist()[2], { 20.0, 24.0 - 16, 5.0, 6.0 })
  t.equal((select(2, vision.ResizeWithBBox({ 48, 62 })(image, boxes))):tolist()[1], { 4.0, 6.0, 20.0, 16.0 })
  ms.set_seed(1)
  for _ = 1, 50 do
    local part, left = vision.RandomCropWithBBox({ 20, 20 })(image, boxes)
    t.equal(tostring(part.shape), "(20, 20, 3)")
    for _, box in ipairs(left:tolist()) do assert(box[1] >= 0 and box[1] + box[3] <= 20 and box[2] + box[4] <= 20) end
  end
  fails("box 0 .* is not within the image", vision.RandomHorizontalFlipWithBBox(1.0), image, ms.tensor { { 30.0, 0.0, 5.0, 5.0 } })
end)

t.test("files are decoded, bad ones refused", function()
  t.equal(tostring(vision.read_image(images .. "rgba.png").shape), "(13, 17, 4)")
  t.equal(tostring(vision.Decode()(vision.read_file(images .. "rgba.png")).shape), "(13, 17, 3)")
  t.equal(vision.read_image(images .. "gray16.png")[{ 0, 0 }]:item(), 32382)
  t.equal(vision.read_image(images .. "rgb.png")[{ 0, 0 }]:tolist(), { 126, 151, 186 })
  t.equal(vision.read_image(images .. "interlaced.bmp")[{ 0, 0 }]:tolist(), { 126, 151, 186 })
  t.equal(tostring(vision.read_image(images .. "rgb.png", "grayscale").shape), "(13, 17)")
  t.equal(vision.get_image_size(vision.read_file(images .. "smooth_q95.jpg")), { 32, 48 })
  fails("pixels: too large, the limit is", vision.decode_file, images .. "REJECT_bomb_60000x60000.png")
  fails("Decode: the JPEG is damaged", vision.Decode(), vision.read_file(images .. "REJECT_truncated.jpg"))
  fails("Decode: the bytes of a file are expected", vision.Decode(), stored["input.small"])
  fails("no JPEG, PNG or BMP", vision.Decode(), "abc")
end)

t.test("damaged files are images or errors", function()
  math.randomseed(7)
  for _, name in ipairs { "rgb.png", "palette.png", "interlaced.bmp", "smooth_q95.jpg", "smooth_420_progressive.jpg" } do
    local picture <close> = assert(io.open(images .. name, "rb"))
    local bytes, count = picture:read "a", 0
    for _ = 1, 200 do
      local at = math.random(#bytes)
      local damaged = bytes:sub(1, at - 1) .. string.char(math.random(0, 255)) .. bytes:sub(at + math.random(0, 2))
      local ok, result = pcall(vision.Decode(), damaged)
      if ok then t.equal(result.ndim, 3) else assert(#tostring(result) < 300) end
      if not pcall(vision.RandomCropDecodeResize(8), damaged) then count = count + 1 end
    end
    assert(count > 0, name)
  end
end)

t.test("what is written is read again", function()
  local image = stored["input.smooth"]
  t.equal(apart(vision.Decode()(vision.encode_png(image)), image), 0.0)
  local again = vision.Decode()(vision.encode_jpeg(image, 100))
  assert((again:astype(ms.float32) - image:astype(ms.float32)):abs():mean():item() < 5)
  t.equal(tostring(vision.read_image(images .. "gray.jpg").shape), "(32, 48)")
end)

t.test("a part of a JPEG is what the part of the whole is", function()
  local photo = vision.Resize({ 96, 128 }, "bicubic")(stored["input.smooth"])
  local bytes = vision.encode_jpeg(photo, 95)
  local whole = vision.Decode()(bytes)
  -- Into larger images as MindSpore does; smaller ones mix neighbouring colours less exactly, which makes it faster.
  for _, case in ipairs { { 100, 1 }, { 40, 4 } } do
    local options = { scale = { 0.3, 0.6 } }
    for seed = 1, 20 do
      ms.set_seed(seed)
      local one = vision.RandomCropDecodeResize(case[1], options)(bytes)
      ms.set_seed(seed)
      local two = vision.RandomResizedCrop(case[1], options)(whole)
      local mean = (one:astype(ms.float32) - two:astype(ms.float32)):abs():mean():item()
      assert(mean < case[2], mean)
    end
  end
  -- Decoded with half the size.
  ms.set_seed(1)
  local one = vision.RandomCropDecodeResize({ 16, 16 }, { scale = { 1, 1 }, ratio = { 4 / 3, 4 / 3 } })(bytes)
  local two = vision.Resize({ 16, 16 }, "area")(whole)
  assert((one:astype(ms.float32) - two:astype(ms.float32)):abs():mean():item() < 6)
end)

t.test("in a pipeline rows are the same for any number of workers", function()
  local source = D.NumpySlicesDataset({ image = ms.ops.stack({ places, places * 2, places * 3, places * 4 }, 0) }, { shuffle = false })
  local function digest(workers)
    ms.set_seed(4)
    local ds = source:map({ vision.RandomResizedCrop(8), vision.RandomHorizontalFlip(), vision.HWC2CHW() }, "image",
      { num_parallel_workers = workers }):batch(2)
    local sums = {}
    for row in ds:create_dict_iterator({ num_epochs = 2 }) do sums[#sums + 1] = row.image:sum():item() end
    return sums
  end
  t.equal(digest(4), digest(1))
  local means = { { 1, 2 }, { 3, 4 } }
  local one = source:map({ vision.Normalize(means[1], means[2]), vision.HWC2CHW() }, "image"):create_tuple_iterator()()
  assert(apart(one, vision.HWC2CHW()(vision.Normalize(means[1], means[2])(places))) < 1e-6)
  local bytes = stored["input.smooth"]
  local colours = { vision.Normalize({ 100, 110, 120 }, { 50, 60, 70 }), vision.HWC2CHW() }
  one = D.NumpySlicesDataset({ image = ms.ops.stack({ bytes }, 0) }):map(colours, "image"):create_tuple_iterator()()
  assert(apart(one, colours[2](colours[1](bytes))) < 1e-6)
  local bad = source:map({ vision.CenterCrop(8), vision.Crop({ 0, 0 }, 9) }, "image")
  fails("Crop: the part of 9 x 9 pixels .*in map: column 'image', row 0", function() bad:create_dict_iterator()() end)
end)

t.test("augmentations change images, and keep shape and dtype", function()
  ms.set_seed(2)
  local image = stored["input.smooth"]
  for _, make in ipairs { function() return vision.AutoAugment() end, function() return vision.AutoAugment("svhn") end,
    function() return vision.RandAugment() end, function() return vision.TrivialAugmentWide({ interpolation = "bilinear" }) end,
    function() return vision.UniformAugment({ vision.Invert(), vision.Equalize() }) end,
    function() return vision.RandomSelectSubpolicy { { { vision.Invert(), 0.5 }, { vision.Posterize(2), 0.5 } },
      { { vision.Equalize(), 1 } } } end,
  } do
    local transform, other = make(), 0
    for _ = 1, 60 do
      local result = transform(image)
      t.equal(tostring(result.shape) .. tostring(result.dtype), "(24, 31, 3)UInt8")
      if apart(result, image) > 0 then other = other + 1 end
    end
    assert(other > 20, other)
  end
end)

t.test("bad arguments are errors that name transform, argument and value", function()
  fails("Resize: size must be positive.*%-1", vision.Resize, -1)
  fails("Resize: interpolation must be one of .*Inter.AREA.*got the string 'best'", vision.Resize, 4, "best")
  fails("Normalize: mean has 3 numbers and std 2", vision.Normalize, { 1, 2, 3 }, { 1, 2 })
  fails("Normalize: std%[1%] must be positive, got 0", vision.Normalize, { 1 }, { 0 })
  fails("Normalize: mean has 2 numbers for an image of 3 channels", vision.Normalize({ 1, 2 }, { 1, 2 }), ms.ones { 2, 2, 3 })
  fails("AdjustHue: hue_factor must be in %[%-0.5, 0.5%]", vision.AdjustHue, 2)
  fails("AdjustContrast: an image of 3 channels is expected, got one of 1", vision.AdjustContrast(1.5), ms.ones { 2, 2 })
  fails("Equalize: the image must be uint8, got float32", vision.Equalize(), ms.ones { 2, 2, 3 })
  fails("Crop: the part of 5 x 5 pixels at %(0, 0%) is not within the image, which has 2 x 2", vision.Crop({ 0, 0 }, 5), ms.ones { 2, 2 })
  fails("RandAugment: magnitude must be less than num_magnitude_bins", vision.RandAugment, 2, 31)
  fails("UniformAugment: transforms%[1%] must be a transform", vision.UniformAugment, { 3 })
  fails("Resize: an image .* is expected, got", vision.Resize(3), ms.ones { 3 })
  fails("Resize: a value is expected, got nothing", vision.Resize(3))
  fails("ms.dataset.vision: there is no name 'Resise'.*did you mean 'Resize'", function() return vision.Resise end)
  fails("Perspective: three of the points lie on a line", vision.Perspective({ { 0, 0 }, { 1, 1 }, { 2, 2 }, { 0, 3 } },
    { { 0, 0 }, { 1, 0 }, { 1, 1 }, { 0, 1 } }), ms.ones { 3, 3 })
  fails("is too large", vision.Resize({ 1 << 30, 1 << 30 }), ms.ones { 3, 3 })
end)

t.finish()
