#include "core/insight/graph/tree.h"

#include <algorithm>
#include <unordered_map>

namespace lunaria::insight {

namespace {

// Deeper scopes are one group, with all of the rest as its name.
constexpr int32_t kDeepest = 250;

Tree by_scopes(const GraphModel& model, bool repaired) {
    Tree tree;
    tree.groups.push_back({model.name()});
    tree.group_of.assign(model.size(), 0);
    std::unordered_map<std::string, int32_t> known;  // whole scopes
    std::unordered_map<std::string, int32_t> inner;  // "parent/name"
    for (int32_t v = 0; v < model.operators(); ++v) {
        const std::string& scope = repaired ? model.scope_of(v) : model.graph().nodes[v].scope;
        if (scope.empty()) continue;
        const auto [whole, is_new] = known.try_emplace(scope, 0);
        if (is_new) {
            int32_t group = 0;
            for (size_t at = 0; at < scope.size();) {
                const bool is_deep = tree.groups[group].depth >= kDeepest;
                const size_t end = is_deep ? scope.size() : std::min(scope.find('/', at), scope.size());
                const std::string name = scope.substr(at, end - at);
                const auto [found, is_fresh] =
                    inner.try_emplace(str(group, '/', name), static_cast<int32_t>(tree.groups.size()));
                if (is_fresh) tree.groups.push_back({name, group, -1, -1, tree.groups[group].depth + 1, 0});
                group = found->second;
                at = end + 1;
            }
            whole->second = group;
        }
        tree.group_of[v] = whole->second;
    }
    return tree;
}

Tree by_parts(const GraphModel& model) {
    Tree tree;
    tree.groups.push_back({model.name()});
    tree.group_of.assign(model.size(), 0);
    const EqualParts& parts = model.parts();
    for (const size_t k : parts.outermost_first()) {
        const auto& instances = parts.found[k].instances;
        for (size_t i = 0; i < instances.size(); ++i) {
            const int32_t outer = tree.group_of[instances[i][0]];
            if (tree.groups[outer].depth >= kDeepest) continue;
            // Keys are disjoint or nested; what is not would be no tree.
            if (!std::ranges::all_of(instances[i], [&](int32_t v) { return tree.group_of[v] == outer; })) continue;
            const auto group = static_cast<int32_t>(tree.groups.size());
            tree.groups.push_back({parts.about[k].label, outer, static_cast<int32_t>(k), static_cast<int32_t>(i),
                                   tree.groups[outer].depth + 1, 0});
            for (const int32_t v : instances[i]) tree.group_of[v] = group;
        }
    }
    return tree;
}

// A group that holds one group and nothing else becomes one with it.
void shorten(const GraphModel& model, Tree& tree) {
    std::vector<int32_t> inner(tree.groups.size(), 0), direct(tree.groups.size(), 0);
    for (size_t g = 1; g < tree.groups.size(); ++g) ++inner[tree.groups[g].parent];
    for (int32_t v = 0; v < model.operators(); ++v) ++direct[tree.group_of[v]];
    std::vector<int32_t> number(tree.groups.size(), 0);
    std::vector<Tree::Group> kept{tree.groups[0]};
    for (size_t g = 1; g < tree.groups.size(); ++g) {
        Tree::Group& group = tree.groups[g];
        const int32_t parent = group.parent;
        const bool is_only = parent != 0 && inner[parent] == 1 && direct[parent] == 0;
        if (is_only) {
            number[g] = number[parent];
            kept[number[g]].name += "/" + group.name;
            continue;
        }
        number[g] = static_cast<int32_t>(kept.size());
        group.parent = number[parent];
        group.depth = kept[group.parent].depth + 1;
        kept.push_back(std::move(group));
    }
    tree.groups = std::move(kept);
    for (int32_t& g : tree.group_of) g = number[g];
}

// Groups whose operators are those of an instance of an equal part, all but a few.
void find_keys(const GraphModel& model, Tree& tree) {
    const EqualParts& parts = model.parts();
    std::vector<int32_t> inside(tree.groups.size(), 0), touched;
    for (size_t k = 0; k < parts.found.size(); ++k)
        for (size_t i = 0; i < parts.found[k].instances.size(); ++i) {
            const auto& nodes = parts.found[k].instances[i];
            touched.clear();
            for (const int32_t v : nodes)
                for (int32_t g = tree.group_of[v]; g > 0; g = tree.groups[g].parent)
                    if (inside[g]++ == 0) touched.push_back(g);
            for (const int32_t g : touched) {
                Tree::Group& group = tree.groups[g];
                if (group.key < 0 && 5 * inside[g] >= 4 * static_cast<int32_t>(nodes.size()) &&
                    5 * inside[g] >= 4 * group.operators) {
                    group.key = static_cast<int32_t>(k);
                    group.instance = static_cast<int32_t>(i);
                }
                inside[g] = 0;
            }
        }
}

// Given values stand where all of their users are.
void place_values(const GraphModel& model, Tree& tree) {
    for (int32_t v = 0; v < model.size(); ++v) {
        if (model.is_operator(v) && !(model.marks(v) & kConstant)) continue;
        int32_t group = -1;
        for (const GraphModel::Link& l : model.users(v)) {
            int32_t other = tree.group_of[l.node];
            if (group < 0) group = other;
            while (group != other) {
                int32_t& deeper = tree.groups[group].depth > tree.groups[other].depth ? group : other;
                deeper = tree.groups[deeper].parent;
            }
            if (group == 0) break;
        }
        tree.group_of[v] = std::max(group, 0);
    }
}

}  // namespace

std::vector<int32_t> Tree::path_to(int32_t group) const {
    std::vector<int32_t> path;
    for (; group > 0; group = groups[group].parent) path.push_back(group);
    std::ranges::reverse(path);
    return path;
}

Tree tree_of(const GraphModel& model, Grouping grouping) {
    Tree tree;
    if (grouping == Grouping::scopes || grouping == Grouping::file) {
        tree = by_scopes(model, grouping == Grouping::scopes);
        shorten(model, tree);
    } else if (grouping == Grouping::parts) {
        tree = by_parts(model);
    } else {
        tree.groups.push_back({model.name()});
        tree.group_of.assign(model.size(), 0);
    }
    for (int32_t v = 0; v < model.operators(); ++v) ++tree.groups[tree.group_of[v]].operators;
    for (size_t g = tree.groups.size(); g-- > 1;)
        tree.groups[tree.groups[g].parent].operators += tree.groups[g].operators;
    if (grouping == Grouping::scopes) find_keys(model, tree);
    place_values(model, tree);
    return tree;
}

}  // namespace lunaria::insight
