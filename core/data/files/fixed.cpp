#include "core/data/files/fixed.h"

#include "core/io/file.h"

namespace lunaria::data {

Tensor read_fixed(const std::vector<std::string>& paths, int64_t size) {
    std::vector<std::unique_ptr<Source>> files;
    uint64_t bytes = 0;
    for (const std::string& path : paths) {
        files.push_back(open_source(path));
        const uint64_t there = files.back()->size();
        if (there == 0 || there % static_cast<uint64_t>(size) != 0)
            throw files.back()->error(str("has ", there, " bytes, which are no whole records of ", size));
        bytes += there;
    }
    const Tensor all = Tensor::empty(DType::u8, {static_cast<int64_t>(bytes) / size, size});
    char* to = all.data<char>();
    for (const auto& file : files) {
        file->read(0, to, file->size());
        to += file->size();
    }
    return all;
}

}  // namespace lunaria::data
