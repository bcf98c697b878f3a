// How LogSumExp becomes device nodes (softmax.h).
#include "kernels/cuda/bind.h"

namespace kinglet::cuda {

Nodes BindOp(const LogSumExp& op, Binder& binder) {
  Logits logits{};
  logits.x = binder.At(op.x);
  logits.count = binder.Count(op.x);
  logits.largest = binder.At(op.tiles.largest);
  logits.sums = binder.At(op.tiles.sums);
  logits.normaliser = binder.At(op.out);
  binder.SetLogits(op.out, logits);
  return std::vector<Node>{MakeNode(SumsOfTiles{logits}), MakeNode(LogOfSum{{}, logits})};
}

}  // namespace kinglet::cuda
