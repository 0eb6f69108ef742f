#include "core/federated/vertical/psi_message.h"

#include <cstring>
#include <span>

#include "core/base/error.h"
#include "core/io/protobuf.h"

namespace lunaria::federated {

namespace {

constexpr int64_t kPsiFormat = 1;

std::string_view bytes_of(std::span<const PsiPoint> points) {
    return {reinterpret_cast<const char*>(points.data()), points.size() * sizeof(PsiPoint)};
}

std::vector<PsiPoint> points_in(const ProtoReader& p) {
    const std::string_view bytes = p.bytes();
    if (bytes.size() % sizeof(PsiPoint) != 0) p.fail("points of another length than 32 bytes");
    std::vector<PsiPoint> points(bytes.size() / sizeof(PsiPoint));
    if (!points.empty()) std::memcpy(points.data(), bytes.data(), bytes.size());
    return points;
}

}  // namespace

std::string text_of(const PsiMessage& m) {
    ProtoWriter w;
    w.integer(1, kPsiFormat)
        .integer(2, m.bins)
        .integer(3, m.first_learns)
        .integer(4, m.second_learns)
        .integer(5, m.ids_in_bin);
    w.integer(6, m.bin).bytes(7, bytes_of(m.points)).bytes(8, bytes_of(m.doubled));
    return w.text();
}

PsiMessage read_psi_message(std::string_view bytes) {
    PsiMessage m;
    int64_t format = 0;
    ProtoReader p(bytes, "a message of the intersection");
    while (p.next()) {
        switch (p.field()) {
            case 1:
                format = p.integer();
                break;
            case 2:
                m.bins = p.integer();
                break;
            case 3:
                m.first_learns = p.integer();
                break;
            case 4:
                m.second_learns = p.integer();
                break;
            case 5:
                m.ids_in_bin = p.integer();
                break;
            case 6:
                m.bin = p.integer();
                break;
            case 7:
                m.points = points_in(p);
                break;
            case 8:
                m.doubled = points_in(p);
                break;
            default:
                p.fail("a message has an unknown field");
        }
    }
    if (format != kPsiFormat)
        p.fail(str("a message has the format ", format, ", this program reads format ", kPsiFormat));
    if (m.bin < -1 || m.bin >= kMostBins) p.fail(str("there is no bin ", m.bin));
    return m;
}

}  // namespace lunaria::federated
