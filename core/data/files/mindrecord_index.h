// The index that other readers of MindRecord files need: a database with the place of each row and its indexed fields.
#pragma once

#include <string>

#include "core/data/files/mindrecord_shard.h"
#include "core/io/file.h"

namespace lunaria::data {

// Makes the index in memory and writes it to `sink`. `name`: the shard's future name.
void write_mindrecord_index(Sink& sink, const MindrecordShard& shard, const std::string& name);

}  // namespace lunaria::data
