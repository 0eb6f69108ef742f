#include "interpreter/tensor_index.h"

#include <algorithm>

#include "interpreter/values.h"

namespace lunaria {

namespace {

Tensor row(const Tensor& t, int64_t i) {
    if (t.rank() == 0) throw index_error("tensor", "a tensor of rank 0 cannot be indexed").hint("use x:item()");
    const int64_t n = t.dim(0);
    if (i < -n || i >= n) {
        Error e = index_error("tensor", str("index ", i, " is out of range for axis 0 with size ", n));
        throw n > 0 && i == n ? e.hint(str("tensor indices start at 0: the last row is x[", n - 1, "] or x[-1]")) : e;
    }
    Shape shape = t.shape();
    Strides strides = t.strides();
    shape.erase(0);
    strides.erase(0);
    return t.view(shape, strides, (i < 0 ? i + n : i) * t.strides()[0]);
}

}  // namespace

bool is_slice_text(std::string_view text) {
    return std::ranges::any_of(text, [](char c) { return c == ':' || c == ',' || c == '.' || c == '-' || c == ' '; }) ||
           (!text.empty() && text[0] >= '0' && text[0] <= '9');
}

Tensor index_tensor(lua_State* L, const Tensor& tensor, int index) {
    return row(tensor, integer_at(L, index, "tensor", "index"));
}

void set_by_index(lua_State* L, int handle, int index, int value) {
    (void)value;
    row(*tensor_at(L, handle), integer_at(L, index, "tensor", "index"));
}

}  // namespace lunaria
