// A graph as its page looks at it: operators and given values as nodes with one numbering, their edges in both
// directions, what kind of work each does, and the equal parts.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/insight/description.h"

namespace lunaria::insight {

// What nodes are for; a view can leave out the nodes of a mark.
enum Mark : uint8_t {
    kGradient = 1,
    kOptimizer = 2,
    kPlumbing = 4,  // passes values on: Load, TupleGetItem, MakeTuple, UpdateState, Depend
    kConstant = 8,
    kParameter = 16,
    kInput = 32,
};

struct EqualParts {
    std::vector<Substructure> found;
    std::vector<Description> about;
    std::vector<std::pair<int32_t, int32_t>>
        of;                      // for each operator, the outermost part and instance that it is in; -1
    std::vector<int32_t> place;  // in that instance
    // Scopes where equal parts show the file's to be wrong: of the same place in another instance.
    std::vector<std::string> scopes;
    size_t repaired = 0;

    // The places in `found`, those with larger instances first: outer ones come before those inside of them.
    std::vector<size_t> outermost_first() const;
};

class GraphModel {
  public:
    struct Link {
        int32_t node;
        int32_t place;  // among the user's inputs
        bool is_control;
    };

    GraphModel(OperatorGraph graph, std::string name);

    const std::string& name() const { return name_; }
    const OperatorGraph& graph() const { return graph_; }
    // Operators come first, in the file's order, then the given values.
    int32_t size() const { return static_cast<int32_t>(marks_.size()); }
    int32_t operators() const { return static_cast<int32_t>(graph_.nodes.size()); }
    bool is_operator(int32_t node) const { return node < operators(); }
    uint8_t marks(int32_t node) const { return marks_[node]; }
    const std::string& name_of(int32_t node) const;
    const std::string& type_of(int32_t node) const;
    const std::string& result_of(int32_t node) const;  // dtype and shape; of a constant its value
    std::span<const Link> inputs(int32_t node) const;
    std::span<const Link> users(int32_t node) const;
    std::optional<int32_t> find(const std::string& name) const;
    bool has_scopes() const { return has_scopes_; }
    // Larger graphs are not searched for equal parts unless that is asked for: the first picture would wait.
    static constexpr int32_t kMostSearched = 30'000;
    // Searched for when they are first asked for.
    const EqualParts& parts() const;
    const EqualParts* parts_if_known() const { return parts_known_ ? parts_.get() : nullptr; }
    // As equal parts repair it.
    const std::string& scope_of(int32_t node) const { return parts().scopes[node]; }

    // Nodes whose name, type or scope has the text, small letters or not: first those with this very name or type.
    std::vector<int32_t> search(const std::string& text, size_t most, size_t& count) const;
    // All nodes from which data or order comes, or to which it goes, nearest first.
    std::vector<int32_t> reach(int32_t node, bool up) const;
    // The shortest way along edges, in their direction or, where there is none, against it; empty: there is none.
    std::vector<int32_t> route(int32_t from, int32_t to) const;

  private:
    void mark();
    void link();
    EqualParts find_parts() const;

    std::string name_;
    OperatorGraph graph_;
    bool has_scopes_ = false;
    std::vector<uint8_t> marks_;
    std::vector<uint32_t> input_start_, user_start_;
    std::vector<Link> inputs_, users_;
    std::vector<int32_t> by_name_;
    mutable std::once_flag parts_once_;
    mutable std::unique_ptr<EqualParts> parts_;
    mutable std::atomic<bool> parts_known_ = false;
};

}  // namespace lunaria::insight
