// Compositional codes (Shu & Nakayama, ICLR 2018): a word's vector is the sum of one full-width
// vector from each of M codebooks of K vectors.
#ifndef KINGLET_CONVERTERS_PASSES_SUMMED_CODES_H_
#define KINGLET_CONVERTERS_PASSES_SUMMED_CODES_H_

#include <cstdint>
#include <vector>

#include "converters/passes/coded_table.h"
#include "kinglet/status.h"

namespace kinglet {

// `codebook` [positions * choices, width] is the exported .codebook.npy, of whose rows position j
// has those from j * choices on; `codes` [words, positions] is .codes, each number below
// `choices` = rows / positions. Errors: KINGLET_INVALID_CHECKPOINT, naming the array, or the word
// and position of a code.
Result<CodedTable> SummedCodes(std::vector<float> codebook, uint64_t width,
                               std::vector<uint32_t> codes, uint64_t positions);

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_PASSES_SUMMED_CODES_H_
