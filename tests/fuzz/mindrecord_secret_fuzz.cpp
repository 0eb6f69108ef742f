// Any bytes are an encrypted file or an Error; what is decrypted is a MindRecord file or an Error. Inputs whose last
// byte is odd are encrypted first and then, some of them, damaged at a place that they choose: they never give other
// bytes than the right ones.
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <string>

#include "core/base/error.h"
#include "core/data/files/mindrecord.h"
#include "core/data/files/mindrecord_secret.h"
#include "core/io/file.h"

using namespace lunaria;

namespace {

constexpr const char* kKey = "0123456789abcdef";

// Files under a key are replaced whole: they need a folder.
struct Folder {
    Folder() {
        char name[] = "/tmp/lunaria_fuzz_XXXXXX";
        path = mkdtemp(name);
    }
    ~Folder() {
        for (const char* file : {"/in", "/out"}) unlink((path + file).c_str());
        rmdir(path.c_str());
    }
    std::string path;
};

void write_file(const std::string& path, const std::string& bytes) {
    FileSink sink(path);
    sink.write(bytes);
    sink.commit();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    static const Folder folder;
    const std::string in = folder.path + "/in", out = folder.path + "/out";
    std::string bytes(reinterpret_cast<const char*>(data), size);
    const bool sealed = size > 3 && data[size - 1] % 2 == 1;
    const std::string plain = sealed ? bytes.substr(0, size - 4) : "";
    if (sealed) {
        write_file(in, plain);
        data::encrypt_mindrecord(in, kKey);
        bytes = read_file(in);
        uint16_t at = 0;
        std::memcpy(&at, data + size - 4, sizeof at);
        if (data[size - 1] % 4 == 1) bytes[at % bytes.size()] ^= static_cast<char>(data[size - 2] | 1);
    }
    write_file(in, bytes);
    try {
        data::encryption_of(in);
        FileSink sink(out);
        data::decrypt_mindrecord(in, sink, kKey);
        sink.commit();
        if (sealed && read_file(out) != plain) std::abort();
        const auto records = data::mindrecord_records({out}, false, {}, false);
        data::Row row;
        for (int64_t i = 0; i < records->rows(); ++i) {
            row.clear();
            try {
                records->read(i, row);
            } catch (const Error&) {
            }
        }
    } catch (const Error&) {
    }
    return 0;
}
