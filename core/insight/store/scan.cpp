#include "core/insight/store/scan.h"

#include <charconv>
#include <optional>

namespace lunaria::insight {

namespace {

// SummaryMetadata { PluginData { string plugin_name = 1 } plugin_data = 1 }, or MindSpore's histogram in its place,
// whose first field is a list of bins.
std::optional<std::string_view> plugin_in(std::string_view bytes) {
    Wire metadata(bytes);
    std::string_view name;
    while (metadata.next()) {
        if (metadata.field == 2 && metadata.type != 2) return std::nullopt;
        if (metadata.field != 1) continue;
        Wire data(metadata.text());
        while (data.next()) {
            if (data.field != 1) continue;
            if (data.type != 2) return std::nullopt;
            name = data.bytes;
        }
    }
    return name;
}

Kind kind_of_plugin(std::string_view name) {
    constexpr std::pair<std::string_view, Kind> known[] = {
        {"scalars", Kind::scalar}, {"images", Kind::image}, {"histograms", Kind::histogram},
        {"audio", Kind::audio},    {"text", Kind::text},    {"pr_curves", Kind::pr_curve},
        {"hparams", Kind::hparams}};
    for (const auto& [plugin, kind] : known)
        if (plugin == name) return kind;
    return Kind::tensor;
}

// The number in a TensorProto of one element: a list of floats or doubles (packed or not), or raw bytes.
double number_of(std::string_view tensor) {
    Wire m(tensor);
    int64_t type = 0;
    double value = 0;
    while (m.next()) switch (m.field) {
            case 1:
                type = m.integer();
                break;
            case 4:
            case 5:
            case 6: {
                // Raw bytes follow the tensor's type; lists have one of their own.
                const bool is_double = m.type == 1 || (m.type == 2 && (m.field == 6 || (m.field == 4 && type == 2)));
                if (m.type == 2 && m.bytes.size() < (is_double ? 8u : 4u)) break;
                float single = 0;
                if (is_double)
                    std::memcpy(&value, m.bytes.data(), sizeof value);
                else if (m.type != 0)
                    std::memcpy(&single, m.bytes.data(), sizeof single), value = static_cast<double>(single);
                break;
            }
            default:
                break;
        }
    return value;
}

// Sizes of a picture: fields of the message, or the first two texts of a tensor.
void set_size(std::string_view image, bool is_tensor, ScannedValue& value) {
    Wire m(image);
    int texts = 0;
    while (m.next()) {
        if (!is_tensor && m.field == 1) value.height = static_cast<uint32_t>(m.integer());
        if (!is_tensor && m.field == 2) value.width = static_cast<uint32_t>(m.integer());
        if (!is_tensor || m.field != 8 || texts == 2) continue;
        uint32_t& size = texts++ == 0 ? value.width : value.height;
        std::from_chars(m.text().data(), m.text().data() + m.text().size(), size);
    }
}

// Whether a TensorProto of TensorBoard's holds texts.
bool has_texts(std::string_view tensor) {
    Wire m(tensor);
    while (m.next()) {
        if (m.field == 1 && m.type == 0 && m.number == 7) return true;
        if (m.field == 8) return true;
    }
    return false;
}

}  // namespace

ScannedEvent scan_event(std::string_view bytes, const std::string& place, uint64_t offset) {
    ScannedEvent event;
    Wire m(bytes);
    while (m.next()) switch (m.field) {
            case 1:
                event.wall = m.float64();
                break;
            case 2:
                event.step = m.integer();
                break;
            case 4:
                event.has_graph = true;
                break;
            case 5:
                event.summary = m.text();
                break;
            default:
                break;
        }
    if (m.broken()) throw file_error(place, str("corrupt: the record at offset ", offset, " is no message"));
    return event;
}

ScannedValue scan_value(std::string_view bytes, const std::string& place) {
    ScannedValue value;
    Wire m(bytes);
    std::string_view tensor;
    std::optional<std::string_view> plugin;
    const auto is = [&](Kind kind) {
        value.kind = kind;
        value.has_kind = true;
    };
    while (m.next()) switch (m.field) {
            case 1:
                value.tag = m.text();
                break;
            case 2:
            case 3:
                if (m.type != 5) break;
                is(Kind::scalar);
                value.number = m.float64();
                break;
            case 4:
                is(Kind::image);
                set_size(m.text(), false, value);
                break;
            case 5:
                is(Kind::histogram);
                break;
            case 6:
                is(Kind::audio);
                break;
            case 8:
                tensor = m.text();
                break;
            case 9:
                plugin = plugin_in(m.text());
                if (!plugin) is(Kind::histogram);
                break;
            case 10:
                is(Kind::landscape);
                break;
            default:
                break;
        }
    if (m.broken()) throw file_error(place, "corrupt: a value is no message");
    if (value.has_kind) return value;
    if (plugin && !plugin->empty()) {
        is(kind_of_plugin(*plugin));
    } else if (!tensor.empty()) {
        value.kind = has_texts(tensor) ? Kind::text : Kind::tensor;
    }
    if (value.kind == Kind::image) set_size(tensor, true, value);
    if (!tensor.empty()) value.number = number_of(tensor);
    return value;
}

}  // namespace lunaria::insight
