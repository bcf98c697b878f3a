// Second moments of the vectors that a model's matrices are multiplied with, measured on a text.
#ifndef KINGLET_CONVERTERS_PASSES_INPUT_MOMENTS_H_
#define KINGLET_CONVERTERS_PASSES_INPUT_MOMENTS_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "converters/passes/calibrate.h"
#include "format/blocks.h"
#include "kinglet/status.h"

namespace kinglet {

// The mean of x x^T over the inputs x of one matrix: [width, width], symmetric, row by row.
struct SecondMoments {
  uint64_t width = 0;
  std::vector<double> mean;
};
using InputMoments = std::map<TensorId, SecondMoments>;

// Runs the model of a file on the input, asks for all words after each token, and measures the
// inputs of every matrix whose products are not of codes. A matrix that several products use gets
// the mean over all of them; a matrix that is only looked up is omitted. Memory: 8 bytes times the
// square of each matrix's width. Errors: those of opening and running the model;
// KINGLET_NOT_FINITE if an activation overflows. REQUIRES: the model computes in float.
Result<InputMoments> MeasureInputs(const std::string& path, const CalibrationInput& input);

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_PASSES_INPUT_MOMENTS_H_
