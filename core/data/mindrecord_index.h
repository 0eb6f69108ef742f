// The index that other readers of MindRecord files need: a database with the place of each row and its indexed fields.
#pragma once

#include <string>

#include "core/data/mindrecord_shard.h"

namespace lunaria::data {

// Writes it to `path`, an empty file. `name`: what the shard will be called.
void write_mindrecord_index(const std::string& path, const MindrecordShard& shard, const std::string& name);

}  // namespace lunaria::data
