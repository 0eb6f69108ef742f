-- What is known of functions that are written in C or made by others, by the function: { declaration = a function with its
-- signature and comment, name = what it is called }.
local ms = require "lunaria"
local known = {}

local function add(declarations, real, prefix)
  for name, declaration in pairs(declarations) do
    local f = type(declaration) == "function" and real[name]
    -- Of several names of one function that of its own text.
    local full = prefix .. name
    local other = f and known[f] and known[f].name
    if f and (not other or #other > #full or (#other == #full and other < full)) then
      known[f] = { declaration = declaration, name = full }
    end
  end
end

local own, lua = require "lunaria.help.ms", require "lunaria.help.lua"
add(own, ms, "ms.")
require "lunaria.transforms"
add(require("lunaria.autodiff").declared, ms, "ms.")
add(own.json, ms.json, "ms.json.")
add(own.random, ms.random, "ms.random.")
add(own.io, ms.io, "ms.io.")
add(require "lunaria.help.tensor", ms.tensor(0.0), "x:")
for library, declarations in pairs(lua) do
  add(declarations, library == "_G" and _G or package.loaded[library] or {}, library == "_G" and "" or library .. ".")
end
return known
