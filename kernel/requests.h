// The fields of requests. A field that a front end leaves out gets its default; a field of a wrong type gets an answer
// that says so, since after this check fields are read without further checks.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

namespace lunaria::jupyter {

// Whether messages of that type are taken on the shell channel.
bool is_request(const std::string& type);

// Fills in defaults and brings numbers into the range of int. Returns the complaint, if there is one.
std::optional<std::string> complete_content(const std::string& type, nlohmann::json& content);

// "execute_reply" for "execute_request"; empty for messages that have no reply.
std::string reply_type(const std::string& type);

}  // namespace lunaria::jupyter
