// Frequencies and tables of sinusoids, which frameworks of Transformers compute and do not store.
#ifndef KINGLET_CONVERTERS_NETWORK_FREQUENCIES_H_
#define KINGLET_CONVERTERS_NETWORK_FREQUENCIES_H_

#include <cstdint>
#include <vector>

namespace kinglet {

// f_j = exp(-j ln(10000) / (width / 2 - 1)), [width / 2], each operation rounded to float32 as in
// fairseq's SinusoidalPositionalEmbedding. REQUIRES: width is even and at least 4.
std::vector<float> FairseqFrequencies(uint32_t width);
// f_j = 1 / 10000^(2 j / width), [width / 2], each operation rounded to float32: the buffer
// pos_emb.inv_freq of Transformer-XL. REQUIRES: width is even.
std::vector<float> TransformerXlFrequencies(uint32_t width);

// w_a = 10000^(-2a / width) for 2a < width, rounded as PyTorch rounds
// exp(arange(0, width, 2) * -(ln 10000 / width)) in float32.
std::vector<float> SinusoidFrequencies(uint32_t width);
// [positions, width] in float32: sin(p w_a) in column 2a, cos(p w_a) in column 2a + 1.
std::vector<float> SinusoidTable(uint32_t positions, uint32_t width);

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_NETWORK_FREQUENCIES_H_
