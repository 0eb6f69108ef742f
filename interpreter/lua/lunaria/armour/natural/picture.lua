-- Natural changes of pictures: the class that they extend, the forms in which pictures come, and warps. A change is a function of planes
-- (N, C, H, W) with values from 0 to 1; a picture in another form is brought into it and back.
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"
local class = require "lunaria.nn.class"
local common = require "lunaria.armour.common"

local ops = ms.ops
local fail, check, describe = arguments.fail, arguments.check, arguments.describe

local picture = {}

local function is_channels(n) return n == 1 or n == 3 end

-- Where the channels are: nil (none), 1 (first of a picture's axes) or 3 (last). Batches have one axis more.
local function form_of(where, x)
  local n = x.ndim
  if n == 2 then return nil end
  if n == 3 or n == 4 then
    local first = n - 2
    if is_channels(x.shape[first]) or n == 4 and not is_channels(x.shape[n]) then return 1 end
    if is_channels(x.shape[n]) then return 3 end
  end
  return fail(where, ("a picture must be (H, W), (C, H, W) or (H, W, C) with 1 or 3 channels, or a batch of these, got %s"):format(
    tostring(x.shape)))
end

--- A picture or a batch of them as planes (N, C, H, W) of floats from 0 to 1, and a function that brings planes back into its form. uint8
--- goes from 0 to 255, floats from 0 to 1.
function picture.planes(where, x)
  if not ms.is_tensor(x) or x.size == 0 then fail(where, "a picture must be a tensor with pixels, got " .. describe(x)) end
  local is_float, dtype = ops.is_floating_point(x), x.dtype
  if not is_float and dtype ~= ms.uint8 then
    fail(where, ("a picture must be of uint8, from 0 to 255, or of a floating dtype, from 0 to 1, got %s"):format(tostring(dtype)))
  end
  local form, shape, n = form_of(where, x), { table.unpack(x.shape) }, x.ndim
  if is_float then
    local least, most = ops.min(x):item(), ops.max(x):item()
    -- Written so that NaN fails too.
    if not (least >= -1e-6 and most <= 1 + 1e-6) then
      fail(where, ("a picture of floats goes from 0 to 1, got values from %g to %g"):format(least, most), "x / 255, or uint8")
    end
  end
  local y = is_float and x or x:astype(ms.float32) / 255
  if form == 3 then y = ops.moveaxis(y, n - 1, n - 3) end
  local height, width = y.shape[y.ndim - 1], y.shape[y.ndim]
  local channels = form and y.shape[y.ndim - 2] or 1
  return y:reshape { -1, channels, height, width }, function(z)
    z = ops.clamp(z, 0.0, 1.0)
    if form == 3 then z = ops.moveaxis(n == 4 and z or z[0], n - 3, n - 1) end
    z = z:reshape(shape)
    if is_float then return z:astype(dtype) end
    return ops.floor(z * 255 + 0.5):astype(ms.uint8)
  end
end

local Transform = class.Object:extend("Transform")
Transform._called = "transform"
picture.Transform = Transform

--- A class of changes. draw(self, a, height, width): parameters by chance, put into a copy of a, which auto_param asks for at each call;
--- change(self, x, a, height, width): the planes after it. read(self, a): checks the arguments and gives them.
function picture.define(name, signature, doc, read, draw, change)
  local made = class.define(Transform, name, signature .. ", auto_param=false, seed=nil", doc)
  function made:setup(a)
    self._auto = check.boolean(name, "auto_param", a.auto_param)
    self._draws = common.generator(a.seed, name)
    self._parameters = read(a, name)
  end
  function made:__call(image)
    local x, back = picture.planes(name, image)
    local height, width = x.shape[3], x.shape[4]
    local a = self._parameters
    if self._auto then
      a = setmetatable({}, { __index = a })
      draw(a, self._draws, height, width)
    end
    return back(change(x, a, self._draws, height, width))
  end
  return made
end

--- One number by chance, from lo on and below hi.
function picture.between(draws, lo, hi) return lo + (hi - lo) * draws:number() end
--- One integer by chance, from lo on and below hi.
function picture.integer(draws, lo, hi) return math.min(hi - 1, math.floor(picture.between(draws, lo, hi))) end
--- One of a list by chance.
function picture.one_of(draws, list) return list[picture.integer(draws, 1, #list + 1)] end

--- { x, y } as numbers, checked.
function picture.pair(where, name, value)
  if type(value) ~= "table" or #value ~= 2 then
    fail(where, ("%s must be a list of two numbers, got %s"):format(name, describe(value)))
  end
  return { check.finite(where, name .. "[1]", value[1]), check.finite(where, name .. "[2]", value[2]) }
end

--- The columns and rows of pixels: two tensors (H, W) from 0.
function picture.places(x, height, width)
  local xs = ops.broadcast_to(ops.arange(width):astype(x.dtype):reshape { 1, width }, { height, width })
  local ys = ops.broadcast_to(ops.arange(height):astype(x.dtype):reshape { height, 1 }, { height, width })
  return xs, ys
end

--- Planes whose pixel at column x and row y is that of the place (u, v) that from(x, y) gives, between pixels by their distances. outside:
--- as grid_sample's padding_mode, nil for 0.
function picture.warped(x, height, width, from, outside)
  local u, v = from(picture.places(x, height, width))
  local function share(place, size) return place * (2 / math.max(1, size - 1)) - 1 end
  local grid = ops.stack({ share(u, x.shape[4]), share(v, x.shape[3]) }, -1)
  -- Beyond a horizon, or where numbers overflow, is nothing.
  grid = ops.where(ops.isfinite(grid), grid, 1e6)
  grid = ops.broadcast_to(ops.expand_dims(grid, 0), { x.shape[1], height, width, 2 })
  return ops.grid_sample(x, grid, { mode = "bilinear", padding_mode = outside or "zeros", align_corners = true })
end

return picture
