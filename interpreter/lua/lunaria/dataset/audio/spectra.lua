-- Spectra of sounds, and sounds of spectra.
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"
local common = require "lunaria.dataset.audio.common"
local steps = require "lunaria.dataset.steps"

local fail, check = arguments.fail, arguments.check
local ops = ms.ops

return function(audio)
  local function define(...) return common.define(audio, ...) end
  local function choice(name, what, value, enumeration) return steps.choice(name, what, value, audio, enumeration) end

  steps.enumeration(audio, "WindowType", [[By what frames are weighted: BARTLETT, BLACKMAN, HAMMING, HANN or KAISER.

    > ms.dataset.audio.WindowType.HANN
    hann]], { BARTLETT = "bartlett", BLACKMAN = "blackman", HAMMING = "hamming", HANN = "hann", KAISER = "kaiser" })
  steps.enumeration(audio, "BorderType", [[What is beyond a sound: CONSTANT, EDGE, REFLECT or SYMMETRIC, as of images.

    > ms.dataset.audio.BorderType.REFLECT
    reflect]], { CONSTANT = "constant", EDGE = "edge", REFLECT = "reflect", SYMMETRIC = "symmetric" })
  steps.enumeration(audio, "NormType", [[How filters are scaled: SLANEY by their area, NONE not.

    > ms.dataset.audio.NormType.NONE
    none]], { SLANEY = "slaney", NONE = "none" })
  steps.enumeration(audio, "NormMode", [[How cosine transforms are scaled: ORTHO or NONE.

    > ms.dataset.audio.NormMode.ORTHO
    ortho]], { ORTHO = "ortho", NONE = "none" })
  steps.enumeration(audio, "MelType", [[Which mel scale: HTK or SLANEY.

    > ms.dataset.audio.MelType.HTK
    htk]], { HTK = "htk", SLANEY = "slaney" })

  local frame_signature = "n_fft=400, win_length=nil, hop_length=nil, pad=0, window='hann'"
  local frame_words = [[ n_fft: samples of a frame; win_length: how many of them
are weighted, without it n_fft; hop_length: how far frames are apart, without it win_length // 2; pad: zeros at both ends; window: one
of WindowType.]]
  local more_signature = ", normalized=false, center=true, pad_mode='reflect', onesided=true"
  local more_words = [[ normalized: divided by the size of the window. center: frames stand around their times, with pad_mode, one of
BorderType, beyond the ends. onesided: only the frequencies from 0 to half the rate.]]

  local function frames(name, a)
    local p = common.frames_of(name, a)
    p.pad = check.not_negative(name, "pad", a.pad or 0)
    p.weights = common.window(choice(name, "window", a.window or "hann", "WindowType"), p.win_length, p.n_fft)
    p.energy = math.sqrt((p.weights * p.weights):sum():item())
    p.normalized = check.boolean(name, "normalized", a.normalized or false)
    p.center = a.center == nil or check.boolean(name, "center", a.center)
    p.onesided = a.onesided == nil or check.boolean(name, "onesided", a.onesided)
    p.pad_mode = choice(name, "pad_mode", a.pad_mode or "reflect", "BorderType")
    return p
  end
  audio._frames = frames

  -- A spectrogram of (rows, time), by the options of a.
  local function spectrogram(name, a)
    local p, power = frames(name, a), check.number_not_negative(name, "power", a.power or 2)
    return function(x)
      local pairs = common.stft(name, x, p)
      return power == 0 and pairs or common.power(pairs, power)
    end, p
  end

  define("Spectrogram", "n_fft=400, win_length=nil, hop_length=nil, pad=0, window='hann', power=2.0" .. more_signature, [[
The spectrogram (..., frequency, time) of a sound (..., time).]] .. frame_words .. [[ power: 1 for magnitudes, 2 for their squares,
  0 for complex
numbers as pairs.]] .. more_words .. [[


    > ms.dataset.audio.Spectrogram(64)(ms.ones { 400 }).shape
    (33, 13)]], function(a, name)
    local run = spectrogram(name, a)
    return function(x)
      local flat, back = common.flat(name, x, 1)
      return back(run(flat))
    end
  end)

  define("InverseSpectrogram", "length=nil, " .. frame_signature .. more_signature, [[
The sound (..., time) of complex numbers (..., frequency, time, 2), as Spectrogram gives them for power 0. length: how many samples.]]
    .. frame_words .. more_words .. [[


    > pairs_of = ms.dataset.audio.Spectrogram({ n_fft = 64, power = 0.0 })(ms.ones { 128 })
    > ms.dataset.audio.InverseSpectrogram({ n_fft = 64 })(pairs_of).shape
    (128,)]], function(a, name)
    local p = frames(name, a)
    local length = a.length ~= nil and check.positive(name, "length", a.length) or nil
    return function(x)
      local flat, back = common.flat(name, x, 3)
      return back(common.istft(name, flat, p, length))
    end
  end)

  local function mels(name, a, n_freqs)
    local rate = check.positive(name, "sample_rate", a.sample_rate)
    local low = check.number_not_negative(name, "f_min", a.f_min or 0.0)
    local high = a.f_max == nil and rate // 2 or check.number_positive(name, "f_max", a.f_max)
    if low >= high then fail(name, ("f_min must be less than f_max, got %g and %g"):format(low, high)) end
    return common.mel_filters(n_freqs, low, high, check.positive(name, "n_mels", a.n_mels), rate,
      choice(name, "norm", a.norm or "none", "NormType"), choice(name, "mel_scale", a.mel_scale or a.mel_type or "htk", "MelType"))
  end

  local mel_words = [[ n_mels: how many bands. sample_rate: samples per second of the sound. f_min and f_max: the range of frequencies,
without f_max up to half the rate. norm: one of NormType.]]

  define("MelScale", "n_mels=128, sample_rate=16000, f_min=0.0, f_max=nil, n_stft=201, norm='none', mel_type='htk'", [[
A spectrogram (..., n_stft, time) by bands of the mel scale (..., n_mels, time). n_stft: how many frequencies it has.]] .. mel_words .. [[
 mel_type: one of MelType.

    > ms.dataset.audio.MelScale(8, { n_stft = 33 })(ms.ones { 33, 5 }).shape
    (8, 5)]], function(a, name)
    local matrix = mels(name, a, check.positive(name, "n_stft", a.n_stft))
    return function(x)
      local flat, back = common.flat(name, x, 2)
      if flat.shape[2] ~= a.n_stft then fail(name, ("n_stft is %d, but the spectrogram has %d frequencies"):format(a.n_stft,
        flat.shape[2])) end
      return back(common.along_bands(flat, matrix))
    end
  end)

  define("InverseMelScale", "n_stft, n_mels=128, sample_rate=16000, f_min=0.0, f_max=nil, max_iter=100000, tolerance_loss=1e-05, "
    .. "tolerance_change=1e-08, sgdargs=nil, norm='none', mel_type='htk'", [[
A spectrogram (..., n_stft, time) whose bands of the mel scale are those that are given, as nearly as can be without negative numbers: by
multiplicative steps of least squares (Lee and Seung 2001), which need no rate. max_iter: at most so many; tolerance_loss and
tolerance_change: they end where the mean square of what is missing, or its change, is below. sgdargs is for programs from Python.]]
    .. mel_words .. [[ mel_type: one of MelType.

    > ms.dataset.audio.InverseMelScale(33, 8)(ms.ones { 8, 5 }).shape
    (33, 5)]], function(a, name)
    local matrix = mels(name, a, check.positive(name, "n_stft", a.n_stft))
    local most = check.positive(name, "max_iter", a.max_iter)
    local least = check.number_not_negative(name, "tolerance_loss", a.tolerance_loss)
    local change = check.number_not_negative(name, "tolerance_change", a.tolerance_change)
    return function(x)
      local flat, back = common.flat(name, x, 2)
      if flat.shape[2] ~= a.n_mels then fail(name, ("n_mels is %d, but there are %d bands"):format(a.n_mels, flat.shape[2])) end
      local wanted = common.along_bands(flat, matrix:transpose { 1, 0 })
      local guess, loss = ops.full({ flat.shape[1], a.n_stft, flat.shape[3] }, 1.0), math.huge
      local tiny = ms.tensor(1e-12)
      for turn = 1, most do
        local bands = common.along_bands(guess, matrix)
        guess = guess * wanted / ops.maximum(common.along_bands(bands, matrix:transpose { 1, 0 }), tiny)
        if turn % 10 == 0 then
          local now = ((common.along_bands(guess, matrix) - flat) ^ 2):mean():item()
          if now < least or math.abs(loss - now) < change then break end
          loss = now
        end
      end
      return back(guess)
    end
  end)

  define("MelSpectrogram", "sample_rate=16000, n_fft=400, win_length=nil, hop_length=nil, f_min=0.0, f_max=nil, pad=0, n_mels=128, "
    .. "window='hann', power=2.0" .. more_signature .. ", norm='none', mel_scale='htk'", [[
Spectrogram and MelScale in a row: (..., n_mels, time).]] .. frame_words .. mel_words .. more_words .. [[ power: 1 for magnitudes,
  2 for their
squares. mel_scale: one of MelType.

    > ms.dataset.audio.MelSpectrogram({ n_fft = 64, n_mels = 8 })(ms.ones { 400 }).shape
    (8, 13)]], function(a, name)
    local run, p = spectrogram(name, a)
    local matrix = mels(name, a, p.n_fft // 2 + 1)
    return function(x)
      local flat, back = common.flat(name, x, 1)
      return back(common.along_bands(run(flat), matrix))
    end
  end)

  -- Options of the spectrogram below, of names.
  local function inner(name, what, value, sample_rate)
    local a = { n_fft = 400, n_mels = 128, sample_rate = sample_rate, power = 2.0 }
    if value ~= nil and type(value) ~= "table" then fail(name, what .. " must be a table of options, as { n_fft = 400 }") end
    local known = {}
    local words = "n_fft n_mels win_length hop_length f_min f_max pad window power normalized center pad_mode onesided norm mel_scale"
    for word in words:gmatch "%S+" do
      known[word] = true
    end
    for key, item in pairs(value or {}) do
      if not known[key] then fail(name, ("%s has no option '%s'"):format(what, tostring(key))) end
      a[key] = item
    end
    return a
  end

  define("MFCC", "sample_rate=16000, n_mfcc=40, dct_type=2, norm='ortho', log_mels=false, melkwargs=nil", [[
Cepstral coefficients (..., n_mfcc, time) of a sound: the cosine transform of the bands of the mel scale in decibels. sample_rate: samples
per second. dct_type: 2. norm: one of NormMode. log_mels: logarithms in place of decibels. melkwargs: a table of options of
MelSpectrogram.

    > ms.dataset.audio.MFCC(16000, 5, { melkwargs = { n_fft = 64, n_mels = 8 } })(ms.ones { 400 }).shape
    (5, 13)]], function(a, name)
    if a.dct_type ~= 2 then fail(name, ("dct_type must be 2, got %s"):format(tostring(a.dct_type))) end
    local options = inner(name, "melkwargs", a.melkwargs, check.positive(name, "sample_rate", a.sample_rate))
    local run, p = spectrogram(name, options)
    local matrix = mels(name, options, p.n_fft // 2 + 1)
    local count = check.positive(name, "n_mfcc", a.n_mfcc)
    if count > options.n_mels then fail(name, ("n_mfcc must be at most n_mels, got %d and %d"):format(count, options.n_mels)) end
    local cosines = common.cosines(count, options.n_mels, choice(name, "norm", a.norm, "NormMode") == "ortho")
    return function(x)
      local flat, back = common.flat(name, x, 1)
      local bands = common.along_bands(run(flat), matrix)
      bands = a.log_mels and ops.log(bands + 1e-6) or common.decibels(bands, 10, 1e-10, 1, 80)
      return back(common.along_bands(bands, cosines))
    end
  end)

  define("LFCC", "sample_rate=16000, n_filter=128, n_lfcc=40, f_min=0.0, f_max=nil, dct_type=2, norm='ortho', log_lf=false, "
    .. "speckwargs=nil", [[
As MFCC, by n_filter bands that are equally wide in hertz: (..., n_lfcc, time). sample_rate: samples per second. f_min
  and f_max: the range of
frequencies. dct_type: 2. norm: one of NormMode. log_lf: logarithms in place of decibels. speckwargs: a table of options of
Spectrogram.

    > ms.dataset.audio.LFCC(16000, 16, 5, { speckwargs = { n_fft = 64 } })(ms.ones { 400 }).shape
    (5, 13)]], function(a, name)
    if a.dct_type ~= 2 then fail(name, ("dct_type must be 2, got %s"):format(tostring(a.dct_type))) end
    local rate = check.positive(name, "sample_rate", a.sample_rate)
    local run, p = spectrogram(name, inner(name, "speckwargs", a.speckwargs, rate))
    local count, filters = check.positive(name, "n_lfcc", a.n_lfcc), check.positive(name, "n_filter", a.n_filter)
    if count > filters then fail(name, ("n_lfcc must be at most n_filter, got %d and %d"):format(count, filters)) end
    local low = check.number_not_negative(name, "f_min", a.f_min)
    local high = a.f_max == nil and rate // 2 or check.number_positive(name, "f_max", a.f_max)
    if low >= high then fail(name, ("f_min must be less than f_max, got %g and %g"):format(low, high)) end
    local points = {}
    for i = 0, filters + 1 do points[i] = low + (high - low) * i / (filters + 1) end
    local matrix = common.triangles(p.n_fft // 2 + 1, points, filters, rate)
    local cosines = common.cosines(count, filters, choice(name, "norm", a.norm, "NormMode") == "ortho")
    return function(x)
      local flat, back = common.flat(name, x, 1)
      local bands = common.along_bands(run(flat), matrix)
      bands = a.log_lf and ops.log(bands + 1e-6) or common.decibels(bands, 10, 1e-10, 1, 80)
      return back(common.along_bands(bands, cosines))
    end
  end)

  define("SpectralCentroid", "sample_rate, " .. frame_signature, [[
The mean frequency of each frame, weighted by magnitudes: (..., 1, time). sample_rate: samples per second.]] .. frame_words .. [[


    > ms.dataset.audio.SpectralCentroid(16000, 64)(ms.ones { 400 }).shape
    (1, 13)]], function(a, name)
    local rate = check.positive(name, "sample_rate", a.sample_rate)
    local p = frames(name, a)
    local bins = p.n_fft // 2 + 1
    local hertz = ms.arange(bins):astype(ms.float32):reshape { 1, bins, 1 } * ((rate // 2) / math.max(bins - 1, 1))
    return function(x)
      local flat, back = common.flat(name, x, 1)
      local size = common.power(common.stft(name, flat, p), 1)
      return back((hertz * size):sum { axis = 1, keep_dims = true } / size:sum { axis = 1, keep_dims = true })
    end
  end)

  -- Frames at other times, with phases that go on as those of the sound do: pairs (rows, frequency, time, 2).
  local function stretched(pairs, rate, hop)
    local bins, times = pairs.shape[2], pairs.shape[3]
    local count = math.ceil(times / rate)
    local advance = (ms.arange(bins):astype(ms.float32) * (math.pi * hop / math.max(bins - 1, 1))):reshape { 1, bins, 1 }
    local longer = ops.concat({ pairs, ms.zeros { pairs.shape[1], bins, 2, 2 } }, 2)
    local at, share = {}, {}
    for i = 1, count do
      local t = (i - 1) * rate
      at[i], share[i] = math.floor(t), t % 1
    end
    local first = ops.gather(longer, ms.tensor(at, ms.int32), 2)
    local second = ops.gather(longer, ms.tensor(at, ms.int32) + 1, 2)
    local function angle(x) return ops.atan2(x["..., 1"], x["..., 0"]) end
    local one, two = angle(first), angle(second)
    local weight = ms.tensor(share, ms.float32)
    local size = common.power(second, 1) * weight + common.power(first, 1) * (1 - weight)
    local turn = two - one - advance
    turn = turn - 2 * math.pi * ops.round(turn / (2 * math.pi)) + advance
    local start = angle(pairs[":, :, 0:1"])
    local phase = ops.cumsum(count > 1 and ops.concat({ start, turn[(":, :, 0:%d"):format(count - 1)] }, 2) or start, 2)
    return ops.stack({ size * ops.cos(phase), size * ops.sin(phase) }, -1)
  end

  local function rate_of(name, what, value) return check.number_positive(name, what, value) end

  define("TimeStretch", "hop_length=nil, n_freq=201, fixed_rate=nil", [[
Complex numbers (..., n_freq, time, 2) of a sound that takes fixed_rate times less time and has the same pitch. hop_length: how far the
frames are apart, without it n_freq - 1. n_freq: how many frequencies there are.

    > ms.dataset.audio.TimeStretch(32, 33, 2.0)(ms.ones { 33, 10, 2 }).shape
    (33, 5, 2)]], function(a, name)
    local bins = check.positive(name, "n_freq", a.n_freq)
    local hop = a.hop_length == nil and bins - 1 or check.positive(name, "hop_length", a.hop_length)
    local rate = rate_of(name, "fixed_rate", a.fixed_rate or 1.0)
    return function(x)
      local flat, back = common.flat(name, x, 3)
      if flat.shape[2] ~= bins or flat.shape[4] ~= 2 then
        fail(name, ("complex numbers (..., %d, time, 2) are expected, got a tensor of shape %s"):format(bins, tostring(x.shape)))
      end
      return rate == 1 and x or back(stretched(flat, rate, hop))
    end
  end)

  define("PhaseVocoder", "rate, phase_advance", [[
As TimeStretch, by the factor rate. phase_advance: how far the phase of each frequency goes from frame to frame, a tensor (frequency, 1)
of equal steps from 0 on.

    > ms.dataset.audio.PhaseVocoder(2.0, ms.tensor { { 0.0 }, { 1.0 }, { 2.0 } })(ms.ones { 3, 10, 2 }).shape
    (3, 5, 2)]], function(a, name)
    local rate = rate_of(name, "rate", a.rate)
    if not ms.is_tensor(a.phase_advance) or a.phase_advance.size == 0 then fail(name, "phase_advance must be a tensor (frequency, 1)") end
    local bins = a.phase_advance.size
    local hop = a.phase_advance:reshape({ -1 })[bins - 1]:item() / math.pi
    return function(x)
      local flat, back = common.flat(name, x, 3)
      if flat.shape[2] ~= bins then fail(name, ("phase_advance has %d frequencies, the sound %d"):format(bins, flat.shape[2])) end
      return rate == 1 and x or back(stretched(flat, rate, hop))
    end
  end)

  define("PitchShift", "sample_rate, n_steps, bins_per_octave=12, n_fft=512, win_length=nil, hop_length=nil, window='hann'", [[
A sound with another pitch, as long as before. sample_rate: samples per second. n_steps: how many steps higher, bins_per_octave of which
are an octave. n_fft, win_length and hop_length: the frames, as of Spectrogram, where hop_length is win_length // 4 without it. window:
one of WindowType.

    > ms.dataset.audio.PitchShift(16000, 4)(ms.ones { 800 }).shape
    (800,)]], function(a, name)
    local rate = check.positive(name, "sample_rate", a.sample_rate)
    local factor = 2 ^ (-check.number(name, "n_steps", a.n_steps) / check.positive(name, "bins_per_octave", a.bins_per_octave))
    if factor < 1 / 64 or factor > 64 then fail(name, "n_steps must be at most 6 octaves") end
    local p = frames(name, { n_fft = a.n_fft, win_length = a.win_length, window = a.window,
      hop_length = a.hop_length or math.max(1, (a.win_length or a.n_fft) // 4) })
    local resample = common.step("resample", name, { math.floor(rate / factor), rate, 6, 0.99, -1 })
    return function(x)
      local flat, back = common.flat(name, x, 1)
      local length = flat.shape[2]
      local slower = stretched(common.stft(name, flat, p), factor, p.hop)
      local sound = resample(common.istft(name, slower, p, math.floor(length / factor + 0.5)))
      if sound.shape[2] < length then sound = ops.concat({ sound, ms.zeros { sound.shape[1], length - sound.shape[2] } }, 1) end
      return back(sound[(":, 0:%d"):format(length)])
    end
  end)

  define("GriffinLim", "n_fft=400, n_iter=32, win_length=nil, hop_length=nil, window_type='hann', power=2.0, momentum=0.99, length=nil, "
    .. "rand_init=true", [[
A sound (..., time) whose spectrogram is the one that is given (Griffin and Lim 1984; with the momentum of Perraudin et al. 2013). n_iter:
how many turns. power: what the magnitudes were raised to. length: how many samples. rand_init: phases begin by chance, else at 0.
window_type: one of WindowType.]] .. frame_words .. [[


    > ms.dataset.audio.GriffinLim(64)(ms.ones { 33, 13 }).shape
    (384,)]], function(a, name)
    local p = frames(name, { n_fft = a.n_fft, win_length = a.win_length, hop_length = a.hop_length, window = a.window_type })
    local turns, power = check.not_negative(name, "n_iter", a.n_iter), rate_of(name, "power", a.power)
    local momentum = check.rate(name, "momentum", a.momentum) / (1 + a.momentum)
    local length = a.length ~= nil and check.positive(name, "length", a.length) or nil
    check.boolean(name, "rand_init", a.rand_init)
    return function(x)
      local flat, back = common.flat(name, x, 2)
      if flat.shape[2] ~= p.n_fft // 2 + 1 then
        fail(name, ("n_fft is %d: %d frequencies are expected, got %d"):format(p.n_fft, p.n_fft // 2 + 1, flat.shape[2]))
      end
      local size = ops.pow(flat, 1 / power):reshape { flat.shape[1], flat.shape[2], flat.shape[3], 1 }
      local shape = { flat.shape[1], flat.shape[2], flat.shape[3], 2 }
      local turn = a.rand_init and ms.ops.rand(shape) or ops.broadcast_to(ms.tensor { 1.0, 0.0 }, shape)
      local before = ms.zeros(shape)
      for _ = 1, turns do
        local rebuilt = common.stft(name, common.istft(name, size * turn, p, length), p)
        turn = rebuilt - before * momentum
        turn = turn / (common.power(turn, 1) + 1e-16):reshape { shape[1], shape[2], shape[3], 1 }
        before = rebuilt
      end
      return back(common.istft(name, size * turn, p, length))
    end
  end)
end
