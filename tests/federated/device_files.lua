-- The files of a party without Lua: device_files.lua FOLDER SEED, with the network and the data of party.lua for that seed.
local ms = require "lunaria"

local folder, seed = arg[1], arg[2]
local party = assert(loadfile "tests/federated/party.lua")(seed)
local optimizer = ms.nn.SGD(party.net:trainable_params(), 0.1)
ms.lite.convert_training(party.net, party.loss_fn, optimizer, { inputs = party.data[1], outputFile = folder .. "/model.lite" })
for k, name in ipairs { "data", "labels" } do
  local file <close> = assert(io.open(("%s/%s-%s.bin"):format(folder, name, seed), "wb"))
  for _, batch in ipairs(party.data) do
    for _, number in ipairs(batch[k]:reshape({ -1 }):tolist()) do file:write(string.pack("<f", number)) end
  end
end
