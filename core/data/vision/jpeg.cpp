// JPEG by libjpeg-turbo. The library leaves its functions by longjmp where a file is bad; no object with a destructor
// is made between Jpeg::guarded and those calls.
#include <csetjmp>
#include <cstdio>
#include <cstring>

#include "core/data/vision/decode.h"
// After <cstdio>, which it needs.
#include <jerror.h>
#include <jpeglib.h>

namespace lunaria::vision {

namespace {

struct Failure {
    jpeg_error_mgr base;
    std::jmp_buf back;
    char text[JMSG_LENGTH_MAX];
};

[[noreturn]] void leave(j_common_ptr info) {
    auto* failure = reinterpret_cast<Failure*>(info->err);
    info->err->format_message(info, failure->text);
    std::longjmp(failure->back, 1);
}

// Warnings that mean that pixels are missing are errors; the others (bytes too many, odd versions) do not matter.
void judge(j_common_ptr info, int level) {
    if (level < 0 && (info->err->msg_code == JWRN_JPEG_EOF || info->err->msg_code == JWRN_HIT_MARKER)) leave(info);
}

void say_nothing(j_common_ptr) {}

// A progressive file of a few bytes may claim thousands of scans over the whole picture.
constexpr int kMostScans = 200;
void count_scans(j_common_ptr info) {
    auto* reader = reinterpret_cast<j_decompress_ptr>(info);
    if (info->is_decompressor && reader->input_scan_number > kMostScans) {
        info->err->msg_code = JERR_BAD_PROGRESSION;
        leave(info);
    }
}

class Jpeg {
  public:
    Jpeg(std::string_view where, std::string_view bytes) : Jpeg(where) {
        bytes_ = bytes;
        guarded([this] {
            jpeg_mem_src(&info, reinterpret_cast<const unsigned char*>(bytes_.data()), bytes_.size());
            jpeg_read_header(&info, TRUE);
        });
        check_size(where, info.image_height, info.image_width);
        // Each block of 64 pixels takes at least two bits, of 2 x 2 blocks in one direction.
        const uint64_t pixels = uint64_t{info.image_height} * info.image_width;
        if (pixels > (uint64_t{1} << 20) + 2048 * uint64_t{bytes.size()})
            throw file_error(where_, str("the JPEG claims ", info.image_height, " x ", info.image_width,
                                         " pixels, more than its ", bytes.size(), " bytes can hold"));
    }
    ~Jpeg() { jpeg_destroy_decompress(&info); }
    Jpeg(const Jpeg&) = delete;
    Jpeg& operator=(const Jpeg&) = delete;

    template <class F>
    void guarded(const F& f) {
        if (setjmp(failure_.back) == 0)
            f();
        else
            fail();
    }

    // Starts the decoding and returns the number of channels in a scan line.
    int begin(ReadMode mode, unsigned denominator) {
        const bool inks = info.jpeg_color_space == JCS_CMYK || info.jpeg_color_space == JCS_YCCK;
        const bool grey = info.jpeg_color_space == JCS_GRAYSCALE ? mode != ReadMode::color : mode == ReadMode::grey;
        info.out_color_space = inks ? JCS_CMYK : grey ? JCS_GRAYSCALE : JCS_RGB;
        info.scale_num = 1;
        info.scale_denom = denominator;
        guarded([this] { jpeg_start_decompress(&info); });
        return info.out_color_components;
    }

    jpeg_decompress_struct info{};

  private:
    // The public constructor delegates to this one, so that the destructor frees the library's memory when the file
    // turns out to be bad.
    explicit Jpeg(std::string_view where) : where_(where) {
        info.err = jpeg_std_error(&failure_.base);
        failure_.base.error_exit = leave;
        failure_.base.emit_message = judge;
        failure_.base.output_message = say_nothing;
        jpeg_create_decompress(&info);
        watch_.progress_monitor = count_scans;
        info.progress = &watch_;
    }
    [[noreturn]] void fail() const {
        throw file_error(where_, str("the JPEG is damaged: ", static_cast<const char*>(failure_.text)));
    }
    std::string where_;
    std::string_view bytes_;
    Failure failure_{};
    jpeg_progress_mgr watch_{};
};

// Red, green and blue of inks as Adobe's programs store them: 255 is no ink.
void mix_inks(const uint8_t* from, uint8_t* to, int64_t pixels) {
    for (int64_t i = 0; i < pixels; ++i)
        for (int c = 0; c < 3; ++c) to[3 * i + c] = static_cast<uint8_t>(from[4 * i + c] * from[4 * i + 3] / 255);
}

// Rows from the current one on: `rows` of them, each `pitch` bytes behind the one before.
void read_rows(Jpeg& jpeg, uint8_t* to, int64_t rows, int64_t pitch) {
    const JDIMENSION first = jpeg.info.output_scanline, end = first + static_cast<JDIMENSION>(rows);
    jpeg.guarded([&] {
        while (jpeg.info.output_scanline < end) {
            // The library decodes several rows at a time, and copies those that the caller does not take at once.
            JSAMPROW places[16];
            const JDIMENSION at = jpeg.info.output_scanline, count = std::min<JDIMENSION>(end - at, std::size(places));
            for (JDIMENSION i = 0; i < count; ++i) places[i] = to + static_cast<int64_t>(at - first + i) * pitch;
            jpeg_read_scanlines(&jpeg.info, places, count);
        }
    });
}

// The same for inks, converted to colours; `skipped` pixels of each row are left out.
void read_inks(Jpeg& jpeg, const Tensor& out, int64_t skipped) {
    const Extent e = extent(out);
    std::vector<uint8_t> line(size_t{4} * jpeg.info.output_width);
    for (int64_t y = 0; y < e.height; ++y) {
        read_rows(jpeg, line.data(), 1, 0);
        mix_inks(line.data() + 4 * skipped, out.data<uint8_t>() + y * e.pitch(), e.width);
    }
}

}  // namespace

bool is_jpeg(std::string_view bytes) { return bytes.starts_with("\xff\xd8\xff"); }

Extent jpeg_size(std::string_view where, std::string_view bytes) {
    const Jpeg jpeg(where, bytes);
    const int channels = jpeg.info.num_components == 1 ? 1 : 3;
    return {jpeg.info.image_height, jpeg.info.image_width, channels, channels == 1};
}

Tensor decode_jpeg(std::string_view where, std::string_view bytes, ReadMode mode) {
    Jpeg jpeg(where, bytes);
    const int channels = jpeg.begin(mode, 1);
    const int64_t h = jpeg.info.output_height, w = jpeg.info.output_width;
    const Tensor out = Tensor::empty(DType::u8, channels == 1 ? Shape{h, w} : Shape{h, w, 3});
    if (channels == 4)
        read_inks(jpeg, out, 0);
    else
        read_rows(jpeg, out.data<uint8_t>(), h, w * channels);
    jpeg.guarded([&] { jpeg_finish_decompress(&jpeg.info); });
    if (mode != ReadMode::grey || channels == 1) return out;
    return grey(out, where).reshaped({h, w});
}

Tensor decode_part(std::string_view where, std::string_view bytes, ChoosePart choose, void* context, Target target) {
    if (!is_jpeg(bytes)) {
        const Tensor whole = decode(where, bytes, ReadMode::color);
        const Part p = choose(context, whole.dim(0), whole.dim(1));
        return crop({std::string(where), {}, {}, {}, {}, {}, {}}, whole, p.top, p.left, p.height, p.width);
    }
    Jpeg jpeg(where, bytes);
    const Part wanted = choose(context, jpeg.info.image_height, jpeg.info.image_width);
    unsigned smaller = 1;
    while (smaller < 8 && wanted.height / (2 * smaller) >= target.height &&
           wanted.width / (2 * smaller) >= target.width)
        smaller *= 2;
    // Resizing to a smaller size mixes neighbouring colours anyway: smooth upsampling of the colour channels would gain
    // nothing.
    const bool shrinks = wanted.height >= target.height * smaller && wanted.width >= target.width * smaller;
    jpeg.info.do_fancy_upsampling = shrinks ? FALSE : TRUE;
    const int channels = jpeg.begin(ReadMode::color, smaller);
    const int64_t h = jpeg.info.output_height, w = jpeg.info.output_width;
    Part p{wanted.top / smaller, wanted.left / smaller, 0, 0};
    p.height = std::clamp<int64_t>((wanted.height + smaller / 2) / smaller, 1, h - p.top);
    p.width = std::clamp<int64_t>((wanted.width + smaller / 2) / smaller, 1, w - p.left);
    auto left = static_cast<JDIMENSION>(p.left);
    auto width = static_cast<JDIMENSION>(p.width);
    const bool narrow = p.width < w;
    jpeg.guarded([&] {
        if (narrow) jpeg_crop_scanline(&jpeg.info, &left, &width);
        if (p.top > 0) jpeg_skip_scanlines(&jpeg.info, static_cast<JDIMENSION>(p.top));
    });
    // The library begins at a block; pixels of that block before the part stay in memory beside it, so that nothing is
    // copied.
    const int64_t skipped = narrow ? p.left - left : 0, wide = jpeg.info.output_width;
    if (channels == 4) {
        const Tensor out = Tensor::empty(DType::u8, {p.height, p.width, 3});
        read_inks(jpeg, out, skipped);
        return out;
    }
    // Parts may have any size. Memory comes in a few block sizes, which serve again; large parts are rare.
    constexpr uint64_t kLarge = uint64_t{16} << 20;
    auto size = static_cast<uint64_t>(p.height * wide * 3);
    if (size < kLarge) size = std::bit_ceil(size);
    const Tensor all = Tensor::empty(DType::u8, {static_cast<int64_t>(size)});
    read_rows(jpeg, all.data<uint8_t>(), p.height, wide * 3);
    return all.view({p.height, p.width, 3}, {wide * 3, 3, 1}, skipped * 3);
}

std::string jpeg_bytes(std::string_view where, const Tensor& image, int quality) {
    const Extent e = extent(image);
    if (image.dtype() != DType::u8 || (e.channels != 1 && e.channels != 3))
        throw value_error(where, str("the image must be uint8 with 1 or 3 channels, got ", to_string(Value(image))));
    if (e.height > 65500 || e.width > 65500) throw value_error(where, "a JPEG has at most 65500 x 65500 pixels");
    jpeg_compress_struct info{};
    Failure failure{};
    info.err = jpeg_std_error(&failure.base);
    failure.base.error_exit = leave;
    failure.base.output_message = say_nothing;
    unsigned char* made = nullptr;
    unsigned long size = 0;
    const uint8_t* pixels = image.data<uint8_t>();
    if (setjmp(failure.back) != 0) {
        jpeg_destroy_compress(&info);
        std::free(made);
        throw file_error(where, str("the image cannot be written: ", static_cast<const char*>(failure.text)));
    }
    jpeg_create_compress(&info);
    jpeg_mem_dest(&info, &made, &size);
    info.image_width = static_cast<JDIMENSION>(e.width);
    info.image_height = static_cast<JDIMENSION>(e.height);
    info.input_components = static_cast<int>(e.channels);
    info.in_color_space = e.channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
    jpeg_set_defaults(&info);
    jpeg_set_quality(&info, quality, TRUE);
    jpeg_start_compress(&info, TRUE);
    while (info.next_scanline < info.image_height) {
        JSAMPROW row = const_cast<uint8_t*>(pixels + static_cast<int64_t>(info.next_scanline) * e.pitch());
        jpeg_write_scanlines(&info, &row, 1);
    }
    jpeg_finish_compress(&info);
    jpeg_destroy_compress(&info);
    std::string bytes(reinterpret_cast<char*>(made), size);
    std::free(made);
    return bytes;
}

}  // namespace lunaria::vision
