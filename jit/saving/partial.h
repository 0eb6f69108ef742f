// A value of a program while the program is specialised: known, known in structure only, or unknown.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/ir/graph.h"

namespace lunaria {

struct Structure;

// One of: a known value; a node of the program that is being written, whose value is known when that program runs; a
// function or a list of values whose parts are one of these again.
struct Partial {
    Value value;
    std::shared_ptr<const Structure> structure;

    Partial() = default;
    Partial(Value v) : value(std::move(v)) {}
    static Partial list(std::vector<Partial> items);
    // The values, then those of a list that is not known: the last item.
    static Partial open_list(std::vector<Partial> items);
    static Partial closure(const ir::Graph& graph, std::shared_ptr<const void> owner, std::vector<Partial> captures);

    bool is_known() const { return !structure && !value.is_node(); }
    bool is_node() const { return value.is_node(); }
    bool is_list() const;
    bool is_open_list() const;
    bool is_closure() const;
    const std::vector<Partial>& items() const;
};

struct Structure {
    const ir::Graph* graph = nullptr;  // the graph of a function; null: a list
    std::shared_ptr<const void> owner;
    std::vector<Partial> items;  // items of a list, or values that the function captures
    bool open = false;           // a list whose last item represents further ones
};

// A text that is the same for values that differ only in their nodes. Objects are told apart by their identity.
void append_key(std::string& key, const Partial& p);
std::string key_of(const std::vector<Partial>& values);
// The nodes in the values, in order, and the values with other nodes in their places.
void gather_nodes(const Partial& p, std::vector<Value>& nodes);
Partial with_nodes(const Partial& p, const std::vector<Value>& nodes, size_t& next);
std::vector<Partial> with_nodes(const std::vector<Partial>& values, const std::vector<Value>& nodes);

// Whether writing into a tensor leaves this field of it as it is.
bool is_lasting(const Value& field);

// The results of select and type, where the number and the form of the arguments determine them.
std::optional<std::vector<Partial>> told_by_structure(std::string_view function, const std::vector<Partial>& args);

// The number of ways that lead to each block of a function.
class BlockEntries {
  public:
    bool once(const ir::Graph& function, const ir::Graph& block);

  private:
    std::unordered_map<const ir::Graph*, std::unordered_map<const ir::Graph*, int>> counts_;
};

}  // namespace lunaria
