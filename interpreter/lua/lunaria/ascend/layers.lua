-- Tile programs of layers, whose sums are float32: gelu, the gradient of relu, average pooling, batch normalisation, Adam.
local ms = require "lunaria"
local formats = require "lunaria.ascend.formats"
local kernel = require("lunaria.ascend.kernel").kernel

local function same(x) return { shape = x.shape, dtype = x.dtype } end

-- Adds them to the library's kernels M; `tools` has stream, cores and half of the file that asks.
return function(M, tools)
  local stream, cores, half = tools.stream, tools.cores, tools.half

  -- x times the logistic function of 2 sqrt(2 / pi) (x + 0.044715 x^3).
  M.gelu = kernel("gelu", { blocks = cores }, function(t, x, y)
    local wide, work = t:ub(ms.float32, 4096), t:ub(ms.float32, 4096)
    stream(t, { x }, { y }, y.count, 128, 4096, function(tile, outs, ins, count)
      local o = { count = count }
      tile:vconv(wide, ins[1], o)
      tile:vmul(work, wide, wide, o)
      tile:vmuls(work, work, 0.044715, o)
      tile:vadds(work, work, 1.0, o)
      tile:vmul(work, work, wide, o)
      tile:vmuls(work, work, -1.5957691216057308, o)
      tile:vmins(work, work, 80.0, o) -- exp stays finite
      tile:vexp(work, work, o)
      tile:vadds(work, work, 1.0, o)
      tile:vrec(work, work, o)
      tile:vmul(work, work, wide, o)
      tile:vconv(outs[1], work, o)
    end)
  end)

  -- dy where x is positive. Comparisons take whole repeats.
  M.relu_grad = kernel("relu_grad", { blocks = cores }, function(t, dy, x, dx)
    local zero, mask = t:ub(ms.float16, 8192), t:ub(ms.uint8, 1024)
    t:vdup(zero, 0.0)
    stream(t, { dy, x }, { dx }, dx.count, 128, 8192, function(tile, outs, ins, count)
      local o = { count = (count + 127) // 128 * 128 }
      if count % 128 > 0 then -- what lies behind the elements was never loaded
        local rest = count // 128 * 128
        if rest > 0 then
          tile:vcmp("gt", mask, ins[2], zero, { count = rest })
          tile:vsel(outs[1], mask, ins[1], zero, { count = rest })
        end
        tile:vcmp("gt", mask, ins[2]:at(rest), zero, { count = count - rest })
        tile:vsel(outs[1]:at(rest), mask, ins[1]:at(rest), zero, { count = count - rest })
        return
      end
      tile:vcmp("gt", mask, ins[2], zero, o)
      tile:vsel(outs[1], mask, ins[1], zero, o)
    end)
  end)

  -- Means of windows in (n, c / 16, h, w, 16), without padding.
  local function avg_pool(size, stride)
    local function out_size(n) return (n - size) // stride + 1 end
    return kernel("avg_pool", { blocks = function(x) return math.min(32, x.shape[1] * x.shape[2]) end, outputs = function(x)
      return { shape = { x.shape[1], x.shape[2], out_size(x.shape[3]), out_size(x.shape[4]), 16 }, dtype = x.dtype }
    end }, function(t, x, y)
      local h, w, oh, ow = x.shape[3], x.shape[4], y.shape[3], y.shape[4]
      local rows, wide = t:ub(ms.float16, size * w * 16), t:ub(ms.float32, size * w * 16)
      local sums, means = t:ub(ms.float32, ow * 16), t:ub(ms.float16, ow * 16)
      for plane = t.block, x.shape[1] * x.shape[2] - 1, t.blocks do
        for i = 0, oh - 1 do
          t:load(rows, x:at((plane * h + i * stride) * w * 16), { count = size * w * 16 })
          t:sync("MTE2", "V")
          t:vconv(wide, rows)
          for j = 0, ow - 1 do
            local at = sums:at(j * 16, 16)
            t:vadds(at, wide:at(j * stride * 16), 0.0)
            for k = 1, size * size - 1 do t:vadd(at, at, wide:at((k // size * w + j * stride + k % size) * 16, 16)) end
          end
          t:vmuls(sums, sums, 1 / (size * size))
          t:vconv(means, sums)
          t:sync("V", "MTE3")
          t:store(y:at((plane * oh + i) * ow * 16), means, { count = ow * 16 })
          t:barrier()
        end
      end
    end)
  end

  function M.avg_pool(x, size, stride)
    half("avg_pool", x)
    local y = avg_pool(size, stride or size)(formats.to_format(x, "NC1HWC0"))
    return formats.from_format(y, "NC1HWC0", { x.shape[1], x.shape[2], y.shape[3], y.shape[4] })
  end

  -- Batch normalisation of (n, c / 16, pixels, 16) by the statistics of the batch: a block has 16 channels, and goes over their
  -- pixels twice. Four pixels are a repeat of float32, so that four partial sums of each channel are added up at the end.
  local batch_norm = kernel("batch_norm", { blocks = function(x) return x.shape[2] end, outputs = same },
    function(t, x, gamma, beta, y)
      local images, groups, pixels = x.shape[1], x.shape[2], x.shape[3]
      local raw, wide = t:ub(ms.float16, pixels * 16), t:ub(ms.float32, pixels * 16)
      local square = t:ub(ms.float32, pixels * 16)
      local total, squares, scale, shift = t:ub(ms.float32, 64), t:ub(ms.float32, 64), t:ub(ms.float32, 64), t:ub(ms.float32, 64)
      local function place(n) return (n * groups + t.block) * pixels * 16 end
      local function each(f)
        for n = 0, images - 1 do
          t:load(raw, x:at(place(n)), { count = pixels * 16 })
          t:sync("MTE2", "V")
          t:vconv(wide, raw)
          f(n)
          t:barrier()
        end
      end
      local function add_up(into, from)
        local whole = pixels // 4
        for first = 0, whole - 1, 255 do
          t:vadd(into, from:at(first * 64), into, { repeats = math.min(255, whole - first), lanes = 64, dst_stride = 0, a_stride = 64,
            b_stride = 0 })
        end
        local rest = pixels % 4
        if rest > 0 then t:vadd(into, from:at(whole * 64), into, { count = rest * 16 }) end
      end
      -- The sum over the four partial ones, four times.
      local function fold(sums)
        for step = 1, 3 do t:vadd(sums:at(0, 16), sums:at(0, 16), sums:at(step * 16, 16)) end
        for step = 1, 3 do t:vadds(sums:at(step * 16, 16), sums:at(0, 16), 0.0) end
      end
      local function parameter(into, from)
        for step = 0, 3 do t:load(into:at(step * 16, 16), from:at(t.block * 16), { count = 16 }) end
      end
      t:vdup(total, 0.0)
      t:vdup(squares, 0.0)
      each(function()
        t:vmul(square, wide, wide)
        add_up(total, wide)
        add_up(squares, square)
      end)
      fold(total)
      fold(squares)
      local count = images * pixels
      t:vmuls(total, total, 1 / count)
      t:vmuls(squares, squares, 1 / count)
      t:vmul(shift, total, total)
      t:vsub(squares, squares, shift) -- the variance
      t:vmaxs(squares, squares, 0.0)
      t:vadds(squares, squares, 1e-5)
      t:vrsqrt(squares, squares)
      t:barrier()
      parameter(scale, gamma)
      parameter(shift, beta)
      t:sync("MTE2", "V", 1)
      t:vmul(scale, scale, squares)
      t:vmul(total, total, scale)
      t:vsub(shift, shift, total)
      each(function(n)
        local whole = pixels // 4
        for first = 0, whole - 1, 255 do
          local o = { repeats = math.min(255, whole - first), lanes = 64, dst_stride = 64, a_stride = 64, b_stride = 0 }
          t:vmul(wide:at(first * 64), wide:at(first * 64), scale, o)
          t:vadd(wide:at(first * 64), wide:at(first * 64), shift, o)
        end
        local rest = pixels % 4
        if rest > 0 then
          local at = wide:at(whole * 64, rest * 16)
          t:vmul(at, at, scale, { count = rest * 16 })
          t:vadd(at, at, shift, { count = rest * 16 })
        end
        t:vconv(raw, wide)
        t:sync("V", "MTE3")
        t:store(y:at(place(n)), raw, { count = pixels * 16 })
      end)
    end)

  function M.batch_norm(x, gamma, beta)
    half("batch_norm", x)
    local n, c, h, w = table.unpack(x.shape)
    local image = formats.to_format(x, "NC1HWC0")
    local function filled(p)
      local missing = image.shape[2] * 16 - c
      return missing > 0 and ms.ops.concat({ p, ms.ops.zeros({ missing }, p.dtype):to(p.device) }, 0) or p
    end
    local y = batch_norm(ms.ops.reshape(image, { n, image.shape[2], h * w, 16 }), filled(gamma), filled(beta))
    return formats.from_format(ms.ops.reshape(y, image.shape), "NC1HWC0", x.shape)
  end

  -- A step of Adam in float32, whose bias corrections are in `rate` and `eps`; the chip has no square root and no division.
  function M.adam(parameter, moment, square, gradient, rate, beta1, beta2, eps)
    local k = kernel("adam", { blocks = cores, outputs = function(p) return { same(p), same(p), same(p) } end },
      function(t, p, m, v, g, new_p, new_m, new_v)
        local work = t:ub(ms.float32, 2048)
        stream(t, { p, m, v, g }, { new_p, new_m, new_v }, p.count, 64, 2048, function(tile, outs, ins, count)
          local o = { count = count }
          tile:vmuls(outs[2], ins[2], beta1, o)
          tile:vmuls(work, ins[4], 1 - beta1, o)
          tile:vadd(outs[2], outs[2], work, o)
          tile:vmul(ins[4], ins[4], ins[4], o)
          tile:vmuls(ins[4], ins[4], 1 - beta2, o)
          tile:vmuls(outs[3], ins[3], beta2, o)
          tile:vadd(outs[3], outs[3], ins[4], o)
          tile:vmaxs(work, outs[3], 1e-30, o)
          tile:vrsqrt(ins[4], work, o)
          tile:vmul(work, work, ins[4], o)
          tile:vadds(work, work, eps, o)
          tile:vrec(work, work, o)
          tile:vmul(work, work, outs[2], o)
          tile:vmuls(work, work, -rate, o)
          tile:vadd(outs[1], ins[1], work, o)
        end)
      end)
    return k(parameter, moment, square, gradient)
  end
end
