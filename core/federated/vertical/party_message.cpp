#include "core/federated/vertical/party_message.h"

#include <algorithm>
#include <set>

#include "core/io/proto_tensor.h"
#include "core/io/protobuf.h"

namespace lunaria::federated {

namespace {

constexpr int64_t kFormat = 1;
constexpr size_t kLongestPartyName = 256, kMostValues = 1 << 16;
enum Kind : int64_t { kInteger = 1, kNumber, kBytes, kTensor };

ProtoWriter entry_of(const std::string& name, const PartyValue& value) {
    ProtoWriter w;
    w.bytes(1, name).integer(2, static_cast<int64_t>(value.index()) + 1);
    if (const auto* integer = std::get_if<int64_t>(&value)) w.integer(3, *integer);
    if (const auto* number = std::get_if<double>(&value)) w.float64(4, *number);
    if (const auto* bytes = std::get_if<std::string>(&value)) w.bytes(5, *bytes);
    if (const auto* tensor = std::get_if<Tensor>(&value)) {
        const int64_t type = proto::type_number(tensor->dtype());
        if (type == 0)
            throw dtype_error("channel",
                              str("'", name, "' is of dtype ", name_of(tensor->dtype()), ", which cannot be sent"));
        w.integer(6, type);
        for (int d = 0; d < tensor->rank(); ++d) w.integer(7, tensor->dim(d));
        proto::write_raw(w, 5, *tensor);
    }
    return w;
}

std::pair<std::string, PartyValue> entry_in(ProtoReader p) {
    proto::TensorContents c;
    int64_t kind = 0, integer = 0;
    double number = 0;
    std::string_view bytes;
    while (p.next()) {
        switch (p.field()) {
            case 1:
                c.name = p.text();
                break;
            case 2:
                kind = p.integer();
                break;
            case 3:
                integer = p.integer();
                break;
            case 4:
                number = p.float64();
                break;
            case 5:
                bytes = p.bytes();
                break;
            case 6:
                c.type = p.integer();
                break;
            case 7:
                p.integers(c.dims);
                break;
            default:
                p.fail("a value of a message has an unknown field");
        }
    }
    if (c.name.empty() || c.name.size() > kLongestPartyName) p.fail("a value of a message has no name, or a long one");
    switch (kind) {
        case kInteger:
            return {c.name, integer};
        case kNumber:
            return {c.name, number};
        case kBytes:
            return {c.name, std::string(bytes)};
        case kTensor: {
            const auto dtype = proto::dtype_of(c.type);
            if (!dtype) p.fail(str(c.called(), " has no known type"));
            c.raw = bytes;
            std::string name = c.name;
            return {std::move(name), proto::elements(p, c, *dtype)};
        }
        default:
            p.fail(str("'", c.name, "' is of an unknown kind"));
    }
}

}  // namespace

const PartyValue* PartyMessage::find(std::string_view name) const {
    for (const auto& [other, value] : values)
        if (other == name) return &value;
    return nullptr;
}

std::string text_of(const PartyMessage& message) {
    ProtoWriter w;
    w.integer(1, kFormat).bytes(2, message.kind);
    for (const auto& [name, value] : message.values) w.message(3, entry_of(name, value));
    return w.text();
}

PartyMessage read_party_message(std::string_view bytes, std::string_view from) {
    PartyMessage message;
    std::set<std::string> names;
    int64_t format = 0;
    ProtoReader p(bytes, from);
    while (p.next()) {
        switch (p.field()) {
            case 1:
                format = p.integer();
                break;
            case 2:
                message.kind = p.text();
                break;
            case 3: {
                if (message.values.size() == kMostValues) p.fail("a message has too many values");
                message.values.push_back(entry_in(p.message()));
                if (!names.insert(message.values.back().first).second)
                    p.fail(str("a message has '", message.values.back().first, "' twice"));
                break;
            }
            default:
                p.fail("a message has an unknown field");
        }
    }
    if (format != kFormat) p.fail(str("a message has the format ", format, ", this program reads format ", kFormat));
    if (message.kind.empty() || message.kind.size() > kLongestPartyName) p.fail("a message has no kind, or a long one");
    return message;
}

}  // namespace lunaria::federated
