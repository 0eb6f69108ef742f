// PNG by libpng, which leaves its functions by longjmp where a file is bad; see jpeg.cpp.
#include <png.h>

#include <csetjmp>
#include <cstring>

#include "core/data/vision/decode.h"

namespace lunaria::vision {

namespace {

struct Input {
    std::string_view left;
    std::jmp_buf back;
    char text[128];
};

[[noreturn]] void leave_png(png_structp png, png_const_charp text) {
    auto* input = static_cast<Input*>(png_get_error_ptr(png));
    std::strncpy(input->text, text, sizeof input->text - 1);
    std::longjmp(input->back, 1);
}

void ignore_warning(png_structp, png_const_charp) {}

void give(png_structp png, png_bytep to, size_t count) {
    auto* input = static_cast<Input*>(png_get_io_ptr(png));
    if (count > input->left.size()) leave_png(png, "it ends in the middle");
    std::memcpy(to, input->left.data(), count);
    input->left.remove_prefix(count);
}

class Png {
  public:
    Png(std::string_view where, std::string_view bytes) : where_(where) {
        input_.left = bytes;
        png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &input_, leave_png, ignore_warning);
        info = png ? png_create_info_struct(png) : nullptr;
        if (!info) {
            png_destroy_read_struct(&png, nullptr, nullptr);
            throw memory_error(where, "there is no memory for the PNG");
        }
        try {
            png_set_read_fn(png, &input_, give);
            guarded([this] { png_read_info(png, info); });
            height = png_get_image_height(png, info);
            width = png_get_image_width(png, info);
            check_size(where, height, width);
            // Deflate expands a byte to at most 1032.
            const uint64_t row = png_get_rowbytes(png, info) + 1;
            if (row * static_cast<uint64_t>(height) > (uint64_t{1} << 16) + 1040 * uint64_t{bytes.size()})
                throw file_error(where, str("the PNG claims ", height, " x ", width, " pixels, more than its ",
                                            bytes.size(), " bytes can hold: too large"));
        } catch (...) {
            png_destroy_read_struct(&png, &info, nullptr);
            throw;
        }
    }
    ~Png() { png_destroy_read_struct(&png, &info, nullptr); }
    Png(const Png&) = delete;
    Png& operator=(const Png&) = delete;

    template <class F>
    void guarded(const F& f) {
        if (setjmp(input_.back) == 0)
            f();
        else
            throw file_error(where_, str("the PNG is damaged: ", static_cast<const char*>(input_.text)));
    }

    png_structp png = nullptr;
    png_infop info = nullptr;
    int64_t height = 0, width = 0;

  private:
    std::string where_;
    Input input_{};
};

// Asks for samples of 8 bits, or of 16 where they are kept, in as many channels as the mode wants.
void ask(png_structp png, png_infop info, ReadMode mode) {
    const int kind = png_get_color_type(png, info);
    png_set_expand(png);
    if (png_get_bit_depth(png, info) == 16) {
        if (mode == ReadMode::unchanged)
            png_set_swap(png);
        else
            png_set_strip_16(png);
    }
    if (mode != ReadMode::unchanged) {
        png_set_strip_alpha(png);
        if (!(kind & PNG_COLOR_MASK_COLOR)) png_set_gray_to_rgb(png);
    }
    png_set_interlace_handling(png);
    png_read_update_info(png, info);
}

}  // namespace

Extent png_size(std::string_view where, std::string_view bytes) {
    Png png(where, bytes);
    png.guarded([&] { ask(png.png, png.info, ReadMode::unchanged); });
    const int64_t channels = png_get_channels(png.png, png.info);
    return {png.height, png.width, channels, channels == 1};
}

Tensor decode_png(std::string_view where, std::string_view bytes, ReadMode mode) {
    Png png(where, bytes);
    png.guarded([&] { ask(png.png, png.info, mode); });
    const int64_t channels = png_get_channels(png.png, png.info),
                  row = static_cast<int64_t>(png_get_rowbytes(png.png, png.info));
    const bool wide = png_get_bit_depth(png.png, png.info) == 16;
    const Shape shape = channels == 1 ? Shape{png.height, png.width} : Shape{png.height, png.width, channels};
    const Tensor raw = Tensor::empty(DType::u8, {png.height, row});
    std::vector<png_bytep> rows;
    for (int64_t y = 0; y < png.height; ++y) rows.push_back(raw.data<uint8_t>() + y * row);
    png.guarded([&] {
        png_read_image(png.png, rows.data());
        png_read_end(png.png, nullptr);
    });
    if (!wide) {
        const Tensor image = raw.reshaped(shape);
        return mode == ReadMode::grey ? grey(image, where).reshaped({png.height, png.width}) : image;
    }
    // Tensors have no unsigned integers of 16 bits.
    const Tensor image = Tensor::empty(DType::i32, shape);
    for (int64_t i = 0; i < image.size(); ++i) {
        uint16_t sample = 0;
        std::memcpy(&sample, raw.data<uint8_t>() + 2 * i, 2);
        image.data<int32_t>()[i] = sample;
    }
    return image;
}

}  // namespace lunaria::vision
