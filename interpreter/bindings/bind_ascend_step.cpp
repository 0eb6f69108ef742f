// The step of one rank of a plan, as rows of an outline: for lunaria/ascend/planned.lua.
#include "backends/cpu/copy.h"
#include "backends/cpu/device.h"
#include "interpreter/bindings/found_plans.h"
#include "interpreter/bindings/outlined_calls.h"
#include "interpreter/values/fields.h"
#include "jit/parallel/rank_step.h"

namespace lunaria {

namespace {

using namespace parallel;

int64_t stride_of(const MeshAxes& mesh, size_t axis) {
    int64_t stride = 1;
    for (size_t i = axis + 1; i < mesh.size(); ++i) stride *= mesh[i].size;
    return stride;
}

// A list of { name =, elements = (of the rank's piece), id = (of its gradient), weight = (its own), groups = { { axis
// =, stride =, size = } } (along which the gradient is a term of a sum) }.
void push_gradients(lua_State* L, const FoundPlans& plans, const ClusterPlan& plan,
                    const std::vector<RankGradient>& list, ascend::Outline& outline) {
    lua_createtable(L, static_cast<int>(list.size()), 0);
    for (size_t i = 0; i < list.size(); ++i) {
        const auto at = static_cast<size_t>(list[i].tensor);
        lua_createtable(L, 0, 4);
        set_text(L, "name", plans.read.program.tensors[at].name);
        set_integer(L, "elements", list[i].weight.size());
        if (list[i].value) set_integer(L, "id", outline.id_of(list[i].value));
        set_integer(L, "weight", outline.id_of(list[i].weight));
        set_integer(L, "layer", list[i].layer);
        lua_newtable(L);
        lua_Integer count = 0;
        const MeshAxes& mesh = plan.plan.mesh;
        for (size_t a = mesh.size(); a-- > 0;) {
            if (plan.plan.gradients[at][a] != kIncomplete || mesh[a].size == 1) continue;
            lua_createtable(L, 0, 3);
            set_text(L, "axis", mesh[a].name);
            set_integer(L, "stride", stride_of(mesh, a));
            set_integer(L, "size", mesh[a].size);
            lua_rawseti(L, -2, ++count);
        }
        lua_setfield(L, -2, "groups");
        lua_rawseti(L, -2, static_cast<lua_Integer>(i) + 1);
    }
}

}  // namespace

// rank_step(handle, number of the plan): what one rank of each part does for a micro-batch: a list of { forward =,
// backward =, gradients =, received =, same_as = (the number of a part that does the same, which
// has the rows), repeats = (by layers that are computed in place of others: how many they are) }
// with rows of an outline.
int rank_step(lua_State* L) {
    const FoundPlans& plans = found_plans_at(L);
    const ClusterPlan& plan = plan_numbered(L, plans);
    const MeshAxes& mesh = plan.plan.mesh;
    std::string place;
    int layer = -1;
    size_t begun = 0;
    ascend::Outline outline(cpu::device(), cpu::fast_copy, [&] { return place; });
    RankStep step(
        plans.read, plan,
        [&](const RankRequest& r) {
            outline.note_collective({r.kind, mesh[r.axis].name, stride_of(mesh, r.axis), mesh[r.axis].size, r.bytes},
                                    r.op->place, r.in, r.out);
        },
        [&](const ProgramOperator& op) {
            for (; begun < outline.calls.size(); ++begun) outline.calls[begun].layer = layer;
            place = op.place, layer = op.layer;
        });
    const auto parts = static_cast<int>(plan.parts.size());
    lua_createtable(L, parts, 0);
    for (int p = 0; p < parts; ++p) {
        lua_createtable(L, 0, 4);
        lua_rawseti(L, -2, p + 1);
    }
    size_t from = 0;
    const auto rows_of = [&](int part, const char* name) {
        lua_rawgeti(L, -1, part + 1);
        for (; begun < outline.calls.size(); ++begun) outline.calls[begun].layer = layer;
        push_calls(L, std::span(outline.calls).subspan(from));
        lua_setfield(L, -2, name);
        from = outline.calls.size();
    };
    const auto ids_of = [&](const char* name, const std::vector<Tensor>& tensors) {
        lua_createtable(L, static_cast<int>(tensors.size()), 0);
        for (size_t i = 0; i < tensors.size(); ++i) {
            lua_pushinteger(L, outline.id_of(tensors[i]));
            lua_rawseti(L, -2, static_cast<lua_Integer>(i) + 1);
        }
        lua_setfield(L, -2, name);
    };
    for (int p = 0; p < parts; ++p) {
        step.forward(p);
        rows_of(p, "forward");
        ids_of("received", step.received(p));
        lua_pop(L, 1);
    }
    for (int p = parts; plan.settings.trains && p-- > 0;) {
        step.backward(p);
        rows_of(p, "backward");
        ids_of("handed_back", step.handed_back(p));
        lua_pop(L, 1);
    }
    for (int p = 0; p < parts; ++p) {
        lua_rawgeti(L, -1, p + 1);
        push_gradients(L, plans, plan, step.gradients(p), outline);
        lua_setfield(L, -2, "gradients");
        lua_newtable(L);
        for (const auto& [number, count] : step.repeats(p)) {
            lua_pushinteger(L, count);
            lua_rawseti(L, -2, number);
        }
        lua_setfield(L, -2, "repeats");
        if (step.same_as(p) >= 0) set_integer(L, "same_as", step.same_as(p) + 1);
        lua_pop(L, 1);
    }
    return 1;
}

}  // namespace lunaria
