// Sessions on tiny models, shared by the tests of queries.
#ifndef KINGLET_TESTS_RUNTIME_QUERIES_TINY_SESSION_H_
#define KINGLET_TESTS_RUNTIME_QUERIES_TINY_SESSION_H_

#include <gtest/gtest.h>

#include <memory>
#include <utility>
#include <variant>
#include <vector>

#include "format/writer.h"
#include "runtime/session.h"
#include "tests/support/model_builder.h"

namespace kinglet {

// Three clusters, 40 tokens and a neural cache of 6 pairs.
inline TinyOptions SmallCacheOptions() {
  TinyOptions options;
  options.vocabulary_size = 40;
  options.cache_capacity = 6;
  return options;
}

inline std::vector<float>& FloatsOf(ModelDraft& draft, TensorId id) {
  return std::get<DenseF32>(draft.tensors[id].values).values;
}

// Tails whose cluster has next to no probability.
inline ModelDraft WithImprobableTails() {
  ModelDraft draft = TinyMicronet(SmallCacheOptions());
  const auto* softmax = FindBlock<AdaptiveSoftmax>(draft.description);
  for (float& bias : FloatsOf(draft, *softmax->cluster_bias)) bias = -60;
  return draft;
}

inline std::unique_ptr<Session> StartTiny(const ModelDraft& draft) {
  const auto model = Model::FromBytes(*SerialiseModel(draft), {});
  EXPECT_TRUE(model.ok()) << model.status().message();
  return std::move(*Session::Create(*model));
}

}  // namespace kinglet

#endif  // KINGLET_TESTS_RUNTIME_QUERIES_TINY_SESSION_H_
