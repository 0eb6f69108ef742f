// GPU kernels: matrix products. A call is first reduced to sizes, strides and batches, in which vectors, transposed
// views and broadcast batches are nothing special.
#include <array>
#include <memory>
#include <vector>

#include "backends/gpu/library_product.h"
#include "backends/gpu/operators.h"
#include "backends/gpu/product.h"
#include "core/base/error.h"
#include "core/operator/infer.h"

namespace lunaria::gpu {

namespace {

struct Operand {
    int64_t row = 0, column = 0;  // steps
    Shape batch{};
    Strides steps{};  // 0 where broadcast
};

Operand left_of(const Tensor& t) {
    Operand o{.column = t.strides()[t.rank() - 1]};
    if (t.rank() > 1) o.row = t.strides()[t.rank() - 2];
    for (int i = 0; i + 2 < t.rank(); ++i) o.batch.push_back(t.dim(i));
    return o;
}
Operand right_of(const Tensor& t, bool transposed) {
    if (t.rank() == 1) return {.row = t.strides()[0]};
    const Operand o = left_of(t);
    return transposed ? Operand{o.column, o.row, o.batch} : o;
}

void find_steps(Operand& o, const Tensor& t, const Shape& batch) {
    o.steps.resize(batch.rank(), 0);
    const int extra = batch.rank() - o.batch.rank();
    for (int i = 0; i < o.batch.rank(); ++i)
        if (t.dim(i) != 1) o.steps[extra + i] = t.strides()[i];
}

// The dtype of the computation; nothing for dtypes without a product.
bool sum_dtype(DType t, DType& sum) {
    sum = is_half(t) ? DType::f32 : t;
    return t == DType::i32 || t == DType::i64 || (is_float(t) && !is_complex(t));
}

// The step from one matrix to the next, if one step describes the whole batch.
bool one_step(const Shape& batch, const Strides& steps, int64_t& step) {
    step = 0;
    int64_t inside = 1;
    for (int i = batch.rank(); i-- > 0;) {
        if (batch[i] == 1) continue;
        if (inside == 1)
            step = steps[i];
        else if (steps[i] != step * inside)
            return false;
        inside *= batch[i];
    }
    return true;
}

bool by_library(Launcher& launcher, const KernelCall& c, const ProductShape& s, const Shape& axes, const Operand& a,
                const Operand& b, const Tensor* bias) {
    if (!is_float(c.dtype) || is_complex(c.dtype)) return false;
    if (bias && (bias->rank() != 1 || bias->strides()[0] != 1 || bias->size() != s.columns)) return false;
    auto address = [](const Tensor& t) { return reinterpret_cast<Address>(t.raw()); };
    MatrixProduct p{.dtype = c.dtype, .batches = s.batches, .rows = s.rows, .columns = s.columns, .depth = s.depth};
    p.a = {address(c.tensor(0)), a.row, a.column};
    p.b = {address(c.tensor(1)), b.row, b.column};
    if (!one_step(axes, a.steps, p.a.batch) || !one_step(axes, b.steps, p.b.batch)) return false;
    p.out = address(c.out[0]);
    if (bias) p.bias = address(*bias);
    return run_library_product(launcher, p);
}

bool product(Launcher& launcher, const KernelCall& c, bool transposed) {
    const Tensor &x = c.tensor(0), &y = c.tensor(1), &out = c.out[0];
    const Tensor* bias = transposed && c.has(2) ? &c.tensor(2) : nullptr;
    ProductShape s;
    if (!sum_dtype(c.dtype, s.sum)) return false;
    Operand a = left_of(x), b = right_of(y, transposed);
    s.depth = x.dim(x.rank() - 1);
    s.rows = x.rank() > 1 ? x.dim(x.rank() - 2) : 1;
    s.columns = y.rank() == 1 ? 1 : y.dim(transposed ? y.rank() - 2 : y.rank() - 1);
    const Shape batch = broadcast(c.op.name(), a.batch, b.batch);
    find_steps(a, x, batch);
    find_steps(b, y, batch);
    s.batches = batch.size();
    Shape axes = batch;
    // If all products share the right matrix, the rows of a dense batch are rows of one tall matrix.
    if (b.batch.rank() == 0 && batch.rank() > 0 && x.is_contiguous()) {
        s.rows *= s.batches;
        s.batches = 1;
        axes = {};
    }
    if (by_library(launcher, c, s, axes, a, b, bias)) return true;
    s.a_along_depth = a.column == 1;
    s.b_along_depth = b.row == 1;
    Words words;
    words.tensor(out).tensor(x).tensor(y);
    if (bias) words.tensor(*bias).size(bias->rank() ? bias->strides()[0] : 0);
    words.size(s.rows).size(s.columns).size(a.row).size(a.column).size(b.row).size(b.column);
    for (int i = 0; i < axes.rank(); ++i) words.size(axes[i]).size(a.steps[i]).size(b.steps[i]);
    const std::string name =
        str("matrices ", name_of(c.dtype), bias ? " with bias " : " ", axes.rank(), a.column == 1, b.row == 1);
    return run_product(launcher, name, s, words, [&](Writer& w) {
        const Elements to = w.tensor(c.dtype), left = w.tensor(c.dtype), right = w.tensor(c.dtype);
        const Elements added = bias ? w.tensor(c.dtype) : Elements{};
        const Number bias_step = bias ? w.size() : Number{};
        const Number rows = w.size(), columns = w.size();
        const Number a_row = w.size(), a_column = w.size(), b_row = w.size(), b_column = w.size();
        std::vector<std::array<Number, 3>> batch_axes;
        for (int i = 0; i < axes.rank(); ++i) {
            const Number size = w.size(), a_step = w.size(), b_step = w.size();
            batch_axes.push_back({size, a_step, b_step});
        }
        struct Starts {
            Number a, b, out;
        };
        auto at = std::make_shared<Starts>();
        ProductElements e;
        e.begin = [=](Writer& now, Number number) {
            *at = {now.index(0), now.index(0), number * rows * columns};
            for (size_t i = batch_axes.size(); i-- > 0;) {
                const auto& [size, a_step, b_step] = batch_axes[i];
                const Number here = remainder(number, size);
                number = quotient(number, size);
                at->a += here * a_step;
                at->b += here * b_step;
            }
        };
        const DType sum = s.sum;
        const bool unit_a = s.a_along_depth, unit_b = s.b_along_depth;
        e.a = [=](Number row, Number k) {
            return cast(left.get(at->a + row * a_row + (unit_a ? k : k * a_column)), sum);
        };
        e.b = [=](Number k, Number column) {
            return cast(right.get(at->b + (unit_b ? k : k * b_row) + column * b_column), sum);
        };
        e.store = [=](Number row, Number column, Number v) {
            if (bias) v += cast(added.get(column * bias_step), sum);
            to.set(at->out + row * columns + column, cast(v, to.dtype));
        };
        return e;
    });
}

bool matmul(Launcher& launcher, const KernelCall& c) { return product(launcher, c, false); }
bool dense(Launcher& launcher, const KernelCall& c) { return product(launcher, c, true); }

}  // namespace

void add_linalg_kernels(KernelTable& table) {
    for (const char* op : {"matmul", "mm", "bmm", "mv"}) table.add(op, matmul);
    table.add("dense", dense);
}

}  // namespace lunaria::gpu
