-- The metamethod __call of shapes and dtypes: x:shape() and x:dtype() give what the fields x.shape and x.dtype hold. Loaded with
-- the library, before there is anything to require (interpreter/bindings/field_calls.cpp).
local is_tensor = ...

return function(field, x, ...)
  if is_tensor(x) and select("#", ...) == 0 then return field end
  local arguments, name = require "lunaria.nn.arguments", type(field) == "table" and "shape" or "dtype"
  return arguments.fail(name, ("%s is no function; as a method of its tensor it is called with a colon, x:%s()"):format(
    arguments.describe(field), name), ("x.%s is a field: without ()"):format(name))
end
