// Lineage files of MindSpore's form: how a model came about. Their contents in the form that protobuf's JSON has, which
// the reference product answers with.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace lunaria::insight {

using Json = nlohmann::ordered_json;

// Bytes that are no UTF-8 are replaced: texts of files are not checked.
inline std::string dumped(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }
// The value of a text; discarded where it is none, or is nested deeper than other readers of JSON go: what copies and
// writes values calls itself for each level.
Json parsed_json(std::string_view text);

struct Lineage {
    Json train, evaluation, dataset_graph;  // messages; null where there is none
    Json user = Json::object();             // what the program gave by name
    double wall = 0;                        // of the last event

    bool empty() const { return train.is_null() && evaluation.is_null() && dataset_graph.is_null() && user.empty(); }
};

// Adds what a file holds; later events replace earlier ones. Damaged files give what stands before the damage.
void add_lineage(const std::string& path, Lineage& lineage);
// Adds what a value of TensorBoard's plug-in of hyper-parameters holds to `user`.
void add_hparams(std::string_view value, Lineage& lineage);

// Settings, results and data sets by name, for tables.
Json hyper_of(const Lineage& lineage);
// What evaluation found, and what that and training found.
Json evaluation_metrics(const Lineage& lineage);
Json metrics_of(const Lineage& lineage);
Json data_of(const Lineage& lineage);
// The graph of the data pipeline: {"nodes": [{"id", "name", "parameters"}], "edges": [[from, to]]}.
Json dataset_graph_of(const Lineage& lineage);

}  // namespace lunaria::insight
