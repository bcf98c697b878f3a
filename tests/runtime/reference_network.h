// Transformer language models written a second time, for tests: complete sequences in double with
// plain loops over dense decoded weights, no rings, no laziness, no plan. It shares no code with
// the kernels. Sources: Yan et al. 2020, Dai et al. 2019 and Vaswani et al. 2017.
#ifndef KINGLET_TESTS_RUNTIME_REFERENCE_NETWORK_H_
#define KINGLET_TESTS_RUNTIME_REFERENCE_NETWORK_H_

#include <cstdint>
#include <vector>

#include "format/writer.h"

namespace kinglet {

// log p(next word | ids[0..t]) for every t and every word: [ids, vocabulary]. With `normalised`, an
// empty cache leaves the softmax as it is.
std::vector<std::vector<double>> EvaluateDensely(const ModelDraft& draft,
                                                 const std::vector<uint32_t>& ids,
                                                 bool normalised = false);

}  // namespace kinglet

#endif  // KINGLET_TESTS_RUNTIME_REFERENCE_NETWORK_H_
