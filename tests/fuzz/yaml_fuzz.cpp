// Any bytes are a YAML configuration, or an Error: events that are a value, within bounds.
// Source: core/io/yaml_module.cpp
#include "core/io/yaml.h"

#include <cstdlib>
#include <string>

#include "core/base/error.h"

extern "C" bool lunaria_yaml(std::string_view text, lunaria::YamlParts& parts, std::string& problem, size_t& line);

namespace {

class Balance final : public lunaria::JsonEvents {
  public:
    void null() override {}
    void boolean(bool) override {}
    void integer(int64_t) override {}
    void number(double) override {}
    void string(const std::string&) override {}
    void begin_object() override { ++open; }
    void key(const std::string&) override {
        if (open == 0) std::abort();
    }
    void end_object() override { --open; }
    void begin_array() override { ++open; }
    void end_array() override { --open; }
    int open = 0;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    Balance events;
    try {
        lunaria::read_yaml({reinterpret_cast<const char*>(data), size}, "fuzz.yaml", events, nullptr, lunaria_yaml);
        if (events.open != 0) std::abort();
    } catch (const lunaria::Error&) {
    }
    return 0;
}
