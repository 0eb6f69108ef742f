#include "core/insight/graph/graph_page.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <map>

#include "core/insight/graph/difference.h"
#include "core/io/json.h"

namespace lunaria::insight {

namespace {

constexpr std::array<std::pair<std::string_view, Mark>, 6> kMarkNames = {{{"gradients", kGradient},
                                                                          {"optimizer", kOptimizer},
                                                                          {"plumbing", kPlumbing},
                                                                          {"constants", kConstant},
                                                                          {"parameters", kParameter},
                                                                          {"inputs", kInput}}};
constexpr std::string_view kHidden = "plumbing,constants,parameters";
constexpr std::array<std::string_view, 4> kGroupings = {"scopes", "file", "parts", "none"};
constexpr size_t kMostScenes = 6;
constexpr size_t kMostLinks = 400;  // of a node, in an answer

template <class Use>
void each_word(std::string_view list, const Use& use) {
    while (!list.empty()) {
        const size_t end = std::min(list.find(','), list.size());
        if (end > 0) use(list.substr(0, end));
        list.remove_prefix(std::min(end + 1, list.size()));
    }
}

int32_t number_in(std::string_view text, std::string_view what, int32_t limit) {
    int32_t value = 0;
    const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (problem != std::errc() || end != text.data() + text.size() || value < 0 || value >= limit)
        throw Refusal{404, str("there is no ", what, " '", text, "'")};
    return value;
}

void put_marks(JsonText& json, uint8_t marks) {
    json.key("marks").open('[');
    for (const auto& [name, mark] : kMarkNames)
        if (marks & mark) json.string(name);
    json.close(']');
}

void put_attributes(JsonText& json, const OperatorNode& node) {
    json.key("attributes").open('{');
    for (const auto& [name, value] : node.attributes) json.key(name).string(value);
    json.close('}');
}

// The numbers of a JSON object, by name.
class Numbers final : public JsonEvents {
  public:
    std::vector<std::pair<std::string, double>> numbers;
    void null() override {}
    void boolean(bool) override {}
    void integer(int64_t value) override { number(static_cast<double>(value)); }
    void number(double value) override {
        if (depth_ == 1) numbers.emplace_back(key_, value);
    }
    void string(const std::string&) override {}
    void begin_object() override { ++depth_; }
    void key(const std::string& name) override { key_ = name; }
    void end_object() override { --depth_; }
    void begin_array() override { depth_ += 2; }
    void end_array() override { depth_ -= 2; }

  private:
    std::string key_;
    int depth_ = 0;
};

}  // namespace

GraphPage::GraphPage(OperatorGraph graph, std::string name) : model_(std::move(graph), std::move(name)) {}

Grouping GraphPage::grouping_of(const Question& question) const {
    const std::string by = question.parameter("by").value_or("");
    if (by.empty()) {
        const bool is_small = model_.operators() <= GraphModel::kMostSearched;
        if (model_.has_scopes()) return is_small ? Grouping::scopes : Grouping::file;
        return is_small ? Grouping::parts : Grouping::none;
    }
    const auto found = std::ranges::find(kGroupings, by);
    if (found == kGroupings.end()) throw Refusal{400, str("by is scopes, file, parts or none, got '", by, "'")};
    return static_cast<Grouping>(found - kGroupings.begin());
}

uint8_t GraphPage::hidden_in(const Question& question) const {
    uint8_t hidden = 0;
    each_word(question.parameter("hide").value_or(std::string(kHidden)), [&](std::string_view word) {
        const auto found = std::ranges::find(kMarkNames, word, &std::pair<std::string_view, Mark>::first);
        if (found == kMarkNames.end() && word != "nothing")
            throw Refusal{400, str("there is nothing called '", word, "' to hide")};
        if (found != kMarkNames.end()) hidden |= found->second;
    });
    return hidden;
}

Scene& GraphPage::scene_of(const Question& question) {
    const std::pair key(grouping_of(question), hidden_in(question));
    if (const auto found = scenes_.find(key); found != scenes_.end()) return *found->second;
    if (scenes_.size() >= kMostScenes) scenes_.clear();
    return *(scenes_[key] = std::make_unique<Scene>(model_, key.first, key.second));
}

std::set<int32_t> GraphPage::open_in(const Question& question, Scene& scene) const {
    const std::string open = question.parameter("open").value_or("auto");
    if (open == "auto") return scene.first_open();
    std::set<int32_t> groups;
    const auto count = static_cast<int32_t>(scene.tree().groups.size());
    if (open == "all")
        for (int32_t g = 1; g < count; ++g) groups.insert(groups.end(), g);
    else
        each_word(open, [&](std::string_view word) {
            const size_t dash = word.find('-');
            const int32_t first = number_in(word.substr(0, dash), "group", count);
            const int32_t last =
                dash == std::string_view::npos ? first : number_in(word.substr(dash + 1), "group", count);
            for (int32_t g = first; g <= last; ++g) groups.insert(g);
        });
    return groups;
}

const std::string& GraphPage::shown_scope(int32_t node) const {
    const EqualParts* parts = model_.parts_if_known();
    return parts ? parts->scopes[node] : model_.graph().nodes[node].scope;
}

int32_t GraphPage::node_in(std::string_view text) const { return number_in(text, "node", model_.size()); }

Answer GraphPage::answer(const Question& question) {
    const std::string_view what = question.part(0);
    if (what == "overlay") return overlay(question);
    if (!question.is_reading()) throw Refusal{405, "a graph is only read"};
    if (what.empty()) return about();
    if (what == "view") {
        Answer answer;
        answer.type = "application/octet-stream";
        answer.body = with_view(question, [](const Scene& scene, const View& view) { return bytes_of(scene, view); });
        return answer;
    }
    if (what == "svg") {
        Answer answer;
        answer.type = "image/svg+xml";
        const DrawOptions options{question.parameter("dark").value_or("") == "1", nullptr, {}};
        answer.body =
            with_view(question, [&](const Scene& scene, const View& view) { return svg_of(scene, view, options); });
        answer.headers.emplace_back("Content-Disposition", "attachment; filename=\"graph.svg\"");
        return answer;
    }
    using Ask = Answer (GraphPage::*)(const Question&);
    static constexpr std::array<std::pair<std::string_view, Ask>, 7> kAnswers = {{{"names", &GraphPage::names},
                                                                                  {"nodes", &GraphPage::node},
                                                                                  {"groups", &GraphPage::group},
                                                                                  {"reach", &GraphPage::reach},
                                                                                  {"route", &GraphPage::route},
                                                                                  {"parts", &GraphPage::parts},
                                                                                  {"json", &GraphPage::whole}}};
    const auto found = std::ranges::find(kAnswers, what, &std::pair<std::string_view, Ask>::first);
    if (found == kAnswers.end()) throw Refusal{404, str("a graph has no '", what, "'")};
    return (this->*found->second)(question);
}

Answer GraphPage::about() {
    JsonText json;
    json.open('{').key("name").string(model_.name());
    json.key("operators").number(model_.operators()).key("nodes").number(model_.size());
    json.key("scopes").boolean(model_.has_scopes());
    json.key("by").string(kGroupings[static_cast<size_t>(grouping_of({}))]);
    json.key("hide").string(kHidden);
    json.key("marks").open('{');
    for (const auto& [name, mark] : kMarkNames) {
        int64_t count = 0;
        for (int32_t v = 0; v < model_.size(); ++v) count += (model_.marks(v) & mark) != 0;
        json.key(name).number(count);
    }
    json.close('}').close('}');
    return json_answer(json.take());
}

Answer GraphPage::whole(const Question&) {
    JsonText json;
    json.open('{').key("name").string(model_.name()).key("nodes").open('[');
    for (int32_t v = 0; v < model_.size(); ++v) {
        json.open('{').key("id").number(v).key("name").string(model_.name_of(v));
        json.key("type").string(model_.type_of(v)).key("result").string(model_.result_of(v));
        put_marks(json, model_.marks(v));
        if (model_.is_operator(v)) {
            json.key("scope").string(shown_scope(v)).key("line").string(model_.graph().nodes[v].line);
            put_attributes(json, model_.graph().nodes[v]);
            json.key("inputs").open('[');
            for (const GraphModel::Link& l : model_.inputs(v)) {
                json.open('{').key("id").number(l.node).key("place").number(l.place + 1);
                json.key("control").boolean(l.is_control).close('}');
            }
            json.close(']');
        }
        json.close('}');
    }
    json.close(']').close('}');
    return json_answer(json.take());
}

void GraphPage::put_node(JsonText& json, const Tree& tree, int32_t node) const {
    json.open('{').key("id").number(node).key("name").string(model_.name_of(node));
    json.key("type").string(model_.type_of(node)).key("result").string(model_.result_of(node));
    if (model_.is_operator(node)) json.key("scope").string(shown_scope(node));
    json.key("path").open('[');
    for (const int32_t g : tree.path_to(tree.group_of[node])) json.number(g);
    json.close(']').close('}');
}

Answer GraphPage::names(const Question& question) {
    const auto limit = static_cast<size_t>(question.integer("limit", 100, 1, 10000));
    const std::lock_guard lock(mutex_);
    const Scene& scene = scene_of(question);
    size_t count = 0;
    const auto found = model_.search(question.parameter("q").value_or(""), limit, count);
    JsonText json;
    json.open('{').key("count").number(count).key("nodes").open('[');
    for (const int32_t v : found) put_node(json, scene.tree(), v);
    json.close(']').close('}');
    return json_answer(json.take());
}

Answer GraphPage::node(const Question& question) {
    const int32_t v = node_in(question.part(1));
    const std::lock_guard lock(mutex_);
    const Scene& scene = scene_of(question);
    JsonText json;
    json.open('{').key("node");
    put_node(json, scene.tree(), v);
    put_marks(json, model_.marks(v));
    if (model_.is_operator(v)) {
        const OperatorNode& node = model_.graph().nodes[v];
        put_attributes(json, node);
        json.key("line").string(node.line).key("full_name").string(node.full_name);
        if (shown_scope(v) != node.scope) json.key("scope_in_file").string(node.scope);
        if (const EqualParts* parts = model_.parts_if_known(); parts && parts->of[v].first >= 0) {
            const auto [key, instance] = parts->of[v];
            json.key("equal").open('{').key("key").number(key + 1).key("instance").number(instance + 1);
            json.key("nodes").open('[');
            for (const auto& nodes : parts->found[key].instances) json.number(nodes[parts->place[v]]);
            json.close(']').close('}');
        }
    }
    const auto put_links = [&](std::string_view name, std::span<const GraphModel::Link> links) {
        json.key(name).open('{').key("count").number(links.size()).key("nodes").open('[');
        for (const GraphModel::Link& l : links.first(std::min(links.size(), kMostLinks))) {
            json.open('{').key("place").number(l.place + 1).key("control").boolean(l.is_control).key("node");
            put_node(json, scene.tree(), l.node);
            json.close('}');
        }
        json.close(']').close('}');
    };
    put_links("inputs", model_.inputs(v));
    put_links("users", model_.users(v));
    json.close('}');
    return json_answer(json.take());
}

Answer GraphPage::group(const Question& question) {
    const std::lock_guard lock(mutex_);
    const Scene& scene = scene_of(question);
    const Tree& tree = scene.tree();
    const int32_t g = number_in(question.part(1), "group", static_cast<int32_t>(tree.groups.size()));
    const Tree::Group& group = tree.groups[g];
    std::map<std::string, int64_t> types;
    for (int32_t v = 0; v < model_.operators(); ++v) {
        int32_t at = tree.group_of[v];
        while (at > g) at = tree.groups[at].parent;
        if (at == g) ++types[model_.type_of(v)];
    }
    JsonText json;
    json.open('{').key("id").number(g).key("name").string(group.name).key("operators").number(group.operators);
    json.numbers("path", tree.path_to(g), [](int32_t i) { return i; });
    json.key("types").open('{');
    for (const auto& [type, count] : types) json.key(type).number(count);
    json.close('}');
    if (group.key >= 0) {
        const EqualParts& parts = model_.parts();
        json.key("equal").open('{').key("key").number(group.key + 1).key("label").string(parts.about[group.key].label);
        json.key("instance").number(group.instance + 1);
        json.key("count").number(parts.found[group.key].instances.size()).key("groups").open('[');
        for (size_t i = 1; i < tree.groups.size(); ++i)
            if (tree.groups[i].key == group.key) {
                json.open('{').key("id").number(i).key("name").string(tree.groups[i].name);
                json.numbers("path", tree.path_to(static_cast<int32_t>(i)), [](int32_t k) { return k; }).close('}');
            }
        json.close(']').key("differences").open('[');
        for (const Description::Difference& d : parts.about[group.key].differences) {
            json.open('{').key("node").string(
                model_.name_of(parts.found[group.key].instances[group.instance][d.place]));
            json.key("type").string(model_.type_of(parts.found[group.key].instances[group.instance][d.place]));
            json.key("attribute").string(d.attribute).key("values").open('[');
            for (const std::string& value : d.values) json.string(value);
            json.close(']').close('}');
        }
        json.close(']').close('}');
    }
    json.close('}');
    return json_answer(json.take());
}

Answer GraphPage::reach(const Question& question) {
    const int32_t from = node_in(question.parameter("node").value_or(""));
    const std::string way = question.parameter("way").value_or("up");
    if (way != "up" && way != "down") throw Refusal{400, str("way is up or down, got '", way, "'")};
    const auto reached = model_.reach(from, way == "up");
    return with_view(question, [&](const Scene& scene, const View& view) {
        const std::vector<int32_t> item_of = scene.items_of(view);
        std::set<int32_t> items;
        for (const int32_t v : reached)
            if (item_of[v] >= 0) items.insert(item_of[v]);
        JsonText json;
        json.open('{').key("count").number(reached.size());
        json.numbers("items", items, [](int32_t i) { return i; });
        // The nearest ones by name.
        json.key("nodes").open('[');
        for (size_t i = 0; i < std::min<size_t>(reached.size(), 100); ++i) put_node(json, scene.tree(), reached[i]);
        json.close(']').close('}');
        return json_answer(json.take());
    });
}

Answer GraphPage::route(const Question& question) {
    const int32_t from = node_in(question.parameter("from").value_or(""));
    const int32_t to = node_in(question.parameter("to").value_or(""));
    const std::lock_guard lock(mutex_);
    const Scene& scene = scene_of(question);
    JsonText json;
    json.open('{').key("nodes").open('[');
    for (const int32_t v : model_.route(from, to)) put_node(json, scene.tree(), v);
    json.close(']').close('}');
    return json_answer(json.take());
}

Answer GraphPage::parts(const Question&) {
    const EqualParts& parts = model_.parts();
    JsonText json;
    json.open('{').key("repaired").number(parts.repaired).key("parts").open('[');
    for (size_t k = 0; k < parts.found.size(); ++k) {
        const Substructure& part = parts.found[k];
        json.open('{').key("key").number(k + 1).key("label").string(parts.about[k].label);
        json.key("instances").number(part.instances.size()).key("nodes").number(part.instances[0].size());
        json.key("gain").number(part.gain()).numbers("inside", part.inside, [](int32_t i) { return i + 1; });
        json.numbers("first", part.instances, [](const auto& nodes) { return nodes[0]; });
        json.close('}');
    }
    json.close(']').close('}');
    return json_answer(json.take());
}

Answer GraphPage::overlay(const Question& question) {
    if (question.method != "POST") throw Refusal{405, "numbers to be laid over a graph are posted"};
    Numbers given;
    try {
        read_json(question.body, given);
    } catch (const Error& e) {
        throw Refusal{400, e.what()};
    }
    const std::lock_guard lock(mutex_);
    const Scene& scene = scene_of(question);
    const Overlay overlay = overlay_of(model_, scene.tree(), given.numbers);
    JsonText json;
    size_t known = 0;
    const auto put = [&](std::string_view name, const std::vector<double>& numbers) {
        json.key(name).open('{');
        for (size_t i = 0; i < numbers.size(); ++i)
            if (!std::isnan(numbers[i])) json.key(str(i)).number(numbers[i]);
        json.close('}');
    };
    for (const auto& [name, value] : given.numbers) known += model_.find(name).has_value();
    json.open('{').key("given").number(given.numbers.size()).key("known").number(known);
    json.key("most").number(overlay.most);
    put("nodes", overlay.nodes);
    put("groups", overlay.groups);
    json.close('}');
    return json_answer(json.take());
}

Answer GraphPage::difference(const GraphModel& after) const {
    const GraphDifference d = difference_of(model_, after);
    JsonText json;
    const auto put = [&](const GraphModel& model, int32_t v) {
        json.open('{').key("id").number(v).key("name").string(model.name_of(v));
        json.key("type").string(model.type_of(v)).key("scope").string(model.graph().nodes[v].scope).close('}');
    };
    json.open('{').key("before").string(model_.name()).key("after").string(after.name());
    json.key("same").number(model_.operators() - d.removed.size() - d.changed.size());
    json.key("removed").open('[');
    for (const int32_t v : d.removed) put(model_, v);
    json.close(']').key("added").open('[');
    for (const int32_t v : d.added) put(after, v);
    json.close(']').key("changed").open('[');
    for (const GraphDifference::Change& change : d.changed) {
        json.open('{').key("before");
        put(model_, change.before);
        json.key("after");
        put(after, change.after);
        json.key("values").open('[');
        for (const auto& value : change.values) {
            json.open('{').key("name").string(value.name).key("before").string(value.before);
            json.key("after").string(value.after).close('}');
        }
        json.close(']').close('}');
    }
    json.close(']').close('}');
    return json_answer(json.take());
}

}  // namespace lunaria::insight
