#include "core/insight/graph/drawing.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace lunaria::insight {

namespace {

struct Colours {
    const char *paper, *ink, *note, *line, *edge;
    const char *node, *gradient, *optimizer, *plumbing, *value, *group, *open;
};
constexpr Colours kLight = {"#ffffff", "#1c2330", "#5c6675", "#8793a3", "#9aa5b4", "#f3f7fc",
                            "#fdf3ea", "#f3eefb", "#f4f4f4", "#eaf6ec", "#e3ecf8", "#fafbfd"};
constexpr Colours kDark = {"#14181f", "#e6eaf0", "#9ba6b5", "#5c6a7d", "#566273", "#222b38",
                           "#3a2c20", "#2f2740", "#24272d", "#1f3325", "#25344a", "#191f28"};

std::string escaped(const std::string& text) {
    std::string result;
    for (const char c : text) {
        if (c == '<')
            result += "&lt;";
        else if (c == '>')
            result += "&gt;";
        else if (c == '&')
            result += "&amp;";
        else if (c == '"')
            result += "&quot;";
        else
            // What XML has no form for.
            result += static_cast<unsigned char>(c) < 32 ? ' ' : c;
    }
    return result;
}

// As many characters as fit, whole ones.
std::string shortened(const std::string& text, float width) {
    size_t most = static_cast<size_t>(std::max(width / 7.2F, 3.0F)), at = 0;
    while (at < text.size()) {
        size_t next = at + 1;
        while (next < text.size() && (text[next] & 0xC0) == 0x80) ++next;
        if (most-- == 1 && next < text.size()) return text.substr(0, at) + "…";
        at = next;
    }
    return text;
}

std::string number(float value) {
    char text[32];
    std::snprintf(text, sizeof text, "%.1f", static_cast<double>(value));
    const size_t size = std::strlen(text);
    if (text[size - 1] == '0') text[size - 2] = 0;
    return text;
}

// Equal parts have equal colours, which differ from one another as far as possible.
std::string colour_of_key(int32_t key, bool dark) {
    const double hue = std::fmod(key * 137.508, 360);
    return str("hsl(", static_cast<int>(hue), dark ? ",35%,26%)" : ",60%,90%)");
}

// From pale to strong, as a part of the largest.
std::string colour_of_heat(double part, bool dark) {
    const int strength = static_cast<int>(std::lround(100 * std::sqrt(std::clamp(part, 0.0, 1.0))));
    return dark ? str("hsl(8,", 20 + strength * 6 / 10, "%,", 16 + strength * 3 / 10, "%)")
                : str("hsl(8,85%,", 96 - strength * 4 / 10, "%)");
}

std::string fill_of(const Scene& scene, const View::Item& item, const DrawOptions& options) {
    const Colours& colours = options.dark ? kDark : kLight;
    const bool is_node = item.kind == View::Kind::node;
    if (item.kind == View::Kind::open) return colours.open;
    if (options.overlay) {
        const double value = (is_node ? options.overlay->nodes : options.overlay->groups)[item.id];
        if (!std::isnan(value) && options.overlay->most > 0)
            return colour_of_heat(value / options.overlay->most, options.dark);
    }
    if (!is_node) {
        const int32_t key = scene.tree().groups[item.id].key;
        return key < 0 ? colours.group : colour_of_key(key, options.dark);
    }
    if (!options.states.empty()) {
        static constexpr const char* light[] = {"", "#fbd5d5", "#cdeed6", "#fdeabf"};
        static constexpr const char* dark[] = {"", "#5a2326", "#1d4a2b", "#57451a"};
        if (const uint8_t state = options.states[item.id]) return (options.dark ? dark : light)[state];
    }
    const uint8_t marks = scene.model().marks(item.id);
    if (marks & (kConstant | kParameter | kInput)) return colours.value;
    if (marks & kOptimizer) return colours.optimizer;
    if (marks & kGradient) return colours.gradient;
    return marks & kPlumbing ? colours.plumbing : colours.node;
}

void draw_edge(const View& view, size_t e, const Colours& colours, std::string& svg) {
    const View::Edge& edge = view.edges[e];
    const uint32_t end =
        e + 1 < view.edges.size() ? view.edges[e + 1].start : static_cast<uint32_t>(view.points.size());
    const auto at = [&](uint32_t p) { return number(view.points[p]) + "," + number(view.points[p + 1]); };
    svg += str("<path d=\"M", at(edge.start));
    // From point to point, upright at each of them.
    for (uint32_t p = edge.start + 2; p < end; p += 2) {
        const float middle = (view.points[p - 1] + view.points[p + 1]) / 2;
        svg += str("C", number(view.points[p - 2]), ",", number(middle), " ", number(view.points[p]), ",",
                   number(middle), " ", at(p));
    }
    const float width = std::min(1 + std::log2(static_cast<float>(edge.count)) / 2, 4.0F);
    svg += str("\" stroke=\"", colours.edge, "\" stroke-width=\"", number(width), "\"");
    if (edge.way != Layering::Way::routed) svg += " stroke-opacity=\"0.35\"";
    if (edge.is_control || edge.way == Layering::Way::back) svg += " stroke-dasharray=\"4 3\"";
    svg += " marker-end=\"url(#tip)\"/>\n";
}

void draw_text(const std::string& text, float x, float y, float width, const char* colour, const char* more,
               std::string& svg) {
    svg += str("<text x=\"", number(x), "\" y=\"", number(y), "\" fill=\"", colour, "\"", more, ">",
               escaped(shortened(text, width)), "</text>\n");
}

void draw_item(const Scene& scene, const View::Item& item, const DrawOptions& options, std::string& svg) {
    const Colours& colours = options.dark ? kDark : kLight;
    const bool is_node = item.kind == View::Kind::node;
    svg += str("<rect x=\"", number(item.x), "\" y=\"", number(item.y), "\" width=\"", number(item.width),
               "\" height=\"", number(item.height), "\" rx=\"", is_node ? 5 : 8, "\" fill=\"",
               fill_of(scene, item, options), "\" stroke=\"", colours.line, "\"><title>",
               escaped(is_node ? scene.model().name_of(item.id) + "\n" + item.label : item.label), "</title></rect>\n");
    if (item.kind == View::Kind::open)
        return draw_text(item.label, item.x + 10, item.y + 18, item.width - 20, colours.ink, " font-weight=\"bold\"",
                         svg);
    const float x = item.x + item.width / 2, width = item.width - 10;
    const bool has_note = !item.note.empty();
    const char* centred = is_node ? " text-anchor=\"middle\"" : " text-anchor=\"middle\" font-weight=\"bold\"";
    draw_text(item.label, x, item.y + item.height / 2 + (has_note ? -3.0F : 4.0F), width, colours.ink, centred, svg);
    if (has_note)
        draw_text(item.note, x, item.y + item.height / 2 + 12, width * 1.2F, colours.note,
                  " text-anchor=\"middle\" font-size=\"10\"", svg);
}

}  // namespace

Overlay overlay_of(const GraphModel& model, const Tree& tree,
                   const std::vector<std::pair<std::string, double>>& numbers) {
    Overlay overlay;
    overlay.nodes.assign(model.size(), NAN);
    overlay.groups.assign(tree.groups.size(), NAN);
    for (const auto& [name, value] : numbers) {
        const auto node = model.find(name);
        if (!node || std::isnan(value)) continue;
        overlay.nodes[*node] = value;
        overlay.most = std::max(overlay.most, value);
        double& group = overlay.groups[tree.group_of[*node]];
        group = std::isnan(group) ? value : group + value;
    }
    for (size_t g = tree.groups.size(); g-- > 1;) {
        const double value = overlay.groups[g];
        double& parent = overlay.groups[tree.groups[g].parent];
        if (!std::isnan(value)) parent = std::isnan(parent) ? value : parent + value;
    }
    return overlay;
}

std::string svg_of(const Scene& scene, const View& view, const DrawOptions& options) {
    const Colours& colours = options.dark ? kDark : kLight;
    const float width = view.width + 28, height = view.height + 28;
    std::string svg = str(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"", number(width), "\" height=\"", number(height),
        "\" viewBox=\"0 0 ", number(width), " ", number(height),
        "\" font-family=\"sans-serif\" font-size=\"12\">\n<defs><marker id=\"tip\" viewBox=\"0 0 6 6\" refX=\"6\" "
        "refY=\"3\" markerWidth=\"6\" markerHeight=\"6\" markerUnits=\"userSpaceOnUse\" orient=\"auto\"><path "
        "d=\"M0,0L6,3L0,6z\" fill=\"",
        colours.edge, "\"/></marker></defs>\n<rect width=\"100%\" height=\"100%\" fill=\"", colours.paper, "\"/>\n");
    // Open groups lie under the edges inside of them.
    for (const View::Item& item : view.items)
        if (item.kind == View::Kind::open) draw_item(scene, item, options, svg);
    svg += "<g fill=\"none\">\n";
    for (size_t e = 0; e < view.edges.size(); ++e) draw_edge(view, e, colours, svg);
    svg += "</g>\n";
    for (const View::Item& item : view.items)
        if (item.kind != View::Kind::open) draw_item(scene, item, options, svg);
    return svg + "</svg>\n";
}

namespace {

class Bytes {
  public:
    template <class T>
    void add(T value) {
        text_.append(reinterpret_cast<const char*>(&value), sizeof value);
    }
    template <class List, class Get>
    void each(const List& list, const Get& get) {
        for (const auto& item : list) add(get(item));
    }
    void text(std::string_view text) { text_ += text; }
    std::string take() && { return std::move(text_); }

  private:
    std::string text_;
};

}  // namespace

std::string bytes_of(const Scene& scene, const View& view) {
    using Item = View::Item;
    using Edge = View::Edge;
    Bytes bytes;
    const auto size = [](const auto& list) { return static_cast<uint32_t>(list.size()); };
    uint32_t text = 0;
    for (const Item& item : view.items) text += size(item.label) + size(item.note);
    bytes.text("LGV1");
    for (const uint32_t n : {size(view.items), size(view.edges), size(view.points), text}) bytes.add(n);
    bytes.add(view.width);
    bytes.add(view.height);
    bytes.add(uint32_t{0});
    bytes.each(view.items, [](const Item& i) { return i.x; });
    bytes.each(view.items, [](const Item& i) { return i.y; });
    bytes.each(view.items, [](const Item& i) { return i.width; });
    bytes.each(view.items, [](const Item& i) { return i.height; });
    bytes.each(view.items, [](const Item& i) { return i.id; });
    bytes.each(view.items, [](const Item& i) { return i.parent; });
    bytes.each(view.items,
               [&](const Item& i) { return i.kind == View::Kind::node ? int32_t{-1} : scene.tree().groups[i.id].key; });
    bytes.each(view.edges, [](const Edge& e) { return e.from; });
    bytes.each(view.edges, [](const Edge& e) { return e.to; });
    bytes.each(view.edges, [](const Edge& e) { return e.count; });
    bytes.each(view.edges, [](const Edge& e) { return e.start; });
    bytes.add(size(view.points));
    bytes.each(view.points, [](float p) { return p; });
    uint32_t at = 0;
    for (const Item& item : view.items) {
        bytes.add(at);
        bytes.add(at + size(item.label));
        at += size(item.label) + size(item.note);
    }
    bytes.add(at);
    bytes.each(view.items, [](const Item& i) { return static_cast<uint8_t>(i.kind); });
    bytes.each(view.items,
               [&](const Item& i) { return i.kind == View::Kind::node ? scene.model().marks(i.id) : uint8_t{0}; });
    bytes.each(view.edges,
               [](const Edge& e) { return static_cast<uint8_t>(static_cast<int>(e.way) + (e.is_control ? 4 : 0)); });
    for (const Item& item : view.items) {
        bytes.text(item.label);
        bytes.text(item.note);
    }
    return std::move(bytes).take();
}

}  // namespace lunaria::insight
