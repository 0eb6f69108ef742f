-- The reference's first case in its own order: load, augment, define, initialise, run, loss, optimizer, iterate, evaluate, save, load
-- and predict, fine-tune. Digits are strokes that are drawn here and written as MNIST's files.
package.path = "tests/lua/?.lua;" .. package.path
local t = require "harness"
local ms = require "lunaria"
local nn, ops, dataset = ms.nn, ms.ops, ms.dataset

local folder = os.tmpname()
os.remove(folder)
ms.io.make_folder(folder)
ms.set_seed(5)

-- The places of ten strokes in a square of 28 by 28, each as four lines between corners.
local corners = { { 5, 5 }, { 5, 22 }, { 22, 5 }, { 22, 22 }, { 5, 14 }, { 22, 14 }, { 14, 5 }, { 14, 22 } }
local strokes = { "1243", "56", "1243 78", "1278 4", "1784 2", "2178 43", "2134 78", "124", "1234 78 13 24", "1278 24" }

local function drawn(digit, dx, dy)
  local square = {}
  for i = 1, 28 * 28 do square[i] = 0 end
  for line in strokes[digit + 1]:gmatch "%S+" do
    for k = 1, #line - 1 do
      local from, to = corners[tonumber(line:sub(k, k))], corners[tonumber(line:sub(k + 1, k + 1))]
      for step = 0, 20 do
        local row = (from[1] + (to[1] - from[1]) * step / 20 + dy) // 1 | 0
        local column = (from[2] + (to[2] - from[2]) * step / 20 + dx) // 1 | 0
        for r = row, row + 1 do
          for c = column, column + 1 do square[r * 28 + c + 1] = 255 end
        end
      end
    end
  end
  return string.char(table.unpack(square))
end

local function write_files(usage, count)
  local pictures, labels = {}, {}
  for i = 1, count do
    local digit = (i * 7) % 10
    labels[i] = string.char(digit)
    pictures[i] = drawn(digit, math.random(-3, 3), math.random(-3, 3))
  end
  local function put(name, head, list)
    local file <close> = assert(io.open(("%s/%s-%s-ubyte"):format(folder, usage, name), "wb"))
    file:write(head, table.concat(list))
  end
  put("images-idx3", (">I4I4I4I4"):pack(2051, count, 28, 28), pictures)
  put("labels-idx1", (">I4I4"):pack(2049, count), labels)
end
math.randomseed(9)
write_files("train", 1000)
write_files("t10k", 200)

local LeNet = nn.Cell:extend("LeNet5")
function LeNet:init(classes, channels)
  self.conv1 = nn.Conv2d(channels or 1, 6, 5, { pad_mode = "valid", weight_init = ms.common.initializer.Normal(0.05) })
  self.conv2 = nn.Conv2d(6, 16, 5, { pad_mode = "valid", weight_init = ms.common.initializer.Normal(0.05) })
  self.relu, self.pool, self.flatten = nn.ReLU(), nn.MaxPool2d(2, 2), nn.Flatten()
  self.fc1 = nn.Dense(400, 120, { weight_init = ms.common.initializer.Normal(0.05) })
  self.fc2 = nn.Dense(120, 84, { weight_init = ms.common.initializer.Normal(0.05) })
  self.fc3 = nn.Dense(84, classes, { weight_init = ms.common.initializer.Normal(0.05) })
end
function LeNet:construct(x)
  x = self.pool(self.relu(self.conv1(x)))
  x = self.pool(self.relu(self.conv2(x)))
  x = self.flatten(x)
  return self.fc3(self.relu(self.fc2(self.relu(self.fc1(x)))))
end

local function first_batch(data)
  local advance, state, control = data:create_dict_iterator()
  return (advance(state, control))
end

t.test("the twelve steps", function()
  -- 1 load, 2 augment
  local vision, transforms = dataset.vision, dataset.transforms
  local function pipeline(usage, batch)
    local data = dataset.MnistDataset(folder, { usage = usage, shuffle = usage == "train" })
    data = data:map({ vision.Resize({ 32, 32 }), vision.Rescale(1 / 255, 0.0), vision.Rescale(1 / 0.3081, -0.1307 / 0.3081),
      vision.HWC2CHW() }, "image")
    data = data:map(transforms.TypeCast(ms.int32), "label")
    return data:batch(batch, true)
  end
  local train_data, test_data = pipeline("train", 50), pipeline("test", 50)
  t.equal({ train_data:get_dataset_size(), test_data:get_dataset_size() }, { 20, 4 })
  -- 3 define, 4 initialise, 5 run
  local net = LeNet(10)
  local batch = first_batch(train_data)
  t.equal({ batch.image.shape, batch.image.dtype, batch.label.dtype }, { { 50, 1, 32, 32 }, ms.float32, ms.int32 })
  t.equal(net(batch.image).shape, { 50, 10 })
  -- 6 loss, 7 optimizer, 8 iterate
  local loss = nn.SoftmaxCrossEntropyWithLogits(true, "mean")
  local optimizer = nn.Momentum(net:trainable_params(), 0.02, 0.9)
  local model = ms.Model(net, loss, optimizer, { metrics = { Accuracy = ms.train.Accuracy() } })
  local saving = ms.train.ModelCheckpoint("lenet", folder .. "/checkpoints", ms.train.CheckpointConfig { save_checkpoint_steps = 20 })
  local history = ms.train.History()
  model:train(6, train_data, { saving, history })
  assert(history.history.loss[6] < history.history.loss[1])
  -- 9 evaluate, 10 save
  local accuracy = model:eval(test_data).Accuracy
  assert(accuracy > 0.9, accuracy)
  ms.save_checkpoint(net, folder .. "/lenet.ckpt")
  -- 11 load and predict
  local again = LeNet(10)
  t.equal(ms.load_param_into_net(again, ms.load_checkpoint(saving.last_checkpoint)), {})
  local loaded = ms.Model(again, loss, nil, { metrics = { Accuracy = ms.train.Accuracy() } })
  t.equal(loaded:eval(test_data).Accuracy, accuracy)
  batch = first_batch(test_data)
  local guessed = ops.argmax(loaded:predict(batch.image), -1)
  local right = ops.equal(guessed:astype(ms.int32), batch.label):astype(ms.float32):mean():item()
  assert(right > 0.8, right)
  -- 12 fine-tune: all but the last layer stay, for two classes.
  local tuned = LeNet(2)
  local weights = ms.load_checkpoint(folder .. "/lenet.ckpt", { filter_prefix = "fc3" })
  local missing = ms.load_param_into_net(tuned, weights)
  table.sort(missing)
  t.equal(missing, { "fc3.bias", "fc3.weight" })
  for name, parameter in tuned:parameters_and_names() do parameter.requires_grad = name:find "^fc3" ~= nil end
  local frozen = tuned.fc1.weight:copy()
  local parity = {}
  for part in train_data:create_dict_iterator() do parity[#parity + 1] = { part.image, part.label % 2 } end
  local tuning = ms.Model(tuned, loss, nn.Momentum(tuned:trainable_params(), 0.01, 0.9), { metrics = { Accuracy = ms.train.Accuracy() } })
  tuning:train(3, parity)
  assert(tuning:eval(parity).Accuracy > 0.9)
  t.near(tuned.fc1.weight, frozen, 0)
end)

os.execute("rm -rf '" .. folder .. "'")
t.finish()
