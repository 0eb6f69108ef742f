// Messages between parties: a kind and values by name. One form for all protocols, so that one reader checks
// everything that comes from outside.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "core/tensor/tensor.h"

namespace lunaria::federated {

using PartyValue = std::variant<int64_t, double, std::string, Tensor>;

struct PartyMessage {
    std::string kind;
    std::vector<std::pair<std::string, PartyValue>> values;  // each name once

    const PartyValue* find(std::string_view name) const;
};

std::string text_of(const PartyMessage& message);
// Throws a file_error in the name of `from` for bytes that are no such message; nothing is allocated beyond what the
// bytes account for.
PartyMessage read_party_message(std::string_view bytes, std::string_view from);

}  // namespace lunaria::federated
