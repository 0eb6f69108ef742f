#include "core/federated/shamir.h"

#include "core/base/error.h"
#include "core/io/secure_random.h"

namespace lunaria::federated {

Random system_random(std::string_view where) {
    return [where = std::string(where)](std::span<uint8_t> to) { secure_random(where, to.data(), to.size()); };
}

Secret random_scalar(const Primitives& table, const Random& random) {
    Bytes64 wide{};
    random(wide);
    Secret scalar = table.scalar(wide);
    wipe(wide.data(), wide.size());
    return scalar;
}

Secret share_place(const Primitives& table, std::string_view holder) {
    Bytes64 wide{};
    for (const char half : {'\0', '\1'}) {
        const Bytes32 digest = table.sha256(str("lunaria share place", half, holder));
        std::copy(digest.begin(), digest.end(), wide.begin() + half * 32);
    }
    return table.scalar(wide);
}

std::vector<Secret> shared_secret(const Primitives& table, const Secret& secret, size_t threshold,
                                  std::span<const Secret> places, const Random& random) {
    std::vector<Secret> coefficients = {secret};
    while (coefficients.size() < threshold) coefficients.push_back(random_scalar(table, random));
    std::vector<Secret> shares;
    shares.reserve(places.size());
    for (const Secret& place : places) {
        // Horner's rule.
        Secret value = coefficients.back();
        for (size_t i = coefficients.size() - 1; i-- > 0;)
            value = table.scalar_sum(table.scalar_product(value, place), coefficients[i]);
        shares.push_back(value);
    }
    return shares;
}

Interpolation::Interpolation(const Primitives& table, std::span<const Secret> places) : table_(table) {
    // The factor of place i is the product over the other places j of x_j / (x_j - x_i). Inverting takes as long as 250
    // products, so that all denominators are inverted as one product.
    const size_t count = places.size();
    Secret all;
    all.bytes()[0] = 1;
    for (const Secret& place : places) all = table.scalar_product(all, place);
    std::vector<Secret> denominators(count), before(count);
    Secret product;
    product.bytes()[0] = 1;
    for (size_t i = 0; i < count; ++i) {
        Secret denominator = places[i];
        for (size_t j = 0; j < count; ++j)
            if (j != i) denominator = table.scalar_product(denominator, table.scalar_difference(places[j], places[i]));
        denominators[i] = denominator;
        before[i] = product;
        product = table.scalar_product(product, denominator);
    }
    Secret inverse;
    if (!table.scalar_inverse(product, inverse))
        throw argument_error("secret shares", "two shares are of the same place");
    factors_.resize(count);
    for (size_t i = count; i-- > 0;) {
        factors_[i] = table.scalar_product(all, table.scalar_product(inverse, before[i]));
        inverse = table.scalar_product(inverse, denominators[i]);
    }
}

Secret Interpolation::at_zero(std::span<const Secret> shares) const {
    Secret sum;
    for (size_t i = 0; i < factors_.size(); ++i)
        sum = table_.scalar_sum(sum, table_.scalar_product(factors_[i], shares[i]));
    return sum;
}

}  // namespace lunaria::federated
