#include "core/insight/answers/records.h"

#include <algorithm>
#include <cmath>
#include <sstream>

#include "core/insight/store/landscape.h"
#include "core/io/npy.h"

namespace lunaria::insight {

namespace {

constexpr int64_t kMostRecords = 100'000;
constexpr int64_t kMostElements = 100'000;  // of a slice

// What a question asks for, found.
struct Asked {
    Kind kind;
    std::string tag;
    std::vector<Record> records;

    const Record& record(const Question& question) const {
        const std::string_view text = question.part(4);
        size_t index = 0;
        const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), index);
        if (problem != std::errc() || end != text.data() + text.size() || index >= records.size())
            throw Refusal{404, "there is no such record"};
        return records[index];
    }
};

Asked asked_of(const Run& run, const Question& question) {
    const auto name = std::ranges::find(kKindNames, question.part(2));
    Asked asked{static_cast<Kind>(name - kKindNames.begin()), {}, {}};
    asked.tag = tag_of(run, asked.kind, question.part(3));
    asked.records = records_of(run, asked.kind, asked.tag);
    return asked;
}

void put_place(JsonText& json, const Asked& asked, size_t index) {
    const Item& item = asked.records[index].item;
    json.open('{').key("index").number(index).key("step").number(item.step).key("wall").number(item.wall);
}

// A list of what `put` adds for records: all, or `points` of them.
template <class Put>
Answer list_of(const Asked& asked, const Question& question, int64_t most, Put put) {
    const auto points = static_cast<size_t>(question.integer("points", most, 1, kMostRecords));
    JsonText json;
    json.open('[');
    for (const size_t index : spread(asked.records.size(), points)) {
        put_place(json, asked, index);
        put(json, asked.records[index]);
        json.close('}');
    }
    json.close(']');
    return json_answer(json.take());
}

Answer images(const Asked& asked, const Question& question) {
    RecordReader reader(asked.kind, asked.tag);
    if (question.path.size() == 5) {
        Shown shown = reader.read(asked.record(question));
        auto& image = std::get<Shown::Encoded>(shown.value);
        const std::string_view type = picture_type(image.bytes);
        if (type.empty()) throw Refusal{415, "the record is no picture that browsers show"};
        Answer answer;
        answer.type = type;
        answer.body = std::move(image.bytes);
        return answer;
    }
    return list_of(asked, question, kMostRecords, [&](JsonText& json, const Record& record) {
        json.key("width")
            .number(record.item.width)
            .key("height")
            .number(record.item.height)
            .key("type")
            .string("image");
    });
}

Answer audio(const Asked& asked, const Question& question) {
    RecordReader reader(asked.kind, asked.tag);
    if (question.path.size() == 5) {
        Shown shown = reader.read(asked.record(question));
        auto& sound = std::get<Shown::Encoded>(shown.value);
        // A file may claim any type: only one of sounds is passed on.
        const bool is_sound = sound.type.starts_with("audio/") && sound.type.size() < 40 &&
                              std::ranges::all_of(sound.type.substr(6), [](unsigned char c) {
                                  return std::isalnum(c) || c == '-' || c == '.';
                              });
        Answer answer;
        answer.type = is_sound ? sound.type : "application/octet-stream";
        answer.body = std::move(sound.bytes);
        return answer;
    }
    return list_of(asked, question, kMostRecords,
                   [](JsonText& json, const Record&) { json.key("type").string("audio"); });
}

Answer histograms(const Asked& asked, const Question& question) {
    RecordReader reader(asked.kind, asked.tag);
    return list_of(asked, question, 500, [&](JsonText& json, const Record& record) {
        const Shown shown = reader.read(record);
        const auto& histogram = std::get<Shown::Histogram>(shown.value);
        json.key("min").number(histogram.least).key("max").number(histogram.most);
        json.key("count").number(histogram.count).key("sum").number(histogram.sum);
        json.key("nan").number(histogram.nan).key("buckets").open('[');
        for (const auto& [left, right, count] : bins_of(histogram))
            json.open('[').number(left).number(right).number(count).close(']');
        json.close(']');
    });
}

Answer tensors(const Asked& asked, const Question& question) {
    RecordReader reader(asked.kind, asked.tag);
    if (question.path.size() == 5) {
        const Shown shown = reader.read(asked.record(question));
        const auto& tensor = std::get<Tensor>(shown.value);
        if (question.parameter("format") == "npy") {
            StringSink sink;
            write_npy(sink, tensor);
            Answer answer;
            answer.type = "application/octet-stream";
            answer.headers.emplace_back("Content-Disposition", "attachment; filename=\"tensor.npy\"");
            answer.body = sink.text();
            return answer;
        }
        const Slice slice = slice_of(tensor, question.parameter("dims").value_or(""), kMostElements);
        JsonText json;
        json.open('{').numbers("shape", tensor.shape(), [](int64_t size) { return size; }).key("values");
        put_slice(json, slice);
        json.close('}');
        return json_answer(json.take());
    }
    return list_of(asked, question, 500, [&](JsonText& json, const Record& record) {
        const Shown shown = reader.read(record);
        const auto& tensor = std::get<Tensor>(shown.value);
        const Statistics s = statistics_of(tensor);
        json.key("dtype").string(name_of(tensor.dtype())).numbers("shape", tensor.shape(), [](int64_t size) {
            return size;
        });
        json.key("min").number(s.min).key("max").number(s.max).key("mean").number(s.mean);
        json.key("nan").number(s.nan).key("inf").number(s.up + s.down).key("zeros").number(s.zeros);
    });
}

Answer texts(const Asked& asked, const Question& question) {
    RecordReader reader(asked.kind, asked.tag);
    return list_of(asked, question, 1000, [&](JsonText& json, const Record& record) {
        json.key("text").string(std::get<std::string>(reader.read(record).value));
    });
}

// Rows of a tensor: true and false positives, true and false negatives, precision, recall.
Answer pr_curves(const Asked& asked, const Question& question) {
    RecordReader reader(asked.kind, asked.tag);
    return list_of(asked, question, 500, [&](JsonText& json, const Record& record) {
        const Shown shown = reader.read(record);
        const auto* tensor = std::get_if<Tensor>(&shown.value);
        if (!tensor || tensor->shape().rank() != 2 || tensor->shape()[0] != 6)
            throw Refusal{422, "a curve of precision and recall has no six rows"};
        const int64_t thresholds = tensor->shape()[1];
        const char* rows[] = {"tp", "fp", "tn", "fn", "precision", "recall"};
        for (int64_t row = 0; row < 6; ++row) {
            json.key(rows[row]).open('[');
            for (int64_t i = 0; i < thresholds; ++i) json.number(tensor->at(row * thresholds + i));
            json.close(']');
        }
        json.key("thresholds").open('[');
        for (int64_t i = 0; i < thresholds; ++i)
            json.number(static_cast<double>(i) / static_cast<double>(std::max<int64_t>(thresholds - 1, 1)));
        json.close(']');
    });
}

Answer landscape(const Asked& asked) {
    if (asked.records.empty()) throw Refusal{404, "there is no such landscape"};
    RecordReader reader(asked.kind, asked.tag);
    const Landscape l = read_landscape(reader.bytes(asked.records.back()));
    JsonText json;
    const auto same = [](auto value) { return value; };
    const auto points = [&](const Landscape::Points& p) {
        json.numbers("x", p.x, same).numbers("y", p.y, same);
        // One list for each place of the last axis, where the values are a grid.
        const auto width = p.z_shape.size() == 2 ? static_cast<size_t>(std::max<int64_t>(p.z_shape[1], 1)) : p.z.size();
        if (p.z_shape.size() != 2) {
            json.numbers("z", p.z, same);
            return;
        }
        json.key("z").open('[');
        for (size_t row = 0; row + width <= p.z.size(); row += width) {
            json.open('[');
            for (size_t i = 0; i < width; ++i) json.number(p.z[row + i]);
            json.close(']');
        }
        json.close(']');
    };
    json.open('{');
    points(l.grid);
    json.key("path").open('{').numbers("intervals", l.intervals, same);
    points(l.path);
    json.close('}').key("convergence").open('[');
    for (const auto* axis : {&l.convergence.x, &l.convergence.y, &l.convergence.z})
        json.number(axis->empty() ? 0 : axis->front());
    json.close(']').key("unit").string(l.unit).key("steps_per_epoch").number(l.steps_per_epoch);
    json.key("decomposition").string(l.decomposition).close('}');
    return json_answer(json.take());
}

}  // namespace

const Run& run_of(const Store::View& view, std::string_view id) {
    const Run* run = view.run(id);
    if (!run) throw Refusal{404, "there is no such run"};
    return *run;
}

std::string tag_of(const Run& run, Kind kind, std::string_view id) {
    for (std::string& tag : run.tags(kind))
        if (id_of(tag) == id) return std::move(tag);
    throw Refusal{404, "there is no such tag"};
}

std::vector<std::array<double, 3>> bins_of(const Shown::Histogram& histogram) {
    std::vector<std::array<double, 3>> bins;
    for (size_t i = 0; i < histogram.limits.size(); ++i) {
        const double left = i == 0 ? histogram.least : std::max(histogram.limits[i - 1], histogram.least);
        bins.push_back({left, std::max(left, std::min(histogram.limits[i], histogram.most)), histogram.counts[i]});
    }
    const auto is_empty = [](const std::array<double, 3>& bin) { return bin[2] == 0; };
    while (!bins.empty() && is_empty(bins.back())) bins.pop_back();
    bins.erase(bins.begin(), std::ranges::find_if_not(bins, is_empty));
    return bins;
}

std::string_view picture_type(std::string_view bytes) {
    if (bytes.starts_with("\x89PNG")) return "image/png";
    if (bytes.starts_with("\xFF\xD8")) return "image/jpeg";
    if (bytes.starts_with("GIF8")) return "image/gif";
    if (bytes.starts_with("RIFF") && bytes.substr(8, 4) == "WEBP") return "image/webp";
    return bytes.starts_with("BM") ? "image/bmp" : std::string_view();
}

Statistics statistics_of(const Tensor& tensor) {
    Statistics s;
    s.min = std::numeric_limits<double>::infinity();
    s.max = -s.min;
    double sum = 0;
    for (int64_t i = 0; i < tensor.size(); ++i) {
        const double value = tensor.at(i);
        ++s.count;
        if (std::isnan(value)) {
            ++s.nan;
        } else if (std::isinf(value)) {
            ++(value > 0 ? s.up : s.down);
        } else {
            s.zeros += value == 0;
            sum += value;
            s.min = std::min(s.min, value);
            s.max = std::max(s.max, value);
        }
    }
    const int64_t finite = s.count - s.nan - s.up - s.down;
    if (finite == 0) s.min = s.max = std::numeric_limits<double>::quiet_NaN();
    s.mean = sum / static_cast<double>(finite);
    return s;
}

Slice slice_of(const Tensor& tensor, const std::string& dims, int64_t most) {
    const auto& shape = tensor.shape();
    const auto rank = static_cast<size_t>(shape.rank());
    std::vector<int64_t> fixed(rank, -1);  // -1: the whole axis
    if (dims.empty()) {
        for (size_t axis = 0; axis + 2 < rank; ++axis) fixed[axis] = 0;
    } else {
        const Refusal wrong{400,
                            str("dims must have an index or ':' for each of the ", rank, " axes, got '", dims, "'")};
        std::istringstream words(dims);
        std::string word;
        size_t axis = 0;
        for (; std::getline(words, word, ','); ++axis) {
            if (axis >= rank) throw wrong;
            if (word == ":") continue;
            int64_t index = 0;
            const auto [end, problem] = std::from_chars(word.data(), word.data() + word.size(), index);
            if (problem != std::errc() || end != word.data() + word.size()) throw wrong;
            if (index < 0) index += shape[axis];
            if (index < 0 || index >= shape[axis])
                throw Refusal{400, str("axis ", axis, " has ", shape[axis], " elements, there is no index ", word)};
            fixed[axis] = index;
        }
        if (axis != rank) throw wrong;
    }
    Slice slice;
    int64_t count = 1;
    for (size_t axis = 0; axis < rank; ++axis)
        if (fixed[axis] < 0) {
            slice.shape.push_back(shape[axis]);
            count *= shape[axis];
        }
    if (slice.shape.size() > 2) throw Refusal{400, "a slice has at most two axes"};
    if (count > most)
        throw Refusal{413, str("the slice has ", count, " elements, at most ", most, " are given; ask for format=npy")};
    std::vector<int64_t> at(rank);
    for (int64_t i = 0; i < count; ++i) {
        int64_t rest = i, place = 0;
        for (size_t axis = rank; axis-- > 0;) {
            at[axis] = fixed[axis] >= 0 ? fixed[axis] : rest % shape[axis];
            if (fixed[axis] < 0) rest /= shape[axis];
        }
        for (size_t axis = 0; axis < rank; ++axis) place = place * shape[axis] + at[axis];
        slice.values.push_back(tensor.at(place));
    }
    return slice;
}

void put_slice(JsonText& json, const Slice& slice) {
    if (slice.shape.empty()) {
        json.number(slice.values.front());
        return;
    }
    const auto width = static_cast<size_t>(slice.shape.back());
    const auto row = [&](size_t from) {
        json.open('[');
        for (size_t i = 0; i < width; ++i) json.number(slice.values[from + i]);
        json.close(']');
    };
    if (slice.shape.size() == 1) return row(0);
    json.open('[');
    for (size_t i = 0; i < static_cast<size_t>(slice.shape[0]); ++i) row(i * width);
    json.close(']');
}

Answer records_answer(const Store& store, const Question& question) {
    const auto view = store.view();
    const Run& run = run_of(view, question.part(1));
    const std::string_view kind = question.part(2);
    constexpr std::string_view kinds[] = {"images", "audio",     "histograms", "tensors",
                                          "texts",  "pr_curves", "landscapes"};
    if (std::ranges::find(kinds, kind) == std::end(kinds)) throw Refusal{404, "there is no such address"};
    const bool has_parts = kind == "images" || kind == "audio" || kind == "tensors";
    if (question.path.size() != 4 && !(has_parts && question.path.size() == 5))
        throw Refusal{404, "there is no such address"};
    const Asked asked = asked_of(run, question);
    if (kind == "images") return images(asked, question);
    if (kind == "audio") return audio(asked, question);
    if (kind == "histograms") return histograms(asked, question);
    if (kind == "tensors") return tensors(asked, question);
    if (kind == "texts") return texts(asked, question);
    return kind == "pr_curves" ? pr_curves(asked, question) : landscape(asked);
}

}  // namespace lunaria::insight
