-- What the function of a kernel is given: buffers of a core and its instructions. Each call writes one instruction into the
-- program of the block; addresses are elements here and bytes there.
local core = require "lunaria.ascend_core"
local arguments = require "lunaria.nn.arguments"

local fail = function(...) arguments.fail("ascend.kernel", ...) end

local getmetatable = getmetatable
local spaces = { GM = 0, L1 = 1, L0A = 2, L0B = 3, L0C = 4, UB = 5 }
local space_names = { [0] = "GM", "L1", "L0A", "L0B", "L0C", "UB" }
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

local Buffer = {}
Buffer.__index = Buffer
Buffer.__name = "buffer"

--- The part that begins `elements` later.
function Buffer:at(elements, count)
  return setmetatable({ space = self.space, tensor = self.tensor, address = self.address + elements * self.width // 1 | 0,
    dtype = self.dtype, width = self.width, count = count or self.count - elements, shape = self.shape }, Buffer)
end

--- The same bytes as elements of another type.
function Buffer:as(dtype)
  local name = tostring(dtype):lower()
  local width = widths[name] or fail("buffers hold float16, float32, int32, int16, int8 or uint8, not " .. name)
  return setmetatable({ space = self.space, tensor = self.tensor, address = self.address, dtype = name, width = width,
    count = self.count * self.width // width, shape = self.shape }, Buffer)
end

function Buffer:__tostring()
  return ("%s[%d] of %s at byte %d"):format(self.dtype, self.count, space_names[self.space], self.address)
end

local Tile = {}
Tile.__index = Tile
Tile.__name = "tile program"

local function buffer_of(value, what)
  if getmetatable(value) ~= Buffer then fail(("%s must be a buffer or a tensor of the kernel, got %s"):format(what,
    arguments.describe(value))) end
  return value
end

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
    return setmetatable({ space = spaces[space], tensor = 0, address = address, dtype = name, width = width, count = count }, Buffer)
  end
end
Tile.ub, Tile.l1, Tile.l0a, Tile.l0b, Tile.l0c = allocate "UB", allocate "L1", allocate "L0A", allocate "L0B", allocate "L0C"

-- The operand that an instruction has not got: of no width, so that it begins nowhere else.
local nothing = { space = 5, tensor = 0, address = 0, dtype = "float16", width = 0 }
local emit_row = core.emit

local function emit(self, op, pipe, kind, dst, a, b, c, options, ...)
  local number, register = 0.0, -1
  if options then number, register = options.number or 0.0, options.register or -1 end
  return emit_row(self._program, opcodes[op], pipes[pipe], kinds[kind] or 0, a.dtype, dst.dtype, dst.space, dst.tensor, dst.address,
    a.space, a.tensor, a.address, b.space, b.tensor, b.address, c.space, c.tensor, c.address, number, register, ...)
end

-- bursts, elements of a burst and strides (elements from the start of one burst to the start of the next)
local function move(self, pipe, dst, src, o)
  o = o or {}
  local count = o.count or math.min(dst.count, src.count)
  local bursts, burst = o.bursts or 1, o.burst or count
  emit(self, "move", pipe, "copy", dst, src, nothing, nothing, nil, bursts, burst * src.width, (o.src_stride or burst) * src.width,
    (o.dst_stride or burst) * dst.width)
end

function Tile:load(dst, src, o)
  buffer_of(dst, "the destination of load") buffer_of(src, "the source of load")
  if src.space ~= spaces.GM or dst.space == spaces.GM then fail "load moves from a tensor of the kernel to a buffer" end
  move(self, "MTE2", dst, src, o)
end

function Tile:store(dst, src, o)
  buffer_of(dst, "the destination of store") buffer_of(src, "the source of store")
  if dst.space ~= spaces.GM or src.space ~= spaces.UB then fail "store moves from UB to a tensor of the kernel" end
  move(self, "MTE3", dst, src, o)
end

function Tile:copy(dst, src, o)
  buffer_of(dst, "the destination of copy") buffer_of(src, "the source of copy")
  local ways = { [spaces.UB * 8 + spaces.UB] = "V", [spaces.UB * 8 + spaces.L1] = "MTE3", [spaces.L1 * 8 + spaces.UB] = "MTE1" }
  local pipe = ways[src.space * 8 + dst.space] or fail("copy has no way from " .. space_names[src.space] .. " to "
    .. space_names[dst.space])
  move(self, pipe, dst, src, o)
end

local function cube_input(dst, what)
  if dst.space ~= spaces.L0A and dst.space ~= spaces.L0B then fail(what .. " moves from L1 to L0A or L0B") end
end

--- Fractals of 512 bytes: count, src_stride and dst_stride in fractals, transpose.
function Tile:load2d(dst, src, o)
  buffer_of(dst, "the destination of load2d") buffer_of(src, "the source of load2d")
  cube_input(dst, "load2d")
  o = o or {}
  emit(self, "load2d", "MTE1", "copy", dst, src, nothing, nothing, nil, o.count or dst.count * dst.width // 512, o.src_stride or 1,
    o.dst_stride or 1, o.transpose and 1 or 0)
end

--- Windows of a picture (channels / 16, height, width, 16) in L1 as rows of a matrix.
function Tile:load3d(dst, src, o)
  buffer_of(dst, "the destination of load3d") buffer_of(src, "the source of load3d")
  cube_input(dst, "load3d")
  local kernel, stride, pad, dilation = o.kernel, o.stride or { 1, 1 }, o.padding or { 0, 0, 0, 0 }, o.dilation or { 1, 1 }
  emit(self, "load3d", "MTE1", "copy", dst, src, nothing, nothing, nil, o.height, o.width, o.channels, kernel[1], kernel[2], stride[1],
    stride[2], pad[1], pad[2], pad[3], pad[4], dilation[1], dilation[2], o.row or 0, o.rows, o.step or 0, o.steps)
end

--- c (m x n in L0C) = a (L0A) * b (L0B), or c + a * b where init is false: float16 to float32, or int8 in squares of 16 x 32 to int32.
function Tile:mmad(c, a, b, m, k, n, o)
  buffer_of(c, "c of mmad") buffer_of(a, "a of mmad") buffer_of(b, "b of mmad")
  if c.space ~= spaces.L0C or a.space ~= spaces.L0A or b.space ~= spaces.L0B then fail "mmad needs c in L0C, a in L0A and b in L0B" end
  local halves = a.dtype == "float16" and b.dtype == "float16" and c.dtype == "float32"
  if not halves and not (a.dtype == "int8" and b.dtype == "int8" and c.dtype == "int32") then
    fail "mmad multiplies float16 and adds in float32, or multiplies int8 and adds in int32"
  end
  emit(self, "mmad", "M", "copy", c, a, b, nothing, nil, m, k, n, (o == nil or o.init ~= false) and 1 or 0)
end

--- L0C to UB, converted to the type of the destination. count: elements; relu.
function Tile:drain(dst, src, o)
  buffer_of(dst, "the destination of drain") buffer_of(src, "the source of drain")
  if dst.space ~= spaces.UB or src.space ~= spaces.L0C then fail "drain moves from L0C to UB" end
  o = o or {}
  emit(self, "drain", "V", "copy", dst, src, nothing, nothing, nil, (o.count or src.count) // 256, o.src_stride or 1, o.relu and 1 or 0)
end

-- Writes a vector instruction over operands that begin `offset` elements later.
local function write_vector(self, opcode, kind, dst, a, b, c, options, offset, repeats, n, ds, as, bs)
  local number, register = 0.0, -1
  if options then number, register = options.number or 0.0, options.register or -1 end
  return emit_row(self._program, opcode, 1, kind, a.dtype, dst.dtype, dst.space, dst.tensor, dst.address + offset * dst.width, a.space,
    a.tensor, a.address + offset * a.width, b.space, b.tensor, b.address + offset * b.width, c.space, c.tensor,
    c.address + offset * c.width, number, register, repeats, n, ds, as, bs)
end

local function outside(dst, a, b, c, kind)
  for i, operand in ipairs { dst, a, b, c } do
    if operand.space ~= 5 then fail(("operand %d of %s must be in UB"):format(i, kind)) end
  end
end

-- Repeats and lanes of a vector instruction. Without options: as many elements as the destination has, by whole repeats
-- and a last shorter one. With them: repeats, lanes, strides (elements between repeats; 0 repeats an operand).
local function vector(self, op, name, dst, a, b, c, o, wide)
  if dst.space ~= 5 or a.space ~= 5 or b.space ~= 5 or c.space ~= 5 then outside(dst, a, b, c, name) end
  local opcode, kind = opcodes[op], kinds[name] or 0
  local wd, wa = wide or dst.width, a.width
  local lanes = 256 // (wd > wa and wd or wa)
  if o and o.repeats then
    local n = o.lanes or lanes
    local function blocks(stride, buffer)
      if o.repeats == 1 then return 8 end
      local bytes = (stride or n) * (buffer == nothing and 2 or buffer.width)
      if bytes % 32 ~= 0 then fail(("%s: a stride of %d bytes is no multiple of 32"):format(name, bytes)) end
      return bytes // 32
    end
    return write_vector(self, opcode, kind, dst, a, b, c, o, 0, o.repeats, n, blocks(o.dst_stride, dst), blocks(o.a_stride, a),
      blocks(o.b_stride, op == "select" and c or b))
  end
  local count = o and o.count or dst.count
  local offset = 0
  while count - offset >= lanes do
    local repeats = (count - offset) // lanes
    if repeats > 255 then repeats = 255 end
    write_vector(self, opcode, kind, dst, a, b, c, o, offset, repeats, lanes, lanes * dst.width // 32, lanes * wa // 32,
      lanes * (b ~= nothing and b.width or c ~= nothing and c.width or 2) // 32)
    offset = offset + repeats * lanes
  end
  if offset < count then return write_vector(self, opcode, kind, dst, a, b, c, o, offset, 1, count - offset, 8, 8, 8) end
end

for _, name in ipairs { "vadd", "vsub", "vmul", "vmax", "vmin", "vdiv", "vmla" } do
  local opcode, kind = opcodes.binary, kinds[name]
  Tile[name] = function(self, dst, a, b, o)
    if getmetatable(dst) ~= Buffer or getmetatable(a) ~= Buffer or getmetatable(b) ~= Buffer then
      buffer_of(dst, "dst") buffer_of(a, "a") buffer_of(b, "b")
    end
    -- One instruction over whole repeats, which is what most are.
    local width = dst.width
    local lanes = 256 // width
    local repeats, rest = dst.count // lanes, dst.count % lanes
    if o == nil and rest == 0 and repeats <= 255 and a.width == width and b.width == width and dst.space == 5 and a.space == 5
      and b.space == 5 then
      return emit_row(self._program, opcode, 1, kind, a.dtype, dst.dtype, 5, dst.tensor, dst.address, 5, a.tensor, a.address, 5,
        b.tensor, b.address, 5, 0, 0, 0.0, -1, repeats, lanes, 8, 8, 8)
    end
    vector(self, "binary", name, dst, a, b, nothing, o)
  end
end
for _, name in ipairs { "vabs", "vrelu", "vexp", "vln", "vrec", "vrsqrt", "vsqrt" } do
  Tile[name] = function(self, dst, a, o) vector(self, "unary", name, buffer_of(dst, "dst"), buffer_of(a, "a"), nothing, nothing, o) end
end
-- The number may be the name of a scalar register: { register = 3 }.
for _, name in ipairs { "vadds", "vmuls", "vmaxs", "vmins", "vaxpy" } do
  Tile[name] = function(self, dst, a, number, o)
    local options = { number = 0.0 }
    for key, value in pairs(o or {}) do options[key] = value end
    if type(number) == "table" then options.register = number.register else options.number = number end
    if type(options.number) ~= "number" then fail(name .. ": a number or { register = n } is expected") end
    vector(self, "with_scalar", name, buffer_of(dst, "dst"), buffer_of(a, "a"), nothing, nothing, options)
  end
end

function Tile:vdup(dst, number, o)
  local options = { number = 0.0 }
  for key, value in pairs(o or {}) do options[key] = value end
  if type(number) == "table" then options.register = number.register else options.number = number end
  if type(options.number) ~= "number" then fail "vdup: a number or { register = n } is expected" end
  buffer_of(dst, "dst")
  local same = { space = dst.space, tensor = 0, address = dst.address, dtype = dst.dtype, width = dst.width, count = dst.count }
  vector(self, "duplicate", "copy", dst, setmetatable(same, Buffer), nothing, nothing, options)
end

function Tile:vconv(dst, a, o)
  buffer_of(dst, "dst") buffer_of(a, "a")
  vector(self, "convert", "copy", dst, a, nothing, nothing, o, math.max(dst.width, a.width))
end

--- A bit for each element: kind is "lt", "le", "gt", "ge", "eq" or "ne".
function Tile:vcmp(kind, dst, a, b, o)
  if not (kinds[kind] and #kind == 2) then fail "vcmp compares by lt, le, gt, ge, eq or ne" end
  buffer_of(dst, "dst") buffer_of(a, "a") buffer_of(b, "b")
  local lanes = 256 // a.width
  local count = o and o.count or a.count
  if count % lanes ~= 0 and count > lanes then fail(("vcmp takes whole repeats of %d elements, got %d"):format(lanes, count)) end
  local n = math.min(lanes, count)
  emit(self, "compare", "V", kind, dst, a, b, nothing, nil, count // n, n, 8, 8, 8)
end

--- Where the bit is set the element of a, else that of b.
function Tile:vsel(dst, mask, a, b, o)
  buffer_of(dst, "dst") buffer_of(mask, "mask") buffer_of(a, "a") buffer_of(b, "b")
  local lanes = 256 // a.width
  local count = o and o.count or dst.count
  if count % lanes ~= 0 and count > lanes then fail(("vsel takes whole repeats of %d elements, got %d"):format(lanes, count)) end
  local n = math.min(lanes, count)
  emit(self, "select", "V", "copy", dst, a, mask, b, nil, count // n, n, 8, 8, 8)
end

for _, name in ipairs { "vcadd", "vcmax", "vcmin", "vcgadd", "vcgmax", "vcgmin", "vcpadd" } do
  Tile[name] = function(self, dst, a, o)
    buffer_of(dst, "dst") buffer_of(a, "a")
    local lanes = o and o.lanes or math.min(256 // a.width, a.count)
    local repeats = o and o.repeats or a.count // lanes
    local stride = repeats == 1 and 256 or (o and o.a_stride or lanes) * a.width
    if stride % 32 ~= 0 then fail(("%s: a stride of %d bytes is no multiple of 32"):format(name, stride)) end
    emit(self, "reduce", "V", name, dst, a, nothing, nothing, nil, repeats, lanes, 0, stride // 32)
  end
end

--- Squares of 16 x 16 elements of 16 bits, transposed.
function Tile:vtranspose(dst, a, o)
  buffer_of(dst, "dst") buffer_of(a, "a")
  emit(self, "transpose", "V", "copy", dst, a, nothing, nothing, nil, o and o.count or a.count // 256, 128)
end

--- An element of UB into a scalar register (0 to 31).
function Tile:scalar_load(register, src)
  buffer_of(src, "src")
  emit(self, "scalar_load", "S", "copy", nothing, src, nothing, nothing, { register = register })
end

--- register = a kind b; a is a register, b a number or { register = n }; kind "add", "sub", "mul", "div", "max", "min", "rec", "rsqrt",
-- "sqrt".
function Tile:scalar(kind, register, a, b)
  local known = kinds["v" .. kind] or fail("scalar knows add, sub, mul, div, max, min, rec, rsqrt and sqrt, not " .. tostring(kind))
  local second = type(b) == "table" and b.register or -1
  core.emit(self._program, opcodes.scalar_op, pipes.S, known, "float32", "float32", 5, 0, 0, 5, 0, 0, 5, 0, 0, 5, 0, 0,
    type(b) == "number" and b or 0.0, register, a, second)
end

local function pipe_number(name) return pipes[name]
  or fail(("there is no pipe '%s'; there are: S, V, M, MTE1, MTE2, MTE3"):format(tostring(name))) end

local function flag(op)
  return function(self, from, to, id)
    local f, t = pipe_number(from), pipe_number(to)
    id = id or 0
    if math.type(id) ~= "integer" or id < 0 or id > 15 then fail("flags have numbers from 0 to 15, got " .. tostring(id)) end
    core.emit(self._program, opcodes[op], op == "set_flag" and f or t, 0, "float16", "float16", 5, 0, 0, 5, 0, 0, 5, 0, 0, 5, 0, 0, 0.0, -1,
      f, t, id)
  end
end
--- The pipe `to` waits where wait_flag stands until `from` has done all before set_flag.
Tile.set_flag, Tile.wait_flag = flag "set_flag", flag "wait_flag"

--- set_flag and wait_flag at once.
function Tile:sync(from, to, id)
  self:set_flag(from, to, id)
  self:wait_flag(from, to, id)
end

--- Waits for one pipe, or for all.
function Tile:barrier(pipe)
  core.emit(self._program, opcodes.barrier, pipe and pipe_number(pipe) or 0, 0, "float16", "float16", 5, 0, 0, 5, 0, 0, 5, 0, 0, 5, 0,
    0, 0.0,
    -1, pipe and pipe_number(pipe) or -1)
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
  local width = widths[name] or fail("kernels work on float16, float32, int32, int16, int8 and uint8, not " .. name)
  return setmetatable({ space = spaces.GM, tensor = index, address = 0, dtype = name, width = width, count = count, shape = shape }, Buffer)
end

return M
