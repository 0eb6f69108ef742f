#include "core/ops/window.h"
#include "core/operator/infer.h"

namespace lunaria {

namespace {
// Larger attributes are mistakes; sums of a few numbers up to this one do not overflow.
constexpr int64_t kMostAttribute = int64_t{1} << 40;

int64_t checked(const Call& c, size_t i, int64_t value, int64_t least) {
    if (value < least || value > kMostAttribute)
        throw value_error(c.name(), str(param_name(c, i), " must be ", least > 0 ? "positive" : "at least 0",
                                        value > kMostAttribute ? " and less than 2^40" : "", ", not ", value));
    return value;
}

// One number or a list of them, read in place: kernels ask for windows in every call.
class Integers {
  public:
    explicit Integers(const Value& v) : value_(v), items_(v.is_list() ? &v.items() : nullptr) {}
    size_t size() const { return items_ ? items_->size() : value_.is_number(); }
    int64_t operator[](size_t i) const { return items_ ? (*items_)[i].integer() : value_.integer(); }

  private:
    const Value& value_;
    const std::vector<Value>* items_;
};
}  // namespace

Window::Sizes window_sizes(const Call& c, size_t i, int axes, int64_t least) {
    const Integers list(c.args[i]);
    Window::Sizes sizes{1, 1, 1};
    auto n = static_cast<size_t>(axes);
    if (list.size() != 1 && list.size() != n)
        throw value_error(c.name(), str(param_name(c, i), " must be one number or ", axes,
                                        axes == 1 ? "" : " (one per axis)", ", not ", to_string(c.args[i])));
    for (size_t axis = 0; axis < n; ++axis)
        sizes[Window::kAxes - n + axis] = checked(c, i, list.size() == 1 ? list[0] : list[axis], least);
    return sizes;
}

void window_padding(const Call& c, size_t i, Window& w) {
    const Integers list(c.args[i]);
    auto n = static_cast<size_t>(w.axes), offset = Window::kAxes - n;
    if (list.size() != 1 && list.size() != n && list.size() != 2 * n)
        throw value_error(c.name(), str(param_name(c, i), " must be one number, ", n, " or ", 2 * n,
                                        " (before and after for each axis), not ", to_string(c.args[i])));
    for (size_t axis = 0; axis < n; ++axis) {
        bool two = list.size() == 2 * n;
        int64_t before = list.size() == 1 ? list[0] : two ? list[2 * axis] : list[axis];
        int64_t after = list.size() == 1 ? list[0] : two ? list[2 * axis + 1] : list[axis];
        w.before[offset + axis] = checked(c, i, before, 0);
        w.after[offset + axis] = checked(c, i, after, 0);
    }
}

Window::Sizes spatial_sizes(const Shape& shape, int axes) {
    Window::Sizes sizes{1, 1, 1};
    for (int axis = 0; axis < axes; ++axis)
        sizes[static_cast<size_t>(Window::kAxes - axes + axis)] = shape[shape.rank() - axes + axis];
    return sizes;
}

void set_window_output(const Call& c, Window& w, bool ceil_mode) {
    for (int axis = w.first(); axis < Window::kAxes; ++axis) {
        auto i = static_cast<size_t>(axis);
        if (w.in[i] == kUnknownDim) {
            w.out[i] = kUnknownDim;
            continue;
        }
        int64_t room = w.in[i] + w.before[i] + w.after[i] - w.reach(axis);
        if (room < 0 || w.in[i] == 0)
            throw shape_error(c.name(),
                              str("the kernel is larger than the input: axis ", axis - w.first(), " has size ", w.in[i],
                                  " with padding ", w.before[i], " and ", w.after[i], ", smaller than the kernel's ",
                                  w.reach(axis), "; the output would be empty"));
        w.out[i] = room / w.stride[i] + 1;
        if (ceil_mode && room % w.stride[i] && w.out[i] * w.stride[i] < w.in[i] + w.before[i]) ++w.out[i];
    }
}

Types checked_type(const Call& c, DType dtype, const Shape& shape) {
    if (shape.known()) checked_shape(c.name(), shape.dims(), size_of(dtype));
    return {{dtype, shape}};
}

}  // namespace lunaria
