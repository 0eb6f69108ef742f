#include "core/base/program_place.h"

#include <utility>

namespace lunaria {

namespace {
std::function<std::string()>& finder() {
    static thread_local std::function<std::string()> function;
    return function;
}
thread_local const std::string* fixed = nullptr;
}  // namespace

std::string program_place() {
    if (fixed) return *fixed;
    return finder() ? finder()() : std::string();
}
void set_program_place(std::function<std::string()> place) { finder() = std::move(place); }

ProgramPlaceScope::ProgramPlaceScope(const std::string& place) : before_(fixed) {
    if (!place.empty()) fixed = &place;
}
ProgramPlaceScope::~ProgramPlaceScope() { fixed = before_; }

}  // namespace lunaria
