// A graph grouped in one way, without the nodes of some marks: what is in each group, the edges between the parts of
// each group, and their picture, which is made when the group is first opened. A view is the picture of the groups that
// are open, one inside the other.
#pragma once

#include <map>
#include <memory>
#include <set>

#include "core/insight/graph/layering.h"
#include "core/insight/graph/tree.h"

namespace lunaria::insight {

struct View {
    enum class Kind : uint8_t { node, closed, open };
    struct Item {
        Kind kind;
        int32_t id;      // of the node, or of the group
        int32_t parent;  // the open group's item; -1: the whole graph
        float x, y, width, height;
        std::string label, note;
    };
    struct Edge {
        int32_t from, to;  // items
        Layering::Way way;
        bool is_control;  // all of what the edge stands for
        int32_t count;
        uint32_t start;  // in points, which end where the next edge's begin
    };
    float width = 0, height = 0;
    std::vector<Item> items;  // groups before what is in them
    std::vector<Edge> edges;
    std::vector<float> points;
};

class Scene {
  public:
    // `hidden`: marks. Hidden plumbing is passed through, so that what it joins stays joined.
    Scene(const GraphModel& model, Grouping grouping, uint8_t hidden);

    const GraphModel& model() const { return model_; }
    const Tree& tree() const { return tree_; }
    // The open groups; those inside of closed ones do not count.
    View view(const std::set<int32_t>& open);
    // What a first view has open: groups from the outside in, as long as the picture stays small.
    std::set<int32_t> first_open() const;
    bool is_hidden(int32_t node) const { return (model_.marks(node) & hidden_) != 0; }
    // Where a node is to be seen: its own item, or that of the closed group that it is in; -1: it is hidden.
    std::vector<int32_t> items_of(const View& view) const;

  private:
    // A part of a group: a node, or a group inside, by number from model_.size() on.
    struct Inner {
        int32_t group, from, to;
        bool is_control;
    };
    struct Level {
        std::unique_ptr<Layering> layering;
        std::vector<uint8_t> is_control;  // of its edges
        std::vector<int32_t> counts;
        std::vector<Layering::Size> sizes;  // of the last picture
        Layering::Picture picture;
    };

    int32_t part_of_group(int32_t group) const { return model_.size() + group; }
    void collect_parts();
    void collect_edges();
    void add_edge(int32_t from, int32_t to, bool is_control);
    std::span<const int32_t> parts_of(int32_t group) const {
        return {parts_.data() + part_start_[group], parts_.data() + part_start_[group + 1]};
    }
    Level& level_of(int32_t group);
    Layering::Size size_of(int32_t part, const std::vector<Layering::Size>& open_sizes) const;
    std::string label_of(int32_t part) const;
    std::string note_of(int32_t part) const;
    void emit(const std::vector<int32_t>& shown, const std::vector<uint8_t>& is_open, View& view);

    const GraphModel& model_;
    const Tree tree_;
    const uint8_t hidden_;
    std::vector<uint32_t> part_start_, edge_start_;
    std::vector<int32_t> parts_;    // of each group, in the order of the file
    std::vector<int32_t> place_;    // of each part among those of its group
    std::vector<int32_t> visible_;  // nodes in each group
    std::vector<Inner> edges_;      // by group
    std::map<int32_t, Level> levels_;
};

}  // namespace lunaria::insight
