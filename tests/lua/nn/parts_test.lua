-- Cells that call a network with parts of its inputs, the reducer of gradients, and an end of training that is asked for.
package.path = "tests/lua/?.lua;" .. package.path
local t = require "harness"
local ms = require "lunaria"
local nn = ms.nn

local net = nn.WithLossCell(nn.Dense(3, 2), nn.MSELoss())
local x, y = ms.randn { 6, 3 }, ms.randn { 6, 2 }
local function part(v, i, rows) return v[{ ms.slice(i * rows, (i + 1) * rows) }] end

t.test("results of parts are added up, or their mean is taken", function()
  for _, count in ipairs { 1, 2, 3, 6 } do
    local sum = 0
    for i = 0, count - 1 do sum = sum + net(part(x, i, 6 // count), part(y, i, 6 // count)):item() end
    t.near(nn.MicroBatchInterleaved(net, count)(x, y), sum, 1e-5)
    t.near(nn.PipelineCell(net, count)(x, y), sum, 1e-5)
    t.near(nn.GradAccumulationCell(net, count)(x, y), sum / count, 1e-5)
  end
  for name in pairs { MicroBatchInterleaved = 1, PipelineCell = 1, GradAccumulationCell = 1 } do
    t.fails({ name .. ": input 1 must have a number of rows that 4 divides" }, nn[name](net, 4), x, y)
    t.fails({ name, "network must be a cell" }, nn[name], 3, 2)
    t.fails({ name, "missing argument 1" }, nn[name](net, 2))
  end
  t.fails({ "PipelineCell", "stage_config must be a table" }, nn.PipelineCell, net, 2, { stage_config = 3 })
end)

t.test("a layer is called with every step along an axis", function()
  local each, steps = nn.TimeDistributed(nn.Dense(3, 2), 1), ms.randn { 4, 5, 3 }
  t.equal(each(steps).shape, ms.ones({ 4, 5, 2 }).shape)
  t.near(each(steps)[{ ms.slice(), 2 }], each.layer(steps[{ ms.slice(), 2 }]), 1e-6)
end)

t.test("gradients of one device are the sums of all", function()
  local params = net:trainable_params()
  local grads = { ms.ones { 2, 3 }, ms.ones { 2 } }
  t.near(nn.DistributedGradReducer(params)(grads)[1], grads[1], 0)
  t.near(nn.DistributedGradReducer(params, true, 4)(grads)[2], { 0.25, 0.25 }, 0)
  t.fails({ "DistributedGradReducer: a table of 2 gradients is expected, got one of 1" }, nn.DistributedGradReducer(params), { grads[1] })
  t.fails({ "DistributedGradReducer", "parameters must be a table of parameters" }, nn.DistributedGradReducer, {})
end)

t.test("a signal or a file ends a training and saves the network", function()
  local folder = os.tmpname()
  os.remove(folder)
  ms.io.make_folder(folder)
  for _, way in ipairs { "signal", "file" } do
    local dense = nn.Dense(3, 2)
    local model = ms.Model(dense, nn.MSELoss(), nn.SGD(dense:trainable_params(), 0.01))
    local steps, config = 0, folder .. "/config.json"
    local leaving = ms.train.OnRequestExit { directory = folder, file_name = way, sig = 10, config_file = config }
    local asks = ms.train.LambdaCallback { on_train_step_end = function()
      steps = steps + 1
      if steps ~= 2 then return end
      if way == "signal" then
        local status <close> = assert(io.open("/proc/self/stat"))
        os.execute("kill -USR1 " .. status:read("n"))
      else
        local file <close> = assert(io.open(config, "w"))
        file:write [[{"GracefulExit": 1}]]
      end
    end }
    model:train(3, { { x, y }, { x, y }, { x, y } }, { asks, leaving })
    t.equal(steps, 2)
    t.near(ms.load_checkpoint(folder .. "/" .. way .. "_train.ckpt").weight, dense.weight, 0)
    t.near(ms.load_mindir(folder .. "/" .. way .. "_train.mindir")(x), dense(x), 1e-6)
    os.remove(config)
  end
  t.fails({ "OnRequestExit", "file_name must be a string" }, ms.train.OnRequestExit, { file_name = "" })
  t.fails({ "signal_came" }, ms.io.signal_came, 9)
  os.execute("rm -r '" .. folder .. "'")
end)

t.finish()
