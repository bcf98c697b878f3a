// What tests ask of a converted model's streams, whatever family it comes from.
#ifndef KINGLET_TESTS_CONVERTERS_CONVERTED_STREAMS_H_
#define KINGLET_TESTS_CONVERTERS_CONVERTED_STREAMS_H_

#include <cstdint>
#include <string>
#include <vector>

namespace kinglet {

// By token, then by word.
using LogProbabilitiesOfAll = std::vector<std::vector<float>>;

// Every word's number after every token; expects that queries answered lazily give the same ones.
LogProbabilitiesOfAll Distributions(const std::string& file, const std::string& backend,
                                    const std::vector<uint32_t>& ids);
// The same from `ref`; expects `cpu`, and for the first tokens the CUDA kernels on the emulated
// device, to give every bit of it.
LogProbabilitiesOfAll DistributionsOfEveryBackend(const std::string& file,
                                                  const std::vector<uint32_t>& ids);
// Of each token but the first, before it came: the mean of -log p.
double MeanLoss(const LogProbabilitiesOfAll& all, const std::vector<uint32_t>& ids);
// Expects the known answers of a file of lines `position<TAB>id<TAB>log-probability`, of streams
// that begin with their first token.
void ExpectGolden(const LogProbabilitiesOfAll& all, const std::string& golden, double tolerance);

// Expects a stream to go on from a saved state as if nothing had been between, and a lane beside
// others as if it were alone. REQUIRES: 26 ids or more.
void ExpectStatesAndLanesKeepEveryBit(const std::string& file, const std::vector<uint32_t>& ids);

// Expects half of the entries, or more, to be zeros in each matrix whose name `is_pruned` takes.
void ExpectHalfZeros(const std::string& file, bool (*is_pruned)(const std::string& name));

// A vocabulary file's text, <eos>, w1, w2, .., and a text of such words: a line ends where 0 is.
std::string NumberedVocabulary(size_t words);
std::string NumberedText(const std::vector<uint32_t>& ids);

}  // namespace kinglet

#endif  // KINGLET_TESTS_CONVERTERS_CONVERTED_STREAMS_H_
