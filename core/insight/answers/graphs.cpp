#include "core/insight/answers/graphs.h"

#include <algorithm>
#include <filesystem>

#include "core/insight/answers/reference.h"

namespace lunaria::insight {

namespace {

struct GraphFile {
    std::string name, path;
    std::string id(const Run& run) const { return id_of(run.name + "\n" + name); }
};

std::vector<GraphFile> files_of(const Run& run) {
    std::vector<GraphFile> files;
    // The network that was trained comes first.
    for (const auto& file : run.events)
        if (file->has_graph()) files.push_back({file->path(), file->place()});
    for (const std::string& name : run.graph_files) files.push_back({name, run.place + "/" + name});
    return files;
}

std::shared_ptr<GraphPage> page_of(Store& store, const GraphFile& file) {
    try {
        return store.graphs().page(file.path, file.name);
    } catch (const Error& e) {
        throw Refusal{422, e.what()};
    }
}

// The view is left before the file is read, so that nothing waits for it but its reader.
std::shared_ptr<GraphPage> page_of(Store& store, std::string_view id) {
    GraphFile found;
    {
        const auto view = store.view();
        for (const auto& [name, run] : view.runs())
            for (GraphFile& file : files_of(run))
                if (file.id(run) == id) found = std::move(file);
    }
    if (found.path.empty()) throw Refusal{404, "there is no such graph"};
    return page_of(store, found);
}

}  // namespace

Answer graphs_of_run(const Run& run) {
    JsonText json;
    json.open('[');
    for (const GraphFile& file : files_of(run)) {
        std::error_code problem;
        const uint64_t bytes = std::filesystem::file_size(file.path, problem);
        json.open('{').key("id").string(file.id(run)).key("name").string(file.name);
        json.key("bytes").number(problem ? 0 : bytes).close('}');
    }
    return json_answer(json.close(']').take());
}

Answer graph_answer(Store& store, const Question& question) {
    const auto page = page_of(store, question.part(0));
    if (question.part(1) != "diff") return page->answer(question.below(1));
    if (!question.is_reading()) throw Refusal{405, "differences are only read"};
    return page->difference(page_of(store, question.part(2))->model());
}

Answer reference_graph_answer(Store& store, const Question& question) {
    const auto tag = question.parameter("tag");
    GraphFile found;
    {
        const auto view = store.view();
        const auto files = files_of(reference::run_named(view, reference::needed(question, "train_id")));
        const auto file = std::ranges::find_if(files, [&](const GraphFile& f) { return !tag || f.name == *tag; });
        if (file == files.end()) throw Refusal{400, "the run has no such graph"};
        found = *file;
    }
    return page_of(store, found)->reference_answer(question);
}

}  // namespace lunaria::insight
