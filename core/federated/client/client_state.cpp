#include "core/federated/client/client_state.h"

#include <filesystem>

#include "core/io/crc32c.h"
#include "core/io/file.h"
#include "core/io/protobuf.h"

namespace lunaria::federated::client {

namespace {

constexpr std::string_view kHead = "lunaria client state 1\n";

std::string checksum_of(std::string_view bytes) { return str(crc32c(bytes), '\n'); }

// Fields by number, from 1.
constexpr std::string ClientState::*kBytes[] = {
    &ClientState::job,       &ClientState::client,   &ClientState::identity,
    &ClientState::update,    &ClientState::secrets,  &ClientState::rule,
    &ClientState::next_rule, &ClientState::residual, &ClientState::next_residual};
constexpr int64_t ClientState::*kNumbers[] = {&ClientState::timestamp, &ClientState::iteration, &ClientState::phase,
                                              &ClientState::base_version};
constexpr uint32_t kFirstNumber = 33;

std::string written(const ClientState& state) {
    ProtoWriter w;
    for (uint32_t i = 0; i < std::size(kBytes); ++i) w.bytes(i + 1, state.*kBytes[i]);
    for (uint32_t i = 0; i < std::size(kNumbers); ++i) w.integer(kFirstNumber + i, state.*kNumbers[i]);
    return w.text();
}

ClientState read(ProtoReader p) {
    ClientState state;
    while (p.next()) {
        const uint32_t number = p.field();
        if (number >= 1 && number <= std::size(kBytes))
            state.*kBytes[number - 1] = p.bytes();
        else if (number >= kFirstNumber && number < kFirstNumber + std::size(kNumbers))
            state.*kNumbers[number - kFirstNumber] = p.integer();
    }
    return state;
}

}  // namespace

std::optional<ClientState> StateFile::load(const std::string& job, const std::string& client) const {
    std::error_code none;
    if (path_.empty() || !std::filesystem::exists(path_, none)) return std::nullopt;
    const std::string text = read_file(path_);
    std::string_view rest = text;
    const auto damaged = [&] {
        return file_error(path_, "damaged: it is no state of a federated client, or not whole")
            .hint("remove it, and the client begins anew");
    };
    if (!rest.starts_with(kHead)) throw damaged();
    rest.remove_prefix(kHead.size());
    const size_t line = rest.find('\n');
    if (line == std::string_view::npos) throw damaged();
    const std::string_view body = rest.substr(line + 1);
    if (rest.substr(0, line + 1) != checksum_of(body)) throw damaged();
    ClientState state = read(ProtoReader(body, path_));
    if (state.job != job || state.client != client)
        throw file_error(path_, str("it is the state of client '", state.client, "' in job '", state.job, "', not of '",
                                    client, "' in '", job, "'"))
            .hint("each client has a state file of its own");
    return state;
}

void StateFile::save(const ClientState& state) const {
    if (path_.empty()) return;
    const std::string body = written(state);
    FileSink sink(path_, FileSink::Interrupts::ignored, 0600);
    sink.write(kHead);
    sink.write(checksum_of(body));
    sink.write(body);
    sink.commit();
}

}  // namespace lunaria::federated::client
