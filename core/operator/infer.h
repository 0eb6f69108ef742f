// Checks that inference rules share, so that the wording of messages stays one. All throw with the operator's and the
// parameter's name and the actual shape or value.
#pragma once

#include <cmath>
#include <vector>

#include "core/operator/op.h"

namespace lunaria {

// The name of parameter i, for messages; while a composite operator is expanded, the name of the composite's parameter
// from which the argument comes.
std::string_view param_name(const Call& call, size_t i);

void expect_rank(const Call& call, size_t i, int rank);
void expect_rank_at_least(const Call& call, size_t i, int rank);
void expect_same_shape(const Call& call, size_t i, size_t j);
void expect_float(const Call& call, size_t i);
// The check of a distribution's parameter, which must be "positive", "not negative" or "a probability", and its error;
// `at`: the position of the element.
bool is_within(std::string_view range, double number);
Error parameter_error(std::string_view where, std::string_view name, std::string_view range, double number,
                      std::string_view at = "");
void expect_positive(const Call& call, size_t i, int64_t value);
void expect_not_negative(const Call& call, size_t i, int64_t value);

// A number, or those of a list; NaN for other values.
inline std::vector<double> numbers_in(const Value& v) {
    std::vector<double> list;
    if (v.is_number()) list.push_back(v.number());
    if (v.is_list())
        for (const Value& item : v.items()) list.push_back(item.is_number() ? item.number() : std::nan(""));
    return list;
}

}  // namespace lunaria
