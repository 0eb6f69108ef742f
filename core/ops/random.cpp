// Operators: random numbers. Element i of a call depends on the seed, the call's counter and i alone
// (core/random/random.h).
#include <cmath>

#include "core/operator/infer.h"
#include "core/ops/families.h"
#include "core/ops/layout.h"

namespace lunaria {

namespace {

constexpr const char* kRandom = "the result is random and depends on no tensor";

Types infer_floats(const Call& c, size_t size, size_t dtype) {
    DType t = c.dtype_or(dtype, DType::f32);
    if (!is_float(t)) throw dtype_error(c.name(), str("dtype must be a float type, not ", name_of(t)));
    auto sizes = c.ints(size);
    return {{t, checked_shape(c.name(), sizes, size_of(t))}};
}

// `size` followed by the axes of the parameters' tensors: one draw for each of their elements.
Types infer_per_element(const Call& c, size_t size, size_t parameter, DType dtype) {
    auto sizes = c.ints(size);
    Shape shape = c.shape(parameter);
    sizes.insert(sizes.end(), shape.begin(), shape.end());
    return {{dtype, checked_shape(c.name(), sizes, size_of(dtype))}};
}

void expect_probability(const Call& c, size_t i) {
    if (!c.args[i].is_number()) return;
    double p = c.number(i);
    if (!(p >= 0 && p <= 1))
        throw value_error(c.name(), str(param_name(c, i), " must be a probability in the range 0 .. 1, not ", p));
}

// Parameter i, which must be "positive", "not negative" or "a probability". The numbers of a tensor are checked when
// the program runs.
Expr valid(const ExpandCall& c, size_t i, std::string_view range) {
    const Expr x = c.builder.constant(c.args[i]);
    if (!c.args[i].is_number())
        return c.call("valid_parameter", {x, range, {"name", Value(param_name(c, i))}, {"where", Value(c.name())}});
    if (!is_within(range, c.number(i))) throw parameter_error(c.name(), param_name(c, i), range, c.number(i));
    return x;
}

// Integers from `first` to `last` must be numbers of the dtype; halves hold few integers.
void expect_integers_of(const Call& c, DType t, int64_t first, int64_t last) {
    int64_t least = 0, most = 0;
    visit_dtype(t, [&](auto tag) {
        using T = typename decltype(tag)::type;
        if constexpr (std::is_same_v<T, uint64_t>) {
            most = std::numeric_limits<int64_t>::max();
        } else if constexpr (std::is_integral_v<T>) {
            least = static_cast<int64_t>(std::numeric_limits<T>::min());
            most = static_cast<int64_t>(std::numeric_limits<T>::max());
        } else {
            most = int64_t{1} << (t == DType::f16 ? 11 : t == DType::bf16 ? 8 : t == DType::f64 ? 53 : 24);
            least = -most;
        }
    });
    if (first < least || last > most)
        throw value_error(c.name(), str("the numbers ", first, " .. ", last, " do not all fit in ", name_of(t),
                                        ", which holds the integers ", least, " .. ", most));
}

void add_plain_numbers(Registry& ops) {
    ops.add("rand(size/shape: shape, dtype: dtype? = nil, seed: int? = nil)")
        .doc("Numbers from the uniform distribution over [0, 1). Calls with a seed of their own always give the same.")
        .example("shape(rand({2, 3}))", "{2, 3}")
        .infer([](const Call& c) { return infer_floats(c, 0, 1); })
        .effect(Effect::random)
        .no_grad(kRandom)
        .sample("{2,3}, seed=1")
        .sample("{7}, float64, 2")
        .sample("{300}");
    ops.add("randn(size/shape: shape, dtype: dtype? = nil, seed: int? = nil)")
        .doc("Numbers from the normal distribution with mean 0 and variance 1.")
        .example("shape(randn({2, 3}))", "{2, 3}")
        .infer([](const Call& c) { return infer_floats(c, 0, 1); })
        .effect(Effect::random)
        .no_grad(kRandom)
        .sample("{2,3}, seed=1")
        .sample("{7}, float64, 2")
        .sample("{301}");
    ops.add("standard_normal(shape/size: shape, seed: int? = nil)")
        .doc("Numbers from the normal distribution with mean 0 and variance 1.")
        .example("shape(standard_normal({2, 3}))", "{2, 3}")
        .expand([](const ExpandCall& c) {
            return c.call("randn", {c.args[0], {"seed", c.args[1]}});
        })
        .effect(Effect::random)
        .no_grad(kRandom)
        .sample("{2,3}, 1")
        .sample("{7}");
    ops.add("rand_like(input/x: tensor, seed: int? = nil, *, dtype: dtype? = nil)")
        .doc("Uniform numbers over [0, 1) in the shape and dtype of input.")
        .example("shape(rand_like(tensor{1.0, 2.0}))", "{2}")
        .expand([](const ExpandCall& c) {
            return c.call("rand", {c.shape(0), c.dtype_or(2, c.type(0).dtype), c.args[1]});
        })
        .effect(Effect::random)
        .no_grad(kRandom)
        .sample("f32[2,3]")
        .sample("f64[5], 3");
    ops.add("randn_like(input/x: tensor, seed: int? = nil, *, dtype: dtype? = nil)")
        .doc("Normal numbers in the shape and dtype of input.")
        .example("shape(randn_like(tensor{1.0, 2.0}))", "{2}")
        .expand([](const ExpandCall& c) {
            return c.call("randn", {c.shape(0), c.dtype_or(2, c.type(0).dtype), c.args[1]});
        })
        .effect(Effect::random)
        .no_grad(kRandom)
        .sample("f32[2,3]")
        .sample("f64[5], 3");
}

Expr scaled(const ExpandCall& c, const Expr& noise, size_t shift, size_t scale) {
    Expr stretched = c.call("mul", {noise, valid(c, scale, "not negative")});
    return c.call("add", {stretched, c.args[shift]});
}

// Numbers from minval to maxval, parameters 1 and 2. Rounding may take a sum to maxval, which is outside of the
// interval; it is replaced by the number before it.
Expr uniform_between(const ExpandCall& c, const Expr& unit) {
    auto limit = [&](size_t i) {
        if (c.args[i].is_number()) return c.call("full", {Shape{}, c.args[i], unit.dtype()});
        return c.has(4) ? c.in(i).cast(unit.dtype()) : c.in(i);
    };
    const Expr low = limit(1), high = limit(2);
    const Expr range =
        c.call("valid_parameter",
               {high - low, "not negative", {"name", Value("maxval - minval")}, {"where", Value(c.name())}});
    return c.call("minimum", {c.call("add", {unit * range, low}), c.call("nextafter", {high, low})});
}

void add_distributions(Registry& ops) {
    ops.add(
           "uniform(shape/size: shape, minval/low: tensor = 0, maxval/high: tensor = 1, seed: int? = nil, dtype: "
           "dtype? = "
           "nil)")
        .doc("Numbers from the uniform distribution over [minval, maxval); integers with an integer dtype.")
        .example("shape(uniform({2, 3}, -1.0, 1.0))", "{2, 3}")
        .expand([](const ExpandCall& c) -> Expr {
            DType dtype = c.dtype_or(4, DType::f32);
            if (is_integer(dtype)) {
                if (!c.args[1].is_number() || !c.args[2].is_number())
                    throw argument_error(c.name(), "with an integer dtype, minval and maxval must be numbers");
                return c.call("randint", {c.args[1].integer(), c.args[2].integer(), c.args[0], c.args[3], dtype});
            }
            return uniform_between(c, c.call("rand", {c.args[0], dtype, c.args[3]}));
        })
        .effect(Effect::random)
        .method(false)
        .sample("{2,3}, -2.0, 3.0, 1")
        .sample("{4,3}, f32[3]:(0,1), f32[3]:(1,2)");
    ops.add("normal(shape/size: shape, mean: tensor = 0, stddev/std: tensor = 1, seed: int? = nil)")
        .doc("Numbers from the normal distribution with the given mean and standard deviation.")
        .example("shape(normal({2, 3}, 1.0, 2.0))", "{2, 3}")
        .expand([](const ExpandCall& c) {
            return scaled(c, c.call("randn", {c.args[0], {"seed", c.args[3]}}), 1, 2);
        })
        .effect(Effect::random)
        .method(false)
        .sample("{2,3}, 1.5, 2.0, 1")
        .sample("{4,3}, f32[3], f32[3]:(1,2)");
    ops.add("standard_laplace(shape/size: shape, seed: int? = nil)")
        .doc("Numbers from the Laplace distribution with mean 0 and scale 1.")
        .example("shape(standard_laplace({2, 3}))", "{2, 3}")
        .infer([](const Call& c) -> Types {
            return {{DType::f32, checked_shape(c.name(), c.ints(0), 4)}};
        })
        .effect(Effect::random)
        .no_grad(kRandom)
        .sample("{2,3}, 1")
        .sample("{7}");
    ops.add("laplace(shape/size: shape, mean/loc: tensor = 0, lambda_param/scale: tensor = 1, seed: int? = nil)")
        .doc("Numbers from the Laplace distribution with the given mean and scale.")
        .example("shape(laplace({2, 3}, 0.0, 1.0))", "{2, 3}")
        .expand([](const ExpandCall& c) {
            return scaled(c, c.call("standard_laplace", {c.args[0], c.args[3]}), 1, 2);
        })
        .effect(Effect::random)
        .method(false)
        .sample("{2,3}, 0.0, 1.0, 1")
        .sample("{4,3}, f32[3], f32[3]:(1,2)");
    ops.add("random_gamma(shape/size: shape, alpha: tensor, seed: int? = nil)")
        .doc(
            "Numbers from the gamma distribution with shape parameter alpha, which must not be negative, and scale 1, "
            "shape many for each alpha.")
        .example("shape(random_gamma({2}, tensor{1.0, 2.0, 3.0}))", "{2, 3}")
        .infer([](const Call& c) { return infer_per_element(c, 0, 1, DType::f32); })
        .effect(Effect::random)
        .refuse_grad("the draws are not differentiated")
        .raises()
        .sample("{2,3}, 0.5, 1")
        .sample("{4}, f32[3]:(1,2)");
    ops.add("gamma(shape/size: shape, alpha: tensor, beta: tensor = 1, seed: int? = nil)")
        .doc("Numbers from the gamma distribution with shape parameter alpha and rate beta, which must be positive.")
        .example("shape(gamma({2, 3}, 2.0, 3.0))", "{2, 3}")
        .expand([](const ExpandCall& c) {
            Shape joint = broadcast(c.name(), c.shape(1), c.shape(2));
            Expr beta = valid(c, 2, "positive");
            Expr alpha = c.args[1].is_tensor() || c.args[1].is_node()
                             ? c.in(1)
                             : c.call("full", {Shape{}, c.args[1], DType::f32});
            Expr draws = c.call("random_gamma", {c.args[0], alpha.broadcast_to(joint), c.args[3]});
            return c.call("div", {draws, beta});
        })
        .effect(Effect::random)
        .refuse_grad("the draws are not differentiated; gamma(shape, alpha) / beta has a gradient by beta")
        .method(false)
        .sample("{2,3}, 2.0, 3.0, 1")
        .sample("{4}, f32[3]:(1,2), f32[3]:(1,2)");
    ops.add("random_poisson(shape/size: shape, rate: tensor, seed: int? = nil, dtype: dtype = \"int64\")")
        .doc("Numbers from the Poisson distribution, shape many for each rate, which must not be negative.")
        .example("shape(random_poisson({2}, tensor{1.0, 2.0, 3.0}))", "{2, 3}")
        .infer([](const Call& c) { return infer_per_element(c, 0, 1, c.args[3].dtype()); })
        .effect(Effect::random)
        .no_grad(kRandom)
        .raises()
        .sample("{2,3}, 4.0, 1")
        .sample("{4}, f32[3]:(1,2), dtype=float32")
        .sample("{40}, 33.5, 1");
    ops.add("poisson(shape/size: shape, mean/rate: tensor, seed: int? = nil)")
        .doc("Numbers from the Poisson distribution with the given mean, which must not be negative, as float32.")
        .example("shape(poisson({2, 3}, 4.0))", "{2, 3}")
        .expand([](const ExpandCall& c) {
            return c.call("random_poisson", {c.args[0], c.args[1], c.args[2], DType::f32});
        })
        .effect(Effect::random)
        .no_grad(kRandom)
        .method(false)
        .sample("{2,3}, 4.0, 1")
        .sample("{4}, f32[3]:(1,2)");
}

void add_checks(Registry& ops) {
    // A primitive, so that the numbers of a graph's operands are checked when it runs.
    ops.add(
           "valid_parameter(input/x: tensor, range: \"positive\"|\"not negative\"|\"a probability\", *, name: string = "
           "\"input\", where: string = \"valid_parameter\")")
        .doc("The parameter of a distribution as it is; an error where a number of it is not what range says.")
        .example("valid_parameter(tensor{0.5, 2.0}, \"positive\")", "tensor{0.5, 2.0}")
        .infer(same_as_first)
        .grad([](const GradRule& g) -> Grads {
            return {g.dout, {}, {}, {}};
        })
        .raises()
        .cut("...->...")
        .sample("f32[2,3]:(0.1,2), \"positive\"")
        .sample("f32[4]:(0,1), \"a probability\"");
}

void add_integers(Registry& ops) {
    ops.add("randint(low: int, high: int, size/shape: shape, seed: int? = nil, dtype: dtype? = nil)")
        .doc("Integers from low to high - 1, all equally likely.")
        .example("shape(randint(0, 10, {2, 3}))", "{2, 3}")
        .infer([](const Call& c) -> Types {
            if (c.integer(0) >= c.integer(1))
                throw value_error(c.name(),
                                  str("low (", c.integer(0), ") must be less than high (", c.integer(1), ")"));
            const DType dtype = c.dtype_or(4, DType::i64);
            expect_integers_of(c, dtype, c.integer(0), c.integer(1) - 1);
            return {{dtype, checked_shape(c.name(), c.ints(2))}};
        })
        .effect(Effect::random)
        .no_grad(kRandom)
        .sample("0, 10, {2,3}, 1")
        .sample("-5, 5, {7}, dtype=int32");
    ops.add("randint_like(input/x: tensor, low: int, high: int, seed: int? = nil, *, dtype: dtype? = nil)")
        .doc("Integers from low to high - 1 in the shape and dtype of input.")
        .example("shape(randint_like(tensor{1, 2}, 0, 10))", "{2}")
        .expand([](const ExpandCall& c) {
            return c.call("randint", {c.args[1], c.args[2], c.shape(0), c.args[3], c.dtype_or(4, c.type(0).dtype)});
        })
        .effect(Effect::random)
        .no_grad(kRandom)
        .sample("f32[2,3], 0, 10, 1")
        .sample("i64[5], -3, 3");
    ops.add("randperm(n: int, seed: int? = nil, offset: int = 0, dtype: dtype? = nil)")
        .doc("The integers 0 … n - 1 (plus offset) in random order.")
        .example("sum(randperm(4))", "tensor(6)")
        .infer([](const Call& c) -> Types {
            expect_not_negative(c, 0, c.integer(0));
            int64_t sizes[] = {c.integer(0)}, last = 0;
            const DType dtype = c.dtype_or(3, DType::i64);
            if (__builtin_add_overflow(c.integer(0) - 1, c.integer(2), &last))
                last = std::numeric_limits<int64_t>::max();
            if (sizes[0] > 0) expect_integers_of(c, dtype, c.integer(2), last);
            return {{dtype, checked_shape(c.name(), sizes)}};
        })
        .effect(Effect::random)
        .no_grad(kRandom)
        .sample("5, 1")
        .sample("7, dtype=int32");
    ops.add("shuffle(x/input: tensor, seed: int? = nil)")
        .doc("The rows (parts along axis 0) of the tensor in random order.")
        .example("shape(shuffle(zeros({2, 3})))", "{2, 3}")
        .expand([](const ExpandCall& c) {
            expect_rank_at_least(c, 0, 1);
            return c.call("gather", {c.in(0), c.call("randperm", {c.shape(0)[0], c.args[1]}), 0});
        })
        .effect(Effect::random)
        .sample("f32[5,2], 1")
        .sample("f32[7]");
    ops.add("bernoulli(input/x: tensor, p: tensor = 0.5, seed: int? = nil)")
        .doc("Ones with probability p and zeros otherwise, in the shape and dtype of input.")
        .example("bernoulli(zeros({2}), 1.0)", "tensor{1.0, 1.0}")
        .expand([](const ExpandCall& c) {
            DType dtype = c.type(0).dtype;
            Expr unit = c.call("rand", {c.shape(0), dtype == DType::f64 ? dtype : DType::f32, c.args[2]});
            return c.call("less", {unit, valid(c, 1, "a probability")}).cast(dtype);
        })
        .effect(Effect::random)
        .no_grad(kRandom)
        .sample("f32[2,3], 0.3, 1")
        .sample("f32[2,3], f32[3]:(0,1)");
}

Types infer_draws(const Call& c) {
    expect_rank_at_least(c, 0, 1);
    if (c.rank(0) > 2)
        throw shape_error(c.name(), str("input must be a vector or a matrix, not of shape ", c.shape(0)));
    if (c.shape(0).known() && c.shape(0).back() == 0)
        throw value_error(c.name(), "input is empty: there are zero classes to draw from");
    expect_positive(c, 1, c.integer(1));
    Shape shape = c.shape(0);
    std::vector<int64_t> sizes(shape.begin(), shape.end());
    sizes.back() = c.integer(1);
    return {{DType::i64, shape.known() ? checked_shape(c.name(), sizes) : Shape(sizes)}};
}

void add_choices(Registry& ops) {
    ops.add("multinomial(input/x: float, num_samples/num_sample: int, replacement: bool = true, seed: int? = nil)")
        .doc("For each row of weights num_samples class numbers, drawn in proportion to the weights.")
        .example("multinomial(tensor{0.0, 1.0}, 2)", "tensor{1, 1}")
        .infer(infer_draws)
        .effect(Effect::random)
        .no_grad("the result holds integers")
        .alias("multinomial_with_replacement")
        .raises()
        .wide()
        .sample("f32[5]:(0,1), 4, seed=1")
        .sample("f32[2,5]:(0.1,1), 3, false");
    ops.add(
           "random_categorical(logits/input: float, num_sample/num_samples: int, seed: int? = nil, dtype: dtype = "
           "\"int64\")")
        .doc("For each row of logits num_sample class numbers, drawn with the probabilities of its softmax.")
        .example("shape(random_categorical(zeros({2, 3}), 4))", "{2, 4}")
        .expand([](const ExpandCall& c) {
            expect_rank(c, 0, 2);
            Expr draws = c.call("multinomial", {c.call("softmax", {c.in(0), -1}), c.args[1], true, c.args[2]});
            return draws.cast(c.args[3].dtype());
        })
        .effect(Effect::random)
        .no_grad("the result holds integers")
        .wide()
        .sample("f32[2,5], 3, 1")
        .sample("f32[3,2], 4, dtype=int32");
    ops.add("choice_with_mask(input_x/input/x: mask, count: int = 256, seed: int? = nil) -> (index, mask)")
        .doc(
            "The coordinates of count true elements in random order, padded with zeros, and which rows are no padding.")
        .example("choice_with_mask(tensor{false, true}, 2)", "tensor{{1}, {0}}, tensor{true, false}")
        .infer([](const Call& c) -> Types {
            expect_rank_at_least(c, 0, 1);
            expect_positive(c, 1, c.integer(1));
            int64_t sizes[] = {c.integer(1), c.rank(0)};
            return {{DType::i64, checked_shape(c.name(), sizes)}, {DType::boolean, {c.integer(1)}}};
        })
        .effect(Effect::random)
        .no_grad("integers and bools")
        .raises()
        .sample("bool[3,4], 5, 1")
        .sample("bool[7], 3");
}

void add_dropout(Registry& ops) {
    // A primitive, since the mask has to be kept for the gradient and one pass makes both.
    ops.add("dropout_with_mask(input/x: tensor, p: number = 0.5, seed: int? = nil) -> (output, mask)")
        .doc("The input with elements zeroed with probability p and the others divided by 1 - p, and which were kept.")
        .example("dropout_with_mask(tensor{1.0}, 0.0)", "tensor{1.0}, tensor{true}")
        .infer([](const Call& c) -> Types {
            expect_float(c, 0);
            expect_probability(c, 1);
            return {c.type(0), {DType::boolean, c.shape(0)}};
        })
        .effect(Effect::random)
        .grad([](const GradRule& g) -> Grads {
            if (!g.dout || g.number(1) >= 1) return {{}, {}, {}};
            return {g.call("where", {g.outs[1], g.dout / (1 - g.number(1)), 0}), {}, {}};
        })
        .cut("@dropout")
        .sample("f32[2,3], 0.4, 1")
        .sample("f32[301], 0.1");
    ops.add("dropout(input/x: tensor, p: number = 0.5, training: bool = true, seed: int? = nil)")
        .doc("Zeroes elements with probability p and divides the others by 1 - p, in training; else the input itself.")
        .example("dropout(tensor{1.0, 2.0}, 0.5, false)", "tensor{1.0, 2.0}")
        .expand([](const ExpandCall& c) -> Expr {
            expect_float(c, 0);
            expect_probability(c, 1);
            if (!c.boolean(2) || c.number(1) == 0) return c.call("identity", {c.in(0)});
            return c.call("dropout_with_mask", {c.in(0), c.args[1], c.args[3]})[0];
        })
        .effect(Effect::random)
        .sample("f32[2,3], 0.4, true, 1")
        .sample("f32[5], 0.1");
}

}  // namespace

void add_random_ops(Registry& ops) {
    add_plain_numbers(ops);
    add_distributions(ops);
    add_checks(ops);
    add_integers(ops);
    add_choices(ops);
    add_dropout(ops);
}

}  // namespace lunaria
