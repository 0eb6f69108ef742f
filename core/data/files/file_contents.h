// Contents of the files of known data sets: sounds, and texts that are lists.
#pragma once

#include "core/data/transform.h"

namespace lunaria::data {

// Turns the bytes of a sound file into samples, float32 of (channels, samples) from -1 to 1, and the number of samples
// a second, int32. Throws where the bytes are no sound.
TransformPtr sound_decoder();
// Turns a text into the list of its parts between zero bytes.
TransformPtr text_splitter();

}  // namespace lunaria::data
