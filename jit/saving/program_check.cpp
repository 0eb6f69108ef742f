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
        return cells_.contains(&node) || (is_primitive(node) && node.op->name() == "cell");
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
                check_primitive(*node, std::string(node->op->name()));
            }
        }
    }

    void check_primitive(const ir::Node& node, const std::string& name) {
        const auto& args = node.args;
        if (name == "branch") {
            for (size_t i : {1, 3}) hand_on(node, args[i + 1], *args[i].node());
        } else if (name == "closure") {
            require(args[0].is_node() && args[0].node()->function && args[1].is_list(), node, "makes no function");
            const auto& parameters = args[0].node()->function->parameters();
            for (size_t i = 0; i < args[1].items().size(); ++i) hand_on(args[1].items()[i], parameters.at(i));
        } else if (name == "cell_get" || name == "cell_set") {
            require(is_parameter(args[0]) || is_cell(args[0]), node, "uses a value as a variable");
            if (is_parameter(args[0])) cells_.insert(args[0].node());
        } else {
            check_lists(node, name);
        }
    }

    // Checks operands that must be lists, and operands that are read as one.
    static void check_lists(const ir::Node& node, const std::string& name) {
        const auto& args = node.args;
        auto is_within = [&](size_t i, int64_t most) {
            return args[i].kind() == Value::Kind::integer && args[i].integer() >= 0 && args[i].integer() <= most;
        };
        if (name == "result" || name == "results_from") {
            require(args[0].is_node() && is_within(1, kMostResults), node, "picks no result");
        } else if (name == "table") {
            require(args[0].is_list() && args[1].is_list(), node, "makes no table");
            const size_t count = args[0].items().size();
            require(args[1].items().size() == count && is_within(2, static_cast<int64_t>(count)), node,
                    "makes no table");
            require(args[3].is_nil() || args[3].is_node(), node, "makes no table");
        } else if (name == "call") {
            require(!args[0].is_list() && (args[1].is_list() || args[1].is_node()), node, "has no list of arguments");
        } else if (name == "spread") {
            require(args[0].is_list() && (args[1].is_node() || args[1].is_nil()), node, "joins no lists");
        } else {
            for (const Value& arg : args) require(!arg.is_list(), node, "has a list for an operand");
        }
    }

    std::vector<const ir::Graph*> graphs_;
    std::vector<std::pair<Value, const ir::Node*>> handed_on_;
    std::unordered_set<const ir::Node*> fed_, cells_;
};

}  // namespace

bool is_saved_primitive(const Op& primitive) {
    static constexpr std::string_view kNames[] = {"add",
                                                  "sub",
                                                  "mul",
                                                  "mod",
                                                  "pow",
                                                  "div",
                                                  "floor_div",
                                                  "bit_and",
                                                  "bit_or",
                                                  "bit_xor",
                                                  "concat",
                                                  "shift_left",
                                                  "shift_right",
                                                  "equal",
                                                  "less",
                                                  "less_equal",
                                                  "minus",
                                                  "not",
                                                  "length",
                                                  "bit_not",
                                                  "index",
                                                  "set_index",
                                                  "table",
                                                  "call",
                                                  "spread",
                                                  "result",
                                                  "results_from",
                                                  "closure",
                                                  "current_function",
                                                  "cell",
                                                  "cell_get",
                                                  "cell_set",
                                                  "for_prepare",
                                                  "for_more",
                                                  "for_count",
                                                  "branch"};
    return std::ranges::find(kNames, primitive.name()) != std::end(kNames);
}

void check_program(const ir::ParsedGraph& program) { ProgramCheck(program).run(); }

}  // namespace lunaria
