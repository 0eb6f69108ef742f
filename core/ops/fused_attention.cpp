// Operators: attention of queries to keys without keeping the scores, and its gradient. One pass over blocks of queries
// makes scores, weights and results; the gradient computes the weights of a block again (Rabe and Staats,
// "Self-attention Does Not Need O(n^2) Memory", 2021; Dao and others, "FlashAttention", 2022). The same in elementary
// operators is beside the kernels, to check them and for further derivatives.
#include <limits>

#include "core/base/interrupt.h"
#include "core/batching/rules.h"
#include "core/operator/infer.h"
#include "core/ops/families.h"
#include "core/ops/flops.h"
#include "core/ops/matrix.h"
#include "core/ops/open.h"

namespace lunaria {

namespace {

// Positions of the parameters in a call whose query is argument `first`.
struct AttentionCall {
    const Call& c;
    size_t first;

    Shape query() const { return c.shape(first); }
    Shape key() const { return c.shape(first + 1); }
    Shape value() const { return c.shape(first + 2); }
    double scale() const { return c.number(first + 3); }
    bool causal() const { return c.boolean(first + 4); }
    int64_t shift() const { return c.integer(first + 5); }

    void check() const {
        for (size_t i = 0; i < 3; ++i) expect_rank(c, first + i, 4);
        const Shape q = query(), k = key(), v = value();
        if (q[0] != k[0] || q[1] != k[1] || q[3] != k[3] || v[0] != k[0] || v[1] != k[1] || v[2] != k[2])
            throw shape_error(c.name(), str("query is ", q, ", key is ", k, " and value is ", v,
                                            ": they must be (batch, heads, length, size) with the same batch and "
                                            "heads, query and key with the same size, key and value with the same "
                                            "length"));
    }
    Shape result() const { return {query()[0], query()[1], query()[2], value()[3]}; }
};

// True where a query must not see a key: key j is behind query i + shift.
Tensor later_keys(int64_t queries, int64_t keys, int64_t shift) {
    Tensor mask = Tensor::empty(DType::boolean, {queries, keys});
    bool* at = mask.data<bool>();
    for_elements(queries * keys, [&](int64_t n) {
        const int64_t i = n / keys, j = n % keys;
        at[n] = j - shift > i;
    });
    return mask;
}

// The weights of all keys for each query; those of a query that sees no key are 0.
Expr weights_of(const ExpandCall& c, const AttentionCall& a, const Expr& q, const Expr& k) {
    Expr scores = matmul(q * a.scale(), matrix_transpose(k));
    if (!a.causal()) return c.call("softmax", {scores, -1});
    Expr hidden = c.builder.constant(later_keys(a.query()[2], a.key()[2], a.shift()));
    // A finite number rather than -inf, so that a query which sees no key at all gets 0 and not NaN.
    const double lowest = scores.dtype() == DType::f16 ? -65504.0 : -3.0e38;
    return c.call("where", {hidden, 0.0, c.call("softmax", {c.call("where", {hidden, lowest, scores}), -1})});
}

Expr expand_attention(const ExpandCall& c) {
    const AttentionCall a{c, 0};
    a.check();
    return matmul(weights_of(c, a, c.in(0), c.in(1)), c.in(2));
}

// With weights P and cotangent d: dv = P' d; the softmax takes dP = d v' to dS = P (dP - sum(P dP)); dq = dS k scale
// and dk = dS' q scale.
Expr expand_attention_grad(const ExpandCall& c) {
    const AttentionCall a{c, 1};
    a.check();
    Expr d = c.in(0), q = c.in(1), k = c.in(2), v = c.in(3);
    Expr p = weights_of(c, a, q, k), dp = matmul(d, matrix_transpose(v));
    Expr ds = p * (dp - (p * dp).sum({3}, true)) * a.scale();
    return c.builder.list({{matmul(ds, k), matmul(matrix_transpose(ds), q), matmul(matrix_transpose(p), d)}});
}

// The same number of operations for each pair of a query's element and a key.
template <size_t query, int each>
double attention_flops(const Call& c, std::span<const TensorType>) {
    return each * elements(c.shape(query)) * size_from_end(c.shape(query + 1), 2);
}

}  // namespace

void add_fused_attention_ops(Registry& ops) {
    ops.add(
           "attention(query: float, key: float, value: float, scale: number = 1.0, causal: bool = false, shift: int = "
           "0)")
        .doc(
            "Attention of (batch, heads, length, size) queries: softmax(query key^T scale) value. With causal, query i "
            "sees the keys up to i + shift; the scores of all keys are never held at once.")
        .source("Dao, Fu, Ermon, Rudra, Re: FlashAttention, 2022")
        .example("attention(zeros({1, 1, 2, 1}), zeros({1, 1, 2, 1}), tensor{{{{1.0}, {3.0}}}}, 1.0, true)",
                 "tensor{{{{1.0}, {2.0}}}}")
        .infer([](const Call& c) -> Types {
            const AttentionCall a{c, 0};
            a.check();
            return {{c.dtype, a.result()}};
        })
        .expand(expand_attention)
        .strided()
        .grad([](const GradRule& g) -> Grads {
            Expr grads = g.call("attention_grad", {g.dout, g.in(0), g.in(1), g.in(2), g.args[3], g.args[4], g.args[5]});
            return {grads[0], grads[1], grads[2], {}, {}, {}};
        })
        .method(false)
        .batched(batch::merged)
        .flops(attention_flops<0, 4>)
        .open(open::attention)
        .cut("@attention")
        .sample("f32[2,2,5,4], f32[2,2,7,4], f32[2,2,7,3], 0.5")
        .sample("f32[1,2,6,3], f32[1,2,6,3], f32[1,2,6,3], 0.7, true")
        .sample("f32[1,2,4,3], f32[1,2,6,3], f32[1,2,6,2], 0.7, true, 2")
        .sample("f32[1,1,70,4], f32[1,1,67,4], f32[1,1,67,4], 0.5, true, -3");
    ops.add(
           "attention_grad(dout: float, query: float, key: float, value: float, scale: number, causal: bool, shift: "
           "int) "
           "-> (dquery, dkey, dvalue)")
        .doc("Gradients of attention with respect to query, key and value.")
        .example(
            "attention_grad(ones({1, 1, 2, 1}), zeros({1, 1, 2, 1}), zeros({1, 1, 2, 1}), zeros({1, 1, 2, 1}), 1.0, "
            "true, 0)",
            "zeros({1, 1, 2, 1})")
        .infer([](const Call& c) -> Types {
            const AttentionCall a{c, 1};
            a.check();
            expect_rank(c, 0, 4);
            if (!(c.shape(0) == a.result()))
                throw shape_error(c.name(), str("dout has shape ", c.shape(0), ": it must be ", a.result()));
            return {{c.dtype, a.query()}, {c.dtype, a.key()}, {c.dtype, a.value()}};
        })
        .expand(expand_attention_grad)
        .strided()
        .method(false)
        .batched(batch::merged)
        .flops(attention_flops<1, 10>)
        .cut("@attention grad")
        .sample("f32[2,2,5,3], f32[2,2,5,4], f32[2,2,7,4], f32[2,2,7,3], 0.5, false, 0")
        .sample("f32[1,2,6,3], f32[1,2,6,3], f32[1,2,6,3], f32[1,2,6,3], 0.7, true, 0")
        .sample("f32[1,1,70,4], f32[1,1,70,4], f32[1,1,67,4], f32[1,1,67,4], 0.5, true, -3");
}

}  // namespace lunaria
