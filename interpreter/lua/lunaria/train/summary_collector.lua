-- SummaryCollector: a callback that writes what a training shows of itself, so that a page of it is complete without a further line.
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"
local base = require "lunaria.train.callback"
local callbacks = require "lunaria.train.callbacks"
local predicting = require "lunaria.nn.predicting"
local class = require "lunaria.nn.class"
local events = require "lunaria.train.events"
local lineage = require "lunaria.train.lineage"
local profile_of_step = require "lunaria.profiler.of_step"
local saved_weights = require "lunaria.train.saved_weights"
local summary_record = require "lunaria.train.summary_record"
local training_state = require "lunaria.train.training_state"

local fail, check, describe = arguments.fail, arguments.check, arguments.describe

-- The graph of the network as it predicts: dropout has none. The training goes on as if nothing had been drawn, also where the
-- network is no graph of operators.
local function draw_graph(summary, args, input)
  local restore, restore_modes = training_state.snapshot(args), predicting(args.network)
  pcall(summary.add_graph, summary, args.network, input)
  restore_modes()
  restore()
end

-- What is collected where nothing else is said; a loss landscape, which needs the weights of many steps, is not.
local defaults = { collect_metric = true, collect_graph = true, collect_train_lineage = true, collect_eval_lineage = true,
  collect_input_data = true, collect_dataset_graph = true, collect_profile = true }

-- Patterns for names of parameters, with "|" between them.
local function patterns_of(where, text)
  local list = {}
  for pattern in (text .. "|"):gmatch "([^|]*)|" do
    if pattern == "" or not pcall(string.find, "", pattern) then
      fail(where, "histogram_regular must be a Lua pattern, or several with | between them, got " .. describe(text))
    end
    list[#list + 1] = pattern
  end
  return list
end

local function specified_data(where, given, keep_default_action)
  local known = { histogram_regular = "string", collect_landscape = "table" }
  for name in pairs(defaults) do known[name] = "boolean" end
  given = arguments.options(where, given, known, "{ collect_graph = false }")
  local wanted = {}
  for name in pairs(defaults) do wanted[name] = keep_default_action end
  for name, value in pairs(given) do wanted[name] = value end
  if given.histogram_regular then wanted.histogram_regular = patterns_of(where, given.histogram_regular) end
  if given.collect_landscape then wanted.collect_landscape = saved_weights.options(where, given.collect_landscape) end
  -- The first parameters, where none are named.
  wanted.first_parameters = keep_default_action and not given.histogram_regular
  return wanted
end

-- The most records of a training beside its figures, so that a long one spends nothing on them; and of parameters whose histograms are
-- written where none are named.
local most_histograms, most_pictures, most_tensors, first_parameters = 50, 20, 20, 5

local SummaryCollector = class.define(base.Callback, "SummaryCollector",
  "summary_dir, collect_freq=10, collect_specified_data=nil, keep_default_action=true, custom_lineage_data=nil, "
    .. "collect_tensor_freq=nil, max_file_size=nil, export_options=nil",
  [[Writes what lunaria insight and TensorBoard show of a training: after the first step, every collect_freq steps and the last one the
loss and the learning rate; with them, at most 50 times in a training whose length is known, histograms of parameters, and at most 20
times the first picture of the batch; once the graph of the network, the data set's with how full its queue of finished rows was in the
first epoch, the times of the operators of one step; figures and lineage of evaluations; at the end the lineage: settings, data, last
loss, checkpoint.

summary_dir: the folder. collect_specified_data: a table with collect_metric, collect_graph, collect_train_lineage,
collect_eval_lineage, collect_input_data, collect_dataset_graph, collect_profile (true or false), histogram_regular (a Lua pattern for
names of parameters, or several with | between them; without it the first five), and collect_landscape, a table for
ms.train.SummaryLandscape, without which no weights are saved: landscape_size=40, unit="step" (or "epoch"),
create_landscape={ train = true, result = true }, num_samples=2048, intervals (lists of at least three steps or epochs; without it at
most twenty, spread over the training). keep_default_action: false leaves out all that is not in collect_specified_data.
custom_lineage_data: numbers and texts by name that are kept in the lineage. collect_tensor_freq: as collect_freq, for
ops.TensorSummary; without it at most 20 records, spread over the training. max_file_size, export_options: those of SummaryRecord. With
dataset_sink_mode, calls of sink_size steps are counted instead of steps.

  > net = ms.nn.Dense(2, 1)
  > model = ms.Model(net, ms.nn.MSELoss(), ms.nn.SGD(net:trainable_params(), 0.5))
  > only_loss = { keep_default_action = false, collect_specified_data = { collect_metric = true } }
  > collector = ms.train.SummaryCollector("/tmp/lunaria_help_collector", only_loss)
  > model:train(1, { { ms.ones { 1, 2 }, ms.ones { 1, 1 } } }, collector)
  > table.concat(ms.train.SummaryReader("/tmp/lunaria_help_collector"):tags(), " ") --> learning_rate/auto loss/auto
  > for _, name in ipairs(ms.io.list_folder("/tmp/lunaria_help_collector")) do os.remove("/tmp/lunaria_help_collector/" .. name) end
  > os.remove("/tmp/lunaria_help_collector") --> true]])

function SummaryCollector:setup(a)
  local where = "SummaryCollector"
  if type(a.summary_dir) ~= "string" or a.summary_dir == "" then
    fail(where, "summary_dir must be a path, got " .. describe(a.summary_dir))
  end
  self.summary_dir = a.summary_dir
  self.collect_freq = check.positive(where, "collect_freq", a.collect_freq)
  self.keep_default_action = check.boolean(where, "keep_default_action", a.keep_default_action)
  self.wanted = specified_data(where, a.collect_specified_data, self.keep_default_action)
  self.custom_lineage_data = a.custom_lineage_data
  if a.custom_lineage_data ~= nil then lineage.user_info(where, a.custom_lineage_data) end
  if a.collect_tensor_freq ~= nil then
    self.collect_tensor_freq = check.positive(where, "collect_tensor_freq", a.collect_tensor_freq)
  end
  if a.max_file_size ~= nil then self.max_file_size = check.positive(where, "max_file_size", a.max_file_size) end
  events.exports(where, a.export_options)
  self.export_options = a.export_options
end

local function remember(self, message)
  self.lineage = self.lineage or lineage.create("SummaryCollector", self.summary_dir)
  self.lineage.write(message)
end

local function close_lineage(self)
  if self.lineage then self.lineage.close() end
  self.lineage = nil
end

-- The parameters whose histograms are written, by name.
local function shown_parameters(self, args)
  local list, wanted = {}, self.wanted
  for name, parameter in args.network:parameters_and_names() do
    if wanted.histogram_regular then
      for _, pattern in ipairs(wanted.histogram_regular) do
        if name:find(pattern) then
          list[#list + 1] = { name .. "/auto", parameter }
          break
        end
      end
    elseif wanted.first_parameters and parameter.requires_grad ~= false and #list < first_parameters then
      list[#list + 1] = { name .. "/auto", parameter }
    end
  end
  return list
end

-- How many steps a training has, or nil.
local function total_steps(args) return args.batch_num and args.batch_num * (args.epoch_num - (args.initial_epoch or 0)) end

-- The step whose operators are timed: late enough to be compiled in graph mode.
local timed_step = 8

--- Called before the training.
function SummaryCollector:on_train_begin(run)
  -- What a training left open that ended with an error.
  if self.summary then self.summary:close() end
  close_lineage(self)
  self.profile, self.has_begun, self.last_step, self.ended = nil, false, nil, nil
  local args, wanted = run:original_args(), self.wanted
  self.summary = summary_record.SummaryRecord { log_dir = self.summary_dir, max_file_size = self.max_file_size,
    export_options = self.export_options }
  self.steps, self.collections, self.is_training = 0, 0, true
  self.parameters = shown_parameters(self, args)
  self.total = total_steps(args)
  self.profile_step = wanted.collect_profile and not args.dataset_sink_mode and math.min(timed_step, self.total or timed_step) or nil
  if self.custom_lineage_data then
    remember(self, { user_defined_info = lineage.user_info("SummaryCollector", self.custom_lineage_data) })
  end
  if wanted.collect_dataset_graph and lineage.is_pipeline(args.train_dataset) then
    remember(self, { dataset_graph = lineage.dataset_graph("SummaryCollector", args.train_dataset) })
    args.train_dataset._queue = {} -- the first epoch tells how full it is
  end
  self.weights = wanted.collect_landscape and saved_weights.new(self.summary_dir, wanted.collect_landscape, args, self.total) or nil
end

--- Called before a step: the first shows the network's graph and how many samples a batch has.
function SummaryCollector:on_train_step_begin(run)
  local args = run:original_args()
  if not self.has_begun then
    self.has_begun = true
    local inputs = args.train_dataset_element
    self.batch_size = lineage.batch_size_of(inputs)
    if inputs and self.wanted.collect_graph then draw_graph(self.summary, args, inputs[1]) end
  end
  if self.steps + 1 == self.profile_step then
    self.profile = profile_of_step(self.summary_dir, (ms.clock() - (self.ended or ms.clock())) / 1e9)
  end
end

-- The input of a step as a picture: values that are none of a picture's are stretched.
local function picture_of(batch)
  local x = type(batch) == "table" and batch[1]
  if not ms.is_tensor(x) or x.ndim ~= 4 or x.size == 0 then return nil end
  local channels = x.shape[2]
  if channels ~= 1 and channels ~= 3 then return nil end
  x = x[0]
  if x.dtype == ms.uint8 then return x end
  x = x:astype(ms.float32)
  local least, most = ms.ops.min(x):item(), ms.ops.max(x):item()
  if least >= 0 and most <= 1 then return x end
  if most > least then return (x - least) / (most - least) end
  return ms.ops.zeros_like(x)
end

-- Whether a collection is among `most` that are spread over all of a training. index: its number, from 0; count: how many there will
-- be, or nil, where they become rarer as their number grows.
local function is_among(most, index, count)
  if index == 0 then return true end
  if not count then return index % (1 << math.max(0, math.floor(math.log(index / most, 2)) + 1)) == 0 end
  return count <= most or index * most // count ~= (index - 1) * most // count
end

local function collect(self, args)
  local summary, wanted, step = self.summary, self.wanted, args.cur_step_num
  if wanted.collect_metric then
    local loss, rate = callbacks.loss_of(args), args.optimizer and args.optimizer:get_lr()
    if loss then summary:add_value("scalar", "loss/auto", loss) end
    if type(rate) == "table" then rate = rate[1] end
    if rate then summary:add_value("scalar", "learning_rate/auto", rate) end
  end
  -- Of steps that are sunk into one call only the last is seen: how many collections come is not known.
  local index = self.collections
  local count = self.total and not args.dataset_sink_mode and self.total // self.collect_freq + 1 or nil
  if is_among(most_histograms, index, count) then
    for _, entry in ipairs(self.parameters) do summary:add_value("histogram", entry[1], entry[2]) end
  end
  if wanted.collect_input_data and is_among(most_pictures, index, count) then
    local picture = picture_of(args.train_dataset_element)
    if picture then summary:add_value("image", "input_data/auto", picture) end
  end
  local tensors = is_among(most_tensors, index, count)
  if self.collect_tensor_freq then tensors = index == 0 or step % self.collect_tensor_freq == 0 end
  self.collections, self.last_step = index + 1, step
  summary:record(step, nil, not tensors and function(plugin) return plugin ~= "tensor" end or nil)
end

--- Called after a step.
function SummaryCollector:on_train_step_end(run)
  local args = run:original_args()
  if self.profile then
    self.profile:finish(args.cur_step_num)
    self.profile = nil
  end
  self.steps = self.steps + 1
  if self.weights then self.weights:step(args) end
  -- Steps that are sunk into one call count as one.
  local number = args.dataset_sink_mode and self.steps or args.cur_step_num
  if self.steps == 1 or number % self.collect_freq == 0 then collect(self, args) end
  if self.steps == 1 and self.wanted.collect_train_lineage then remember(self, lineage.of_training(args, self.batch_size)) end
  if self.steps + 1 == self.profile_step then self.ended = ms.clock() end
end

-- The figures of an evaluation, at the step of the training that they belong to.
local function record_figures(self, args)
  local figures = {}
  for name, value in pairs(self.wanted.collect_metric and args.eval_results or {}) do
    if math.type(value) then figures[#figures + 1] = name end
  end
  table.sort(figures)
  for _, name in ipairs(figures) do self.summary:add_value("scalar", name .. "/auto", args.eval_results[name]) end
end

--- Called after an epoch.
function SummaryCollector:on_train_epoch_end(run)
  local args = run:original_args()
  record_figures(self, args)
  if self.weights then self.weights:epoch(args) end
  self.summary:record(args.cur_step_num)
  self.summary:flush()
end

--- Called after an evaluation, also one within a training.
function SummaryCollector:on_eval_end(run)
  if not self.wanted.collect_eval_lineage then return end
  remember(self, lineage.of_evaluation(run:original_args()))
  if not self.is_training then close_lineage(self) end
end

--- Called after the training.
function SummaryCollector:on_train_end(run)
  local args = run:original_args()
  if self.steps > 0 and self.last_step ~= args.cur_step_num then collect(self, args) end
  self.summary:record(args.cur_step_num)
  self.summary:close()
  if self.weights then self.weights:close(args) end
  if self.wanted.collect_train_lineage then remember(self, lineage.of_training(args, self.batch_size)) end
  local queue = self.wanted.collect_dataset_graph and lineage.is_pipeline(args.train_dataset) and args.train_dataset._queue
  if queue and queue.fill then
    remember(self, { dataset_graph = lineage.dataset_graph("SummaryCollector", args.train_dataset, queue.fill) })
  end
  close_lineage(self)
  self.is_training = false
end

return { SummaryCollector = SummaryCollector }
