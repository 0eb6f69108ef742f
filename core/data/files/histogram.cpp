#include "core/data/files/histogram.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include "core/io/protobuf.h"

namespace lunaria {

namespace {

std::string packed(const std::vector<double>& list) {
    std::string bytes;
    bytes.reserve(8 * list.size());
    for (const double value : list) {
        const auto bits = std::bit_cast<uint64_t>(value);
        for (int shift = 0; shift < 64; shift += 8) bytes.push_back(static_cast<char>(bits >> shift));
    }
    return bytes;
}

template <class T>
Shown::Histogram counted(std::span<const T> values, int64_t bins) {
    Shown::Histogram h;
    T least = std::numeric_limits<T>::infinity(), most = -least;
    bool all_finite = true;
    for (const T value : values) {
        all_finite &= std::isfinite(value);
        least = std::min(least, value);
        most = std::max(most, value);
    }
    if (!all_finite) {
        least = std::numeric_limits<T>::infinity();
        most = -least;
        for (const T value : values) {
            if (std::isnan(value)) ++h.nan;
            if (std::isinf(value)) ++(value > 0 ? h.up : h.down);
            if (!std::isfinite(value)) continue;
            least = std::min(least, value);
            most = std::max(most, value);
        }
    }
    h.count = static_cast<double>(values.size()) - h.nan - h.up - h.down;
    if (h.count == 0) {
        h.limits = h.counts = {0.0};
        return h;
    }
    h.least = static_cast<double>(least);
    h.most = static_cast<double>(most);
    // Halves, since the difference of two finite values may overflow.
    const double width = 2 * ((h.most / 2 - h.least / 2) / static_cast<double>(bins));
    const double scale = 2 / width;
    const bool is_one = !(width > 0) || !std::isfinite(scale);
    // Sums and counts in several lanes: one after the other, each addition would wait for the one before.
    constexpr size_t kLanes = 4;
    const size_t bin_count = is_one ? 1 : static_cast<size_t>(bins);
    std::vector<int64_t> counts(kLanes * bin_count);
    std::array<double, kLanes> sums{}, squares{};
    for (size_t i = 0; i < values.size(); ++i) {
        if (!all_finite && !std::isfinite(values[i])) continue;
        const auto value = static_cast<double>(values[i]);
        const size_t lane = i % kLanes;
        sums[lane] += value;
        squares[lane] += value * value;
        // Rounding may place the most beyond the last bin.
        const auto bin = is_one ? 0 : static_cast<size_t>((value / 2 - h.least / 2) * scale);
        ++counts[lane * bin_count + std::min(bin, bin_count - 1)];
    }
    for (size_t lane = 0; lane < kLanes; ++lane) {
        h.sum += sums[lane];
        h.squares += squares[lane];
        for (size_t i = 0; lane > 0 && i < bin_count; ++i) counts[i] += counts[lane * bin_count + i];
    }
    counts.resize(bin_count);
    for (size_t i = 0; i < counts.size(); ++i) {
        h.counts.push_back(static_cast<double>(counts[i]));
        h.limits.push_back(i + 1 == counts.size() ? h.most : h.least + width * static_cast<double>(i + 1));
    }
    return h;
}

}  // namespace

Shown::Histogram histogram_of(const Tensor& x, int64_t bins) {
    const auto size = static_cast<size_t>(x.size());
    if (x.dtype() == DType::f64) return counted(std::span<const double>(x.data<double>(), size), bins);
    return counted(std::span<const float>(x.data<float>(), size), bins);
}

std::vector<std::string> histogram_values(std::string_view tag, const Shown::Histogram& h) {
    ProtoWriter first, second, first_value, second_value;
    first.float64(1, h.least).float64(2, h.most).float64(3, h.count).float64(4, h.sum).float64(5, h.squares);
    first.bytes(6, packed(h.limits)).bytes(7, packed(h.counts));
    double left = h.least;
    for (size_t i = 0; i < h.limits.size(); ++i) {
        ProtoWriter bin;
        bin.float64(1, left).float64(2, h.limits[i] - left).integer(3, static_cast<int64_t>(h.counts[i]));
        second.message(1, bin);
        left = h.limits[i];
    }
    second.integer(2, static_cast<int64_t>(h.nan)).integer(3, static_cast<int64_t>(h.up));
    second.integer(4, static_cast<int64_t>(h.down)).float64(5, h.most).float64(6, h.least).float64(7, h.sum);
    second.integer(8, static_cast<int64_t>(h.count + h.nan + h.up + h.down));
    first_value.bytes(1, tag).message(5, first);
    second_value.bytes(1, tag).message(9, second);
    return {first_value.text(), second_value.text()};
}

}  // namespace lunaria
