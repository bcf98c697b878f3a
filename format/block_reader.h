// A block of the verified FlatBuffer as a value.
#ifndef KINGLET_FORMAT_BLOCK_READER_H_
#define KINGLET_FORMAT_BLOCK_READER_H_

#include <string>

#include "format/blocks.h"
#include "kinglet/status.h"

namespace kinglet {

namespace schema {
struct Block;
}

// Errors: KINGLET_INVALID_MODEL, naming `source` and the block, for a block of no or several kinds,
// a list that is too long and a number that is no enumerator; the rest is left to
// format/validate.h.
Result<Block> ReadBlock(const std::string& source, const std::string& name,
                        const schema::Block& stored);

}  // namespace kinglet

#endif  // KINGLET_FORMAT_BLOCK_READER_H_
