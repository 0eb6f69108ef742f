-- The weights of a model under names in a fixed order. What is aggregated is also one flat vector, in which rules of aggregation and of
-- training are written.
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"
local cells = require "lunaria.nn.cell"
local class = require "lunaria.nn.class"

local ops = ms.ops
local fail, check, describe = arguments.fail, arguments.check, arguments.describe

local FeatureMap = class.Object:extend("FeatureMap")
FeatureMap._called = "feature map"
FeatureMap._parameters = "source=nil"
FeatureMap._doc = [[The weights of a model: tensors under names in a fixed order. map[name] is the tensor; a name that is also a
method's is
read by map:get(name). Tensors are copied in and must not be written to.

source: a cell, whose parameters come in their order; a table from names to tensors, in alphabetical order; a list of pairs
{ name, tensor }; another feature map; a text that map:bytes() gave; nil for an empty one. Integer tensors are not aggregated.

  > map = ms.federated.FeatureMap(ms.nn.Dense(2, 3))
  > table.concat(map:names(), " ") --> weight bias
  > map:vector().shape --> (9,)]]

FeatureMap.__index = function(map, key)
  local method = FeatureMap[key]
  if method ~= nil then return method end
  local feature = rawget(map, "_places")[key]
  return feature and feature.tensor
end

function FeatureMap.__tostring(map)
  return ("FeatureMap<%d features, %d numbers aggregated>"):format(#map._features, map:size())
end

-- A tensor of its own: parameters go on to be trained, and are no plain tensors.
local function kept(tensor) return ms.is_parameter(tensor) and tensor:copy() or tensor + 0 end

local function of_cell(map, cell)
  for name, parameter in cell:parameters_and_names() do
    map:add_feature(name, parameter, { require_aggr = ops.is_floating_point(parameter) })
  end
end

local function of_map(map, other)
  for _, feature in ipairs(other._features) do
    map:add_feature(feature.name, feature.tensor, { require_aggr = feature.require_aggr, frozen = feature.frozen })
  end
end

local function of_bytes(map, bytes)
  local features, text = require("lunaria.federated_server_core").unpack(bytes)
  local frozen = ms.json.decode(text)
  for _, feature in ipairs(features) do
    map:add_feature(feature.name, feature.tensor, { require_aggr = feature.aggregated, frozen = frozen[feature.name] })
  end
end

local function of_table(map, source)
  local list = {}
  if source[1] ~= nil then
    for i, pair in ipairs(source) do
      if type(pair) ~= "table" or getmetatable(pair) ~= nil or #pair ~= 2 then
        fail("FeatureMap", ("element %d of the list must be { name, tensor }, got %s"):format(i, describe(pair)))
      end
      list[i] = pair
    end
  else
    for name, tensor in pairs(source) do list[#list + 1] = { name, tensor } end
    table.sort(list, function(a, b) return tostring(a[1]) < tostring(b[1]) end)
  end
  for _, pair in ipairs(list) do
    local floating = ms.is_tensor(pair[2]) and ops.is_floating_point(pair[2])
    map:add_feature(pair[1], pair[2], { require_aggr = floating })
  end
end

function FeatureMap:init(source)
  rawset(self, "_features", {})
  rawset(self, "_places", {})
  if source == nil then return end
  if cells.is_cell(source) then
    of_cell(self, source)
  elseif class.is_a(source, FeatureMap) then
    of_map(self, source)
  elseif type(source) == "string" then
    of_bytes(self, source)
  elseif type(source) == "table" and getmetatable(source) == nil then
    of_table(self, source)
  else
    fail("FeatureMap", "a cell, a table of tensors by name, or a list of { name, tensor } is expected, got " .. describe(source))
  end
end

function FeatureMap.__newindex(_, key)
  fail("FeatureMap", ("'%s' cannot be assigned"):format(tostring(key)), "map:add_feature(name, tensor), or map:with { name = tensor }")
end

local flags = { require_aggr = "boolean", frozen = "boolean" }

--- Adds a feature behind the others. name: a text that no other has. tensor: its values, which are copied. options: { require_aggr =
--- false }
--- for a personal feature, which is not aggregated; { frozen = true } for one that is neither trained nor aggregated. Gives the map back.
---     > map = ms.federated.FeatureMap():add_feature("w", ms.ones { 2 }):add_feature("seen", ms.tensor(3), { require_aggr = false })
---     > map:size(), #map:names() --> 2	2
function FeatureMap:add_feature(name, tensor, options)
  local where = "add_feature"
  options = arguments.options(where, options, flags, "{ require_aggr = false }")
  if type(name) ~= "string" or name == "" then fail(where, "name must be a text, got " .. describe(name)) end
  if self._places[name] then fail(where, ("there is a feature '%s' already"):format(name)) end
  if not ms.is_tensor(tensor) then fail(where, ("the feature '%s' must be a tensor, got %s"):format(name, describe(tensor))) end
  local frozen = options.frozen or false
  local aggregated = options.require_aggr == nil and not frozen or options.require_aggr or false
  if aggregated and frozen then fail(where, ("the feature '%s' cannot be frozen and aggregated"):format(name)) end
  if aggregated and not ops.is_floating_point(tensor) then
    local message = ("the feature '%s' is of %s, and means are floating numbers"):format(name, tostring(tensor.dtype))
    fail(where, message, "{ require_aggr = false }")
  end
  local feature = { name = name, tensor = kept(tensor), require_aggr = aggregated, frozen = frozen }
  self._features[#self._features + 1], self._places[name] = feature, feature
  return self
end

--- The tensor of a feature, or nil. name: its name.
---     > ms.federated.FeatureMap({ names = ms.ones { 3 } }):get("names").shape --> (3,)
function FeatureMap:get(name)
  local feature = self._places[name]
  return feature and feature.tensor
end

--- The names of the features in their order. kind: "all" (the default), "aggregated", "personal" or "frozen".
---     > map = ms.federated.FeatureMap { a = ms.ones { 2 }, count = ms.tensor(1) }
---     > table.concat(map:names("personal"), " ") --> count
function FeatureMap:names(kind)
  kind = check.choice("names", "kind", arguments.named("names", { "kind" }, kind) or "all", { "all", "aggregated", "personal", "frozen" })
  local list = {}
  for _, feature in ipairs(self._features) do
    local own = feature.require_aggr and "aggregated" or feature.frozen and "frozen" or "personal"
    if kind == "all" or kind == own then list[#list + 1] = feature.name end
  end
  return list
end

local function aggregated(map)
  local list = {}
  for _, feature in ipairs(map._features) do
    if feature.require_aggr then list[#list + 1] = feature end
  end
  return list
end

--- How many numbers are aggregated: the length of the vector.
---     > ms.federated.FeatureMap({ a = ms.ones { 2, 3 } }):size() --> 6
function FeatureMap:size()
  local size = 0
  for _, feature in ipairs(aggregated(self)) do size = size + feature.tensor.size end
  return size
end

--- The aggregated features as one vector, in their order: float64 where one of them is, else float32. dtype: another floating dtype.
---     > ms.federated.FeatureMap({ { "b", ms.ones { 1 } }, { "a", ms.zeros { 2 } } }):vector():tolist()[1] --> 1.0
function FeatureMap:vector(dtype)
  dtype = arguments.named("vector", { "dtype" }, dtype)
  local list = {}
  for i, feature in ipairs(aggregated(self)) do
    list[i] = feature.tensor:reshape { -1 }
    if not dtype and feature.tensor.dtype == ms.float64 then dtype = ms.float64 end
  end
  dtype = dtype or ms.float32
  for i, part in ipairs(list) do list[i] = part.dtype == dtype and part or part:astype(dtype) end
  if #list == 0 then return ops.zeros({ 0 }, dtype) end
  return #list == 1 and list[1] + 0.0 or ops.concat(list, 0)
end

--- A vector as tensors of the aggregated features' shapes and dtypes: a list in their order, and a table by name. It is made of operators
--- alone, so that it can be differentiated and mapped over many vectors. vector: (size,). dtype: of all tensors, in place of their own.
---     > parts, named = ms.federated.FeatureMap({ a = ms.ones { 2, 2 } }):split(ms.ones { 4 } * 3)
---     > parts[1].shape, named.a[{ 0, 0 }]:item() --> (2, 2)	3.0
function FeatureMap:split(vector, dtype)
  dtype = arguments.named("split", { "dtype" }, dtype)
  if not ms.is_tensor(vector) or vector.ndim ~= 1 or vector.shape[1] ~= self:size() then
    fail("split", ("a vector of %d numbers is expected, got %s"):format(self:size(), describe(vector)))
  end
  local list, named, first = {}, {}, 0
  for i, feature in ipairs(aggregated(self)) do
    local part = vector[{ ms.slice(first, first + feature.tensor.size) }]:reshape(feature.tensor.shape)
    local wanted = dtype or feature.tensor.dtype
    if part.dtype ~= wanted then part = part:astype(wanted) end
    list[i], named[feature.name] = part, part
    first = first + feature.tensor.size
  end
  return list, named
end

--- A map like this one, with other tensors for some names. tensors: a table from names to tensors of the same shapes.
---     > map = ms.federated.FeatureMap { a = ms.ones { 2 }, b = ms.ones { 2 } }
---     > map:with({ a = ms.zeros { 2 } }).a:tolist()[1], map.a:tolist()[1] --> 0.0	1.0
function FeatureMap:with(tensors)
  if type(tensors) ~= "table" then fail("with", "a table from names to tensors is expected, got " .. describe(tensors)) end
  for name, tensor in pairs(tensors) do
    local feature = self._places[name]
    if not feature then
      fail("with", ("there is no feature '%s'"):format(tostring(name)), arguments.nearest(tostring(name), self:names()))
    elseif not ms.is_tensor(tensor) or tostring(tensor.shape) ~= tostring(feature.tensor.shape) then
      fail("with", ("the feature '%s' must be a tensor of shape %s, got %s"):format(name, tostring(feature.tensor.shape), describe(tensor)))
    end
  end
  local map = FeatureMap()
  for _, feature in ipairs(self._features) do
    local tensor = tensors[feature.name] or feature.tensor
    if tensor.dtype ~= feature.tensor.dtype then tensor = tensor:astype(feature.tensor.dtype) end
    map:add_feature(feature.name, tensor, { require_aggr = feature.require_aggr, frozen = feature.frozen })
  end
  return map
end

--- A map like this one, whose aggregated features are those of a vector. vector: (size,).
---     > map = ms.federated.FeatureMap { a = ms.ones { 2 } }
---     > map:with_vector(map:vector() * 5).a:tolist()[2] --> 5.0
function FeatureMap:with_vector(vector)
  local _, named = self:split(vector)
  return self:with(named)
end

-- As the messages of clients and servers have them (core/federated/messages.proto).
local function features_of(map)
  local list = {}
  for i, feature in ipairs(map._features) do
    list[i] = { name = feature.name, tensor = feature.tensor, aggregated = feature.require_aggr }
  end
  return list
end

--- The map as a text, from which FeatureMap(text) makes an equal one: names, order, shapes, dtypes and every bit, the same on every
--- machine.
---     > map = ms.federated.FeatureMap { a = ms.ones { 2 }, count = ms.tensor(3) }
---     > again = ms.federated.FeatureMap(map:bytes())
---     > again.count:item(), again:bytes() == map:bytes() --> 3	true
function FeatureMap:bytes()
  local frozen = {}
  for _, name in ipairs(self:names "frozen") do frozen[name] = true end
  return require("lunaria.federated_server_core").pack(features_of(self), ms.json.encode(frozen))
end

--- The features of another map in the order, the form and the dtypes of this one. other: a feature map that refusal has nothing against.
---     > map = ms.federated.FeatureMap { { "b", ms.ones { 1 } }, { "a", ms.zeros { 1 } } }
---     > map:conformed(ms.federated.FeatureMap { a = ms.ones { 1 }, b = ms.zeros { 1 } }):vector():tolist()[2] --> 1.0
function FeatureMap:conformed(other)
  local mine, others = self:names("aggregated"), other:names("aggregated")
  local same = #mine == #others
  for i, name in ipairs(mine) do same = same and name == others[i] and self:get(name).dtype == other:get(name).dtype end
  if same then return other end
  local tensors = {}
  for _, name in ipairs(mine) do tensors[name] = other:get(name) end
  return self:with(tensors)
end

-- Whether a feature's name is one of the names, or lies in a cell of such a name.
local function is_within(name, names)
  for _, outer in ipairs(names) do
    if name == outer or name:sub(1, #outer + 1) == outer .. "." then return true end
  end
  return false
end

--- A map like this one, some of whose features are not aggregated. names: a list of features, or of cells that they lie in. options:
--- { frozen = true } for features that are not trained either; else they are personal.
---     > map = ms.federated.FeatureMap { ["head.bias"] = ms.ones { 2 }, ["body.bias"] = ms.ones { 3 } }
---     > map:without({ "head" }):size() --> 3
function FeatureMap:without(names, options)
  options = arguments.options("without", options, { frozen = "boolean" }, "{ frozen = true }")
  if type(names) ~= "table" then fail("without", "a list of names is expected, got " .. describe(names)) end
  for _, name in ipairs(names) do
    local found = false
    for _, feature in ipairs(self._features) do found = found or is_within(feature.name, { name }) end
    if not found then
      fail("without", ("no feature is '%s' or lies in it"):format(tostring(name)), arguments.nearest(tostring(name), self:names()))
    end
  end
  local map = FeatureMap()
  for _, feature in ipairs(self._features) do
    local own = { require_aggr = feature.require_aggr, frozen = feature.frozen }
    if is_within(feature.name, names) then own = { require_aggr = false, frozen = options.frozen or false } end
    map:add_feature(feature.name, feature.tensor, own)
  end
  return map
end

--- Writes the features into the parameters of a cell. cell: it has a parameter of each name and shape.
---     > net = ms.nn.Dense(2, 1)
---     > ms.federated.FeatureMap({ weight = ms.ones { 1, 2 }, bias = ms.ones { 1 } }):load_into(net)
---     > net(ms.ones { 1, 2 }):tolist()[1][1] --> 3.0
function FeatureMap:load_into(cell)
  local where = "load_into"
  if not cells.is_cell(cell) then fail(where, "a cell is expected, got " .. describe(cell)) end
  local parameters, names = {}, {}
  for name, parameter in cell:parameters_and_names() do
    parameters[name], names[#names + 1] = parameter, name
  end
  for _, feature in ipairs(self._features) do
    local parameter = parameters[feature.name]
    if not parameter then
      fail(where, ("the cell has no parameter '%s'"):format(feature.name), arguments.nearest(feature.name, names))
    elseif tostring(parameter.shape) ~= tostring(feature.tensor.shape) then
      fail(where, ("the parameter '%s' has the shape %s, and the feature %s"):format(
        feature.name, tostring(parameter.shape), tostring(feature.tensor.shape)))
    end
  end
  for _, feature in ipairs(self._features) do parameters[feature.name]:assign(feature.tensor:astype(parameters[feature.name].dtype)) end
end

--- What is wrong with weights that shall take the place of these, as text; nil if nothing is: names, shapes, dtypes, numbers that are not
--- finite, or are larger than any weight. other: a feature map, or another value. limit: the largest magnitude of a number, 1e10 if nil.
---     > map = ms.federated.FeatureMap { a = ms.ones { 2 } }
---     > map:refusal(ms.federated.FeatureMap { a = ms.tensor { 1.0, 0 / 0 } }) --> the feature 'a' holds nan or infinity
function FeatureMap:refusal(other, limit)
  limit = check.number_positive("refusal", "limit", arguments.named("refusal", { "limit" }, limit) or 1e10)
  if not class.is_a(other, FeatureMap) then return "weights must be a feature map, got " .. describe(other) end
  local mine = aggregated(self)
  for _, feature in ipairs(mine) do
    local tensor = other:get(feature.name)
    if not tensor then return ("the feature '%s' is missing"):format(feature.name) end
    if tostring(tensor.shape) ~= tostring(feature.tensor.shape) then
      return ("the feature '%s' has the shape %s, and the model's %s"):format(
        feature.name, tostring(tensor.shape), tostring(feature.tensor.shape))
    end
    if not ops.is_floating_point(tensor) then
      return ("the feature '%s' is of %s, and the model's of %s"):format(
        feature.name, tostring(tensor.dtype), tostring(feature.tensor.dtype))
    end
  end
  for _, feature in ipairs(other._features) do
    if not self._places[feature.name] then return ("the model has no feature '%s'"):format(feature.name) end
  end
  for _, feature in ipairs(mine) do
    local tensor = other:get(feature.name)
    if tensor.size > 0 then
      -- A maximum passes nan on, and infinity is above every limit.
      local most = ops.amax(ops.abs(tensor:reshape { -1 }), 0):item()
      if most ~= most or most == math.huge then return ("the feature '%s' holds nan or infinity"):format(feature.name) end
      if most > limit then return ("the feature '%s' holds %.3g, above the limit of %.3g"):format(feature.name, most, limit) end
    end
  end
  return nil
end

return { FeatureMap = FeatureMap, features_of = features_of }
