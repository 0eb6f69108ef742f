// Files that other files refer to by name (external data of models). Only a file inside the folder of the referring
// file is opened; no name can lead out of the folder.
#pragma once

#include <memory>
#include <string>

#include "core/io/file.h"

namespace lunaria {

// The file at a path below the folder. Throws file_error, which begins with `name`, for absolute paths, paths that
// leave the folder, symbolic links, files with several hard links and anything that is no regular file.
std::unique_ptr<Source> open_inside(const std::string& folder, const std::string& path, const std::string& name);

// A path of opened files inside a folder; the last one stays open.
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
