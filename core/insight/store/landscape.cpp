#include "core/insight/store/landscape.h"

#include "core/insight/store/wire.h"
#include "core/io/protobuf.h"

namespace lunaria::insight {

namespace {

// TensorProto { dims = 1; float_data = 3; int32_data = 4; int64_data = 5; double_data = 6 }
std::vector<double> numbers_of(ProtoReader m, std::vector<int64_t>* shape = nullptr) {
    std::vector<double> numbers;
    const auto take = [&](const auto& list) { numbers.insert(numbers.end(), list.begin(), list.end()); };
    while (m.next()) {
        std::vector<float> floats;
        std::vector<int64_t> integers;
        if (m.field() == 1 && shape) m.integers(*shape);
        if (m.field() == 3) m.floats(floats);
        if (m.field() == 4 || m.field() == 5) m.integers(integers);
        if (m.field() == 6) m.doubles(numbers);
        take(floats);
        take(integers);
    }
    return numbers;
}

Landscape::Points points_of(ProtoReader m) {
    Landscape::Points points;
    while (m.next()) {
        if (m.field() == 1) points.x = numbers_of(m.message());
        if (m.field() == 2) points.y = numbers_of(m.message());
        if (m.field() == 3) points.z = numbers_of(m.message(), &points.z_shape);
    }
    return points;
}

}  // namespace

Landscape read_landscape(std::string_view value) {
    Wire whole(value);
    std::string_view content;
    while (whole.next())
        if (whole.field == 10) content = whole.text();
    Landscape landscape;
    ProtoReader m(content, "landscape");
    while (m.next()) switch (m.field()) {
            case 1:
                landscape.grid = points_of(m.message());
                break;
            case 2: {
                ProtoReader path = m.message();
                while (path.next()) {
                    if (path.field() == 1) path.integers(landscape.intervals);
                    if (path.field() == 2) landscape.path = points_of(path.message());
                }
                break;
            }
            case 3: {
                ProtoReader about = m.message();
                while (about.next()) {
                    if (about.field() == 1) landscape.decomposition = about.text();
                    if (about.field() == 2) landscape.unit = about.text();
                    if (about.field() == 3) landscape.steps_per_epoch = about.integer();
                }
                break;
            }
            case 4:
                landscape.convergence = points_of(m.message());
                break;
            default:
                break;
        }
    return landscape;
}

}  // namespace lunaria::insight
