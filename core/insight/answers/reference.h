// Helpers that the parts of the reference product's interface share.
#pragma once

#include "core/insight/answers/answers.h"

namespace lunaria::insight::reference {

Answer json(const Json& json, int status = 200);
// Runs are named by "./" and the path below the base folder.
std::string train_id_of(const Run& run);
const Run& run_named(const Store::View& view, std::string_view id);
// The value of a parameter that has to be there.
std::string needed(const Question& question, std::string_view name);
// The content as an object.
Json body_of(const Question& question);

// lineagemgr/lineages by POST and PUT, datasets/dataset_graph, optimizer/targets/search.
Answer lineages(const Store& store, const Question& question);
Answer annotate(Store& store, const Question& question);
Answer dataset_graph(const Store& store, const Question& question);
Answer targets(const Store& store, const Question& question);

}  // namespace lunaria::insight::reference
