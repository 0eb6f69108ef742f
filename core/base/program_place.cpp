#include "core/base/program_place.h"

#include <utility>

namespace lunaria {

namespace {
std::function<std::string()>& finder() {
    static thread_local std::function<std::string()> function;
    return function;
}
}  // namespace

std::string program_place() { return finder() ? finder()() : std::string(); }
void set_program_place(std::function<std::string()> place) { finder() = std::move(place); }

}  // namespace lunaria
