#include "core/insight/description.h"

#include <algorithm>
#include <map>
#include <set>

#include "core/io/json.h"

namespace lunaria::insight {

std::string common_scope(const std::vector<std::string_view>& scopes) {
    std::string prefix;
    for (;;) {
        std::map<std::string_view, size_t> next;
        for (const std::string_view scope : scopes) {
            if (scope.size() <= prefix.size() || !scope.starts_with(prefix)) continue;
            if (!prefix.empty() && scope[prefix.size()] != '/') continue;
            ++next[scope.substr(0, scope.find('/', prefix.size() + 1))];
        }
        const auto most = std::ranges::max_element(next, {}, [](const auto& entry) { return entry.second; });
        if (most == next.end() || 2 * most->second <= scopes.size()) return prefix;
        prefix = std::string(most->first);
    }
}

namespace {

// The end that the scopes' last parts have in common, without the number and the sign before it.
std::string common_end(const std::vector<std::string>& scopes) {
    // A scope of one part is the whole network.
    const auto last_part = [](const std::string& scope) {
        const size_t slash = scope.rfind('/');
        return slash == std::string::npos ? std::string() : scope.substr(slash + 1);
    };
    std::string end = last_part(scopes[0]);
    for (const std::string& scope : scopes) {
        const std::string part = last_part(scope);
        size_t same = 0;
        while (same < std::min(end.size(), part.size()) && end[end.size() - 1 - same] == part[part.size() - 1 - same])
            ++same;
        end.erase(0, end.size() - same);
    }
    end.erase(0, std::min(end.find_first_not_of("0123456789-_."), end.size()));
    return end;
}

std::string label_of(const OperatorGraph& graph, const Substructure& s) {
    std::vector<std::string> scopes;
    for (const auto& nodes : s.instances) {
        std::vector<std::string_view> all;
        for (const int32_t v : nodes) all.emplace_back(graph.nodes[v].scope);
        scopes.push_back(common_scope(all));
    }
    if (std::string end = common_end(scopes); !end.empty()) return end;
    std::vector<std::string> types;
    for (const int32_t v : s.instances[0])
        if (const std::string& type = graph.nodes[v].type; std::ranges::find(types, type) == types.end())
            types.push_back(type);
    std::string label = types[0];
    for (size_t i = 1; i < std::min<size_t>(types.size(), 3); ++i) label += ", " + types[i];
    return label;
}

// The attributes, and the result, that have several values at a place of the order.
void add_differences(const OperatorGraph& graph, const Substructure& s, int32_t place, Description& d) {
    const OperatorNode& first = graph.nodes[s.instances[0][place]];
    const bool are_equal = std::ranges::all_of(s.instances, [&](const auto& nodes) {
        const OperatorNode& node = graph.nodes[nodes[place]];
        return node.attributes == first.attributes && node.result == first.result;
    });
    if (are_equal) return;
    std::map<std::string, std::vector<std::string>> values;
    for (size_t i = 0; i < s.instances.size(); ++i) {
        const auto set = [&](const std::string& name, const std::string& value) {
            auto& list = values[name];
            list.resize(s.instances.size());
            list[i] = value;
        };
        const OperatorNode& node = graph.nodes[s.instances[i][place]];
        for (const auto& [name, value] : node.attributes) set(name, value);
        set("result", node.result);
    }
    for (auto& [name, list] : values)
        if (std::ranges::any_of(list, [&](const std::string& value) { return value != list[0]; }))
            d.differences.push_back({place, name, std::move(list)});
}

}  // namespace

std::vector<Description> describe(const OperatorGraph& graph, const std::vector<Substructure>& found) {
    std::vector<std::vector<int32_t>> users(graph.nodes.size());
    for (size_t v = 0; v < graph.nodes.size(); ++v)
        for (const auto& input : graph.nodes[v].inputs)
            if (input.node >= 0) users[input.node].push_back(static_cast<int32_t>(v));
    std::vector<Description> result;
    std::vector<int32_t> owner(graph.nodes.size(), -1);
    int32_t instance = 0;
    for (const Substructure& s : found) {
        Description& d = result.emplace_back();
        d.label = label_of(graph, s);
        std::set<std::pair<int32_t, int32_t>> inputs;
        std::set<int32_t> outputs;
        for (const auto& nodes : s.instances) {
            for (const int32_t v : nodes) owner[v] = instance;
            const auto is_outside = [&](int32_t v) { return owner[v] != instance; };
            for (size_t p = 0; p < nodes.size(); ++p) {
                const auto& list = graph.nodes[nodes[p]].inputs;
                for (size_t i = 0; i < list.size(); ++i)
                    if (list[i].node >= 0 && is_outside(list[i].node)) inputs.emplace(p, i);
                if (std::ranges::any_of(users[nodes[p]], is_outside)) outputs.insert(static_cast<int32_t>(p));
            }
            ++instance;
        }
        d.inputs.assign(inputs.begin(), inputs.end());
        d.outputs.assign(outputs.begin(), outputs.end());
        for (size_t p = 0; p < s.instances[0].size(); ++p) add_differences(graph, s, static_cast<int32_t>(p), d);
    }
    return result;
}

std::string json_of(const OperatorGraph& graph, const std::vector<Substructure>& found) {
    std::vector<std::string> names;
    names.reserve(graph.nodes.size());
    for (const OperatorNode& node : graph.nodes) names.push_back(json_string(node.name));
    std::string text = "{";
    const auto add_list = [&](const auto& list, const auto& add) {
        text += '[';
        for (size_t i = 0; i < list.size(); ++i) {
            if (i > 0) text += ", ";
            add(list[i]);
        }
        text += ']';
    };
    for (size_t k = 0; k < found.size(); ++k) {
        text += str(k > 0 ? ",\n\"" : "\n\"", k + 1, "\": ");
        add_list(found[k].instances, [&](const std::vector<int32_t>& nodes) {
            text += '[';
            add_list(nodes, [&](int32_t v) { text += names[v]; });
            text += ", ";
            add_list(found[k].edges, [&](const std::pair<int32_t, int32_t>& edge) {
                text += "[" + names[nodes[edge.first]] + ", " + names[nodes[edge.second]] + "]";
            });
            text += ']';
        });
    }
    return text + "\n}\n";
}

}  // namespace lunaria::insight
