// Operations with operands, to compare backends node by node. The conformance tests run every case
// on every backend; bench/op_bench.cc times the realistic ones. All values come from a fixed
// integer generator, so a case is the same on every machine.
#ifndef KINGLET_TESTS_SUPPORT_OP_CASES_H_
#define KINGLET_TESTS_SUPPORT_OP_CASES_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "format/encoding.h"
#include "kernels/backend.h"
#include "kernels/plan.h"
#include "kinglet/status.h"

namespace kinglet {

// Owns packed tensors and gives the views that a plan needs.
class TensorPool {
 public:
  WeightId Add(const EncodedTensor& tensor);
  std::span<const TensorView> views() const { return views_; }
  uint64_t bytes() const { return bytes_; }

 private:
  std::span<const std::byte> Keep(std::vector<std::byte> bytes);
  std::deque<std::vector<std::byte>> storage_;  // views point into it
  std::vector<TensorView> views_;
  uint64_t bytes_ = 0;
};

// The contents of a buffer before the node; only the vector of its element type is filled.
struct InitialBuffer {
  std::vector<float> floats;
  std::vector<int32_t> integers;
};

struct OpCase {
  std::string name;
  std::shared_ptr<const TensorPool> tensors;
  Plan plan;                            // one node
  std::vector<InitialBuffer> contents;  // by BufferId
  uint64_t position = 0;
  uint64_t source_length = 0;
  uint32_t token = 0;
  std::string spelling = {};  // of the token (StreamFrame)
  uint32_t spelt = 0;
  // The largest normalised mean square error between the outputs of ref64 and ref. Negative: the
  // case overflows floats or lies on rounding boundaries, so that the two cannot be compared.
  double ref64_tolerance = 1e-9;
};

// Shapes from empty to several summation tiles, odd and misaligned; 2 to 16 bits; the largest
// codes; NaN, infinities, denormals and zeros; both kinds of StreamStart.
std::vector<OpCase> EdgeOpCases();
// The operations of the demo model and of the published best MicroNet, at their sizes.
std::vector<OpCase> RealisticOpCases();

// One run of a case on memory of its own. Bytes between buffers are 0xA5, so that stray writes
// show.
class OpRun {
 public:
  OpRun(const OpCase& op_case, size_t real_bytes);
  OpRun(OpCase&&, size_t) = delete;  // the case outlives the run
  const BufferLayout& layout() const { return layout_; }
  // Sets the frame's batch information for later runs.
  void set_batch(const BatchInfo& batch) { batch_ = batch; }
  // Fills every buffer with its initial contents and runs the node.
  void Run(const Kernel& kernel);
  // Runs the node on the buffers' present contents.
  void RunAgain(const Kernel& kernel);

  // The buffer's present elements.
  std::vector<double> Values(BufferId id) const;
  // The first difference between the memory of this run and of `other`, inside buffers or between
  // them; empty if all is equal. All NaNs count as equal. REQUIRES: same case and real size.
  std::string Difference(const OpRun& other) const;

 private:
  struct alignas(64) Line {
    std::byte bytes[64];
  };
  StreamFrame FrameNow() const;
  BatchInfo batch_;
  const OpCase* op_case_;  // outlives the run
  size_t real_bytes_;
  BufferLayout layout_;
  mutable std::vector<Line> scratch_, state_;
};

}  // namespace kinglet

#endif  // KINGLET_TESTS_SUPPORT_OP_CASES_H_
