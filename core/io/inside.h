// Files that other files refer to by name (external data of models): only what lies inside the folder of the file that
// refers to them is opened, and nothing that a name could be made to lead elsewhere by.
#pragma once

#include <memory>
#include <string>

#include "core/io/file.h"

namespace lunaria {

// The file at a path below the folder. Throws file_error, which begins with `name`, for absolute paths, paths that
// leave the folder, symbolic links, files with several hard links and anything that is no regular file.
std::unique_ptr<Source> open_inside(const std::string& folder, const std::string& path, const std::string& name);

// The files inside a folder, of which the last one stays open.
class FilesInside {
  public:
    explicit FilesInside(std::string folder) : folder_(std::move(folder)) {}
    const Source& open(const std::string& path, const std::string& name) {
        if (!source_ || path != path_) source_ = open_inside(folder_, path, name);
        path_ = path;
        return *source_;
    }

  private:
    std::string folder_, path_;
    std::unique_ptr<Source> source_;
};

}  // namespace lunaria
