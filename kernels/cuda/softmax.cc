// How LogSumExp becomes device steps (softmax.h).
#include "kernels/cuda/bind.h"

namespace kinglet::cuda {

Steps BindOp(const LogSumExp& op, Binder& binder) {
  Logits logits{};
  logits.x = binder.At(op.x);
  logits.count = binder.Count(op.x);
  logits.blocks = binder.At(op.blocks);
  logits.normaliser = binder.At(op.out);
  logits.largest = binder.Temporary<float>(SumBlocks(logits.count));
  binder.SetLogits(op.out, logits);
  return std::vector<Step>{MakeStep(LargestOfBlocks{logits}),
                           MakeStep(ExponentialsOfBlocks{logits}), MakeStep(LogOfSum{{}, logits})};
}

}  // namespace kinglet::cuda
