// Checks of a converted model's streams, for models of any family.
#ifndef KINGLET_TESTS_CONVERTERS_CONVERTED_STREAMS_H_
#define KINGLET_TESTS_CONVERTERS_CONVERTED_STREAMS_H_

#include <cstdint>
#include <string>
#include <vector>

namespace kinglet {

// [tokens][words]
using LogProbabilitiesOfAll = std::vector<std::vector<float>>;

// All log-probabilities after each token. Expects that lazy queries give the same values.
LogProbabilitiesOfAll Distributions(const std::string& file, const std::string& backend,
                                    const std::vector<uint32_t>& ids);
// All log-probabilities after each token on `ref`. Expects the same bits from `cpu` and, for the
// first tokens, from the CUDA kernels on the emulated device.
LogProbabilitiesOfAll DistributionsOfEveryBackend(const std::string& file,
                                                  const std::vector<uint32_t>& ids);
// The mean of -log p of each token but the first, given the tokens before it.
double MeanLoss(const LogProbabilitiesOfAll& all, const std::vector<uint32_t>& ids);

// Expects a stream restored from a saved state, its fork, and one of two lanes to give the same
// bits as a single stream. REQUIRES: 26 ids or more.
void ExpectStatesAndLanesKeepEveryBit(const std::string& file, const std::vector<uint32_t>& ids);

// The text of a vocabulary file, <eos>, w1, w2, .., and a text of its words; id 0 ends a line.
std::string NumberedVocabulary(size_t words);
std::string NumberedText(const std::vector<uint32_t>& ids);

}  // namespace kinglet

#endif  // KINGLET_TESTS_CONVERTERS_CONVERTED_STREAMS_H_
