-- The argument of a kernel's function: buffers of a core and its instructions. Each call writes one instruction into the
-- program of the block; addresses are elements here and bytes there.
local core = require "lunaria.ascend_core"
local arguments = require "lunaria.nn.arguments"

local fail = function(...) arguments.fail("ascend.kernel", ...) end

local spaces = { L1 = 1, L0A = 2, L0B = 3, L0C = 4, UB = 5 }
local pipes = { S = 0, V = 1, M = 2, MTE1 = 3, MTE2 = 4, MTE3 = 5 }
local opcodes = {}
for i, name in ipairs { "move", "load2d", "load3d", "mmad", "drain", "binary", "unary", "with_scalar", "convert", "compare",
  "select", "duplicate", "reduce", "transpose", "scalar_load", "scalar_op", "set_flag", "wait_flag", "barrier" } do
  opcodes[name] = i - 1
end
local kinds = {}
for i, name in ipairs { "vadd", "vsub", "vmul", "vmax", "vmin", "vdiv", "vmla", "vabs", "vrelu", "vexp", "vln", "vrec", "vrsqrt",
  "vsqrt", "copy", "vadds", "vmuls", "vmaxs", "vmins", "vaxpy", "lt", "le", "gt", "ge", "eq", "ne", "vcadd", "vcmax", "vcmin",
  "vcgadd", "vcgmax", "vcgmin", "vcpadd" } do
  kinds[name] = i - 1
end
local widths = { float16 = 2, float32 = 4, int32 = 4, int16 = 2, uint8 = 1, int8 = 1 }

-- Buffers have at(elements, count), the part that begins so much later; as(dtype), the same bytes as elements of another
-- type; count, dtype, width, address and, as a tensor of the kernel, shape.
local Tile = {}
Tile.__index = Tile
Tile.__name = "tile program"

local function allocate(space)
  return function(self, dtype, count, address)
    local name = tostring(dtype):lower()
    local width = widths[name] or fail("buffers hold float16, float32, int32, int16, int8 or uint8, not " .. name)
    if math.type(count) ~= "integer" or count < 1 then fail("a buffer has at least one element, got " .. arguments.describe(count)) end
    local unit = space == "L0C" and 1024 or (space == "L0A" or space == "L0B") and 512 or 32
    local used = self._used
    address = address or (used[space] + unit - 1) // unit * unit
    used[space] = math.max(used[space], address + count * width)
    local size = self.chip[space:lower()]
    if used[space] > size then
      self.overflow[#self.overflow + 1] = ("%s: %d bytes are taken, the chip has %d"):format(space, used[space], size)
    end
    return core.buffer(spaces[space], name, address, count)
  end
end
Tile.ub, Tile.l1, Tile.l0a, Tile.l0b, Tile.l0c = allocate "UB", allocate "L1", allocate "L0A", allocate "L0B", allocate "L0C"

local write, write_vector, write_repeats, write_move, write_flag = core.emit, core.vector, core.repeats, core.move, core.flag

local function emit(self, op, pipe, kind, dst, a, b, c, ...)
  return write(self._program, opcodes[op], pipes[pipe], kinds[kind], dst, a, b, c, 0.0, -1, ...)
end

local function buffer_of(value, what)
  if type(value) ~= "userdata" or type(value.count) ~= "number" then
    fail(("%s must be a buffer or a tensor of the kernel, got %s"):format(what, arguments.describe(value)))
  end
  return value
end

-- bursts, elements of a burst and strides (elements from the start of one burst to the start of the next); with register = r the part
-- of the tensor begins `stride` elements later for each unit of the scalar register r.
for way, name in ipairs { "load", "store", "copy" } do
  Tile[name] = function(self, dst, src, o)
    if o == nil then return write_move(self._program, way - 1, dst, src) end
    return write_move(self._program, way - 1, dst, src, o.count, o.bursts, o.burst, o.src_stride, o.dst_stride, o.register, o.stride)
  end
end

--- Fractals of 512 bytes: count, src_stride and dst_stride in fractals, transpose.
function Tile:load2d(dst, src, o)
  buffer_of(dst, "dst of load2d") buffer_of(src, "a of load2d")
  o = o or {}
  emit(self, "load2d", "MTE1", "copy", dst, src, nil, nil, o.count or dst.count * dst.width // 512, o.src_stride or 1, o.dst_stride or 1,
    o.transpose and 1 or 0)
end

--- Windows of a picture (channels / 16, height, width, 16) in L1 as rows of a matrix.
function Tile:load3d(dst, src, o)
  buffer_of(dst, "dst of load3d") buffer_of(src, "a of load3d")
  for _, name in ipairs { "height", "width", "channels", "kernel", "rows", "steps" } do
    if type(o) ~= "table" or o[name] == nil then
      fail(("load3d takes a table with height, width, channels, kernel, rows and steps; there is no %s"):format(name))
    end
  end
  local kernel, stride, pad, dilation = o.kernel, o.stride or { 1, 1 }, o.padding or { 0, 0, 0, 0 }, o.dilation or { 1, 1 }
  emit(self, "load3d", "MTE1", "copy", dst, src, nil, nil, o.height, o.width, o.channels, kernel[1], kernel[2], stride[1], stride[2],
    pad[1], pad[2], pad[3], pad[4], dilation[1], dilation[2], o.row or 0, o.rows, o.step or 0, o.steps)
end

--- c (m x n in L0C) = a (L0A) * b (L0B), or c + a * b where init is false: float16 to float32, or int8 in squares of 16 x 32 to int32.
function Tile:mmad(c, a, b, m, k, n, o)
  if c == nil or a == nil or b == nil then buffer_of(nil, "c, a and b of mmad, each of them,") end
  emit(self, "mmad", "M", "copy", c, a, b, nil, m, k, n, (o == nil or o.init ~= false) and 1 or 0)
end

--- L0C to UB, converted to the type of the destination. count: elements; relu.
function Tile:drain(dst, src, o)
  buffer_of(dst, "dst of drain") buffer_of(src, "a of drain")
  o = o or {}
  emit(self, "drain", "V", "copy", dst, src, nil, nil, (o.count or src.count) // 256, o.src_stride or 1, o.relu and 1 or 0)
end

-- A vector instruction. Without options: as many elements as the destination has, by whole repeats and a last shorter one. With
-- them: count; or repeats, lanes, strides (elements between repeats; 0 repeats an operand).
local function vector(self, op, kind, dst, a, b, o, number, register)
  if o == nil then return write_vector(self._program, op, kind, dst, a, b, number, register) end
  if o.repeats then
    return write_repeats(self._program, op, kind, dst, a, b, number, register, o.repeats, o.lanes, o.dst_stride, o.a_stride, o.b_stride)
  end
  return write_vector(self._program, op, kind, dst, a, b, number, register, o.count)
end

for _, name in ipairs { "vadd", "vsub", "vmul", "vmax", "vmin", "vdiv", "vmla" } do
  local opcode, kind = opcodes.binary, kinds[name]
  Tile[name] = function(self, dst, a, b, o)
    if b == nil then fail(("b of %s must be a buffer or a tensor of the kernel, got nil"):format(name)) end
    return vector(self, opcode, kind, dst, a, b, o)
  end
end
for _, name in ipairs { "vabs", "vrelu", "vexp", "vln", "vrec", "vrsqrt", "vsqrt" } do
  local opcode, kind = opcodes.unary, kinds[name]
  Tile[name] = function(self, dst, a, o) return vector(self, opcode, kind, dst, a, nil, o) end
end

-- A number, or the name of a scalar register: { register = 3 }.
local function number_of(name, number)
  if type(number) == "table" and math.type(number.register) == "integer" then return 0.0, number.register end
  if type(number) ~= "number" then fail(name .. ": a number or { register = n } is expected, got " .. arguments.describe(number)) end
  return number
end
for _, name in ipairs { "vadds", "vmuls", "vmaxs", "vmins", "vaxpy" } do
  local opcode, kind = opcodes.with_scalar, kinds[name]
  Tile[name] = function(self, dst, a, number, o) return vector(self, opcode, kind, dst, a, nil, o, number_of(name, number)) end
end

function Tile:vdup(dst, number, o) return vector(self, opcodes.duplicate, kinds.copy, dst, dst, nil, o, number_of("vdup", number)) end

function Tile:vconv(dst, a, o) return vector(self, opcodes.convert, kinds.copy, dst, a, nil, o) end

-- Repeats and lanes of an instruction that takes whole repeats.
local function whole_repeats(name, a, count)
  local lanes = 256 // a.width
  if count % lanes ~= 0 and count > lanes then fail(("%s takes whole repeats of %d elements, got %d"):format(name, lanes, count)) end
  local n = math.min(lanes, count)
  return count // n, n
end

--- A bit for each element: kind is "lt", "le", "gt", "ge", "eq" or "ne".
function Tile:vcmp(kind, dst, a, b, o)
  if not (kinds[kind] and #kind == 2) then fail "vcmp compares by lt, le, gt, ge, eq or ne" end
  buffer_of(a, "a of vcmp")
  local repeats, n = whole_repeats("vcmp", a, o and o.count or a.count)
  emit(self, "compare", "V", kind, dst, a, b, nil, repeats, n, 8, 8, 8)
end

--- Where the bit is set the element of a, else that of b.
function Tile:vsel(dst, mask, a, b, o)
  buffer_of(a, "a of vsel") buffer_of(dst, "dst of vsel")
  local repeats, n = whole_repeats("vsel", a, o and o.count or dst.count)
  emit(self, "select", "V", "copy", dst, a, mask, b, repeats, n, 8, 8, 8)
end

for _, name in ipairs { "vcadd", "vcmax", "vcmin", "vcgadd", "vcgmax", "vcgmin", "vcpadd" } do
  Tile[name] = function(self, dst, a, o)
    buffer_of(a, "a of " .. name)
    local lanes = o and o.lanes or math.min(256 // a.width, a.count)
    local repeats = o and o.repeats or a.count // lanes
    local stride = repeats == 1 and 256 or (o and o.a_stride or lanes) * a.width
    if stride % 32 ~= 0 then fail(("%s: a stride of %d bytes is no multiple of 32"):format(name, stride)) end
    emit(self, "reduce", "V", name, dst, a, nil, nil, repeats, lanes, 0, stride // 32)
  end
end

--- Squares of 16 x 16 elements of 16 bits, transposed.
function Tile:vtranspose(dst, a, o)
  buffer_of(a, "a of vtranspose")
  emit(self, "transpose", "V", "copy", dst, a, nil, nil, o and o.count or a.count // 256, 128)
end

--- An element of UB into a scalar register (0 to 31).
function Tile:scalar_load(register, src)
  buffer_of(src, "a of scalar_load")
  write(self._program, opcodes.scalar_load, pipes.S, kinds.copy, nil, src, nil, nil, 0.0, register)
end

--- register = a kind b; a is a register, b a number or { register = n }; kind "add", "sub", "mul", "div", "max", "min", "rec", "rsqrt",
-- "sqrt".
function Tile:scalar(kind, register, a, b)
  local known = kinds["v" .. tostring(kind)]
    or fail("scalar knows add, sub, mul, div, max, min, rec, rsqrt and sqrt, not " .. tostring(kind))
  local second = type(b) == "table" and b.register or -1
  write(self._program, opcodes.scalar_op, pipes.S, known, nil, nil, nil, nil, type(b) == "number" and b or 0.0, register, a, second)
end

local function pipe_number(name) return pipes[name]
  or fail(("there is no pipe '%s'; there are: S, V, M, MTE1, MTE2, MTE3"):format(tostring(name))) end

local function flag(which)
  return function(self, from, to, id)
    local f, t = pipes[from] or pipe_number(from), pipes[to] or pipe_number(to)
    if id ~= nil and (math.type(id) ~= "integer" or id < 0 or id > 15) then
      fail("flags have numbers from 0 to 15, got " .. arguments.describe(id))
    end
    return write_flag(self._program, which, f, t, id or 0)
  end
end
--- The pipe `to` waits where wait_flag stands until `from` has done all before set_flag; sync is both at once.
Tile.set_flag, Tile.wait_flag, Tile.sync = flag(1), flag(2), flag(3)

--- Waits for one pipe, or for all.
function Tile:barrier(pipe)
  local number = pipe and pipe_number(pipe)
  write(self._program, opcodes.barrier, number or 0, 0, nil, nil, nil, nil, 0.0, -1, number or -1)
end

local M = {}

--- A new program for one block of a kernel.
function M.tile(name, chip, block, blocks)
  return setmetatable({ _program = core.program(name), chip = chip, block = block, blocks = blocks, overflow = {},
    _used = { UB = 0, L1 = 0, L0A = 0, L0B = 0, L0C = 0 } }, Tile)
end

--- A tensor of the kernel, as its function sees it.
function M.tensor(index, dtype, shape, count)
  local name = tostring(dtype):lower()
  if not widths[name] then fail("kernels work on float16, float32, int32, int16, int8 and uint8, not " .. name) end
  return core.tensor(index, name, count, { shape = shape })
end

return M
