// LevelDB's table file (doc/table_format.md of its repository), in which TensorFlow keeps the index
// of a checkpoint: entries of key and value, sorted by key, in blocks with a checksum each.
#ifndef KINGLET_CONVERTERS_CHECKPOINTS_SORTED_TABLE_H_
#define KINGLET_CONVERTERS_CHECKPOINTS_SORTED_TABLE_H_

#include <string>
#include <vector>

#include "format/input_file.h"
#include "kinglet/status.h"

namespace kinglet {

struct SortedTableEntry {
  std::string key, value;
};

// Whether the file ends like a sorted table.
bool LooksLikeSortedTable(const InputFile& file);

// All entries, keys ascending. Refuses compressed blocks, by the compression's name, files over
// 16 MiB, keys over 4 KiB, and entries that together take more than 16 times the file's bytes.
// Errors: KINGLET_INVALID_CHECKPOINT, "sorted table: byte 12: expected .., found ..";
// KINGLET_IO_ERROR.
Result<std::vector<SortedTableEntry>> ReadSortedTable(const InputFile& file);

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_CHECKPOINTS_SORTED_TABLE_H_
