#include "core/federated/compression.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/base/error.h"
#include "core/base/interrupt.h"
#include "core/io/proto_fields.h"
#include "core/random/random.h"

namespace lunaria::federated {

namespace {

constexpr int64_t kMostElements = int64_t{1} << 31;

template <class T>
void check_finite(std::string_view where, std::span<const T> values) {
    for (size_t i = 0; i < values.size(); ++i)
        if (!std::isfinite(values[i]))
            throw argument_error(where, str("element ", i, " is ", values[i], "; only numbers can be compressed"));
}

double scale_of(double low, double high, int bits) {
    return (high - low) / static_cast<double>((int64_t{1} << bits) - 1);
}

int32_t quantum(double x, double low, double scale, int bits) {
    const auto least = -static_cast<double>(int64_t{1} << (bits - 1));
    if (!(scale > 0)) return static_cast<int32_t>(least);
    return static_cast<int32_t>(std::clamp(std::floor((x - low) / scale + 0.5) + least, least, -least - 1));
}

double number(int32_t q, double low, double scale, int bits) {
    return static_cast<double>(q + (int64_t{1} << (bits - 1))) * scale + low;
}

}  // namespace

double Quantised::scale() const { return scale_of(low, high, bits); }
double Quantised::value(size_t i) const { return number(values[i], low, scale(), bits); }

template <class T>
Quantised quantised(std::string_view where, std::span<const T> values, int bits) {
    if (bits < 1 || bits > 16) throw argument_error(where, str("bits must be from 1 to 16, got ", bits));
    check_finite(where, values);
    Quantised result;
    result.bits = bits;
    if (values.empty()) return result;
    const auto [low, high] = std::ranges::minmax(values);
    result.low = low;
    result.high = high;
    const double scale = result.scale();
    result.values.reserve(values.size());
    for (const T x : values) result.values.push_back(quantum(x, result.low, scale, bits));
    return result;
}
template Quantised quantised(std::string_view, std::span<const float>, int);
template Quantised quantised(std::string_view, std::span<const double>, int);

std::string packed_bits(std::span<const int32_t> values, int bits) {
    std::string bytes;
    bytes.reserve((values.size() * static_cast<size_t>(bits) + 7) / 8);
    uint64_t waiting = 0;
    int count = 0;
    for (const int32_t value : values) {
        waiting = waiting << bits | (static_cast<uint32_t>(value) & ((uint64_t{1} << bits) - 1));
        for (count += bits; count >= 8; count -= 8) bytes += static_cast<char>(waiting >> (count - 8));
    }
    if (count > 0) bytes += static_cast<char>(waiting << (8 - count));
    return bytes;
}

std::vector<int32_t> unpacked_bits(std::string_view where, std::string_view bytes, int bits, size_t count) {
    if (bits < 1 || bits > 32) throw argument_error(where, str("bits must be from 1 to 32, got ", bits));
    if (bytes.size() > (uint64_t{1} << 40) || count > bytes.size() * 8 ||
        bytes.size() != (count * static_cast<size_t>(bits) + 7) / 8)
        throw argument_error(where, str(count, " numbers of ", bits, " bits do not have ", bytes.size(), " bytes"));
    std::vector<int32_t> values(count);
    uint64_t waiting = 0;
    int held = 0;
    size_t at = 0;
    for (int32_t& value : values) {
        for (; held < bits; held += 8) waiting = waiting << 8 | static_cast<unsigned char>(bytes[at++]);
        held -= bits;
        value = static_cast<int32_t>(static_cast<uint32_t>(waiting >> held) << (32 - bits)) >> (32 - bits);
    }
    return values;
}

std::vector<int64_t> seeded_places(int64_t size, int64_t kept, uint64_t seed) {
    std::vector<int64_t> places;
    places.reserve(static_cast<size_t>(kept));
    constexpr uint64_t kPurpose = 0x73706172;  // no other use of a seed draws these numbers
    for (int64_t i = 0; i < size && static_cast<int64_t>(places.size()) < kept; ++i) {
        if (i % kElementsBetweenLooks == 0) poll_interrupt();
        const std::array<uint32_t, 4> words = philox(seed, static_cast<uint64_t>(i) / 2, kPurpose);
        const size_t half = 2 * (static_cast<size_t>(i) % 2);
        const uint64_t drawn = static_cast<uint64_t>(words[half + 1]) << 32 | words[half];
        const auto left = static_cast<uint64_t>(size - i);
        // A number below `left`, all but as likely as each other.
        const auto below = static_cast<uint64_t>((static_cast<unsigned __int128>(drawn) * left) >> 64);
        if (below < static_cast<uint64_t>(kept) - places.size()) places.push_back(i);
    }
    return places;
}

int64_t kept_of(std::string_view where, int64_t size, double rate) {
    if (!(rate > 0 && rate <= 1)) throw argument_error(where, str("rate must be above 0 and at most 1, got ", rate));
    if (size < 1 || size > kMostElements)
        throw argument_error(where, str("a vector has from 1 to 2^31 elements, got ", size));
    return std::max(int64_t{1}, static_cast<int64_t>(std::floor(static_cast<double>(size) * rate)));
}

namespace {

// As it is sent.
struct SparseMessage {
    int64_t size = 0, kept = 0, seed = 0, bits = 0, block = 0;
    std::vector<double> bounds;  // low and high of each block
    std::string data;

    static proto::Fields<SparseMessage> fields() {
        static constexpr proto::Field<SparseMessage> kFields[] = {
            proto::field<&SparseMessage::size>(1),
            proto::field<&SparseMessage::kept>(2),
            proto::field<&SparseMessage::seed>(3),
            proto::field<&SparseMessage::bits>(4),
            proto::field<&SparseMessage::block>(5),
            proto::field<&SparseMessage::bounds>(6),
            {7, [](SparseMessage& m, const ProtoReader& p) { m.data = p.bytes(); },
             [](const SparseMessage& m, uint32_t n, ProtoWriter& w) { w.bytes(n, m.data); }}};
        return kFields;
    }
};

struct TopMessage {
    int64_t size = 0, kept = 0, bits = 0;
    double low = 0, high = 0;
    std::string places, data;

    static proto::Fields<TopMessage> fields() {
        static constexpr proto::Field<TopMessage> kFields[] = {
            proto::field<&TopMessage::size>(1),
            proto::field<&TopMessage::kept>(2),
            proto::field<&TopMessage::bits>(3),
            proto::field<&TopMessage::low>(4),
            proto::field<&TopMessage::high>(5),
            {6, [](TopMessage& m, const ProtoReader& p) { m.places = p.bytes(); },
             [](const TopMessage& m, uint32_t n, ProtoWriter& w) { w.bytes(n, m.places); }},
            {7, [](TopMessage& m, const ProtoReader& p) { m.data = p.bytes(); },
             [](const TopMessage& m, uint32_t n, ProtoWriter& w) { w.bytes(n, m.data); }}};
        return kFields;
    }
};

size_t block_size(int64_t block, size_t kept) {
    return block > 0 ? static_cast<size_t>(block) : std::max(kept, size_t{1});
}

void check_bounds(const ProtoReader& p, double low, double high) {
    if (!std::isfinite(low) || !std::isfinite(high) || low > high || !std::isfinite(high - low))
        p.fail("its bounds are none");
}

}  // namespace

template <class T>
std::string sparse_quantised(std::string_view where, const SparsePlan& plan, std::span<const T> values) {
    if (static_cast<int64_t>(values.size()) != plan.size)
        throw argument_error(where, str("the vector has ", values.size(), " elements instead of ", plan.size));
    if (plan.block < 0) throw argument_error(where, str("block must not be negative, got ", plan.block));
    const std::vector<int64_t> places = seeded_places(plan.size, kept_of(where, plan.size, plan.rate), plan.seed);
    std::vector<T> kept;
    kept.reserve(places.size());
    for (const int64_t place : places) kept.push_back(values[static_cast<size_t>(place)]);
    SparseMessage message;
    message.size = plan.size;
    message.kept = static_cast<int64_t>(kept.size());
    message.seed = static_cast<int64_t>(plan.seed);
    message.bits = plan.bits;
    message.block = plan.block;
    std::vector<int32_t> all;
    const size_t block = block_size(plan.block, kept.size());
    for (size_t at = 0; at < kept.size(); at += block) {
        const Quantised part =
            quantised<T>(where, std::span<const T>(kept).subspan(at, std::min(block, kept.size() - at)), plan.bits);
        message.bounds.insert(message.bounds.end(), {part.low, part.high});
        all.insert(all.end(), part.values.begin(), part.values.end());
    }
    message.data = packed_bits(all, plan.bits);
    return proto::message_of(message).text();
}
template std::string sparse_quantised(std::string_view, const SparsePlan&, std::span<const float>);
template std::string sparse_quantised(std::string_view, const SparsePlan&, std::span<const double>);

std::vector<double> from_sparse_quantised(const SparsePlan& plan, std::string_view payload) {
    const ProtoReader p(payload, "sparse update");
    const auto m = proto::read_message<SparseMessage>(p);
    const int64_t kept = kept_of("sparse update", plan.size, plan.rate);
    if (m.size != plan.size || m.kept != kept || m.seed != static_cast<int64_t>(plan.seed) || m.bits != plan.bits ||
        m.block != plan.block)
        p.fail(str("it has ", m.kept, " of ", m.size, " elements with ", m.bits, " bits, seed ", m.seed, ", blocks of ",
                   m.block, " instead of ", kept, " of ", plan.size, " with ", plan.bits, ", seed ",
                   static_cast<int64_t>(plan.seed), ", blocks of ", plan.block));
    const auto count = static_cast<size_t>(kept);
    const size_t block = block_size(m.block, count);
    if (m.bounds.size() != 2 * ((count + block - 1) / block))
        p.fail(str("it has ", m.bounds.size(), " bounds of blocks"));
    for (size_t i = 0; i < m.bounds.size(); i += 2) check_bounds(p, m.bounds[i], m.bounds[i + 1]);
    if (m.data.size() != (count * static_cast<size_t>(m.bits) + 7) / 8)
        p.fail(str("it has ", m.data.size(), " bytes of elements"));
    const std::vector<int32_t> values = unpacked_bits("sparse update", m.data, plan.bits, count);
    const std::vector<int64_t> places = seeded_places(plan.size, kept, plan.seed);
    std::vector<double> result(static_cast<size_t>(plan.size), 0.0);
    for (size_t i = 0; i < count; ++i) {
        const double low = m.bounds[2 * (i / block)], high = m.bounds[2 * (i / block) + 1];
        result[static_cast<size_t>(places[i])] = number(values[i], low, scale_of(low, high, plan.bits), plan.bits);
    }
    return result;
}

template <class T>
std::vector<int64_t> largest_places(std::string_view where, std::span<const T> values, int64_t kept) {
    if (kept < 1 || kept > static_cast<int64_t>(values.size()))
        throw argument_error(where, str("of ", values.size(), " elements ", kept, " cannot be kept"));
    check_finite(where, values);
    std::vector<int64_t> places(values.size());
    std::iota(places.begin(), places.end(), int64_t{0});
    const auto is_before = [&](int64_t a, int64_t b) {
        const T x = std::fabs(values[static_cast<size_t>(a)]), y = std::fabs(values[static_cast<size_t>(b)]);
        return x > y || (x == y && a < b);
    };
    std::nth_element(places.begin(), places.begin() + (kept - 1), places.end(), is_before);
    places.resize(static_cast<size_t>(kept));
    std::ranges::sort(places);
    return places;
}
template std::vector<int64_t> largest_places(std::string_view, std::span<const float>, int64_t);
template std::vector<int64_t> largest_places(std::string_view, std::span<const double>, int64_t);

template <class T>
std::string top_k(std::string_view where, std::span<const T> values, int64_t kept, int bits) {
    if (bits < 0 || bits > 16)
        throw argument_error(where, str("bits must be 0 for float32, or from 1 to 16, got ", bits));
    const std::vector<int64_t> places = largest_places(where, values, kept);
    std::vector<T> chosen;
    for (const int64_t place : places) chosen.push_back(values[static_cast<size_t>(place)]);
    TopMessage message;
    message.size = static_cast<int64_t>(values.size());
    message.kept = kept;
    message.bits = bits;
    message.places = written_places(places);
    if (bits > 0) {
        const Quantised part = quantised<T>(where, chosen, bits);
        message.low = part.low;
        message.high = part.high;
        message.data = packed_bits(part.values, bits);
    } else {
        for (const T x : chosen) {
            const auto single = static_cast<float>(x);
            message.data.append(reinterpret_cast<const char*>(&single), sizeof single);
        }
    }
    return proto::message_of(message).text();
}
template std::string top_k(std::string_view, std::span<const float>, int64_t, int);
template std::string top_k(std::string_view, std::span<const double>, int64_t, int);

std::vector<double> from_top_k(int64_t size, int64_t most_kept, std::string_view payload) {
    const ProtoReader p(payload, "top-k update");
    const auto m = proto::read_message<TopMessage>(p);
    if (m.size != size || m.kept < 1 || m.kept > std::min(size, most_kept))
        p.fail(str("it has ", m.kept, " of ", m.size, " elements; at most ", most_kept, " of ", size, " are expected"));
    if (m.bits < 0 || m.bits > 16) p.fail(str("its elements have ", m.bits, " bits"));
    const auto count = static_cast<size_t>(m.kept);
    const std::vector<int64_t> places = read_places("top-k update", m.places, count, size);
    std::vector<double> result(static_cast<size_t>(size), 0.0);
    if (m.bits == 0) {
        if (m.data.size() != 4 * count) p.fail(str("it has ", m.data.size(), " bytes of elements"));
        for (size_t i = 0; i < count; ++i) {
            float single = 0;
            std::copy_n(m.data.data() + 4 * i, 4, reinterpret_cast<char*>(&single));
            if (!std::isfinite(single)) p.fail(str("element ", i, " is no number"));
            result[static_cast<size_t>(places[i])] = single;
        }
        return result;
    }
    check_bounds(p, m.low, m.high);
    const int bits = static_cast<int>(m.bits);
    if (m.data.size() != (count * static_cast<size_t>(bits) + 7) / 8)
        p.fail(str("it has ", m.data.size(), " bytes of elements"));
    const std::vector<int32_t> values = unpacked_bits("top-k update", m.data, bits, count);
    const double scale = scale_of(m.low, m.high, bits);
    for (size_t i = 0; i < count; ++i) result[static_cast<size_t>(places[i])] = number(values[i], m.low, scale, bits);
    return result;
}

void SketchPlan::check(std::string_view where) const {
    if (rows < 1 || rows > 101 || rows % 2 == 0)
        throw argument_error(where, str("rows must be odd, from 1 to 101, got ", rows));
    if (columns < 1 || columns > kMostElements)
        throw argument_error(where, str("columns must be from 1 to 2^31, got ", columns));
}

namespace {

struct Cell {
    size_t at;
    double sign;
};
Cell cell_of(const SketchPlan& plan, int64_t row, size_t element) {
    const std::array<uint32_t, 4> words = philox(plan.seed, element, 0x736B0000 + static_cast<uint64_t>(row));
    const auto column =
        static_cast<size_t>((static_cast<uint64_t>(words[0]) * static_cast<uint64_t>(plan.columns)) >> 32);
    return {static_cast<size_t>(row * plan.columns) + column, words[1] & 1 ? 1.0 : -1.0};
}

}  // namespace

template <class T>
std::vector<double> sketched(std::string_view where, const SketchPlan& plan, std::span<const T> values) {
    plan.check(where);
    check_finite(where, values);
    std::vector<double> sketch(static_cast<size_t>(plan.rows * plan.columns), 0.0);
    for (int64_t row = 0; row < plan.rows; ++row)
        for_elements(static_cast<int64_t>(values.size()), [&](int64_t i) {
            const Cell cell = cell_of(plan, row, static_cast<size_t>(i));
            sketch[cell.at] += cell.sign * static_cast<double>(values[static_cast<size_t>(i)]);
        });
    return sketch;
}
template std::vector<double> sketched(std::string_view, const SketchPlan&, std::span<const float>);
template std::vector<double> sketched(std::string_view, const SketchPlan&, std::span<const double>);

std::vector<double> estimates(std::string_view where, const SketchPlan& plan, std::span<const double> sketch,
                              int64_t size) {
    plan.check(where);
    if (static_cast<int64_t>(sketch.size()) != plan.rows * plan.columns)
        throw argument_error(
            where, str("the sketch has ", sketch.size(), " cells instead of ", plan.rows, " rows of ", plan.columns));
    if (size < 0 || size > kMostElements)
        throw argument_error(where, str("a vector has at most 2^31 elements, got ", size));
    std::vector<double> result(static_cast<size_t>(size)), found(static_cast<size_t>(plan.rows));
    for_elements(size, [&](int64_t i) {
        for (int64_t row = 0; row < plan.rows; ++row) {
            const Cell cell = cell_of(plan, row, static_cast<size_t>(i));
            found[static_cast<size_t>(row)] = cell.sign * sketch[cell.at];
        }
        const auto middle = found.begin() + plan.rows / 2;
        std::nth_element(found.begin(), middle, found.end());
        result[static_cast<size_t>(i)] = *middle;
    });
    return result;
}

std::string written_places(std::span<const int64_t> places) {
    std::string bytes;
    int64_t last = -1;
    for (const int64_t place : places) {
        auto step = static_cast<uint64_t>(place - last - 1);
        for (; step >= 128; step >>= 7) bytes += static_cast<char>(step | 128);
        bytes += static_cast<char>(step);
        last = place;
    }
    return bytes;
}

std::vector<int64_t> read_places(std::string_view what, std::string_view bytes, size_t count, int64_t size) {
    const auto fail = [&] {
        throw file_error(what, str("corrupt: it has no ", count, " ascending places below ", size));
    };
    if (count > bytes.size()) fail();
    std::vector<int64_t> places;
    places.reserve(count);
    int64_t last = -1;
    size_t at = 0;
    while (places.size() < count) {
        uint64_t step = 0;
        for (int shift = 0;; shift += 7) {
            if (at == bytes.size() || shift > 42) fail();
            const auto byte = static_cast<unsigned char>(bytes[at++]);
            step |= static_cast<uint64_t>(byte & 127) << shift;
            if (byte < 128) break;
        }
        if (step >= static_cast<uint64_t>(size) || last + 1 + static_cast<int64_t>(step) >= size) fail();
        last += 1 + static_cast<int64_t>(step);
        places.push_back(last);
    }
    if (at != bytes.size()) fail();
    return places;
}

}  // namespace lunaria::federated
