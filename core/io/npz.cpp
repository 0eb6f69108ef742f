#include "core/io/npz.h"

#include <algorithm>
#include <set>

namespace lunaria {
namespace {

constexpr std::string_view kSuffix = ".npy";

std::string listed(const std::vector<std::string>& names) {
    std::string text;
    for (size_t i = 0; i < names.size() && i < 8; ++i) text += (i ? ", " : "") + names[i];
    return names.size() > 8 ? text + ", ..." : names.empty() ? "nothing" : text;
}

}  // namespace

NpzFile::NpzFile(std::unique_ptr<Source> source) : source_(std::move(source)), members_(zip_directory(*source_)) {
    for (const ZipMember& member : members_) {
        if (member.name.ends_with("data.pkl"))
            throw source_->error("is a PyTorch file: a pickle, which could run any code when it is read")
                .hint(
                    "in Python, convert it: safetensors.torch.save_file(torch.load(path, weights_only=True), "
                    "\"weights.safetensors\")");
        std::string name = member.name;
        if (name.ends_with(kSuffix)) name.resize(name.size() - kSuffix.size());
        // "x" and "x.npy" can both be members.
        if (std::find(names_.begin(), names_.end(), name) != names_.end()) name = member.name;
        names_.push_back(std::move(name));
    }
}

Value NpzFile::read(const std::string& name) const {
    auto found = std::find(names_.begin(), names_.end(), name);
    if (found == names_.end()) throw source_->error(str("has no array named '", name, "'; it has ", listed(names_)));
    const ZipMember& member = members_[static_cast<size_t>(found - names_.begin())];
    return read_npy_value(*member_stream(*source_, member.stretch));
}

std::vector<NamedTensor> NpzFile::read_all() const {
    std::vector<NamedTensor> tensors;
    for (const std::string& name : names_) {
        const Value value = read(name);
        if (value.is_tensor()) tensors.emplace_back(name, value.tensor());
    }
    return tensors;
}

void write_npz(Sink& sink, std::span<const NamedTensor> tensors, bool compressed) {
    ZipWriter writer(sink);
    std::set<std::string_view> names;
    for (const auto& [name, tensor] : tensors) {
        if (name.empty() || name.size() > 60000 || name.find('\0') != std::string::npos || name[0] == '/' ||
            name.find('\\') != std::string::npos || ("/" + name + "/").find("/../") != std::string::npos)
            throw file_error(sink.name(),
                             str("'", name.substr(0, 60), "' cannot be the name of an array in an archive"));
        if (!names.insert(name).second) throw file_error(sink.name(), str("two arrays are named '", name, "'"));
        StringSink content(sink.name());
        write_npy(content, tensor);
        writer.add(name + std::string(kSuffix), content.text(), compressed);
    }
    writer.finish();
}

void write_npz(const std::string& path, std::span<const NamedTensor> tensors, bool compressed) {
    FileSink sink(path);
    write_npz(sink, tensors, compressed);
    sink.commit();
}

}  // namespace lunaria
