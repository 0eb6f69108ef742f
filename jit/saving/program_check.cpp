#include "jit/saving/program_check.h"

#include <algorithm>
#include <unordered_set>

#include "jit/language.h"

namespace lunaria {

namespace {

constexpr int64_t kMostResults = 250;

// Variables that closures share (cells) are told from all other values by their origin: made by `cell`, passed on to
// parameters of blocks and to captures, used by cell_get and cell_set. A parameter that is used as a cell must get one
// from every caller.
class ProgramCheck {
  public:
    explicit ProgramCheck(const ir::ParsedGraph& program) {
        gather(*program.graph);
        for (const auto& other : program.others) gather(*other);
    }

    void run() {
        for (const ir::Graph* graph : graphs_) check(*graph);
        if (graphs_[0]->captures) fail(*graphs_[0], "captures values");
        for (bool changed = true; changed;) {
            changed = false;
            for (const auto& [value, parameter] : handed_on_)
                if (cells_.contains(parameter) && is_parameter(value)) changed |= cells_.insert(value.node()).second;
        }
        for (const auto& [value, parameter] : handed_on_)
            if (cells_.contains(parameter) && !is_cell(value)) fail(parameter->graph(), "takes a value for a variable");
        for (const ir::Node* cell : cells_)
            if (is_parameter(Value(const_cast<ir::Node*>(cell))) && !fed_.contains(cell))
                fail(cell->graph(), "takes an argument for a variable");
    }

  private:
    [[noreturn]] static void fail(const ir::Graph& graph, std::string_view what) {
        throw state_error("ir", str("graph ", graph.name, " ", what));
    }
    static void require(bool holds, const ir::Node& node, std::string_view what) {
        if (!holds) throw state_error("ir", str("graph ", node.graph().name, ": %", node.id, " ", what));
    }
    static bool is_parameter(const Value& v) { return v.is_node() && v.node()->kind == ir::NodeKind::parameter; }
    static bool is_primitive(const ir::Node& node) { return node.op && registry().find(node.op->name()) != node.op; }
    bool is_cell(const Value& v) const {
        if (!v.is_node()) return false;
        const ir::Node& node = *v.node();
        return cells_.contains(&node) || lua::facts(node.op).access == lua::Access::makes_cell;
    }

    void gather(const ir::Graph& graph) {
        graphs_.push_back(&graph);
        for (const auto& inner : graph.inner()) gather(*inner);
    }

    // Notes a value passed to a parameter of a block, or to one that captures: other parameters get values from the
    // function's callers.
    void hand_on(const Value& value, const ir::Node* parameter) {
        handed_on_.emplace_back(value, parameter);
        fed_.insert(parameter);
    }
    void hand_on(const ir::Node& node, const Value& args, const ir::Node& function) {
        const auto& parameters = function.function->parameters();
        require(args.items().size() == parameters.size(), node, "hands on another number of values");
        for (size_t i = 0; i < parameters.size(); ++i) hand_on(args.items()[i], parameters[i]);
    }

    void check(const ir::Graph& graph) {
        if (graph.order) fail(graph, "is a derivative");
        auto own = [&](const ir::Node* node) {
            if (node->kind != ir::NodeKind::constant && &node->graph() != &graph) fail(graph, "has free variables");
        };
        ir::for_each_node(graph.result, own);
        for (const ir::Node* node : graph.body()) {
            for (const Value& arg : node->args) ir::for_each_node(arg, own);
            if (node->callee) {
                require(node->callee->function != nullptr, *node, "goes on to a value");
                hand_on(*node, Value::list(node->args), *node->callee);
            } else if (is_primitive(*node)) {
                check_primitive(*node);
            }
        }
    }

    void check_primitive(const ir::Node& node) {
        const auto& args = node.args;
        const lua::Access access = lua::facts(*node.op).access;
        if (node.op->is_branch) {
            for (size_t i : {1, 3}) hand_on(node, args[i + 1], *args[i].node());
        } else if (node.op->is_closure) {
            require(args[0].is_node() && args[0].node()->function && args[1].is_list(), node, "makes no function");
            const auto& parameters = args[0].node()->function->parameters();
            for (size_t i = 0; i < args[1].items().size(); ++i) hand_on(args[1].items()[i], parameters.at(i));
        } else if (access == lua::Access::reads_cell || access == lua::Access::writes_cell) {
            require(is_parameter(args[0]) || is_cell(args[0]), node, "uses a value as a variable");
            if (is_parameter(args[0])) cells_.insert(args[0].node());
        } else if (const Form* form = form_of(*node.op)) {
            require(form->fits(args), node, form->problem);
        } else {
            for (const Value& arg : args) require(!arg.is_list(), node, "has a list for an operand");
        }
    }

    // Which operands must be lists, and which are read as one.
    struct Form {
        std::string_view primitive, problem;
        bool (*fits)(const std::vector<Value>& args);
    };
    static const Form* form_of(const Op& primitive) {
        static constexpr auto kPicks = [](const std::vector<Value>& args) {
            return args[0].is_node() && is_within(args[1], kMostResults);
        };
        static constexpr Form kForms[] = {
            {"result", "picks no result", kPicks},
            {"results_from", "picks no result", kPicks},
            {"table", "makes no table",
             [](const std::vector<Value>& args) {
                 if (!args[0].is_list() || !args[1].is_list() || !(args[3].is_nil() || args[3].is_node())) return false;
                 const size_t count = args[0].items().size();
                 return args[1].items().size() == count && is_within(args[2], static_cast<int64_t>(count));
             }},
            {"call", "has no list of arguments",
             [](const std::vector<Value>& args) {
                 return !args[0].is_list() && (args[1].is_list() || args[1].is_node());
             }},
            {"spread", "joins no lists",
             [](const std::vector<Value>& args) {
                 return args[0].is_list() && (args[1].is_node() || args[1].is_nil());
             }},
        };
        auto found = std::ranges::find(kForms, primitive.name(), &Form::primitive);
        return found == std::end(kForms) ? nullptr : found;
    }
    static bool is_within(const Value& v, int64_t most) {
        return v.kind() == Value::Kind::integer && v.integer() >= 0 && v.integer() <= most;
    }

    std::vector<const ir::Graph*> graphs_;
    std::vector<std::pair<Value, const ir::Node*>> handed_on_;
    std::unordered_set<const ir::Node*> fed_, cells_;
};

}  // namespace

bool is_saved_primitive(const Op& primitive) { return lua::facts(primitive).saved; }

void check_program(const ir::ParsedGraph& program) { ProgramCheck(program).run(); }

}  // namespace lunaria
