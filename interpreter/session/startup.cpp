#include "interpreter/session/startup.h"

#include <cstdlib>
#include <filesystem>
#include <string_view>

#include "core/base/error.h"
#include "interpreter/loader/loader.h"

namespace lunaria {

std::string user_folder(const char* variable, const char* below_home) {
    const char* set = std::getenv(variable);
    if (set && *set == '/') return str(set, "/lunaria");
    const char* home = std::getenv("HOME");
    return home && *home ? str(home, "/", below_home, "/lunaria") : std::string();
}

Execution run_startup_file(Session& session) {
    const std::string folder = user_folder("XDG_CONFIG_HOME", ".config");
    std::error_code ignored;
    const std::string path = folder + "/init.lua";
    Execution execution;
    if (folder.empty() || !std::filesystem::exists(path, ignored)) return execution;
    try {
        return session.execute(read_text_file(path), {.name = "@" + path, .store_history = false, .show = false});
    } catch (const Error& e) {
        execution.ok = false;
        execution.error = ErrorReport{ErrorReport::Kind::error, e.what(), {}};
    }
    return execution;
}

}  // namespace lunaria
