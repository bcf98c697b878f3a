// Vectors of words and, of a model with a classifier, class scores of lists of words. Any model has
// vectors: a language model gives those that its first layer is fed.
//
// Belongs to one thread at a time; any number may share a model. After any error outputs are
// untouched.
#ifndef KINGLET_RUNTIME_EMBEDDER_H_
#define KINGLET_RUNTIME_EMBEDDER_H_

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>

#include "kinglet/status.h"
#include "runtime/execute.h"
#include "runtime/memory_budget.h"
#include "runtime/model.h"

namespace kinglet {

class Embedder {
 public:
  // KINGLET_OUT_OF_MEMORY, also beyond the limits of the model's options.
  static Result<std::unique_ptr<Embedder>> Create(std::shared_ptr<const Model> model);
  // What it allocates.
  static uint64_t Bytes(const Model& model);
  Embedder(const Embedder&) = delete;
  Embedder& operator=(const Embedder&) = delete;

  const Model& model() const { return *model_; }
  // Numbers in a vector.
  uint32_t width() const;
  // 0: the model has no classifier.
  uint32_t classes() const;

  // KINGLET_ID_OUT_OF_RANGE unless the model has all of these words.
  Status CheckIds(std::span<const uint32_t> ids) const;

  // The word's vector, exactly what the plan's embedding step leaves: out.size() == width(). The
  // float form rounds on ref64. KINGLET_ID_OUT_OF_RANGE; KINGLET_NOT_FINITE if the model's own
  // numbers overflowed; KINGLET_OUT_OF_MEMORY.
  Status Vector(uint32_t id, std::span<double> out);
  Status Vector(uint32_t id, std::span<float> out);

  // The scores of each class for a list of words: logits, and log p = logit - log sum exp(logits).
  // Either may be empty; otherwise its size is classes(). Sums over words are taken in list order.
  // KINGLET_UNSUPPORTED without a classifier; KINGLET_INVALID_ARGUMENT for a list without a word
  // that is not padding; KINGLET_ID_OUT_OF_RANGE; KINGLET_NOT_FINITE; KINGLET_OUT_OF_MEMORY.
  Status Classify(std::span<const uint32_t> ids, std::span<double> logits,
                  std::span<double> log_probabilities);

 private:
  Embedder(std::shared_ptr<const Model> model, MemoryClaim memory);
  Status Run(StepRange range, uint64_t position, uint32_t token);
  Status Fetch(std::initializer_list<BufferId> buffers) const;
  template <class T>
  std::span<const T> Reals(BufferId buffer) const;
  template <class Out>
  Status WriteVector(uint32_t id, std::span<Out> out);
  template <class T>
  Status WriteScores(std::span<double> logits, std::span<double> log_probabilities) const;

  std::shared_ptr<const Model> model_;
  MemoryClaim memory_;
  size_t embedding_;  // a step
  BufferId vector_;   // that it fills
  AlignedMemory scratch_, state_;
  Execution execution_;
};

}  // namespace kinglet

#endif  // KINGLET_RUNTIME_EMBEDDER_H_
