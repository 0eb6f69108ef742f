// Common parts of the tests of file formats.
#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>

#include <array>
#include <filesystem>
#include <functional>
#include <string>

#include "core/base/error.h"
#include "core/io/elements.h"

namespace lunaria::test {

inline const std::string kSamples = "tests/data/samples/";

// A folder that goes away with the test.
class Scratch {
  public:
    Scratch() {
        std::string pattern = (std::filesystem::temp_directory_path() / "lunaria-io-XXXXXX").string();
        folder_ = mkdtemp(pattern.data());
    }
    ~Scratch() { std::filesystem::remove_all(folder_); }
    Scratch(const Scratch&) = delete;
    Scratch& operator=(const Scratch&) = delete;
    std::string path(const std::string& name) const { return folder_ + "/" + name; }
    const std::string& folder() const { return folder_; }

  private:
    std::string folder_;
};

// The message of the error that `action` must throw; it has to mention `part`.
inline std::string error_of(const std::function<void()>& action, const std::string& part = "") {
    try {
        action();
    } catch (const Error& error) {
        std::string text = error.what();
        EXPECT_NE(text.find(part), std::string::npos) << "'" << part << "' is not in: " << text;
        return text;
    }
    ADD_FAILURE() << "no error; expected one that mentions '" << part << "'";
    return "";
}

// FIPS 180-4, for the checksums in the manifest of samples.
std::string sha256(std::string_view bytes);

inline std::string_view bytes_of(const Tensor& t) { return {static_cast<const char*>(t.raw()), t.nbytes()}; }

}  // namespace lunaria::test
