// Plans with the graph that they are of, as Lua programs hold them.
#pragma once

#include <memory>

#include "core/parallel/planner.h"
#include "core/parallel/read_program.h"
#include "interpreter/workers/data_handles.h"

namespace lunaria {

inline constexpr const char* kFoundPlans = "lunaria.found_plans";

struct FoundPlans {
    std::unique_ptr<ir::Graph> graph;
    parallel::GraphProgram read;
    parallel::PlanSearch search;
};

inline const FoundPlans& found_plans_at(lua_State* L) { return handle_at<FoundPlans>(L, 1, kFoundPlans); }

// The plan whose number is argument 2.
inline const parallel::ClusterPlan& plan_numbered(lua_State* L, const FoundPlans& plans) {
    const auto number = luaL_checkinteger(L, 2);
    luaL_argcheck(L, number >= 1 && number <= static_cast<lua_Integer>(plans.search.best.size()), 2, "no such plan");
    return plans.search.best[static_cast<size_t>(number) - 1];
}

}  // namespace lunaria
