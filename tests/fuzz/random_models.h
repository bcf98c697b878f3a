// Small models of any family, encoding, number of bits and pruning, chosen by a fuzzer's bytes.
#ifndef KINGLET_TESTS_FUZZ_RANDOM_MODELS_H_
#define KINGLET_TESTS_FUZZ_RANDOM_MODELS_H_

#include "format/writer.h"
#include "tests/fuzz/byte_reader.h"

namespace kinglet::fuzz {

struct RandomModel {
  ModelDraft draft;
  // Every product is of integers, so that all backends give the same bits by construction.
  bool quantised = false;
  bool has_source = false;  // an encoder
  bool masked = false;      // reads complete texts
  bool has_stack = false;   // layers that a device runs together (kernels/cuda/bind_stack.h)
};

RandomModel MakeRandomModel(ByteReader& bytes);

}  // namespace kinglet::fuzz

#endif  // KINGLET_TESTS_FUZZ_RANDOM_MODELS_H_
