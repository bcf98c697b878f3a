// How CacheAppend and CacheWeights become device steps (cache.h).
#include "kernels/cuda/cache.h"

#include <vector>

#include "kernels/cuda/bind.h"
#include "kernels/numerics.h"

namespace kinglet::cuda {
namespace {

Keys KeysOf(BufferId id, const Binder& binder) {
  return {binder.At(id), binder.plan.buffer(id).element == Element::kCode9};
}

}  // namespace

Steps BindOp(const CacheAppend& op, Binder& binder) {
  AppendToCache step{};
  step.hidden = binder.VectorOf(op.hidden);
  step.keys = KeysOf(op.keys, binder);
  step.words = binder.At(op.words);
  step.capacity = op.capacity;
  return std::vector<Step>{MakeStep(step)};
}

Steps BindOp(const CacheWeights& op, Binder& binder) {
  CacheArguments pairs{};
  pairs.hidden = binder.VectorOf(op.hidden);
  pairs.keys = KeysOf(op.keys, binder);
  pairs.weights = binder.At(op.weights);
  pairs.total = binder.At(op.total);
  pairs.capacity = op.capacity;
  pairs.first_position = op.first_position;
  pairs.theta = static_cast<float>(op.theta);
  if (pairs.hidden.codes) {
    const ActivationQuantiser& of_hidden = *binder.plan.buffer(op.hidden).quantiser;
    const ActivationQuantiser& of_keys = *binder.plan.buffer(op.keys).quantiser;
    pairs.product_scale = of_hidden.step * of_keys.step;
    pairs.rows.wide =
        !SumFitsInt32(pairs.hidden.count, LargestCode(of_hidden), LargestCode(of_keys));
    pairs.rows.together = pairs.hidden.count % kCodesTogether == 0;
  }
  return std::vector<Step>{MakeStep(CacheProducts{pairs}), MakeStep(CacheTotal{{}, pairs})};
}

}  // namespace kinglet::cuda
