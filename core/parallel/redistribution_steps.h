// Steps of plans: their costs and the search for them.
#pragma once

#include <optional>
#include <vector>

#include "core/base/error.h"
#include "core/parallel/redistribution.h"

namespace lunaria::parallel {

// The seconds of a collective step in the ranks that differ along `axes`, by the bytes of a rank's piece before and
// after it.
double collective_seconds(StepKind kind, const Mesh& mesh, AxisSet axes, double before, double after,
                          const Costs& costs);

// The cheapest steps that take at most `limit` seconds, without their bytes and seconds. None: there are no such steps,
// or layouts are too many to search.
std::optional<std::vector<Step>> search_steps(const Distribution& from, const Distribution& to, const Shape& shape,
                                              int64_t width, const Costs& costs, double limit);

}  // namespace lunaria::parallel
