#include "core/insight/graph/scene.h"

#include <algorithm>
#include <numeric>

#include "core/base/interrupt.h"

namespace lunaria::insight {

namespace {

constexpr float kPad = 14, kHead = 28, kNodeHeight = 26, kNoted = 40, kGroupHeight = 44;
constexpr float kCharacter = 7.2F, kLeastWidth = 56, kMostWidth = 250;
// A tuple of more values stays, hidden or not: each of its users would be joined with each of them.
constexpr size_t kMostPassed = 16;

size_t characters(const std::string& text) {
    return static_cast<size_t>(std::ranges::count_if(text, [](char c) { return (c & 0xC0) != 0x80; }));
}

// Hidden nodes between visible ones: what each stands for.
class Passages {
  public:
    Passages(const GraphModel& model, uint8_t hidden) : model_(model), hidden_(hidden), source_(model.size()) {
        std::iota(source_.begin(), source_.end(), 0);
        for (int32_t v = 0; v < model.operators(); ++v)
            if (is_passage(v) && !is_tuple(v)) {
                const auto inputs = model.inputs(v);
                source_[v] = model.type_of(v) == "UpdateState" || inputs.empty() ? -1 : inputs[0].node;
            }
    }

    // Calls use(node) for the visible nodes whose values a node has; at most kMostPassed.
    template <class Use>
    void each(int32_t node, const Use& use) {
        queue_.assign(1, node);
        for (size_t i = 0; i < queue_.size() && i < 4 * kMostPassed; ++i) {
            const int32_t v = behind(queue_[i]);
            if (v < 0) continue;
            if ((model_.marks(v) & hidden_) == 0) {
                use(v);
            } else if (is_passage(v) && is_tuple(v)) {
                for (const GraphModel::Link& l : model_.inputs(v))
                    if (queue_.size() < kMostPassed) queue_.push_back(l.node);
            }
        }
    }

  private:
    bool is_passage(int32_t v) const { return (model_.marks(v) & hidden_ & kPlumbing) != 0; }
    bool is_tuple(int32_t v) const {
        const std::string& type = model_.type_of(v);
        return type == "MakeTuple" || type == "make_tuple" || type == "Return";
    }
    // The end of a chain of passages; chains are shortened on the way, and cycles end.
    int32_t behind(int32_t v) {
        int32_t steps = 0;
        while (v >= 0 && source_[v] != v && steps++ <= model_.size()) {
            const int32_t next = source_[v];
            if (next >= 0) source_[v] = source_[next];
            v = next;
        }
        return steps > model_.size() ? -1 : v;
    }

    const GraphModel& model_;
    const uint8_t hidden_;
    std::vector<int32_t> source_;
    std::vector<int32_t> queue_;
};

}  // namespace

Scene::Scene(const GraphModel& model, Grouping grouping, uint8_t hidden)
    : model_(model), tree_(tree_of(model, grouping)), hidden_(hidden) {
    collect_parts();
    poll_interrupt();
    collect_edges();
}

void Scene::collect_parts() {
    const size_t groups = tree_.groups.size();
    visible_.assign(groups, 0);
    part_start_.assign(groups + 1, 0);
    // The first node of each group is its place in the order.
    std::vector<int32_t> first(groups, -1);
    for (int32_t v = 0; v < model_.size(); ++v) {
        if (is_hidden(v)) continue;
        const int32_t group = tree_.group_of[v];
        ++part_start_[group + 1];
        ++visible_[group];
        for (int32_t g = group; g > 0 && first[g] < 0; g = tree_.groups[g].parent) {
            first[g] = v;
            ++part_start_[tree_.groups[g].parent + 1];
        }
    }
    for (size_t g = groups; g-- > 1;) visible_[tree_.groups[g].parent] += visible_[g];
    std::partial_sum(part_start_.begin(), part_start_.end(), part_start_.begin());
    parts_.resize(part_start_.back());
    place_.assign(model_.size() + groups, -1);
    std::vector<uint32_t> next(part_start_.begin(), part_start_.end() - 1);
    const auto add = [&](int32_t group, int32_t part) {
        place_[part] = static_cast<int32_t>(next[group] - part_start_[group]);
        parts_[next[group]++] = part;
    };
    std::vector<int32_t> path;
    for (int32_t v = 0; v < model_.size(); ++v) {
        if (is_hidden(v)) continue;
        path.clear();
        for (int32_t g = tree_.group_of[v]; g > 0 && first[g] == v; g = tree_.groups[g].parent) path.push_back(g);
        while (!path.empty()) {
            add(tree_.groups[path.back()].parent, part_of_group(path.back()));
            path.pop_back();
        }
        add(tree_.group_of[v], v);
    }
}

// An edge belongs to the innermost group that has both ends, and joins two of its parts.
void Scene::add_edge(int32_t from, int32_t to, bool is_control) {
    int32_t a = from, b = to, ga = tree_.group_of[from], gb = tree_.group_of[to];
    while (ga != gb) {
        const bool is_a = tree_.groups[ga].depth >= tree_.groups[gb].depth;
        int32_t &part = is_a ? a : b, &group = is_a ? ga : gb;
        part = part_of_group(group);
        group = tree_.groups[group].parent;
    }
    if (a != b) edges_.push_back({ga, place_[a], place_[b], is_control});
}

void Scene::collect_edges() {
    Passages passages(model_, hidden_);
    for (int32_t v = 0; v < model_.operators(); ++v) {
        if (is_hidden(v)) continue;
        for (const GraphModel::Link& l : model_.inputs(v))
            passages.each(l.node, [&](int32_t from) { add_edge(from, v, l.is_control); });
    }
    std::ranges::sort(edges_, [](const Inner& a, const Inner& b) {
        if (a.group != b.group) return a.group < b.group;
        return a.from != b.from ? a.from < b.from : a.to < b.to;
    });
    edge_start_.assign(tree_.groups.size() + 1, 0);
    for (const Inner& e : edges_) ++edge_start_[e.group + 1];
    std::partial_sum(edge_start_.begin(), edge_start_.end(), edge_start_.begin());
}

Scene::Level& Scene::level_of(int32_t group) {
    const auto [found, is_new] = levels_.try_emplace(group);
    Level& level = found->second;
    if (!is_new && level.layering) return level;
    std::vector<Layering::Edge> edges;
    for (uint32_t e = edge_start_[group]; e < edge_start_[group + 1]; ++e) {
        const Inner& inner = edges_[e];
        if (edges.empty() || edges.back().from != inner.from || edges.back().to != inner.to) {
            edges.push_back({inner.from, inner.to});
            level.is_control.push_back(1);
            level.counts.push_back(0);
        }
        level.is_control.back() &= inner.is_control;
        ++level.counts.back();
    }
    level.layering = std::make_unique<Layering>(static_cast<int32_t>(parts_of(group).size()), std::move(edges));
    return level;
}

std::string Scene::label_of(int32_t part) const {
    if (part >= model_.size()) return tree_.groups[part - model_.size()].name;
    if (model_.marks(part) & (kInput | kParameter)) return model_.name_of(part);
    return model_.type_of(part);
}

std::string Scene::note_of(int32_t part) const {
    if (part < model_.size()) return model_.result_of(part);
    const int32_t g = part - model_.size();
    const Tree::Group& group = tree_.groups[g];
    const std::string count = str(visible_[g], visible_[g] == 1 ? " node" : " nodes");
    if (group.key < 0) return count;
    return str(count, ", ", group.instance + 1, " of ", model_.parts().found[group.key].instances.size(), " equal");
}

Layering::Size Scene::size_of(int32_t part, const std::vector<Layering::Size>& open_sizes) const {
    if (part >= model_.size())
        if (const Layering::Size& open = open_sizes[part - model_.size()]; open.width > 0) return open;
    const std::string note = note_of(part);
    const auto characters_wide = static_cast<float>(std::max(characters(label_of(part)), characters(note) * 5 / 6));
    const float width = std::clamp(kCharacter * characters_wide + 22, kLeastWidth, kMostWidth);
    if (part >= model_.size()) return {std::max(width, 96.0F), kGroupHeight};
    return {width, note.empty() ? kNodeHeight : kNoted};
}

View Scene::view(const std::set<int32_t>& open) {
    const size_t groups = tree_.groups.size();
    std::vector<uint8_t> is_open(groups, 0);
    std::vector<int32_t> shown{0};
    is_open[0] = 1;
    for (const int32_t g : open)
        if (g > 0 && g < static_cast<int32_t>(groups) && is_open[tree_.groups[g].parent] && visible_[g] > 0) {
            is_open[g] = 1;
            shown.push_back(g);
        }
    std::vector<Layering::Size> open_sizes(groups, {0, 0});
    std::vector<Layering::Size> sizes;
    for (size_t i = shown.size(); i-- > 0;) {
        poll_interrupt();
        const int32_t group = shown[i];
        Level& level = level_of(group);
        sizes.clear();
        for (const int32_t part : parts_of(group)) sizes.push_back(size_of(part, open_sizes));
        const auto is_same = [](const Layering::Size& a, const Layering::Size& b) {
            return a.width == b.width && a.height == b.height;
        };
        if (!std::ranges::equal(sizes, level.sizes, is_same)) {
            level.picture = level.layering->place(sizes);
            level.sizes = sizes;
        }
        const float title = kCharacter * static_cast<float>(characters(tree_.groups[group].name)) + 60;
        open_sizes[group] = {std::max(level.picture.width, std::min(title, kMostWidth)) + 2 * kPad,
                             level.picture.height + kHead + kPad};
    }
    View view;
    view.width = open_sizes[0].width;
    view.height = open_sizes[0].height;
    emit(shown, is_open, view);
    return view;
}

void Scene::emit(const std::vector<int32_t>& shown, const std::vector<uint8_t>& is_open, View& view) {
    std::vector<int32_t> item_of_group(tree_.groups.size(), -1);
    std::vector<int32_t> items;
    for (const int32_t group : shown) {
        const Level& level = level_of(group);
        const int32_t parent = item_of_group[group];
        const float left = parent < 0 ? kPad : view.items[parent].x + kPad;
        const float top = parent < 0 ? kPad : view.items[parent].y + kHead;
        items.clear();
        const auto parts = parts_of(group);
        for (size_t i = 0; i < parts.size(); ++i) {
            const int32_t part = parts[i];
            const auto index = static_cast<int32_t>(view.items.size());
            items.push_back(index);
            View::Item& item = view.items.emplace_back();
            const bool is_group = part >= model_.size();
            item.kind = !is_group                            ? View::Kind::node
                        : is_open[part - model_.size()] != 0 ? View::Kind::open
                                                             : View::Kind::closed;
            item.id = is_group ? part - model_.size() : part;
            if (is_group) item_of_group[item.id] = index;
            item.parent = parent;
            item.x = left + level.picture.x[i];
            item.y = top + level.picture.y[i];
            item.width = level.sizes[i].width;
            item.height = level.sizes[i].height;
            item.label = label_of(part);
            item.note = note_of(part);
        }
        const auto& edges = level.layering->edges();
        for (size_t e = 0; e < edges.size(); ++e) {
            view.edges.push_back({items[edges[e].from], items[edges[e].to], level.layering->way(e),
                                  level.is_control[e] != 0, level.counts[e],
                                  static_cast<uint32_t>(view.points.size())});
            for (uint32_t p = level.picture.start[e]; p < level.picture.start[e + 1]; p += 2) {
                view.points.push_back(level.picture.points[p] + left);
                view.points.push_back(level.picture.points[p + 1] + top);
            }
        }
    }
}

std::set<int32_t> Scene::first_open() const {
    constexpr size_t kMost = 40, kMostOfOne = 5000;
    std::set<int32_t> open;
    size_t items = parts_of(0).size();
    std::vector<int32_t> groups{0};
    for (size_t i = 0; i < groups.size(); ++i)
        for (const int32_t part : parts_of(groups[i])) {
            if (part < model_.size()) continue;
            const int32_t group = part - model_.size();
            // One of equal parts shows them all.
            if (tree_.groups[group].key >= 0 && tree_.groups[group].instance > 0) continue;
            // A group that is all there is says nothing while it is closed.
            const bool is_alone = parts_of(groups[i]).size() == 1 && parts_of(group).size() <= kMostOfOne;
            if (!is_alone && items + parts_of(group).size() > kMost) continue;
            items += parts_of(group).size();
            open.insert(group);
            groups.push_back(group);
        }
    return open;
}

std::vector<int32_t> Scene::items_of(const View& view) const {
    std::vector<int32_t> item_of_group(tree_.groups.size(), -1), item_of(model_.size(), -1);
    for (size_t i = 0; i < view.items.size(); ++i) {
        const View::Item& item = view.items[i];
        (item.kind == View::Kind::node ? item_of : item_of_group)[item.id] = static_cast<int32_t>(i);
    }
    // A closed group stands for all that is in it; open ones are no place for a node.
    for (size_t g = 1; g < tree_.groups.size(); ++g) {
        int32_t& item = item_of_group[g];
        if (item < 0) item = item_of_group[tree_.groups[g].parent];
    }
    for (int32_t v = 0; v < model_.size(); ++v)
        if (item_of[v] < 0 && !is_hidden(v)) item_of[v] = item_of_group[tree_.group_of[v]];
    return item_of;
}

}  // namespace lunaria::insight
