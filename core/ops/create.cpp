// Operators: constructors, ranges, windows.
#include <cmath>

#include "core/operator/infer.h"
#include "core/ops/families.h"
#include "core/ops/layout.h"
#include "core/ops/open.h"

namespace lunaria {

namespace {

// The dtype of a tensor made from a number: floats f32, integers i64, bools bool; a tensor keeps its own.
DType natural_dtype(const Value& v) {
    if (v.is_tensor() || v.is_node()) return type_of(v).dtype;
    if (v.kind() == Value::Kind::boolean) return DType::boolean;
    return v.kind() == Value::Kind::integer ? DType::i64 : DType::f32;
}

void check_fill(const Call& c, size_t i) {
    const Value& v = c.args[i];
    bool scalar = v.is_number() || v.kind() == Value::Kind::boolean;
    if (!scalar && !((v.is_tensor() || v.is_node()) && type_of(v).shape.size() == 1))
        throw argument_error(c.name(), str(param_name(c, i),
                                           " must be a number, a bool or a tensor of one "
                                           "element, not ",
                                           to_string(v)));
}

Shape wanted_shape(const Call& c, size_t i, DType dtype) {
    auto sizes = c.ints(i);
    return checked_shape(c.name(), sizes, size_of(dtype));
}

// zeros and ones are primitives, since they are called often and on small sizes.
Types infer_constant(const Call& c) {
    DType dtype = c.dtype_or(1, DType::f32);
    return {{dtype, wanted_shape(c, 0, dtype)}};
}

constexpr const char* kConstant = "the result depends on no tensor";

void add_fills(Registry& ops) {
    ops.add("full(size/shape: shape, fill_value/value: any, dtype: dtype? = nil)")
        .doc("A tensor of the given shape whose elements are all fill_value; integers make int64, floats float32.")
        .moves()
        .example("full({2}, 1.5)", "tensor{1.5, 1.5}")
        .infer([](const Call& c) -> Types {
            check_fill(c, 1);
            DType dtype = c.dtype_or(2, natural_dtype(c.args[1]));
            return {{dtype, wanted_shape(c, 0, dtype)}};
        })
        .half_native()
        .no_grad(kConstant)
        .open(open::full)
        .cut("@made sized")
        .sample("{2,3}, 1.5")
        .sample("{3}, 7, float16");
    ops.add("zeros(size/shape: shape, dtype: dtype? = nil)")
        .doc("A tensor of zeros.")
        .moves()
        .example("zeros({2})", "tensor{0.0, 0.0}")
        .infer(infer_constant)
        .half_native()
        .no_grad(kConstant)
        .cut("@made sized")
        .sample("{2,3}")
        .sample("{3}, int32");
    ops.add("ones(size/shape: shape, dtype: dtype? = nil)")
        .doc("A tensor of ones.")
        .moves()
        .example("ones({2})", "tensor{1.0, 1.0}")
        .infer(infer_constant)
        .half_native()
        .no_grad(kConstant)
        .cut("@made sized")
        .sample("{2,3}")
        .sample("{3}, int32");
    ops.add("fill(dtype/type: dtype, shape/size: shape, value/fill_value: any)")
        .doc("A tensor of the given dtype and shape whose elements are all value.")
        .example("fill(\"float32\", {2}, 3)", "tensor{3.0, 3.0}")
        .expand([](const ExpandCall& c) {
            return c.call("full", {c.args[1], c.args[2], c.args[0]});
        })
        .no_grad(kConstant)
        .open(open::fill)
        .sample("float32, {2,3}, 3")
        .sample("int64, {5}, 2");
    ops.add("empty(size/shape: shape, dtype: dtype? = nil)")
        .doc("A tensor for contents to come; its elements are zeros.")
        .example("shape(empty({2, 3}))", "{2, 3}")
        .expand([](const ExpandCall& c) {
            return c.call("full", {c.args[0], 0, c.dtype_or(1, DType::f32)});
        })
        .no_grad(kConstant)
        .sample("{2,3}")
        .sample("{3}, int32");
    // Primitives, not calls of full, since the size may be known only when the program runs.
    ops.add("full_like(input/x: tensor, fill_value/value: any, dtype: dtype? = nil)")
        .doc("A tensor of the shape and dtype of input whose elements are all fill_value.")
        .example("full_like(tensor{1.0, 2.0}, 3)", "tensor{3.0, 3.0}")
        .infer([](const Call& c) -> Types {
            check_fill(c, 1);
            return {{c.dtype_or(2, c.type(0).dtype), c.shape(0)}};
        })
        .strided()
        .half_native()
        .no_grad(kConstant)
        .alias("fills")
        .type_only()
        .open(open::full_like)
        .cut("...->...")
        .sample("f32[2,3], -2.5")
        .sample("i64[3], 7");
    ops.add("zeros_like(input/x: tensor, dtype: dtype? = nil)")
        .doc("Zeros in the shape and dtype of input.")
        .example("zeros_like(tensor{1, 2})", "tensor{0, 0}")
        .expand([](const ExpandCall& c) {
            return c.call("full_like", {c.in(0), 0, c.args[1]});
        })
        .no_grad(kConstant)
        .alias("empty_like")
        .type_only()
        .sample("f32[2,3]")
        .sample("i64[3], float32");
    ops.add("ones_like(input/x: tensor, dtype: dtype? = nil)")
        .doc("Ones in the shape and dtype of input.")
        .example("ones_like(tensor{1, 2})", "tensor{1, 1}")
        .expand([](const ExpandCall& c) {
            return c.call("full_like", {c.in(0), 1, c.args[1]});
        })
        .no_grad(kConstant)
        .type_only()
        .sample("f32[2,3]")
        .sample("i64[3], float32");
    ops.add("new_zeros(input/x: tensor, size/shape: shape, dtype: dtype? = nil)")
        .doc("Zeros of the given shape in the dtype of input.")
        .example("new_zeros(tensor{1}, {2})", "tensor{0, 0}")
        .expand([](const ExpandCall& c) {
            return c.call("full", {c.args[1], 0, c.dtype_or(2, c.type(0).dtype)});
        })
        .no_grad(kConstant)
        .alias("new_empty")
        .sample("f32[2], {3}")
        .sample("i64[2], {2,3}");
    ops.add("new_ones(input/x: tensor, size/shape: shape, dtype: dtype? = nil)")
        .doc("Ones of the given shape in the dtype of input.")
        .example("new_ones(tensor{1}, {2})", "tensor{1, 1}")
        .expand([](const ExpandCall& c) {
            return c.call("full", {c.args[1], 1, c.dtype_or(2, c.type(0).dtype)});
        })
        .no_grad(kConstant)
        .sample("f32[2], {3}")
        .sample("i64[2], {2,3}");
    ops.add("new_full(input/x: tensor, size/shape: shape, fill_value/value: any, dtype: dtype? = nil)")
        .doc("A tensor of the given shape in the dtype of input whose elements are all fill_value.")
        .example("new_full(tensor{1}, {2}, 5)", "tensor{5, 5}")
        .expand([](const ExpandCall& c) {
            return c.call("full", {c.args[1], c.args[2], c.dtype_or(3, c.type(0).dtype)});
        })
        .no_grad(kConstant)
        .open(open::new_full)
        .sample("f32[2], {3}, 1.5")
        .sample("i64[2], {2,3}, 4");
}

// Elements of start, start + step … before stop, counted exactly for integers.
int64_t range_length(const Call& c, const Value& start, const Value& stop, const Value& step) {
    if (step.number() == 0) throw value_error(c.name(), "step must not be 0");
    __int128 count = 0;
    if (start.kind() == Value::Kind::integer && stop.kind() == Value::Kind::integer &&
        step.kind() == Value::Kind::integer) {
        __int128 way = static_cast<__int128>(stop.integer()) - start.integer(), pace = step.integer();
        if (way != 0 && (way > 0) == (pace > 0)) count = (way + pace - (pace > 0 ? 1 : -1)) / pace;
    } else {
        double way = (stop.number() - start.number()) / step.number();
        if (!std::isfinite(way))
            throw value_error(c.name(), str("the range from ", start.number(), " to ", stop.number(), " by ",
                                            step.number(), " has no finite size"));
        if (way > 9e18) throw shape_error(c.name(), str("the range is too large: it has ", way, " elements"));
        count = way > 0 ? static_cast<__int128>(std::ceil(way)) : 0;
    }
    if (count > std::numeric_limits<int64_t>::max() / 8)
        throw shape_error(c.name(), "the range is too large: its size in bytes overflows 63 bits");
    return static_cast<int64_t>(count);
}

// arange(5) means 0 … 4.
struct RangeArgs {
    Value start, stop;
    explicit RangeArgs(const Call& c)
        : start(c.has(1) ? c.args[0] : Value(0)), stop(c.has(1) ? c.args[1] : c.args[0]) {}
};

int64_t steps_of(const Call& c, size_t i) {
    if (c.integer(i) < 0) throw value_error(c.name(), str("steps must not be negative, got ", c.integer(i)));
    int64_t sizes[] = {c.integer(i)};
    checked_shape(c.name(), sizes);
    return c.integer(i);
}

void expect_finite(const Call& c, size_t i) {
    if (std::isnan(c.number(i))) throw value_error(c.name(), str(param_name(c, i), " must be a number, not nan"));
}

void add_ranges(Registry& ops) {
    ops.add("arange(start: number = 0, stop/end: number? = nil, step/delta: number = 1, dtype: dtype? = nil)")
        .doc(
            "The numbers start, start + step … before stop: int64 if all three are integers, else float32. One "
            "argument alone is stop.")
        .example("arange(1, 7, 2)", "tensor{1, 3, 5}")
        .infer([](const Call& c) -> Types {
            RangeArgs range(c);
            bool whole = range.start.kind() == Value::Kind::integer && range.stop.kind() == Value::Kind::integer &&
                         c.args[2].kind() == Value::Kind::integer;
            int64_t sizes[] = {range_length(c, range.start, range.stop, c.args[2])};
            return {{c.dtype_or(3, whole ? DType::i64 : DType::f32), checked_shape(c.name(), sizes)}};
        })
        .no_grad(kConstant)
        .alias("range")
        .sample("0, 5")
        .sample("5, 0, -2")
        .sample("0.5, 2.0, 0.25");
    ops.add("linspace(start: number, stop/end: number, steps/num: int, dtype: dtype? = nil)")
        .doc("Numbers from start to stop, both included, at equal distances.")
        .example("linspace(0, 1, 3)", "tensor{0.0, 0.5, 1.0}")
        .infer([](const Call& c) -> Types {
            expect_finite(c, 0);
            expect_finite(c, 1);
            return {{c.dtype_or(3, DType::f32), {steps_of(c, 2)}}};
        })
        .no_grad(kConstant)
        .open(open::linspace)
        .sample("-1, 2, 7")
        .sample("3.0, 3.5, 1");
    ops.add("logspace(start: number, stop/end: number, steps/num: int = 10, base: number = 10, dtype: dtype? = nil)")
        .doc("The powers of base whose exponents are steps numbers from start to stop.")
        .example("logspace(0, 2, 3)", "tensor{1.0, 10.0, 100.0}")
        .infer([](const Call& c) -> Types {
            expect_finite(c, 0);
            expect_finite(c, 1);
            return {{c.dtype_or(4, DType::f32), {steps_of(c, 2)}}};
        })
        .no_grad(kConstant)
        .open(open::logspace)
        .sample("0.0, 2.0, 5, 10")
        .sample("0, 3, 4, 2");
    ops.add("eye(n: int, m: int? = nil, dtype: dtype? = nil)")
        .doc("The matrix of n rows and m (default n) columns with ones on its diagonal.")
        .example("eye(2)", "tensor{{1.0, 0.0}, {0.0, 1.0}}")
        .infer([](const Call& c) -> Types {
            DType dtype = c.dtype_or(2, DType::f32);
            int64_t sizes[] = {c.integer(0), c.has(1) ? c.integer(1) : c.integer(0)};
            return {{dtype, checked_shape(c.name(), sizes, size_of(dtype))}};
        })
        .no_grad(kConstant)
        .sample("3, 4")
        .sample("2, dtype=int32");
    auto triangle = [](Op& op) -> Op& {
        return op
            .infer([](const Call& c) -> Types {
                int64_t sizes[] = {c.integer(0), c.integer(1)};
                checked_shape(c.name(), sizes);
                return {{c.dtype_or(3, DType::i64), {2, kUnknownDim}}};
            })
            .no_grad(kConstant)
            .sample("3, 4, 1")
            .sample("4, 2, -1");
    };
    triangle(ops.add("tril_indices(row/rows: int, col/cols: int, offset: int = 0, dtype: dtype? = nil)"))
        .doc("Row and column numbers of the lower triangle of a matrix.")
        .example("tril_indices(2, 2)", "tensor{{0, 1, 1}, {0, 0, 1}}");
    triangle(ops.add("triu_indices(row/rows: int, col/cols: int, offset: int = 0, dtype: dtype? = nil)"))
        .doc("Row and column numbers of the upper triangle of a matrix.")
        .example("triu_indices(2, 2)", "tensor{{0, 0, 1}, {0, 1, 1}}");
}

void add_combinations(Registry& ops) {
    ops.add("vander(x/input: tensor, n/N: int? = nil)")
        .doc("The matrix of the powers n - 1 … 0 of each element of a vector; n is its size by default.")
        .example("vander(tensor{1.0, 2.0, 3.0})", "tensor{{1.0, 1.0, 1.0}, {4.0, 2.0, 1.0}, {9.0, 3.0, 1.0}}")
        .expand([](const ExpandCall& c) -> Expr {
            expect_rank(c, 0, 1);
            int64_t n = c.has(1) ? c.integer(1) : c.shape(0)[0];
            if (n < 0) throw value_error(c.name(), str("n must not be negative, got ", n));
            Expr column = c.call("expand_dims", {c.in(0), 1});
            Expr powers = c.call("arange", {n - 1, -1, -1, c.type(0).dtype});
            return c.call("pow", {column, powers});
        })
        .wide()
        .sample("f32[3]:(1,2)")
        .sample("f32[4]:(1,2), 3");
    ops.add("cartesian_prod(inputs/tensors: tensors)")
        .doc("All combinations of one element from each vector, one row each.")
        .example("cartesian_prod({tensor{1, 2}, tensor{3, 4}})", "tensor{{1, 3}, {1, 4}, {2, 3}, {2, 4}}")
        .expand([](const ExpandCall& c) -> Expr {
            auto count = static_cast<int>(c.types(0).size());
            Expr grids = c.call("meshgrid", {c.in(0), {"indexing", "ij"}});
            std::vector<Expr> columns;
            for (int i = 0; i < count; ++i) columns.push_back(grids[static_cast<size_t>(i)].reshape({-1}));
            return count == 1 ? columns[0] : c.call("stack", {c.builder.list(columns), 1});
        })
        .sample("{f32[2], f32[3]}")
        .sample("{f32[2], f32[1], f32[3]}");
    ops.add("combinations(input/x: tensor, r: int = 2, with_replacement: bool = false)")
        .doc("All choices of r elements of a vector in their order, one row each.")
        .example("combinations(tensor{1, 2, 3})", "tensor{{1, 2}, {1, 3}, {2, 3}}")
        .expand([](const ExpandCall& c) -> Expr {
            expect_rank(c, 0, 1);
            int64_t n = c.shape(0)[0], r = c.integer(1);
            bool again = c.boolean(2);
            if (r < 0 || r > 16) throw value_error(c.name(), str("r must be between 0 and 16, not ", r));
            std::vector<int64_t> choice, all;
            auto extend = [&](auto& self, int64_t from) -> void {
                if (static_cast<int64_t>(choice.size()) == r) {
                    all.insert(all.end(), choice.begin(), choice.end());
                    if (all.size() > (size_t{1} << 24)) throw memory_error(c.name(), "there are too many combinations");
                    return;
                }
                for (int64_t i = from; i < n; ++i) {
                    choice.push_back(i);
                    self(self, again ? i : i + 1);
                    choice.pop_back();
                }
            };
            extend(extend, 0);
            Tensor index = Tensor::from<int64_t>(all, {r ? static_cast<int64_t>(all.size()) / r : 0, r});
            return c.call("gather", {c.in(0), c.builder.constant(index), 0});
        })
        .sample("f32[4]")
        .sample("f32[3], 2, true");
}

// Points 0, 1 … of a window over `length` points: N = length for periodic windows, length - 1 for symmetric ones.
Types infer_window(const Call& c) {
    expect_not_negative(c, 0, c.integer(0));
    int64_t sizes[] = {c.integer(0)};
    DType dtype =
        c.op.signature.params.back().type == ArgType::dtype ? c.dtype_or(c.args.size() - 1, DType::f32) : DType::f32;
    if (!is_float(dtype)) throw dtype_error(c.name(), str("a window must be float, not ", name_of(dtype)));
    return {{dtype, checked_shape(c.name(), sizes)}};
}

void add_windows(Registry& ops) {
    auto window = [](Op& op, const char* doc) {
        op.doc(doc).infer(infer_window).no_grad(kConstant).sample("8").sample("7, false");
    };
    window(ops.add("bartlett_window(window_length: int, periodic: bool = true, dtype: dtype? = nil)")
               .example("bartlett_window(3, false)", "tensor{0.0, 1.0, 0.0}"),
           "Bartlett's triangular window.");
    window(ops.add("blackman_window(window_length: int, periodic: bool = true, dtype: dtype? = nil)")
               .example("blackman_window(2, true)", "tensor{0.0, 1.0}"),
           "Blackman's window.");
    window(ops.add("hann_window(window_length: int, periodic: bool = true, dtype: dtype? = nil)")
               .example("hann_window(3, false)", "tensor{0.0, 1.0, 0.0}"),
           "Hann's window.");
    window(
        ops.add("hamming_window(window_length: int, periodic: bool = true, alpha: number = 0.54, beta: number = 0.46, "
                "dtype: dtype? = nil)")
            .example("hamming_window(3, false)", "tensor{0.08, 1.0, 0.08}")
            .open(open::hamming_window),
        "Hamming's window, alpha - beta cos(2 pi n / N).");
    window(ops.add("kaiser_window(window_length: int, periodic: bool = true, beta: number = 12.0, dtype: dtype? = nil)")
               .example("kaiser_window(1)", "tensor{1.0}"),
           "Kaiser's window with shape parameter beta.");
}

}  // namespace

void add_create_ops(Registry& ops) {
    add_fills(ops);
    add_ranges(ops);
    add_windows(ops);
    add_combinations(ops);
}

}  // namespace lunaria
