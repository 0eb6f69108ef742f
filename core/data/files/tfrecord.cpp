#include "core/data/files/tfrecord.h"

#include <algorithm>
#include <iterator>

#include "core/base/interrupt.h"
#include "core/data/files/frames.h"
#include "core/io/protobuf.h"

namespace lunaria::data {

namespace {

struct Feature {
    enum class Kind { none, texts, floats, integers } kind = Kind::none;
    std::vector<Value> texts;
    std::vector<float> floats;
    std::vector<int64_t> integers;

    Value value() const {
        const auto tensor = [](const auto& list) {
            using T = typename std::decay_t<decltype(list)>::value_type;
            return Value(Tensor::from<T>(std::span<const T>(list), {static_cast<int64_t>(list.size())}));
        };
        if (kind == Kind::floats) return tensor(floats);
        if (kind == Kind::integers) return tensor(integers);
        return texts.size() == 1 ? texts.front() : Value::list(texts);
    }
};

// Adds the feature's values; of several kinds of values the last kind in the message counts.
void read_feature(ProtoReader message, Feature& feature) {
    while (message.next()) {
        const uint32_t kind = message.field();
        if (kind < 1 || kind > 3) continue;
        ProtoReader list = message.message();
        if (feature.kind != static_cast<Feature::Kind>(kind)) feature = {};
        feature.kind = static_cast<Feature::Kind>(kind);
        while (list.next()) {
            if (list.field() != 1) continue;
            if (kind == 1)
                feature.texts.emplace_back(list.bytes());
            else if (kind == 2)
                list.floats(feature.floats);
            else
                list.integers(feature.integers);
        }
    }
}

Feature feature_in(const ProtoReader& message) {
    Feature feature;
    read_feature(message, feature);
    return feature;
}

// The values of all steps of a SequenceExample's feature, one after the other, and how many each step has.
struct Steps {
    Feature all;
    std::vector<int64_t> lengths;

    explicit Steps(ProtoReader list) {
        while (list.next()) {
            if (list.field() != 1) continue;
            Feature step = feature_in(list.message());
            if (all.kind == Feature::Kind::none) all.kind = step.kind;
            lengths.push_back(static_cast<int64_t>(step.texts.size() + step.floats.size() + step.integers.size()));
            std::ranges::move(step.texts, std::back_inserter(all.texts));
            std::ranges::move(step.floats, std::back_inserter(all.floats));
            std::ranges::move(step.integers, std::back_inserter(all.integers));
        }
    }
    Value values() const { return all.kind == Feature::Kind::texts ? Value::list(all.texts) : all.value(); }
    Value sizes() const {
        return Value(Tensor::from<int64_t>(std::span<const int64_t>(lengths), {static_cast<int64_t>(lengths.size())}));
    }
};

constexpr std::string_view kLengths = ".lengths";  // suffix of the name of a feature with steps

// Calls f(name, message of the feature, whether it has steps) for the features of an Example or a SequenceExample: its
// context, and lists of features.
template <class F>
void for_features(std::string_view bytes, const std::string& file, F f) {
    ProtoReader example(bytes, file);
    while (example.next()) {
        const bool steps = example.field() == 2;
        if (example.field() != 1 && !steps) continue;
        ProtoReader features = example.message();
        while (features.next()) {
            if (features.field() != 1) continue;
            ProtoReader entry = features.message();
            std::string_view name;
            ProtoReader feature("", file);
            while (entry.next()) {
                if (entry.field() == 1) name = entry.bytes();
                if (entry.field() == 2) feature = entry.message();
            }
            f(name, feature, steps);
        }
    }
}

class File {
  public:
    explicit File(const std::string& path) : source_(open_source(path)) {
        for (uint64_t at = 0; at < source_->size();) {
            if (starts_.size() % 65536 == 0) poll_interrupt();
            starts_.push_back(at);
            at = frame_at(*source_, at, starts_.size() - 1).end();
        }
    }
    size_t size() const { return starts_.size(); }
    std::string content(size_t record) const {
        return content_of(*source_, frame_at(*source_, starts_[record], record), record);
    }
    std::string place(size_t record) const { return str(source_->name(), ": record ", record); }

  private:
    std::unique_ptr<Source> source_;
    std::vector<uint64_t> starts_;
};

class Tfrecords final : public Records {
  public:
    Tfrecords(std::vector<File> files, Names names) : Records(std::move(names)), files_(std::move(files)) {
        for (const File& file : files_) ends_.push_back((rows_ += static_cast<int64_t>(file.size())));
    }
    std::string title() const override { return "TFRecord"; }
    int64_t rows() const override { return rows_; }
    void read(int64_t row, Row& out) const override {
        const size_t f = static_cast<size_t>(std::upper_bound(ends_.begin(), ends_.end(), row) - ends_.begin());
        const size_t record = static_cast<size_t>(row - (f > 0 ? ends_[f - 1] : 0));
        const std::string place = files_[f].place(record), bytes = files_[f].content(record);
        const size_t before = out.size();
        out.resize(before + columns().size());
        const auto put = [&](std::string_view name, const auto& value) {
            const auto at = std::find(columns().begin(), columns().end(), name);
            if (at != columns().end()) out[before + static_cast<size_t>(at - columns().begin())] = value();
        };
        for_features(bytes, place, [&](std::string_view name, const ProtoReader& feature, bool has_steps) {
            if (!has_steps) return put(name, [&] { return feature_in(feature).value(); });
            const Steps steps(feature);
            put(name, [&] { return steps.values(); });
            put(str(name, kLengths), [&] { return steps.sizes(); });
        });
        for (size_t c = 0; c < columns().size(); ++c)
            if (out[before + c].is_nil()) throw file_error(place, str("there is no feature '", columns()[c], "'"));
    }

  private:
    std::vector<File> files_;
    std::vector<int64_t> ends_;  // of the rows of each file
    int64_t rows_ = 0;
};

ProtoWriter feature_of(const std::string& name, const Value& value) {
    ProtoWriter list, feature;
    if (value.kind() == Value::Kind::string) return feature.message(1, list.bytes(1, value.string()));
    if (value.is_list()) {
        for (const Value& text : value.items()) {
            if (text.kind() != Value::Kind::string)
                throw dtype_error("save", str("column '", name, "' has a list of something else than texts"));
            list.bytes(1, text.string());
        }
        return feature.message(1, list);
    }
    const Tensor& t = value.tensor();
    if (is_complex(t.dtype())) throw dtype_error("save", str("column '", name, "' has complex numbers"));
    if (is_float(t.dtype())) {
        const Tensor floats = t.cast(DType::f32).contiguous();
        list.bytes(1, {floats.data<char>(), floats.nbytes()});
        return feature.message(2, list);
    }
    for (int64_t i = 0; i < t.size(); ++i) list.integer(1, t.integer_at(i));
    return feature.message(3, list);
}

}  // namespace

RecordsPtr tfrecord_records(const std::vector<std::string>& paths, Names names) {
    if (paths.empty()) throw argument_error("TFRecordDataset", "the list of files is empty");
    std::vector<File> files;
    for (const std::string& path : paths) files.emplace_back(path);
    if (names.empty()) {
        const auto first = std::find_if(files.begin(), files.end(), [](const File& f) { return f.size() > 0; });
        if (first == files.end())
            throw file_error(paths.front(), "has no records, whose features would be the columns");
        for_features(first->content(0), first->place(0),
                     [&](std::string_view name, const ProtoReader&, bool has_steps) {
                         names.emplace_back(name);
                         if (has_steps) names.push_back(str(name, kLengths));
                     });
        std::sort(names.begin(), names.end());
        names.erase(std::unique(names.begin(), names.end()), names.end());
        if (names.empty()) throw file_error(first->place(0), "has no features: it is no tf.Example");
    }
    return std::make_shared<Tfrecords>(std::move(files), std::move(names));
}

void TfrecordWriter::write(const Names& names, const Row& row) {
    ProtoWriter features, example;
    for (size_t c = 0; c < names.size(); ++c) {
        ProtoWriter entry;
        entry.bytes(1, names[c]).message(2, feature_of(names[c], row[c]));
        features.message(1, entry);
    }
    append_frame(sink_, example.message(1, features).text());
}

}  // namespace lunaria::data
