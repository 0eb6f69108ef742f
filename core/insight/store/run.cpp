#include "core/insight/store/run.h"

#include <algorithm>

namespace lunaria::insight {

std::vector<std::pair<const EventFile*, const Series*>> Run::scalars(std::string_view tag) const {
    std::vector<std::pair<const EventFile*, const Series*>> found;
    for (const auto& file : events)
        if (const auto at = file->scalars().find(tag); at != file->scalars().end())
            found.emplace_back(file.get(), &at->second);
    return found;
}

std::vector<std::pair<const EventFile*, const std::vector<Item>*>> Run::items(Kind kind, std::string_view tag) const {
    std::vector<std::pair<const EventFile*, const std::vector<Item>*>> found;
    for (const auto& file : events)
        if (const auto at = file->items(kind).find(tag); at != file->items(kind).end())
            found.emplace_back(file.get(), &at->second);
    return found;
}

std::vector<std::string> Run::tags(Kind kind) const {
    std::vector<std::string> names;
    for (const auto& file : events) {
        const auto take = [&](const auto& tags) {
            for (const auto& [tag, content] : tags) names.push_back(tag);
        };
        kind == Kind::scalar ? take(file->scalars()) : take(file->items(kind));
    }
    std::ranges::sort(names);
    names.erase(std::unique(names.begin(), names.end()), names.end());
    return names;
}

double Run::first_wall() const {
    double first = 0;
    for (const auto& file : events)
        if (file->first_wall() > 0 && (first == 0 || file->first_wall() < first)) first = file->first_wall();
    return first > 0 ? first : lineage.wall;
}

double Run::last_wall() const {
    double last = lineage.wall;
    for (const auto& file : events) last = std::max(last, file->last_wall());
    return last;
}

int64_t Run::last_step() const {
    int64_t last = -1;
    for (const auto& file : events) last = std::max(last, file->last_step());
    return last;
}

std::string id_of(std::string_view text) {
    // FNV-1a, with the bits of the product mixed at the end.
    uint64_t hash = 0xCBF29CE484222325u;
    for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3u;
    hash ^= hash >> 32;
    hash *= 0xD6E8FEB86659FD93u;
    hash ^= hash >> 32;
    std::string id;
    for (int shift = 60; shift >= 0; shift -= 4) id += "0123456789abcdef"[hash >> shift & 15];
    return id;
}

}  // namespace lunaria::insight
