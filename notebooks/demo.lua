-- Fashion-MNIST with tensor operators only: ridge regression on the pixels, then on random features of them.
-- usage: lunaria notebooks/demo.lua [FOLDER of the four idx.gz files]
local ms = require "lunaria"
local ops = ms.ops

local FOLDER = arg and arg[1] or "/usr/share/datasets/fashion-mnist"
local CLASSES = {
  [0] = "T-shirt", "trouser", "pullover", "dress", "coat", "sandal", "shirt", "sneaker", "bag", "ankle boot",
}
local FEATURES, BATCH, PENALTY = 1000, 5000, 1.0

local function seconds_since(start)
  return (ms.clock() - start) / 1e9
end

local function load_set(name)
  local images = ms.load_idx(("%s/%s-images-idx3-ubyte.gz"):format(FOLDER, name))
  local labels = ms.load_idx(("%s/%s-labels-idx1-ubyte.gz"):format(FOLDER, name))
  return images, labels
end

-- The rows [first, first + BATCH) of the images, one row per image, scaled to mean 0 and spread 1 over the training set.
local function pixels(images, first)
  local batch = images[{ ms.slice(first, math.min(first + BATCH, #images)) }]
  return (batch:reshape({ #batch, 784 }):cast(ms.float32) - 72.9) / 90.0
end

-- A column of ones makes room for the intercept.
local function with_ones(x)
  return ops.concat({ x, ops.ones({ #x, 1 }) }, 1)
end

-- Solves (X'X + penalty) W = X'Y, where Y has 1 for the right class and 0 elsewhere. X is seen one batch at a time.
local function fit(images, labels, features)
  local gram, target = 0, 0
  for first = 0, #images - 1, BATCH do
    local x = features(pixels(images, first))
    local y = ops.one_hot(labels[{ ms.slice(first, first + #x) }]:cast(ms.int64), 10):cast(ms.float32)
    gram = gram + ops.matmul(x.T, x)
    target = target + ops.matmul(x.T, y)
  end
  return ops.solve(gram + PENALTY * ops.eye(#gram), target)
end

local function predict(images, weights, features)
  local parts = {}
  for first = 0, #images - 1, BATCH do
    parts[#parts + 1] = ops.argmax(ops.matmul(features(pixels(images, first)), weights), 1)
  end
  return ops.concat(parts, 0)
end

local function accuracy(predicted, labels)
  return ops.reduce_mean(ops.equal(predicted, labels:cast(predicted.dtype)):cast(ms.float32)):item()
end

local in_color = ms.is_terminal(io.stdout) and (os.getenv("NO_COLOR") or "") == "" and os.getenv("TERM") ~= "dumb"

-- Lines of text that show an image, two pixels above each other per character; the outermost pixels are left out.
local function draw(image)
  local grey = image:totable()
  local lines = {}
  for row = 2, 26, 2 do
    local line = {}
    for column = 2, 27 do
      local upper, lower = grey[row][column], grey[row + 1][column]
      if in_color then
        line[#line + 1] = ("\27[38;5;%d;48;5;%dm\u{2580}"):format(232 + upper * 23 // 255, 232 + lower * 23 // 255)
      else
        local level = (upper + lower) * 9 // 510 + 1
        line[#line + 1] = (" .:-=+*#%@"):sub(level, level)
      end
    end
    lines[#lines + 1] = table.concat(line) .. (in_color and "\27[0m" or "")
  end
  return lines
end

local function show(images, labels, predicted, indices)
  for first = 1, #indices, 3 do
    local rows, caption = {}, {}
    for i = first, math.min(first + 2, #indices) do
      local at = indices[i]
      for r, line in ipairs(draw(images[at])) do
        rows[r] = (rows[r] and rows[r] .. " " or "") .. line
      end
      local truth, guess = labels[at]:item(), predicted[at]:item()
      local text = truth == guess and CLASSES[guess] or ("%s, is: %s"):format(CLASSES[guess], CLASSES[truth])
      text = ("%-26s"):format(text)
      caption[#caption + 1] = in_color and ("\27[%dm%s\27[0m"):format(truth == guess and 32 or 31, text) or text
    end
    print(table.concat(rows, "\n"))
    print((table.concat(caption, " "):gsub("%s+$", "")))
  end
end

local start = ms.clock()
local images, labels = load_set "train"
local test_images, test_labels = load_set "t10k"
print(("read %d training and %d test images in %.2f s"):format(#images, #test_images, seconds_since(start)))

start = ms.clock()
local weights = fit(images, labels, with_ones)
local predicted = predict(test_images, weights, with_ones)
print(("ridge regression on 784 pixels:           test accuracy %.2f %% after %.2f s"):format(
  100 * accuracy(predicted, test_labels), seconds_since(start)))

start = ms.clock()
ms.set_seed(1)
local mix, shift = ops.randn({ 784, FEATURES }) / 28, ops.randn({ FEATURES }) / 2
local function random_features(x)
  return with_ones(ops.relu(ops.matmul(x, mix) + shift))
end
weights = fit(images, labels, random_features)
predicted = predict(test_images, weights, random_features)
print(("ridge regression on %d random features: test accuracy %.2f %% after %.2f s"):format(
  FEATURES, 100 * accuracy(predicted, test_labels), seconds_since(start)))

-- Some that it gets right and the first two that it does not.
local right, wrong = {}, {}
for i = 0, #test_images - 1 do
  local list = predicted[i]:item() == test_labels[i]:item() and right or wrong
  list[#list + 1] = i
  if #right >= 4 and #wrong >= 2 then
    break
  end
end
print()
show(test_images, test_labels, predicted, { right[1], right[2], wrong[1], right[3], right[4], wrong[2] })
