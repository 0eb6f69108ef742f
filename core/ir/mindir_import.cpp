#include "core/ir/mindir_import.h"

#include <set>

#include "core/ir/mindir_translate.h"
#include "core/ir/mindspore_blocks.h"

namespace lunaria::mindir {

namespace {

using ir::Graph;

class Importer {
  public:
    Importer(const Model& model, const std::string& file)
        : model_(model), file_(file), graph_(std::make_unique<Graph>("main")), nodes_(model, file, *graph_) {}

    ir::ParsedGraph run() {
        nodes_.refuse_unknown_operators();
        for (const GraphEntry& f : model_.functions) functions_.try_emplace(f.name, &f);
        const GraphEntry& g = *model_.graph;
        if (!g.name.empty()) graph_->name = g.name;
        for (const ValueInfo& input : g.inputs)
            define(values_, input.name,
                   Value(graph_->add_parameter(input.name.substr(input.name.rfind(':') + 1), nodes_.type_of(input))));
        for (const auto& [name, weight] : nodes_.weights_of(g, *graph_)) define(values_, name, Value(weight));
        std::vector<Value> results = outputs(g, values_);
        graph_->result = Value::list(std::move(results));
        ir::ParsedGraph parsed;
        parsed.graph = std::move(graph_);
        return parsed;
    }

  private:
    using Scope = std::unordered_map<std::string, Value>;
    [[noreturn]] void fail(std::string_view what) const { nodes_.fail(what); }

    void define(Scope& scope, const std::string& name, Value v) {
        if (!scope.try_emplace(name, std::move(v)).second) fail(str("two nodes are called '", name, "'"));
    }

    std::vector<Value> outputs(const GraphEntry& g, Scope& scope) {
        for (const NodeEntry& node : g.nodes) {
            if (node.output.empty()) fail(str("node '", node.name, "' has no output"));
            if (!nodes_.is_inner(g, node)) define(scope, node.output, translate(g, node, scope));
        }
        std::vector<Value> results;
        for (const ValueInfo& output : g.outputs) results.push_back(named(output.name, scope));
        if (results.empty()) fail(str("graph '", g.name, "' has no output"));
        return results;
    }

    Value named(const std::string& name, const Scope& scope) const {
        auto found = scope.find(name);
        if (found == scope.end()) {
            found = values_.find(name);  // a weight, or a value of an enclosing graph
            if (found == values_.end()) fail(str("'", name, "' is used before it is made, or nowhere made"));
        }
        return found->second;
    }

    Value translate(const GraphEntry& g, const NodeEntry& node, Scope& scope) {
        const auto value = [&](const std::string& name) { return named(name, scope); };
        if (node.op_type.starts_with("REF::")) {
            if (auto f = functions_.find(node.op_type.substr(5)); f != functions_.end()) {
                std::vector<Value> args;
                for (const std::string& input : node.inputs) args.push_back(value(input));
                return called(*f->second, args);
            }
        }
        return nodes_.translate(g, node, value);
    }

    // The called graph is written into the calling one.
    Value called(const GraphEntry& g, const std::vector<Value>& args) {
        if (!running_.insert(g.name).second)
            throw file_error(file_, str("graph '", g.name, "' calls itself, which is not supported"));
        if (running_.size() > 100 || ++calls_ > 10000) fail("graphs call each other too often");
        if (g.inputs.size() != args.size())
            fail(str("graph '", g.name, "' has ", g.inputs.size(), " inputs, not ", args.size()));
        Scope scope;
        for (size_t i = 0; i < args.size(); ++i) define(scope, g.inputs[i].name, args[i]);
        std::vector<Value> results = outputs(g, scope);
        running_.erase(g.name);
        return results.size() == 1 ? results[0] : Value::list(std::move(results));
    }

    const Model& model_;
    const std::string& file_;
    std::unique_ptr<Graph> graph_;
    NodeTranslator nodes_;
    Scope values_;
    std::unordered_map<std::string, const GraphEntry*> functions_;
    std::set<std::string> running_;
    int calls_ = 0;
};

}  // namespace

ir::ParsedGraph import_model(const Model& model, const ir::Vocabulary& vocabulary, const std::string& file) {
    if (vocabulary.primitives && has_control_flow(model)) return import_blocks(model, *vocabulary.primitives, file);
    return Importer(model, file).run();
}

}  // namespace lunaria::mindir
