#include "core/insight/substructures.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <string>
#include <unordered_map>

#include "core/insight/finder.h"

namespace lunaria::insight {

namespace {

// Patterns with one text are the same structure, in the order of `nodes`.
std::string structure_of(const OrderedGraph& graph, std::span<const int32_t> nodes,
                         std::unordered_map<int32_t, int32_t>& place) {
    place.clear();
    for (const int32_t v : nodes) place.emplace(v, static_cast<int32_t>(place.size()));
    std::string text;
    const auto add = [&](int32_t n) { text.append(reinterpret_cast<const char*>(&n), sizeof n); };
    for (const int32_t v : nodes) {
        add(graph.label[v]);
        for (const Edge& e : graph.inputs(v))
            if (const auto source = place.find(e.node); source != place.end()) {
                add(source->second);
                add(e.code);
            }
        add(-1);
    }
    return text;
}

// Patterns of equal structure, found in different places.
struct Merged {
    std::string structure;
    std::vector<std::vector<int32_t>> instances;  // nodes of the ordered graph
    std::vector<size_t> parts;                    // of the list of chosen patterns
};

// The instances with their nodes in the order of a graph of their own, by which equal patterns are found to be equal.
std::vector<Merged> merged(const OrderedGraph& graph, const std::vector<Chosen>& chosen) {
    std::vector<Merged> result;
    std::unordered_map<std::string, size_t> known;
    std::unordered_map<int32_t, int32_t> place;
    for (size_t i = 0; i < chosen.size(); ++i) {
        const Pattern& pattern = chosen[i].pattern;
        const OrderedGraph part = ordered_part(graph, pattern.instance(0));
        std::vector<int32_t> nodes(pattern.size);
        for (int32_t k = 0; k < pattern.count; ++k) {
            for (int32_t p = 0; p < pattern.size; ++p) nodes[p] = pattern.instance(k)[part.origin[p]];
            const std::string structure = structure_of(graph, nodes, place);
            const auto [found, is_new] = known.try_emplace(structure, result.size());
            if (is_new) result.push_back({structure, {}, {}});
            Merged& m = result[found->second];
            m.instances.push_back(nodes);
            if (m.parts.empty() || m.parts.back() != i) m.parts.push_back(i);
        }
    }
    for (Merged& m : result)
        std::ranges::sort(m.instances, {}, [](const auto& nodes) { return std::ranges::min(nodes); });
    std::erase_if(result, [](const Merged& m) { return m.instances.size() < 2; });
    return result;
}

}  // namespace

std::vector<Substructure> find_substructures(const OperatorGraph& graph, Equality equality) {
    const OrderedGraph ordered = ordered_graph(graph, equality);
    const std::vector<Chosen> chosen = Finder(ordered).run();
    std::vector<Merged> found = merged(ordered, chosen);
    const auto gain = [](const Merged& m) {
        return (static_cast<int64_t>(m.instances.size()) - 1) * (static_cast<int64_t>(m.instances[0].size()) - 1);
    };
    std::sort(found.begin(), found.end(), [&](const Merged& a, const Merged& b) {
        if (gain(a) != gain(b)) return gain(a) > gain(b);
        if (a.instances[0].size() != b.instances[0].size()) return a.instances[0].size() > b.instances[0].size();
        return a.structure < b.structure;
    });
    std::vector<int32_t> key(chosen.size(), -1);
    for (size_t k = 0; k < found.size(); ++k)
        for (const size_t part : found[k].parts) key[part] = static_cast<int32_t>(k);
    std::vector<Substructure> result(found.size());
    std::unordered_map<int32_t, int32_t> place;
    for (size_t k = 0; k < found.size(); ++k) {
        const auto& first = found[k].instances[0];
        for (size_t p = 0; p < first.size(); ++p) place[first[p]] = static_cast<int32_t>(p);
        for (size_t p = 0; p < first.size(); ++p)
            for (const Edge& e : ordered.inputs(first[p]))
                if (const auto source = place.find(e.node); source != place.end())
                    result[k].edges.emplace_back(source->second, static_cast<int32_t>(p));
        auto& edges = result[k].edges;
        std::sort(edges.begin(), edges.end());
        edges.erase(std::unique(edges.begin(), edges.end()), edges.end());
        place.clear();
        for (auto& nodes : found[k].instances) {
            for (int32_t& v : nodes) v = ordered.origin[v];
            result[k].instances.push_back(std::move(nodes));
        }
    }
    for (size_t i = 0; i < chosen.size(); ++i) {
        const int32_t parent = chosen[i].parent;
        if (parent < 0 || key[i] < 0 || key[parent] < 0) continue;
        auto& inside = result[key[parent]].inside;
        if (std::ranges::find(inside, key[i]) == inside.end()) inside.push_back(key[i]);
    }
    for (Substructure& s : result) std::sort(s.inside.begin(), s.inside.end());
    return result;
}

}  // namespace lunaria::insight
