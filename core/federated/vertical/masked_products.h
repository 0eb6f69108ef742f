// Products of one party's matrix with another party's vectors, of which neither sees the other's numbers, in the ring
// of integers modulo 2^64: additive shares with multiplication triples from a dealer (Beaver 1991).
//
// The dealer gives the owner of the matrix M a seed, from which both draw a matrix B of random numbers, and the owner
// of the vector v another, from which both draw a vector a and a vector s for each product; it sends the owner B·a - s.
// The owner tells M - B once for all products, the other side v - a for each, which are random numbers without the
// seeds. Then M·v = [(M - B)·v + s] + [B·(v - a) + (B·a - s)]: one share on each side, and the sum of both is exact.
#pragma once

#include <cstdint>
#include <string_view>

#include "core/federated/primitives.h"
#include "core/tensor/tensor.h"

namespace lunaria::federated {

// The random numbers that a seed gives to a purpose, such as "vector", and a number: count 64-bit integers.
Tensor drawn_integers(const Secret& seed, std::string_view purpose, int64_t number, int64_t count);

// x - the matrix of the seed. x: (rows, n), int64.
Tensor masked_matrix(const Tensor& x, const Secret& seed);
// The matrix of the seed, which has so many rows, times each of the vectors v (k, n): (k, rows). It is drawn row by row
// and never there as a whole.
Tensor mask_product(const Secret& seed, int64_t rows, const Tensor& v);
// The products of a matrix (rows, n) with vectors (k, n), modulo 2^64: (k, rows).
Tensor ring_product(const Tensor& x, const Tensor& v);
// The same with a matrix of zeros and ones, given by the column `of[f, i]` of each row i in the group of columns f:
// sums of v by them. of: (groups, n) of integers below width; v: (k, n). Gives (k, groups · width).
Tensor ring_histogram(const Tensor& of, int64_t width, const Tensor& v);

Tensor ring_sum(const Tensor& a, const Tensor& b);
Tensor ring_difference(const Tensor& a, const Tensor& b);

// Real numbers as integers: x · 2^bits, rounded to the nearest, ties to even. Throws a value_error where one is not
// finite or has no room.
Tensor to_fixed(const Tensor& x, int bits);
// Back, as float64.
Tensor from_fixed(const Tensor& x, int bits);

}  // namespace lunaria::federated
