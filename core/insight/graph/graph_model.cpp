#include "core/insight/graph/graph_model.h"

#include <algorithm>
#include <numeric>
#include <string_view>
#include <unordered_map>

namespace lunaria::insight {

namespace {

constexpr std::string_view kPlumbingTypes[] = {"Load",   "TupleGetItem", "tuple_getitem", "MakeTuple", "make_tuple",
                                               "Depend", "UpdateState",  "Return",        "item",      "UMonad"};

bool is_plumbing(const std::string& type) {
    return std::ranges::find(kPlumbingTypes, type) != std::end(kPlumbingTypes);
}

bool is_constant(const OperatorNode& node) {
    return node.inputs.empty() && (node.type == "Constant" || node.type == "Const" || node.type == "ValueNode");
}

bool is_gradient(const OperatorNode& node) {
    return node.scope.starts_with("Gradients") || node.type.ends_with("Grad") ||
           node.type.find("Backprop") != std::string::npos;
}

bool is_optimizer(const OperatorNode& node) {
    return node.scope.find("optimizer-") != std::string::npos || node.type.starts_with("Apply") ||
           node.type.starts_with("FusedApply") || node.type.starts_with("Assign");
}

std::string lower(std::string text) {
    for (char& c : text)
        if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    return text;
}

}  // namespace

std::vector<size_t> EqualParts::outermost_first() const {
    std::vector<size_t> order(found.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::ranges::stable_sort(order, std::greater<>(), [&](size_t k) { return found[k].instances[0].size(); });
    return order;
}

GraphModel::GraphModel(OperatorGraph graph, std::string name) : name_(std::move(name)), graph_(std::move(graph)) {
    mark();
    link();
    by_name_.resize(size());
    std::iota(by_name_.begin(), by_name_.end(), 0);
    std::ranges::stable_sort(by_name_, {}, [&](int32_t v) -> const std::string& { return name_of(v); });
    // One scope for all says nothing.
    const auto scoped = std::ranges::count_if(graph_.nodes, [](const OperatorNode& n) { return !n.scope.empty(); });
    has_scopes_ = 2 * static_cast<size_t>(scoped) > graph_.nodes.size() &&
                  std::ranges::any_of(graph_.nodes, [&](const OperatorNode& n) {
                      return !n.scope.empty() && n.scope != graph_.nodes[0].scope;
                  });
}

void GraphModel::mark() {
    marks_.reserve(graph_.nodes.size() + graph_.values.size());
    for (const OperatorNode& node : graph_.nodes) {
        uint8_t marks = 0;
        if (is_gradient(node)) marks |= kGradient;
        if (is_optimizer(node)) marks |= kOptimizer;
        if (is_plumbing(node.type)) marks |= kPlumbing;
        if (is_constant(node)) marks = kConstant;
        marks_.push_back(marks);
    }
    for (const GivenValue& value : graph_.values)
        marks_.push_back(value.kind == GivenValue::Kind::constant    ? kConstant
                         : value.kind == GivenValue::Kind::parameter ? kParameter
                                                                     : kInput);
}

void GraphModel::link() {
    input_start_.assign(size() + 1, 0);
    user_start_.assign(size() + 1, 0);
    for (int32_t v = 0; v < operators(); ++v) {
        const auto& inputs = graph_.nodes[v].inputs;
        for (size_t i = 0; i < inputs.size(); ++i) {
            const int32_t from = inputs[i].node >= 0    ? inputs[i].node
                                 : inputs[i].value >= 0 ? operators() + inputs[i].value
                                                        : -1;
            if (from < 0) continue;
            inputs_.push_back({from, static_cast<int32_t>(i), inputs[i].is_control});
            ++user_start_[from + 1];
        }
        input_start_[v + 1] = static_cast<uint32_t>(inputs_.size());
    }
    std::fill(input_start_.begin() + operators() + 1, input_start_.end(), static_cast<uint32_t>(inputs_.size()));
    std::partial_sum(user_start_.begin(), user_start_.end(), user_start_.begin());
    users_.resize(inputs_.size());
    std::vector<uint32_t> next(user_start_.begin(), user_start_.end() - 1);
    for (int32_t v = 0; v < operators(); ++v)
        for (const Link& l : inputs(v)) users_[next[l.node]++] = {v, l.place, l.is_control};
}

const std::string& GraphModel::name_of(int32_t node) const {
    return is_operator(node) ? graph_.nodes[node].name : graph_.values[node - operators()].name;
}

const std::string& GraphModel::type_of(int32_t node) const {
    static const std::string kinds[] = {"Input", "Parameter", "Constant"};
    if (is_operator(node)) return graph_.nodes[node].type;
    return kinds[static_cast<int>(graph_.values[node - operators()].kind)];
}

const std::string& GraphModel::result_of(int32_t node) const {
    return is_operator(node) ? graph_.nodes[node].result : graph_.values[node - operators()].text;
}

std::span<const GraphModel::Link> GraphModel::inputs(int32_t node) const {
    return {inputs_.data() + input_start_[node], inputs_.data() + input_start_[node + 1]};
}

std::span<const GraphModel::Link> GraphModel::users(int32_t node) const {
    return {users_.data() + user_start_[node], users_.data() + user_start_[node + 1]};
}

std::optional<int32_t> GraphModel::find(const std::string& name) const {
    const auto at =
        std::ranges::lower_bound(by_name_, name, {}, [&](int32_t v) -> const std::string& { return name_of(v); });
    if (at == by_name_.end() || name_of(*at) != name) return std::nullopt;
    return *at;
}

const EqualParts& GraphModel::parts() const {
    std::call_once(parts_once_, [&] {
        parts_ = std::make_unique<EqualParts>(find_parts());
        parts_known_ = true;
    });
    return *parts_;
}

namespace {

// Gradients have the scope of what they are of, behind this.
constexpr std::string_view kGradients = "Gradients/";

std::string_view forward_scope(const OperatorNode& node) {
    const std::string_view scope = node.scope;
    return scope.starts_with(kGradients) ? scope.substr(kGradients.size()) : scope;
}

// The scopes of instances, all of as many levels.
std::vector<std::string> scopes_of(const OperatorGraph& graph, const Substructure& part) {
    std::vector<std::string> scopes;
    const auto levels_of = [](const std::string& scope) { return std::ranges::count(scope, '/'); };
    for (const auto& nodes : part.instances) {
        // Files give most gradients the scope of the first of their kind.
        std::vector<std::string_view> all, forward;
        for (const int32_t v : nodes) {
            all.push_back(forward_scope(graph.nodes[v]));
            if (!is_gradient(graph.nodes[v]) && !is_optimizer(graph.nodes[v])) forward.push_back(all.back());
        }
        scopes.push_back(common_scope(forward.empty() ? all : forward));
    }
    const auto least = levels_of(*std::ranges::min_element(scopes, {}, levels_of));
    for (std::string& scope : scopes)
        while (levels_of(scope) > least) scope.erase(scope.rfind('/'));
    return scopes;
}

// Gives nodes that have the scope of another instance the one of their own: what follows the instance's scope is right.
void repair_scopes(const OperatorGraph& graph, const Substructure& part, EqualParts& parts,
                   std::vector<uint8_t>& is_settled) {
    constexpr size_t kSeveral = SIZE_MAX;  // instances with one scope: nothing tells what is whose
    std::unordered_map<std::string_view, size_t> owner;
    const std::vector<std::string> scopes = scopes_of(graph, part);
    for (size_t i = 0; i < scopes.size(); ++i)
        if (const auto [found, is_new] = owner.emplace(scopes[i], i); !is_new) found->second = kSeveral;
    for (size_t i = 0; i < scopes.size(); ++i) {
        if (scopes[i].empty() || owner.at(scopes[i]) != i) continue;
        for (const int32_t v : part.instances[i]) {
            if (is_settled[v]) continue;
            is_settled[v] = 1;
            const std::string_view scope = forward_scope(graph.nodes[v]);
            for (size_t end = scope.find('/');; end = scope.find('/', end + 1)) {
                const auto found = owner.find(scope.substr(0, end));
                if (found != owner.end() && found->second != i && found->second != kSeveral) {
                    const std::string_view rest = scope.substr(found->first.size());
                    const bool is_gradient = scope.size() < graph.nodes[v].scope.size();
                    parts.scopes[v] = str(is_gradient ? kGradients : "", scopes[i], rest);
                    ++parts.repaired;
                }
                if (found != owner.end() || end == std::string_view::npos) break;
            }
        }
    }
}

}  // namespace

EqualParts GraphModel::find_parts() const {
    EqualParts parts;
    parts.found = find_substructures(graph_, Equality::operators);
    // Instances are counted in the order of the file.
    for (Substructure& part : parts.found)
        std::ranges::sort(part.instances, {}, [](const auto& nodes) { return std::ranges::min(nodes); });
    parts.about = describe(graph_, parts.found);
    parts.of.assign(operators(), {-1, -1});
    parts.place.assign(operators(), -1);
    parts.scopes.reserve(operators());
    for (const OperatorNode& node : graph_.nodes) parts.scopes.push_back(node.scope);
    std::vector<uint8_t> is_settled(operators(), 0);
    for (const size_t k : parts.outermost_first()) {
        const Substructure& part = parts.found[k];
        for (size_t i = 0; i < part.instances.size(); ++i)
            for (size_t p = 0; p < part.instances[i].size(); ++p) {
                const int32_t v = part.instances[i][p];
                if (parts.of[v].first >= 0) continue;
                parts.of[v] = {static_cast<int32_t>(k), static_cast<int32_t>(i)};
                parts.place[v] = static_cast<int32_t>(p);
            }
        repair_scopes(graph_, part, parts, is_settled);
    }
    return parts;
}

std::vector<int32_t> GraphModel::search(const std::string& text, size_t most, size_t& count) const {
    const std::string wanted = lower(text);
    std::vector<int32_t> equal, others;
    count = 0;
    for (int32_t v = 0; v < size(); ++v) {
        const bool is_equal = lower(name_of(v)) == wanted || lower(type_of(v)) == wanted;
        const bool is_found = is_equal || lower(name_of(v)).find(wanted) != std::string::npos ||
                              lower(type_of(v)).find(wanted) != std::string::npos ||
                              (is_operator(v) && (lower(graph_.nodes[v].scope).find(wanted) != std::string::npos ||
                                                  lower(graph_.nodes[v].full_name).find(wanted) != std::string::npos));
        if (!is_found) continue;
        ++count;
        if (auto& list = is_equal ? equal : others; list.size() < most) list.push_back(v);
    }
    equal.insert(equal.end(), others.begin(), others.end());
    if (equal.size() > most) equal.resize(most);
    return equal;
}

std::vector<int32_t> GraphModel::reach(int32_t node, bool up) const {
    std::vector<int32_t> reached{node};
    std::vector<uint8_t> seen(size(), 0);
    seen[node] = 1;
    for (size_t i = 0; i < reached.size(); ++i)
        for (const Link& l : up ? inputs(reached[i]) : users(reached[i]))
            if (!seen[l.node]) {
                seen[l.node] = 1;
                reached.push_back(l.node);
            }
    reached.erase(reached.begin());
    return reached;
}

std::vector<int32_t> GraphModel::route(int32_t from, int32_t to) const {
    for (const bool up : {false, true}) {
        std::vector<int32_t> before(size(), -1), queue{from};
        before[from] = from;
        for (size_t i = 0; i < queue.size() && before[to] < 0; ++i)
            for (const Link& l : up ? inputs(queue[i]) : users(queue[i]))
                if (before[l.node] < 0) {
                    before[l.node] = queue[i];
                    queue.push_back(l.node);
                }
        if (before[to] < 0) continue;
        std::vector<int32_t> way{to};
        while (way.back() != from) way.push_back(before[way.back()]);
        std::ranges::reverse(way);
        return way;
    }
    return {};
}

}  // namespace lunaria::insight
