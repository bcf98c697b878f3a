// Reads one block (embedding, decoder, softmax, ...) of the verified FlatBuffer as a value.
#ifndef KINGLET_FORMAT_BLOCK_READER_H_
#define KINGLET_FORMAT_BLOCK_READER_H_

#include <string>

#include "format/blocks.h"
#include "kinglet/status.h"

namespace kinglet {

namespace schema {
struct Block;
}

// Errors: KINGLET_INVALID_MODEL, naming `origin` and the block, for a block of no kind or of
// several, a list that is too long and a number that is no enumerator's. format/validate.h checks
// the rest.
Result<Block> ReadBlock(const std::string& origin, const std::string& name,
                        const schema::Block& stored);

}  // namespace kinglet

#endif  // KINGLET_FORMAT_BLOCK_READER_H_
