// A layered picture of boxes and the edges between them: sources at the top, each box below all that it takes from.
// Every pass is linear in boxes and edges but for the sorting of layers, none recurses, and the same graph gives the
// same picture. Layers and the order in them depend on the edges only, so that a box that grows moves others without
// reordering them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace lunaria::insight {

class Layering {
  public:
    struct Edge {
        int32_t from, to;
    };
    // Drawn through the layers between its ends; over many layers, or one of a great many of its source, with its ends
    // only; or upwards, since it closes a cycle.
    enum class Way : uint8_t { routed, distant, back };
    struct Size {
        float width, height;
    };
    struct Picture {
        float width = 0, height = 0;
        std::vector<float> x, y;      // of each box: its left and its upper side
        std::vector<uint32_t> start;  // of each edge: where its points begin, in pairs; and the end of all
        std::vector<float> points;
    };

    // Edges join different boxes, and each pair only once.
    Layering(int32_t boxes, std::vector<Edge> edges);
    Picture place(std::span<const Size> sizes) const;

    const std::vector<Edge>& edges() const { return edges_; }
    Way way(size_t edge) const { return ways_[edge]; }
    // The layer of each box, counted from the first one of its component.
    std::vector<int32_t> layers() const;

  private:
    struct Rows;

    int32_t vertices() const { return static_cast<int32_t>(layer_.size()); }
    std::span<const int32_t> above(int32_t v) const {
        return {above_.data() + above_start_[v], above_.data() + above_start_[v + 1]};
    }
    std::span<const int32_t> below(int32_t v) const {
        return {below_.data() + below_start_[v], below_.data() + below_start_[v + 1]};
    }
    std::vector<int32_t> sorted_boxes();
    void rank(const std::vector<int32_t>& sorted);
    void find_components();
    void add_bends();
    void connect();
    void fill_layers(const std::vector<int32_t>& sorted);
    void reorder();
    void sweep(bool down);
    int64_t crossings() const;
    Rows rows_of(std::span<const Size> sizes) const;
    void settle(const Rows& rows, bool down, std::vector<float>& x) const;
    void settle_row(const Rows& rows, size_t row, bool down, std::vector<float>& x) const;
    void pack(const Rows& rows, std::vector<float>& x, std::vector<float>& y, Picture& picture) const;
    void route(const Rows& rows, const std::vector<float>& x, const std::vector<float>& y, Picture& picture) const;

    int32_t boxes_;
    std::vector<Edge> edges_;  // by source
    std::vector<Way> ways_;
    std::vector<uint32_t> edge_start_;  // of each box's edges
    std::vector<int32_t> rank_;
    std::vector<int32_t> component_;    // of each box
    std::vector<int32_t> first_layer_;  // of each component, and the end of all
    // Vertices are the boxes and, behind them, the places where edges cross a layer (bends).
    std::vector<int32_t> first_bend_;  // of each edge; the bends of an edge follow one another
    std::vector<int32_t> layer_;
    std::vector<uint32_t> above_start_, below_start_;
    std::vector<int32_t> above_, below_;
    std::vector<uint32_t> layer_start_;
    std::vector<int32_t> order_, position_;
};

}  // namespace lunaria::insight
