// What a request may contain. A front end that leaves a field out gets its default; one that gives a wrong type gets an
// answer that says so, for behind this check fields are read without looking.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

namespace lunaria::jupyter {

// Whether messages of that type are taken on the shell channel.
bool is_request(const std::string& type);

// Fills in defaults and brings numbers into the range of int. Gives the complaint, if there is one.
std::optional<std::string> complete_content(const std::string& type, nlohmann::json& content);

// "execute_reply" for "execute_request"; empty for messages that have no reply.
std::string reply_type(const std::string& type);

}  // namespace lunaria::jupyter
