// The reference product's form of a graph: scopes as nodes with the number of their parts, operators by their full
// names.
#include <algorithm>
#include <charconv>
#include <map>
#include <set>

#include "core/insight/graph/graph_page.h"

namespace lunaria::insight {

namespace {

class Reference {
  public:
    Reference(const GraphModel& model, bool optimized) : model_(model) {
        names_.resize(model.size());
        scopes_.resize(model.size());
        for (int32_t v = 0; v < model.size(); ++v) {
            const bool is_operator = model.is_operator(v);
            // Given values stand where they are used first.
            const int32_t at = is_operator ? v : model.users(v).empty() ? -1 : model.users(v)[0].node;
            if (at >= 0) scopes_[v] = model.graph().nodes[at].scope;
            const std::string own = is_operator ? model.type_of(v) + "-op" + model.name_of(v) : model.name_of(v);
            names_[v] = scopes_[v].empty() ? own : scopes_[v] + "/" + own;
            if (is_operator && !model.graph().nodes[v].full_name.empty()) names_[v] = model.graph().nodes[v].full_name;
            if (!optimized || !(model.marks(v) & (kGradient | kOptimizer | kPlumbing))) {
                shown_.push_back(v);
                add_scope(scopes_[v], names_[v]);
            }
        }
    }

    bool has(const std::string& name) const {
        return name.empty() || children_.contains(name) ||
               std::ranges::any_of(shown_, [&](int32_t v) { return names_[v] == name; });
    }
    std::string scope_of(const std::string& name) const {
        for (const int32_t v : shown_)
            if (names_[v] == name) return scopes_[v];
        const size_t slash = name.rfind('/');
        return slash == std::string::npos ? "" : name.substr(0, slash);
    }
    std::vector<std::string> found(const std::string& text) const {
        std::set<std::string> names;
        for (const auto& [scope, parts] : children_)
            if (!scope.empty() && scope.find(text) != std::string::npos) names.insert(scope);
        for (const int32_t v : shown_)
            if (names_[v].find(text) != std::string::npos) names.insert(names_[v]);
        return {names.begin(), names.end()};
    }

    // "nodes": what is directly in a scope; of all operators with `everything`.
    void put_nodes(JsonText& json, const std::string& scope, bool everything = false) const {
        json.key("nodes").open('[');
        if (!everything)
            for (const auto& [name, border] : borders_in(scope)) put_scope(json, name, border);
        for (const int32_t v : shown_)
            if (everything || scopes_[v] == scope) put_node(json, v);
        json.close(']');
    }

  private:
    void add_scope(std::string scope, std::string part) {
        while (children_[scope].insert(std::move(part)).second && !scope.empty()) {
            part = scope;
            const size_t slash = scope.rfind('/');
            scope.resize(slash == std::string::npos ? 0 : slash);
        }
    }

    // dtype and shape of "float32(2, 3)".
    void put_type(JsonText& json, const std::string& result) const {
        const size_t bracket = result.find('(');
        const bool is_tensor = bracket != std::string::npos && bracket > 0 && result.back() == ')';
        json.key("data_type").string(is_tensor ? result.substr(0, bracket) : result).key("shape").open('[');
        std::string_view rest = is_tensor ? std::string_view(result).substr(bracket + 1) : std::string_view();
        while (!rest.empty()) {
            int64_t size = 0;
            const auto [end, problem] = std::from_chars(rest.data(), rest.data() + rest.size(), size);
            if (problem != std::errc()) break;
            json.number(size);
            rest.remove_prefix(static_cast<size_t>(end - rest.data()));
            rest.remove_prefix(std::min(rest.find_first_not_of(", "), rest.size()));
        }
        json.close(']');
    }
    void put_edge(JsonText& json, int32_t other, bool is_control, const std::string& result) const {
        json.key(names_[other]).open('{').key("edge_type").string(is_control ? "control" : "data");
        put_type(json, result);
        json.key("independent_layout").boolean(!model_.is_operator(other)).close('}');
    }
    static void put_rest(JsonText& json, size_t parts) {
        json.key("output_i").number(0).key("proxy_input").open('{').close('}').key("proxy_output").open('{').close('}');
        json.key("subnode_count").number(parts).key("independent_layout").boolean(false);
        json.key("stack_info").open('[').close(']').close('}');
    }

    void put_node(JsonText& json, int32_t v) const {
        static const std::map<std::string, std::string> kinds = {{"Constant", "Const"}, {"Input", "Parameter"}};
        const std::string& type = model_.type_of(v);
        json.open('{').key("name").string(names_[v]);
        json.key("type").string(model_.is_operator(v) || !kinds.contains(type) ? type : kinds.at(type));
        json.key("attr").open('{');
        if (model_.is_operator(v))
            for (const auto& [name, value] : model_.graph().nodes[v].attributes) json.key(name).string(value);
        json.close('}').key("input").open('{');
        // Once each, as at borders of scopes: a name is a key.
        std::set<int32_t> inputs, users;
        for (const GraphModel::Link& l : model_.inputs(v))
            if (inputs.insert(l.node).second) put_edge(json, l.node, l.is_control, model_.result_of(l.node));
        json.close('}').key("output").open('{');
        for (const GraphModel::Link& l : model_.users(v))
            if (users.insert(l.node).second) put_edge(json, l.node, l.is_control, model_.result_of(v));
        json.close('}');
        put_rest(json, 0);
    }
    // The edges that cross a scope's border, by the node outside; with the node inside, of those that leave it.
    struct Border {
        std::map<int32_t, bool> inputs;  // whether they are control edges
        std::map<int32_t, std::pair<bool, int32_t>> outputs;
    };
    // The scope directly in `outer` that a scope is or lies in; empty: none.
    static std::string_view scope_in(std::string_view outer, std::string_view scope) {
        if (!outer.empty() && !(scope.size() > outer.size() && scope.starts_with(outer) && scope[outer.size()] == '/'))
            return {};
        return scope.substr(0, scope.find('/', outer.empty() ? 0 : outer.size() + 1));
    }
    std::map<std::string_view, Border> borders_in(const std::string& outer) const {
        std::map<std::string_view, Border> borders;
        for (const int32_t v : shown_) {
            const std::string_view scope = scope_in(outer, scopes_[v]);
            if (scope.empty()) continue;
            Border& border = borders[scope];
            for (const GraphModel::Link& l : model_.inputs(v))
                if (scope_in(outer, scopes_[l.node]) != scope) border.inputs.emplace(l.node, l.is_control);
            for (const GraphModel::Link& l : model_.users(v))
                if (scope_in(outer, scopes_[l.node]) != scope)
                    border.outputs.emplace(l.node, std::pair(l.is_control, v));
        }
        return borders;
    }
    void put_scope(JsonText& json, std::string_view name, const Border& border) const {
        json.open('{').key("name").string(name).key("type").string("name_scope").key("attr").open('{').close('}');
        json.key("input").open('{');
        for (const auto& [v, is_control] : border.inputs) put_edge(json, v, is_control, model_.result_of(v));
        json.close('}').key("output").open('{');
        for (const auto& [v, from] : border.outputs) put_edge(json, v, from.first, model_.result_of(from.second));
        json.close('}');
        put_rest(json, children_.at(std::string(name)).size());
    }

    const GraphModel& model_;
    std::vector<std::string> names_, scopes_;
    std::vector<int32_t> shown_;
    std::map<std::string, std::set<std::string>> children_;  // of each scope
};

}  // namespace

Answer GraphPage::reference_answer(const Question& question) const {
    if (!question.is_reading()) throw Refusal{405, "a graph is only read"};
    const Reference reference(model_, question.parameter("mode").value_or("normal") == "optimized");
    const std::string name = question.parameter("name").value_or("");
    if (!reference.has(name)) throw Refusal{400, str("there is no node '", name, "'")};
    JsonText json;
    if (question.part(0) == "nodes" && question.part(1) == "names") {
        const auto names = reference.found(question.parameter("search").value_or(""));
        const auto limit = static_cast<size_t>(question.integer("limit", 100, 1, 1000));
        // A page's number, as the reference product counts.
        const auto first = static_cast<size_t>(question.integer("offset", 0, 0, 100'000'000)) * limit;
        json.open('{').key("names").open('[');
        for (size_t i = first; i < std::min(first + limit, names.size()); ++i) json.string(names[i]);
        json.close(']');
    } else if (question.part(0) == "nodes" && (question.part(1).empty() || question.part(1) == "all")) {
        json.open('{');
        reference.put_nodes(json, name, question.part(1) == "all");
    } else if (question.part(0) == "single-node") {
        // Scope by scope down to the node.
        const std::string scope = reference.scope_of(name);
        json.open('{');
        reference.put_nodes(json, "");
        json.key("scope_name").string("").key("children").open('{');
        size_t levels = 0;
        for (size_t end = 0; end < scope.size(); ++levels) {
            end = std::min(scope.find('/', end + 1), scope.size());
            reference.put_nodes(json, scope.substr(0, end));
            json.key("scope_name").string(scope.substr(0, end)).key("children").open('{');
        }
        for (size_t i = 0; i <= levels; ++i) json.close('}');
    } else {
        throw Refusal{404, "a graph has no such answer"};
    }
    return json_answer(json.close('}').take());
}

}  // namespace lunaria::insight
