-- The follower of split_test.lua's run over two processes: address, key and the file for its weights are the arguments.
package.path = "tests/lua/?.lua;" .. package.path
local ms = require "lunaria"
if arg[4] == "graph" then ms.set_context { mode = ms.GRAPH_MODE } end
local nets = dofile "tests/lua/federated/vertical/split_nets.lua"
local case = nets.cases[arg[5]]
local links = ms.federated.vertical.connect("follower", { leader = arg[1], follower = false }, { key = arg[2], seconds = 60 })
local bottom = case.bottom()
local model = nets.follower(case, bottom)
local communicator = ms.federated.VerticalFederatedCommunicator { links = links }
-- Dropout draws as it does in the joined network.
ms.set_seed(100)
ms.federated.VFLTrainer(model, communicator):train(1, case.batches())
ms.save_checkpoint(bottom, arg[3])
