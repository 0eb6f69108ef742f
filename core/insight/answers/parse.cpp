#include "core/insight/answers/parse.h"

#include <charconv>
#include <filesystem>

#include "core/base/interrupt.h"
#include "core/insight/answers/records.h"
#include "core/insight/store/curve.h"
#include "core/io/file.h"

namespace lunaria::insight {

namespace {

namespace fs = std::filesystem;

// In quotes where it has what ends a field.
std::string csv_field(std::string_view text) {
    if (text.find_first_of(",\"\n\r") == std::string_view::npos) return std::string(text);
    std::string field = "\"";
    for (const char c : text) field += c == '"' ? std::string("\"\"") : std::string(1, c);
    return field + "\"";
}

size_t write_scalars(const Run& run, const fs::path& folder) {
    const std::vector<std::string> tags = run.tags(Kind::scalar);
    if (tags.empty()) return 0;
    fs::create_directories(folder);
    FileSink file((folder / "scalar.csv").string());
    file.write("tag,step,wall_time,value\n");
    size_t count = 0;
    for (const std::string& tag : tags) {
        const std::string name = csv_field(tag);
        for_points(run, tag, {}, [&](const std::vector<Point>& points) {
            poll_interrupt();
            std::string lines;
            const auto put = [&](auto value, char after) {
                char digits[40];
                lines.append(digits, std::to_chars(digits, digits + sizeof digits, value).ptr);
                lines += after;
            };
            for (const Point& p : points) {
                lines += name + ',';
                put(p.step, ',');
                put(p.wall, ',');
                put(p.value, '\n');
            }
            file.write(lines);
            count += points.size();
        });
    }
    file.commit();
    return count;
}

// Tags are any text: what is no letter, digit, '-' or '.' becomes '_', and tags that become equal are told apart.
std::string file_name(std::string_view tag) {
    std::string name;
    bool same = true;
    for (const char c : tag.substr(0, 100)) {
        const bool fine = std::isalnum(static_cast<unsigned char>(c)) || c == '-' || (c == '.' && !name.empty());
        same = same && (fine || c == '_');
        name += fine ? c : '_';
    }
    return same && name.size() == tag.size() ? name : name + "_" + id_of(tag).substr(0, 6);
}

size_t write_pictures(const Run& run, const fs::path& folder) {
    size_t count = 0;
    for (const std::string& tag : run.tags(Kind::image)) {
        RecordReader reader(Kind::image, tag);
        for (const Record& record : records_of(run, Kind::image, tag)) {
            poll_interrupt();
            const Shown shown = reader.read(record);
            const std::string& bytes = std::get<Shown::Encoded>(shown.value).bytes;
            const std::string_view type = picture_type(bytes);
            if (type.empty()) continue;
            fs::create_directories(folder);
            write_file((folder / str(file_name(tag), "_", record.item.step, ".", type.substr(6))).string(), bytes);
            ++count;
        }
    }
    return count;
}

}  // namespace

Parsed parse(const std::string& base, const std::string& output) {
    Store store(base, 0);
    while (!store.wait_until_loaded(std::chrono::milliseconds(100))) poll_interrupt();
    const auto view = store.view();
    if (view.runs().empty()) throw file_error(base, "no file of events is below it");
    Parsed parsed;
    for (const auto& [id, run] : view.runs()) {
        const fs::path folder = run.name == "." ? fs::path(output) : fs::path(output) / run.name;
        for (const auto& file : run.events)
            if (!file->problem().empty()) throw file_error(run.place, file->problem());
        parsed.scalars += write_scalars(run, folder);
        parsed.pictures += write_pictures(run, folder / "image");
        ++parsed.runs;
    }
    return parsed;
}

}  // namespace lunaria::insight
