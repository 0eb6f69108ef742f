#include "kernel/wire.h"

#include <algorithm>
#include <xeus/xzmq_serializer.hpp>

namespace lunaria::jupyter {

namespace {

constexpr std::string_view kDelimiter = "<IDS|MSG>";
constexpr size_t kMostIdentities = 16;
constexpr size_t kSignaturesKept = 65536;
constexpr size_t kParts = 5;  // signature, header, parent header, metadata, content

xeus::xraw_buffer raw(const zmq::message_t& frame) { return {frame.data<const unsigned char>(), frame.size()}; }

// Null for text that is not a JSON object.
nl::json object_in(const zmq::message_t& frame) {
    const std::string_view text = frame.to_string_view();
    if (!nests_at_most(text, Wire::kDeepest)) return nullptr;
    nl::json value = nl::json::parse(text, nullptr, false);
    return value.is_object() ? value : nl::json();
}

nl::json parsed(const zmq::message_t& frame, const char* name) {
    nl::json value = object_in(frame);
    if (value.is_null()) throw Refused(std::string("the ") + name + " is no JSON object, or nested too deeply");
    return value;
}

}  // namespace

bool nests_at_most(std::string_view text, int depth) {
    int open = 0;
    bool in_string = false;
    for (size_t i = 0; i < text.size(); ++i) {
        const char c = text[i];
        if (in_string) {
            if (c == '\\')
                ++i;
            else if (c == '"')
                in_string = false;
        } else if (c == '"') {
            in_string = true;
        } else if (c == '{' || c == '[') {
            if (++open > depth) return false;
        } else if (c == '}' || c == ']') {
            --open;
        }
    }
    return true;
}

Wire::Wire(const std::string& scheme, const std::string& key)
    : signer_(xeus::make_xauthentication(scheme, key)), is_signed_(!key.empty()) {}

void Wire::check_signature(const zmq::multipart_t& frames, size_t at) {
    if (!is_signed_) return;
    std::string expected;
    {
        const std::lock_guard lock(signing_);
        expected = signer_->sign(raw(frames[at + 1]), raw(frames[at + 2]), raw(frames[at + 3]), raw(frames[at + 4]));
    }
    const std::string_view given = frames[at].to_string_view();
    // All bytes are compared whatever differs, so that the time reveals nothing.
    unsigned difference = given.size() != expected.size();
    for (size_t i = 0; i < std::min(given.size(), expected.size()); ++i)
        difference |= static_cast<unsigned char>(given[i]) ^ static_cast<unsigned char>(expected[i]);
    if (difference) throw Refused("the signature does not match");
    if (!seen_.insert(expected).second) throw Refused("the message was sent before");
    seen_order_.push_back(std::move(expected));
    if (seen_order_.size() <= kSignaturesKept) return;
    seen_.erase(seen_order_.front());
    seen_order_.pop_front();
}

xeus::xmessage Wire::read(const zmq::multipart_t& frames) {
    size_t delimiter = 0;
    while (delimiter < frames.size() && frames[delimiter].to_string_view() != kDelimiter) ++delimiter;
    if (delimiter == frames.size()) throw Refused("there is no delimiter");
    if (delimiter > kMostIdentities) throw Refused("there are too many identities");
    if (frames.size() - delimiter - 1 < kParts) throw Refused("there are too few frames");
    size_t total = 0;
    for (size_t i = 0; i < frames.size(); ++i) total += frames[i].size();
    if (total > kLargestMessage) throw Refused("the message is too large");
    const size_t first = delimiter + 1;
    for (size_t i = first; i < first + kParts; ++i)
        if (frames[i].size() > kLargestJson) throw Refused("a frame is too large");
    check_signature(frames, first);

    nl::json header = parsed(frames[first + 1], "header");
    for (const char* field : {"msg_id", "msg_type"})
        if (!header.contains(field) || !header[field].is_string())
            throw Refused(std::string("the header has no ") + field);
    nl::json parent = parsed(frames[first + 2], "parent header");
    nl::json metadata = parsed(frames[first + 3], "metadata");
    nl::json content = object_in(frames[first + 4]);
    xeus::xmessage::guid_list identities;
    for (size_t i = 0; i < delimiter; ++i) identities.push_back(frames[i].to_string());
    xeus::buffer_sequence buffers;
    for (size_t i = first + kParts; i < frames.size(); ++i) {
        const char* data = frames[i].data<const char>();
        buffers.emplace_back(data, data + frames[i].size());
    }
    return {identities,          std::move(header),  std::move(parent),
            std::move(metadata), std::move(content), std::move(buffers)};
}

zmq::multipart_t Wire::write(xeus::xmessage message) const {
    const std::lock_guard lock(signing_);
    return xeus::xzmq_serializer::serialize(std::move(message), *signer_, nl::json::error_handler_t::replace);
}

zmq::multipart_t Wire::write(xeus::xpub_message message) const {
    const std::lock_guard lock(signing_);
    return xeus::xzmq_serializer::serialize_iopub(std::move(message), *signer_, nl::json::error_handler_t::replace);
}

}  // namespace lunaria::jupyter
