// How LogSumExp becomes device steps (softmax.h).
#include "kernels/cuda/bind.h"

namespace kinglet::cuda {

Steps BindOp(const LogSumExp& op, Binder& binder) {
  Logits logits{};
  logits.x = binder.At(op.x);
  logits.count = binder.Count(op.x);
  logits.largest = binder.At(op.blocks.largest);
  logits.sums = binder.At(op.blocks.sums);
  logits.normaliser = binder.At(op.out);
  binder.SetLogits(op.out, logits);
  return std::vector<Step>{MakeStep(LargestOfBlocks{logits}), MakeStep(TermsOfBlocks{logits}),
                           MakeStep(LogOfSum{{}, logits})};
}

}  // namespace kinglet::cuda
