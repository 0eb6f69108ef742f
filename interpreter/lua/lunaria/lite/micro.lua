-- ms.lite.micro: a light model as C99 for processors without an operating system.
local core = require "lunaria.lite_micro_core"
local arguments = require "lunaria.nn.arguments"
local convert = require "lunaria.lite.convert"

local function fail(message, ...) arguments.fail("lite.micro", message:format(...)) end

local M = {}

local known = { outputDir = true, target = true, inputs = true, inputShape = true, names = true, outputs = true }

--- Writes a network as C99. model: a light file (.lite), or what ms.lite.convert takes. Options: outputDir, the folder;
--- target "generic" or "cortex-m" (with the start of a board that QEMU simulates); inputs, a sample for the test program
--- (random numbers where it is absent). Returns a table: files, arena (the exact number of bytes of working memory), live (the
--- most that are in use at once), weights (bytes), and text.
---     > folder = os.tmpname() .. ".net"
---     > ms.lite.micro(ms.nn.Dense(4, 2), { inputs = { ms.ones { 1, 4 } }, outputDir = folder }).files[2] --> net.c
function M.micro(model, options)
  options = options or {}
  for name in pairs(options) do
    if not known[name] then fail("there is no option '%s'", tostring(name)) end
  end
  if not options.outputDir then fail "the folder is missing: { outputDir = \"net\" }" end
  local path, temporary = model, nil
  if type(model) ~= "string" or not model:find "%.lite$" then
    temporary = os.tmpname()
    path = temporary
    local good, why = pcall(convert.convert, model, { outputFile = temporary, inputs = options.inputs, inputShape = options.inputShape,
      names = options.names, outputs = options.outputs })
    if not good then
      os.remove(temporary)
      error(why, 0)
    end
  end
  local good, made = pcall(core.micro, path, { target = options.target, inputs = options.inputs, folder = options.outputDir,
    title = type(model) == "string" and model:match "[^/]*$" or "A network in memory" })
  if temporary then os.remove(temporary) end
  if not good then error(made, 0) end
  made.text = ("%s: %d files, arena %d bytes (largest live set %d), weights %d bytes"):format(options.outputDir, #made.files,
    made.arena, made.live, made.weights)
  return made
end

return M
