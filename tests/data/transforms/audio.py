"""Writes what MindSpore makes of two sounds and their spectra, for tests/lua/data/audio_test.lua.

usage: audio.py             in an environment with mindspore and safetensors"""
import json
from pathlib import Path

import numpy as np
from mindspore.dataset import audio
from safetensors.numpy import save_file

HERE = Path(__file__).resolve().parent
random = np.random.RandomState(3)
t = np.arange(300)
sound = (0.5 * np.sin(t * 0.05) + 0.3 * np.sin(t * 0.9) + random.normal(0, 0.05, 300)).astype(np.float32)
stereo = np.stack([sound, sound[::-1] * 0.5]).astype(np.float32)
pairs = random.randn(2, 17, 9, 2).astype(np.float32)
spectrum = (random.rand(2, 17, 9) * 3).astype(np.float32)
codes = np.array([0, 3, 100, 128, 200, 255], np.int32)
INPUTS = {"sound": sound, "stereo": stereo, "pairs": pairs, "spectrum": spectrum, "codes": codes}
MEL = dict(n_fft=32, n_mels=8, win_length=32, hop_length=16, f_min=0.0, f_max=8000.0, pad=0, power=2.0, normalized=False, center=True,
           pad_mode=audio.BorderType.REFLECT, onesided=True, norm=audio.NormType.NONE, mel_scale=audio.MelType.HTK,
           window=audio.WindowType.HANN)
SPEC = {k: MEL[k] for k in ("n_fft", "win_length", "hop_length", "pad", "power", "normalized", "center", "pad_mode", "onesided", "window")}


def biquads():
    for name, parameter in (("Lowpass", ""), ("Highpass", ""), ("Allpass", ""), ("Bandpass", ""), ("Bandreject", ""), ("Band", "")):
        yield "sound", f"{name}Biquad(16000, 1500.0)", getattr(audio, name + "Biquad")(16000, 1500.0), 2e-4
    yield "sound", "BandpassBiquad(16000, 1500.0, 0.5, true)", audio.BandpassBiquad(16000, 1500.0, 0.5, True), 2e-4
    yield "sound", "BandBiquad(16000, 1500.0, 0.5, true)", audio.BandBiquad(16000, 1500.0, 0.5, True), 2e-4
    yield "sound", "EqualizerBiquad(16000, 1500.0, 5.0)", audio.EqualizerBiquad(16000, 1500.0, 5.0), 2e-4
    yield "sound", "BassBiquad(16000, 5.0, 500.0)", audio.BassBiquad(16000, 5.0, 500.0), 2e-4
    yield "sound", "TrebleBiquad(16000, -5.0, 3000.0)", audio.TrebleBiquad(16000, -5.0, 3000.0), 2e-4
    yield "sound", "RiaaBiquad(44100)", audio.RiaaBiquad(44100), 2e-4
    yield "sound", "DeemphBiquad(44100)", audio.DeemphBiquad(44100), 2e-4
    yield "stereo", "Biquad(0.1, 0.2, 0.3, 1.0, -0.5, 0.2)", audio.Biquad(0.1, 0.2, 0.3, 1.0, -0.5, 0.2), 1e-5
    yield "sound", "LFilter({ 1.0, -0.5, 0.2 }, { 0.1, 0.2, 0.3 })", audio.LFilter([1.0, -0.5, 0.2], [0.1, 0.2, 0.3]), 1e-5
    yield "sound", "Filtfilt({ 1.0, -0.5, 0.2 }, { 0.1, 0.2, 0.3 })", audio.Filtfilt([1.0, -0.5, 0.2], [0.1, 0.2, 0.3]), 1e-5


CASES = [
    ("sound", "Spectrogram(32)", audio.Spectrogram(32), 1e-3),
    ("stereo", "Spectrogram({ n_fft = 32, power = 0.0 })", audio.Spectrogram(32, power=0.0), 1e-4),
    ("sound", "Spectrogram({ n_fft = 32, win_length = 20, hop_length = 7, pad = 5, window = 'hamming', power = 1.0, normalized = true, "
     "pad_mode = 'constant' })",
     audio.Spectrogram(32, 20, 7, 5, audio.WindowType.HAMMING, 1.0, True, True, audio.BorderType.CONSTANT), 1e-4),
    ("sound", "Spectrogram({ n_fft = 32, center = false, window = 'blackman', onesided = false })",
     audio.Spectrogram(32, window=audio.WindowType.BLACKMAN, center=False, onesided=False), 1e-3),
    ("sound", "Spectrogram({ n_fft = 32, window = 'bartlett', power = 1.0 })", audio.Spectrogram(32, window=audio.WindowType.BARTLETT, power=1.0), 1e-4),
    ("sound", "Spectrogram({ n_fft = 32, window = 'kaiser', power = 1.0 })", audio.Spectrogram(32, window=audio.WindowType.KAISER, power=1.0), 1e-4),
    ("pairs", "InverseSpectrogram({ n_fft = 32 })", audio.InverseSpectrogram(n_fft=32), 1e-4),
    ("spectrum", "MelScale(8, 16000, { n_stft = 17 })", audio.MelScale(8, 16000, n_stft=17), 1e-4),
    ("spectrum", "MelScale(8, 16000, 100.0, 7000.0, 17, 'slaney', 'slaney')",
     audio.MelScale(8, 16000, 100.0, 7000.0, 17, audio.NormType.SLANEY, audio.MelType.SLANEY), 1e-4),
    ("stereo", "MelSpectrogram({ n_fft = 32, n_mels = 8 })", audio.MelSpectrogram(16000, 32, n_mels=8), 1e-3),
    ("sound", "MFCC(16000, 5, { melkwargs = { n_fft = 32, n_mels = 8 } })", audio.MFCC(16000, 5, melkwargs=MEL), 1e-2),
    ("sound", "MFCC(16000, 5, { log_mels = true, norm = 'none', melkwargs = { n_fft = 32, n_mels = 8 } })",
     audio.MFCC(16000, 5, log_mels=True, norm=audio.NormMode.NONE, melkwargs=MEL), 1e-2),
    ("sound", "LFCC(16000, 16, 5, { speckwargs = { n_fft = 32 } })", audio.LFCC(16000, 16, 5, speckwargs=SPEC), 1e-2),
    ("sound", "SpectralCentroid(16000, 32)", audio.SpectralCentroid(16000, 32), 1),
    ("pairs", "TimeStretch(16, 17, 1.3)", audio.TimeStretch(16, 17, 1.3), 2e-3),
    ("sound", "PitchShift(16000, 4, { n_fft = 64 })", audio.PitchShift(16000, 4, n_fft=64), 2e-3),
    ("sound", "Resample(16000, 8000)", audio.Resample(16000, 8000), 1e-5),
    ("sound", "Resample(8000, 11025)", audio.Resample(8000, 11025), 5e-5),
    ("stereo", "Resample(16000, 12000, 'kaiser_window', 8, 0.9)", audio.Resample(16000, 12000, audio.ResampleMethod.KAISER_WINDOW, 8, 0.9), 1e-4),
    ("spectrum", "AmplitudeToDB()", audio.AmplitudeToDB(), 1e-3),
    ("spectrum", "AmplitudeToDB('magnitude', 0.5, 0.001, 20.0)", audio.AmplitudeToDB(audio.ScaleType.MAGNITUDE, 0.5, 0.001, 20.0), 1e-3),
    ("spectrum", "DBToAmplitude(2.0, 0.5)", audio.DBToAmplitude(2.0, 0.5), 1e-4),
    ("pairs", "Angle()", audio.Angle(), 1e-5), ("pairs", "ComplexNorm(1.5)", audio.ComplexNorm(1.5), 1e-4),
    ("pairs", "Magphase(2.0)", lambda x: audio.Magphase(2.0)(x)[0], 1e-4),
    *(("sound", f"Fade(10, 30, '{s.value}')", audio.Fade(10, 30, s), 1e-5) for s in audio.FadeShape if s.value != "logarithmic"),
    # torchaudio's, whose curve is cut at 1.
    ("sound", "Fade(10, 0, 'logarithmic')",
     lambda x: x * np.concatenate([np.clip(np.log10(0.1 + np.linspace(0, 1, 10)) + 1, 0, 1), np.ones(290)]).astype(np.float32), 1e-5),
    ("sound", "Gain(6.0)", audio.Gain(6.0), 1e-5), ("sound", "Vol(0.3)", audio.Vol(0.3), 1e-6),
    ("sound", "Vol(9.0, 'db')", audio.Vol(9.0, audio.GainType.DB), 1e-5), ("sound", "Vol(2.0, 'power')", audio.Vol(2.0, audio.GainType.POWER), 1e-5),
    ("sound", "MuLawEncoding()", audio.MuLawEncoding(), 0), ("codes", "MuLawDecoding()", audio.MuLawDecoding(), 1e-5),
    ("sound", "Contrast(60.0)", audio.Contrast(60.0), 1e-5),
    ("sound", "DCShift(0.4)", audio.DCShift(0.4), 1e-5), ("sound", "DCShift(0.6, 0.05)", audio.DCShift(0.6, 0.05), 1e-5),
    ("spectrum", "ComputeDeltas(7)", audio.ComputeDeltas(7), 1e-5),
    ("spectrum", "TimeMasking(false, 3, 2, 9.0)", audio.TimeMasking(False, 3, 2, 9.0), 0),
    ("spectrum", "FrequencyMasking(false, 3, 2, 9.0)", audio.FrequencyMasking(False, 3, 2, 9.0), 0),
    ("spectrum", "MaskAlongAxis(1, 4, 9.0, 1)", audio.MaskAlongAxis(1, 4, 9.0, 1), 0),
    *biquads(),
]


def main():
    tensors = {f"input.{name}": np.ascontiguousarray(x) for name, x in INPUTS.items()}
    cases = []
    for number, (name, lua, call, apart) in enumerate(CASES):
        tensors[f"case.{number}"] = np.ascontiguousarray(call(INPUTS[name].copy()))
        cases.append({"input": name, "lua": lua, "apart": apart})
    save_file(tensors, HERE / "audio.safetensors")
    (HERE / "audio.json").write_text(json.dumps(cases, indent=0) + "\n")


main()
