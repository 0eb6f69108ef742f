-- AdversarialTraining: a defence within Model.train.
local arguments = require "lunaria.nn.arguments"
local class = require "lunaria.nn.class"
local Defense = require "lunaria.armour.defenses.adversarial".Defense
local Callback = require "lunaria.train.callback".Callback

local fail, describe = arguments.fail, arguments.describe

local AdversarialTraining = class.define(Callback, "AdversarialTraining", "defense",
  [[A callback of Model.train that trains with what a defence makes of each batch.

defense: one of ms.armour.defenses, made with the model's network; its own optimizer is not used. TradesDefense and MartDefense have a
loss of samples and their adversarial neighbours: with these the model is ms.Model(defense:loss_network(), nil, optimizer).
dataset_sink_mode and batches that are not { inputs, labels } are errors.

  > net = ms.nn.Dense(4, 3)
  > defense = ms.armour.defenses.NaturalAdversarialDefense(net)
  > model = ms.Model(net, ms.nn.CrossEntropyLoss(), ms.nn.SGD(net:trainable_params()))
  > model:train(1, { { ms.rand { 2, 4 }, ms.tensor({ 0, 2 }, ms.int32) } }, ms.armour.defenses.AdversarialTraining(defense))]])

function AdversarialTraining:setup(a)
  if not class.is_a(a.defense, Defense) then
    fail("AdversarialTraining", "defense must be one of ms.armour.defenses, got " .. describe(a.defense))
  end
  self.defense = a.defense
end

--- Called before the training: looks whether the model can be trained so. run: a RunContext.
---     > callback = ms.armour.defenses.AdversarialTraining(ms.armour.defenses.AdversarialDefense(ms.nn.Dense(4, 3)))
---     > callback:on_train_begin(ms.RunContext({ dataset_sink_mode = false }))
function AdversarialTraining:on_train_begin(run)
  if run:original_args().dataset_sink_mode then
    fail("AdversarialTraining", "each batch is changed before its step, which dataset_sink_mode leaves no place for",
      "dataset_sink_mode = false")
  end
end

--- Called before a step: puts what the defence makes of the batch in its place. run: a RunContext.
---     > callback = ms.armour.defenses.AdversarialTraining(ms.armour.defenses.AdversarialDefense(ms.nn.Dense(4, 3)))
---     > run = ms.RunContext({ train_dataset_element = { ms.ones { 2, 4 }, ms.tensor({ 0, 2 }, ms.int32) } })
---     > callback:on_train_step_begin(run)
---     > #run:original_args().train_dataset_element --> 2
function AdversarialTraining:on_train_step_begin(run)
  local args = run:original_args()
  local batch = args.train_dataset_element
  if type(batch) ~= "table" or #batch ~= 2 then
    fail("AdversarialTraining", ("a batch must be { inputs, labels }, got %d values"):format(type(batch) == "table" and #batch or 0))
  end
  args.train_dataset_element = { self.defense:adversarial(self.defense:_checked(batch[1], batch[2])) }
end

return { AdversarialTraining = AdversarialTraining }
