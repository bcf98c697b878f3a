// Networks of published shapes without values, of any size: what counting needs. Covers the
// language models of Baevski & Auli 2019 ("Adaptive input representations for neural language
// modeling") and of Mehta et al. 2020 ("DeFINE").
#ifndef KINGLET_TESTS_SYNTHESIS_NETWORK_OUTLINE_H_
#define KINGLET_TESTS_SYNTHESIS_NETWORK_OUTLINE_H_

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "format/writer.h"

namespace kinglet {

// Layers as in fairseq (NormOrder::kPre, biases) or Transformer-XL (attention without biases;
// relative positions, whose two biases all layers share).
struct OutlinedTransformer {
  enum class Host : uint8_t { kFairseq, kTransformerXl };
  Host host;
  uint32_t layers, heads, key_size, inner;
};
// LSTM layers with two biases, as PyTorch's.
struct OutlinedLstm {
  std::vector<uint32_t> units;
};

// `size` words whose rows have `columns` values.
struct OutlinedBand {
  uint32_t size, columns;
  bool projected;  // to or from the network's width; otherwise that is `columns`
};

struct NetworkOutline {
  std::string name;
  uint32_t width = 0;  // of the first layer's input
  // Empty: a table that is computed from other tensors at conversion and has no parameters.
  std::vector<OutlinedBand> input;
  bool one_projection = false;  // of all bands, which are parts of one table
  // Tensors that such a table is computed from; kinglet keeps the table.
  std::vector<Shape> computed_from = {};
  std::variant<OutlinedTransformer, OutlinedLstm> context;
  std::vector<OutlinedBand> output;   // the head, then the tails; their projections have no bias
  bool tied_tables = false;           // the output's tables are the input's
  bool tied_projections = false;      // the tails' projections are the input's, transposed
  bool tied_head_projection = false;  // the head's alone
  bool biases = false;                // of words and clusters
};

// Tensors have names that begin with "input.", "made.", "context." or "output.". REQUIRES: bands of
// both ends cover the same words; ties between bands of the same shape.
ModelDraft Outline(const NetworkOutline& network);

}  // namespace kinglet

#endif  // KINGLET_TESTS_SYNTHESIS_NETWORK_OUTLINE_H_
