// The messages (TensorBoard's event.proto and summary.proto, MindSpore's lineage.proto and summary.proto):
//   Event { double wall_time = 1; int64 step = 2; string file_version = 3; bytes graph_def = 4; Summary summary = 5 }
//   Summary { repeated Value value = 1 }
//   Value { string tag = 1; float simple_value = 2 (MindSpore: scalar_value = 3); Image image = 4; HistogramProto histo
//   = 5;
//           Audio audio = 6; TensorProto tensor = 8; SummaryMetadata metadata = 9 (MindSpore: Histogram);
//           LossLandscape loss_landscape = 10 }
// Where the two disagree, the kind of the first inner field tells them apart.
#include "core/data/files/events.h"

#include <cstdlib>
#include <cstring>

#include "core/io/proto_fields.h"
#include "core/operator/infer.h"

namespace lunaria {

namespace {

using namespace proto;
using Histogram = Shown::Histogram;
using Encoded = Shown::Encoded;

// A double, which the field holds as an integer.
template <auto member, class M>
constexpr Field<M> count_of(uint32_t number, double M::*) {
    return {number, [](M& m, const ProtoReader& p) { m.*member = static_cast<double>(p.integer()); }};
}
template <auto member>
constexpr auto count(uint32_t number) {
    return count_of<member>(number, member);
}

constexpr Field<Histogram> kHistogram[] = {
    field<&Histogram::least>(1),   field<&Histogram::most>(2),   field<&Histogram::count>(3), field<&Histogram::sum>(4),
    field<&Histogram::squares>(5), field<&Histogram::limits>(6), field<&Histogram::counts>(7)};

Histogram read_histogram(ProtoReader m) {
    Histogram h;
    read_fields(m, h, kHistogram);
    if (h.limits.size() != h.counts.size())
        m.fail(str("a histogram has ", h.limits.size(), " limits and ", h.counts.size(), " counts"));
    return h;
}

// MindSpore's, whose bins have a left end, a width and a count each.
struct Bin {
    double left = 0, width = 0, count = 0;
};
constexpr Field<Bin> kBin[] = {field<&Bin::left>(1), field<&Bin::width>(2), count<&Bin::count>(3)};

constexpr Field<Histogram> kOwnHistogram[] = {{1,
                                               [](Histogram& h, const ProtoReader& p) {
                                                   Bin bin;
                                                   read_fields(p.message(), bin, kBin);
                                                   h.limits.push_back(bin.left + bin.width);
                                                   h.counts.push_back(bin.count);
                                               }},
                                              count<&Histogram::nan>(2),
                                              count<&Histogram::up>(3),
                                              count<&Histogram::down>(4),
                                              field<&Histogram::most>(5),
                                              field<&Histogram::least>(6),
                                              field<&Histogram::sum>(7),
                                              count<&Histogram::count>(8)};

Histogram read_own_histogram(ProtoReader m) {
    Histogram h;
    read_fields(m, h, kOwnHistogram);
    // As TensorBoard counts: values outside of all bins are not counted.
    h.count -= h.nan + h.up + h.down;
    return h;
}

Encoded read_image(ProtoReader m) {
    Encoded image;
    while (m.next()) {
        if (m.field() == 1) image.about["height"] = static_cast<double>(m.integer());
        if (m.field() == 2) image.about["width"] = static_cast<double>(m.integer());
        if (m.field() == 3) image.about["channels"] = static_cast<double>(m.integer());
        if (m.field() == 4) image.bytes = m.bytes();
    }
    return image;
}

Encoded read_audio(ProtoReader m) {
    Encoded sound;
    while (m.next()) {
        if (m.field() == 1) sound.about["sample_rate"] = m.float32();
        if (m.field() == 2) sound.about["channels"] = static_cast<double>(m.integer());
        if (m.field() == 3) sound.about["frames"] = static_cast<double>(m.integer());
        if (m.field() == 4) sound.bytes = m.bytes();
        if (m.field() == 5) sound.type = m.text();
    }
    return sound;
}

// A tensor, or texts.
struct Content {
    // Field 1: TensorBoard's dtype, or MindSpore's axes. MindSpore's field 2 is the number of the dtype, TensorBoard's
    // the shape.
    std::vector<int64_t> first;
    std::vector<int64_t> dims;
    int64_t type = 0;                 // TensorBoard's number of the type
    std::optional<int64_t> own_type;  // MindSpore's
    std::string_view bytes;
    std::vector<float> floats;
    std::vector<double> doubles;
    std::vector<int64_t> integers;
    std::vector<std::string> texts;
};

constexpr int64_t kTextType = 7;     // of TensorBoard's
constexpr int64_t kOwnFloat32 = 11;  // of MindSpore's

std::optional<DType> dtype_of(const Content& c) {
    if (c.own_type) return *c.own_type == kOwnFloat32 ? std::optional(DType::f32) : std::nullopt;
    switch (c.type) {
        case 1:
            return DType::f32;
        case 2:
            return DType::f64;
        case 3:
            return DType::i32;
        case 4:
            return DType::u8;
        case 5:
            return DType::i16;
        case 6:
            return DType::i8;
        case 9:
            return DType::i64;
        case 10:
            return DType::boolean;
        default:
            return std::nullopt;
    }
}

void read_shape(ProtoReader m, std::vector<int64_t>& dims) {
    while (m.next()) {
        if (m.field() != 2) continue;
        ProtoReader dim = m.message();
        int64_t size = 0;
        while (dim.next())
            if (dim.field() == 1) size = dim.integer();
        dims.push_back(size);
    }
}

constexpr Field<Content> kContent[] = {field<&Content::first>(1),
                                       {2,
                                        [](Content& c, const ProtoReader& p) {
                                            if (p.has_bytes())
                                                read_shape(p.message(), c.dims);
                                            else
                                                c.own_type = p.integer();
                                        }},
                                       {3,
                                        [](Content& c, const ProtoReader& p) {
                                            if (p.has_bytes()) c.bytes = p.bytes();
                                        }},
                                       bytes<&Content::bytes>(4),
                                       field<&Content::floats>(5),
                                       field<&Content::doubles>(6),
                                       field<&Content::integers>(7),
                                       bytes<&Content::texts>(8),
                                       field<&Content::integers>(10),
                                       field<&Content::integers>(11)};

Content read_content(ProtoReader m) {
    Content c;
    read_fields(m, c, kContent);
    if (c.own_type)
        c.dims = std::move(c.first);
    else if (!c.first.empty())
        c.type = c.first.back();
    return c;
}

Tensor tensor_of(const ProtoReader& m, const Content& c) {
    const std::optional<DType> dtype = dtype_of(c);
    if (!dtype) m.fail(str("a tensor has the type ", c.own_type.value_or(c.type), ", which is not known"));
    if (c.dims.size() > kMaxRank) m.fail(str("a tensor has ", c.dims.size(), " axes"));
    // Checks that everything to be listed or written is present before anything is made.
    const size_t each = size_of(*dtype);
    const size_t listed = c.floats.size() + c.doubles.size() + c.integers.size();
    const size_t there = c.bytes.empty() ? listed : c.bytes.size() / each;
    uint64_t count = 1;
    Shape shape;
    for (const int64_t dim : c.dims) {
        if (dim < 0 || (dim > 0 && count > there / static_cast<uint64_t>(dim)))
            m.fail(str("a tensor of ", there, " elements has an axis of ", dim));
        count *= static_cast<uint64_t>(dim);
        shape.push_back(dim);
    }
    if (count != there || (!c.bytes.empty() && c.bytes.size() % each))
        m.fail(str("a tensor of ", count, " elements has ", c.bytes.empty() ? listed : c.bytes.size(),
                   c.bytes.empty() ? " values" : " bytes"));
    Tensor t = Tensor::empty(*dtype, shape);
    if (!c.bytes.empty()) {
        std::memcpy(t.raw(), c.bytes.data(), c.bytes.size());
        if (*dtype == DType::boolean)
            for (size_t i = 0; i < c.bytes.size(); ++i) t.data<char>()[i] = c.bytes[i] != 0;
        return t;
    }
    for (size_t i = 0; i < listed; ++i) {
        const auto at = static_cast<int64_t>(i);
        if (i < c.floats.size())
            t.set_at(at, c.floats[i]);
        else if (i - c.floats.size() < c.doubles.size())
            t.set_at(at, c.doubles[i - c.floats.size()]);
        else
            t.set_at(at, static_cast<double>(c.integers[i - c.floats.size() - c.doubles.size()]));
    }
    return t;
}

// SummaryMetadata { PluginData { string plugin_name = 1; bytes content = 2 } plugin_data = 1 }
struct Plugin {
    std::string name, data;
};

// Nothing where the message is one of MindSpore's histograms.
std::optional<Plugin> read_plugin(ProtoReader m) {
    Plugin plugin;
    while (m.next()) {
        if (m.field() != 1) {
            if (m.field() == 2 && !m.has_bytes()) return std::nullopt;
            continue;
        }
        ProtoReader data = m.message();
        while (data.next()) {
            if (data.field() == 1) {
                if (!data.has_bytes()) return std::nullopt;
                plugin.name = data.text();
            }
            if (data.field() == 2 && data.has_bytes()) plugin.data = data.bytes();
        }
    }
    return plugin;
}

// Texts in the order of the tensor, of which a picture or a sound keeps some as bytes.
Shown::Encoded encoded_of(const ProtoReader& m, const Content& c, bool is_image) {
    Encoded encoded;
    const size_t first = is_image ? 2 : 0;
    if (c.texts.size() <= first) m.fail(str("a tensor of a picture or sound has ", c.texts.size(), " texts"));
    encoded.bytes = c.texts[first];
    if (is_image) {
        encoded.about["width"] = std::atof(c.texts[0].c_str());
        encoded.about["height"] = std::atof(c.texts[1].c_str());
    } else {
        encoded.type = "audio/wav";
    }
    return encoded;
}

// Bins as rows of left end, right end and count.
Histogram histogram_of(const ProtoReader& m, const Tensor& rows) {
    if (rows.shape().rank() != 2 || rows.shape()[1] != 3) m.fail("a tensor of a histogram has no rows of three");
    Histogram h;
    for (int64_t i = 0; i < rows.shape()[0]; ++i) {
        const double left = rows.at(3 * i), right = rows.at(3 * i + 1), count = rows.at(3 * i + 2);
        if (i == 0) h.least = left;
        h.most = right;
        h.limits.push_back(right);
        h.counts.push_back(count);
        h.count += count;
        h.sum += count * (left + right) / 2;
    }
    return h;
}

void set_tensor(Shown& shown, const ProtoReader& m, std::string_view plugin) {
    const Content c = read_content(m);
    if (plugin == "images" || plugin == "audio") {
        shown.kind = plugin == "images" ? "image" : "audio";
        shown.value = encoded_of(m, c, plugin == "images");
        return;
    }
    if (!c.texts.empty() || (c.type == kTextType && !c.own_type)) {
        std::string text;
        for (const std::string& line : c.texts) text += (text.empty() ? "" : "\n") + line;
        if (!is_utf8(text)) m.fail("a text is not UTF-8");
        shown.kind = "text";
        shown.value = std::move(text);
        return;
    }
    const Tensor tensor = tensor_of(m, c);
    if (plugin == "histograms") {
        shown.kind = "histogram";
        shown.value = histogram_of(m, tensor);
        return;
    }
    shown.kind = "tensor";
    shown.value = tensor;
}

Shown read_shown(ProtoReader m, std::string_view earlier_plugin = {}) {
    Shown shown;
    std::optional<Plugin> plugin;
    std::optional<ProtoReader> tensor;
    while (m.next()) switch (m.field()) {
            case 1:
                shown.tag = m.text();
                break;
            case 2:
            case 3:
                shown.kind = "scalar";
                shown.value = static_cast<double>(m.float32());
                break;
            case 4:
                shown.kind = "image";
                shown.value = read_image(m.message());
                break;
            case 5:
                shown.kind = "histogram";
                shown.value = read_histogram(m.message());
                break;
            case 6:
                shown.kind = "audio";
                shown.value = read_audio(m.message());
                break;
            case 8:
                tensor = m.message();
                break;
            case 9:
                plugin = read_plugin(m.message());
                if (!plugin) {
                    shown.kind = "histogram";
                    shown.value = read_own_histogram(m.message());
                }
                break;
            case 10:
                shown.kind = "landscape";
                shown.value = Shown::Data{std::string(m.bytes())};
                break;
            default:
                break;
        }
    const std::string_view plugin_name =
        plugin && !plugin->name.empty() ? std::string_view(plugin->name) : earlier_plugin;
    if (tensor) set_tensor(shown, *tensor, plugin_name);
    if (shown.kind.empty() && plugin) {
        shown.kind = plugin->name;
        shown.value = Shown::Data{std::move(plugin->data)};
    }
    // TensorBoard's newer form of a figure.
    if (plugin_name == "scalars" && shown.kind == "tensor") {
        const auto& scalar = std::get<Tensor>(shown.value);
        if (scalar.size() != 1) m.fail(str("a scalar has ", scalar.size(), " elements"));
        const double figure = scalar.at(0);
        shown.kind = "scalar";
        shown.value = figure;
    }
    return shown;
}

// Other programs write a histogram in both forms: details that only the second form has are added to the first.
bool joined(std::vector<Shown>& values, const Shown& shown) {
    if (shown.kind != "histogram" || values.empty()) return false;
    Shown& before = values.back();
    if (before.kind != "histogram" || before.tag != shown.tag) return false;
    auto& first = std::get<Histogram>(before.value);
    const auto& second = std::get<Histogram>(shown.value);
    first.nan = second.nan;
    first.up = second.up;
    first.down = second.down;
    return true;
}

constexpr Field<Event> kSummary[] = {{1, [](Event& event, const ProtoReader& p) {
                                          Shown shown = read_shown(p.message());
                                          if (!shown.kind.empty() && !joined(event.values, shown))
                                              event.values.push_back(std::move(shown));
                                      }}};

}  // namespace

Shown read_shown(std::string_view bytes, const std::string& place, std::string_view plugin) {
    return read_shown(ProtoReader(bytes, place), plugin);
}

Event read_event(std::string_view bytes, const std::string& place) {
    static constexpr Field<Event> fields[] = {
        field<&Event::wall_time>(1),
        field<&Event::step>(2),
        field<&Event::version>(3),
        {4, [](Event& event, const ProtoReader&) { event.has_graph = true; }},
        {5, [](Event& event, const ProtoReader& p) { read_fields(p.message(), event, kSummary); }}};
    Event event;
    ProtoReader message(bytes, place);
    while (message.next()) {
        const auto f = std::ranges::find(fields, message.field(), &Field<Event>::number);
        if (f != std::end(fields))
            f->read(event, message);
        else if (message.has_bytes())
            event.others.insert_or_assign(message.field(), std::string(message.bytes()));
    }
    return event;
}

std::optional<Event> EventReader::next() {
    if (offset_ >= source_->size() || (partial_ && is_cut_off(*source_, offset_))) return std::nullopt;
    const Frame frame = frame_at(*source_, offset_, record_);
    Event event = read_event(content_of(*source_, frame, record_),
                             str(source_->name(), ": record ", record_, " (offset ", frame.start, ")"));
    offset_ = frame.end();
    ++record_;
    return event;
}

}  // namespace lunaria
