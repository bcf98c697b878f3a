// Vectors of words and, in a model with a classifier, class scores of lists of words. Every model
// has vectors: those of a language model are the input of its first layer.
//
// One thread at a time may use an embedder; any number of embedders may share a model. After an
// error outputs are untouched.
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
  // Errors: KINGLET_OUT_OF_MEMORY, also beyond the limits of the model's options.
  static Result<std::unique_ptr<Embedder>> Create(std::shared_ptr<const Model> model);
  // The bytes that an embedder allocates.
  static uint64_t Bytes(const Model& model);
  Embedder(const Embedder&) = delete;
  Embedder& operator=(const Embedder&) = delete;

  const Model& model() const { return *model_; }
  // Elements of a vector.
  uint32_t width() const;
  // The number of classes; 0 if the model has no classifier.
  uint32_t classes() const;

  // KINGLET_ID_OUT_OF_RANGE unless the model reads every id (Model::Reads).
  Status CheckIds(std::span<const uint32_t> ids) const;

  // Writes the word's vector, exactly as the plan's embedding node computes it; out.size() ==
  // width(). On ref64 the float form rounds. Errors: KINGLET_ID_OUT_OF_RANGE; KINGLET_NOT_FINITE if
  // the model's own values overflowed; KINGLET_OUT_OF_MEMORY.
  Status Vector(uint32_t id, std::span<double> out);
  Status Vector(uint32_t id, std::span<float> out);

  // Writes the scores of each class for a list of words: logits, and log p = logit - log sum
  // exp(logits). Each output has classes() elements, or is empty and then not written. Sums over
  // words are taken in list order. Errors: KINGLET_UNSUPPORTED without a classifier;
  // KINGLET_INVALID_ARGUMENT for an empty list or one of padding only; KINGLET_ID_OUT_OF_RANGE;
  // KINGLET_NOT_FINITE; KINGLET_OUT_OF_MEMORY.
  Status Classify(std::span<const uint32_t> ids, std::span<double> logits,
                  std::span<double> log_probabilities);

 private:
  Embedder(std::shared_ptr<const Model> model, MemoryClaim memory);
  Status Run(NodeRange range, uint64_t position, uint32_t token);
  Status Fetch(std::initializer_list<BufferId> buffers) const;
  template <class T>
  std::span<const T> Floats(BufferId buffer) const;
  template <class Out>
  Status WriteVector(uint32_t id, std::span<Out> out);
  template <class T>
  Status WriteScores(std::span<double> logits, std::span<double> log_probabilities) const;

  std::shared_ptr<const Model> model_;
  MemoryClaim memory_;
  size_t embedding_;  // the plan's embedding node
  BufferId vector_;   // the embedding node's output
  AlignedMemory scratch_, state_;
  Execution execution_;
};

}  // namespace kinglet

#endif  // KINGLET_RUNTIME_EMBEDDER_H_
