-- Compression of what parties of a split network send each other: numbers of few bits.
local core = require "lunaria.vertical"
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"
local class = require "lunaria.nn.class"
local links = require "lunaria.federated.vertical.link"

local fail, check = arguments.fail, arguments.check
local ops, f64 = ms.ops, ms.float64
local cut_layer = {}

local CompressConfig = class.define(nil, "CompressConfig", "compress_type, bit_num=8", [[How a tensor is compressed on its way to another
party. compress_type: "min_max" (2^bit_num numbers from the least to the greatest, a byte each), "bit_pack" (the same, bit_num bits each)
or "no_compress". bit_num: 1 to 8. An element is off by at most half of the distance of two numbers.

  > ms.federated.CompressConfig("bit_pack", 3).bit_num --> 3]])
cut_layer.CompressConfig = CompressConfig

function CompressConfig:setup(a)
  self.compress_type = check.choice("CompressConfig", "compress_type", a.compress_type, { "no_compress", "min_max", "bit_pack" })
  self.bit_num = check.positive("CompressConfig", "bit_num", a.bit_num)
  if self.bit_num > 8 then fail("CompressConfig", ("bit_num must be from 1 to 8, got %d"):format(self.bit_num)) end
end

--- For a message: a tensor in the place of which values get what it is compressed to.
function cut_layer.put(values, name, x, config)
  if config == nil or config.compress_type == "no_compress" or x.size == 0 then
    values[name] = x
    return
  end
  if not ops.is_floating_point(x) then fail("send_tensors", ("'%s' is of dtype %s: only floats are compressed"):format(name,
    tostring(x.dtype))) end
  if not ops.all(ops.isfinite(x)):item() then fail("send_tensors",
    ("'%s' holds nan or infinity, which cannot be compressed"):format(name)) end
  local bytes, least, greatest = core.few_bits(x:astype(f64), config.bit_num, config.compress_type == "bit_pack")
  values[name], values[name .. "/bits"], values[name .. "/form"] = bytes, config.bit_num, config.compress_type
  values[name .. "/least"], values[name .. "/greatest"] = least, greatest
  values[name .. "/shape"], values[name .. "/dtype"] = ms.tensor(x.shape, ms.int64), tostring(x.dtype):lower()
end

local dtypes = { float16 = ms.float16, bfloat16 = ms.bfloat16, float32 = ms.float32, float64 = ms.float64 }

local function restored(link, values, name)
  local bits = links.integer(link, values, name .. "/bits", 1, 8)
  local form, dtype = links.text(link, values, name .. "/form"), dtypes[links.text(link, values, name .. "/dtype")]
  local least, greatest = links.number(link, values, name .. "/least"), links.number(link, values, name .. "/greatest")
  local sizes = links.tensor(link, values, name .. "/shape", ms.int64, { -1 }):tolist()
  local n = 1
  for _, size in ipairs(sizes) do n = size > 0 and size <= (1 << 40) // n and n * size or 1 << 41 end
  if n > 1 << 40 or not dtype or form ~= "bit_pack" and form ~= "min_max" then
    fail("receive", ("'%s' has sent '%s', compressed in a way that is not known"):format(link.peer, name))
  end
  local is_packed = form == "bit_pack"
  local bytes = links.text(link, values, name, is_packed and (n * bits + 7) // 8 or n)
  return core.from_few_bits(bytes, bits, is_packed, n, least, greatest):reshape(sizes):astype(dtype)
end

--- The tensors of a message by name, those that were compressed restored.
function cut_layer.take(link, values)
  local tensors = {}
  for name, value in pairs(values) do
    if not name:find "/" then
      if values[name .. "/form"] ~= nil then
        tensors[name] = restored(link, values, name)
      elseif ms.is_tensor(value) then
        tensors[name] = value
      else
        fail("receive", ("'%s' has sent '%s', which is no tensor"):format(link.peer, name))
      end
    end
  end
  return tensors
end

return cut_layer
