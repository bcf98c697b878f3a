// The normaliser of a softmax over few or very many logits.
#include <algorithm>
#include <cmath>
#include <cstddef>

#include "kernels/cpu/bind.h"
#include "kernels/functions.h"
#include "kernels/ref/sum.h"

namespace kinglet::cpu {
namespace {

// Elements of a piece: blocks of a sum are not divided.
constexpr size_t kPieceElements = 2 * kSumBlock;

class LogSumExpKernel {
 public:
  LogSumExpKernel(const LogSumExp& op, const BindContext& context)
      : vector_(&context.vector),
        x_(context.layout[op.x]),
        out_(context.layout[op.out]),
        blocks_(context.layout[op.blocks]),
        pieces_(std::max<size_t>(1, x_.count / kPieceElements)) {}

  size_t pieces() const { return pieces_; }

  // The first block of each piece holds its largest element for a while.
  void FindLargest(StreamFrame& frame, Pieces pieces) const {
    for (size_t piece = pieces.begin; piece < pieces.end; ++piece) {
      const Part part = PartOf(frame, piece);
      *part.blocks = vector_->largest(part.x, part.count);
    }
  }
  // The largest of all: NaN never wins a comparison, so it is taken only from x[0] (as
  // kernels/ref/softmax.h has it), and a piece that begins with one is looked at again.
  void CombineLargest(StreamFrame& frame) const {
    float largest = *PartOf(frame, 0).blocks;
    for (size_t piece = 1; piece < pieces_; ++piece) {
      const Part part = PartOf(frame, piece);
      if (std::isnan(*part.blocks)) {
        for (size_t i = 0; i < part.count; ++i) largest = part.x[i] > largest ? part.x[i] : largest;
      } else if (*part.blocks > largest) {
        largest = *part.blocks;
      }
    }
    out_.At<float>(frame)[0] = largest;
  }
  void SumExponentials(StreamFrame& frame, Pieces pieces) const {
    const float largest = out_.At<float>(frame)[0];
    const Part first = PartOf(frame, pieces.begin), last = PartOf(frame, pieces.end - 1);
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
  // The last piece takes what is left, so that none is shorter than a sum in blocks, but where all
  // is.
  Part PartOf(const StreamFrame& frame, size_t piece) const {
    const size_t begin = piece * kPieceElements;
    return {x_.At<float>(frame) + begin,
            (piece + 1 < pieces_ ? begin + kPieceElements : x_.count) - begin,
            blocks_.At<float>(frame) + begin / kSumBlock};
  }

  const VectorFunctions* vector_;
  Slot x_, out_, blocks_;
  size_t pieces_;
};

}  // namespace

Kernel BindOp(const LogSumExp& op, const BindContext& context) {
  const LogSumExpKernel kernel(op, context);
  const size_t pieces = kernel.pieces();
  if (pieces == 1) {
    return {EachFrame([kernel](StreamFrame& frame) {
      kernel.FindLargest(frame, {0, 1});
      kernel.CombineLargest(frame);
      kernel.SumExponentials(frame, {0, 1});
      kernel.TakeLog(frame);
    })};
  }
  const auto largest = [kernel](StreamFrame& frame, Pieces part) {
    kernel.FindLargest(frame, part);
  };
  const auto sums = [kernel](StreamFrame& frame, Pieces part) {
    kernel.SumExponentials(frame, part);
  };
  return {{FramePhase(largest, pieces),
           FramePhase([kernel](StreamFrame& frame) { kernel.CombineLargest(frame); }),
           FramePhase(sums, pieces),
           FramePhase([kernel](StreamFrame& frame) { kernel.TakeLog(frame); })}};
}

}  // namespace kinglet::cpu
