// The pages' interface, below v1/lunaria.
#include <algorithm>

#include "core/insight/answers/answers.h"
#include "core/insight/answers/graphs.h"
#include "core/insight/answers/importance.h"
#include "core/insight/answers/machine.h"
#include "core/insight/answers/profiles.h"
#include "core/insight/answers/records.h"
#include "core/insight/store/curve.h"
#include "core/io/json_text.h"

namespace lunaria::insight {

namespace {

constexpr double kLive = 60;  // s: a run is live while its files were written since then
// Of a stream of events: one wait, and after how many without news it tells that the connection is in use.
constexpr auto kOwnApiWait = std::chrono::seconds(1);
constexpr int kWaits = 5;

double now() { return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count(); }

void put_run(JsonText& json, const Run& run) {
    json.open('{').key("id").string(run.id).key("name").string(run.name);
    json.key("first").number(run.first_wall()).key("last").number(run.last_wall());
    json.key("steps").number(std::max<int64_t>(run.last_step(), 0));
    json.key("kinds").open('{');
    for (size_t k = 0; k < kKinds; ++k) {
        const auto kind = static_cast<Kind>(k);
        if (kind == Kind::hparams || kind == Kind::other) continue;
        json.key(kKindNames[k]).number(run.tags(kind).size());
    }
    size_t graphs = run.graph_files.size();
    for (const auto& file : run.events) graphs += file->has_graph();
    json.key("embeddings")
        .number(0)
        .key("graphs")
        .number(graphs)
        .key("profiles")
        .number(count_of_profiles(run))
        .close('}');
    json.key("hyper").raw(dumped(hyper_of(run.lineage)));
    json.key("metrics").raw(dumped(metrics_of(run.lineage)));
    json.key("data").raw(dumped(data_of(run.lineage)));
    json.key("notes").string(run.annotation.notes).key("labels").open('[');
    for (const std::string& label : run.annotation.labels) json.string(label);
    json.close(']').key("live").boolean(now() - run.changed < kLive);
    json.key("problems").open('[');
    for (const auto& file : run.events)
        if (!file->problem().empty()) json.string(file->problem());
    json.close(']').close('}');
}

Answer runs(const Store& store) {
    JsonText json;
    const auto view = store.view();
    json.open('{').key("version").number(view.version()).key("runs").open('[');
    std::vector<const Run*> sorted;
    for (const auto& [id, run] : view.runs()) sorted.push_back(&run);
    std::ranges::sort(sorted, {}, [](const Run* run) { return run->name; });
    for (const Run* run : sorted) put_run(json, *run);
    json.close(']').close('}');
    return json_answer(json.take());
}

Answer one_run(const Store& store, std::string_view id) {
    JsonText json;
    const auto view = store.view();
    put_run(json, run_of(view, id));
    return json_answer(json.take());
}

// {"notes"?: text, "labels"?: [text]}
Answer annotate(Store& store, const Question& question) {
    const std::string id(question.part(1));
    const Json wanted = parsed_json(question.body);
    const auto is_text = [](const Json& json) { return json.is_string(); };
    const bool fine =
        wanted.is_object() && (!wanted.contains("notes") || wanted["notes"].is_string()) &&
        (!wanted.contains("labels") || (wanted["labels"].is_array() && std::ranges::all_of(wanted["labels"], is_text)));
    if (!fine) throw Refusal{400, "the content must be {\"notes\": text, \"labels\": [text, ...]}"};
    run_of(store.view(), id);
    store.annotate(id, [&](Annotation& annotation) {
        if (wanted.contains("notes")) annotation.notes = wanted["notes"];
        if (wanted.contains("labels")) annotation.labels = wanted["labels"].get<std::vector<std::string>>();
    });
    return one_run(store, id);
}

template <class Named>
void put_tags(JsonText& json, const Run& run, Kind kind, Named about) {
    json.key(kKindNames[static_cast<size_t>(kind)]).open('[');
    for (const std::string& tag : run.tags(kind)) {
        uint64_t count = 0;
        int64_t first = 0, last = 0;
        about(tag, [&](uint64_t n, int64_t from, int64_t to) {
            first = count == 0 ? from : std::min(first, from);
            last = count == 0 ? to : std::max(last, to);
            count += n;
        });
        json.open('{').key("id").string(id_of(tag)).key("name").string(tag).key("count").number(count);
        json.key("first_step").number(first).key("last_step").number(last).close('}');
    }
    json.close(']');
}

Answer tags(const Store& store, std::string_view id) {
    JsonText json;
    const auto view = store.view();
    const Run& run = run_of(view, id);
    json.open('{');
    put_tags(json, run, Kind::scalar, [&](const std::string& tag, auto add) {
        for (const auto& [file, series] : run.scalars(tag))
            add(series->size(), series->stretches().front().first_step, series->stretches().back().high_step);
    });
    for (size_t k = 1; k < kKinds; ++k) {
        const auto kind = static_cast<Kind>(k);
        if (kind == Kind::hparams || kind == Kind::other) continue;
        put_tags(json, run, kind, [&](const std::string& tag, auto add) {
            for (const auto& [file, items] : run.items(kind, tag))
                add(items->size(), items->front().step, items->back().step);
        });
    }
    json.close('}');
    return json_answer(json.take());
}

// The earliest time of a tag, from which relative times are counted.
double begin_of(const Run& run, std::string_view tag) {
    double begin = std::numeric_limits<double>::infinity();
    for (const auto& [file, series] : run.scalars(tag))
        for (const Stretch& s : series->stretches()) begin = std::min(begin, s.low_wall);
    return begin;
}

Window window_of(const Run& run, std::string_view tag, const Question& question) {
    const std::string axis = question.parameter("axis").value_or("step");
    if (axis != "step" && axis != "wall" && axis != "relative")
        throw Refusal{400, "axis is step, wall or relative, got '" + axis + "'"};
    Window window;
    window.axis = axis == "step" ? Axis::step : Axis::wall;
    const double begin = axis == "relative" ? begin_of(run, tag) : 0;
    window.from = question.number("from", window.from) + begin;
    window.to = question.number("to", window.to) + begin;
    return window;
}

Answer csv_of(const Run& run, const std::string& tag, const Window& window) {
    Answer answer;
    answer.type = "text/csv; charset=utf-8";
    answer.headers.emplace_back("Content-Disposition", "attachment; filename=\"scalars.csv\"");
    std::string& text = answer.body;
    text = "step,wall_time,value\n";
    const auto put = [&](auto value, char after) {
        char digits[40];
        text.append(digits, std::to_chars(digits, digits + sizeof digits, value).ptr);
        text += after;
    };
    for_points(run, tag, window, [&](const std::vector<Point>& points) {
        for (const Point& p : points) {
            put(p.step, ',');
            put(p.wall, ',');
            put(p.value, '\n');
        }
    });
    return answer;
}

Answer scalars(const Store& store, const Question& question) {
    constexpr int64_t kMostPoints = 1'000'000;
    const int64_t points = question.integer("points", 2000, 1, kMostPoints);
    const auto view = store.view();
    const Run& run = run_of(view, question.part(1));
    const std::string tag = tag_of(run, Kind::scalar, question.part(3));
    const Window window = window_of(run, tag, question);
    if (question.parameter("format") == "csv") return csv_of(run, tag, window);
    const Curve curve = curve_of(run, tag, window, static_cast<uint64_t>(points));
    JsonText json;
    json.open('{').key("count").number(curve.count).key("exact").boolean(curve.is_exact);
    if (curve.is_exact) {
        json.numbers("step", curve.points, [](const Point& p) { return p.step; });
        json.numbers("wall", curve.points, [](const Point& p) { return p.wall; });
        json.numbers("value", curve.points, [](const Point& p) { return p.value; });
    } else {
        constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
        const auto known = [](const Stretch& s, double value) { return s.nan < s.count ? value : kNone; };
        const auto& list = curve.stretches;
        json.numbers("step", list, [](const Stretch& s) { return s.first_step; });
        json.numbers("wall", list, [](const Stretch& s) { return s.first_wall; });
        json.numbers("min", list, [&](const Stretch& s) { return known(s, s.min); });
        json.numbers("max", list, [&](const Stretch& s) { return known(s, s.max); });
        json.numbers("first", list, [](const Stretch& s) { return s.first; });
        json.numbers("last", list, [](const Stretch& s) { return s.last; });
        json.numbers("mean", list,
                     [&](const Stretch& s) { return known(s, s.sum / static_cast<double>(s.count - s.nan)); });
        json.numbers("n", list, [](const Stretch& s) { return s.count; });
        json.numbers("nan", list, [](const Stretch& s) { return s.nan; });
    }
    json.close('}');
    return json_answer(json.take());
}

Answer lineage(const Store& store, std::string_view id) {
    const auto view = store.view();
    const Run& run = run_of(view, id);
    const Lineage& l = run.lineage;
    const auto part = [](const Json& json, const char* name) {
        return json.is_object() && json.contains(name) ? json[name] : Json();
    };
    const Json algorithm = part(l.train, "algorithm");
    Json json = {{"hyper", hyper_of(l)},
                 {"train_dataset", part(l.train, "train_dataset")},
                 {"valid_dataset", part(l.evaluation, "valid_dataset")},
                 {"network", part(algorithm, "network")},
                 {"loss", part(algorithm, "loss")},
                 {"model", part(l.train, "model")},
                 {"metrics", metrics_of(l)},
                 {"user", l.user},
                 {"dataset_graph", dataset_graph_of(l)}};
    return json_answer(dumped(json));
}

// How much each setting matters for a result, the most important first.
Answer importance(const Store& store, const Question& question) {
    const auto view = store.view();
    std::vector<const Run*> runs;
    for (const auto& [id, run] : view.runs())
        if (!run.lineage.empty()) runs.push_back(&run);
    const Table table = table_of(runs);
    const std::string target =
        question.parameter("target").value_or(table.metrics.empty() ? "" : table.metrics.begin()->first);
    JsonText json;
    json.open('{').key("target").string(target).key("targets").open('[');
    for (const auto& [name, column] : table.metrics) json.string(name);
    json.close(']').key("rows").open('[');
    const auto results = table.metrics.find(target);
    if (results == table.metrics.end() && !target.empty()) throw Refusal{404, "no run has such a result"};
    std::vector<std::pair<std::string, Importance>> rows;
    if (results != table.metrics.end())
        for (const auto& [name, column] : table.hyper)
            if (const Importance i = importance_of(column, results->second); i.n >= Importance::kFewest)
                rows.emplace_back(name, i);
    std::ranges::stable_sort(rows, std::greater<>(),
                             [](const auto& row) { return std::max(row.second.association, row.second.pearson); });
    for (const auto& [name, i] : rows) {
        json.open('{').key("name").string(name).key("pearson");
        i.has_pearson ? json.number(i.pearson).key("r").number(i.r) : json.raw("null");
        json.key("association").number(i.association).key("n").number(i.n).close('}');
    }
    json.close(']').close('}');
    return json_answer(json.take());
}

// One event for every change: {"version", "runs": [ids]}.
Answer events(const Store& store) {
    Answer answer;
    answer.type = "text/event-stream";
    uint64_t told = 0;
    answer.more = [&store, told, waits = 0](std::string& part) mutable {
        const uint64_t before = told;
        told = store.wait_for(before, kOwnApiWait);
        waits = told == before ? waits + 1 : 0;
        if (told == before) {
            if (waits % kWaits == 0) part = ": still here\n\n";
            return !store.is_stopped();
        }
        JsonText json;
        const auto view = store.view();
        json.open('{').key("version").number(told).key("runs").open('[');
        for (const auto& [id, run] : view.runs())
            if (run.version > before) json.string(id);
        json.close(']').close('}');
        part = "data: " + json.text() + "\n\n";
        return !store.is_stopped();
    };
    return answer;
}

// What is below runs/ID.
Answer run_answer(Store& store, const Question& question) {
    const std::string_view part = question.part(2);
    const size_t parts = question.path.size();
    if (parts == 2) return one_run(store, question.part(1));
    if (parts == 3 && part == "tags") return tags(store, question.part(1));
    if (parts >= 3 && part == "profile") return profile_answer(store, question);
    if (parts == 3 && part == "graphs") {
        const auto view = store.view();
        return graphs_of_run(run_of(view, question.part(1)));
    }
    if (parts == 3 && part == "lineage") return lineage(store, question.part(1));
    if (parts == 4 && part == "scalars") return scalars(store, question);
    if (parts >= 4) return records_answer(store, question);
    throw Refusal{404, "there is no such address"};
}

}  // namespace

Answer own_answer(Store& store, const Question& question) {
    const std::string_view what = question.part(0);
    const size_t parts = question.path.size();
    if (question.method == "PUT") {
        if (what == "runs" && parts == 2) return annotate(store, question);
        throw Refusal{404, "there is nothing to be written here"};
    }
    if (what == "graphs" && parts >= 2) return graph_answer(store, question.below(1));
    if (question.method == "POST") throw Refusal{405, "this is read by GET"};
    if (what == "events" && parts == 1) return events(store);
    if (what == "system" && parts == 1) return machine_answer(store.base());
    if (what == "importance" && parts == 1) return importance(store, question);
    if (what == "runs") return parts == 1 ? runs(store) : run_answer(store, question);
    throw Refusal{404, "there is no such address"};
}

}  // namespace lunaria::insight
