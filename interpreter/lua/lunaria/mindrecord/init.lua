-- ms.mindrecord: MindRecord files without a pipeline.
local arguments = require "lunaria.nn.arguments"
local reader = require "lunaria.mindrecord.reader"

local mindrecord = { FileWriter = require "lunaria.mindrecord.writer", FileReader = reader.FileReader, MindPage = reader.MindPage }
local secret = require "lunaria.mindrecord.secret"
for _, name in ipairs { "set_enc_key", "set_enc_mode", "set_dec_mode" } do mindrecord[name] = secret[name] end
for name, converter in pairs(require "lunaria.mindrecord.convert") do mindrecord[name] = converter end

return setmetatable(mindrecord, {
  __index = function(_, name)
    local names = {}
    for known in pairs(mindrecord) do names[#names + 1] = known end
    arguments.fail("ms.mindrecord", ("there is no name '%s'"):format(tostring(name)), arguments.nearest(tostring(name), names))
  end,
})
