#include "core/insight/graph/layering.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/base/interrupt.h"

namespace lunaria::insight {

namespace {

// Edges of a source with more users than this, and edges over more layers, would fill the picture with lines; so would
// more bends than this for each box.
constexpr uint32_t kMostUsers = 48;
constexpr int32_t kMostLayers = 12;
constexpr int64_t kMostBends = 3;
// Pictures up to this size get more sweeps, of which the best is kept.
constexpr int32_t kSmall = 3000;

constexpr float kBendWidth = 8, kGapX = 18, kGapY = 34, kShelfGap = 40;
constexpr float kLeastRow = 1600;  // wider rows are wrapped

void sum_up(std::vector<uint32_t>& counts) { std::partial_sum(counts.begin(), counts.end(), counts.begin()); }

}  // namespace

Layering::Layering(int32_t boxes, std::vector<Edge> edges) : boxes_(boxes), edges_(std::move(edges)) {
    std::ranges::sort(edges_,
                      [](const Edge& a, const Edge& b) { return a.from != b.from ? a.from < b.from : a.to < b.to; });
    ways_.assign(edges_.size(), Way::routed);
    edge_start_.assign(boxes + 1, 0);
    for (const Edge& e : edges_) ++edge_start_[e.from + 1];
    sum_up(edge_start_);
    const std::vector<int32_t> sorted = sorted_boxes();
    poll_interrupt();
    rank(sorted);
    find_components();
    add_bends();
    connect();
    fill_layers(sorted);
    poll_interrupt();
    reorder();
}

// The boxes in an order in which only back edges lead to earlier ones: of a search in depth, from its last to its
// first.
std::vector<int32_t> Layering::sorted_boxes() {
    std::vector<int32_t> sorted;
    std::vector<uint8_t> state(boxes_, 0);  // 1: being visited, 2: done
    std::vector<uint8_t> has_input(boxes_, 0);
    for (const Edge& e : edges_) has_input[e.to] = 1;
    struct Visit {
        int32_t box;
        uint32_t next;
    };
    std::vector<Visit> stack;
    const auto visit = [&](int32_t root) {
        if (state[root]) return;
        stack.push_back({root, edge_start_[root + 1]});
        state[root] = 1;
        while (!stack.empty()) {
            Visit& top = stack.back();
            if (top.next == edge_start_[top.box]) {
                state[top.box] = 2;
                sorted.push_back(top.box);
                stack.pop_back();
                continue;
            }
            // From the last edge to the first, so that the first one's target comes first in the end.
            const uint32_t e = --top.next;
            const int32_t to = edges_[e].to;
            if (state[to] == 1) ways_[e] = Way::back;
            if (state[to] != 0) continue;
            state[to] = 1;
            stack.push_back({to, edge_start_[to + 1]});
        }
    };
    sorted.reserve(boxes_);
    for (int32_t v = boxes_; v-- > 0;)
        if (!has_input[v]) visit(v);
    for (int32_t v = 0; v < boxes_; ++v) visit(v);
    std::ranges::reverse(sorted);
    return sorted;
}

void Layering::rank(const std::vector<int32_t>& sorted) {
    rank_.assign(boxes_, 0);
    std::vector<uint8_t> has_input(boxes_, 0);
    for (const int32_t v : sorted)
        for (uint32_t e = edge_start_[v]; e < edge_start_[v + 1]; ++e) {
            if (ways_[e] == Way::back) continue;
            has_input[edges_[e].to] = 1;
            rank_[edges_[e].to] = std::max(rank_[edges_[e].to], rank_[v] + 1);
        }
    // A box without inputs stands above its first user: at the top it would have long edges.
    for (int32_t v = 0; v < boxes_; ++v) {
        if (has_input[v]) continue;
        int32_t least = INT32_MAX;
        for (uint32_t e = edge_start_[v]; e < edge_start_[v + 1]; ++e)
            if (ways_[e] != Way::back) least = std::min(least, rank_[edges_[e].to]);
        if (least != INT32_MAX) rank_[v] = least - 1;
    }
    std::vector<int64_t> bends(kMostLayers + 1, 0);
    const auto span_of = [&](size_t e) { return rank_[edges_[e].to] - rank_[edges_[e].from]; };
    const auto is_fan = [&](size_t e) {
        const int32_t from = edges_[e].from;
        return edge_start_[from + 1] - edge_start_[from] > kMostUsers;
    };
    for (size_t e = 0; e < edges_.size(); ++e)
        if (ways_[e] == Way::routed && span_of(e) <= kMostLayers && !is_fan(e)) bends[span_of(e)] += span_of(e) - 1;
    int32_t most = 1;
    for (int64_t sum = 0; most < kMostLayers; ++most)
        if ((sum += bends[most + 1]) > kMostBends * boxes_ + 1000) break;
    for (size_t e = 0; e < edges_.size(); ++e)
        if (ways_[e] == Way::routed && (span_of(e) > most || is_fan(e))) ways_[e] = Way::distant;
}

// Boxes that are connected have layers of their own; large components come first.
void Layering::find_components() {
    std::vector<int32_t> parent(boxes_);
    std::iota(parent.begin(), parent.end(), 0);
    const auto root_of = [&](int32_t v) {
        while (parent[v] != v) v = parent[v] = parent[parent[v]];
        return v;
    };
    for (const Edge& e : edges_) {
        const int32_t a = root_of(e.from), b = root_of(e.to);
        parent[std::max(a, b)] = std::min(a, b);
    }
    std::vector<int32_t> size(boxes_, 0), depth(boxes_, 0), roots;
    for (int32_t v = 0; v < boxes_; ++v) {
        const int32_t r = root_of(v);
        if (r == v) roots.push_back(v);
        ++size[r];
        depth[r] = std::max(depth[r], rank_[v] + 1);
    }
    std::ranges::stable_partition(roots, [&](int32_t r) { return size[r] > 3; });
    std::vector<int32_t> number(boxes_);
    first_layer_.assign(1, 0);
    for (const int32_t r : roots) {
        number[r] = static_cast<int32_t>(first_layer_.size()) - 1;
        first_layer_.push_back(first_layer_.back() + depth[r]);
    }
    component_.resize(boxes_);
    for (int32_t v = 0; v < boxes_; ++v) component_[v] = number[root_of(v)];
}

void Layering::add_bends() {
    layer_.reserve(boxes_ + edges_.size());
    for (int32_t v = 0; v < boxes_; ++v) layer_.push_back(first_layer_[component_[v]] + rank_[v]);
    first_bend_.resize(edges_.size() + 1);
    for (size_t e = 0; e < edges_.size(); ++e) {
        first_bend_[e] = vertices();
        if (ways_[e] != Way::routed) continue;
        for (int32_t l = layer_[edges_[e].from] + 1; l < layer_[edges_[e].to]; ++l) layer_.push_back(l);
    }
    first_bend_[edges_.size()] = vertices();
}

void Layering::connect() {
    const auto each_segment = [&](const auto& use) {
        for (size_t e = 0; e < edges_.size(); ++e) {
            if (ways_[e] != Way::routed) continue;
            int32_t last = edges_[e].from;
            for (int32_t b = first_bend_[e]; b < first_bend_[e + 1]; ++b) {
                use(last, b);
                last = b;
            }
            use(last, edges_[e].to);
        }
    };
    above_start_.assign(layer_.size() + 1, 0);
    below_start_.assign(layer_.size() + 1, 0);
    each_segment([&](int32_t from, int32_t to) {
        ++below_start_[from + 1];
        ++above_start_[to + 1];
    });
    sum_up(above_start_);
    sum_up(below_start_);
    above_.resize(above_start_.back());
    below_.resize(below_start_.back());
    std::vector<uint32_t> next_above(above_start_.begin(), above_start_.end() - 1);
    std::vector<uint32_t> next_below(below_start_.begin(), below_start_.end() - 1);
    each_segment([&](int32_t from, int32_t to) {
        below_[next_below[from]++] = to;
        above_[next_above[to]++] = from;
    });
}

void Layering::fill_layers(const std::vector<int32_t>& sorted) {
    layer_start_.assign(first_layer_.back() + 1, 0);
    for (const int32_t l : layer_) ++layer_start_[l + 1];
    sum_up(layer_start_);
    order_.resize(layer_.size());
    position_.resize(layer_.size());
    std::vector<uint32_t> next(layer_start_.begin(), layer_start_.end() - 1);
    const auto add = [&](int32_t v) {
        const uint32_t at = next[layer_[v]]++;
        order_[at] = v;
        position_[v] = static_cast<int32_t>(at - layer_start_[layer_[v]]);
    };
    for (const int32_t v : sorted) {
        add(v);
        for (uint32_t e = edge_start_[v]; e < edge_start_[v + 1]; ++e)
            for (int32_t b = first_bend_[e]; b < first_bend_[e + 1]; ++b) add(b);
    }
}

void Layering::reorder() {
    const bool is_small = vertices() <= kSmall;
    std::vector<int32_t> best = order_;
    int64_t least = is_small ? crossings() : 0;
    for (int round = 0; round < (is_small ? 8 : 2) && (!is_small || least > 0); ++round) {
        poll_interrupt();
        sweep(true);
        sweep(false);
        if (!is_small) continue;
        if (const int64_t now = crossings(); now < least) {
            least = now;
            best = order_;
        }
    }
    if (!is_small) return;
    order_ = std::move(best);
    for (size_t l = 0; l + 1 < layer_start_.size(); ++l)
        for (uint32_t i = layer_start_[l]; i < layer_start_[l + 1]; ++i)
            position_[order_[i]] = static_cast<int32_t>(i - layer_start_[l]);
}

// Orders each layer by where the neighbours in the one before are, in the mean.
void Layering::sweep(bool down) {
    struct Keyed {
        float key;
        int32_t position, vertex;
        bool operator<(const Keyed& o) const { return key != o.key ? key < o.key : position < o.position; }
    };
    std::vector<Keyed> keyed;
    const size_t layers = layer_start_.size() - 1;
    for (size_t i = 0; i < layers; ++i) {
        const size_t l = down ? i : layers - 1 - i;
        const uint32_t begin = layer_start_[l], end = layer_start_[l + 1];
        if (end - begin < 2) continue;
        keyed.clear();
        for (uint32_t k = begin; k < end; ++k) {
            const int32_t v = order_[k];
            const auto neighbours = down ? above(v) : below(v);
            float key = static_cast<float>(position_[v]);
            if (!neighbours.empty()) {
                float sum = 0;
                for (const int32_t n : neighbours) sum += static_cast<float>(position_[n]);
                key = sum / static_cast<float>(neighbours.size());
            }
            keyed.push_back({key, position_[v], v});
        }
        std::sort(keyed.begin(), keyed.end());
        for (uint32_t k = begin; k < end; ++k) {
            order_[k] = keyed[k - begin].vertex;
            position_[order_[k]] = static_cast<int32_t>(k - begin);
        }
    }
}

// How many pairs of segments cross: inversions, by a tree of counts.
int64_t Layering::crossings() const {
    int64_t sum = 0;
    std::vector<int32_t> tree, targets;
    for (size_t l = 0; l + 2 < layer_start_.size(); ++l) {
        const size_t width = layer_start_[l + 2] - layer_start_[l + 1];
        tree.assign(width + 1, 0);
        int64_t seen = 0;
        for (uint32_t k = layer_start_[l]; k < layer_start_[l + 1]; ++k) {
            targets.clear();
            for (const int32_t n : below(order_[k])) targets.push_back(position_[n]);
            for (const int32_t t : targets) {
                int64_t before = 0;
                for (int32_t i = t + 1; i > 0; i -= i & -i) before += tree[i];
                sum += seen - before;
            }
            for (const int32_t t : targets)
                for (int32_t i = t + 1; i <= static_cast<int32_t>(width); i += i & -i) ++tree[i];
            seen += static_cast<int64_t>(targets.size());
        }
    }
    return sum;
}

std::vector<int32_t> Layering::layers() const { return rank_; }

// Layers as rows: a layer that is too wide is wrapped into several.
struct Layering::Rows {
    std::vector<uint32_t> start;  // in order_
    std::vector<size_t> first;    // of each component
    std::vector<float> width;     // of vertices
    std::vector<float> height;    // of rows
};

Layering::Rows Layering::rows_of(std::span<const Size> sizes) const {
    Rows rows;
    rows.width.assign(layer_.size(), kBendWidth);
    double area = 0;
    for (int32_t v = 0; v < boxes_; ++v) {
        rows.width[v] = sizes[v].width;
        area += static_cast<double>(sizes[v].width + kGapX) * static_cast<double>(sizes[v].height + kGapY);
    }
    const float widest = std::max(kLeastRow, static_cast<float>(1.5 * std::sqrt(area)));
    size_t component = 0;
    for (size_t l = 0; l + 1 < layer_start_.size(); ++l) {
        while (first_layer_[component] == static_cast<int32_t>(l) && component + 1 < first_layer_.size()) {
            rows.first.push_back(rows.start.size());
            ++component;
        }
        float at = 0, height = 0;
        rows.start.push_back(layer_start_[l]);
        for (uint32_t k = layer_start_[l]; k < layer_start_[l + 1]; ++k) {
            const int32_t v = order_[k];
            if (at > 0 && at + rows.width[v] > widest) {
                rows.height.push_back(height);
                rows.start.push_back(k);
                at = height = 0;
            }
            at += rows.width[v] + kGapX;
            if (v < boxes_) height = std::max(height, sizes[v].height);
        }
        rows.height.push_back(height);
    }
    rows.first.push_back(rows.start.size());
    rows.start.push_back(static_cast<uint32_t>(order_.size()));
    return rows;
}

// The row's centres as near to those of the neighbours as the widths allow: a regression in rising order, in which
// blocks of vertices that touch move together.
void Layering::settle_row(const Rows& rows, size_t row, bool down, std::vector<float>& x) const {
    struct Block {
        double sum, weight;
        uint32_t count;
    };
    static thread_local std::vector<Block> blocks;
    static thread_local std::vector<double> offset;
    blocks.clear();
    offset.clear();
    double at = 0;
    for (uint32_t k = rows.start[row]; k < rows.start[row + 1]; ++k) {
        const int32_t v = order_[k];
        if (!offset.empty())
            at += static_cast<double>(rows.width[order_[k - 1]] + rows.width[v]) / 2 + static_cast<double>(kGapX);
        offset.push_back(at);
        const auto neighbours = down ? above(v) : below(v);
        // Edges that go straight on read best where they are long.
        double weight = v >= boxes_ ? 4 : 1;
        double wanted = static_cast<double>(x[v]);
        if (neighbours.empty())
            weight = 0.1;
        else {
            double sum = 0;
            for (const int32_t n : neighbours) sum += static_cast<double>(x[n]);
            wanted = sum / static_cast<double>(neighbours.size());
        }
        blocks.push_back({(wanted - at) * weight, weight, 1});
        while (blocks.size() > 1) {
            const Block &a = blocks[blocks.size() - 2], &b = blocks.back();
            if (a.sum * b.weight <= b.sum * a.weight) break;
            const Block both{a.sum + b.sum, a.weight + b.weight, a.count + b.count};
            blocks.pop_back();
            blocks.back() = both;
        }
    }
    uint32_t k = rows.start[row];
    for (const Block& b : blocks)
        for (uint32_t i = 0; i < b.count; ++i, ++k)
            x[order_[k]] = static_cast<float>(b.sum / b.weight + offset[k - rows.start[row]]);
}

void Layering::settle(const Rows& rows, bool down, std::vector<float>& x) const {
    const size_t count = rows.start.size() - 1;
    for (size_t i = 0; i < count; ++i) settle_row(rows, down ? i : count - 1 - i, down, x);
}

// The components side by side on shelves; from centres to sides, which begin at 0.
void Layering::pack(const Rows& rows, std::vector<float>& x, std::vector<float>& y, Picture& picture) const {
    const size_t components = rows.first.size() - 1;
    struct Box {
        float left, width, height;
    };
    std::vector<Box> boxes(components);
    double area = 0;
    float widest = kLeastRow;
    for (size_t c = 0; c < components; ++c) {
        float left = INFINITY, right = -INFINITY, height = 0;
        for (size_t r = rows.first[c]; r < rows.first[c + 1]; ++r) {
            const uint32_t begin = rows.start[r], end = rows.start[r + 1];
            if (begin == end) continue;
            left = std::min(left, x[order_[begin]] - rows.width[order_[begin]] / 2);
            right = std::max(right, x[order_[end - 1]] + rows.width[order_[end - 1]] / 2);
            height += (height > 0 ? kGapY : 0) + rows.height[r];
        }
        boxes[c] = {left, right - left, height};
        area += static_cast<double>(right - left + kShelfGap) * static_cast<double>(height + kShelfGap);
        widest = std::max(widest, right - left);
    }
    widest = std::max(widest, static_cast<float>(1.5 * std::sqrt(area)));
    float at = 0, top = 0, shelf = 0;
    for (size_t c = 0; c < components; ++c) {
        if (at > 0 && at + boxes[c].width > widest) {
            top += shelf + kShelfGap;
            at = shelf = 0;
        }
        float row_top = top;
        for (size_t r = rows.first[c]; r < rows.first[c + 1]; ++r) {
            for (uint32_t k = rows.start[r]; k < rows.start[r + 1]; ++k) {
                x[order_[k]] += at - boxes[c].left;
                y[order_[k]] = row_top + rows.height[r] / 2;
            }
            row_top += rows.height[r] + kGapY;
        }
        picture.width = std::max(picture.width, at + boxes[c].width);
        at += boxes[c].width + (boxes[c].width < 400 ? kGapX : kShelfGap);
        shelf = std::max(shelf, boxes[c].height);
    }
    picture.height = top + shelf;
}

void Layering::route(const Rows& rows, const std::vector<float>& x, const std::vector<float>& y,
                     Picture& picture) const {
    // Ends are spread over the lower side of the source and the upper side of the target.
    std::vector<uint32_t> in_count(boxes_, 0), in_next(boxes_, 0);
    for (size_t e = 0; e < edges_.size(); ++e) in_count[edges_[e].to] += ways_[e] == Way::routed;
    const auto port = [&](int32_t v, uint32_t i, uint32_t count) {
        const float width = std::min(rows.width[v] * 0.6F, 14 * static_cast<float>(count - 1));
        return x[v] + (count > 1 ? width * (static_cast<float>(i) / static_cast<float>(count - 1) - 0.5F) : 0);
    };
    // The edges of a target in the order in which they arrive from left to right.
    std::vector<uint32_t> arrival(edges_.size(), 0);
    std::vector<size_t> by_place;
    for (size_t e = 0; e < edges_.size(); ++e)
        if (ways_[e] == Way::routed) by_place.push_back(e);
    const auto last_of = [&](size_t e) {
        return first_bend_[e + 1] > first_bend_[e] ? first_bend_[e + 1] - 1 : edges_[e].from;
    };
    std::ranges::sort(by_place, [&](size_t a, size_t b) {
        if (edges_[a].to != edges_[b].to) return edges_[a].to < edges_[b].to;
        const float xa = x[last_of(a)], xb = x[last_of(b)];
        return xa != xb ? xa < xb : a < b;
    });
    for (const size_t e : by_place) arrival[e] = in_next[edges_[e].to]++;
    picture.start.reserve(edges_.size() + 1);
    for (size_t e = 0; e < edges_.size(); ++e) {
        picture.start.push_back(static_cast<uint32_t>(picture.points.size()));
        const auto add = [&](float px, float py) {
            picture.points.push_back(px);
            picture.points.push_back(py);
        };
        const auto [from, to] = edges_[e];
        add(x[from], 0);
        for (int32_t b = first_bend_[e]; b < first_bend_[e + 1]; ++b) add(x[b], y[b]);
        add(ways_[e] == Way::routed ? port(to, arrival[e], in_count[to]) : x[to], 0);
    }
    picture.start.push_back(static_cast<uint32_t>(picture.points.size()));
}

Layering::Picture Layering::place(std::span<const Size> sizes) const {
    Picture picture;
    const Rows rows = rows_of(sizes);
    std::vector<float> x(layer_.size()), y(layer_.size());
    for (size_t r = 0; r + 1 < rows.start.size(); ++r) {
        float width = 0;
        for (uint32_t k = rows.start[r]; k < rows.start[r + 1]; ++k) width += rows.width[order_[k]] + kGapX;
        float at = -width / 2;
        for (uint32_t k = rows.start[r]; k < rows.start[r + 1]; ++k) {
            x[order_[k]] = at + (rows.width[order_[k]] + kGapX) / 2;
            at += rows.width[order_[k]] + kGapX;
        }
    }
    for (int round = 0; round < (vertices() <= kSmall ? 4 : 2); ++round) {
        poll_interrupt();
        settle(rows, true, x);
        settle(rows, false, x);
    }
    settle(rows, true, x);
    pack(rows, x, y, picture);
    route(rows, x, y, picture);
    picture.x.resize(boxes_);
    picture.y.resize(boxes_);
    for (int32_t v = 0; v < boxes_; ++v) {
        picture.x[v] = x[v] - sizes[v].width / 2;
        picture.y[v] = y[v] - sizes[v].height / 2;
    }
    for (size_t e = 0; e < edges_.size(); ++e) {
        const auto [from, to] = edges_[e];
        picture.points[picture.start[e] + 1] = picture.y[from] + sizes[from].height;
        picture.points[picture.start[e + 1] - 1] = picture.y[to];
    }
    return picture;
}

}  // namespace lunaria::insight
