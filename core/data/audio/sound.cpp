#include "core/data/audio/sound.h"

#include <dlfcn.h>
#include <sndfile.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <vector>

#include "core/base/address_space.h"
#include "core/base/error.h"

namespace lunaria::audio {

namespace {

template <class T>
T little(std::string_view bytes, size_t at) {
    T value{};
    std::memcpy(&value, bytes.data() + at, sizeof value);
    return value;
}

struct Wave {
    int format = 0, channels = 0;
    int bits = 0;   // significant ones
    int width = 0;  // bits of a sample in the file, of which the upper ones are significant
    int64_t rate = 0;
    std::string_view data;
};

constexpr int kIntegers = 1, kFloats = 3, kExtensible = 0xFFFE;
// The size that a program states when it writes into a pipe and does not know the size yet.
constexpr uint64_t kToTheEnd = 0xFFFFFFFF;

// The chunks of a RIFF file: format and data.
Wave parse(std::string_view where, std::string_view bytes, bool cut) {
    const auto damaged = [&](std::string_view what) { return file_error(where, str("the WAV is damaged: ", what)); };
    Wave wave;
    bool has_data = false;
    for (size_t at = 12; at + 8 <= bytes.size() && !has_data;) {
        const std::string_view name = bytes.substr(at, 4);
        uint64_t size = little<uint32_t>(bytes, at + 4);
        at += 8;
        if (name == "fmt ") {
            if (size < 16 || at + 16 > bytes.size()) throw damaged("it ends in its format");
            wave.format = little<uint16_t>(bytes, at);
            wave.channels = little<uint16_t>(bytes, at + 2);
            wave.rate = little<uint32_t>(bytes, at + 4);
            const int block = little<uint16_t>(bytes, at + 12);
            wave.bits = little<uint16_t>(bytes, at + 14);
            wave.width = (wave.bits + 7) / 8 * 8;
            // Samples of 20 bits take three bytes, or four.
            if (wave.bits % 8 && wave.channels && block % wave.channels == 0 && block / wave.channels * 8 > wave.width)
                wave.width = block / wave.channels * 8;
            if (wave.format == kExtensible && size >= 26 && at + 26 <= bytes.size())
                wave.format = little<uint16_t>(bytes, at + 24);
        } else if (name == "data") {
            const uint64_t there = bytes.size() - at;
            if (size > there && !cut && size != kToTheEnd)
                throw damaged(str("it claims ", size, " bytes of samples, but ", there, " are there"))
                    .hint("ms.dataset.audio.read(path, {cut_short = true}) reads what is there");
            size = std::min(size, there);
            wave.data = bytes.substr(at, size);
            has_data = true;
        }
        at += size + size % 2;
    }
    if (wave.format == 0) throw damaged("it has no format");
    if (!has_data) throw damaged("it has no samples");
    if (wave.channels == 0) throw damaged("it has 0 channels");
    if (wave.rate == 0) throw damaged("its rate is 0");
    return wave;
}

int32_t integer_at(const char* at, int bits) {
    const auto* b = reinterpret_cast<const uint8_t*>(at);
    switch (bits) {
        case 8:
            return b[0];
        case 16:
            return static_cast<int16_t>(b[0] | b[1] << 8);
        case 24:
            return static_cast<int32_t>(static_cast<uint32_t>(b[0] << 8 | b[1] << 16) | static_cast<uint32_t>(b[2])
                                                                                            << 24) >>
                   8;
        default:
            return little<int32_t>({at, 4}, 0);
    }
}

float float_at(const char* at, const Wave& wave) {
    if (wave.format == kFloats)
        return wave.width == 32 ? little<float>({at, 4}, 0) : static_cast<float>(little<double>({at, 8}, 0));
    if (wave.width == 8) return static_cast<float>(integer_at(at, 8) - 128) / 128.0f;
    return static_cast<float>(integer_at(at, wave.width) / static_cast<double>(int64_t{1} << (wave.width - 1)));
}

// Whether the samples are plain integers or floats. All other formats are left to the library.
bool is_plain(std::string_view where, const Wave& wave) {
    if (wave.format != kIntegers && wave.format != kFloats) return false;
    const bool integers = wave.bits >= 1 && wave.width >= 8 && wave.width <= 32;
    const bool floats = wave.width == 32 || wave.width == 64;
    if (wave.format == kIntegers ? integers : floats) return true;
    throw file_error(where,
                     str("the WAV has format ", wave.format, " with ", wave.bits, " bits, which cannot be read"));
}

Sound read_plain(const Wave& wave, bool whole) {
    const bool floats = wave.format == kFloats;
    const int64_t step = wave.width / 8, channels = wave.channels;
    const int64_t frames = static_cast<int64_t>(wave.data.size()) / (step * channels);
    const DType dtype = !whole || floats   ? DType::f32
                        : wave.width == 8  ? DType::u8
                        : wave.width == 16 ? DType::i16
                                           : DType::i32;
    const Tensor out = Tensor::empty(dtype, {channels, frames});
    const char* at = wave.data.data();
    for (int64_t i = 0; i < frames; ++i)
        for (int64_t c = 0; c < channels; ++c, at += step) {
            const int64_t to = c * frames + i;
            if (dtype == DType::f32)
                out.data<float>()[to] = float_at(at, wave);
            else if (dtype == DType::u8)
                out.data<uint8_t>()[to] = static_cast<uint8_t>(*at);
            else if (dtype == DType::i16)
                out.data<int16_t>()[to] = static_cast<int16_t>(integer_at(at, 16));
            else
                out.data<int32_t>()[to] = integer_at(at, wave.width);
        }
    return {out, wave.rate, wave.bits};
}

// libsndfile brings eight libraries for formats that few programs read: it is opened on first use.
struct Library {
    decltype(&sf_open_virtual) open = nullptr;
    decltype(&sf_readf_float) read = nullptr;
    decltype(&sf_close) close = nullptr;
    decltype(&sf_strerror) error = nullptr;
    Library() {
        constexpr size_t kRoom = size_t{32} << 20;
        std::string why;
        void* handle = open_library("libsndfile.so.1", RTLD_NOW | RTLD_LOCAL, kRoom, why);
        if (!handle) return;
        open = reinterpret_cast<decltype(open)>(dlsym(handle, "sf_open_virtual"));
        read = reinterpret_cast<decltype(read)>(dlsym(handle, "sf_readf_float"));
        close = reinterpret_cast<decltype(close)>(dlsym(handle, "sf_close"));
        error = reinterpret_cast<decltype(error)>(dlsym(handle, "sf_strerror"));
    }
    bool is_there() const { return open && read && close && error; }
};

struct Memory {
    std::string_view bytes;
    sf_count_t at = 0;
};

Memory& memory(void* data) { return *static_cast<Memory*>(data); }

sf_count_t length(void* data) { return static_cast<sf_count_t>(memory(data).bytes.size()); }

sf_count_t seek(sf_count_t offset, int whence, void* data) {
    const sf_count_t from = whence == SEEK_SET ? 0 : whence == SEEK_CUR ? memory(data).at : length(data);
    memory(data).at = std::clamp<sf_count_t>(from + offset, 0, length(data));
    return memory(data).at;
}

sf_count_t read_bytes(void* to, sf_count_t count, void* data) {
    Memory& m = memory(data);
    const sf_count_t taken = std::clamp<sf_count_t>(count, 0, length(data) - m.at);
    std::memcpy(to, m.bytes.data() + m.at, static_cast<size_t>(taken));
    m.at += taken;
    return taken;
}

sf_count_t tell(void* data) { return memory(data).at; }

}  // namespace

Sound read_sound(std::string_view where, std::string_view bytes, bool whole, bool cut) {
    int bits = 0;
    if (bytes.size() >= 12 && bytes.starts_with("RIFF") && bytes.substr(8, 4) == "WAVE") {
        const Wave wave = parse(where, bytes, cut);
        if (is_plain(where, wave)) return read_plain(wave, whole);
        bits = wave.bits;
    }
    static const Library library;
    if (!library.is_there())
        throw file_error(where,
                         "the bytes are no WAV of plain samples, and libsndfile, which reads other formats, is "
                         "not installed")
            .hint("Debian's package is libsndfile1");
    SF_VIRTUAL_IO io{length, seek, read_bytes, nullptr, tell};
    SF_INFO info{};
    Memory source{bytes};
    SNDFILE* file = library.open(&io, SFM_READ, &info, &source);
    if (!file) throw file_error(where, str("the bytes are no sound: ", library.error(nullptr)));
    const std::unique_ptr<SNDFILE, decltype(library.close)> keeper(file, library.close);
    if (info.channels <= 0 || info.samplerate <= 0) throw file_error(where, "the sound has no channels");
    // Reads in blocks until the data ends: the number of frames in a header is only a claim.
    std::vector<float> all, block(static_cast<size_t>(info.channels) * 4096);
    constexpr size_t kMost = size_t{1} << 29;
    for (sf_count_t got = 0; (got = library.read(file, block.data(), 4096)) > 0;) {
        all.insert(all.end(), block.begin(), block.begin() + got * info.channels);
        if (all.size() > kMost) throw file_error(where, str("the sound has more than ", kMost, " samples: too large"));
    }
    const int64_t channels = info.channels, frames = static_cast<int64_t>(all.size()) / channels;
    if (!cut && info.frames > 0 && frames < info.frames && info.frames < SF_COUNT_MAX)
        throw file_error(where, str("the sound ends after ", frames, " of ", info.frames, " frames"));
    const Tensor out = Tensor::empty(DType::f32, {channels, frames});
    for (int64_t i = 0; i < frames; ++i)
        for (int64_t c = 0; c < channels; ++c)
            out.data<float>()[c * frames + i] = all[static_cast<size_t>(i * channels + c)];
    return {out, info.samplerate, bits};
}

}  // namespace lunaria::audio
