// The search for repeated parts of one graph: patterns are proposed by growth from every kind of edge that occurs more
// than once, the best are chosen, and what is left is searched again; then each chosen pattern is searched inside.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/insight/growth.h"

namespace lunaria::insight {

// A pattern that was chosen, and the one in whose instances its own ones are; -1: none.
struct Chosen {
    Pattern pattern;
    int32_t parent = -1;
};

class Finder {
  public:
    explicit Finder(const OrderedGraph& graph, int depth = 0);
    std::vector<Chosen> run();

  private:
    // An edge with what makes it equal to others: both labels and the code.
    struct KeyedEdge {
        uint64_t key;
        int32_t user, input;
    };
    struct Kind {
        size_t begin, end;  // in edges_
    };
    // Where a kind of edge occurs in the first instance of a chosen pattern.
    struct Place {
        int32_t chosen;
        Growth::Seed edge;
    };

    uint64_t key_of(int32_t user, const Edge& input) const;
    void collect_edges();
    std::vector<Growth::Seed> seeds_of(const Kind& kind);
    std::vector<Growth::Seed> unexplained(const std::vector<Growth::Seed>& seeds, int32_t least) const;
    void propose();
    void propose(const Kind& kind);
    void add_proposal(Pattern pattern);
    bool choose();
    bool is_fragment(const Pattern& pattern);
    void complete(Pattern& pattern);
    void accept(Pattern pattern);
    void search_inside();

    const OrderedGraph& graph_;
    const int depth_;
    std::vector<uint8_t> taken_;
    Explained explained_;
    Growth growth_;
    std::vector<KeyedEdge> edges_;
    std::vector<Pattern> proposals_;
    std::vector<Chosen> chosen_;
    std::vector<int32_t> representative_;  // for each node, the chosen pattern whose first instance has it; -1: none
    std::unordered_map<uint64_t, std::vector<Place>> places_;
    std::vector<int32_t> wanted_;
};

}  // namespace lunaria::insight
