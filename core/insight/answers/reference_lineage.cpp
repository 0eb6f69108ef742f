// The reference product's interface: lineage, and the importance of settings.
#include <algorithm>
#include <tuple>

#include "core/insight/answers/importance.h"
#include "core/insight/answers/reference.h"

namespace lunaria::insight::reference {

namespace {

// A field of a run's lineage by the reference product's name; null where there is none.
Json field_of(const Run& run, const std::string& name) {
    constexpr std::tuple<const char*, const char*, const char*> known[] = {
        {"loss_function", "hyper_parameters", "loss_function"},
        {"optimizer", "hyper_parameters", "optimizer"},
        {"learning_rate", "hyper_parameters", "learning_rate"},
        {"epoch", "hyper_parameters", "epoch"},
        {"batch_size", "hyper_parameters", "batch_size"},
        {"device_num", "hyper_parameters", "device_num"},
        {"train_dataset_path", "train_dataset", "train_dataset_path"},
        {"train_dataset_count", "train_dataset", "train_dataset_size"},
        {"network", "algorithm", "network"},
        {"loss", "algorithm", "loss"},
        {"model_size", "model", "size"}};
    const auto inside = [](const Json& json, const char* part, const char* key) {
        if (!json.is_object() || !json.contains(part) || !json[part].is_object()) return Json();
        return json[part].value(key, Json());
    };
    if (name == "summary_dir") return train_id_of(run);
    if (name == "test_dataset_path") return inside(run.lineage.evaluation, "valid_dataset", "valid_dataset_path");
    if (name == "test_dataset_count") return inside(run.lineage.evaluation, "valid_dataset", "valid_dataset_size");
    if (name == "dataset_mark")
        return run.lineage.dataset_graph.is_null() ? Json() : Json(id_of(dumped(run.lineage.dataset_graph)));
    if (name.starts_with("metric/")) return evaluation_metrics(run.lineage).value(name.substr(7), Json());
    if (name.starts_with("user_defined/")) return run.lineage.user.value(name.substr(13), Json());
    for (const auto& [field, part, key] : known) {
        if (name != field) continue;
        const Json value = inside(run.lineage.train, part, key);
        if (name == "model_size" && value.is_string()) return std::atoll(value.get<std::string>().c_str());
        return value;
    }
    throw Refusal{400, str("The field ", name, " not supported")};
}

// Whether a value fulfils {"eq": ...} and the like.
bool fulfils(const Json& value, const Json& conditions) {
    if (!conditions.is_object()) throw Refusal{400, "a condition is an object such as {\"eq\": value}"};
    for (const auto& [how, wanted] : conditions.items()) {
        const bool comparable = (value.is_number() && wanted.is_number()) || (value.is_string() && wanted.is_string());
        bool fits = false;
        if (how == "eq")
            fits = value == wanted;
        else if (how == "in" || how == "not_in")
            fits = wanted.is_array() && (std::ranges::find(wanted, value) != wanted.end()) == (how == "in");
        else if (how == "lt")
            fits = comparable && value < wanted;
        else if (how == "le")
            fits = comparable && value <= wanted;
        else if (how == "gt")
            fits = comparable && value > wanted;
        else if (how == "ge")
            fits = comparable && value >= wanted;
        else
            throw Refusal{400, str("The expression ", how, " not supported.")};
        if (!fits) return false;
    }
    return true;
}

// Parameters as one object, as the reference product organises them.
Json organised(const Json& graph) {
    const auto parameters = [](const Json& maps) {
        Json all = Json::object();
        if (maps.is_object())
            for (const auto& [kind, map] : maps.items())
                for (const auto& [name, value] : map.items())
                    all[name] = value == "None"                                   ? Json()
                                : value.is_object() && value.contains("strValue") ? value["strValue"]
                                                                                  : value;
        return all;
    };
    const auto operation = [&](const Json& message) {
        Json all = parameters(message.value("operationParam", Json()));
        for (const char* list : {"size", "weights"})
            if (message.contains(list)) all[list] = message[list];
        return all;
    };
    Json result = parameters(graph.value("parameter", Json()));
    if (graph.contains("operations")) {
        result["operations"] = Json::array();
        for (const Json& message : graph["operations"]) result["operations"].push_back(operation(message));
    }
    if (graph.contains("sampler"))
        if (Json sampler = operation(graph["sampler"]); !sampler.empty()) result["sampler"] = std::move(sampler);
    result["children"] = Json::array();
    for (const Json& child : graph.value("children", Json::array())) result["children"].push_back(organised(child));
    return result;
}

Json lineage_object(const Run& run) {
    Json model = Json::object();
    for (const char* name : {"loss_function", "train_dataset_path", "train_dataset_count", "test_dataset_path",
                             "test_dataset_count", "network", "optimizer", "learning_rate", "epoch", "batch_size",
                             "device_num", "loss", "model_size", "dataset_mark"})
        model[name] = field_of(run, name);
    model["metric"] = evaluation_metrics(run.lineage);
    model["user_defined"] = run.lineage.user;
    const Json& graph = run.lineage.dataset_graph;
    return {
        {"summary_dir", train_id_of(run)},
        {"model_lineage", std::move(model)},
        {"dataset_graph", graph.is_null() ? Json::object() : organised(graph)},
        {"added_info",
         {{"remark", run.annotation.notes}, {"tag", run.annotation.labels.empty() ? "" : run.annotation.labels[0]}}}};
}

const char* python_type(const Json& value) {
    if (value.is_string()) return "str";
    if (value.is_boolean()) return "bool";
    return value.is_number_integer() ? "int" : "float";
}

std::vector<const Run*> chosen_runs(const Store::View& view, const Json& condition) {
    std::vector<const Run*> runs;
    constexpr std::string_view no_fields[] = {"limit", "offset", "sorted_name", "sorted_type", "lineage_type"};
    for (const auto& [id, run] : view.runs()) {
        if (run.lineage.empty()) continue;
        bool fits = true;
        for (const auto& [name, wanted] : condition.items())
            if (std::ranges::find(no_fields, name) == std::end(no_fields))
                fits = fits && fulfils(field_of(run, name), wanted);
        if (fits) runs.push_back(&run);
    }
    std::ranges::sort(runs, {}, [](const Run* run) { return run->name; });
    return runs;
}

int64_t whole(const Json& condition, const char* name, int64_t otherwise, int64_t most) {
    if (!condition.contains(name)) return otherwise;
    const Json& value = condition[name];
    if (!value.is_number_integer() || value.get<int64_t>() < 0 || value.get<int64_t>() > most)
        throw Refusal{400, str(name, " must be a whole number from 0 to ", most)};
    return value.get<int64_t>();
}

}  // namespace

Answer lineages(const Store& store, const Question& question) {
    const Json condition = body_of(question);
    const auto view = store.view();
    std::vector<const Run*> runs = chosen_runs(view, condition);
    if (condition.contains("sorted_name")) {
        if (!condition["sorted_name"].is_string()) throw Refusal{400, "sorted_name must be a text"};
        const std::string name = condition["sorted_name"];
        const bool falling = condition.value("sorted_type", Json()) == "descending";
        // Numbers before texts, runs without the field first.
        std::ranges::stable_sort(runs, [&](const Run* a, const Run* b) {
            const Json left = field_of(falling ? *b : *a, name), right = field_of(falling ? *a : *b, name);
            return left < right;
        });
    }
    const size_t count = runs.size();
    if (condition.contains("limit") || condition.contains("offset")) {
        const auto limit = static_cast<size_t>(whole(condition, "limit", 10, 100));
        const size_t first = static_cast<size_t>(whole(condition, "offset", 0, 100'000)) * limit;
        runs.erase(runs.begin(), runs.begin() + static_cast<ptrdiff_t>(std::min(first, count)));
        runs.resize(std::min(limit, runs.size()));
    }
    Json objects = Json::array(), customized = Json::object();
    for (const Run* run : runs) {
        objects.push_back(lineage_object(*run));
        const auto offer = [&](const std::string& group, const Json& values) {
            for (const auto& [name, value] : values.items()) {
                const std::string label = group + "/" + name;
                customized[label] = {{"label", label}, {"required", group == "metric"}, {"type", python_type(value)}};
            }
        };
        offer("metric", evaluation_metrics(run->lineage));
        offer("user_defined", run->lineage.user);
    }
    return json({{"customized", std::move(customized)}, {"object", std::move(objects)}, {"count", count}});
}

Answer annotate(Store& store, const Question& question) {
    const Json added = body_of(question);
    const std::string id(run_named(store.view(), needed(question, "train_id")).id);
    const auto text = [&](const char* name) -> std::optional<std::string> {
        if (!added.contains(name)) return std::nullopt;
        return added[name].is_string() ? added[name].get<std::string>() : dumped(added[name]);
    };
    store.annotate(id, [&](Annotation& annotation) {
        if (const auto remark = text("remark")) annotation.notes = *remark;
        if (const auto tag = text("tag")) annotation.labels = {*tag};
    });
    return json({{"status", "success"}});
}

Answer dataset_graph(const Store& store, const Question& question) {
    const auto view = store.view();
    const Run& run = run_named(view, needed(question, "train_id"));
    if (run.lineage.dataset_graph.is_null()) return json(Json::object());
    return json({{"dataset_graph", organised(run.lineage.dataset_graph)}, {"summary_dir", train_id_of(run)}});
}

Answer targets(const Store& store, const Question& question) {
    const auto view = store.view();
    const std::vector<const Run*> runs = chosen_runs(view, body_of(question));
    const Table table = table_of(runs);
    const auto column = [&](const Table::Column& values) {
        Json list = Json::array();
        for (const Json& value : values) list.push_back(value);
        return list;
    };
    Json ids = Json::array(), parameters = Json::array(), targets = Json::array();
    for (const Run* run : runs) ids.push_back(train_id_of(*run));
    // Those that programs gave have a mark.
    const auto marked = [&](const std::string& name) { return table.is_user_defined(name) ? "[U]" + name : name; };
    for (const auto& [name, values] : table.hyper)
        parameters.push_back({{"name", marked(name)}, {"data", column(values)}});
    for (const auto& [target, results] : table.metrics) {
        std::vector<std::pair<double, Json>> rows;
        for (const auto& [name, values] : table.hyper) {
            const Importance importance = importance_of(values, results);
            Json row = {{"name", marked(name)}, {"importance", importance.pearson}};
            if (importance.n < Importance::kFewest)
                row["reason_code"] = 2;
            else if (!importance.has_pearson)
                row["reason_code"] = importance.is_numeric ? 3 : 1;
            rows.emplace_back(importance.pearson, std::move(row));
        }
        std::ranges::stable_sort(rows, std::greater<>(), [](const auto& row) { return row.first; });
        Json list = Json::array();
        for (auto& [importance, row] : rows) list.push_back(std::move(row));
        targets.push_back({{"name", target},
                           {"buckets", Json::array()},
                           {"hyper_parameters", std::move(list)},
                           {"data", column(results)}});
    }
    return json({{"metadata",
                  {{"train_ids", std::move(ids)},
                   {"possible_hyper_parameters", std::move(parameters)},
                   {"unrecognized_params", Json::array()}}},
                 {"targets", std::move(targets)}});
}

}  // namespace lunaria::insight::reference
