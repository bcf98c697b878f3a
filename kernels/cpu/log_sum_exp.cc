// The normaliser of a softmax over any number of logits.
#include <algorithm>
#include <cmath>
#include <cstddef>

#include "kernels/cpu/bind.h"
#include "kernels/functions.h"
#include "kernels/ref/sum.h"

namespace kinglet::cpu {
namespace {

// Elements of a chunk: whole blocks of a rule-4 sum.
constexpr size_t kChunkElements = 2 * kSumBlock;

class LogSumExpKernel {
 public:
  LogSumExpKernel(const LogSumExp& op, const BindContext& context)
      : vector_(&context.vector),
        x_(context.layout[op.x]),
        out_(context.layout[op.out]),
        blocks_(context.layout[op.blocks]),
        chunks_(std::max<size_t>(1, x_.count / kChunkElements)) {}

  size_t chunks() const { return chunks_; }

  // Until the sums are computed, the first block of each chunk holds the chunk's largest element.
  void FindLargest(StreamFrame& frame, Chunks chunks) const {
    for (size_t chunk = chunks.begin; chunk < chunks.end; ++chunk) {
      const Part part = PartOf(frame, chunk);
      *part.blocks = vector_->largest(part.x, part.count);
    }
  }
  // The largest of all. NaN never wins a comparison, so as in kernels/ref/softmax.h it is returned
  // only from x[0]; a chunk that begins with a NaN is searched again.
  void CombineLargest(StreamFrame& frame) const {
    float largest = *PartOf(frame, 0).blocks;
    for (size_t chunk = 1; chunk < chunks_; ++chunk) {
      const Part part = PartOf(frame, chunk);
      if (std::isnan(*part.blocks)) {
        for (size_t i = 0; i < part.count; ++i) largest = part.x[i] > largest ? part.x[i] : largest;
      } else if (*part.blocks > largest) {
        largest = *part.blocks;
      }
    }
    out_.At<float>(frame)[0] = largest;
  }
  void SumExponentials(StreamFrame& frame, Chunks chunks) const {
    const float largest = out_.At<float>(frame)[0];
    const Part first = PartOf(frame, chunks.begin), last = PartOf(frame, chunks.end - 1);
    const auto count = static_cast<size_t>(last.x + last.count - first.x);
    vector_->sum_exponentials(first.x, count, largest, first.blocks);
  }
  void TakeLog(StreamFrame& frame) const {
    const float* blocks = blocks_.At<float>(frame);
    ref::PairwiseFold<float> total;
    for (size_t b = 0; b < blocks_.count; ++b) total.Push(blocks[b]);
    out_.At<float>(frame)[1] = Log(total.Total());
  }

 private:
  struct Part {
    const float* x;
    size_t count;
    float* blocks;
  };
  // The last chunk takes the remainder, so that no chunk is shorter than kShortSum unless the whole
  // vector is.
  Part PartOf(const StreamFrame& frame, size_t chunk) const {
    const size_t begin = chunk * kChunkElements;
    return {x_.At<float>(frame) + begin,
            (chunk + 1 < chunks_ ? begin + kChunkElements : x_.count) - begin,
            blocks_.At<float>(frame) + begin / kSumBlock};
  }

  const VectorFunctions* vector_;
  Slot x_, out_, blocks_;
  size_t chunks_;
};

}  // namespace

Kernel BindOp(const LogSumExp& op, const BindContext& context) {
  const LogSumExpKernel kernel(op, context);
  const size_t chunks = kernel.chunks();
  if (chunks == 1) {
    return {EachFrame([kernel](StreamFrame& frame) {
      kernel.FindLargest(frame, {0, 1});
      kernel.CombineLargest(frame);
      kernel.SumExponentials(frame, {0, 1});
      kernel.TakeLog(frame);
    })};
  }
  const auto largest = [kernel](StreamFrame& frame, Chunks part) {
    kernel.FindLargest(frame, part);
  };
  const auto sums = [kernel](StreamFrame& frame, Chunks part) {
    kernel.SumExponentials(frame, part);
  };
  return {{FramePhase(largest, chunks),
           FramePhase([kernel](StreamFrame& frame) { kernel.CombineLargest(frame); }),
           FramePhase(sums, chunks),
           FramePhase([kernel](StreamFrame& frame) { kernel.TakeLog(frame); })}};
}

}  // namespace kinglet::cpu
