-- ms.image: a tensor, or a batch of them, as a picture.
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"

local fail, describe = arguments.fail, arguments.describe
local ops = ms.ops

local Image = {}
Image.__index = Image
Image.__name = "image"

-- What the axes may mean: N images, C channels, height, width.
local layouts = { HW = 2, HWC = 3, CHW = 3, NHW = 3, NHWC = 4, NCHW = 4 }

local function is_channels(n)
  return n == 1 or n == 3 or n == 4
end

local function guess(x)
  local shape = x.shape
  if x.ndim == 2 then
    return "HW"
  elseif x.ndim == 3 then
    return is_channels(shape[3]) and "HWC" or is_channels(shape[1]) and "CHW" or "NHW"
  elseif x.ndim == 4 then
    return is_channels(shape[2]) and "NCHW" or is_channels(shape[4]) and "NHWC" or nil
  end
end

-- To the order N, height, width, channels.
local function ordered(x, layout)
  local shape = x.shape
  if layout == "HW" then
    return x:reshape { 1, shape[1], shape[2], 1 }
  elseif layout == "HWC" then
    return x:reshape { 1, shape[1], shape[2], shape[3] }
  elseif layout == "CHW" then
    return x:transpose { 1, 2, 0 }:reshape { 1, shape[2], shape[3], shape[1] }
  elseif layout == "NHW" then
    return x:reshape { shape[1], shape[2], shape[3], 1 }
  elseif layout == "NCHW" then
    return x:transpose { 0, 2, 3, 1 }
  end
  return x
end

-- Bytes 0 to 255. Those of uint8 stay; other numbers are spread between their least and their greatest.
local function bytes(x, low, high)
  if x.dtype == ms.uint8 and not low and not high then
    return x
  elseif x.dtype == ms.bool_ and not low and not high then
    return (x:cast(ms.float32) * 255):cast(ms.uint8)
  end
  x = x:cast(ms.float32)
  local finite = ops.isfinite(x)
  local zeros = ops.zeros_like(x)
  low = low or ops.reduce_min(ops.select(finite, x, zeros + math.huge)):item()
  high = high or ops.reduce_max(ops.select(finite, x, zeros - math.huge)):item()
  local span = high > low and high - low or 1
  local share = (ops.select(finite, x, zeros + low) - low) / span
  return ops.clamp(share * 255 + 0.5, 0, 255):cast(ms.uint8)
end

-- Images beside and below each other, with a line of white between them.
local function grid(x, columns)
  local n, height, width, channels = x.shape[1], x.shape[2], x.shape[3], x.shape[4]
  if n == 1 then
    return x[0]
  end
  local rows = (n + columns - 1) // columns
  local white = ops.ones({ rows * columns, height + 1, width + 1, channels }, ms.uint8) * 255
  white = white:cast(ms.uint8)
  white[("0:%d, 0:%d, 0:%d"):format(n, height, width)] = x
  local joined = white:reshape { rows, columns, height + 1, width + 1, channels }:transpose { 0, 2, 1, 3, 4 }
  joined = joined:reshape { rows * (height + 1), columns * (width + 1), channels }
  return joined[("0:%d, 0:%d"):format(rows * (height + 1) - 1, columns * (width + 1) - 1)]
end

local known = { layout = true, cmap = true, scale = true, columns = true, low = true, high = true }

local function check_options(options)
  for name, value in pairs(options) do
    if not known[name] then
      fail("image", ("there is no option '%s'; there are: cmap, columns, high, layout, low, scale"):format(tostring(name)))
    elseif (name == "columns" or name == "scale") and (math.type(value) ~= "integer" or value < 1 or value > 1000) then
      fail("image", ("%s must be an integer from 1 to 1000, got %s"):format(name, describe(value)))
    elseif (name == "low" or name == "high") and type(value) ~= "number" then
      fail("image", ("%s must be a number, got %s"):format(name, describe(value)))
    end
  end
  local layout = options.layout
  if layout ~= nil and not layouts[layout] then
    fail("image", ("layout must be HW, HWC, CHW, NHW, NHWC or NCHW, got %s"):format(describe(layout)))
  end
  if options.cmap ~= nil and not require("lunaria.plot.scale").maps[options.cmap] then
    fail("image", "cmap must be 'viridis', 'magma', 'coolwarm' or 'grey', got " .. describe(options.cmap))
  end
end

--- A tensor as a picture: one image (height, width), (height, width, channels) or (channels, height, width), or a batch of
--- them, which becomes a grid. Bytes are taken as they are, other numbers are spread from black to white.
--- Options: layout ("HWC", "NCHW", ... where the shape leaves it open), cmap ("viridis", "magma", "coolwarm", "grey": colours
--- for images of one channel), columns (of the grid), scale (screen pixels for each pixel), low and high (the numbers for
--- black and white).
---     > i = ms.image(ms.tensor({ { 0, 1 }, { 1, 0 } }))
---     > i.width, i.height, #i:png() > 60 --> 2	2	true
local function image(x, options)
  options = options or {}
  if type(options) ~= "table" then
    fail("image", "the second argument must be a table of options, got " .. describe(options))
  end
  check_options(options)
  if type(x) == "table" and ms.is_tensor(x[1]) then
    local ok, stacked = pcall(ops.stack, x)
    if not ok then
      fail("image", "the images of a list must have one shape")
    end
    x = stacked
  elseif type(x) == "table" then
    x = ms.tensor(x)
  elseif not ms.is_tensor(x) then
    fail("image", "a tensor is expected, got " .. describe(x))
  end
  local layout = options.layout or guess(x)
  if not layout or x.ndim ~= layouts[layout] then
    fail("image", ("a tensor of shape %s is no image%s"):format(tostring(x.shape), layout and " of layout " .. layout or ""),
      "images have the shape (height, width), with 1, 3 or 4 channels before or after, and batches one more axis in front")
  elseif x.size == 0 then
    fail("image", ("a tensor of shape %s has no pixels"):format(tostring(x.shape)))
  end
  x = ordered(x, layout)
  if not is_channels(x.shape[4]) and x.shape[4] ~= 2 then
    fail("image", ("an image has 1, 3 or 4 channels, got %d"):format(x.shape[4]))
  end
  local n = x.shape[1]
  x = grid(bytes(x, options.low, options.high), options.columns or math.ceil(math.sqrt(n)))
  return setmetatable({
    _pixels = x, width = x.shape[2], height = x.shape[1], channels = x.shape[3], count = n, _map = options.cmap,
    _scale = options.scale or math.max(1, 140 // math.max(x.shape[1], x.shape[2] // 3 + 1)),
  }, Image)
end

-- Red, green, blue of each byte.
local function colors(self)
  local scale = require "lunaria.plot.scale"
  local list = {}
  for i = 0, 255 do
    list[i + 1] = { scale.rgb(self._map or "grey", i / 255) }
  end
  return list
end

--- The picture as the bytes of a PNG file, every pixel `factor` times as wide and high.
---     > (">I4"):unpack(ms.image(ms.ops.ones({ 2, 3 })):png(10), 17) --> 30	21
function Image:png(factor)
  factor = arguments.named("png", { "factor" }, factor)
  factor = factor or 1
  local x = self._pixels
  if self._map and self.channels == 1 then
    x = ops.gather(ms.tensor(colors(self), ms.uint8), x:reshape({ self.height, self.width }):cast(ms.int32), 0)
  end
  local channels = x.shape[3]
  if factor > 1 then
    local large = ops.broadcast_to(x:reshape { self.height, 1, self.width, 1, channels },
      { self.height, factor, self.width, factor, channels })
    x = large:reshape { self.height * factor, self.width * factor, channels }
  end
  return require("lunaria.rendering").png(x, x.shape[2], x.shape[1], channels)
end

--- Writes the picture to a PNG file. Gives the picture back.
---     > path = os.tmpname() .. ".png"
---     > io.open(ms.image({ { 0, 1 } }):save(path) and path):read(4):sub(2), os.remove(path) --> PNG	true
function Image:save(path)
  if type(path) ~= "string" or not path:find("%.png$") then
    fail("image.save", "the path must be a string that ends in .png, got " .. describe(path))
  end
  local file <close>, message = io.open(path, "wb")
  if not file or not file:write(self:png(self._scale)) or not file:flush() then
    fail("image.save", "cannot write " .. (message or path))
  end
  return self
end

--- The picture as lines of text. Options: width, height (in characters), color.
---     > table.concat(ms.image({ { 0, 1 }, { 1, 0 } }):lines({ height = 2 }), "|") -->   ██|██
function Image:lines(options)
  local width, height, list = options.width or 80, options.height or 24, colors(self)
  -- Of a large picture no more pixels become Lua numbers than there are places for them, twice over.
  local down, right = math.max(1, self.height // (4 * height)), math.max(1, self.width // (2 * width))
  local pixels = self._pixels[("::%d, ::%d"):format(down, right)]:tolist()
  return require("lunaria.plot.text").matrix(#pixels, #pixels[1], function(row, column)
    local p = pixels[row][column]
    if #p < 3 then
      local c = list[p[1] + 1]
      return c[1], c[2], c[3]
    end
    return p[1], p[2], p[3]
  end, width, height, options.color)
end

function Image:__tostring()
  local kind = self.channels < 3 and "grey" or "colour"
  return ("%s of %d x %d pixels, %s"):format(self.count > 1 and self.count .. " images, a picture" or "image", self.width,
    self.height, kind)
end

function Image:__terminal(options)
  if options.sixel and require("lunaria.rendering").has_svg() then
    local width, height = self.width * self._scale, self.height * self._scale
    return require("lunaria.rendering").svg_to_sixel(("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\">"
      .. "<image width=\"%d\" height=\"%d\" href=\"data:image/png;base64,%s\"/></svg>"):format(width, height, width, height,
      require("lunaria.rendering").base64(self:png(self._scale))))
  end
  return table.concat(self:lines(options), "\n")
end

function Image:__mime()
  return {
    ["image/png"] = self:png(self._scale),
    ["text/plain"] = tostring(self),
  }
end

return image
