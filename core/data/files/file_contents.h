// What sources do to the files of known data sets: sounds, and texts that are lists.
#pragma once

#include "core/data/transform.h"

namespace lunaria::data {

// Of a file's bytes: the samples, float32 of (channels, samples) from -1 to 1, and their number a second, int32.
// Throws for what is no sound.
TransformPtr sound_decoder();
// Of a text: the list of its parts between zero bytes.
TransformPtr text_splitter();

}  // namespace lunaria::data
