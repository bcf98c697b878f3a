// What conversion changes in the values of a checkpoint's tensors, where a framework stores them in
// another form than a model file (format/blocks.h), or computes them and does not store them.
#ifndef KINGLET_CONVERTERS_NETWORK_CHANGE_H_
#define KINGLET_CONVERTERS_NETWORK_CHANGE_H_

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "kinglet/status.h"

namespace kinglet {

// A function of the values that a reference joins (Network::AddJoined), which gives those of one
// tensor of the model: several functions, one after the other. Owns what it needs.
struct Change {
  struct Function {
    std::string kind;  // one of the list below, or a family's own
    std::vector<double> numbers;
    std::function<Result<std::vector<float>>(std::vector<float> values)> apply;
  };
  std::vector<Function> functions;

  // Equal texts mean equal changes.
  std::string Text() const;
  // Errors: KINGLET_INVALID_CHECKPOINT for a number of values that a function cannot take.
  Result<std::vector<float>> Apply(std::vector<float> values) const;
};

// The function of the kind that a constructor below names. Errors: KINGLET_INVALID_ARGUMENT for an
// unknown kind, and for numbers that its constructor does not take.
Result<Change> MakeChange(std::string_view kind, const std::vector<double>& numbers);

// First one change, then the other.
Change Then(Change first, Change second);

// --- functions of a checkpoint's values ---

// "by_head": rows of queries, keys and values, matrix by matrix, become head by head. `sizes`: the
// rows of a head in each matrix, or numbers in proportion to them.
Change ByHead(uint64_t heads, const std::vector<uint64_t>& sizes);
// "times": the values times `factor`, each rounded to float32 once.
Change Scaled(double factor);
// "times_exp_of_last": all values but the last, times exp(last) and `factor`. icefall stores the
// logarithm of the scale of a tensor (egs/*/transformer_lm/scaling.py).
Change ScaledByLast(double factor = 1);
// "sines_first": rows of sines and cosines in turn, [.., columns], get all sines first.
Change SinesFirst(uint64_t columns);
// "product": a [rows, inner] times b [inner, columns], which come one after the other; sums are
// computed in double and rounded once.
Change ProductOf(uint64_t rows, uint64_t inner, uint64_t columns);
// "first": the first values.
Change First(uint64_t count);

// Rows of queries, keys and values, [heads * (2 * key_size + value_size), width].
struct HeadRows {
  uint64_t heads, key_size, value_size;
  bool by_head = false;  // head by head; if false, all queries, all keys, all values

  uint64_t All() const { return heads * (2 * key_size + value_size); }
};
// "zero_memory": keys and values that a memory of zeros gives where the norm comes first. The norm
// of zeros is its bias, [width], which the rows of keys and values multiply. The values are the
// rows, then the bias.
Change ZeroMemory(const HeadRows& rows);

// --- values that a framework computes (converters/network/frequencies.h) ---

// "fairseq_frequencies", "transformer_xl_frequencies", "sinusoid_frequencies": [width / 2].
Change MadeFairseqFrequencies(uint32_t width);
Change MadeSinusoidFrequencies(uint32_t width);
// "zeros": [count].
Change MadeZeros(uint64_t count);
// "sinusoids": [positions, width].
Change MadeSinusoids(uint32_t positions, uint32_t width);

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_NETWORK_CHANGE_H_
