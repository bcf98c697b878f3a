// How CacheAppend and CacheWeights become device nodes (cache.h).
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

Nodes BindOp(const CacheAppend& op, Binder& binder) {
  AppendToCache node{};
  node.hidden = binder.VectorOf(op.hidden);
  node.keys = KeysOf(op.keys, binder);
  node.tokens = binder.At(op.tokens);
  node.ring = binder.Count(op.tokens);
  node.of_text = binder.of_text;
  return std::vector<Node>{MakeNode(node)};
}

Nodes BindOp(const CacheWeights& op, Binder& binder) {
  CacheArguments pairs{};
  pairs.hidden = binder.VectorOf(op.hidden);
  pairs.keys = KeysOf(op.keys, binder);
  pairs.weights = binder.At(op.weights);
  pairs.total = binder.At(op.total);
  pairs.capacity = op.capacity;
  pairs.ring = binder.Count(op.keys) / pairs.hidden.count;
  pairs.first_position = op.first_position;
  pairs.theta = static_cast<float>(op.theta);
  if (pairs.hidden.codes) {
    const ActivationQuantiser& of_hidden = *binder.plan.buffer(op.hidden).quantiser;
    const ActivationQuantiser& of_keys = *binder.plan.buffer(op.keys).quantiser;
    pairs.product_scale = of_hidden.scale * of_keys.scale;
  }
  const bool together = binder.of_text && pairs.keys.nine_bits;
  const CacheProducts products = {pairs, together ? CacheProducts::kMostTokens : 1};
  return std::vector<Node>{MakeNode(products), MakeNode(CacheTotal{{}, pairs})};
}

}  // namespace kinglet::cuda
