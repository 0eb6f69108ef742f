// The graphs of runs: files of graphs, and files of events with a graph.
#pragma once

#include "core/insight/answers/answers.h"
#include "core/io/json_text.h"

namespace lunaria::insight {

// v1/lunaria/runs/ID/graphs: [{"id", "name", "bytes"}]
Answer graphs_of_run(const Run& run);
// v1/lunaria/graphs/GRAPH/...; the path begins with GRAPH.
Answer graph_answer(Store& store, const Question& question);
// v1/mindinsight/datavisual/graphs/...?train_id=&tag=; the path begins behind `graphs`.
Answer reference_graph_answer(Store& store, const Question& question);

}  // namespace lunaria::insight
