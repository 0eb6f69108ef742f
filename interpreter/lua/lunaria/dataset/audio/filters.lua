-- Filters of two poles and two zeros (after the Audio EQ Cookbook of Bristow-Johnson), other filters, other rates.
local arguments = require "lunaria.nn.arguments"
local steps = require "lunaria.dataset.steps"

local fail, check = arguments.fail, arguments.check

return function(audio)
  -- A native filter: sum of a[k] y[n - k] is the sum of b[k] x[n - k].
  local function define(name, signature, doc, coefficients)
    steps.define(audio, name, signature, doc .. ([[ Results are cut to [-1, 1].

    > ms.dataset.audio.%s]]):format(coefficients.example), function(a)
      local clamp, both = a.clamp == nil or check.boolean(name, "clamp", a.clamp), coefficients.both and 1 or 0
      local feedback, forward = coefficients.make(a, name)
      if feedback[1] == 0 then fail(name, "the first coefficient of the feedback must not be 0") end
      local numbers = { clamp and 1 or 0, both, #feedback, table.unpack(feedback) }
      return "filter", steps.join(numbers, table.unpack(forward))
    end)
  end

  -- What the recipes are made of: the angle of the frequency, and how wide the filter is.
  local function angle_of(a, name, what)
    local rate = check.positive(name, "sample_rate", a.sample_rate)
    local frequency = check.number_positive(name, what, a[what])
    if frequency > rate / 2 then fail(name, ("%s must be at most half the sample_rate, got %g of %d"):format(what, frequency, rate)) end
    local quality = check.number_positive(name, "Q", a.Q)
    if quality > 1 then fail(name, ("Q must be in (0, 1], got %g"):format(quality)) end
    local w = 2 * math.pi * frequency / rate
    return math.cos(w), math.sin(w), math.sin(w) / 2 / quality, w, quality
  end
  local function define_recipe(name, signature, words, what, recipe, example)
    define(name, "sample_rate, " .. signature, words
      .. (" sample_rate: samples per second. %s: the frequency in hertz. Q: the quality, in (0, 1]."):format(what), {
      example = example or name .. "(16000, 1000.0)(ms.zeros { 4 }):sum():item()\n    0.0",
      make = function(a, name_) return recipe(a, name_, angle_of(a, name_, what)) end })
  end

  define_recipe("LowpassBiquad", "cutoff_freq, Q=0.707", "A sound without what is above cutoff_freq.", "cutoff_freq", function(_, _,
    c, _, alpha)
    return { 1 + alpha, -2 * c, 1 - alpha }, { (1 - c) / 2, 1 - c, (1 - c) / 2 }
  end)
  define_recipe("HighpassBiquad", "cutoff_freq, Q=0.707", "A sound without what is below cutoff_freq.", "cutoff_freq", function(_,
    _, c, _, alpha)
    return { 1 + alpha, -2 * c, 1 - alpha }, { (1 + c) / 2, -1 - c, (1 + c) / 2 }
  end)
  define_recipe("AllpassBiquad", "central_freq, Q=0.707", "A sound with the phases around central_freq turned.", "central_freq",
    function(_, _, c, _, alpha)
    return { 1 + alpha, -2 * c, 1 - alpha }, { 1 - alpha, -2 * c, 1 + alpha }
  end)
  define_recipe("BandpassBiquad", "central_freq, Q=0.707, const_skirt_gain=false",
    "What a sound has around central_freq. const_skirt_gain: the edges, not the middle, stay as loud as they are.", "central_freq",
    function(a, name, c, s, alpha)
      local gain = check.boolean(name, "const_skirt_gain", a.const_skirt_gain) and s / 2 or alpha
      return { 1 + alpha, -2 * c, 1 - alpha }, { gain, 0, -gain }
    end)
  define_recipe("BandrejectBiquad", "central_freq, Q=0.707", "A sound without what is around central_freq.", "central_freq",
    function(_, _, c, _, alpha)
    return { 1 + alpha, -2 * c, 1 - alpha }, { 1, -2 * c, 1 }
  end)
  define_recipe("BandBiquad", "central_freq, Q=0.707, noise=false",
    "What a sound has around central_freq, as SoX's band has it. noise: for sounds without a pitch.",
    "central_freq", function(a, name, c, _, _, w, q)
      local width = w / q
      local a2 = math.exp(-width)
      local a1 = -4 * a2 / (1 + a2) * c
      local b0 = math.sqrt(1 - a1 * a1 / (4 * a2)) * (1 - a2)
      if check.boolean(name, "noise", a.noise) then
        b0 = b0 * math.sqrt(((1 + a2) ^ 2 - a1 * a1) * (1 - a2) / (1 + a2)) / b0
      end
      return { 1, a1, a2 }, { b0, 0, 0 }
    end)
  define_recipe("EqualizerBiquad", "center_freq, gain, Q=0.707",
    "A sound louder or softer around center_freq. gain: how much, in decibels.", "center_freq",
    function(a, name, c, _, alpha)
      local g = 10 ^ (check.number(name, "gain", a.gain) / 40)
      return { 1 + alpha / g, -2 * c, 1 - alpha / g }, { 1 + alpha * g, -2 * c, 1 - alpha * g }
    end, "EqualizerBiquad(16000, 1000.0, 5.0)(ms.zeros { 4 }):sum():item()\n    0.0")
  for name, sign in pairs { BassBiquad = 1, TrebleBiquad = -1 } do
    define_recipe(name, ("gain, central_freq=%s, Q=0.707"):format(sign == 1 and "100.0" or "3000.0"),
      ("A sound louder or softer %s central_freq. gain: how much, in decibels."):format(sign == 1 and "below" or "above"), "central_freq",
      function(a, where, c, _, alpha)
        local g = 10 ^ (check.number(where, "gain", a.gain) / 40)
        local root, k = 2 * math.sqrt(g) * alpha, sign * c
        local plus, minus = (g + 1) + (g - 1) * k, (g + 1) - (g - 1) * k
        return { plus + root, -2 * sign * ((g - 1) + (g + 1) * k), plus - root },
          { g * (minus + root), 2 * sign * g * ((g - 1) - (g + 1) * k), g * (minus - root) }
      end, name .. "(16000, 5.0)(ms.zeros { 4 }):sum():item()\n    0.0")
  end

  define("Biquad", "b0, b1, b2, a0, a1, a2",
    "A sound through the filter with the coefficients b0, b1 and b2 of the samples, and a0, a1 and a2 of the results.", {
    example = "Biquad(0.5, 0, 0, 1, 0, 0)(ms.ones { 2 }):tolist()[2]\n    0.5",
    make = function(a, name)
      local list = {}
      for _, what in ipairs { "a0", "a1", "a2", "b0", "b1", "b2" } do list[#list + 1] = check.number(name, what, a[what]) end
      return { list[1], list[2], list[3] }, { list[4], list[5], list[6] }
    end })
  local function lists(a, name)
    local feedback, forward = steps.numbers(name, "a_coeffs", a.a_coeffs), steps.numbers(name, "b_coeffs", a.b_coeffs)
    if #feedback ~= #forward then fail(name, ("a_coeffs has %d numbers and b_coeffs %d"):format(#feedback, #forward)) end
    if #feedback < 2 then feedback[2], forward[2] = 0, 0 end
    return feedback, forward
  end
  local words = " a_coeffs and b_coeffs: those of the results and of the samples, from the newest on. clamp = false: nothing is cut."
  define("LFilter", "a_coeffs, b_coeffs, clamp=true", "A sound through a filter." .. words, {
    example = "LFilter({ 1, -0.5 }, { 1, 0 }, false)(ms.ones { 2 }):tolist()[2]\n    1.5", make = lists })
  define("Filtfilt", "a_coeffs, b_coeffs, clamp=true",
    "A sound through a filter, forwards and then backwards, which leaves phases as they are." .. words, {
    example = "Filtfilt({ 1, 0 }, { 0.5, 0 })(ms.ones { 2 }):tolist()[1]\n    0.25", make = lists, both = true })
  local curves = { -- of records: coefficients by the rate
    [44100] = { { -0.2014898, 0.9233820 }, { 0.7083149, 0.9924091 } }, [48000] = { { -0.1766069, 0.9321590 }, { 0.7396325, 0.9931330 } },
    [88200] = { { -0.1168735, 0.9648312 }, { 0.8590646, 0.9964002 } }, [96000] = { { -0.1141486, 0.9676817 }, { 0.8699137, 0.9966946 } },
  }
  define("RiaaBiquad", "sample_rate",
    "A sound as phonographs play records, by the curve of the RIAA. sample_rate: 44100, 48000, 88200 or 96000 per second.", {
    example = "RiaaBiquad(44100)(ms.zeros { 4 }):sum():item()\n    0.0",
    make = function(a, name)
      local curve = curves[a.sample_rate] or fail(name, "sample_rate must be 44100, 48000, 88200 or 96000, got "
        .. arguments.describe(a.sample_rate))
      local z, p = curve[1], curve[2]
      local b0, b1, b2, a1, a2 = 1, -(z[1] + z[2]), z[1] * z[2], -(p[1] + p[2]), p[1] * p[2]
      local y = 2 * math.pi * 1000 / a.sample_rate
      local over, under = b0 + b1 * math.cos(-y) + b2 * math.cos(-2 * y), 1 + a1 * math.cos(-y) + a2 * math.cos(-2 * y)
      local over_i, under_i = b1 * math.sin(-y) + b2 * math.sin(-2 * y), a1 * math.sin(-y) + a2 * math.sin(-2 * y)
      local g = 1 / math.sqrt((over ^ 2 + over_i ^ 2) / (under ^ 2 + under_i ^ 2))
      return { 1, a1, a2 }, { b0 * g, b1 * g, b2 * g }
    end })
  define("DeemphBiquad", "sample_rate", "A sound as compact discs with emphasis are played. sample_rate: 44100 or 48000 per second.", {
    example = "DeemphBiquad(44100)(ms.zeros { 4 }):sum():item()\n    0.0",
    make = function(a, name)
      local rows = { [44100] = { 5283, 0.4845, -9.477 }, [48000] = { 5356, 0.479, -9.62 } }
      local row = rows[a.sample_rate] or fail(name, "sample_rate must be 44100 or 48000, got " .. arguments.describe(a.sample_rate))
      local w = 2 * math.pi * row[1] / a.sample_rate
      local g, c = 10 ^ (row[3] / 40), math.cos(w)
      local alpha = math.sin(w) / 2 * math.sqrt((g + 1 / g) * (1 / row[2] - 1) + 2)
      local root = 2 * math.sqrt(g) * alpha
      return { (g + 1) - (g - 1) * c + root, 2 * ((g - 1) - (g + 1) * c), (g + 1) - (g - 1) * c - root },
        { g * ((g + 1) + (g - 1) * c + root), -2 * g * ((g - 1) + (g + 1) * c), g * ((g + 1) + (g - 1) * c - root) }
    end })

  steps.enumeration(audio, "ResampleMethod", [[By what window Resample weights: SINC_INTERPOLATION by Hann's, KAISER_WINDOW by Kaiser's.

    > ms.dataset.audio.ResampleMethod.KAISER_WINDOW
    kaiser_window]], { SINC_INTERPOLATION = "sinc_interpolation", KAISER_WINDOW = "kaiser_window" })
  steps.define(audio, "Resample",
    "orig_freq=16000, new_freq=16000, resample_method='sinc_interpolation', lowpass_filter_width=6, rolloff=0.99, beta=nil", [[
A sound (..., time) of orig_freq samples per second as one of new_freq. resample_method: one of ResampleMethod. lowpass_filter_width: how
sharp the filter is. rolloff: up to which part of the new frequencies it lets pass. beta: of Kaiser's window, 14.77 without.

    > ms.dataset.audio.Resample(16000, 8000)(ms.ones { 400 }).shape
    (200,)]], function(a, name)
    local from, to = check.positive(name, "orig_freq", a.orig_freq), check.positive(name, "new_freq", a.new_freq)
    local method = steps.choice(name, "resample_method", a.resample_method, audio, "ResampleMethod")
    local rolloff = check.number_positive(name, "rolloff", a.rolloff)
    if rolloff > 1 then fail(name, ("rolloff must be in (0, 1], got %g"):format(rolloff)) end
    if from == to then return "compose" end
    local beta = method == "kaiser_window" and (a.beta and check.number_positive(name, "beta", a.beta) or 14.769656459379492) or -1
    return "resample", { from, to, check.positive(name, "lowpass_filter_width", a.lowpass_filter_width), rolloff, beta }
  end)

  -- Rectangles of spectrograms.
  local function define_mask(name, parameter, axis, what)
    steps.define(audio, name, ("iid_masks=false, %s=0, mask_start=0, mask_value=0.0"):format(parameter), ([[
A spectrogram (..., frequency, time) with some %s masked (Park et al. 2019). %s: how many; with iid_masks so many at most, by
chance, for each spectrogram of a batch by itself. mask_start: where, without iid_masks. mask_value: what stands there.

    > ms.dataset.audio.%s(false, 2, 1)(ms.ones { 4, 4 }):sum():item()
    8.0]]):format(what, parameter, name), function(a)
      local iid = check.boolean(name, "iid_masks", a.iid_masks) and 1 or 0
      return "mask_along", { check.not_negative(name, "mask_start", a.mask_start), check.not_negative(name, parameter, a[parameter]),
        check.number(name, "mask_value", a.mask_value), axis, iid, iid }
    end)
  end
  define_mask("TimeMasking", "time_mask_param", 1, "times")
  define_mask("FrequencyMasking", "freq_mask_param", 2, "frequencies")
  local function axis_of(name, axis)
    axis = check.integer(name, "axis", axis)
    if axis ~= 1 and axis ~= 2 then fail(name, ("axis must be 1 (frequency) or 2 (time), got %d"):format(axis)) end
    return axis == 1 and 2 or 1
  end
  steps.define(audio, "MaskAlongAxis", "mask_start, mask_width, mask_value, axis", [[
A spectrogram (..., frequency, time) with mask_width rows or columns from mask_start on set to mask_value. axis: 1 for frequencies, 2 for
times.

    > ms.dataset.audio.MaskAlongAxis(0, 1, 0.0, 1)(ms.ones { 1, 4, 4 }):sum():item()
    12.0]], function(a, name)
    return "mask_along", { check.not_negative(name, "mask_start", a.mask_start), check.positive(name, "mask_width", a.mask_width),
      check.number(name, "mask_value", a.mask_value), axis_of(name, a.axis), 0, 0 }
  end)
  steps.define(audio, "MaskAlongAxisIID", "mask_param, mask_value, axis", [[
As MaskAlongAxis, at most mask_param rows or columns by chance, for each spectrogram of a batch by itself. mask_value: what stands there.
axis: 1 for frequencies, 2 for times.

    > ms.dataset.audio.MaskAlongAxisIID(0, 0.0, 1)(ms.ones { 1, 4, 4 }):sum():item()
    16.0]], function(a, name)
    return "mask_along", { 0, check.not_negative(name, "mask_param", a.mask_param), check.number(name, "mask_value", a.mask_value),
      axis_of(name, a.axis), 1, 1 }
  end)
end
