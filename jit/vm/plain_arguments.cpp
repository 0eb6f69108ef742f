#include "jit/vm/plain_arguments.h"

#include <algorithm>
#include <cmath>

#include "core/tensor/element.h"
#include "core/tensor/joint_dtype.h"
#include "jit/vm/binding.h"
#include "jit/vm/plain_host.h"

namespace lunaria::vm {

namespace {

using Table = PlainHost::Table;
using Path = Host::Bound::Path;

constexpr int kDeepest = 8;

const Table* table_at(const Value& v) { return object_as<Table>(v); }

// As Lua has it: any name will do, and table.pack gives a list the field n.
bool is_options(const Value& v) {
    const Table* t = table_at(v);
    if (!t) return false;
    const bool list = t->length() > 0;
    bool named = false;
    t->for_each([&](const Value& key, const Value&) {
        named |= key.kind() == Value::Kind::string && !(list && key.string() == "n");
    });
    return named;
}

[[noreturn]] void wrong_kind(const Op& op, std::string_view argument, std::string_view wanted, const Value& got) {
    throw argument_error(op.name(), str(argument, " must be ", wanted, ", got ", describe_plain(got)));
}

// An integer, or a float that is one and not so large that it is likelier a slip.
std::optional<int64_t> integral(const Value& v) {
    if (v.kind() == Value::Kind::integer) return v.integer();
    if (v.kind() == Value::Kind::number) {
        const double x = v.number();
        if (std::abs(x) < 2147483648.0 && x == std::floor(x)) return static_cast<int64_t>(x);
        return std::nullopt;
    }
    if (v.is_tensor() && v.tensor().size() == 1 && is_integer(v.tensor().dtype()))
        if (const Value only = element(v.tensor(), 0); only.kind() == Value::Kind::integer) return only.integer();
    return std::nullopt;
}

// The arguments of one call, for Binding.
class Arguments {
  public:
    using Item = const Value&;
    Arguments(const Op& op, std::span<const Value> args) : op_(op), args_(args) {}

    size_t count() const { return args_.size(); }
    const Value& at(size_t i) const { return args_[i]; }
    static bool is_options(const Value& v) { return vm::is_options(v); }
    static bool is_empty_table(const Value& v) { return table_at(v) && table_at(v)->length() == 0; }
    static std::optional<int64_t> size(const Value& v) {
        return v.kind() == Value::Kind::integer ? std::optional(v.integer()) : std::nullopt;
    }
    static const Tensor* tensor(const Value& v) { return v.is_tensor() ? &v.tensor() : nullptr; }
    void for_each_option(const Value& table, const auto& f) const {
        table_at(table)->for_each([&](const Value& name, const Value& value) {
            if (name.kind() != Value::Kind::string)
                throw argument_error(op_.name(),
                                     str("the table of names has ", describe_plain(name), " among its names"));
            f(name.string(), name.string(), value);
        });
    }
    [[noreturn]] void unknown_name(std::string_view name) const {
        throw argument_error(op_.name(), str("there is no parameter '", name, "'"));
    }

    std::vector<Path> paths_of(const Value& v, const Param& param, const Value& arg, Path path) const {
        if (v.is_nil()) return {};
        const bool as_it_is = v.is_number() || v.is_tensor();
        if (is_tensor_type(param.type) && param.type != ArgType::tensors && !as_it_is) return {};
        if (param.type != ArgType::tensors || !table_at(v)) return {std::move(path)};
        std::vector<Path> paths;
        for (const Value& item : arg.items()) {
            Path& at = paths.emplace_back(path);
            at.item = static_cast<int64_t>(paths.size());
            const Value given = table_at(v)->get(Value(at.item));
            if (given.is_number())
                at.number_as = Value(item.tensor().dtype());
            else if (!given.is_tensor())
                throw argument_error(op_.name(), str(param.name, "[", at.item, "] is ", describe_plain(given),
                                                     ": no gradient flows through what is made a tensor on the way"));
        }
        return paths;
    }

    Value converted(const Value& v, const Param& param) const {
        if (v.is_nil()) {
            if (param.optional) return {};
            if (param.has_default) return param.default_value;
        }
        switch (param.type) {
            case ArgType::same:
            case ArgType::real:
            case ArgType::tensor:
            case ArgType::index:
            case ArgType::mask:
                return tensor_of(param.name, v);
            case ArgType::tensors:
                return tensors(param, v);
            case ArgType::boolean:
                if (v.kind() != Value::Kind::boolean) wrong_kind(op_, param.name, "true or false", v);
                return v;
            case ArgType::integer:
                return Value(integer(param.name, v));
            case ArgType::number:
            case ArgType::scalar:
                return number(param, v);
            case ArgType::string:
                return text(param, v);
            case ArgType::dtype:
                if (const auto dtype = plain_dtype(v)) return Value(*dtype);
                throw dtype_error(
                    op_.name(),
                    str(param.name, " must be a dtype such as ms.float32 or \"float32\", got ", describe_plain(v)));
            case ArgType::ints:
            case ArgType::shape:
                return integers(param.name, v);
            case ArgType::numbers:
                return numbers(param.name, v);
            case ArgType::any:
                break;
        }
        return any(param, v, 0);
    }

  private:
    static Value number_in(const Tensor& t, int64_t i) {
        return is_integer(t.dtype()) ? element(t, i) : Value(t.at(i));
    }

    Value number(const Param& param, const Value& v) const {
        const bool scalar = param.type == ArgType::scalar;
        if (v.is_number() || (scalar && v.kind() == Value::Kind::boolean)) return v;
        if (v.is_tensor() && v.tensor().size() == 1) return number_in(v.tensor(), 0);
        wrong_kind(op_, param.name, scalar ? "a number or a boolean" : "a number", v);
    }
    Value tensor_of(std::string_view argument, const Value& v) const {
        if (v.is_number() || v.is_tensor()) return v;
        if (v.kind() == Value::Kind::boolean) return Value(Tensor::scalar(DType::boolean, v.boolean()));
        wrong_kind(op_, argument, "a tensor or a number", v);
    }
    Value tensors(const Param& param, const Value& v) const {
        if (v.is_tensor()) return Value::list({v});
        const Table* t = table_at(v);
        if (!t) wrong_kind(op_, param.name, "a table of tensors", v);
        std::vector<Value> items;
        for (int64_t i = 1, n = t->length(); i <= n; ++i) {
            Value item = tensor_of(str(param.name, "[", i, "]"), t->get(Value(i)));
            if (item.kind() == Value::Kind::integer)
                item = Value(Tensor::scalar(item.integer()));
            else if (item.kind() == Value::Kind::number)
                item = Value(Tensor::scalar(DType::f32, item.number()));
            items.push_back(std::move(item));
        }
        return Value::list(std::move(items));
    }
    int64_t integer(std::string_view argument, const Value& v) const {
        if (const auto i = integral(v)) return *i;
        wrong_kind(op_, argument, "an integer", v);
    }
    void check_count(std::string_view argument, int64_t count) const {
        constexpr int64_t kMost = int64_t{1} << 24;
        if (count > kMost)
            throw value_error(op_.name(),
                              str(argument, " holds ", count, " numbers: at most ", kMost, " can be given"));
    }
    Value integers(std::string_view argument, const Value& v) const {
        std::vector<int64_t> list;
        if (v.is_number()) return Value::ints(std::vector<int64_t>{integer(argument, v)});
        if (v.is_tensor() && v.tensor().rank() <= 1 && is_integer(v.tensor().dtype())) {
            check_count(argument, v.tensor().size());
            for (int64_t i = 0; i < v.tensor().size(); ++i) list.push_back(integer(argument, element(v.tensor(), i)));
            return Value::ints(list);
        }
        const Table* t = table_at(v);
        if (!t) wrong_kind(op_, argument, "an integer or a table of integers", v);
        for (int64_t i = 1, n = t->length(); i <= n; ++i)
            list.push_back(integer(str(argument, "[", i, "]"), t->get(Value(i))));
        return Value::ints(list);
    }
    Value numbers(std::string_view argument, const Value& v) const {
        if (v.is_number()) return Value::list({v});
        std::vector<Value> items;
        if (v.is_tensor() && v.tensor().rank() <= 1) {
            check_count(argument, v.tensor().size());
            for (int64_t i = 0; i < v.tensor().size(); ++i) items.push_back(number_in(v.tensor(), i));
            return Value::list(std::move(items));
        }
        const Table* t = table_at(v);
        if (!t) wrong_kind(op_, argument, "a number or a table of numbers", v);
        for (int64_t i = 1, n = t->length(); i <= n; ++i) {
            items.push_back(t->get(Value(i)));
            if (!items.back().is_number()) wrong_kind(op_, str(argument, "[", i, "]"), "a number", items.back());
        }
        return Value::list(std::move(items));
    }
    Value text(const Param& param, const Value& v) const {
        if (v.kind() != Value::Kind::string) wrong_kind(op_, param.name, "a string", v);
        if (param.choices.empty() || std::ranges::find(param.choices, v.string()) != param.choices.end()) return v;
        std::string list;
        for (std::string_view choice : param.choices) list += str(list.empty() ? "\"" : ", \"", choice, "\"");
        throw argument_error(op_.name(), str(param.name, " must be one of ", list, ", got ", describe_plain(v)));
    }
    Value any(const Param& param, const Value& v, int depth) const {
        const Table* t = table_at(v);
        if (!t) {
            if (v.kind() == Value::Kind::object) wrong_kind(op_, param.name, "a value that operators know", v);
            return v;
        }
        if (depth > kDeepest) throw argument_error(op_.name(), str(param.name, " is nested too deep"));
        std::vector<Value> items;
        for (int64_t i = 1, n = t->length(); i <= n; ++i) items.push_back(any(param, t->get(Value(i)), depth + 1));
        return Value::list(std::move(items));
    }

    const Op& op_;
    const std::span<const Value> args_;
};

// Goes through nested tables twice: for the shape and the kinds of elements, and for the elements.
class TensorReader {
  public:
    TensorReader(std::string_view where) : where_(where) {}
    Tensor read(const Value& data, std::optional<DType> dtype) {
        measure(data, 0);
        std::vector<int64_t> sizes = outer_;
        sizes.insert(sizes.end(), inner_.begin(), inner_.end());
        const DType target = dtype.value_or(kinds_.joint());
        result_ = Tensor::empty(target, checked_shape(where_, sizes, size_of(target)));
        if (result_.size() > 0) fill(data, 0);
        return result_.to(current_place());
    }

  private:
    Error ragged() const { return shape_error(where_, "the table is ragged").hint("all rows have the same length"); }

    void measure(const Value& v, size_t depth) {
        if (const Table* t = table_at(v)) {
            if (depth >= static_cast<size_t>(kMaxRank))
                throw value_error(where_, str("tables are nested deeper than ", kMaxRank, " levels"));
            const int64_t n = t->length();
            if (leaf_depth_ && depth >= *leaf_depth_) throw ragged();
            if (depth < outer_.size()) {
                if (outer_[depth] != n) throw ragged();
            } else {
                if (leaf_depth_) throw ragged();
                outer_.push_back(n);
            }
            if (n == 0) leaf_depth_ = leaf_depth_.value_or(depth + 1);
            for (int64_t i = 1; i <= n; ++i) measure(t->get(Value(i)), depth + 1);
            return;
        }
        if (!leaf_depth_) leaf_depth_ = depth;
        if (depth != *leaf_depth_) throw ragged();
        Shape shape;
        if (v.is_tensor()) {
            shape = v.tensor().shape();
            kinds_.add_tensor(v.tensor().dtype());
        } else if (v.is_number()) {
            (v.kind() == Value::Kind::integer ? kinds_.integers : kinds_.floats) = true;
        } else if (v.kind() == Value::Kind::boolean) {
            kinds_.booleans = true;
        } else {
            throw argument_error(
                where_, str("data must be a number, a boolean, a table of them or a tensor, got ", describe_plain(v)));
        }
        if (inner_known_ && !(inner_ == shape)) throw ragged();
        inner_ = shape;
        inner_known_ = true;
    }

    void fill(const Value& v, size_t depth) {
        if (depth < outer_.size()) {
            const Table* t = table_at(v);
            for (int64_t i = 1; i <= outer_[depth]; ++i) fill(t->get(Value(i)), depth + 1);
            return;
        }
        const Tensor one = v.is_tensor()                      ? v.tensor()
                           : v.kind() == Value::Kind::integer ? Tensor::scalar(v.integer())
                           : v.kind() == Value::Kind::boolean ? Tensor::scalar(DType::boolean, v.boolean())
                                                              : Tensor::scalar(DType::f64, v.number());
        Tensor part = result_.view({one.size()}, {1}, next_);
        copy_elements(one, part);
        next_ += one.size();
    }

    const std::string_view where_;
    std::vector<int64_t> outer_;
    Shape inner_;
    bool inner_known_ = false;
    std::optional<size_t> leaf_depth_;
    ElementKinds kinds_;
    Tensor result_;
    int64_t next_ = 0;
};

std::optional<int64_t> bound_of(const Table& slice, std::string_view name) {
    const Value v = slice.get(Value(name));
    if (v.is_nil()) return std::nullopt;
    if (const auto i = integral(v)) return i;
    throw argument_error("slice", str(name, " must be an integer, got ", describe_plain(v)));
}

IndexItem positions(const Tensor& t) {
    if (t.size() > 0 && !is_integer(t.dtype()) && t.dtype() != DType::boolean)
        throw dtype_error("index", str("an index tensor must hold integers or bools, got ", name_of(t.dtype())));
    return IndexItem::positions(Value(t.size() > 0 || is_integer(t.dtype()) ? t : t.cast(DType::i64)));
}

void add_item(const Value& v, Index& result, bool nested) {
    if (v.is_number()) {
        const auto i = integral(v);
        if (!i) throw index_error("index", str("the position must be an integer, got ", describe_plain(v)));
        result.items.push_back(IndexItem::at(*i));
    } else if (v.kind() == Value::Kind::string) {
        const Index parsed = parse_index("index", v.string());
        result.items.insert(result.items.end(), parsed.items.begin(), parsed.items.end());
    } else if (v.is_tensor()) {
        result.items.push_back(positions(v.tensor()));
    } else if (const Table* t = table_at(v)) {
        if (KeyEqual()(t->metatable, slice_metatable()))
            result.items.push_back(
                IndexItem::slice(bound_of(*t, "start"), bound_of(*t, "stop"), bound_of(*t, "step").value_or(1)));
        else if (KeyEqual()(t->metatable, new_axis_metatable()))
            result.items.push_back(IndexItem::of(IndexItem::Kind::new_axis));
        else if (nested)
            result.items.push_back(positions(plain_tensor(v, std::nullopt, "index")));
        else
            for (int64_t i = 1, n = t->length(); i <= n; ++i) add_item(t->get(Value(i)), result, true);
    } else {
        throw index_error("index",
                          str("an index is an integer, a text such as \"1:3, ::2\", a slice, a tensor of integers or "
                              "bools, or a table of these; got ",
                              describe_plain(v)));
    }
}

}  // namespace

Host::Bound bind_plain(const Op& op, std::span<const Value> args) {
    Host::Bound bound;
    Arguments arguments(op, args);
    bound.args = Binding(op, arguments, &bound.paths).run();
    return bound;
}

Index plain_index(const Value& key) {
    Index index;
    add_item(key, index, false);
    return index;
}

Tensor plain_tensor(const Value& data, std::optional<DType> dtype, std::string_view where) {
    return TensorReader(where).read(data, dtype);
}

std::optional<DType> plain_dtype(const Value& v) {
    if (v.kind() == Value::Kind::dtype) return v.dtype();
    if (v.kind() == Value::Kind::string) return parse_dtype(v.string());
    return std::nullopt;
}

std::string describe_plain(const Value& v) {
    switch (v.kind()) {
        case Value::Kind::nil:
            return "nil";
        case Value::Kind::boolean:
            return v.boolean() ? "true" : "false";
        case Value::Kind::integer:
            return str("the integer ", v.integer());
        case Value::Kind::number:
            return str("the number ", v.number());
        case Value::Kind::string:
            return str("the string '", v.string().substr(0, 40), v.string().size() > 40 ? "...'" : "'");
        case Value::Kind::dtype:
            return str("the dtype ", name_of(v.dtype()));
        case Value::Kind::tensor:
            return str("a tensor of shape ", v.tensor().shape(), " and dtype ", name_of(v.tensor().dtype()));
        default:
            if (const Table* t = table_at(v)) return t->next(Value()).is_nil() ? "an empty table" : "a table";
            return "a function";
    }
}

const Value& slice_metatable() {
    static const Value kTable = PlainHost::table({});
    return kTable;
}
const Value& new_axis_metatable() {
    static const Value kTable = PlainHost::table({});
    return kTable;
}

}  // namespace lunaria::vm
