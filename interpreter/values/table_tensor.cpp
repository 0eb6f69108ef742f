#include "interpreter/values/table_tensor.h"

#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/base/interrupt.h"
#include "core/tensor/device.h"
#include "core/tensor/joint_dtype.h"
#include "interpreter/values/values.h"

namespace lunaria {

namespace {

// Reads the tables twice: first for the shape and the kinds of elements, then for the elements themselves.
class Reader {
  public:
    Reader(lua_State* L, std::string_view where) : L_(L), where_(where) {}

    Tensor read(int index, std::optional<DType> dtype) {
        measure(index, 0);
        const DType natural = kinds_.joint();
        const DType target = dtype.value_or(natural);
        Shape shape = checked_shape(where_, Shape(outer_).dims(), size_of(target));
        for (int64_t d : inner_) shape.push_back(d);
        if (kinds_.tensors) {
            result_ = Tensor::empty(target, checked_shape(where_, shape.dims(), size_of(target)));
        } else {
            result_ = Tensor::empty(target, shape);
        }
        next_ = 0;
        if (result_.size() > 0) fill(index, 0);
        return result_.to(current_place());
    }

  private:
    std::string place() const {
        std::string text = "data";
        for (int64_t i : path_) text += str("[", i, "]");
        return text;
    }

    int64_t length(int index) {
        if (!luaL_getmetafield(L_, index, "__len")) return static_cast<int64_t>(lua_rawlen(L_, index));
        lua_pop(L_, 1);
        const int64_t n = luaL_len(L_, index);
        if (n < 0) throw value_error(where_, str("the length of ", place(), " is negative: ", n));
        if (n > (int64_t{1} << 40)) throw value_error(where_, str("the length of ", place(), " is too large: ", n));
        return n;
    }

    void item(int index, int64_t i) {
        poll_interrupt();
        luaL_checkstack(L_, 4, "nested table");
        lua_geti(L_, index, i);
        path_.push_back(i);
    }
    void leave() {
        path_.pop_back();
        lua_pop(L_, 1);
    }

    // The shape of the value at `index`, `depth` tables down: the first item of each table decides, the others must
    // agree.
    void measure(int index, size_t depth) {
        const int type = lua_type(L_, index);
        if (type == LUA_TTABLE) {
            if (depth >= static_cast<size_t>(kMaxRank))
                throw value_error(where_, str("tables are nested deeper than ", kMaxRank, " levels"))
                    .hint("a table that contains itself has no shape");
            const int64_t n = length(index);
            if (leaf_depth_ && depth >= *leaf_depth_)
                throw ragged(str(place(), " is a table where other places hold numbers"));
            if (depth < outer_.size()) {
                if (outer_[depth] != n)
                    throw ragged(str(place(), " has length ", n, ", its neighbours have length ", outer_[depth]));
            } else {
                if (leaf_depth_) throw ragged(str(place(), " is nested deeper than its neighbours"));
                outer_.push_back(n);
            }
            if (n == 0) {
                if (lua_istable(L_, index)) refuse_names(index);
                leaf_depth_ = leaf_depth_.value_or(depth + 1);
            }
            for (int64_t i = 1; i <= n; ++i) {
                item(index, i);
                measure(lua_gettop(L_), depth + 1);
                leave();
            }
            return;
        }
        if (!leaf_depth_) leaf_depth_ = depth;
        if (depth != *leaf_depth_)
            throw ragged(str(place(), " is ", describe(L_, index), " where a table is expected"));
        if (type == LUA_TNUMBER) {
            expect_inner({});
            (lua_isinteger(L_, index) ? kinds_.integers : kinds_.floats) = true;
        } else if (type == LUA_TBOOLEAN) {
            expect_inner({});
            kinds_.booleans = true;
        } else if (const Tensor* t = tensor_at(L_, index)) {
            expect_inner(t->shape());
            kinds_.add_tensor(t->dtype());
        } else if (depth == 0) {
            const std::string of_type = lua_isuserdata(L_, index) ? "" : str(" (type ", luaL_typename(L_, index), ")");
            throw argument_error(where_, str("data must be a number, a boolean, a table of them or a tensor, got ",
                                             describe(L_, index), of_type));
        } else {
            throw value_error(
                where_, str("element ", place(), " is ", describe(L_, index), "; a number or a boolean is expected"));
        }
    }

    // {n = 3} or {x = 1} would otherwise be an empty tensor.
    void refuse_names(int index) {
        lua_pushvalue(L_, index);
        lua_pushnil(L_);
        if (lua_next(L_, -2))
            throw value_error(where_, str(place(), " has ", describe(L_, -2), " as a key; items 1, 2, … are expected"));
        lua_pop(L_, 1);
    }

    void expect_inner(const Shape& shape) {
        if (!inner_known_) {
            inner_ = shape;
            inner_known_ = true;
        } else if (!(inner_ == shape)) {
            throw ragged(str(place(), " has shape ", shape, ", its neighbours have shape ", inner_));
        }
    }

    Error ragged(const std::string& message) const {
        return shape_error(where_, "the table is ragged: " + message).hint("all rows of a tensor have the same length");
    }

    void fill(int index, size_t depth) {
        if (depth < outer_.size()) {
            for (int64_t i = 1; i <= outer_[depth]; ++i) {
                item(index, i);
                fill(lua_gettop(L_), depth + 1);
                leave();
            }
            return;
        }
        const int type = lua_type(L_, index);
        if (type == LUA_TNUMBER) {
            store(index);
        } else if (type == LUA_TBOOLEAN) {
            result_.set_at(next_++, lua_toboolean(L_, index));
        } else if (const Tensor* t = tensor_at(L_, index); t && t->shape() == inner_) {
            Tensor part = result_.view({t->size()}, {1}, next_);
            copy_elements(*t, part);
            next_ += t->size();
        } else {
            throw value_error(where_, str("element ", place(), " changed while it was read"));
        }
    }

    void store(int index) {
        const DType dtype = result_.dtype();
        const int64_t at = next_++;
        if (dtype == DType::f32) {
            result_.data<float>()[at] = static_cast<float>(lua_tonumber(L_, index));
        } else if (!is_integer(dtype)) {
            result_.set_at(at, lua_tonumber(L_, index));
        } else {
            visit_dtype(dtype, [&](auto tag) {
                using T = typename decltype(tag)::type;
                if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>)
                    result_.data<T>()[at] = integer<T>(index);
            });
        }
    }

    // Fractions are truncated as in a cast; a number out of range is an error, since it can only be a mistake.
    template <class T>
    T integer(int index) {
        if (lua_isinteger(L_, index)) {
            const lua_Integer i = lua_tointeger(L_, index);
            if (std::in_range<T>(i)) return static_cast<T>(i);
        } else {
            const double x = std::trunc(lua_tonumber(L_, index));
            if (x >= static_cast<double>(std::numeric_limits<T>::min()) &&
                x < std::ldexp(1.0, std::numeric_limits<T>::digits))
                return static_cast<T>(x);
        }
        throw value_error(where_,
                          str(place(), " is ", describe(L_, index), ", which is out of the range of the integer type ",
                              name_of(result_.dtype()), " (nan and infinity are no integers)"));
    }

    lua_State* L_;
    std::string_view where_;
    std::vector<int64_t> outer_;  // sizes of the tables
    Shape inner_;                 // of the tensors in them; rank 0 for numbers
    bool inner_known_ = false;
    std::optional<size_t> leaf_depth_;
    std::vector<int64_t> path_;
    ElementKinds kinds_;
    Tensor result_;
    int64_t next_ = 0;
};

void push_axis(lua_State* L, const Tensor& tensor, int axis, int64_t& next) {
    if (axis == tensor.rank()) return push_element(L, tensor, next++);
    luaL_checkstack(L, 3, "nested table");
    const int64_t n = tensor.dim(axis);
    lua_createtable(L, static_cast<int>(std::min<int64_t>(n, 1 << 26)), 0);
    constexpr int64_t kBlock = 1 << 16;  // elements between two looks at an interrupt
    for (int64_t i = 1; i <= n; ++i) {
        if (next % kBlock == 0) poll_interrupt();
        push_axis(L, tensor, axis + 1, next);
        lua_rawseti(L, -2, i);
    }
}

// Refuses tensors that would fill the memory with tables: an axis of size 0 after a large one makes very many empty
// ones.
void check_table_size(const Tensor& tensor) {
    constexpr int64_t kMost = int64_t{1} << 28;
    int64_t made = 1;
    for (const int64_t n : tensor.shape()) {
        if (n == 0) return;
        if (n > kMost / made)
            throw memory_error("tolist", str("a tensor of shape ", tensor.shape(), " is too large for a table"))
                .hint("work with the tensor, or take parts of it");
        made *= n;
    }
}

}  // namespace

Tensor tensor_from(lua_State* L, int index, std::optional<DType> dtype, std::string_view where) {
    if (index < 0) index = lua_gettop(L) + 1 + index;
    if (const Tensor* t = tensor_at(L, index)) return dtype ? t->cast(*dtype) : *t;
    return Reader(L, where).read(index, dtype);
}

void push_table(lua_State* L, const Tensor& tensor) {
    check_table_size(tensor);
    int64_t next = 0;
    push_axis(L, tensor.contiguous().to_host(), 0, next);
}

}  // namespace lunaria
