// Vectors in fewer bytes: min-max quantisation, packed bits, places by a common seed, the largest elements, sketches.
// What a client sends (payloads of messages.h) is checked against what the server expects before any of it is used.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lunaria::federated {

// scale = (high - low) / (2^bits - 1), q = floor((x - low) / scale + 1/2) - 2^(bits - 1); x is about (q + 2^(bits - 1))
// scale + low.
struct Quantised {
    int bits = 8;
    double low = 0, high = 0;
    std::vector<int32_t> values;

    double scale() const;
    double value(size_t i) const;
};
// bits: 1 to 16. NaN and infinity are argument_errors of `where`.
template <class T>
Quantised quantised(std::string_view where, std::span<const T> values, int bits);

// Two's complement of so many bits each (1 to 32), the most significant bit first, one after the other; the last byte
// is filled up with zeros.
std::string packed_bits(std::span<const int32_t> values, int bits);
std::vector<int32_t> unpacked_bits(std::string_view where, std::string_view bytes, int bits, size_t count);

// `kept` of the places 0 ... size - 1 in ascending order, every such set as likely as any other: the same for all that
// have the seed (Philox by position, Knuth's algorithm S).
std::vector<int64_t> seeded_places(int64_t size, int64_t kept, uint64_t seed);
// floor(size · rate), at least 1.
int64_t kept_of(std::string_view where, int64_t size, double rate);

// DIFF_SPARSE_QUANT: the elements at seeded places, quantised. What both sides know before:
struct SparsePlan {
    int64_t size = 0;
    double rate = 0.4;
    uint64_t seed = 0;
    int bits = 8;
    int64_t block = 0;  // so many kept elements have a range of their own; 0: all have one
};
template <class T>
std::string sparse_quantised(std::string_view where, const SparsePlan& plan, std::span<const T> values);
// The vector that it stands for: zeros elsewhere. Throws a file_error where the payload is another plan's, or none.
std::vector<double> from_sparse_quantised(const SparsePlan& plan, std::string_view payload);

// The `kept` elements of the greatest absolute values, of equal ones the first; bits: 0 for float32, else quantised.
template <class T>
std::vector<int64_t> largest_places(std::string_view where, std::span<const T> values, int64_t kept);
template <class T>
std::string top_k(std::string_view where, std::span<const T> values, int64_t kept, int bits);
std::vector<double> from_top_k(int64_t size, int64_t most_kept, std::string_view payload);

// A sum of many elements in few cells, from which the large ones are estimated (Charikar, Chen and Farach-Colton 2002):
// each row adds every element, with a sign by chance, to one of its columns. Sketches of sums are sums of sketches.
struct SketchPlan {
    int64_t rows = 5, columns = 1000;
    uint64_t seed = 0;
    void check(std::string_view where) const;
};
template <class T>
std::vector<double> sketched(std::string_view where, const SketchPlan& plan, std::span<const T> values);
// The median of the rows for each of `size` elements.
std::vector<double> estimates(std::string_view where, const SketchPlan& plan, std::span<const double> sketch,
                              int64_t size);

// Ascending places as differences, seven bits a byte.
std::string written_places(std::span<const int64_t> places);
// Throws a file_error of `what` where they are not `count` places below `size` in ascending order.
std::vector<int64_t> read_places(std::string_view what, std::string_view bytes, size_t count, int64_t size);

}  // namespace lunaria::federated
