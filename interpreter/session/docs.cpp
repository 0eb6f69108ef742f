#include "interpreter/session/docs.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <vector>

#include "core/error.h"
#include "core/ops/families.h"

namespace lunaria {

namespace {

struct Family {
    const char* file;
    const char* title;
    void (*add)(Registry&);
};

constexpr Family kFamilies[] = {
    {"math", "Elementwise arithmetic and functions", add_math_ops},
    {"activation", "Activation functions", add_activation_ops},
    {"compare", "Comparisons, logic and selection", add_compare_ops},
    {"reduce", "Reductions and scans", add_reduce_ops},
    {"sort", "Sorting and searching", add_sort_ops},
    {"softmax", "Softmax", add_softmax_ops},
    {"norm", "Normalisation", add_norm_ops},
    {"loss", "Loss functions", add_loss_ops},
    {"shape", "Shapes and views", add_shape_ops},
    {"slice", "Slices and parts", add_slice_ops},
    {"array", "Joining, repeating, padding", add_array_ops},
    {"index", "Gathering and masks", add_index_ops},
    {"scatter", "Scattering and segments", add_scatter_ops},
    {"create", "Making tensors", add_create_ops},
    {"random", "Random numbers", add_random_ops},
    {"linalg", "Linear algebra", add_linalg_ops},
    {"conv", "Convolutions", add_conv_ops},
    {"pool", "Pooling", add_pool_ops},
    {"attention", "Attention, embedding, dropout", add_attention_ops},
    {"state", "State", add_state_ops},
    {"optimizer", "Steps of optimizers", add_optimizer_ops},
};

std::string first_sentence(std::string_view text) {
    const size_t end = text.find(". ");
    return std::string(end == std::string_view::npos ? text : text.substr(0, end + 1));
}

void write_file(const std::filesystem::path& path, const std::string& text) {
    std::ofstream out(path, std::ios::binary);
    out << text;
    out.close();
    if (!out) throw file_error("docs", str("cannot write ", path.string()));
}

std::string example_markdown(const Op& op) {
    std::string text = "```lua\n";
    for (const Op::Example& e : op.examples) text += str(e.lua, "\n--> ", e.result, "\n");
    return text + "```\n\n";
}

}  // namespace

std::string operator_markdown(const Op& op) {
    std::string text = str("## ", op.name(), "\n\n```\n", op.signature.text, "\n```\n\n", op.doc_text, "\n\n");
    if (!op.examples.empty()) text += example_markdown(op);
    std::string other;
    for (const char* alias : op.aliases) other += str(other.empty() ? "`" : ", `", alias, "`");
    if (!other.empty()) text += str("Also called ", other, ".\n");
    if (op.is_method) text += str("Method of tensors: `x:", op.name(), "(...)`.\n");
    if (op.no_grad_reason) text += str("Without gradient: ", op.no_grad_reason, "\n");
    if (op.source_text) text += str("Source: ", op.source_text, "\n");
    return text + "\n";
}

void write_docs(const std::string& folder) {
    std::error_code failure;
    std::filesystem::create_directories(folder, failure);
    if (failure) throw file_error("docs", str("cannot make the folder ", folder, ": ", failure.message()));
    std::string index =
        "# Operators\n\nWritten by `lunaria --docs` from the registry. Every operator is `ms.ops.name(...)`; arguments "
        "go by "
        "position or in a trailing table by name.\n";
    for (const Family& family : kFamilies) {
        Registry ops;
        family.add(ops);
        if (ops.all().empty()) continue;
        std::vector<const Op*> sorted;
        for (const auto& op : ops.all()) sorted.push_back(op.get());
        std::ranges::sort(sorted, {}, [](const Op* op) { return op->name(); });
        std::string page = str("# ", family.title, "\n\n");
        index += str("\n## [", family.title, "](", family.file, ".md)\n\n");
        for (const Op* op : sorted) {
            page += operator_markdown(*op);
            index += str("- [", op->name(), "](", family.file, ".md#", op->name(), "): ", first_sentence(op->doc_text),
                         "\n");
        }
        write_file(std::filesystem::path(folder) / str(family.file, ".md"), page);
    }
    write_file(std::filesystem::path(folder) / "README.md", index);
}

}  // namespace lunaria
