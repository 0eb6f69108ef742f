// The reference product's interface, below v1/mindinsight: its paths, parameters and forms of answers, so that programs
// written for it get what they expect.
#include <algorithm>
#include <cmath>
#include <ctime>

#include "core/insight/answers/graphs.h"
#include "core/insight/answers/records.h"
#include "core/insight/answers/reference.h"
#include "core/insight/store/curve.h"
#include "core/insight/store/landscape.h"

namespace lunaria::insight {

namespace {

using namespace reference;

constexpr uint64_t kMostPoints = 1'000'000;
constexpr int64_t kMostReferenceElements = 100'000;

void need_tag(const Run& run, Kind kind, const std::string& tag) {
    if (!std::ranges::binary_search(run.tags(kind), tag))
        throw Refusal{400, str("there is no tag ", tag, " in ", train_id_of(run))};
}

// Numbers that JSON lacks are null, as there.
Json number(double value) { return std::isfinite(value) ? Json(value) : Json(); }

std::string date(double seconds) {
    const auto time = static_cast<std::time_t>(seconds);
    std::tm parts{};
    localtime_r(&time, &parts);
    char text[40];
    std::strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S", &parts);
    return text;
}

// The plug-ins of the reference product, and their kinds.
constexpr std::pair<const char*, Kind> kPlugins[] = {{"image", Kind::image},
                                                     {"scalar", Kind::scalar},
                                                     {"histogram", Kind::histogram},
                                                     {"tensor", Kind::tensor},
                                                     {"landscape", Kind::landscape}};

std::vector<std::string> graphs_of(const Run& run) {
    std::vector<std::string> names;
    for (const auto& file : run.events)
        if (file->has_graph()) names.push_back(file->path());
    names.insert(names.end(), run.graph_files.begin(), run.graph_files.end());
    return names;
}

Answer train_jobs(const Store& store, const Question& question) {
    const auto view = store.view();
    std::vector<const Run*> runs;
    const auto wanted = question.parameter("train_id");
    for (const auto& [id, run] : view.runs())
        if (!wanted || train_id_of(run) == *wanted) runs.push_back(&run);
    std::ranges::stable_sort(runs, std::greater<>(), [](const Run* run) { return run->changed; });
    const int64_t offset = question.integer("offset", 0, 0, INT64_MAX / 1000);
    const int64_t limit = question.integer("limit", 10, 1, 999);
    Json jobs = Json::array();
    for (int64_t i = offset * limit; i < std::min<int64_t>((offset + 1) * limit, static_cast<int64_t>(runs.size()));
         ++i) {
        const Run& run = *runs[static_cast<size_t>(i)];
        const std::string id = train_id_of(run);
        jobs.push_back({{"train_id", id},
                        {"relative_path", id},
                        {"create_time", date(run.first_wall())},
                        {"update_time", date(run.changed)},
                        {"profiler_dir", ""},
                        {"cache_status", "CACHED"},
                        {"summary_files", run.events.size()},
                        {"lineage_files", run.lineage_files.size()},
                        {"graph_files", run.graph_files.size()},
                        {"explain_files", 0}});
    }
    return json({{"name", store.base().substr(store.base().rfind('/') + 1)},
                 {"total", runs.size()},
                 {"train_jobs", std::move(jobs)}});
}

std::vector<std::string> plugin_tags(const Run& run, std::string_view plugin) {
    for (const auto& [name, kind] : kPlugins)
        if (plugin == name) return run.tags(kind);
    if (plugin == "graph") return graphs_of(run);
    if (plugin == "optimized_graph") return {};
    throw Refusal{400, str("there is no plugin ", plugin)};
}

Answer single_job(const Store& store, const Question& question) {
    const std::string plugin = needed(question, "plugin_name"), id = needed(question, "train_id");
    const auto view = store.view();
    const Run& run = run_named(view, id);
    return json({{"train_jobs", Json::array({{{"id", id}, {"name", run.name}, {"tags", plugin_tags(run, plugin)}}})}});
}

Answer plugins(const Store& store, const Question& question) {
    const auto view = store.view();
    const Run& run = run_named(view, needed(question, "train_id"));
    Json plugins = Json::object();
    for (const auto& [name, kind] : kPlugins) plugins[name] = run.tags(kind);
    plugins["graph"] = graphs_of(run);
    plugins["optimized_graph"] = Json::array();
    return json({{"plugins", std::move(plugins)}});
}

// All runs are always there.
Answer caches(const Store& store, const Question& question) {
    const Json body = body_of(question);
    if (!body.contains("train_ids") || !body["train_ids"].is_array())
        throw Refusal{400, "the parameter train_ids is missing"};
    const auto view = store.view();
    Json results = Json::array();
    for (const Json& id : body["train_ids"]) {
        if (!id.is_string()) throw Refusal{400, "train_ids must be texts"};
        run_named(view, id.get<std::string>());
        results.push_back({{"train_id", id}, {"cache_result", "CACHED"}});
    }
    return json({{"cache_result", std::move(results)}});
}

Json scalar_values(const Run& run, const std::string& tag) {
    need_tag(run, Kind::scalar, tag);
    const Curve curve = curve_of(run, tag, {}, kMostPoints);
    Json values = Json::array();
    for (const Point& p : curve.points)
        values.push_back({{"wall_time", p.wall}, {"step", p.step}, {"value", number(p.value)}});
    // More points than one answer may have: two for each summary, at which the extremes lie.
    for (const Stretch& s : curve.stretches) {
        values.push_back({{"wall_time", s.first_wall}, {"step", s.first_step}, {"value", number(s.min)}});
        values.push_back({{"wall_time", s.first_wall}, {"step", s.first_step}, {"value", number(s.max)}});
    }
    return values;
}

Answer scalar_metadata(const Store& store, const Question& question) {
    const auto view = store.view();
    const Run& run = run_named(view, needed(question, "train_id"));
    return json({{"metadatas", scalar_values(run, needed(question, "tag"))}});
}

// For each of the named runs and tags.
template <class F>
Json for_runs_and_tags(const Store& store, const Question& question, F f) {
    needed(question, "train_id");
    needed(question, "tag");
    const auto view = store.view();
    Json list = Json::array();
    for (const std::string& id : question.all("train_id"))
        for (const std::string& tag : question.all("tag"))
            list.push_back({{"train_id", id}, {"tag", tag}, {"values", f(run_named(view, id), tag)}});
    return list;
}

Answer image_metadata(const Store& store, const Question& question) {
    const auto view = store.view();
    const Run& run = run_named(view, needed(question, "train_id"));
    const std::string tag = needed(question, "tag");
    need_tag(run, Kind::image, tag);
    Json list = Json::array();
    for (const Record& record : records_of(run, Kind::image, tag))
        list.push_back({{"wall_time", record.item.wall},
                        {"step", record.item.step},
                        {"height", record.item.height},
                        {"width", record.item.width}});
    return json({{"metadatas", std::move(list)}});
}

Answer single_image(const Store& store, const Question& question) {
    const auto view = store.view();
    const Run& run = run_named(view, needed(question, "train_id"));
    const std::string tag = needed(question, "tag");
    needed(question, "step");
    const int64_t step = question.integer("step", 0, INT64_MIN, INT64_MAX);
    need_tag(run, Kind::image, tag);
    RecordReader reader(Kind::image, tag);
    for (const Record& record : records_of(run, Kind::image, tag)) {
        if (record.item.step != step) continue;
        Shown shown = reader.read(record);
        auto& image = std::get<Shown::Encoded>(shown.value);
        Answer answer;
        answer.type = picture_type(image.bytes);
        if (answer.type.empty()) throw Refusal{400, "the record is no picture that browsers show"};
        answer.body = std::move(image.bytes);
        return answer;
    }
    throw Refusal{400, str("there is no picture at step ", step)};
}

Answer histogram_answer(const Store& store, const Question& question) {
    const auto view = store.view();
    const std::string id = needed(question, "train_id"), tag = needed(question, "tag");
    const Run& run = run_named(view, id);
    need_tag(run, Kind::histogram, tag);
    RecordReader reader(Kind::histogram, tag);
    Json list = Json::array();
    for (const Record& record : records_of(run, Kind::histogram, tag)) {
        const Shown shown = reader.read(record);
        Json buckets = Json::array();
        for (const auto& [left, right, count] : bins_of(std::get<Shown::Histogram>(shown.value)))
            buckets.push_back({left, right - left, count});
        list.push_back({{"wall_time", record.item.wall}, {"step", record.item.step}, {"buckets", std::move(buckets)}});
    }
    return json({{"train_id", id}, {"tag", tag}, {"histograms", std::move(list)}});
}

Json statistics(const Tensor& tensor) {
    const Statistics s = statistics_of(tensor);
    return {{"max", number(s.max)},  {"min", number(s.min)},         {"avg", number(s.mean)},
            {"count", s.count},      {"nan_count", s.nan},           {"neg_inf_count", s.down},
            {"pos_inf_count", s.up}, {"overall_max", number(s.max)}, {"overall_min", number(s.min)}};
}

std::string type_name(DType dtype) {
    constexpr std::pair<DType, const char*> names[] = {
        {DType::f32, "DT_FLOAT32"}, {DType::f64, "DT_FLOAT64"}, {DType::i32, "DT_INT32"}, {DType::i64, "DT_INT64"},
        {DType::i16, "DT_INT16"},   {DType::i8, "DT_INT8"},     {DType::u8, "DT_UINT8"},  {DType::boolean, "DT_BOOL"}};
    for (const auto& [type, name] : names)
        if (type == dtype) return name;
    return "DT_UNDEFINED";
}

// Nested lists, with the reference product's words for what JSON lacks.
Json nested(const Slice& slice) {
    const auto one = [](double value) -> Json {
        if (std::isnan(value)) return "NAN";
        if (std::isinf(value)) return value > 0 ? "INF" : "-INF";
        return value;
    };
    if (slice.shape.empty()) return one(slice.values.front());
    const auto width = static_cast<size_t>(slice.shape.back());
    Json rows = Json::array();
    for (size_t from = 0; width > 0 && from < slice.values.size(); from += width) {
        Json row = Json::array();
        for (size_t i = 0; i < width; ++i) row.push_back(one(slice.values[from + i]));
        rows.push_back(std::move(row));
    }
    if (slice.shape.size() == 2) return rows;
    return rows.empty() ? Json::array() : rows[0];
}

Json equal_bins(const Tensor& tensor) {
    const Statistics s = statistics_of(tensor);
    const auto count = static_cast<size_t>(std::clamp<int64_t>(s.count, 1, 90));
    const double low = s.min, width = s.max > s.min ? (s.max - s.min) / static_cast<double>(count) : 1;
    std::vector<int64_t> counts(count);
    for (int64_t i = 0; i < tensor.size(); ++i)
        if (const double value = tensor.at(i); std::isfinite(value))
            ++counts[std::min(count - 1, static_cast<size_t>((value - low) / width))];
    Json bins = Json::array();
    for (size_t i = 0; i < count && std::isfinite(low); ++i)
        bins.push_back({low + static_cast<double>(i) * width, width, counts[i]});
    return bins;
}

Json tensor_values(const Run& run, const std::string& tag, const Question& question) {
    need_tag(run, Kind::tensor, tag);
    const std::string detail = question.parameter("detail").value_or("");
    if (!detail.empty() && detail != "stats" && detail != "data" && detail != "histogram")
        throw Refusal{400, str("Can not support this value: ", detail, " of detail.")};
    const bool data = detail == "data";
    if (data) {
        needed(question, "step");
        needed(question, "dims");
    }
    const int64_t step = question.integer("step", 0, INT64_MIN, INT64_MAX);
    RecordReader reader(Kind::tensor, tag);
    Json values = Json::array();
    for (const Record& record : records_of(run, Kind::tensor, tag)) {
        if (data && record.item.step != step) continue;
        const Shown shown = reader.read(record);
        const auto& tensor = std::get<Tensor>(shown.value);
        Json value = {{"dims", std::vector<int64_t>(tensor.shape().begin(), tensor.shape().end())},
                      {"data_type", type_name(tensor.dtype())}};
        if (data) {
            std::string dims = question.parameter("dims").value_or("");
            std::erase_if(dims, [](char c) { return c == '[' || c == ']' || c == ' '; });
            value["data"] = nested(slice_of(tensor, dims, kMostReferenceElements));
        }
        if (detail == "histogram") value["histogram_buckets"] = equal_bins(tensor);
        if (!detail.empty()) value["statistics"] = statistics(tensor);
        values.push_back({{"wall_time", record.item.wall}, {"step", record.item.step}, {"value", std::move(value)}});
    }
    if (data && values.empty()) throw Refusal{400, str("there is no tensor at step ", step)};
    return values;
}

std::string interval_id(const Landscape& l) {
    std::string text;
    for (const int64_t step : l.intervals) text += str(step, ' ');
    return id_of(text);
}

template <class F>
void for_landscapes(const Run& run, F f) {
    for (const std::string& tag : run.tags(Kind::landscape)) {
        RecordReader reader(Kind::landscape, tag);
        for (const Record& record : records_of(run, Kind::landscape, tag)) f(read_landscape(reader.bytes(record)));
    }
}

Answer intervals(const Store& store, const Question& question) {
    const auto view = store.view();
    std::multimap<int64_t, Json> sorted;
    for_landscapes(run_named(view, needed(question, "train_id")), [&](const Landscape& l) {
        if (l.intervals.empty()) return;
        sorted.emplace(l.intervals.front(),
                       Json{{"id", interval_id(l)}, {"value", {l.intervals.front(), l.intervals.back()}}});
    });
    Json list = Json::array();
    for (auto& [first, interval] : sorted) list.push_back(std::move(interval));
    return json({{"intervals", std::move(list)}});
}

Json points_of(const Landscape::Points& points) {
    Json z = points.z;
    if (points.z_shape.size() == 2 && points.z_shape[1] > 0) {
        const auto width = static_cast<ptrdiff_t>(points.z_shape[1]);
        z = Json::array();
        for (auto at = points.z.begin(); points.z.end() - at >= width; at += width)
            z.push_back(std::vector<double>(at, at + width));
    }
    return {{"x", points.x}, {"y", points.y}, {"z", std::move(z)}};
}

Json landscape_of(const Run& run, const std::string& type, const std::string& interval) {
    Json found = {{"error_code", "5054500B"}, {"train_id", train_id_of(run)}};
    for_landscapes(run, [&](const Landscape& l) {
        const bool is_final = l.intervals.empty();
        if (!found.contains("error_code") || is_final != (type == "final")) return;
        if (!is_final && interval_id(l) != interval) return;
        const Json hyper = hyper_of(run.lineage), metrics = metrics_of(run.lineage);
        found = {{"train_id", train_id_of(run)}, {"points", points_of(l.grid)}};
        if (!is_final) {
            found["path"] = points_of(l.path);
            found["path"]["intervals"] = l.intervals;
        }
        found["metadata"] = {{"decomposition", l.decomposition},
                             {"unit", l.unit},
                             {"step_per_epoch", l.steps_per_epoch},
                             {"network", hyper.value("network", Json())},
                             {"optimizer", hyper.value("optimizer", Json())},
                             {"learning_rate", hyper.value("learning_rate", Json())},
                             {"loss", metrics.value("loss", Json())},
                             {"metric", metrics}};
        Json point = Json::array();
        for (const auto* axis : {&l.convergence.x, &l.convergence.y, &l.convergence.z})
            point.push_back(axis->empty() ? 0 : axis->front());
        found["convergence_point"] = std::move(point);
    });
    return found;
}

Answer landscapes(const Store& store, const Question& question) {
    needed(question, "train_id");
    const auto view = store.view();
    Json list = Json::array();
    for (const std::string& id : question.all("train_id"))
        list.push_back(landscape_of(run_named(view, id), question.parameter("type").value_or("interval"),
                                    question.parameter("interval_id").value_or("")));
    return json({{"landscapes", std::move(list)}});
}

Answer routed(Store& store, const Question& question) {
    std::string path;
    for (const std::string& part : question.path) path += (path.empty() ? "" : "/") + part;
    struct Route {
        std::string_view method, path;
        Answer (*answer)(Store&, const Question&);
    };
    static constexpr Route routes[] = {
        {"GET", "datavisual/train-jobs", [](Store& s, const Question& q) { return train_jobs(s, q); }},
        {"GET", "datavisual/single-job", [](Store& s, const Question& q) { return single_job(s, q); }},
        {"GET", "datavisual/plugins", [](Store& s, const Question& q) { return plugins(s, q); }},
        {"POST", "datavisual/train-job-caches", [](Store& s, const Question& q) { return caches(s, q); }},
        {"GET", "datavisual/scalar/metadata", [](Store& s, const Question& q) { return scalar_metadata(s, q); }},
        {"GET", "datavisual/scalars",
         [](Store& s, const Question& q) {
             return json({{"scalars", for_runs_and_tags(s, q, scalar_values)}});
         }},
        {"GET", "datavisual/image/metadata", [](Store& s, const Question& q) { return image_metadata(s, q); }},
        {"GET", "datavisual/image/single-image", [](Store& s, const Question& q) { return single_image(s, q); }},
        {"GET", "datavisual/histograms", [](Store& s, const Question& q) { return histogram_answer(s, q); }},
        {"GET", "datavisual/tensors",
         [](Store& s, const Question& q) {
             return json({{"tensors", for_runs_and_tags(s, q, [&](const Run& run, const std::string& tag) {
                               return tensor_values(run, tag, q);
                           })}});
         }},
        {"GET", "datavisual/landscape/intervals", [](Store& s, const Question& q) { return intervals(s, q); }},
        {"GET", "datavisual/landscape/landscapes", [](Store& s, const Question& q) { return landscapes(s, q); }},
        {"GET", "datasets/dataset_graph", [](Store& s, const Question& q) { return dataset_graph(s, q); }},
        {"POST", "lineagemgr/lineages", [](Store& s, const Question& q) { return lineages(s, q); }},
        {"PUT", "lineagemgr/lineages", [](Store& s, const Question& q) { return annotate(s, q); }},
        {"POST", "optimizer/targets/search", [](Store& s, const Question& q) { return targets(s, q); }}};
    const auto method = question.method == "HEAD" ? "GET" : question.method;
    for (const Route& route : routes)
        if (route.path == path && route.method == method) return route.answer(store, question);
    if (question.part(0) == "datavisual" && question.part(1) == "graphs" && method == "GET") {
        return reference_graph_answer(store, question.below(2));
    }
    throw Refusal{404, "there is no such address"};
}

}  // namespace

namespace reference {

Answer json(const Json& json, int status) { return json_answer(dumped(json), status); }

std::string train_id_of(const Run& run) { return run.name == "." ? "./" : "./" + run.name; }

const Run& run_named(const Store::View& view, std::string_view id) {
    std::string_view name = id.starts_with("./") ? id.substr(2) : id;
    if (name.empty()) name = ".";
    const Run* run = view.run(id_of(name));
    if (!run) throw Refusal{400, str("the train job ", id, " does not exist")};
    return *run;
}

std::string needed(const Question& question, std::string_view name) {
    const auto value = question.parameter(name);
    if (!value || value->empty()) throw Refusal{400, str("the parameter ", name, " is missing")};
    return *value;
}

Json body_of(const Question& question) {
    Json body = question.body.empty() ? Json::object() : parsed_json(question.body);
    if (!body.is_object()) throw Refusal{400, "Json data parse failed."};
    return body;
}

}  // namespace reference

Answer reference_answer(Store& store, const Question& question) {
    try {
        return routed(store, question);
    } catch (const Refusal& refusal) {
        return json({{"error_code", refusal.status == 404 ? "50545009" : "50540002"},
                     {"error_msg", refusal.sentence},
                     {"error", refusal.sentence}},
                    refusal.status);
    }
}

}  // namespace lunaria::insight
