// A tensor decoded for the reference kernels: exact float32 values and, for a quantised tensor, its
// integers and scales.
#ifndef KINGLET_KERNELS_REF_WEIGHTS_H_
#define KINGLET_KERNELS_REF_WEIGHTS_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "format/encoding.h"
#include "kernels/backend.h"
#include "kernels/op.h"
#include "kernels/plan.h"

namespace kinglet::ref {

struct Weights {
  uint64_t rows = 0, cols = 0;
  std::vector<float> values;   // [rows, cols], exact
  bool integer = false;        // quantised with multiplying scales: products may be integer
  std::vector<int16_t> codes;  // [rows, cols] if integer
  std::vector<float> scales;   // [rows] if integer

  float Value(uint64_t row, uint64_t col) const { return values[row * cols + col]; }
  // The memory of rows [begin, end): integers and scales for an integer product, otherwise floats.
  std::vector<MemoryRange> Memory(bool integers, uint64_t begin, uint64_t end) const;
  std::vector<MemoryRange> Memory(bool integers) const { return Memory(integers, 0, rows); }
};

using SharedWeights = std::shared_ptr<const Weights>;

// Decodes each tensor of a plan once, whatever the number of nodes that use it.
class WeightStore {
 public:
  explicit WeightStore(const Plan& plan, ClaimBytes claim = {})
      : plan_(plan), claim_(std::move(claim)) {}

  // Call before any other memory is allocated that outlives a node's binding.
  void Claim(uint64_t bytes) const { ClaimFrom(claim_, bytes); }
  const ClaimBytes& claim() const { return claim_; }
  SharedWeights Get(WeightId id);

 private:
  const Plan& plan_;
  ClaimBytes claim_;
  std::map<WeightId, SharedWeights> decoded_;
};

}  // namespace kinglet::ref

#endif  // KINGLET_KERNELS_REF_WEIGHTS_H_
