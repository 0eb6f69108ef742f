-- lunaria lite micro: the words of its command line.
local M = {}

M.usage = [==[
usage: lunaria lite micro MODEL [options]               write a .lite, .mindir or .onnx file as C99 for microcontrollers
  --target T              generic (any C99 compiler) or cortex-m (Arm's tools, QEMU's MPS2 board); default generic
  -o FOLDER               where net.c, weights.c, test.c and a makefile go (default: the name of MODEL without its ending)
  --inputShape S          shapes of inputs of a .mindir or .onnx file: "name:1,28,28,1"
prints the exact number of bytes of working memory that net_run() needs]==]

local function fail(message, ...) error("lunaria lite micro: " .. message:format(...) .. "\n  hint: lunaria lite micro --help", 0) end

function M.run(words)
  local model, options = nil, {}
  local names = { ["-o"] = "outputDir", ["--target"] = "target", ["--inputShape"] = "inputShape" }
  local i = 1
  while i <= #words do
    local word = words[i]
    local name, value = word:match "^(%-%-%w+)=(.*)$"
    name = name or word
    if names[name] then
      if not value then
        i = i + 1
        value = words[i] or fail("option %s needs an argument", word)
      end
      options[names[name]] = value
    elseif word:find "^%-" or model then
      fail("'%s' is not understood", word)
    else
      model = word
    end
    i = i + 1
  end
  if not model then fail "the model is missing" end
  options.outputDir = options.outputDir or model:match "([^/]*)%.%w+$" or fail("-o FOLDER is missing")
  print(require "lunaria".lite.micro(model, options).text)
end

return M
