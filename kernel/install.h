// The kernel spec: the folder by which Jupyter finds the kernel.
#pragma once

#include <string>
#include <vector>

namespace lunaria::jupyter {

struct InstallOptions {
    std::string name = "lunaria";          // of the folder, as in `jupyter console --kernel NAME`
    std::string display_name = "Lunaria";  // in menus
    std::string data_folder;               // that holds the folder kernels/
};

// Reads --user, --prefix P, --sys-prefix, --name N, --display-name TEXT; the user's own folder is the default. Throws
// Error.
InstallOptions parse_install(const std::vector<std::string>& arguments);

// Writes the spec for the running program and returns its folder. Throws Error.
std::string install_spec(const InstallOptions& options);

}  // namespace lunaria::jupyter
