-- The parts of the transforms of sounds: functions from tensors to tensors that are put together of operators. Sounds
-- are tensors of floats (..., time), spectrograms (..., frequency, time); complex numbers are pairs along a last axis.
local ms = require "lunaria"
local data = require "lunaria.data"
local arguments = require "lunaria.nn.arguments"
local class = require "lunaria.nn.class"
local native = require "lunaria.steps"
local steps = require "lunaria.dataset.steps"

local fail, describe, check = arguments.fail, arguments.describe, arguments.check
local ops = ms.ops
local common = {}

--- A class whose setup(a, name) gives a function of one tensor of floats.
function common.define(group, name, signature, doc, setup, takes_integers)
  local transform = class.define(steps.Transform, name, signature, doc)
  function transform:setup(a) self._call = setup(a, name) end
  function transform:__call(x)
    if type(x) == "table" and not ms.is_tensor(x) then x = ms.tensor(x) end
    if not ms.is_tensor(x) then fail(name, "a tensor is expected, got " .. describe(x)) end
    if x.size == 0 then fail(name, ("there are no samples in a tensor of shape %s"):format(tostring(x.shape))) end
    local kind = tostring(x.dtype)
    if not takes_integers and not kind:find "Float" then
      fail(name, ("a tensor of floats is expected, got one of %s"):format(kind), "x:astype(ms.float32) converts it")
    end
    return self._call(takes_integers and x or x:astype(ms.float32))
  end
  group[name] = transform
  return transform
end

-- A native step as a function.
function common.step(kind, name, numbers)
  local handle = native.make(kind, name, numbers)
  return function(...) return data.transform(handle, ...) end
end

function common.shape(x)
  local list = {}
  for i = 1, x.ndim do list[i] = x.shape[i] end
  return list
end

-- The tensor with its axes but the last `count` as one, and a function that gives them back to a result.
function common.flat(name, x, count)
  local shape = common.shape(x)
  if #shape < count then fail(name, ("a tensor of at least %d axes is expected, got one of shape %s"):format(count,
    tostring(x.shape))) end
  local front, rows = {}, 1
  for i = 1, #shape - count do front[i], rows = shape[i], rows * shape[i] end
  local inner = { rows, table.unpack(shape, #shape - count + 1) }
  return x:reshape(inner), function(y)
    local all = { table.unpack(front) }
    for i = 2, y.ndim do all[#all + 1] = y.shape[i] end
    return y:reshape(all)
  end
end

-- The first of the zero-order Bessel functions, for Kaiser's window.
local function bessel(x)
  local sum, term, k = 1.0, 1.0, 1
  while term > 1e-17 * sum do
    term = term * (x / (2 * k)) ^ 2
    sum, k = sum + term, k + 1
  end
  return sum
end

local shapes = {
  bartlett = function(t) return 1 - math.abs(2 * t - 1) end,
  blackman = function(t) return 0.42 - 0.5 * math.cos(2 * math.pi * t) + 0.08 * math.cos(4 * math.pi * t) end,
  hamming = function(t) return 0.54 - 0.46 * math.cos(2 * math.pi * t) end,
  hann = function(t) return 0.5 - 0.5 * math.cos(2 * math.pi * t) end,
  kaiser = function(t) return bessel(12 * math.sqrt(math.max(0, 1 - (2 * t - 1) ^ 2))) / bessel(12) end,
}

--- A periodic window of win_length numbers in the middle of n_fft.
function common.window(kind, win_length, n_fft)
  local list, left = {}, (n_fft - win_length) // 2
  for i = 1, n_fft do
    local k = i - 1 - left
    list[i] = k >= 0 and k < win_length and shapes[kind](k / win_length) or 0.0
  end
  return ms.tensor(list, ms.float32)
end

-- The sizes that transforms by frames share.
function common.frames_of(name, a)
  local n_fft = check.positive(name, "n_fft", a.n_fft)
  if n_fft > 1 << 24 then fail(name, ("n_fft must be at most %d, got %d"):format(1 << 24, n_fft)) end
  local win_length = a.win_length == nil and n_fft or check.positive(name, "win_length", a.win_length)
  if win_length > n_fft then fail(name, ("win_length must be at most n_fft, got %d and %d"):format(win_length, n_fft)) end
  local hop = a.hop_length == nil and win_length // 2 or check.positive(name, "hop_length", a.hop_length)
  if hop == 0 then fail(name, "hop_length must be positive: win_length // 2 is 0") end
  return { n_fft = n_fft, win_length = win_length, hop = hop }
end

local function padded(name, x, count, mode)
  if count == 0 then return x end
  local n = x.shape[2]
  if mode == "constant" then
    local zeros = ms.zeros { x.shape[1], count }
    return ops.concat({ zeros, x, zeros }, 1)
  elseif mode == "edge" then
    local first, last = x[":, 0:1"], x[(":, %d:%d"):format(n - 1, n)]
    return ops.concat({ ops.broadcast_to(first, { x.shape[1], count }), x, ops.broadcast_to(last, { x.shape[1], count }) }, 1)
  end
  local skipped = mode == "reflect" and 1 or 0
  if n < count + skipped then
    fail(name, ("a sound of %d samples is too short to be mirrored by %d"):format(n, count), "a smaller n_fft, or pad_mode = 'constant'")
  end
  local left = x[(":, %d:%d"):format(skipped, count + skipped)]:flip(1)
  local right = x[(":, %d:%d"):format(n - count - skipped, n - skipped)]:flip(1)
  return ops.concat({ left, x, right }, 1)
end

--- Short-time Fourier transform of (rows, time): pairs (rows, frequency, frames, 2). p: n_fft, win_length, hop, window, pad,
--- center, pad_mode, normalized, onesided.
function common.stft(name, x, p)
  if (p.pad or 0) > 0 then x = padded(name, x, p.pad, "constant") end
  if p.center ~= false then x = padded(name, x, p.n_fft // 2, p.pad_mode or "reflect") end
  local frames = (x.shape[2] - p.n_fft) // p.hop + 1
  if frames < 1 then fail(name, ("a sound of %d samples is shorter than a frame of %d"):format(x.shape[2], p.n_fft)) end
  local places = ms.arange(frames):reshape { frames, 1 } * p.hop + ms.arange(p.n_fft)
  local framed = ops.gather(x, places, 1) * p.weights
  local pairs = ops.view_as_real(p.onesided == false and ops.fft(framed) or ops.rfft(framed))
  if p.normalized then pairs = pairs / p.energy end
  return pairs:transpose { 0, 2, 1, 3 }
end

--- The sound (rows, time) of pairs (rows, frequency, frames, 2).
function common.istft(name, pairs, p, length)
  local frames = pairs.shape[3]
  if p.normalized then pairs = pairs * p.energy end
  local spectrum = ops.view_as_complex(pairs:transpose { 0, 2, 1, 3 })
  local framed
  if p.onesided == false then
    framed = ops.view_as_real(ops.ifft(spectrum))["..., 0"]
  else
    framed = ops.irfft(spectrum, p.n_fft)
  end
  p.add = p.add or common.step("overlap_add", name, { p.hop })
  local sound = p.add(framed * p.weights)
  local envelope = p.add(ops.broadcast_to((p.weights * p.weights):reshape { 1, 1, p.n_fft }, { 1, frames, p.n_fft }))
  local from, to = p.center ~= false and p.n_fft // 2 or 0, sound.shape[2]
  to = length and math.min(to, from + length) or p.center ~= false and to - p.n_fft // 2 or to
  if to <= from then fail(name, "the sound would have no samples") end
  local cut = (":, %d:%d"):format(from, to)
  local result = sound[cut] / ops.maximum(envelope[cut], ms.tensor(1e-11))
  if p.pad and p.pad > 0 then result = result[(":, %d:%d"):format(p.pad, result.shape[2] - p.pad)] end
  if length and result.shape[2] < length then result = ops.concat({ result, ms.zeros { result.shape[1],
    length - result.shape[2] } }, 1) end
  return result
end

function common.power(pairs, power)
  local squares = (pairs * pairs):sum { axis = -1 }
  if power == 2 then return squares end
  return ops.pow(squares, power / 2)
end

--- Filters (n_freqs, n_mels) in the shape of triangles that are equally wide on the mel scale.
function common.mel_filters(n_freqs, f_min, f_max, n_mels, rate, norm, scale)
  local to, from
  if scale == "slaney" then
    local step = math.log(6.4) / 27
    to = function(f) return f < 1000 and f * 3 / 200 or 15 + math.log(f / 1000) / step end
    from = function(m) return m < 15 and m * 200 / 3 or 1000 * math.exp(step * (m - 15)) end
  else
    to = function(f) return 2595 * math.log(1 + f / 700, 10) end
    from = function(m) return 700 * (10 ^ (m / 2595) - 1) end
  end
  local low, high, points = to(f_min), to(f_max), {}
  for i = 0, n_mels + 1 do points[i] = from(low + (high - low) * i / (n_mels + 1)) end
  return common.triangles(n_freqs, points, n_mels, rate, norm == "slaney")
end

function common.triangles(n_freqs, points, count, rate, of_area)
  local rows = {}
  for i = 1, n_freqs do
    local f, row = n_freqs == 1 and 0 or (rate // 2) * (i - 1) / (n_freqs - 1), {}
    for m = 1, count do
      local up, down = (f - points[m - 1]) / (points[m] - points[m - 1]), (points[m + 1] - f) / (points[m + 1] - points[m])
      row[m] = math.max(0, math.min(up, down)) * (of_area and 2 / (points[m + 1] - points[m - 1]) or 1)
    end
    rows[i] = row
  end
  return ms.tensor(rows, ms.float32)
end

--- The cosine transform (n_mels, n_mfcc).
function common.cosines(n_mfcc, n_mels, ortho)
  local rows = {}
  for n = 1, n_mels do
    local row = {}
    for k = 1, n_mfcc do
      row[k] = math.cos(math.pi / n_mels * (n - 0.5) * (k - 1)) * (ortho and math.sqrt(2 / n_mels) * (k == 1 and math.sqrt(0.5)
        or 1) or 2)
    end
    rows[n] = row
  end
  return ms.tensor(rows, ms.float32)
end

--- (rows, n, time) times (n, m): (rows, m, time).
function common.along_bands(x, matrix) return ops.matmul(x:transpose { 0, 2, 1 }, matrix):transpose { 0, 2, 1 } end

--- Decibels of (rows, ...), at most top_db below the loudest of each row.
function common.decibels(x, multiplier, amin, ref, top_db)
  local db = multiplier / math.log(10) * (ops.log(ops.maximum(x, ms.tensor(amin))) - math.log(math.max(amin, ref)))
  if not top_db then return db end
  local axes, shape = {}, { x.shape[1] }
  for i = 2, x.ndim do axes[i - 1], shape[i] = i - 1, 1 end
  return ops.maximum(db, ops.amax(db, axes):reshape(shape) - top_db)
end

return common
