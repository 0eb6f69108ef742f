#include "core/data/files/mindrecord.h"

#include <algorithm>

#include "core/data/files/mindrecord_shard.h"

namespace lunaria::data {

namespace {

class Mindrecords final : public Records {
  public:
    Mindrecords(std::vector<std::unique_ptr<MindrecordShard>> shards, Names names, std::vector<int> wanted)
        : Records(std::move(names)), shards_(std::move(shards)), wanted_(std::move(wanted)) {
        for (const auto& shard : shards_) ends_.push_back(rows_ += shard->rows());
    }
    std::string title() const override { return "MindRecord"; }
    int64_t rows() const override { return rows_; }
    void read(int64_t row, Row& out) const override {
        const size_t s = static_cast<size_t>(std::upper_bound(ends_.begin(), ends_.end(), row) - ends_.begin());
        shards_[s]->read(row - (s > 0 ? ends_[s - 1] : 0), wanted_, [&](Value v) { out.push_back(std::move(v)); });
    }

  private:
    std::vector<std::unique_ptr<MindrecordShard>> shards_;
    std::vector<int> wanted_;
    std::vector<int64_t> ends_;
    int64_t rows_ = 0;
};

// The files that belong to this one. A writer that was killed may have left some of them one commit ahead of the
// others: that commit is then ignored.
std::vector<std::string> belonging(const std::string& path, std::vector<bool>& undo) {
    const size_t slash = path.rfind('/');
    const std::string folder = slash == std::string::npos ? "" : path.substr(0, slash + 1);
    const MindrecordHeader first = MindrecordHeader::read(*open_source(path));
    if (first.siblings.size() < 2) return {path};
    std::vector<std::string> files;
    std::vector<MindrecordHeader> headers;
    for (const std::string& name : first.siblings) {
        // The names in a header must not lead out of the folder.
        if (name.empty() || name.find('/') != std::string::npos || name == "..")
            throw file_error(path, "corrupt: the header names a shard outside of the folder");
        files.push_back(folder + name);
        headers.push_back(MindrecordHeader::read(*open_source(files.back())));
    }
    std::vector<const MindrecordHeader*> list;
    for (const MindrecordHeader& header : headers) list.push_back(&header);
    const auto least = common_commit(path, list);
    undo.clear();
    for (const MindrecordHeader& header : headers) undo.push_back(least && header.commit->number > *least);
    return files;
}

}  // namespace

RecordsPtr mindrecord_records(const std::vector<std::string>& paths, bool whole, Names names, bool skip_damaged,
                              int64_t* skipped) {
    if (paths.empty()) throw argument_error("MindDataset", "the list of files is empty");
    std::vector<std::string> files = paths;
    std::vector<bool> undo(1, false);
    if (whole) files = belonging(paths.front(), undo);
    undo.resize(files.size());
    std::vector<std::unique_ptr<MindrecordShard>> shards;
    for (size_t i = 0; i < files.size(); ++i)
        shards.push_back(std::make_unique<MindrecordShard>(files[i], skip_damaged, undo[i]));
    const auto& fields = shards.front()->header().fields;
    for (const auto& shard : shards)
        if (shard->header().fields != fields) throw file_error(paths.front(), "the files have different schemas");
    if (skipped) {
        *skipped = 0;
        for (const auto& shard : shards) *skipped += shard->skipped();
    }
    if (names.empty())
        for (const MindrecordField& field : fields) names.push_back(field.name);
    std::vector<int> wanted;
    for (const std::string& name : names) {
        const auto field =
            std::find_if(fields.begin(), fields.end(), [&](const MindrecordField& f) { return f.name == name; });
        if (field == fields.end()) throw file_error(paths.front(), str("there is no field '", name, "'"));
        wanted.push_back(static_cast<int>(field - fields.begin()));
    }
    return std::make_shared<Mindrecords>(std::move(shards), std::move(names), std::move(wanted));
}

}  // namespace lunaria::data
