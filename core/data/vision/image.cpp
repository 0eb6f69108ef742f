#include "core/data/vision/image.h"

namespace lunaria::vision {

Tensor image_of(const Value& value, std::string_view where) {
    if (!value.is_tensor())
        throw argument_error(where, "an image is expected, that is a tensor (height, width, channels)")
            .hint("Decode makes images of the bytes of a file");
    const Tensor& t = value.tensor();
    if (t.rank() < 2)
        throw shape_error(
            where, str("an image (height, width) or (height, width, channels) is expected, got ", to_string(value)))
            .hint("Decode makes images of the bytes of a file");
    if (t.device()) throw argument_error(where, "images are transformed in host memory");
    if (t.size() == 0) throw shape_error(where, str("the image has no pixels: ", to_string(value)));
    return t.contiguous();
}

Tensor empty_image(const Arguments& a, const Tensor& like, int64_t height, int64_t width) {
    if (height <= 0 || width <= 0)
        throw value_error(a.where, str("an image of ", height, " x ", width, " pixels would have none"));
    const Extent e = extent(like);
    if (height > kMostPixels / width || height * width > kMostPixels / e.channels)
        throw value_error(a.where, str("an image of ", height, " x ", width, " pixels is too large"));
    return Tensor::empty(like.dtype(), e.shape(height, width));
}

void check_pixels(const Tensor& image, std::string_view where) {
    if (image.dtype() != DType::u8 && image.dtype() != DType::f32)
        throw dtype_error(where, str("images must be uint8 or float32, got ", name_of(image.dtype())))
            .hint("TypeCast converts them");
}

void check_channels(const Tensor& image, std::string_view where, int64_t channels) {
    const int64_t there = extent(image).channels;
    if (there != channels)
        throw shape_error(where, str("an image of ", channels, " channels is expected, got one of ", there));
}

int64_t batch_items(const Tensor& batch) {
    int64_t n = 1;
    for (int i = 0; i < batch.rank() - 3; ++i) n *= batch.dim(i);
    return n;
}

Tensor batch_item(const Tensor& batch, int64_t item) {
    const int r = batch.rank();
    const Shape shape{batch.dim(r - 3), batch.dim(r - 2), batch.dim(r - 1)};
    const Tensor one = batch.reshaped(Shape{batch_items(batch), shape[0], shape[1], shape[2]});
    Strides inner{one.strides()[1], one.strides()[2], one.strides()[3]};
    return one.view(shape, inner, item * shape.size());
}

Tensor stacked(const Tensor& batch, const std::vector<Tensor>& items) {
    Shape shape;
    for (int i = 0; i < batch.rank() - 3; ++i) shape.push_back(batch.dim(i));
    for (int64_t d : items.front().shape()) shape.push_back(d);
    const Tensor all = Tensor::empty(items.front().dtype(), shape);
    char* to = all.data<char>();
    for (const Tensor& item : items) {
        const Tensor dense = item.contiguous();
        to = std::copy_n(dense.data<char>(), dense.nbytes(), to);
    }
    return all;
}

}  // namespace lunaria::vision
