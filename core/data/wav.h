// What sources do to the files of known data sets: sounds in WAV files, and texts that are lists.
#pragma once

#include "core/data/transform.h"

namespace lunaria::data {

// Of a file's bytes: the samples, float32 of (channels, samples) from -1 to 1, and their number a second, int32. PCM
// with 8 to 32 bits, and float32. Throws for what is no such file.
TransformPtr wav_decoder();
// Of a text: the list of its parts between zero bytes.
TransformPtr text_splitter();

}  // namespace lunaria::data
