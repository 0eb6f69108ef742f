-- Classes of the library: cells, metrics, callbacks, schedulers. A class is the metatable of its objects and is called to make
-- one; users extend it:
--
--     local Mine = ms.train.Metric:extend("Mine")
--     function Mine:init() self.sum = 0 end
local arguments = require "lunaria.nn.arguments"

local function new(class, ...)
  local object = setmetatable({}, class)
  object:init(...)
  return object
end

local function shown(class)
  local signature = rawget(class, "_signature")
  return ("class %s(%s)"):format(class._name, signature and signature.text or rawget(class, "_parameters") or "...")
end

-- Makes a table a class, which has what its parent has; make(class, ...) makes its objects. _called: what messages call them,
-- beside the name of the class.
local function make_class(class, parent, make)
  rawset(class, "_is_class", true)
  if parent then rawset(class, "_called", parent._called) end
  class.__index = class
  return setmetatable(class, { __index = parent, __call = make or new, __tostring = shown, __name = "class" })
end

-- A class of that name that inherits from another one; `example` is how messages show what to write.
local function extend(parent, name, example)
  if type(parent) ~= "table" or not rawget(parent, "_is_class") then
    arguments.fail("extend", ("is called on a class, as %s, got %s"):format(example, arguments.describe(parent)))
  elseif name ~= nil and type(name) ~= "string" then
    arguments.fail("extend", "the name of the class must be a string, got " .. arguments.describe(name))
  end
  local class = { _name = name or parent._name }
  -- Lua looks for these in the metatable itself.
  for key, value in pairs(parent) do
    if type(key) == "string" and key:sub(1, 2) == "__" then class[key] = value end
  end
  return make_class(class, parent, getmetatable(parent).__call)
end

local Object = make_class { _name = "Object", _called = "object" }

--- Called with the arguments of the class to set up a new object; yours overrides it.
function Object:init() end

function Object.__tostring(object)
  return getmetatable(object)._name .. "<>"
end

--- A class of your own that inherits from this one; its method init(self, ...) gets the arguments of the class.
function Object:extend(name) return extend(self, name, "ms.train.Metric:extend(\"Mine\")") end

-- A class whose constructor's arguments are given as text and bound by name before setup(self, a) is called, so that
-- init(self, ...) of a class that extends it can call Class.init(self, ...) with arguments as users write them.
local function define(parent, name, signature, doc)
  local class = (parent or Object):extend(name)
  class._signature = arguments.signature(signature)
  class._doc = doc
  function class:init(...)
    class.setup(self, arguments.bind(name, class._signature, ...))
  end
  return class
end

--- Whether a value is an object of the class or of one that extends it.
local function is_a(value, class)
  local meta = type(value) == "table" and getmetatable(value)
  while type(meta) == "table" do
    if meta == class then return true end
    local parent = getmetatable(meta)
    meta = type(parent) == "table" and parent.__index
  end
  return false
end

return { Object = Object, make_class = make_class, extend = extend, define = define, is_a = is_a }
