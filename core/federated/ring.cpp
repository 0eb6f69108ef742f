#include "core/federated/ring.h"

#include <bit>
#include <cmath>
#include <cstring>

#include "core/base/error.h"

namespace lunaria::federated {

namespace {

static_assert(std::endian::native == std::endian::little, "elements are copied as they lie in memory");

// The least number of bits for numbers of an absolute value up to `most`, with a sign.
int bits_for(long double most) {
    int bits = 1;
    for (long double above = 1; above <= most && bits < 200; above *= 2) ++bits;
    return bits;
}

int needed_bits(const FixedPoint& code) {
    const long double weights =
        static_cast<long double>(code.most_weight) * static_cast<long double>(code.most_clients);
    return std::max(bits_for(weights * std::ceil(std::ldexp(static_cast<long double>(code.clip), code.fraction_bits))),
                    bits_for(weights));
}

void check_parts(std::string_view where, const FixedPoint& code) {
    if (code.ring.bits < 8 || code.ring.bits > 64 || code.ring.bits % 8 != 0)
        throw argument_error(where, str("bits must be 8, 16, 24, ... 64, got ", code.ring.bits));
    if (code.fraction_bits < 0 || code.fraction_bits > 52)
        throw argument_error(where, str("fraction_bits must be from 0 to 52, got ", code.fraction_bits));
    if (!(code.clip > 0) || !std::isfinite(code.clip))
        throw argument_error(where, str("clip must be a positive number, got ", code.clip));
    if (code.most_weight < 1 || code.most_clients < 1)
        throw argument_error(
            where, str("weight and clients must be at least 1, got ", code.most_weight, " and ", code.most_clients));
}

}  // namespace

int64_t Ring::number(uint64_t element) const {
    const int unused = 64 - bits;
    return static_cast<int64_t>(element << unused) >> unused;
}

void FixedPoint::check(std::string_view where) const {
    check_parts(where, *this);
    const int needed = needed_bits(*this);
    if (needed > ring.bits)
        throw argument_error(where, str("sums of ", most_clients, " clients of weight up to ", most_weight,
                                        " with values up to ", clip, " and ", fraction_bits, " bits of fraction need ",
                                        needed, " bits, and the ring has ", ring.bits))
            .hint("lower clip, weight or fraction_bits, or take more bits (at most 64)");
}

FixedPoint FixedPoint::smallest(std::string_view where, FixedPoint wanted) {
    wanted.ring.bits = 64;
    check_parts(where, wanted);
    wanted.ring.bits = std::min(64, (needed_bits(wanted) + 7) / 8 * 8);
    wanted.check(where);
    return wanted;
}

template <class T>
int64_t FixedPoint::encode(std::string_view where, std::span<const T> values, int64_t weight,
                           std::span<uint64_t> to) const {
    if (weight < 1 || weight > most_weight)
        throw argument_error(where, str("the weight must be from 1 to ", most_weight, ", got ", weight));
    if (to.size() != values.size() + 1) throw argument_error(where, "the vector has another size than its code");
    const double scale = std::ldexp(1.0, fraction_bits);
    const auto factor = static_cast<uint64_t>(weight);
    int64_t clipped = 0;
    for (size_t i = 0; i < values.size(); ++i) {
        double x = static_cast<double>(values[i]);
        if (!std::isfinite(x))
            throw argument_error(where, str("element ", i, " is ", x, "; only numbers can be added"));
        if (std::fabs(x) > clip) {
            if (refuses) throw argument_error(where, str("element ", i, " is ", x, ", beyond clip (", clip, ")"));
            x = std::copysign(clip, x);
            ++clipped;
        }
        // The product by a power of 2 is exact, so that this is the only rounding.
        to[i] = (static_cast<uint64_t>(std::llrint(x * scale)) * factor) & ring.mask();
    }
    to[values.size()] = factor;
    return clipped;
}
template int64_t FixedPoint::encode(std::string_view, std::span<const float>, int64_t, std::span<uint64_t>) const;
template int64_t FixedPoint::encode(std::string_view, std::span<const double>, int64_t, std::span<uint64_t>) const;

std::vector<double> FixedPoint::mean(std::string_view where, std::span<const uint64_t> sum) const {
    const int64_t weight = sum.empty() ? 0 : ring.number(sum.back());
    if (weight < 1)
        throw argument_error(where, str("the last element of a sum is the sum of the weights, got ", weight));
    std::vector<double> mean(sum.size() - 1);
    for (size_t i = 0; i < mean.size(); ++i)
        mean[i] = std::ldexp(static_cast<double>(ring.number(sum[i])) / static_cast<double>(weight), -fraction_bits);
    return mean;
}

std::string packed(Ring ring, std::span<const uint64_t> elements) {
    const auto each = static_cast<size_t>(ring.bytes());
    std::string bytes(elements.size() * each, '\0');
    char* to = bytes.data();
    for (const uint64_t element : elements) {
        std::memcpy(to, &element, each);
        to += each;
    }
    return bytes;
}

namespace {

template <size_t each>
void add_each(const char* from, uint64_t mask, std::span<uint64_t> to) {
    for (uint64_t& element : to) {
        uint64_t part = 0;
        std::memcpy(&part, from, each);
        element = (element + part) & mask;
        from += each;
    }
}

}  // namespace

void add_packed(Ring ring, std::string_view bytes, std::span<uint64_t> to) {
    constexpr void (*kAdd[])(const char*, uint64_t, std::span<uint64_t>) = {
        add_each<1>, add_each<2>, add_each<3>, add_each<4>, add_each<5>, add_each<6>, add_each<7>, add_each<8>};
    kAdd[ring.bytes() - 1](bytes.data(), ring.mask(), to);
}

}  // namespace lunaria::federated
