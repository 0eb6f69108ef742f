-- ms.JitConfig: options for compiling, as MindSpore's programs keep them: for cell:set_jit_config and ms.jit.
local arguments = require "lunaria.nn.arguments"
local class = require "lunaria.nn.class"

local check = arguments.check

local JitConfig = class.define(nil, "JitConfig",
  "jit_level=\"\", exc_mode=\"auto\", jit_syntax_level=\"\", debug_level=\"RELEASE\", infer_boost=\"off\"",
  [[Options for compiling, for net:set_jit_config(config) and ms.jit(f, { jit_config = config }). jit_level: "O0" (operators one by one),
"O1" (compiled together); "" is "O1". jit_syntax_level: "STRICT": what cannot be compiled as a whole is an error, "LAX" or "": Lua does
it. exc_mode, debug_level, infer_boost: "auto", "RELEASE" and "off" are what there is.

  > ms.JitConfig({ jit_level = "O0" }).jit_level --> O0]])

function JitConfig:setup(a)
  local name = "JitConfig"
  self.jit_level = check.choice(name, "jit_level", a.jit_level, { "", "O0", "O1" })
  self.jit_syntax_level = check.choice(name, "jit_syntax_level", a.jit_syntax_level, { "", "LAX", "STRICT" })
  self.exc_mode = check.choice(name, "exc_mode", a.exc_mode, { "auto" })
  self.debug_level = check.choice(name, "debug_level", a.debug_level, { "RELEASE" })
  self.infer_boost = check.choice(name, "infer_boost", a.infer_boost, { "off" })
end

--- The same as options for ms.jit.
---     > ms.JitConfig({ jit_syntax_level = "STRICT" }):options().fullgraph --> true
function JitConfig:options()
  return { jit_level = self.jit_level ~= "" and self.jit_level or nil, fullgraph = self.jit_syntax_level == "STRICT" or nil }
end

return { JitConfig = JitConfig }
