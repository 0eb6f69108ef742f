-- Natural changes of pictures: what each does to pictures for which it is known, forms, seeds, mistakes. Three seconds.
-- Eager mode only: nothing here is called often enough to be compiled.
package.path = "tests/lua/?.lua;" .. package.path
local t = require "harness"
local ms = require "lunaria"
local I, ops = ms.armour.natural_robustness.transform.image, ms.ops

ms.set_seed(2)
local names = { "Contrast", "Curve", "GaussianBlur", "GaussianNoise", "GradientBlur", "GradientLuminance", "MotionBlur", "NaturalNoise",
  "Perspective", "Rotate", "SaltAndPepperNoise", "Scale", "Shear", "Translate", "UniformNoise" }
local x = ms.rand { 1, 7, 9 }

t.test("a picture moves by whole pixels and by shares of them", function()
  t.near(I.Translate(2 / 9, 1 / 7)(x)[{ 0, ms.slice(1, 7), ms.slice(2, 9) }], x[{ 0, ms.slice(0, 6), ms.slice(0, 7) }], 1e-5)
  t.near(I.Translate(2 / 9, 1 / 7)(x)[{ 0, 0 }], ms.zeros { 9 }, 0)
  t.near(I.Translate(0.5 / 9, 0)(x)[{ 0, 3, 4 }]:item(), (x[{ 0, 3, 3 }]:item() + x[{ 0, 3, 4 }]:item()) / 2, 1e-5)
end)

t.test("turning by right angles, sizes, identities", function()
  local square = ms.rand { 5, 5 }
  t.near(I.Rotate(90)(square), ops.rot90(square, 1, { 0, 1 }), 1e-5)
  t.near(I.Rotate(180)(x), ops.flip(x, { 1, 2 }), 1e-5)
  for _, same in ipairs { I.Rotate(0), I.Scale(), I.Shear(0), I.Shear(0, "vertical"), I.Translate(), I.Curve(3, 0), I.Contrast() } do
    t.near(same(x), x, 1e-5)
  end
  -- Half as large around the middle: pixels 2, 4, 6 of a row of 9 come from 0, 4, 8.
  t.near(I.Scale(0.5, 1)(x)[{ 0, 3, ms.tensor { 2, 4, 6 } }], x[{ 0, 3, ms.tensor { 0, 4, 8 } }], 1e-5)
  -- The middle row of a sheared picture is squeezed only.
  local sheared = I.Shear(0.5)(ms.ones { 5, 5 })
  t.near(sheared[{ 2, 2 }]:item(), 1, 1e-6)
  t.equal(sheared[{ 0, 0 }]:item() == 0 or sheared[{ 0, 4 }]:item() == 0, true)
end)

t.test("a perspective brings points where they are to be", function()
  local from, to = { { 1, 1 }, { 1, 5 }, { 7, 1 }, { 7, 5 } }, { { 2, 1 }, { 0, 6 }, { 7, 2 }, { 8, 5 } }
  for i, point in ipairs(from) do
    local dot = ms.zeros { 7, 9 }
    dot[{ point[2], point[1] }] = 1.0
    local seen = I.Perspective(from, to)(dot)
    t.near(seen[{ to[i][2], to[i][1] }]:item(), 1, 1e-4)
  end
  t.near(I.Perspective(from, from)(x), x, 1e-4)
  -- Also where the first pixel comes from infinitely far away, and far from it.
  -- (u, v) shows ((u + 1) / (u + v), (v + 1) / (u + v)).
  local far = I.Perspective({ { 2, 1 }, { 1, 2 }, { 1, 1 }, { 0.75, 0.75 } }, { { 1, 0 }, { 0, 1 }, { 1, 1 }, { 2, 2 } })(x)
  t.equal({ ops.all(ops.isfinite(far)):item(), far[{ 0, 0, 0 }]:item() }, { true, 0.0 })
  t.near(far[{ 0, 1, 3 }]:item(), (x[{ 0, 0, 1 }] + x[{ 0, 1, 1 }]):item() / 2, 1e-4)
  local big, line = 800, { { 0, 0 }, { 100, 100.00001 }, { 300, 300 }, { 0, 800 } }
  local square = { { 0, 0 }, { 0, big }, { big, 0 }, { big, big } }
  t.fails({ "dst_pos: of the four points three lie on a line" }, I.Perspective, square, line)
  t.fails({ "ori_pos: of the four points three lie on a line" }, I.Perspective, line, square)
end)

t.test("places beyond all numbers are black", function()
  for _, change in ipairs { I.Translate(1e300, 0), I.Shear(1e300), I.Curve(1e300, 1), I.Scale(1e-300, 1) } do
    t.equal(ops.all(ops.isfinite(change(x))):item(), true)
  end
end)

t.test("lines become waves", function()
  local rows = ops.broadcast_to(ops.arange(9):astype(ms.float32):reshape { 1, 9 } / 10, { 8, 9 })
  local curved = I.Curve(1, 1, "vertical")(rows)
  for v = 0, 7 do t.near(curved[{ v, 4 }]:item(), (4 + math.sin(2 * math.pi * v / 8)) / 10, 1e-5) end
end)

t.test("filters keep what is even, and spread a point as their kernel has it", function()
  local even, point = ms.full({ 1, 11, 11 }, 0.25), ms.zeros { 11, 11 }
  point[{ 5, 5 }] = 1.0
  for _, blur in ipairs { I.GaussianBlur(2), I.MotionBlur(4, 30), I.GradientBlur({ 3, 3 }, 2), I.GradientBlur({ 3, 3 }, 2, false) } do
    t.near(blur(even), even, 1e-6)
  end
  for _, blur in ipairs { I.GaussianBlur(2), I.MotionBlur(4, 30), I.MotionBlur(5, 70) } do t.near(ops.sum(blur(point)):item(), 1, 1e-5) end
  local weights, sum = {}, 0
  for k = -2, 2 do
    weights[k] = math.exp(-k * k / (2 * 1.1 ^ 2))
    sum = sum + weights[k]
  end
  t.near(I.GaussianBlur(2)(point)[{ 5, 7 }]:item(), weights[0] * weights[2] / sum ^ 2, 1e-6)
  local upright, across = I.MotionBlur(5, 0)(point), I.MotionBlur(5, 90)(point)
  for k = 3, 7 do
    t.near(upright[{ k, 5 }]:item(), 0.2, 1e-6)
    t.near(across[{ 5, k }]:item(), 0.2, 1e-6)
  end
  -- Against the clock: at 45 degrees the line goes from below right to above left, which is what turning an upright line so makes of it.
  t.equal(I.MotionBlur(3, 45)(point)[{ 4, 4 }]:item() > 0.1, true)
  -- Sharp where the point is, or elsewhere.
  local noisy = ms.rand { 11, 11 }
  t.near(I.GradientBlur({ 5, 5 }, 3)(noisy)[{ 5, 5 }]:item(), noisy[{ 5, 5 }]:item(), 0)
  t.equal(math.abs(I.GradientBlur({ 5, 5 }, 3, false)(noisy)[{ 5, 5 }]:item() - noisy[{ 5, 5 }]:item()) > 1e-3, true)
end)

t.test("light", function()
  t.near(I.Contrast(0.5, 25.5)(x), ops.clamp(x * 0.5 + 0.1, 0.0, 1.0), 1e-6)
  local black = ms.zeros { 1, 8, 8 }
  local circle = I.GradientLuminance({ 255, 255, 255 }, { 0, 0, 0 }, { 2, 2 }, { bright_rate = 0.5 })(black)
  t.near(circle[{ 0, 2, 2 }]:item(), 0.5, 1e-6)
  t.near(circle[{ 0, 2, 4 }]:item(), 0.5 * (1 - 2 / (math.sqrt(72) * 0.5)), 1e-6)
  local dark = I.GradientLuminance({ 0, 0, 0 }, { 255, 255, 255 }, { 0, 0 }, { pattern = "dark", bright_rate = 0.25, mode = "horizontal" })
  t.near(dark(black)[{ 0, 3, 4 }]:item(), 0.75 * 0.5, 1e-6)
end)

t.test("noise is as strong as it says", function()
  local grey = ms.full({ 1, 100, 100 }, 0.5)
  local uniform, normal = I.UniformNoise(0.1, { seed = 1 })(grey) - 0.5, I.GaussianNoise(0.1, { seed = 1 })(grey) - 0.5
  t.equal(ops.max(ops.abs(uniform)):item() <= 0.1 + 1e-6, true)
  for _, noise in ipairs { uniform, normal } do
    t.equal(math.abs(ops.std(noise):item() * math.sqrt(3) / 0.1 - 1) < 0.03, true)
    t.equal(math.abs(ops.mean(noise):item()) < 0.003, true)
  end
  local salted = I.SaltAndPepperNoise(0.2, { seed = 1 })(grey)
  local function share(value) return ops.mean(ops.equal(salted, value):astype(ms.float32)):item() end
  t.equal(math.abs(share(0) - 0.1) < 0.015 and math.abs(share(1) - 0.1) < 0.015, true)
  t.near(I.SaltAndPepperNoise()(grey), grey, 0)
  t.fails({ "factor must be a probability" }, I.SaltAndPepperNoise, 2)
  local specks = I.NaturalNoise(0.01, { 1, 3 }, { 2, 5 }, { seed = 1 })(ms.ones { 3, 50, 50 })
  local touched = ops.less(specks, 1)
  t.equal(ops.max(ops.where(touched, specks, ops.zeros_like(specks))):item() < 100 / 255, true)
  local part = ops.mean(touched:astype(ms.float32)):item()
  t.equal(part > 0.01 and part < 0.3, true)
  -- The same for all channels.
  t.near(specks[0], specks[2], 0)
end)

t.test("all take all forms and give them back, and seeds tell the same draws", function()
  for _, name in ipairs(names) do
    local function change() return I[name] { auto_param = true, seed = 5 } end
    local image = ms.rand { 2, 3, 12, 10 }
    for _, form in ipairs { image, image[0], image[{ 0, 0 }], (image[0] * 255):astype(ms.uint8):transpose { 1, 2, 0 },
      image:transpose { 0, 2, 3, 1 }, image:astype(ms.float64) } do
      local got = change()(form)
      t.equal({ name, tostring(got.shape), tostring(got.dtype) }, { name, tostring(form.shape), tostring(form.dtype) })
    end
    local one, two = change(), change()
    t.equal(one(image), two(image))
    t.equal(ops.min(one(image)):item() >= 0 and ops.max(two(image)):item() <= 1, true)
  end
  local bytes = ms.tensor({ { 0, 128 }, { 200, 255 } }, ms.uint8)
  t.equal(I.Contrast(1, 0)(bytes), bytes)
end)

t.test("a batch is changed picture by picture", function()
  local batch = ms.rand { 3, 1, 6, 6 }
  for _, change in ipairs { I.Rotate(30), I.GaussianBlur(1), I.GradientLuminance() } do
    t.near(change(batch)[1], change(batch[1]), 1e-6)
  end
end)

t.test("changes are transforms of a data set, and gradients pass them", function()
  local images = (ms.rand { 4, 8, 8, 3 } * 255):astype(ms.uint8)
  local data = ms.dataset.NumpySlicesDataset({ images, ms.arange(4) }, { column_names = { "image", "label" } })
  data = data:map({ I.Translate(0.125, 0), I.Contrast(0.5) }, { "image" })
  local count = 0
  for image, label in data:create_tuple_iterator() do
    t.equal(tostring(image.dtype) .. tostring(image.shape), "UInt8(8, 8, 3)")
    t.near(image[{ 3, 1 }]:astype(ms.float32), images[{ label:item(), 3, 0 }]:astype(ms.float32) * 0.5, 1.0)
    count = count + 1
  end
  t.equal(count, 4)
  local slope = ms.grad(function(z) return ops.sum(I.Contrast(0.5)(I.Translate(1 / 9, 0)(z))) end)(x)
  t.near(slope[{ 0, 3 }], ms.tensor { 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.0 }, 1e-5)
end)

local R = ms.armour.natural_robustness
local scene = R.corrupt(ms.rand { 2, 3, 32, 32 }, "gaussian_blur", 5, 1)

t.test("corruptions keep form and range, follow their seed, and are the stronger the higher the severity", function()
  t.equal({ #R.corruptions("noise"), #R.corruptions("blur"), #R.corruptions("weather"), #R.corruptions("digital") }, { 3, 4, 4, 4 })
  local bytes = (scene[0] * 255):astype(ms.uint8):transpose { 1, 2, 0 }
  -- At few pixels a side these count their steps in whole pixels.
  local by_steps = { glass_blur = true, pixelate = true, elastic_transform = true, fog = true, spatter = true, saturate = true }
  for _, name in ipairs(R.corruptions()) do
    local before = 0
    for severity = 1, 5 do
      local got = R.corrupt(scene, name, severity, 7)
      t.equal({ name, tostring(got.shape), ops.min(got):item() >= 0 and ops.max(got):item() <= 1 }, { name, "(2, 3, 32, 32)", true })
      local change = ops.mean(ops.square(got - scene)):item()
      t.equal({ name, severity, by_steps[name] or change > before }, { name, severity, true })
      t.equal({ name, change > 0 }, { name, true })
      before = change
    end
    t.equal(R.corrupt(scene, name, 3, 7), R.corrupt(scene, name, 3, 7))
    local as_bytes = R.corrupt(bytes, name, 3, 7)
    t.equal({ tostring(as_bytes.shape), tostring(as_bytes.dtype) }, { "(32, 32, 3)", "UInt8" })
  end
end)

t.test("corruptions are what they are called", function()
  local grey = ms.full({ 1, 1, 60, 60 }, 0.5)
  local shot = R.corrupt(grey, "shot_noise", 1, 3)
  -- Poisson numbers of rate 30, over 60.
  t.equal(math.abs(ops.mean(shot):item() - 0.5) < 0.006, true)
  t.equal(math.abs(ops.std(shot):item() - math.sqrt(30) / 60) < 0.003, true)
  t.near(ops.std(R.corrupt(grey, "gaussian_noise", 1, 3)):item(), 0.08, 3e-3)
  local pixel = ms.tensor { { { { 0.2 } }, { { 0.4 } }, { { 0.1 } } } }
  t.near(R.corrupt(pixel, "brightness", 2):reshape { 3 }, ms.tensor { 0.3, 0.6, 0.15 }, 1e-5)
  t.near(R.corrupt(scene, "contrast", 3)[{ 0, 0, 3, 4 }]:item(),
    (scene[{ 0, 0, 3, 4 }] - ops.mean(scene[{ 0, 0 }])):item() * 0.2 + ops.mean(scene[{ 0, 0 }]):item(), 1e-5)
  local line = ms.tensor({ 0.1, 0.3, 0.9, 0.4, 0.6 }):reshape { 1, 1, 1, 5 }
  t.near(R.corrupt(line, "pixelate", 1):reshape { 5 }, ms.tensor { 0.2, 0.2, 0.9, 0.5, 0.5 }, 1e-6)
  local small = R.corrupt(scene, "pixelate", 2)
  t.near(small[{ 1, 2, 0, 0 }]:item(), ops.mean(scene[{ 1, 2, ms.slice(0, 2), ms.slice(0, 2) }]):item(), 1e-5)
  t.near(R.corrupt(grey, "zoom_blur", 3)[{ 0, 0, 30, 30 }]:item(), 0.5, 1e-6)
  t.fails({ "there is no corruption the string 'fogg'", "did you mean 'fog'" }, R.corrupt, grey, "fogg", 1)
  t.fails({ "severity must be from 1 to 5, got 6" }, R.corrupt, grey, "fog", 6)
  t.fails({ "has no saturation" }, R.corrupt, grey, "saturate", 1)
end)

-- How the light of a single pixel in the middle of a picture is spread: the sum, the means of rows and columns from there, and the mean
-- square of both.
local function spread(name, severity, side)
  local point, middle = ms.zeros { 1, 1, side, side }, side // 2
  point[{ 0, 0, middle, middle }] = 1.0
  local got = R.corrupt(point, name, severity, 5)[{ 0, 0 }]:astype(ms.float64)
  local place = ops.arange(side):astype(ms.float64) - middle
  local rows, columns = place:reshape { -1, 1 }, place:reshape { 1, -1 }
  local function mean(z) return ops.sum(got * z):item() end
  return mean(1.0), mean(rows), mean(columns), mean(ops.square(rows)), mean(ops.square(columns))
end

-- The mean and the mean square of weights w(k) at k = from, ..., to.
local function moments(w, from, to)
  local sum, first, second = 0.0, 0.0, 0.0
  for k = from, to do sum, first, second = sum + w(k), first + k * w(k), second + k * k * w(k) end
  return first / sum, second / sum
end

t.test("at 224 pixels filters of corruptions are as wide as those of ImageNet-C", function()
  -- A disc of radius 3: on whole pixels 29 of them, of mean square 68 / 29; between pixels a sixth more, less by the size of the disc.
  local sum, row, column, down, across = spread("defocus_blur", 1, 224)
  t.near(sum, 1, 1e-4)
  t.near(row, 0, 1e-3)
  t.near(column, 0, 1e-3)
  t.near(down / (68 / 29), 1, 0.05)
  t.near(across, down, 1e-3)
  local function bell(deviation) return function(k) return math.exp(-k * k / (2 * deviation * deviation)) end end
  local _, width = moments(bell(3), -9, 9)
  sum, row, column, down = spread("gaussian_blur", 3, 224)
  t.near(sum, 1, 1e-4)
  t.near(row, 0, 1e-3)
  t.near(column, 0, 1e-3)
  t.near(down, width, 1e-2)
  -- In motion a pixel leaves a trail to one side: half a bell, whose mean lies so far away, whatever the direction.
  sum, row, column = spread("motion_blur", 3, 224)
  local away = moments(bell(8), 0, 30)
  t.near(sum, 1, 1e-4)
  t.near(math.sqrt(row * row + column * column), away, 1e-2)
  t.equal(math.abs(row) < math.abs(column), true)
end)

t.test("each picture of a batch is corrupted by itself", function()
  local twice = ops.concat({ scene[{ ms.slice(0, 1) }], scene[{ ms.slice(0, 1) }] }, 0)
  for _, name in ipairs { "glass_blur", "motion_blur", "elastic_transform", "snow", "fog", "frost", "spatter", "gaussian_noise" } do
    local got = R.corrupt(twice, name, 4, 3)
    t.equal({ name, ops.all(ops.equal(got[0], got[1])):item() }, { name, false })
  end
end)

t.test("elastic pictures move as three corners of a square by chance", function()
  -- Columns as grey levels: what a pixel shows tells where it comes from. The move of the middle is half the sum of two draws from -0.02 to
  -- 0.02 of the side.
  local side, count = 32, 150
  local ramp = ops.broadcast_to((ops.arange(side):astype(ms.float32) / side):reshape { 1, 1, 1, side }, { count, 1, side, side })
  local got = R.corrupt(ramp, "elastic_transform", 3, 11)[{ ms.slice(), 0, ms.slice(8, 24), ms.slice(8, 24) }]
  local moves = ops.mean(got:reshape { count, -1 }, 1) * side - 15.5
  t.near(ops.std(moves):item() / (0.02 * side / math.sqrt(6)), 1, 0.15)
  t.near(ops.mean(moves):item(), 0, 0.1)
  -- What comes from outside is the mirror image, not black.
  t.equal(ops.min(R.corrupt(ms.full({ 1, 1, 32, 32 }, 0.5), "elastic_transform", 1, 2)):item() > 0.49, true)
end)

t.test("snow is on the lightness, water is added, mud covers", function()
  local dark = ms.tensor({ 0.2, 0.1, 0.4 }):reshape { 1, 3, 1, 1 } * ms.ones { 1, 3, 40, 40 }
  -- No flake falls where the picture stays least: there it is whitened by its lightness alone.
  local light = 0.299 * 0.2 + 0.587 * 0.1 + 0.114 * 0.4
  local snowy = R.corrupt(dark, "snow", 1, 4)
  for c, value in ipairs { 0.2, 0.1, 0.4 } do
    t.near(ops.min(snowy[{ 0, c - 1 }]):item(), 0.8 * value + 0.2 * math.max(value, light * 1.5 + 0.5), 1e-5)
  end
  local water, mud = R.corrupt(dark, "spatter", 1, 4) - dark, R.corrupt(dark, "spatter", 5, 4)
  t.equal({ ops.min(water):item() >= 0, ops.max(water[{ 0, 0 }]):item() <= 0.6 * 175 / 255 + 1e-5 }, { true, true })
  -- A muddy pixel has 0.8 of mud at least: red is between 0.2 and mud's 63 / 255 and never less than 0.8 of the way.
  local share = (mud[{ 0, 2 }] - 0.4) / (20 / 255 - 0.4)
  t.equal(ops.all(ops.logical_or(ops.less(share, 1e-5), ops.greater(share, 0.8 - 1e-5))):item(), true)
  t.equal(ops.max(share):item() > 0.8, true)
end)

t.test("what is wrong is said", function()
  t.fails({ "goes from 0 to 1, got values from 2 to 2", "x / 255" }, I.Rotate(), ms.full({ 4, 4 }, 2.0))
  t.fails({ "must be (H, W), (C, H, W)" }, I.Rotate(), ms.ones { 5, 4, 4 })
  t.fails({ "uint8" }, I.Rotate(), ms.ones({ 4, 4 }, ms.int32))
  t.fails({ "tensor with pixels" }, I.Rotate(), ms.ones { 0, 4 })
  t.fails({ "factor_x must be a positive number" }, I.Scale, 0)
  t.fails({ "direction must be one of" }, I.Shear, 0.1, "across")
  t.fails({ "a list of four points" }, I.Perspective)
  t.fails({ "pattern must be one of" }, I.GradientLuminance, { pattern = "dim" })
  t.fails({ "levels from 0 to 255" }, I.GradientLuminance, { 256, 0, 0 })
  t.fails({ "ksize must be positive" }, I.GaussianBlur, 0)
  t.fails({ "{ least, less than }" }, I.NaturalNoise, { k_x_range = { 3, 3 } })
  t.fails({ "did you mean 'angle'" }, I.Rotate, { angl = 3 })
end)

t.finish()
