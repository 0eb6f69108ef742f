// Pictures in files: decoding to pixels, and encoding.
#pragma once

#include <string>

#include "core/data/vision/parts.h"

namespace lunaria::vision {

// The most pixels that a decoded picture may have: a file of a few bytes can claim any number.
inline constexpr int64_t kMostDecoded = int64_t{1} << 28;

enum class ReadMode { unchanged = 0, grey = 1, color = 2 };

// JPEG, PNG or BMP as uint8 (height, width, channels); `color`: three channels. `turned`: turned by the orientation in
// its EXIF, as viewers do. Throws file_error, in the name of `where`, when the bytes are no complete picture.
Tensor decode(std::string_view where, std::string_view bytes, ReadMode mode, bool turned = false);
// Height, width and channels, without decoding.
Extent picture_size(std::string_view where, std::string_view bytes);

// The part of a JPEG that `choose` names, decoded with a size of its own: a part that will become less than half as
// large is halved during decoding, as often as that holds, and rows below the part are not read. Of other formats, the
// part of the whole picture. The pixels of a row are dense, the rows need not be.
using ChoosePart = Part (*)(void* context, int64_t height, int64_t width);
Tensor decode_part(std::string_view where, std::string_view bytes, ChoosePart choose, void* context, Target target);

// uint8 (height, width) or (height, width, 1 or 3). quality: 1 to 100.
std::string jpeg_bytes(std::string_view where, const Tensor& image, int quality);

// Steps of decode, for the files of this folder.
bool is_jpeg(std::string_view bytes);
Tensor decode_jpeg(std::string_view where, std::string_view bytes, ReadMode mode);
Tensor decode_png(std::string_view where, std::string_view bytes, ReadMode mode);
Tensor decode_bmp(std::string_view where, std::string_view bytes);
Extent jpeg_size(std::string_view where, std::string_view bytes);
Extent png_size(std::string_view where, std::string_view bytes);
Extent bmp_size(std::string_view where, std::string_view bytes);
// EXIF's number, 1 to 8; 1, as it is, where the bytes have none.
int orientation_of(std::string_view bytes);
// The picture with the first row on top.
Tensor upright(const Tensor& image, int orientation);
// Throws unless a picture of this size is plausible for so many bytes.
void check_size(std::string_view where, int64_t height, int64_t width);

}  // namespace lunaria::vision
