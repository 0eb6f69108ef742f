// Operators: language models that write token by token. Weights in blocks (core/tensor/blocks.h) stay as they are in
// memory, and the keys and values of earlier tokens stay in a cache of fixed size, of which a step writes and reads the
// places up to its position: a tensor, so that one compiled program serves all positions.
#include "core/tensor/blocks.h"

#include "core/base/interrupt.h"
#include "core/operator/infer.h"
#include "core/ops/families.h"
#include "core/ops/flops.h"
#include "core/ops/matrix.h"

namespace lunaria {

namespace {

const BlockForm& form_of(const Call& c, size_t i) { return *find_block_form(c.string(i)); }

// The numbers of a row of argument `i`, which is in blocks.
int64_t row_elements(const Call& c, size_t i, const BlockForm& form) {
    expect_rank_at_least(c, i, 1);
    const TensorType type = c.type(i);
    if (type.dtype != DType::u8)
        throw dtype_error(c.name(), str(param_name(c, i), " is ", name_of(type.dtype), ": blocks are of uint8"));
    const int64_t bytes = type.shape.back();
    if (bytes % form.bytes != 0)
        throw shape_error(c.name(), str(param_name(c, i), " has shape ", type.shape, ": its rows of ", bytes,
                                        " bytes must be whole blocks of ", form.name, ", of ", form.bytes, " bytes"));
    return form.row_elements(bytes);
}

Types infer_dequantize(const Call& c) {
    Shape shape = c.shape(0);
    const int64_t row = row_elements(c, 0, form_of(c, 1));
    shape[shape.rank() - 1] = row;
    return {{DType::f32, shape}};
}

Types infer_quantize(const Call& c) {
    expect_rank_at_least(c, 0, 1);
    const BlockForm& form = form_of(c, 1);
    Shape shape = c.shape(0);
    if (shape.back() % form.elements != 0)
        throw shape_error(c.name(), str(param_name(c, 0), " has shape ", shape, ": rows of ", form.name,
                                        " have a multiple of ", form.elements, " numbers"));
    shape[shape.rank() - 1] = form.row_bytes(shape.back());
    return {{DType::u8, shape}};
}

void expect_real(const Call& c) {
    if (is_complex(c.dtype)) throw dtype_error(c.name(), str("is not defined for ", name_of(c.dtype)));
}

Types infer_block_dense(const Call& c) {
    expect_real(c);
    expect_rank_at_least(c, 0, 1);
    expect_rank(c, 1, 2);
    Shape x = c.shape(0);
    const Shape weight = c.shape(1);
    const int64_t row = row_elements(c, 1, form_of(c, 2));
    if (x.back() != row)
        throw shape_error(c.name(), str(param_name(c, 0), " has shape ", x, " and the rows of ", param_name(c, 1), " ",
                                        row, " numbers: the last axis must have as many"));
    if (c.has(3) && !(c.shape(3) == Shape{weight[0]}))
        throw shape_error(c.name(),
                          str(param_name(c, 3), " has shape ", c.shape(3), ": it must be (", weight[0], ",)"));
    x[x.rank() - 1] = weight[0];
    return {{c.dtype, x}};
}

Expr numbers_of(const ExpandCall& c) { return c.call("dequantize_blocks", {c.in(1), c.args[2]}).cast(c.dtype); }

Expr expand_block_dense(const ExpandCall& c) {
    infer_block_dense(c);
    return c.call("dense", {c.in(0), numbers_of(c), c.has(3) ? c.in(3) : Expr(c.builder, Value())});
}

// The cotangent of x in the shape of its rows; blocks are not trained.
Grads grad_block_dense(const GradRule& g) {
    Expr dbias;
    if (g.has(3)) dbias = as_rows(g.dout).sum({0});
    return {matmul(g.dout, numbers_of(g)), {}, {}, dbias};
}

void expect_cache(const Call& c, size_t cache, size_t other) {
    expect_rank(c, cache, 4);
    expect_rank(c, other, 4);
}

int64_t first_place(const Tensor& position) { return position.to_host().contiguous().integer_at(0); }

void expect_one(const Call& c, size_t i) {
    if (c.shape(i).size() != 1)
        throw shape_error(c.name(), str(param_name(c, i), " has shape ", c.shape(i), ": it must be one integer"));
}

Types infer_cache_write(const Call& c) {
    expect_cache(c, 0, 1);
    expect_one(c, 2);
    const Shape cache = c.shape(0), value = c.shape(1);
    if (value[0] != cache[0] || value[1] != cache[1] || value[2] > cache[2] || value[3] != cache[3])
        throw shape_error(c.name(), str("the cache is ", cache, " and the value ", value,
                                        ": they must be (batch, heads, places, size), with as many places at most"));
    return {c.type(0)};
}

Value write_places(const Call& c) {
    infer_cache_write(c);
    Tensor cache = c.args[0].tensor();
    const Tensor& value = c.args[1].tensor();
    const int64_t first = first_place(c.args[2].tensor()), count = value.dim(2);
    if (first < 0 || first > cache.dim(2) - count)
        throw index_error(c.name(), str(count, " places from ", first, " on are outside of a cache of ", cache.dim(2)))
            .hint("begin anew, or make the cache with a larger length");
    cache.own_storage();
    Shape shape = cache.shape();
    shape[2] = count;
    copy_elements(value.to(cache.device()), cache.view(shape, cache.strides(), first * cache.strides()[2]));
    cache.count_write();
    return Value(std::move(cache));
}

struct CacheCall {
    const Call& c;
    Shape query() const { return c.shape(0); }
    Shape key() const { return c.shape(1); }
    Shape value() const { return c.shape(2); }
    Shape result() const { return {query()[0], query()[1], query()[2], value()[3]}; }

    void check() const {
        expect_real(c);
        for (size_t i = 0; i < 3; ++i) expect_rank(c, i, 4);
        expect_one(c, 3);
        const Shape q = query(), k = key(), v = value();
        if (q[0] != k[0] || q[3] != k[3] || k[1] == 0 || q[1] % k[1] != 0 || v[0] != k[0] || v[1] != k[1] ||
            v[2] != k[2])
            throw shape_error(c.name(), str("query is ", q, ", key is ", k, " and value is ", v,
                                            ": they must be (batch, heads, length, size); the heads of query are a "
                                            "multiple of those of key and value"));
    }
};

// The numbers 0 .. count - 1 in a shape.
Expr counted(const ExpandCall& c, const Shape& shape) {
    Tensor numbers = Tensor::empty(DType::i64, shape);
    for (int64_t i = 0; i < numbers.size(); ++i) numbers.data<int64_t>()[i] = i;
    return c.builder.constant(numbers);
}

Expr expand_cache_attention(const ExpandCall& c) {
    const CacheCall a{c};
    a.check();
    const Shape q = a.query(), k = a.key(), v = a.value();
    const int64_t group = q[1] / k[1];
    Expr query = c.in(0).reshape({q[0], k[1], group * q[2], q[3]});
    Expr scores = matmul(query * c.number(4), matrix_transpose(c.in(1))).reshape({q[0], q[1], q[2], k[2]});
    // An index that is outside is an error here, as in the kernel.
    const Expr position = c.in(3).reshape({1}), first = counted(c, {std::max<int64_t>(0, k[2] - q[2] + 1)});
    const Expr place = c.call("where", {c.call("less", {position, 0}), k[2], position});
    const Expr seen = c.call("gather", {first, place, 0}).reshape({1, 1}) + counted(c, {q[2], 1});
    Expr hidden = c.call("greater", {counted(c, {1, k[2]}), seen});
    Expr weights = c.call("softmax", {c.call("where", {hidden, -3.0e38, scores}), -1});
    return matmul(weights.reshape({q[0], k[1], group * q[2], k[2]}), c.in(2)).reshape({q[0], q[1], q[2], v[3]});
}

}  // namespace

void add_language_ops(Registry& ops) {
    ops.add("dequantize_blocks(blocks: tensor, form: \"q8_0\"|\"q4_0\"|\"q4_k\"|\"q6_k\")")
        .doc("The numbers of rows in blocks, as GGUF files hold weights: each row of bytes becomes one of float32.")
        .example("dequantize_blocks(quantize_blocks(full({32}, 127.0), \"q8_0\"), \"q8_0\"):sum()", "tensor(4064.0)")
        .infer(infer_dequantize)
        .method(false)
        .no_grad("weights in blocks are not trained")
        .cut("...!b->...!n")
        .sample("u8[3,68]:(0,60), \"q8_0\"")
        .sample("u8[2,2,18]:(0,60), \"q4_0\"")
        .sample("u8[2,144]:(0,60), \"q4_k\"")
        .sample("u8[210]:(0,60), \"q6_k\"");
    ops.add("quantize_blocks(x: float, form: \"q8_0\"|\"q4_0\")")
        .doc("Rows of numbers in blocks of 32 with a scale each, of 8 or 4 bits a number, as GGUF files hold weights.")
        .example("quantize_blocks(ones({2, 64}), \"q8_0\").shape[2]", "68")
        .infer(infer_quantize)
        .method(false)
        .no_grad("rounding is constant almost everywhere")
        .cut("...!n->...!b")
        .sample("f32[3,64], \"q8_0\"")
        .sample("f32[2,2,32], \"q4_0\"");
    ops.add(
           "block_dense(input/x: float, weight: tensor, form: \"q8_0\"|\"q4_0\"|\"q4_k\"|\"q6_k\", bias: float? = nil)")
        .doc(
            "Fully connected layer whose weight (outputs, inputs) is in blocks and stays so: input times the transpose "
            "of the weight's numbers, plus bias. In float32 rows of the input may be rounded to 8 bits in blocks of 32 "
            "on the way where the product is large.")
        .example("block_dense(ones({32}), quantize_blocks(full({2, 32}, 127.0), \"q8_0\"), \"q8_0\")",
                 "tensor{4064.0, 4064.0}")
        .infer(infer_block_dense)
        .expand(expand_block_dense)
        .grad(grad_block_dense)
        .wide()
        .method(false)
        .cut("...!i,o!b,o->...o")
        .sample("f32[3,64], u8[5,68]:(0,60), \"q8_0\", f32[5]")
        .sample("f32[2,2,32], u8[3,18]:(0,60), \"q4_0\"")
        .sample("f32[256], u8[2,144]:(0,60), \"q4_k\"")
        .sample("f32[1,256], u8[2,210]:(0,60), \"q6_k\"");
    ops.add("cache_write(cache: tensor, value: tensor, position: index)")
        .doc(
            "Writes value (batch, heads, length, size) into the places of a cache (batch, heads, places, size) from "
            "position on, in place; every name of the cache sees it.")
        .example("cache_write(zeros({1, 1, 2, 1}), ones({1, 1, 1, 1}), tensor{1})", "tensor{{{{0.0}, {1.0}}}}")
        .infer(infer_cache_write)
        .view(write_places)
        .strided()
        .effect(Effect::state)
        .gives_operand()
        .method(false)
        .no_grad("it changes a cache, which is not trained")
        .cut("ab!td,ab!sd,-->ab!td")
        .sample("f32[1,2,6,3], f32[1,2,2,3], i64[1]:(0,4)")
        .sample("f32[2,1,4,2], f32[2,1,1,2], i64[]:(0,3)");
    ops.add("cache_attention(query: float, key: float, value: float, position: index, scale: number = 1.0)")
        .doc(
            "Attention of (batch, heads, length, size) queries from a position on to caches of keys and values: "
            "softmax(query key^T scale) value, where query i sees the places up to position + i. Keys and values may "
            "have fewer heads, each for a group of the query's.")
        .example(
            "cache_attention(zeros({1, 1, 1, 1}), zeros({1, 1, 3, 1}), tensor{{{{1.0}, {3.0}, {9.0}}}}, tensor{1})",
            "tensor{{{{2.0}}}}")
        .infer([](const Call& c) -> Types {
            const CacheCall a{c};
            a.check();
            return {{c.dtype, a.result()}};
        })
        .expand(expand_cache_attention)
        .refuse_grad("caches are for writing texts; a network is trained without them")
        .method(false)
        .raises()
        .cut("@cache_attention")
        .sample("f32[1,2,1,4], f32[1,2,7,4], f32[1,2,7,3], i64[]:(2,6), 0.5")
        .sample("f32[2,4,3,4], f32[2,2,7,4], f32[2,2,7,4], i64[1]:(0,4), 0.7");
}

}  // namespace lunaria
