-- Classes of the library that are no cells: metrics, callbacks, schedulers. A class is the metatable of its objects and is
-- called to make one; users extend it as they extend nn.Cell:
--
--     local Mine = ms.train.Metric:extend("Mine")
--     function Mine:init() self.sum = 0 end
local arguments = require "lunaria.nn.arguments"

local Class = {}

function Class.__call(class, ...)
  local object = setmetatable({}, class)
  object:init(...)
  return object
end

function Class.__tostring(class)
  local signature = rawget(class, "_signature")
  return ("class %s(%s)"):format(class._name, signature and signature.text or rawget(class, "_parameters") or "...")
end

local Object = { _name = "Object", _is_class = true }
Object.__index = Object
setmetatable(Object, { __call = Class.__call, __tostring = Class.__tostring, __name = "class" })

--- Called with the arguments of the class to set up a new object; yours overrides it.
function Object:init() end

function Object.__tostring(object)
  return getmetatable(object)._name .. "<>"
end

--- A class of your own that inherits from this one; its method init(self, ...) gets the arguments of the class.
function Object:extend(name)
  if not rawget(self, "_is_class") then
    arguments.fail("extend", "is called on a class, as ms.train.Metric:extend(\"Mine\"), got " .. arguments.describe(self))
  elseif name ~= nil and type(name) ~= "string" then
    arguments.fail("extend", "the name of the class must be a string, got " .. arguments.describe(name))
  end
  local class = { _name = name or self._name, _is_class = true }
  for key, value in pairs(self) do
    if type(key) == "string" and key:sub(1, 2) == "__" then class[key] = value end
  end
  class.__index = class
  return setmetatable(class, { __index = self, __call = Class.__call, __tostring = Class.__tostring, __name = "class" })
end

--- A class whose constructor's arguments are given as text and bound by name before setup(self, a) is called.
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

return { Object = Object, define = define, is_a = is_a }
