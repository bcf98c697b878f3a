// Values that frameworks of Transformers compute and do not store.
#ifndef KINGLET_CONVERTERS_FAMILIES_TRANSFORMER_VALUES_H_
#define KINGLET_CONVERTERS_FAMILIES_TRANSFORMER_VALUES_H_

#include <cstdint>
#include <span>
#include <vector>

namespace kinglet {

// f_j = exp(-j ln(10000) / (width / 2 - 1)), [width / 2], each operation rounded to float32 as in
// fairseq's SinusoidalPositionalEmbedding. REQUIRES: width is even and at least 4.
std::vector<float> FairseqFrequencies(uint32_t width);
// f_j = 1 / 10000^(2 j / width), [width / 2], each operation rounded to float32: the buffer
// pos_emb.inv_freq of Transformer-XL. REQUIRES: width is even.
std::vector<float> TransformerXlFrequencies(uint32_t width);

// Keys and values, [rows], that a memory of zeros gives where the norm comes first: the norm of
// zeros is its bias, which the rows of keys and values, [rows, width], multiply.
std::vector<float> ZeroMemory(std::span<const float> key_value_rows, std::span<const float> bias);

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_FAMILIES_TRANSFORMER_VALUES_H_
