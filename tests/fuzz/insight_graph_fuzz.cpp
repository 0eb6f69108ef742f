// Any bytes are a graph or an Error; of a graph, the equal parts are found and its page answers.
// Source: core/insight/anf_graph.cpp
// Source: core/insight/graph_def.cpp
// Source: core/insight/graph_files.cpp
// Source: core/insight/graph/*.cpp
#include "core/base/error.h"
#include "core/insight/description.h"
#include "core/insight/graph/graph_page.h"
#include "core/insight/operator_graph.h"
#include "core/insight/substructures.h"
#include "core/io/file.h"

namespace {

void ask(lunaria::insight::GraphPage& page, std::vector<std::string> path,
         std::multimap<std::string, std::string, std::less<>> parameters) {
    try {
        (void)page.answer({"GET", std::move(path), std::move(parameters), {}});
    } catch (const lunaria::Refusal&) {
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    using namespace lunaria;
    const std::string_view bytes(reinterpret_cast<const char*>(data), size);
    try {
        insight::OperatorGraph graph = insight::read_operator_graph(*memory_source("fuzz", bytes));
        for (const auto equality : {insight::Equality::operators, insight::Equality::exact}) {
            const auto found = insight::find_substructures(graph, equality);
            (void)insight::describe(graph, found);
            (void)insight::json_of(graph, found);
        }
        insight::GraphPage page(std::move(graph), "fuzz");
        ask(page, {}, {});
        for (const char* by : {"scopes", "file", "parts", "none"}) ask(page, {"view"}, {{"by", by}, {"open", "all"}});
        ask(page, {"names"}, {{"q", "a"}, {"limit", "20"}});
        for (const char* part : {"json", "svg", "parts"}) ask(page, {part}, {});
        for (const char* kind : {"nodes", "groups"}) ask(page, {kind, "0"}, {});
        ask(page, {"reach"}, {{"node", "0"}, {"way", "up"}});
        ask(page, {"route"}, {{"from", "0"}, {"to", "1"}});
    } catch (const Error&) {
    }
    return 0;
}
