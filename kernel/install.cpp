#include "kernel/install.h"

#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>

#include "core/io/file.h"
#include "interpreter/session/session.h"
#include "kernel/logo.h"

namespace lunaria::jupyter {

namespace fs = std::filesystem;

namespace {

constexpr const char* kWhere = "kernel install";

std::string variable(const char* name) {
    const char* value = std::getenv(name);
    return value ? value : "";
}

// The folder in which Jupyter looks for files of the user.
std::string user_data_folder() {
    if (const std::string folder = variable("JUPYTER_DATA_DIR"); !folder.empty()) return folder;
    if (const std::string folder = variable("XDG_DATA_HOME"); !folder.empty()) return folder + "/jupyter";
    const std::string home = variable("HOME");
    if (home.empty()) throw state_error(kWhere, "there is no HOME").hint("name a folder with --prefix");
    return home + "/.local/share/jupyter";
}

// The prefix of the Python environment that is active, or of the first jupyter on the path.
std::string environment_prefix() {
    for (const char* name : {"VIRTUAL_ENV", "CONDA_PREFIX"})
        if (const std::string folder = variable(name); !folder.empty()) return folder;
    std::istringstream path(variable("PATH"));
    for (std::string folder; std::getline(path, folder, ':');) {
        std::error_code failure;
        if (!folder.empty() && fs::exists(folder + "/jupyter", failure)) return fs::path(folder).parent_path();
    }
    throw state_error(kWhere, "no environment is active and there is no jupyter on the path")
        .hint("activate the environment, or name its folder with --prefix");
}

bool is_name(const std::string& name) {
    return !name.empty() && name != "." && name != ".." &&
           name.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") ==
               std::string::npos;
}

}  // namespace

InstallOptions parse_install(const std::vector<std::string>& arguments) {
    InstallOptions options;
    for (size_t i = 0; i < arguments.size(); ++i) {
        std::string word = arguments[i], value;
        bool has_value = false;
        if (const size_t equals = word.find('='); word.starts_with("--") && equals != std::string::npos) {
            value = word.substr(equals + 1);
            word.resize(equals);
            has_value = true;
        }
        const auto text = [&] {
            if (has_value) return value;
            if (++i >= arguments.size()) throw argument_error(kWhere, str("option ", word, " needs an argument"));
            return arguments[i];
        };
        if (word == "--user")
            options.data_folder = user_data_folder();
        else if (word == "--prefix")
            options.data_folder = text() + "/share/jupyter";
        else if (word == "--sys-prefix")
            options.data_folder = environment_prefix() + "/share/jupyter";
        else if (word == "--name")
            options.name = text();
        else if (word == "--display-name")
            options.display_name = text();
        else
            throw argument_error(kWhere, str("unrecognized option '", word, "'"))
                .hint("there are --user, --prefix P, --sys-prefix, --name N, --display-name TEXT");
    }
    if (!is_name(options.name))
        throw value_error(kWhere, str("the name must be letters, digits, '.', '_' and '-', got '", options.name, "'"));
    if (options.data_folder.empty()) options.data_folder = user_data_folder();
    return options;
}

std::string install_spec(const InstallOptions& options) {
    std::error_code failure;
    const fs::path program = fs::read_symlink("/proc/self/exe", failure);
    if (failure) throw file_error("/proc/self/exe", failure.message());
    const fs::path folder = fs::absolute(options.data_folder) / "kernels" / options.name;
    fs::create_directories(folder, failure);
    if (failure) throw file_error(folder.string(), failure.message());
    // In the folder tree that the program is a part of, the place of one says that of the other, and the tree can be
    // moved.
    constexpr std::string_view kFromSpec = "../../../../bin/lunaria";
    const bool together = fs::weakly_canonical(folder / kFromSpec, failure) == program;
    const std::string start = together ? str("{resource_dir}/", kFromSpec) : program.string();
    const nlohmann::ordered_json spec = {
        {"argv", {start, "kernel", "-f", "{connection_file}"}},
        {"display_name", options.display_name},
        {"language", "lua"},
        {"interrupt_mode", "message"},
        {"metadata", {{"debugger", true}}},
    };
    write_file(folder / "logo-svg.svg", logo_svg());
    write_file(folder / "logo-32x32.png", logo_png(32));
    write_file(folder / "logo-64x64.png", logo_png(64));
    // Written last: this file makes the kernel visible.
    write_file(folder / "kernel.json", spec.dump(1) + "\n");
    return folder.string();
}

}  // namespace lunaria::jupyter
