// The parser of the text form of graphs. Nodes are made as their lines are read. An inner graph stands before the body
// whose nodes it may use, so its lines are skipped at first and read after that body. Graphs as values are resolved at
// the end.
#include "core/ir/parser.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <unordered_map>
#include <utility>

#include "core/ir/arguments.h"
#include "core/ir/cursor.h"
#include "core/ir/text.h"

namespace lunaria::ir {

namespace {

// No graph of ours is nested deeper; the bound limits the parser's own recursion.
constexpr int kDeepest = 200;
constexpr int64_t kLargestId = std::numeric_limits<int>::max() / 2;

class Parser {
  public:
    Parser(std::string_view text, const Vocabulary& vocabulary, std::string_view name)
        : text_(text), vocabulary_(vocabulary), at_(text, name) {}

    ParsedGraph parse() {
        ParsedGraph parsed;
        at_.skip_blank_lines();
        do {
            const Header h = header();
            auto graph = std::make_unique<Graph>(h.name);
            define(h, *graph);
            nodes_.clear();
            graph_rest(*graph, 0);
            tops_.push_back(graph.get());
            (parsed.graph ? parsed.others.emplace_back() : parsed.graph) = std::move(graph);
            at_.skip_blank_lines();
        } while (!at_.at_end());
        resolve();
        return parsed;
    }

  private:
    struct Header {
        std::string name, label;
        size_t place = 0;
    };

    // Names and labels.
    std::string graph_name() {
        at_.skip_spaces();
        if (at_.peek() == '"') return at_.quoted();
        const std::string_view line = at_.rest_of_line();
        size_t n = 0;
        while (n < line.size() && (is_graph_name_char(line[n]) || line[n] == ' ')) ++n;
        while (n > 0 && line[n - 1] == ' ') --n;
        if (n == 0) at_.fail("the name of a graph expected");
        at_.go_to(at_.place() + n);
        return std::string(line.substr(0, n));
    }
    std::string label_of(const std::string& name) {
        std::string label = graph_name_text(name);
        if (at_.peek() == '#') {
            at_.expect("#");
            label += str('#', at_.integer("the number of a graph", 2, kLargestId));
        }
        return label;
    }
    Header header() {
        if (!at_.accept_word("graph")) at_.fail("'graph' expected");
        Header h;
        h.place = at_.place();
        h.name = graph_name();
        h.label = label_of(h.name);
        return h;
    }
    void define(const Header& h, Graph& graph) {
        if (!graphs_.try_emplace(h.label, &graph).second)
            at_.fail_at(h.place, str("there is a graph '", h.label, "' already"));
    }

    // Reads the rest of a graph, from "(" of the header to the line with "}".
    void graph_rest(Graph& graph, int depth) {
        if (depth > kDeepest) at_.fail("graphs are nested too deeply");
        graph_ = &graph;
        parameters(graph);
        if (at_.accept_word("captures"))
            graph.captures = static_cast<size_t>(at_.integer("the number of captures", 0, kLargestId));
        graph.variadic = at_.accept_word("variadic");
        if (at_.accept_word("order")) graph.order = static_cast<int>(at_.integer("the order", 0, kLargestId));
        at_.expect("{");
        graph.span = span();
        at_.end_of_line();

        struct Later {
            Graph* graph;
            size_t place;
        };
        std::vector<Later> inner;
        at_.skip_blank_lines();
        while (at_.rest_of_line().starts_with("graph ")) {
            const Header h = header();
            Graph& g = graph.add_inner(h.name);
            define(h, g);
            inner.push_back({&g, at_.place()});
            pass_over();
        }
        while (!at_.accept_word("return")) {
            if (at_.at_end()) at_.fail("'return' expected");
            definition(graph);
            at_.skip_blank_lines();
        }
        graph.result = operand();
        at_.end_of_line();
        at_.skip_blank_lines();
        at_.expect("}");
        at_.end_of_line();
        const size_t after = at_.place();
        for (const Later& later : inner) {
            at_.go_to(later.place);
            graph_rest(*later.graph, depth + 1);
        }
        at_.go_to(after);
        graph_ = &graph;
    }

    // Skips to the line after the graph whose header is being read.
    void pass_over() {
        for (int open = 1; open > 0;) {
            const size_t line = text_.find('\n', at_.place());
            if (line == text_.npos) at_.fail("the graph has no end: a line with '}' expected");
            at_.go_to(line + 1);
            at_.skip_blank_lines();
            const std::string_view rest = at_.rest_of_line();
            if (rest.starts_with("graph "))
                ++open;
            else if (rest.starts_with("}"))
                --open;
        }
        at_.expect("}");
        at_.end_of_line();
        at_.skip_blank_lines();
    }

    void parameters(Graph& graph) {
        at_.expect("(");
        if (at_.accept(")")) return;
        do {
            const int id = new_id();
            std::string name = node_name();
            at_.expect(":");
            number(*graph.add_parameter(std::move(name), type(0)), id);
        } while (at_.accept(","));
        at_.expect(")");
    }

    std::string node_name() {
        at_.skip_spaces();
        return at_.peek() == '"' ? at_.quoted() : std::string(at_.word());
    }

    int new_id() {
        at_.expect("%");
        const size_t place = at_.place();
        const int id = static_cast<int>(at_.integer("the number of a node", 0, kLargestId));
        if (nodes_.contains(id)) at_.fail_at(place, str("there is a node %", id, " already"));
        return id;
    }
    void number(Node& node, int id) {
        node.id = id;
        nodes_[id] = &node;
    }

    // %3 = …
    void definition(Graph& graph) {
        const int id = new_id();
        at_.expect("=");
        at_.skip_spaces();
        Node* node = at_.peek() == '%' || at_.peek() == '@' ? of_value(graph) : of_word(graph);
        number(*node, id);
        if (node->kind != NodeKind::constant) {
            at_.expect(":");
            node->type = type(0);
        }
        at_.skip_spaces();
        if (at_.peek() != '-') node->name = node_name();
        node->span = span();
        at_.end_of_line();
    }

    // A node that is an item of another, or a call of a node or of a graph.
    Node* of_value(Graph& graph) {
        const size_t place = at_.place();
        const Value value = operand();
        if (!value.node()->function && at_.accept("[")) {
            const auto index = static_cast<size_t>(at_.integer("an index", 0, kLargestId));
            at_.expect("]");
            const NodeType& list = value.node()->type;
            if (list.kind == NodeType::Kind::list && index >= list.items.size())
                at_.fail_at(place, str("the node has ", list.items.size(), " results, not ", index + 1));
            return graph.add_item(*value.node(), index);
        }
        return graph.add_call(*value.node(), arguments(), {});
    }

    // A node that calls an operator, or a constant.
    Node* of_word(Graph& graph) {
        const size_t place = at_.place();
        const std::string_view word = at_.word();
        if (at_.peek() != '(' || parse_dtype(word)) {
            at_.go_to(place);
            return graph.add_constant(operand());
        }
        const Op& op = operator_named(word, place);
        std::vector<Value> args = arguments();
        try {
            if (word.starts_with("ops.")) complete_arguments(op, args);
        } catch (const Error& e) {
            at_.fail_at(place, e.what());
        }
        return graph.add_call(op, std::move(args), {});
    }

    const Op& operator_named(std::string_view name, size_t place) {
        const Op* op = nullptr;
        if (name.starts_with("ops."))
            op = registry().find(name.substr(4));
        else if (vocabulary_.primitives)
            op = vocabulary_.primitives->find(name);
        if (op) return *op;
        std::string message = str("there is no operator '", name, "'");
        if (name.starts_with("ops."))
            for (std::string_view similar : registry().similar(name.substr(4)))
                message += str(message.ends_with("'") ? "; did you mean ops." : ", ops.", similar);
        else if (registry().find(name))
            message += str("; operators on tensors are written ops.", name);
        at_.fail_at(place, message);
    }

    std::vector<Value> arguments() {
        std::vector<Value> args;
        at_.expect("(");
        if (at_.accept(")")) return args;
        do args.push_back(operand());
        while (at_.accept(","));
        at_.expect(")");
        return args;
    }

    Value operand() {
        struct Depth {
            int& depth;
            ~Depth() { --depth; }
        } depth{depth_};
        if (++depth_ > kDeepest) at_.fail("lists are nested too deeply");
        at_.skip_spaces();
        switch (at_.peek()) {
            case '%':
                return used_node();
            case '@': {
                at_.expect("@");
                const size_t place = at_.place();
                Node* node = graph_->add_function(*graph_);
                functions_.push_back({node, label_of(graph_name()), place});
                return Value(node);
            }
            case '"':
                return Value(at_.quoted());
            case '{': {
                at_.expect("{");
                std::vector<Value> items;
                if (at_.accept("}")) return Value::list({});
                do items.push_back(operand());
                while (at_.accept(","));
                at_.expect("}");
                return Value::list(std::move(items));
            }
            default:
                return literal();
        }
    }

    Value used_node() {
        const size_t place = at_.place();
        at_.expect("%");
        const int id = static_cast<int>(at_.integer("the number of a node", 0, kLargestId));
        auto found = nodes_.find(id);
        if (found == nodes_.end()) at_.fail_at(place, str("there is no node %", id, " before this line"));
        if (!found->second->graph().encloses(*graph_))
            at_.fail_at(place, str("%", id, " belongs to graph ", found->second->graph().name,
                                   ", which cannot be seen from here"));
        return Value(found->second);
    }

    Value literal() {
        const size_t place = at_.place();
        if (std::optional<Value> number = plain_number()) return *number;
        const std::string_view word = at_.word();
        if (word == "nil") return {};
        if (word == "true") return Value(true);
        if (word == "false") return Value(false);
        if (std::optional<DType> dtype = parse_dtype(word)) {
            if (at_.peek() != '(') return Value(*dtype);
            return Value(tensor(*dtype));
        }
        if (word == "object") at_.fail_at(place, "an object that has no text form");
        if (vocabulary_.function && !word.empty())
            if (Value function = vocabulary_.function(std::string(word)); !function.is_nil()) return function;
        if (!word.empty()) {
            const Op& op = operator_named(word, place);
            if (vocabulary_.operator_value) return vocabulary_.operator_value(op);
            at_.fail_at(place, "an operator as a value is not known here");
        }
        at_.fail_at(place, "a value expected");
    }

    // An integer, or a float, which has a point or an exponent or is inf or nan.
    std::optional<Value> plain_number() {
        const std::string_view line = at_.rest_of_line();
        const size_t start = line.starts_with("-") ? 1 : 0;
        const std::string_view digits = line.substr(start);
        const bool digit = !digits.empty() && digits[0] >= '0' && digits[0] <= '9';
        if (!digit && !digits.starts_with("inf") && !digits.starts_with("nan")) return std::nullopt;
        const char* end = line.data() + line.size();
        int64_t integer = 0;
        auto whole = std::from_chars(line.data(), end, integer);
        if (digit && (whole.ptr == end || (*whole.ptr != '.' && *whole.ptr != 'e'))) {
            if (whole.ec != std::errc()) at_.fail("the integer does not fit into 64 bits");
            at_.go_to(at_.place() + static_cast<size_t>(whole.ptr - line.data()));
            return Value(integer);
        }
        double number = 0;
        auto real = std::from_chars(line.data(), end, number);
        if (real.ec != std::errc()) at_.fail("the number is out of range");
        at_.go_to(at_.place() + static_cast<size_t>(real.ptr - line.data()));
        return Value(number);
    }

    Shape shape() {
        Shape shape;
        at_.expect("(");
        if (at_.accept(")")) return shape;
        do {
            if (shape.rank() == kMaxRank) at_.fail(str("a tensor has at most ", kMaxRank, " axes"));
            const bool unknown = at_.accept("?");
            shape.push_back(unknown ? kUnknownDim : at_.integer("a size", 0, std::numeric_limits<int64_t>::max()));
        } while (at_.accept(","));
        at_.expect(")");
        return shape;
    }

    Tensor tensor(DType dtype) {
        const size_t place = at_.place();
        const Shape dims = shape();
        at_.expect("{");
        if (at_.accept("...")) at_.fail_at(place, "the elements of the tensor are not in the text");
        if (!dims.known()) at_.fail_at(place, "a tensor without a size");
        std::vector<Value> items;
        if (!at_.accept("}")) {
            do items.push_back(operand());
            while (at_.accept(","));
            at_.expect("}");
        }
        // Compared axis by axis, since the product of the sizes in a text may overflow.
        uint64_t count = 1;
        for (int64_t d : dims)
            if (d == 0) count = 0;
        for (int64_t d : dims)
            if (count && (count = count * static_cast<uint64_t>(d)) > items.size()) break;
        if (count != items.size() || (count == 0 && dims.size() != 0))
            at_.fail_at(place, str("the tensor of shape ", dims, " does not have ", items.size(), " elements"));
        Tensor t = Tensor::empty(dtype, dims);
        for (size_t i = 0; i < items.size(); ++i) set_element(t, i, items[i], place);
        return t;
    }

    void set_element(const Tensor& t, size_t i, const Value& v, size_t place) {
        auto real = [&](const Value& part) {
            if (!part.is_number()) at_.fail_at(place, "an element is no number");
            return part.number();
        };
        visit_stored(t.dtype(), [&](auto tag) {
            using T = typename decltype(tag)::type;
            T& out = t.data<T>()[i];
            if constexpr (kIsComplex<T>) {
                using Part = typename T::value_type;
                if (!v.is_list() || v.items().size() != 2) at_.fail_at(place, "a complex element is {real, imaginary}");
                out = {static_cast<Part>(real(v.items()[0])), static_cast<Part>(real(v.items()[1]))};
            } else if constexpr (std::is_same_v<T, bool>) {
                if (v.kind() != Value::Kind::boolean)
                    at_.fail_at(place, "an element of a bool tensor is true or false");
                out = v.boolean();
            } else if constexpr (std::is_integral_v<T>) {
                // Unsigned integers of 64 bits are written as signed ones.
                if (v.kind() != Value::Kind::integer || (sizeof(T) < 8 && !std::in_range<T>(v.integer())))
                    at_.fail_at(place, str("an element is no ", name_of(t.dtype())));
                out = static_cast<T>(v.integer());
            } else if constexpr (std::is_same_v<T, double>) {
                out = real(v);
            } else {
                out = T(static_cast<float>(real(v)));
            }
        });
    }

    NodeType type(int depth) {
        if (depth > kDeepest) at_.fail("types are nested too deeply");
        if (at_.accept("?")) return {};
        if (at_.accept("{")) {
            std::vector<NodeType> items;
            if (at_.accept("}")) return NodeType::list({});
            do items.push_back(type(depth + 1));
            while (at_.accept(","));
            at_.expect("}");
            return NodeType::list(std::move(items));
        }
        at_.skip_spaces();
        const size_t place = at_.place();
        const std::string_view word = at_.word();
        if (word == "value") return {NodeType::Kind::host, {}, {}};
        std::optional<DType> dtype = parse_dtype(word);
        if (!dtype) at_.fail_at(place, "a type expected");
        return NodeType::of({*dtype, shape()});
    }

    // -- chunk:line
    Span span() {
        if (!at_.accept("--")) return {};
        at_.skip_spaces();
        std::string chunk;
        if (at_.peek() == '"') {
            chunk = at_.quoted();
        } else {
            const std::string_view line = at_.rest_of_line();
            const size_t colon = line.rfind(':');
            if (colon == line.npos) at_.fail("a place such as file.lua:3 expected");
            chunk = line.substr(0, colon);
            at_.go_to(at_.place() + colon);
        }
        at_.expect(":");
        const auto line = static_cast<int>(at_.integer("a line", 1, std::numeric_limits<int>::max()));
        auto& shared = chunks_[chunk];
        if (!shared && chunk != "?") shared = std::make_shared<const std::string>(chunk);
        return {shared, line, 0};
    }

    void resolve() {
        for (const Use& use : functions_) {
            auto found = graphs_.find(use.label);
            if (found == graphs_.end()) at_.fail_at(use.place, str("there is no graph '", use.label, "'"));
            use.node->function = found->second;
        }
        // Graphs as values have no number in the text; their numbers follow those in the text.
        std::unordered_map<const Graph*, int> next;
        for (Graph* top : tops_) next[top] = largest_of(*top) + 1;
        for (const Use& use : functions_) use.node->id = next[&root(use.node->graph())]++;
        for (Graph* top : tops_) top->reserve_ids(next[top]);
    }
    static const Graph& root(const Graph& graph) {
        const Graph* g = &graph;
        while (g->parent) g = g->parent;
        return *g;
    }
    static int largest_of(const Graph& graph) {
        int id = -1;
        for (auto& node : graph.nodes())
            if (!node->function) id = std::max(id, node->id);
        for (auto& inner : graph.inner()) id = std::max(id, largest_of(*inner));
        return id;
    }

    struct Use {
        Node* node;
        std::string label;
        size_t place;
    };
    std::string_view text_;
    const Vocabulary vocabulary_;
    Cursor at_;
    Graph* graph_ = nullptr;
    int depth_ = 0;
    std::unordered_map<std::string, Graph*> graphs_;  // by label
    std::unordered_map<int, Node*> nodes_;            // the nodes of the outermost graph in progress
    std::vector<Graph*> tops_;
    std::vector<Use> functions_;
    std::unordered_map<std::string, std::shared_ptr<const std::string>> chunks_;
};

}  // namespace

ParsedGraph parse(std::string_view text, const Vocabulary& vocabulary, std::string_view name) {
    return Parser(text, vocabulary, name).parse();
}

}  // namespace lunaria::ir
