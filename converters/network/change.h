// What conversion changes in the values of a checkpoint's tensors, where a framework stores them in
// another form than a model file (format/blocks.h).
#ifndef KINGLET_CONVERTERS_NETWORK_CHANGE_H_
#define KINGLET_CONVERTERS_NETWORK_CHANGE_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "kinglet/status.h"

namespace kinglet {

// A function of the values that a reference joins (Network::AddJoined), which gives those of one
// tensor of the model. Owns what it needs.
struct Change {
  std::string name;  // equal names mean equal functions; empty: no change
  std::function<Result<std::vector<float>>(std::vector<float> values)> apply;
};

// First one change, then the other.
Change Then(Change first, Change second);

// Rows of queries, keys and values, matrix by matrix, become head by head. `sizes`: the rows of a
// head in each matrix, or numbers in proportion to them. REQUIRES: heads times the sum of the sizes
// divides the number of values or their rows.
Change ByHead(uint64_t heads, std::vector<uint64_t> sizes);
// The values times `factor`, each rounded to float32 once.
Change Scaled(double factor);
// All values but the last, times exp(last) and `factor`: icefall stores the logarithm of the scale
// of a tensor (egs/*/transformer_lm/scaling.py).
Change ScaledByLast(double factor = 1);
// Rows of sines and cosines in turn, [.., columns], get all sines first.
Change SinesFirst(uint64_t columns);
// A [rows, inner] times b [inner, columns], which come one after the other; sums are computed in
// double and rounded once.
Change ProductOf(uint64_t rows, uint64_t inner, uint64_t columns);
// The first values.
Change First(uint64_t count);

// Rows of queries, keys and values, [heads * (2 * key_size + value_size), width].
struct HeadRows {
  uint64_t heads, key_size, value_size;
  bool by_head = false;  // head by head; if false, all queries, all keys, all values

  uint64_t All() const { return heads * (2 * key_size + value_size); }
};
// Keys and values that a memory of zeros gives where the norm comes first: the norm of zeros is its
// bias, [width], which the rows of keys and values multiply. The values are the rows, then the
// bias.
Change ZeroMemory(const HeadRows& rows);

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_NETWORK_CHANGE_H_
