// Files of sound as samples.
#pragma once

#include <string>

#include "core/tensor/tensor.h"

namespace lunaria::audio {

struct Sound {
    Tensor samples;  // (channels, frames)
    int64_t rate = 0;
    int bits = 0;  // of each sample in the file; 0: unknown, as for MP3
};

// WAV of integers and floats by hand; A-law, mu-law and ADPCM in WAV, and FLAC, Ogg, MP3, AIFF and so on, by
// libsndfile, which is opened when the first such file is read. `whole`: samples as the file has them (uint8 for 8
// bits, int16 for 16, else int32), where WAV has integers; else float32 in [-1, 1]. `cut`: a WAV may end before its
// samples do. Throws file_error in the name of `where` when the bytes are no whole sound.
Sound read_sound(std::string_view where, std::string_view bytes, bool whole, bool cut = false);

}  // namespace lunaria::audio
