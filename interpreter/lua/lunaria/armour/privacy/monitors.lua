-- Monitors: callbacks that count what a private training costs and end it before the step that would pass the budget. Their history is part
-- of a training's state, so that a training that is gone on with has spent what it had spent.
local ms = require "lunaria"
local accountants = require "lunaria.armour.privacy.accountants"
local arguments = require "lunaria.nn.arguments"
local callback = require "lunaria.train.callback"
local class = require "lunaria.nn.class"
local decays = require "lunaria.armour.privacy.noise".decays
local say = require "lunaria.progress_line".print

local fail, check, describe = arguments.fail, arguments.check, arguments.describe

local PrivacyMonitor = callback.Callback:extend("PrivacyMonitor")
PrivacyMonitor._called = "monitor"

local function setup(self, name, a, mechanism, signature)
  if a.noise_decay_mode == nil then arguments.without_effect(name, signature, a, { "noise_decay_rate" }, "without noise_decay_mode") end
  if a.target_eps ~= nil and a.max_delta ~= nil then
    arguments.without_effect(name, signature, a, { "max_eps", "target_delta" }, "beside max_delta and target_eps, which are the budget")
  end
  self.num_samples = check.positive(name, "num_samples", a.num_samples)
  self.batch_size = check.number_positive(name, "batch_size", a.batch_size) + 0.0
  if self.batch_size > self.num_samples then
    fail(name, ("batch_size is %g, and there are %d samples"):format(self.batch_size, self.num_samples))
  end
  self.sample_rate = self.batch_size / self.num_samples
  if a.initial_noise_multiplier ~= nil then
    self.initial_noise_multiplier = check.number_positive(name, "initial_noise_multiplier", a.initial_noise_multiplier) + 0.0
  end
  if (a.max_delta == nil) ~= (a.target_eps == nil) then fail(name, "max_delta and target_eps are given together or not at all") end
  -- delta(target_eps) <= max_delta says the same as epsilon(max_delta) <= target_eps.
  self.max_eps = check.number_positive(name, "max_eps", a.target_eps or a.max_eps) + 0.0
  self.target_delta = check.number_positive(name, "target_delta", a.max_delta or a.target_delta) + 0.0
  if self.target_delta >= 1 then fail(name, ("target_delta must be below 1, got %g"):format(self.target_delta)) end
  if a.noise_decay_mode ~= nil then
    self.noise_decay_mode = check.choice(name, "noise_decay_mode", a.noise_decay_mode, { "Time", "Step", "Exp" })
    self.noise_decay_rate = check.rate(name, "noise_decay_rate", a.noise_decay_rate) + 0.0
    if not self.initial_noise_multiplier then fail(name, "noise_decay_mode needs initial_noise_multiplier") end
  end
  self.per_print_times = check.not_negative(name, "per_print_times", a.per_print_times)
  if check.boolean(name, "dataset_sink_mode", a.dataset_sink_mode) then
    fail(name, "dataset_sink_mode must be false: a training that sinks its steps could not be stopped before one of them")
  end
  if a.sampling ~= nil then self.sampling = check.choice(name, "sampling", a.sampling, { "poisson", "fixed" }) end
  self.made = { mechanism = mechanism, orders = a.orders }
  self.accountant = accountants.Accountant(self.made)
  self.steps = 0
end

-- The noise multiplier before a step, from 0, by the monitor's own settings; nil where it has none.
function PrivacyMonitor:_planned(step)
  local first = self.initial_noise_multiplier
  if not first or not self.noise_decay_mode then return first end
  return decays[self.noise_decay_mode](first, self.noise_decay_rate, step)
end

-- What a step costs, from 0; nil for a leaf of a tree that was paid for.
function PrivacyMonitor:_event(step)
  local tree = self._mechanism and self._mechanism.is_tree and self._mechanism
  if tree then
    if step % tree.leaves ~= 0 then return nil end
    return { mechanism = "tree", noise_multiplier = tree.initial_noise_multiplier, leaves = tree.leaves,
      participations = tree.participations, separation = tree.separation }
  end
  local sigma
  if self._private then
    sigma = self._private:noise_multiplier(self._mechanism.step + step - self.steps)
  elseif self._mechanism then
    sigma = self._mechanism:noise_multiplier(self._mechanism.step + step - self.steps)
  else
    sigma = self:_planned(step)
  end
  return { noise_multiplier = sigma, sample_rate = self.sample_rate, sampling = self.sampling or "poisson" }
end

-- Whether `count` more steps are within the budget. The noise does not grow with the steps, so that the last one's stands for all.
function PrivacyMonitor:_fits(count)
  local event = self:_event(self.steps + count - 1)
  if not event then return true end
  local most = event.mechanism == "tree" and 1 or count
  return self.accountant:steps_left(event, self.max_eps, self.target_delta, most) >= most
end

-- How many steps can be made without another look; 0 where the next one would pass the budget.
function PrivacyMonitor:_look_ahead()
  local first = self:_event(self.steps)
  if not first then return 1 end
  if first.mechanism == "tree" then return self:_fits(1) and 1 or 0 end
  local last = self:_event(self.steps + 9999)
  -- Where the noise stays as it is, one question tells all.
  if last.noise_multiplier == first.noise_multiplier then
    return self.accountant:steps_left(first, self.max_eps, self.target_delta, math.max(1, math.min(10000, self._most)))
  end
  local count = 256
  while count > 0 and not self:_fits(count) do count = count // 2 end
  return count
end

local function tell(name, text) say(name .. ": " .. text) end

function PrivacyMonitor:_check_data(args)
  local name = getmetatable(self)._name
  local data, private = args.train_dataset, self._private
  local is_poisson = class.is_a(data, ms.dataset.PoissonSampler)
  if is_poisson and math.abs(data.sample_rate - self.sample_rate) > 1e-9 * self.sample_rate then
    fail(name, ("batch_size / num_samples is %g, and the data are drawn with the rate %g"):format(self.sample_rate, data.sample_rate),
      ("num_samples = %d, batch_size = %g"):format(data.num_rows, data.expected_batch_size))
  end
  if not self.sampling then self.sampling = (is_poisson or not private) and "poisson" or "fixed" end
  if self.sampling == "poisson" and private and not is_poisson then
    fail(name, "sampling = 'poisson' was said, and the batches are not drawn by a ms.dataset.PoissonSampler")
  end
end

--- Looks at the training that begins: at its noise and at its batches. run: a RunContext.
function PrivacyMonitor:on_train_begin(run)
  local name, args = getmetatable(self)._name, run:original_args()
  if args.dataset_sink_mode then fail(name, "the training sinks its steps and could not be stopped: dataset_sink_mode = false") end
  local network, optimizer = args.train_network, args.optimizer
  self._private = network and network.noise_mech and network or nil
  self._mechanism = self._private and network.noise_mech or optimizer and optimizer.noise_mech or nil
  if not self._mechanism and not self.initial_noise_multiplier then
    fail(name, "the training adds no noise that the monitor knows of", "train a DPModel, or say initial_noise_multiplier")
  end
  if self._mechanism and not self._mechanism.is_tree then
    local planned, real = self:_planned(self.steps), self:_event(self.steps).noise_multiplier
    if planned and math.abs(planned - real) > 1e-9 * real then
      fail(name, ("the monitor counts the noise multiplier %g, and the training has %g"):format(planned, real),
        "leave initial_noise_multiplier out: the training's own is counted")
    end
  end
  self:_check_data(args)
  self._left, self._total = nil, args.batch_num and args.batch_num * args.epoch_num or math.huge
end

--- Whether the budget allows the first step is asked here: what restores a training has restored the history by now. run: a RunContext.
function PrivacyMonitor:on_train_epoch_begin(run)
  if self._left then return end
  -- Beyond the end of the training there is nothing to ask for.
  self._most = self._total - run:original_args().cur_step_num
  self._left = self:_look_ahead()
  if self._left == 0 then self:_stop(run) end
  self._next = self:_event(self.steps)
end

function PrivacyMonitor:_stop(run)
  self.stopped = true
  run:request_stop()
  local spent = ("epsilon is %.4f at delta %g, at most %g is allowed"):format(self:epsilon(), self.target_delta, self.max_eps)
  tell(getmetatable(self)._name, ("stops before step %d, which would pass the budget: %s"):format(self.steps + 1, spent))
end

--- Counts a step, and ends the training where the next one would pass the budget. run: a RunContext.
function PrivacyMonitor:on_train_step_end(run)
  if self._next then self.accountant:step(self._next) end
  self.steps, self._left = self.steps + 1, self._left - 1
  if self.per_print_times > 0 and self.steps % self.per_print_times == 0 then
    tell(getmetatable(self)._name, ("step %d, epsilon %.4f at delta %g"):format(self.steps, self:epsilon(), self.target_delta))
  end
  if self._left <= 0 then
    self._most = self._total - run:original_args().cur_step_num
    self._left = self:_look_ahead()
    if self._left == 0 then self:_stop(run) end
  end
  self._next = self:_event(self.steps)
end

--- The epsilon of the steps so far. delta: by default the monitor's.
---     > ms.armour.privacy.diff_privacy.RDPMonitor(1000, 10):epsilon() --> 0.0
function PrivacyMonitor:epsilon(delta)
  if self.steps == 0 then return 0.0 end
  return self.accountant:epsilon(delta or self.target_delta)
end

--- How many whole epochs the budget allows from the beginning, with the noise that the monitor was told (initial_noise_multiplier); of
--- noise that decays an epoch counts with the least that it has.
---     > options = { initial_noise_multiplier = 1.1, max_eps = 2.4, target_delta = 1e-5 }
---     > ms.armour.privacy.diff_privacy.RDPMonitor(60000, 256, options):max_epoch_suggest() --> 51
function PrivacyMonitor:max_epoch_suggest()
  local name = getmetatable(self)._name
  if not self.initial_noise_multiplier then fail(name, "max_epoch_suggest needs initial_noise_multiplier") end
  local per_epoch = math.ceil(1 / self.sample_rate - 1e-9)
  local fresh = accountants.Accountant(self.made)
  local function event(step)
    return { noise_multiplier = self:_planned(step), sample_rate = self.sample_rate, sampling = self.sampling or "poisson" }
  end
  if not self.noise_decay_mode then
    return fresh:steps_left(event(0), self.max_eps, self.target_delta, 1000 * per_epoch) // per_epoch
  end
  local epochs = 0
  while epochs < 1000 do
    local of_epoch = event((epochs + 1) * per_epoch - 1)
    if fresh:steps_left(of_epoch, self.max_eps, self.target_delta, per_epoch) < per_epoch then break end
    of_epoch.steps = per_epoch
    fresh:step(of_epoch)
    epochs = epochs + 1
  end
  return epochs
end

--- The history, for a checkpoint.
---     > ms.armour.privacy.diff_privacy.RDPMonitor(1000, 10):state_dict().steps --> 0
function PrivacyMonitor:state_dict() return { steps = self.steps, history = self.accountant:state() } end

--- Takes up the history that state_dict gave: what was spent then is spent. state: that table.
---     > monitor = ms.armour.privacy.diff_privacy.RDPMonitor(1000, 10)
---     > monitor:load_state_dict(monitor:state_dict())
function PrivacyMonitor:load_state_dict(state)
  self.accountant:restore(state.history)
  self.steps, self._left = state.steps, nil
end

local signature = "num_samples, batch_size, initial_noise_multiplier=nil, max_eps=10.0, target_delta=1e-3, max_delta=nil, target_eps=nil, "
  .. "ORDERSnoise_decay_mode=nil, noise_decay_rate=6e-4, per_print_times=50, dataset_sink_mode=false, sampling=nil"

local options = [[num_samples: of the training data. batch_size: the (expected) size of a batch. initial_noise_multiplier, noise_decay_mode
("Time", "Step", "Exp"), noise_decay_rate: the noise where the training is no DPModel; by default it is what the training has. max_eps,
target_delta: the budget; or max_delta at target_eps. per_print_times: tells what was spent after so many steps, 0: never.
sampling: "poisson", or "fixed" for batches of one size; by default what the training has. dataset_sink_mode: false.]]

local function define(name, mechanism, own, doc, example)
  local monitor = class.define(PrivacyMonitor, name, (signature:gsub("ORDERS", own or "")), doc .. "\n\n" .. options .. "\n\n" .. example)
  function monitor:setup(a) setup(self, name, a, mechanism, monitor._signature) end
  return monitor
end

local function example(name) return ([[
  > dp = ms.armour.privacy.diff_privacy
  > monitor = dp.%s(64, 8, { max_eps = 1.0, target_delta = 1e-3, per_print_times = 0 })
  > net = ms.nn.Dense(2, 3)
  > options = { noise_mech = dp.NoiseGaussianRandom(1.0, 4.0) }
  > model = dp.DPModel(net, ms.nn.CrossEntropyLoss(), ms.nn.SGD(net:trainable_params()), options)
  > model:train(1, ms.dataset.PoissonSampler({ ms.ones { 64, 2 }, ms.zeros({ 64 }, ms.int64) }, 8 / 64), monitor)
  > monitor.steps --> 8
  > monitor:epsilon() < 1.0 --> true]]):format(name) end

local RDPMonitor = define("RDPMonitor", "rdp", "orders=nil, ", [[A callback that counts the privacy budget by Rényi divergences (Mironov
2017) and ends the training before the step that would pass it. orders: of the divergences, numbers above 1.]], example "RDPMonitor")
local ZCDPMonitor = define("ZCDPMonitor", "zcdp", nil, [[A callback that counts the privacy budget by concentrated differential privacy
(Bun and Steinke 2016), and ends the training before the step that would pass it.]], example "ZCDPMonitor")
local PRVMonitor = define("PRVMonitor", "prv", nil, [[A callback that counts the privacy budget by the distribution of the privacy loss
itself (Gopi and others 2021), the tightest of the three, and ends the training before the step that would pass it.]], example "PRVMonitor")

local monitors = { rdp = RDPMonitor, zcdp = ZCDPMonitor, prv = PRVMonitor }

local PrivacyMonitorFactory = class.define(nil, "PrivacyMonitorFactory", "",
  [[Monitors by name: create("rdp", num_samples, batch_size, { ... }) gives an RDPMonitor, "zcdp" a ZCDPMonitor, "prv" a PRVMonitor.

  > monitor = ms.armour.privacy.diff_privacy.PrivacyMonitorFactory():create("prv", 60000, 256, { max_eps = 2.7, target_delta = 1e-5 })
  > monitor.max_eps --> 2.7]])
function PrivacyMonitorFactory:setup() end -- luacheck: ignore 212

--- A monitor. policy: "rdp", "zcdp" or "prv"; what follows are its arguments.
---     > ms.armour.privacy.diff_privacy.PrivacyMonitorFactory():create("rdp", 1000, 10).sample_rate --> 0.01
function PrivacyMonitorFactory:create(policy, ...) -- luacheck: ignore 212
  local monitor = monitors[policy]
  if not monitor then fail("PrivacyMonitorFactory", "policy must be 'rdp', 'zcdp' or 'prv', got " .. describe(policy)) end
  return monitor(...)
end

return { PrivacyMonitor = PrivacyMonitor, RDPMonitor = RDPMonitor, ZCDPMonitor = ZCDPMonitor, PRVMonitor = PRVMonitor,
  PrivacyMonitorFactory = PrivacyMonitorFactory }
