#include "jit/graph/passes.h"

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <iterator>
#include <string_view>

#include "core/ir/printer.h"

namespace lunaria::graph {

namespace {

struct Pass {
    std::string_view name;
    bool (*run)(ir::Graph&);
};
constexpr Pass kPasses[] = {
    {"expand", expand_composites},
    {"views", simplify_views},
    {"algebra", simplify_algebra},
    {"fold", fold_constants},
    {"common", share_common_subexpressions},
    {"attention", fuse_attention},
    {"batch", batch_products},
    {"join", join_products},
    {"weights", lay_out_weights},
    {"channels", keep_channels_last},
    {"dead", remove_dead_code},
};
constexpr Pass kLast{"epilogues", fuse_epilogues};
// Rules make graphs smaller, so that a few rounds are always enough; the bound is for rules that would undo each other.
constexpr int kMostRounds = 8;

}  // namespace

void run_passes(ir::Graph& graph) {
    const char* wish = std::getenv("LUNARIA_DUMP");
    const bool dump = wish && std::string_view(wish).find("passes") != std::string_view::npos;
    if (dump) std::cerr << "before all passes:\n" << ir::print(graph) << '\n';
    auto run = [&](const Pass& pass) {
        const bool changed = pass.run(graph);
        if (changed && dump) std::cerr << "after " << pass.name << ":\n" << ir::print(graph) << '\n';
        return changed;
    };
    // A pass that found nothing to do runs again only after another pass has changed the graph.
    int version = 0;
    int done[std::size(kPasses)];
    std::fill(std::begin(done), std::end(done), -1);
    bool changed = true;
    for (int round = 0; changed && round < kMostRounds; ++round) {
        changed = false;
        for (size_t p = 0; p < std::size(kPasses); ++p) {
            if (done[p] == version) continue;
            done[p] = version;
            if (!run(kPasses[p])) continue;
            ++version;
            changed = true;
        }
    }
    run(kLast);
}

}  // namespace lunaria::graph
