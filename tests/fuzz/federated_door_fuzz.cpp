// Any update is what its model asks for, or is refused in words.
#include "core/federated/server/door.h"

#include <cstdlib>
#include <cstring>

using namespace lunaria;
using namespace lunaria::federated;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    static const ModelShape kShape = [] {
        messages::FeatureMap model;
        for (const auto type : {messages::ElementType::float32, messages::ElementType::float16}) {
            messages::Feature feature;
            feature.name = name_of(type);
            feature.shape = {2, 2};
            feature.type = type;
            feature.data.resize(4 * bytes_of(type));
            model.features.push_back(std::move(feature));
        }
        return ModelShape(model, 1e6);
    }();
    try {
        const auto update =
            messages::parsed<messages::UpdateModel>({reinterpret_cast<const char*>(data), size}, "update");
        if (!kShape.problem(update, messages::Encoding::plain).empty()) return 0;
        for (const messages::Feature& feature : update.features) {
            if (feature.type != messages::ElementType::float32) continue;
            float values[4];
            std::memcpy(values, feature.data.data(), sizeof values);
            for (const float value : values)
                if (!(value >= -1e6f && value <= 1e6f)) std::abort();
        }
    } catch (const Error&) {
    }
    return 0;
}
