// Transforms that begin with the bytes of a file.
#include "core/data/vision/decode.h"

namespace lunaria::vision {

namespace {

std::string_view bytes_of(const Value& value, const Arguments& a, Tensor& kept) {
    if (value.kind() == Value::Kind::string) return value.string();
    if (!value.is_tensor() || value.tensor().rank() != 1 || value.tensor().dtype() != DType::u8)
        throw argument_error(
            a.where, str("the bytes of a file are expected, as uint8 of one axis or a text, got ", to_string(value)));
    kept = value.tensor().contiguous();
    return {kept.data<char>(), static_cast<size_t>(kept.size())};
}

// mode, whether the image is turned as EXIF says
void run_decode(Row& row, const Arguments& a, RowDraws&) {
    for (Value& value : row) {
        Tensor kept;
        value =
            Value(decode(a.where, bytes_of(value, a, kept), static_cast<ReadMode>(a.integer(0)), a.integer(1) != 0));
    }
}

struct Choice {
    RowDraws* draws;
    PartRule rule;
};

Part choose(void* context, int64_t height, int64_t width) {
    const auto* choice = static_cast<Choice*>(context);
    return random_part(*choice->draws, height, width, choice->rule);
}

// height, width, interpolation, rule of the part
void run_random_crop_decode_resize(Row& row, const Arguments& a, RowDraws& draws) {
    const Target target{a.integer(0), a.integer(1)};
    const RowDraws before = draws;
    for (Value& value : row) {
        draws = before;
        Tensor kept;
        Choice choice{&draws, part_rule(a, 3)};
        const Tensor part = decode_part(a.where, bytes_of(value, a, kept), choose, &choice, target);
        value = Value(resize(a, part, target.height, target.width, static_cast<Inter>(a.integer(2))));
    }
}

}  // namespace

}  // namespace lunaria::vision

namespace lunaria::transforms {

std::span<const Entry> file_entries() {
    using namespace vision;
    static const Entry entries[] = {
        {"decode", 2, run_decode},
        {"random_crop_decode_resize", 8, run_random_crop_decode_resize},
    };
    return entries;
}

}  // namespace lunaria::transforms
