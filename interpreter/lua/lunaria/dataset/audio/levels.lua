-- Loudness, and numbers of sounds one by one.
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"
local common = require "lunaria.dataset.audio.common"
local native = require "lunaria.steps"
local steps = require "lunaria.dataset.steps"

local fail, describe, check = arguments.fail, arguments.describe, arguments.check
local ops = ms.ops

return function(audio)
  local function define(...) return common.define(audio, ...) end
  local function cut(x) return ops.clamp(x, -1.0, 1.0) end

  steps.enumeration(audio, "ScaleType", [[What a spectrogram has: POWER or MAGNITUDE.

    > ms.dataset.audio.ScaleType.POWER
    power]], { POWER = "power", MAGNITUDE = "magnitude" })
  steps.enumeration(audio, "GainType", [[What the gain of Vol is: AMPLITUDE or POWER, a factor, or DB, decibels.

    > ms.dataset.audio.GainType.DB
    db]], { AMPLITUDE = "amplitude", POWER = "power", DB = "db" })
  steps.enumeration(audio, "FadeShape", [[How a sound fades: LINEAR, EXPONENTIAL, LOGARITHMIC, QUARTER_SINE or HALF_SINE.

    > ms.dataset.audio.FadeShape.HALF_SINE
    half_sine]], { LINEAR = "linear", EXPONENTIAL = "exponential", LOGARITHMIC = "logarithmic", QUARTER_SINE = "quarter_sine",
      HALF_SINE = "half_sine" })

  define("AmplitudeToDB", "stype='power', ref_value=1.0, amin=1e-10, top_db=80.0", [[
A spectrogram in decibels. stype: one of ScaleType, what it has. ref_value: what 0 decibels are. amin: smaller numbers count as this one.
top_db: at most so many decibels below the loudest.

    > ms.dataset.audio.AmplitudeToDB()(ms.tensor { { 1.0, 100.0 } }):tolist()[1][2]
    20.0]], function(a, name)
    local power = steps.choice(name, "stype", a.stype, audio, "ScaleType") == "power"
    local amin, ref = check.number_positive(name, "amin", a.amin), check.number_positive(name, "ref_value", a.ref_value)
    local top = a.top_db ~= nil and check.number_not_negative(name, "top_db", a.top_db) or nil
    return function(x)
      if x.ndim < 2 then fail(name,
        ("a spectrogram (..., frequency, time) is expected, got a tensor of shape %s"):format(tostring(x.shape))) end
      -- The loudest of all channels of a sound.
      local flat, back = common.flat(name, x, math.min(x.ndim, 3))
      return back(common.decibels(flat, power and 10 or 20, amin, ref, top))
    end
  end)
  define("DBToAmplitude", "ref, power", [[
ref * 10 ^ (x / 10) to the power `power`: 1 for powers, 0.5 for magnitudes.

    > ms.dataset.audio.DBToAmplitude(1.0, 1.0)(ms.tensor { 20.0 }):item() // 1
    100.0]], function(a, name)
    local ref, power = check.number(name, "ref", a.ref), check.number(name, "power", a.power)
    return function(x) return ref * ops.exp(x * (math.log(10) / 10 * power)) end
  end)

  local function pairs_of(name, x)
    if x.shape[x.ndim] ~= 2 then fail(name,
      ("complex numbers (..., 2) are expected, got a tensor of shape %s"):format(tostring(x.shape))) end
    return x
  end
  define("Angle", "", [[
The angles of complex numbers (..., 2).

    > ms.dataset.audio.Angle()(ms.tensor { { 0.0, 0.0 } }):item()
    0.0]], function(_, name)
    return function(x) return ops.atan2(pairs_of(name, x)["..., 1"], x["..., 0"]) end
  end)
  define("ComplexNorm", "power=1.0", [[
The magnitudes of complex numbers (..., 2), raised to power.

    > ms.dataset.audio.ComplexNorm()(ms.tensor { { 3.0, 4.0 } }):item()
    5.0]], function(a, name)
    local power = check.number_not_negative(name, "power", a.power)
    return function(x) return common.power(pairs_of(name, x), power) end
  end)
  define("Magphase", "power=1.0", [[
The magnitudes of complex numbers (..., 2), raised to power, and their angles.

    > ms.dataset.audio.Magphase()(ms.tensor { { 3.0, 4.0 } }):item()
    5.0]], function(a, name)
    local power = check.number_not_negative(name, "power", a.power)
    return function(x) return common.power(pairs_of(name, x), power), ops.atan2(x["..., 1"], x["..., 0"]) end
  end)

  local rise = {
    linear = function(t) return t end,
    exponential = function(t) return 2 ^ (t - 1) * t end,
    logarithmic = function(t) return math.log(0.1 + t, 10) + 1 end,
    quarter_sine = function(t) return math.sin(t * math.pi / 2) end,
    half_sine = function(t) return math.sin(t * math.pi - math.pi / 2) / 2 + 0.5 end,
  }
  define("Fade", "fade_in_len=0, fade_out_len=0, fade_shape='linear'", [[
A sound that becomes louder in its first fade_in_len samples, and softer in its last fade_out_len. fade_shape: one of FadeShape.

    > ms.dataset.audio.Fade(3, 0)(ms.ones { 4 }):tolist()[2]
    0.5]], function(a, name)
    local into, out = check.not_negative(name, "fade_in_len", a.fade_in_len), check.not_negative(name, "fade_out_len", a.fade_out_len)
    local curve = rise[steps.choice(name, "fade_shape", a.fade_shape, audio, "FadeShape")]
    local function ramp(count)
      local list = {}
      for i = 1, count do list[i] = math.max(0, math.min(1, curve(count == 1 and 0 or (i - 1) / (count - 1)))) end
      return list
    end
    return function(x)
      local length = x.shape[x.ndim]
      if into > length or out > length then
        fail(name, ("fade_in_len and fade_out_len must be at most the length, %d, got %d and %d"):format(length, into, out))
      end
      local factors = {}
      for i = 1, length do factors[i] = 1.0 end
      for i, f in ipairs(ramp(into)) do factors[i] = factors[i] * f end
      for i, f in ipairs(ramp(out)) do factors[length - i + 1] = factors[length - i + 1] * f end
      return cut(x * ms.tensor(factors, ms.float32))
    end
  end)

  define("Gain", "gain_db=1.0", [[
A sound gain_db decibels louder.

    > ms.dataset.audio.Gain(20)(ms.tensor { 0.5 }):item()
    5.0]], function(a, name)
    local factor = 10 ^ (check.number(name, "gain_db", a.gain_db) / 20)
    return function(x) return x * factor end
  end)
  define("Vol", "gain, gain_type='amplitude'", [[
A sound louder or softer by gain, cut to [-1, 1]. gain_type: one of GainType, what gain is.

    > ms.dataset.audio.Vol(0.5)(ms.tensor { 0.5 }):item()
    0.25]], function(a, name)
    local gain, kind = check.number(name, "gain", a.gain), steps.choice(name, "gain_type", a.gain_type, audio, "GainType")
    if kind ~= "db" and gain < 0 then fail(name, ("gain must not be negative, got %g"):format(gain)) end
    local factor = kind == "db" and 10 ^ (gain / 20) or kind == "power" and 10 ^ (10 * math.log(math.max(gain, 1e-300), 10) / 20) or gain
    return function(x) return cut(x * factor) end
  end)

  local function channels_of(name, a)
    local channels = check.positive(name, "quantization_channels", a.quantization_channels)
    if channels < 2 then fail(name, "quantization_channels must be at least 2, got 1") end
    return channels - 1
  end
  define("MuLawEncoding", "quantization_channels=256", [[
A sound in [-1, 1] as integers of quantization_channels levels, which lie closer near 0.

    > ms.dataset.audio.MuLawEncoding()(ms.tensor { 0.0, 1.0 }):tolist()[1]
    128]], function(a, name)
    local mu = channels_of(name, a)
    return function(x)
      local y = ops.sign(x) * ops.log1p(mu * ops.abs(x)) / math.log(1 + mu)
      return ((y + 1) / 2 * mu + 0.5):astype(ms.int32)
    end
  end)
  define("MuLawDecoding", "quantization_channels=256", [[
The sound of integers that MuLawEncoding gave, of quantization_channels levels.

    > ms.dataset.audio.MuLawDecoding()(ms.tensor({ 255 }, ms.int32)):item() > 0.99
    true]], function(a, name)
    local mu = channels_of(name, a)
    return function(x)
      local y = x:astype(ms.float32) / mu * 2 - 1
      return ops.sign(y) * (ops.exp(ops.abs(y) * math.log(1 + mu)) - 1) / mu
    end
  end, true)

  define("Contrast", "enhancement_amount=75.0", [[
A sound whose soft parts are louder. enhancement_amount: how much, 0 to 100.

    > ms.dataset.audio.Contrast()(ms.tensor { 0.0 }):item()
    0.0]], function(a, name)
    local amount = check.number(name, "enhancement_amount", a.enhancement_amount)
    if not (amount >= 0 and amount <= 100) then fail(name, ("enhancement_amount must be in [0, 100], got %g"):format(amount)) end
    return function(x)
      local y = x * (math.pi / 2)
      return ops.sin(y + amount / 750 * ops.sin(y * 4))
    end
  end)
  define("DCShift", "shift, limiter_gain=nil", [[
A sound plus shift, in [-2, 2]. limiter_gain: what would leave [-1, 1] is pressed together above the level that this leaves.

    > ms.dataset.audio.DCShift(0.25)(ms.tensor { 0.5 }):item()
    0.75]], function(a, name)
    local shift = check.number(name, "shift", a.shift)
    if not (shift >= -2 and shift <= 2) then fail(name, ("shift must be in [-2, 2], got %g"):format(shift)) end
    if a.limiter_gain == nil then return function(x) return cut(x + shift) end end
    local gain = check.number(name, "limiter_gain", a.limiter_gain)
    local threshold = 1 - (math.abs(shift) - gain)
    return function(x)
      if shift > 0 then
        local high = ops.clamp((x - threshold) * (gain / (1 - threshold)) + threshold + shift, nil, threshold)
        return ops.where(ops.greater(x, threshold), high, cut(x + shift))
      end
      local low = ops.clamp((x + threshold) * (gain / (1 - threshold)) - threshold + shift, -threshold, nil)
      return ops.where(ops.less(x, -threshold), low, cut(x + shift))
    end
  end)
  define("ComputeDeltas", "win_length=5, pad_mode='edge'", [[
How fast a spectrogram (..., frequency, time) changes: the slope of win_length neighbours in time, odd and at least 3. pad_mode: one of
BorderType, "edge" or "constant".

    > ms.dataset.audio.ComputeDeltas()(ms.arange(8):astype(ms.float32):reshape { 1, 8 }):tolist()[1][4]
    1.0]], function(a, name)
    local n = check.positive(name, "win_length", a.win_length)
    if n < 3 or n % 2 == 0 then fail(name, ("win_length must be odd and at least 3, got %d"):format(n)) end
    local mode = steps.choice(name, "pad_mode", a.pad_mode, audio, "BorderType")
    if mode ~= "edge" and mode ~= "constant" then fail(name, "pad_mode must be 'edge' or 'constant', got " .. describe(a.pad_mode)) end
    local half = n // 2
    local size = half * (half + 1) * (2 * half + 1) / 3
    return function(x)
      local flat, back = common.flat(name, x, 1)
      local length = flat.shape[2]
      local zeros = ms.zeros { flat.shape[1], half }
      local first, last = zeros, zeros
      if mode == "edge" then
        first = ops.broadcast_to(flat[":, 0:1"], { flat.shape[1], half })
        last = ops.broadcast_to(flat[(":, %d:%d"):format(length - 1, length)], { flat.shape[1], half })
      end
      local wide, sum = ops.concat({ first, flat, last }, 1), nil
      for k = -half, half do
        local part = wide[(":, %d:%d"):format(half + k, half + k + length)] * (k / size)
        sum = sum and sum + part or part
      end
      return back(sum)
    end
  end)

  local function path_of(where, filename)
    if type(filename) ~= "string" then fail(where, "filename must be a path, got " .. describe(filename)) end
    return filename
  end

  --- The sound in the file filename: samples (channels, time), samples per second, and bits of each in the file. WAV is read by the
  --- library; FLAC, Ogg, MP3, AIFF and others by libsndfile where it is installed. Samples are float32 in [-1, 1]; raw = true gives
  --- those of a WAV as the integers that they are, where it has such. A WAV that ends before its samples do is an error;
  --- cut_short = true reads what is there of it.
  ---     > path = os.tmpname()
  ---     > head = ("<I4c4c4I4I2I2I4I4I2I2c4I4"):pack(40, "WAVE", "fmt ", 16, 1, 1, 8000, 16000, 2, 16, "data", 4)
  ---     > ms.dataset.vision.write_file(path, "RIFF" .. head .. ("<i2i2"):pack(16384, -32768))
  ---     > samples, rate = ms.dataset.audio.read(path)
  ---     > samples:tolist()[1][1], rate, os.remove(path) --> 0.5	8000	true
  function audio.read(filename, raw, cut_short)
    raw, cut_short = arguments.named("read", { "raw", "cut_short" }, raw, cut_short)
    if raw ~= nil then check.boolean("read", "raw", raw) end
    if cut_short ~= nil then check.boolean("read", "cut_short", cut_short) end
    return native.sound(path_of("read", filename), native.read(filename), raw == true, cut_short == true)
  end
end
