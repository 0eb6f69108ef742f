-- Trains LeNet-5 on Fashion-MNIST: eager tensors, gradients by source transformation, cells and an optimizer.
-- usage: lunaria notebooks/demo.lua [FOLDER of the four idx.gz files]
local ms = require "lunaria"
local nn, ops = ms.nn, ms.ops

local FOLDER = arg and arg[1] or "/usr/share/datasets/fashion-mnist"
local CLASSES = {
  [0] = "T-shirt", "trouser", "pullover", "dress", "coat", "sandal", "shirt", "sneaker", "bag", "ankle boot",
}
local EPOCHS, BATCH, RATE = 4, 64, 0.02

local function seconds_since(start)
  return (ms.clock() - start) / 1e9
end

local function load_set(name)
  local images = ms.load_idx(("%s/%s-images-idx3-ubyte.gz"):format(FOLDER, name))
  local labels = ms.load_idx(("%s/%s-labels-idx1-ubyte.gz"):format(FOLDER, name))
  return images, labels
end

-- Images as the network wants them: one channel, mean 0 and spread 1 over the training set.
local function inputs(images)
  return (images:reshape({ -1, 1, 28, 28 }):cast(ms.float32) - 72.9) / 90.0
end

local LeNet = nn.Cell:extend("LeNet")

function LeNet:init()
  self.conv1 = nn.Conv2d(1, 6, 5, { pad_mode = "pad", padding = 2, has_bias = true })
  self.conv2 = nn.Conv2d(6, 16, 5, { pad_mode = "valid", has_bias = true })
  self.pool, self.flatten = nn.MaxPool2d(2, 2), nn.Flatten()
  self.fc1, self.fc2, self.fc3 = nn.Dense(400, 120), nn.Dense(120, 84), nn.Dense(84, 10)
end

function LeNet:construct(x)
  x = self.pool(ops.relu(self.conv1(x)))
  x = self.pool(ops.relu(self.conv2(x)))
  x = self.flatten(x)
  x = ops.relu(self.fc1(x))
  x = ops.relu(self.fc2(x))
  return self.fc3(x)
end

local function predict(net, images)
  net:set_train(false)
  local parts = {}
  for first = 0, #images - 1, 1000 do
    parts[#parts + 1] = ops.argmax(net(inputs(images[{ ms.slice(first, first + 1000) }])), 1)
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

ms.set_seed(1)
-- Batches of this size leave little for a second thread, which would mostly wait for the first.
ms.set_num_threads(1)
local net = LeNet()
local optimizer = nn.Momentum(net:trainable_params(), RATE, 0.9)
local train = ms.value_and_grad(net, ops.cross_entropy)

start = ms.clock()
local predicted
for epoch = 1, EPOCHS do
  net:set_train(true)
  -- A learning rate that falls to a quarter of the first.
  optimizer:set_lr(RATE * (1 - 0.75 * (epoch - 1) / (EPOCHS - 1)))
  local order, total = ops.randperm(#images), 0
  local steps = #images // BATCH
  for step in ms.progress(steps, { desc = ("epoch %d"):format(epoch) }) do
    local chosen = order[{ ms.slice((step - 1) * BATCH, step * BATCH) }]
    local loss, grads = train(inputs(ops.gather(images, chosen, 0)), ops.gather(labels, chosen, 0):cast(ms.int32))
    optimizer(grads)
    total = total + loss
  end
  predicted = predict(net, test_images)
  print(("epoch %d: loss %.3f, test accuracy %.2f %% after %.1f s"):format(
    epoch, total:item() / steps, 100 * accuracy(predicted, test_labels), seconds_since(start)))
end

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
