// A few values that stand for many.
#ifndef KINGLET_RUNTIME_NGRAMS_CODEBOOK_H_
#define KINGLET_RUNTIME_NGRAMS_CODEBOOK_H_

#include <cstddef>
#include <span>
#include <vector>

namespace kinglet {

// At most `size` ascending values with a small mean square of the distance to the nearest one: each
// distinct value itself if there are few enough, otherwise Lloyd's method. Empty if nothing is
// given. REQUIRES: size > 0; values are finite.
std::vector<float> ChooseCodebook(std::vector<float> values, size_t size);

// The index of the nearest value; of two, the lower one. REQUIRES: `codebook` is ascending and not
// empty.
size_t NearestCode(std::span<const float> codebook, float value);

}  // namespace kinglet

#endif  // KINGLET_RUNTIME_NGRAMS_CODEBOOK_H_
