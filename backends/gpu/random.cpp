// GPU kernels: random numbers, the same bits as on the CPU: element i follows from words of philox(seed, block,
// counter) and i alone (core/random/random.h).
#include "core/random/random.h"

#include <array>
#include <bit>
#include <cmath>
#include <limits>

#include "backends/gpu/launcher.h"
#include "backends/gpu/operators.h"
#include "core/base/error.h"
#include "core/operator/op.h"
#include "core/random/formulas_random.h"

namespace lunaria::gpu {

namespace {

// Words are i32, whose arithmetic is that of unsigned numbers except for comparisons.
struct Machine {
    using Word = Number;
    using Float = Number;
    static Word word(uint32_t n) {
        return Writer::current().constant(DType::i32, 0, static_cast<int64_t>(static_cast<int32_t>(n)));
    }
    static Float number(double x) { return Writer::current().constant(DType::f32, x, 0); }
    static Float to_float(Word w) { return cast(w, DType::f32); }
    static Float from_bits(Word w) { return gpu::bits(w, DType::f32); }
    static Word bits(Float x) { return gpu::bits(x, DType::i32); }
    static Word shift_left(Word w, int count) { return gpu::shift_left(w, count); }
    static Word shift_right(Word w, int count) { return gpu::shift_right(w, count); }
    // Fills in copies of the sign bit from the left.
    static Word arithmetic_shift(Word w, int count) {
        const Number signs = select(negative(w), word(~(0xffffffffu >> count)), word(0));
        return gpu::shift_right(w, count) | signs;
    }
    static Number negative(Word w) { return w < 0; }
    static Number select(Number condition, Number a, Number b) { return gpu::select(condition, a, b); }
    static Float sqrt(Float x) { return gpu::sqrt(x); }
};

RandomStream stream_of(const KernelCall& c) { return {c.seed, c.counter}; }

// The halves of an i64.
struct Halves {
    Number low, high;
    explicit Halves(Number v) : low(cast(v, DType::i32)), high(cast(shift_right(v, 32), DType::i32)) {}
};

// The random stream of a kernel.
struct Stream {
    Number seed, counter;
    explicit Stream(Writer& w) : seed(w.word()), counter(w.word()) { w.exact(); }
    static void pass(Words& words, const RandomStream& stream) { words.word(stream.seed).word(stream.counter); }

    std::array<Number, 4> block(Number number, Number more = {}) const {
        const Halves key(seed), from(cast(number, DType::i64));
        const Halves count(more.at ? counter ^ more : counter);
        Number c[4] = {from.low, from.high, count.low, count.high};
        formula::philox_rounds<Machine>(c, key.low, key.high, [](Number a, uint32_t factor, Number& high, Number& low) {
            const Number wide = widen(a);
            const Halves product(wide * like(wide, int64_t{factor}));
            high = product.high;
            low = product.low;
        });
        return {c[0], c[1], c[2], c[3]};
    }
};

// `elements` returns the elements of each block of words, `per_block` of them; those past the end of the result are
// dropped.
template <class Elements_>
bool draw(Launcher& launcher, const KernelCall& c, const std::string& name, int per_block, double bound,
          Elements_ elements) {
    const Tensor& out = c.out[0];
    const DType t = out.dtype();
    Words words;
    words.tensor(out).size(out.size()).real(bound);
    Stream::pass(words, stream_of(c));
    const int64_t blocks = (out.size() + per_block - 1) / per_block;
    return launcher.run_for(str(name, ' ', name_of(t)), blocks, words, [&](Writer& w) {
        const Elements to = w.tensor(t);
        const Number all = w.size(), most = w.real(t);
        const Stream stream(w);
        w.for_each(quotient(all + (per_block - 1), per_block), [&](Number block) {
            const auto values = elements(stream.block(block), most);
            for (int k = 0; k < per_block; ++k) {
                const Number i = block * per_block + k;
                w.when(i < all, [&] { to.set(i, values[static_cast<size_t>(k)]); });
            }
        });
    });
}

bool rand(Launcher& launcher, const KernelCall& c) {
    const DType t = c.out[0].dtype();
    if (t == DType::f64)
        return draw(launcher, c, "uniform", 2, 0, [](const std::array<Number, 4>& v, Number) {
            auto unit = [](Number high, Number low) {
                const Number all = shift_left(widen(high), 32) | widen(low);
                return cast(shift_right(all, 11), DType::f64) * 0x1p-53;
            };
            return std::array{unit(v[0], v[1]), unit(v[2], v[3])};
        });
    if (t != DType::f32) return false;
    // A number that would be rounded to 1 as a half becomes the last half before 1.
    const bool half = c.has(1) && is_half(c.args[1].dtype());
    const double last = !half ? 1 : c.args[1].dtype() == DType::f16 ? 1 - 0x1p-11 : 1 - 0x1p-8;
    return draw(launcher, c, "uniform", 4, last, [](const std::array<Number, 4>& v, Number most) {
        std::array<Number, 4> units;
        for (size_t k = 0; k < 4; ++k) {
            const Number unit = cast(shift_right(v[k], 8), DType::f32) * 0x1p-24;
            units[k] = select(unit > most, most, unit);
        }
        return units;
    });
}

bool randn(Launcher& launcher, const KernelCall& c) {
    if (c.out[0].dtype() != DType::f32) return false;
    return draw(launcher, c, "normal", 4, 0, [](const std::array<Number, 4>& v, Number) {
        std::array<Number, 4> values;
        formula::normal_pair<Machine>(v[0], v[1], values[0], values[1]);
        formula::normal_pair<Machine>(v[2], v[3], values[2], values[3]);
        return values;
    });
}

// The upper 64 bits of a product of unsigned 64-bit numbers.
Number upper_product(Number a, Number b) {
    auto low = [](Number v) { return v & like(v, int64_t{0xffffffff}); };
    auto high = [](Number v) { return shift_right(v, 32); };
    const Number first = low(a) * low(b), second = high(a) * low(b), third = low(a) * high(b);
    const Number middle = high(first) + low(second) + low(third);
    return high(a) * high(b) + high(second) + high(third) + high(middle);
}

// Draws that would make some numbers more likely are rejected (Lemire 2019). So many rejections in a row do not occur.
constexpr int64_t kMostTries = 64;

bool randint(Launcher& launcher, const KernelCall& c) {
    const Tensor& out = c.out[0];
    const DType t = out.dtype();
    if (t != DType::i64 && t != DType::i32 && t != DType::f32 && t != DType::f64) return false;
    const auto low = static_cast<uint64_t>(c.args[0].integer());
    const uint64_t range = static_cast<uint64_t>(c.args[1].integer()) - low;
    if (range == 0) return false;
    Words words;
    words.tensor(out).size(out.size()).word(low).word(range).word((0 - range) % range);
    Stream::pass(words, stream_of(c));
    return launcher.run_for(str("integers ", name_of(t)), out.size(), words, [&](Writer& w) {
        const Elements to = w.tensor(t);
        const Number all = w.size(), first = w.word(), width = w.word(), least = w.word();
        const Stream stream(w);
        // Compared as unsigned numbers.
        auto turned = [](Number v) { return v ^ like(v, std::numeric_limits<int64_t>::min()); };
        w.for_each(all, [&](Number i) {
            const Variable found = w.variable(like(first, 0)), done = w.variable(w.constant(DType::boolean, 0, 0));
            w.loop(w.index(0), w.index(kMostTries), w.index(1), [&](Number attempt) {
                w.when(!done.get(), [&] {
                    const Number block = cast(quotient(attempt, 2) + 1, DType::i64);
                    const auto v = stream.block(i, shift_left(block, 40));
                    const Number second = remainder(attempt, 2) == 1;
                    const Number high = select(second, v[2], v[0]), rest = select(second, v[3], v[1]);
                    const Number bits = shift_left(widen(high), 32) | widen(rest);
                    w.when(!(turned(bits * width) < turned(least)), [&] {
                        found.set(upper_product(bits, width));
                        done.set(w.constant(DType::boolean, 1, 1));
                    });
                });
            });
            to.set(i, cast(first + found.get(), t));
        });
    });
}

bool dropout(Launcher& launcher, const KernelCall& c) {
    const Tensor &x = c.tensor(0), &out = c.out[0];
    const DType t = out.dtype();
    if (t != DType::f32 && t != DType::f64) return false;
    const double p = c.args[1].number();
    Words words;
    words.tensor(x).tensor(out).tensor(c.out[1]).size(out.size()).real(1 - p);
    words.word(static_cast<uint64_t>(std::ldexp(p, 32)));
    Stream::pass(words, stream_of(c));
    return launcher.run_for(str("dropout ", name_of(t)), (out.size() + 3) / 4, words, [&](Writer& w) {
        const Elements from = w.tensor(t), to = w.tensor(t), mask = w.tensor(DType::boolean);
        const Number all = w.size(), keep = w.real(t), limit = w.word();
        const Stream stream(w);
        w.for_each(quotient(all + 3, 4), [&](Number block) {
            const auto v = stream.block(block);
            for (int k = 0; k < 4; ++k) {
                const Number i = block * 4 + k;
                w.when(i < all, [&] {
                    const Number kept = !(widen(v[static_cast<size_t>(k)]) < limit);
                    mask.set(i, kept);
                    const Number element = from.get(i);
                    to.set(i, select(kept, element / keep, like(element, 0)));
                });
            }
        });
    });
}

}  // namespace

void add_random_kernels(KernelTable& table) {
    table.add("rand", rand);
    table.add("randn", randn);
    table.add("randint", randint);
    table.add("dropout_with_mask", dropout);
}

}  // namespace lunaria::gpu
