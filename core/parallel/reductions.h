// The rules by which the buckets of gradients that the ranks have become the one that all have.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "core/parallel/communicator.h"
#include "core/tensor/tensor.h"

namespace lunaria::parallel {

struct ExchangeOptions;

// A gradient within its bucket.
struct BucketPart {
    int64_t offset = 0, size = 0;
    Tensor* left_out = nullptr;  // what earlier messages of top_k have left out of it; of the bucket's dtype
};

class Reduction {
  public:
    virtual ~Reduction() = default;
    // Starts the message of the bucket, a dense vector, which stays as it is until finish().
    virtual void start(const Tensor& bucket) = 0;
    // Waits; the bucket then holds the result, which options.factor has not multiplied yet. All ranks finish their
    // buckets in one order.
    virtual void finish(const Tensor& bucket) = 0;
};

// The bucket's elements are f32 or f64. `name`: of the gradients in it, for messages. options has a communicator.
std::unique_ptr<Reduction> make_reduction(const ExchangeOptions& options, std::span<const BucketPart> parts,
                                          const std::string& name);

// The number of elements that a bucket needs beyond its `size` gradients, for the pieces of its ranks to be equal.
int64_t bucket_padding(const ExchangeOptions& options, int64_t size);

// The sum in pairs whose numbers differ in the highest bit first, into values[0]: of values of one size that lie one
// after the other, a power of two of them.
void sum_in_pairs(const Tensor& values, int64_t count);

// Multiplies the elements of a dense vector.
void scale(const Tensor& vector, double factor);

// a + (what b has beyond it): adasum of two vectors, into a.
void add_adasum(const Tensor& a, const Tensor& b);

}  // namespace lunaria::parallel
