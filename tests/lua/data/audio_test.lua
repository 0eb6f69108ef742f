-- Transforms of sounds against what MindSpore makes of the same sounds (tests/data/transforms), files of sound, and what is
-- promised of transforms that choose by chance or improve by turns.
package.path = "tests/lua/?.lua;" .. package.path
local t = require "harness"
local ms = require "lunaria"
local D = ms.dataset
local audio = D.audio

local folder = "tests/data/transforms/"
local stored = ms.load(folder .. "audio.safetensors")
local file <close> = assert(io.open(folder .. "audio.json"))

local function fails(pattern, f, ...)
  local ok, message = pcall(f, ...)
  assert(not ok, "no error")
  assert(tostring(message):find(pattern), message)
end

local function apart(a, b)
  assert(tostring(a.shape) == tostring(b.shape), ("shape %s instead of %s"):format(tostring(a.shape), tostring(b.shape)))
  return (a:astype(ms.float32) - b:astype(ms.float32)):abs():max():item()
end

for number, case in ipairs(ms.json.decode(file:read "a")) do
  t.test(("%s of %s"):format(case.lua, case.input), function()
    local transform = assert(load("return audio." .. case.lua, "=case", "t", { audio = audio }))()
    local got, expected = transform(stored["input." .. case.input]), stored["case." .. number - 1]
    local distance = apart(got, expected)
    assert(distance <= case.apart, ("%g apart, at most %g is allowed"):format(distance, case.apart))
  end)
end

local sound = stored["input.sound"]

t.test("spectra become sounds again", function()
  local pairs_of = audio.Spectrogram({ n_fft = 32, power = 0.0 })(sound)
  assert(apart(audio.InverseSpectrogram({ n_fft = 32, length = 300 })(pairs_of), sound) < 1e-5)
  ms.set_seed(1)
  local spectrogram = audio.Spectrogram({ n_fft = 64, hop_length = 16 })(sound)
  local function missing(turns)
    local again = audio.GriffinLim({ n_fft = 64, hop_length = 16, n_iter = turns, length = 300 })(spectrogram)
    local other = audio.Spectrogram({ n_fft = 64, hop_length = 16 })(again)
    return ((other - spectrogram) ^ 2):sum():item() / (spectrogram ^ 2):sum():item()
  end
  local before, after = missing(0), missing(100)
  assert(after < 0.3 and after < before / 2, ("%g, before %g"):format(after, before))
end)

t.test("bands of the mel scale become frequencies that have them", function()
  local mel = audio.MelScale(8, { n_stft = 17 })
  local bands = mel(stored["input.spectrum"])
  local guess = audio.InverseMelScale(17, 8, { max_iter = 500 })(bands)
  t.equal(tostring(guess.shape), "(2, 17, 9)")
  assert(guess:min():item() >= 0)
  assert(apart(mel(guess), bands) < 0.05, apart(mel(guess), bands))
end)

t.test("masks by chance are as wide as is allowed, and differ", function()
  ms.set_seed(2)
  local x = ms.ones { 3, 10, 20 }
  local widths = {}
  for _ = 1, 100 do
    local masked = audio.TimeMasking(true, 8)(x)
    for i = 0, 2 do
      local width = 20 - masked[{ i, 0 }]:sum():item()
      assert(width < 8 and masked[i]:sum():item() == (20 - width) * 10)
      widths[width // 1] = true
    end
  end
  for width = 0, 7 do assert(widths[width + 0.0], width) end
end)

local sounds = "tests/data/samples/wav/"
t.test("files of sound are read, bad ones refused", function()
  local samples, rate, bits = audio.read(sounds .. "stereo16.wav", true)
  t.equal({ tostring(samples.shape), rate, bits, tostring(samples.dtype) }, { "(2, 400)", 44100, 16, "Int16" })
  t.equal(samples[":, 0:2"]:tolist(), { { 13786, 14211 }, { 13786, 14601 } })
  t.equal(audio.read(sounds .. "mono24.wav", true)["0, 0"]:item(), 3529384)
  assert(math.abs(audio.read(sounds .. "mono24.wav")["0, 0"]:item() - 3529384 / 2 ^ 23) < 1e-7)
  t.equal(audio.read(sounds .. "mono8.wav", true)["0, 0"]:item(), 181)
  t.equal(audio.read(sounds .. "mono8.wav")["0, 0"]:item(), (181 - 128) / 128)
  fails("REJECT_data_past_end.wav: the WAV is damaged: it claims .* bytes of samples", audio.read, sounds .. "REJECT_data_past_end.wav")
  fails("REJECT_zero_channels.wav: the WAV is damaged: it has 0 channels", audio.read, sounds .. "REJECT_zero_channels.wav")
  fails("REJECT_truncated_fmt.wav: the WAV is damaged", audio.read, sounds .. "REJECT_truncated_fmt.wav")
  fails("no sound", audio.read, "tests/data/samples/img/rgb.png")
end)

t.test("in a pipeline", function()
  local ds = D.NumpySlicesDataset({ x = stored["input.stereo"] }, { shuffle = false })
  ds = ds:map({ audio.Resample(16000, 8000), audio.LowpassBiquad(8000, 1000.0) }, "x", { num_parallel_workers = 2 })
  ds = ds:map(audio.Spectrogram(32), "x"):batch(2)
  t.equal(tostring(ds:create_tuple_iterator()().shape), "(2, 17, 10)")
end)

t.test("bad sounds and arguments are errors", function()
  fails("Spectrogram: win_length must be at most n_fft, got 9 and 8", audio.Spectrogram, 8, 9)
  fails("Spectrogram: a sound of 3 samples is too short to be mirrored by 200", audio.Spectrogram(), ms.ones { 3 })
  fails("Spectrogram: a tensor of floats is expected, got one of Int64", audio.Spectrogram(), ms.tensor { 1, 2 })
  fails("LowpassBiquad: cutoff_freq must be at most half the sample_rate", audio.LowpassBiquad, 16000, 9000.0)
  fails("LowpassBiquad: Q must be in %(0, 1%], got 2", audio.LowpassBiquad, 16000, 900.0, 2)
  fails("Angle: complex numbers %(..., 2%) are expected", audio.Angle(), ms.ones { 3 })
  fails("MelScale: n_stft is 201, but the spectrogram has 5", audio.MelScale(), ms.ones { 5, 5 })
  fails("Vol: gain must not be negative", audio.Vol, -1)
  fails("LFilter: a_coeffs has 2 numbers and b_coeffs 1", audio.LFilter, { 1, 2 }, { 1 })
  fails("TimeMasking: the mask from 0 on, 9 wide, does not fit into 5", audio.TimeMasking(false, 9), ms.ones { 5, 5 })
  fails("WindowType: there is no name 'HAN'.*did you mean 'HANN'", function() return audio.WindowType.HAN end)
end)

t.finish()
