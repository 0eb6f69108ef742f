-- Split networks: steps of leader and followers are those of the joined network; compression; privacy. About 8 seconds.
package.path = "tests/lua/?.lua;" .. package.path
local t = require "harness"
local ms = require "lunaria"
local nets = dofile "tests/lua/federated/vertical/split_nets.lua"
local nn, ops, F, V = ms.nn, ms.ops, ms.federated, ms.federated.vertical

local function same_weights(a, b)
  local other = b:get_parameters()
  for i, p in ipairs(a:get_parameters()) do t.equal(p:value(), other[i]:value()) end
end

local function trainer(model, links, configs)
  return F.VFLTrainer(model, F.VerticalFederatedCommunicator { links = links, compress_configs = configs })
end

-- Both halves within this process: the losses, and bytes that the follower has sent.
local function split(case, follower, leader, seed)
  local losses, bytes = {}, nil
  -- The same random numbers as the joined network has: dropout draws in the order of the steps.
  ms.set_seed(seed)
  V.run_parties {
    follower = function(links)
      trainer(follower, links):train(1, case.batches())
      bytes = links.leader.sent
    end,
    leader = function(links)
      trainer(leader, links):train(1, case.batches(), function(out) losses[#losses + 1] = out.loss:item() end)
    end,
  }
  return losses, bytes
end

-- The joined network, whose steps draw the random numbers of a seed.
local function joined(case)
  return nets.joined(setmetatable({ top = function()
    local net = case.top()
    ms.set_seed(100)
    return net
  end }, { __index = case }))
end

for _, name in ipairs { "mlp", "wide", "cnn" } do
  local case = nets.cases[name]
  t.test(name .. ": a split training is that of the joined network to the bit", function()
    ms.set_seed(100)
    local bottom, top = case.bottom(), case.top()
    local follower, leader = nets.follower(case, bottom), nets.leader(case, top)
    local losses = split(case, follower, leader, 100)
    local expected, joined_bottom, joined_top = joined(case)
    t.equal(losses, expected)
    same_weights(bottom, joined_bottom)
    same_weights(top, joined_top)
    assert(losses[1] ~= losses[#losses])
  end)
end

local program = arg[-1] or "build/lunaria"
t.test("a split training over two processes is that of the joined network to the bit", function()
  local mode = ms.get_context("mode") == ms.GRAPH_MODE and "graph" or "eager"
  for _, name in ipairs { "mlp", "wide", "cnn" } do
    local case, key, path = nets.cases[name], V.new_key(), os.tmpname() .. ".ckpt"
    local listener = V.listen "127.0.0.1:0"
    local other = io.popen(("%s tests/lua/federated/vertical/split_other.lua %s %s %s %s %s 2>&1"):format(program, listener.address, key,
      path,
      mode, name))
    local links = V.connect("leader", { leader = listener, follower = false }, { key = key, seconds = 60 })
    local top, losses = case.top(), {}
    trainer(nets.leader(case, top), links):train(1, case.batches(), function(out) losses[#losses + 1] = out.loss:item() end)
    t.equal(other:read "a", "")
    other:close()
    listener:close()
    local expected, joined_bottom, joined_top = joined(case)
    t.equal(losses, expected)
    same_weights(top, joined_top)
    local bottom = case.bottom()
    ms.load_checkpoint(path, bottom)
    same_weights(bottom, joined_bottom)
    os.remove(path)
  end
end)

t.test("two followers and a leader without columns of its own", function()
  local function halves()
    ms.set_seed(21)
    local Sum = nn.Cell:extend("Sum")
    function Sum:init() self.out = nn.Dense(6, 2) end
    function Sum:construct(a, b) return self.out(ops.concat({ a, b }, 1)) end
    return nn.Dense(2, 3), nn.Dense(4, 3), Sum()
  end
  local loss_fn, batches = nn.CrossEntropyLoss(), {}
  for i = 1, 10 do batches[i] = { a = ms.randn(8, 2), b = ms.randn(8, 4), y = ops.randint(0, 2, { 8 }):astype(ms.int32) } end
  local function sgd(net) return nn.Momentum(net:trainable_params(), 0.1, 0.9) end
  local function follower(net, x, h)
    return F.FLModel { network = net, optimizers = sgd(net), yaml_data = { role = "follower", model = { train_net = {
      inputs = { { name = x } }, outputs = { { name = h, destination = "remote" } } } } } }
  end
  local fa, fb, top = halves()
  local leader = F.FLModel { network = top, loss_fn = loss_fn, optimizers = sgd(top), yaml_data = { role = "leader", model = { train_net = {
    inputs = { { name = "ha", source = "remote" }, { name = "hb", source = "remote" }, { name = "y" } }, outputs = { {
      name = "loss" } } } } } }
  local loss
  V.run_parties {
    a = function(l) trainer(follower(fa, "a", "ha"), l):train(2, batches) end,
    b = function(l) trainer(follower(fb, "b", "hb"), l):train(2, batches) end,
    leader = function(l) loss = trainer(leader, { a = l.a, b = l.b }):train(2, batches).loss:item() end,
  }
  local ja, jb, whole = halves()
  local all = {}
  for _, net in ipairs { ja, jb, whole } do
    for _, p in ipairs(net:trainable_params()) do all[#all + 1] = p end
  end
  local optimizer = nn.Momentum(all, 0.1, 0.9)
  local step = ms.value_and_grad(function(a, b, y) return loss_fn(whole(ja(a), jb(b)), y) end, false, all)
  local expected
  for _ = 1, 2 do
    for _, batch in ipairs(batches) do
      local gradients
      expected, gradients = step(batch.a, batch.b, batch.y)
      optimizer(gradients)
    end
  end
  t.equal(loss, expected:item())
  for i, pair in ipairs { { fa, ja }, { fb, jb }, { top, whole } } do same_weights(pair[1], pair[2], i) end
end)

t.test("optimizers, gradients and their factors come from yaml_data", function()
  local case = nets.cases.mlp
  local function run(factor)
    local bottom, top = case.bottom(), case.top()
    local follower = F.FLModel { network = bottom, yaml_data = { role = "follower",
      model = { train_net = { inputs = { { name = "xf" } }, outputs = { { name = "h", destination = "remote" } } } },
      opts = { { type = "SGD", grads = { { output = { name = "h" }, sens = "h" } }, hyper_parameters = {
        learning_rate = 0.1 / factor } } } } }
    local Loss = nn.Cell:extend("Loss")
    function Loss:init() self.net = top end
    function Loss:construct(x, h, y)
      local logits = self.net(x, h)
      return case.loss(logits, y), logits
    end
    local leader = F.FLModel { train_network = Loss(), yaml_data = { role = "leader",
      model = { train_net = { inputs = { { name = "xl" }, { name = "h", source = "remote" }, { name = "y" } },
        outputs = { { name = "loss" }, { name = "logits" } } } },
      opts = { { type = "SGD", params = { "*own.*" }, grads = { { output = { name = "loss" } } }, hyper_parameters = {
        learning_rate = 0.1 } },
        { type = "SGD", params = { { name = "*out.weight" }, "*out.bias" }, grads = { { output = { name = "loss" }, sens = 0.5 } },
          hyper_parameters = { learning_rate = 0.2 } } },
      grad_scalers = { { inputs = { { name = "h" } }, output = { name = "loss" }, sens = factor } } } }
    local out
    V.run_parties { follower = function(l) trainer(follower, l):train(1, case.batches()) end,
      leader = function(l) out = trainer(leader, l):train(1, case.batches()) end }
    t.equal(out.logits.shape, { 16, 1 })
    return out.loss:item(), bottom, top
  end
  local loss, bottom = run(1.0)
  local scaled, other = run(1024.0)
  t.near(scaled, loss, 1e-6)
  for i, p in ipairs(bottom:trainable_params()) do t.near(other:trainable_params()[i]:value(), p:value(), 1e-5) end
  t.fails({ "opts.params has '*own.weihgt'", "own.weight" }, function()
    F.FLModel { network = case.top(), loss_fn = case.loss, yaml_data = { role = "leader",
      model = { train_net = { inputs = { { name = "xl" }, { name = "h", source = "remote" }, { name = "y" } }, outputs = { {
        name = "loss" } } } },
      opts = { { type = "SGD", params = { "*own.weihgt" }, hyper_parameters = { learning_rate = 0.1 } } } } }
  end)
end)

t.test("evaluation gives metrics at the leader", function()
  local case = nets.cases.mlp
  local bottom, top = case.bottom(), case.top()
  local io_of = { inputs = { { name = "xf" } }, outputs = { { name = "h", destination = "remote" } } }
  local follower = F.FLModel { network = bottom, yaml_data = { role = "follower", model = { train_net = io_of, eval_net = io_of } } }
  local leader = F.FLModel { network = top, loss_fn = case.loss, metrics = { "mae" }, yaml_data = { role = "leader", model = {
    train_net = { inputs = { { name = "xl" }, { name = "h", source = "remote" }, { name = "y" } }, outputs = { { name = "loss" } } },
    eval_net = { inputs = { { name = "xl" }, { name = "h", source = "remote" } }, outputs = { { name = "logits" } }, gt = "y" } } } }
  local got = V.run_parties {
    follower = function(l) return trainer(follower, l):eval(case.batches()) end,
    leader = function(l) return trainer(leader, l):eval(case.batches()) end,
  }
  t.equal(got.follower, nil)
  local sum, count = 0, 0
  for _, batch in ipairs(case.batches()) do
    sum, count = sum + ops.sum(ops.abs(top(batch.xl, bottom(batch.xf)) - batch.y)):item(), count + 16
  end
  t.near(got.leader.mae, sum / count, 1e-5)
end)

t.test("numbers of few bits arrive within half a step, in few bytes, and train", function()
  local a, b = V.pair("a", "b")
  for _, x in ipairs { ms.randn(33, 7), ms.ones { 5 } * 3.25, ms.tensor({ -2.0 }, ms.float64), ms.randn(4, 3):astype(ms.float16) } do
    for bits = 1, 8 do
      for _, form in ipairs { "min_max", "bit_pack" } do
        local config = F.CompressConfig(form, bits)
        F.VerticalFederatedCommunicator({ links = { b = a }, compress_configs = { x = config } }):send_tensors("b", { x = x, y = x })
        local got = F.VerticalFederatedCommunicator({ links = { a = b } }):receive("a")
        t.equal(got.y, x)
        t.equal(got.x.shape, x.shape)
        t.equal(got.x.dtype, x.dtype)
        local wide = x:astype(ms.float64)
        local half = (ops.max(wide):item() - ops.min(wide):item()) / ((1 << bits) - 1) / 2
        assert(ops.max(ops.abs(got.x:astype(ms.float64) - wide)):item() <= half * (1 + 1e-3) + 1e-3 * (x.dtype == ms.float16 and 1 or 1e-3))
      end
    end
  end
  local case = nets.cases.mlp
  local plain = { split(case, nets.follower(case, case.bottom()), nets.leader(case, case.top()), 1) }
  local more = { compress_type = "bit_pack", bit_num = 6 }
  local few = { split(case, nets.follower(case, case.bottom(), more), nets.leader(case, case.top(), more), 1) }
  local last = #plain[1]
  assert(few[2] < plain[2] * 0.65, few[2] .. " of " .. plain[2])
  assert(few[1][last] ~= plain[1][last] and math.abs(few[1][last] - plain[1][last]) < 0.05, few[1][last])
  t.fails({ "holds nan or infinity" }, function()
    F.VerticalFederatedCommunicator({ links = { b = a }, compress_configs = { x = F.CompressConfig("min_max", 4) } }):send_tensors("b",
      { x = ms.tensor { 1.0, 0 / 0 } })
  end)
  t.fails({ "bit_num must be from 1 to 8" }, F.CompressConfig, "min_max", 9)
end)

t.test("embeddings leave as private bits, and labels are private in training", function()
  local case = nets.cases.mlp
  local function model(privacy)
    local bottom = case.bottom()
    return F.FLModel { network = bottom, optimizers = nn.SGD(bottom:trainable_params(), 0.1), yaml_data = { role = "follower",
      privacy = privacy,
      model = { train_net = { inputs = { { name = "xf" } }, outputs = { { name = "h", destination = "remote" } } } } } }
  end
  local batch = case.batches()[1]
  local plain = model():forward_one_step(batch).h
  local follower = model { embedding_dp = { eps = 60.0 } }
  local bits = follower:forward_one_step(batch).h
  t.equal(bits, ops.greater(plain, 0):astype(ms.float32))
  -- Gradients go through as if the bits were the embedding.
  follower:backward_one_step { sens = { h = ms.ones { 16, 8 } } }
  local leader = F.FLModel { network = case.top(), loss_fn = case.loss, yaml_data = { role = "leader", privacy = { label_dp = {
    eps = 0.0 } },
    model = { train_net = { inputs = { { name = "xl" }, { name = "h", source = "remote" }, { name = "y" } }, outputs = { {
      name = "loss" } } } } } }
  local seen = {}
  for _ = 1, 8 do
    local _, out = leader:backward_one_step(batch, { h = plain })
    seen[out.loss:item()] = true
  end
  assert(next(seen, next(seen)) ~= nil, "labels are drawn anew")
  t.fails({ "embedding_dp is of a follower" }, F.FLModel, { network = case.top(), loss_fn = case.loss, yaml_data = { role = "leader",
    privacy = { embedding_dp = { eps = 1.0 } }, model = { train_net = { inputs = { { name = "x" }, { name = "y" } }, outputs = { {
      name = "l" } } } } } })
end)

t.test("what does not fit is an error that says where", function()
  local case = nets.cases.mlp
  local batch = case.batches()[1]
  local follower = nets.follower(case, case.bottom())
  t.fails({ "forward_one_step", "local_data_batch has no tensor 'xf'" }, follower.forward_one_step, follower, { x = batch.xf })
  t.fails({ "backward_one_step", "no forward_one_step before" }, follower.backward_one_step, follower)
  follower:forward_one_step(batch)
  t.fails({ "sens must have 'h'" }, follower.backward_one_step, follower, batch)
  follower:forward_one_step(batch)
  t.fails({ "the gradient 'h' is of shape (2,)", "of shape (16, 8)" }, follower.backward_one_step, follower, { sens = { h = ms.ones {
    2 } } })
  local function data(change)
    local config = { role = "follower", model = { train_net = { inputs = { { name = "x" } }, outputs = { { name = "h",
      destination = "remote" } } } } }
    change(config)
    return F.FLYamlData(config)
  end
  t.fails({ "unknown key 'mdl'", "model, opts" }, data, function(c) c.mdl = {} end)
  t.fails({ "role must be 'leader' or 'follower'" }, data, function(c) c.role = "boss" end)
  t.fails({ "model.train_net.inputs[1].source must be 'local' or 'remote'" }, data,
    function(c) c.model.train_net.inputs[1].source = "here" end)
  t.fails({ "model.train_net.outputs[1].bit_num must be an integer from 1 to 8" }, data,
    function(c) c.model.train_net.outputs[1].bit_num = 9 end)
  t.fails({ "inputs has 'x' twice" }, data, function(c) c.model.train_net.inputs[2] = { name = "x" } end)
  t.fails({ "privacy has the unknown key 'tee_layer'", "enclave" }, data, function(c) c.privacy = { tee_layer = {} } end)
  t.fails({ "privacy.label_dp.eps must be a number from 0 up" }, data, function(c) c.privacy = { label_dp = { eps = -1 } } end)
  t.fails({ "cannot be read" }, F.FLYamlData, "/no/such.json")
  t.fails({ "yaml_data is missing" }, F.FLModel, { network = case.bottom() })
  t.fails({ "role is the string 'leader', and yaml_data is of a follower" }, F.FLModel, { role = "leader", network = case.bottom(),
    yaml_data = { role = "follower", model = { train_net = { inputs = { { name = "x" } }, outputs = { { name = "h" } } } } } })
  t.fails({ "there is no party 'x'; there are: b" }, function()
    F.VerticalFederatedCommunicator({ links = { b = (V.pair("a", "b")) } }):send_tensors("x", {})
  end)
  t.fails({ "'a' and 'b' both send a tensor 'h'" }, V.run_parties, {
    a = function(l) trainer(nets.follower(case, case.bottom()), l):train(1, case.batches()) end,
    b = function(l) trainer(nets.follower(case, case.bottom()), l):train(1, case.batches()) end,
    leader = function(l) trainer(nets.leader(case, case.top()), l):train(1, case.batches()) end,
  })
end)

t.test("weights of a half are saved and loaded", function()
  local case, path = nets.cases.mlp, os.tmpname() .. ".ckpt"
  local one, other = case.bottom(), nn.SequentialCell(nn.Dense(5, 16), nn.ReLU(), nn.Dense(16, 8), nn.Tanh())
  nets.follower(case, one):save_ckpt(path)
  nets.follower(case, other):load_ckpt(path)
  same_weights(one, other)
  os.remove(path)
end)

t.finish()
