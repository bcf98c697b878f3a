#include "runtime/embedder.h"

#include <algorithm>
#include <cmath>
#include <new>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>

namespace kinglet {
namespace {

Status InvalidInput(const char* where, const std::string& expected, const std::string& found) {
  return Status::Refusal(KINGLET_INVALID_ARGUMENT, "embedder", where, expected, found);
}

Status CheckLength(const char* where, uint64_t expected, uint64_t found) {
  if (found == expected) return Status();
  return InvalidInput(where, std::to_string(expected) + " elements", std::to_string(found));
}

// KINGLET_NOT_FINITE unless the values are finite in the caller's type Out, whose range may be
// smaller than that of T.
template <class Out, class T>
Status CheckFinite(const char* where, std::span<const T> values) {
  const bool finite = std::all_of(values.begin(), values.end(),
                                  [](T value) { return std::isfinite(static_cast<Out>(value)); });
  if (finite) return Status();
  return Status::Refusal(KINGLET_NOT_FINITE, "embedder", where, "finite numbers",
                         "the model's own overflow");
}

Status EmbedderOutOfMemory() { return Status(KINGLET_OUT_OF_MEMORY, "embedder: out of memory"); }

bool IsDouble(const Model& model) { return model.backend().real_bytes == sizeof(double); }

}  // namespace

uint64_t Embedder::Bytes(const Model& model) {
  return sizeof(Embedder) + model.layout().scratch_bytes + model.layout().state_bytes;
}

Result<std::unique_ptr<Embedder>> Embedder::Create(std::shared_ptr<const Model> model) {
  const uint64_t bytes = Bytes(*model);
  if (bytes > model->session_memory_limit() || !model->budget()->Claim(bytes)) {
    return Status::Refusal(
        KINGLET_OUT_OF_MEMORY, "embedder", "memory",
        "at most " +
            std::to_string(std::min(model->session_memory_limit(), model->budget()->left())) +
            " bytes",
        std::to_string(bytes));
  }
  MemoryClaim memory(model->budget(), bytes);
  try {
    std::unique_ptr<Embedder> embedder(new Embedder(std::move(model), std::move(memory)));
    if (!embedder->scratch_ || !embedder->state_) return EmbedderOutOfMemory();
    if (const DeviceProgram* const device = embedder->model().device(); device != nullptr) {
      KINGLET_ASSIGN_OR_RETURN(embedder->execution_.device, device->CreateLanes(1));
    }
    return embedder;
  } catch (const std::bad_alloc&) {
    return EmbedderOutOfMemory();
  }
}

Embedder::Embedder(std::shared_ptr<const Model> model, MemoryClaim memory)
    : model_(std::move(model)),
      memory_(std::move(memory)),
      embedding_(EmbeddingNode(model_->plan())),
      vector_(std::get<EmbedRow>(model_->plan().nodes[embedding_].op).out),
      scratch_(AllocateZeroed(model_->layout().scratch_bytes)),
      state_(AllocateZeroed(model_->layout().state_bytes)) {}

uint32_t Embedder::width() const {
  return static_cast<uint32_t>(model_->plan().buffer(vector_).count);
}

uint32_t Embedder::classes() const {
  const std::optional<ClassifierPlan>& classifier = model_->plan().classifier;
  return classifier ? static_cast<uint32_t>(model_->plan().buffer(classifier->logits).count) : 0;
}

Status Embedder::CheckIds(std::span<const uint32_t> ids) const {
  for (const uint32_t id : ids) {
    if (!model_->Reads(id)) return model_->RefuseInput(id, "embedder");
  }
  return Status();
}

// Returns errors of a device; on the host nothing can fail.
Status Embedder::Run(NodeRange range, uint64_t position, uint32_t token) {
  StreamFrame frame{scratch_.get(), state_.get(), position, model_->TokenOf(token)};
  model_->SetSpelling(token, frame);
  return RunNodes(*model_, range, {&frame, 1}, execution_);
}

Status Embedder::Fetch(std::initializer_list<BufferId> buffers) const {
  const StreamFrame frame{scratch_.get(), state_.get(), 0, 0};
  return execution_.device ? execution_.device->Fetch({&frame, 1}, buffers) : Status();
}

template <class T>
std::span<const T> Embedder::Floats(BufferId buffer) const {
  const Slot& slot = model_->layout()[buffer];
  return {slot.At<const T>({scratch_.get(), state_.get(), 0, 0}), slot.count};
}

template <class Out>
Status Embedder::WriteVector(uint32_t id, std::span<Out> out) {
  KINGLET_RETURN_IF_ERROR(CheckLength("vector", width(), out.size()));
  KINGLET_RETURN_IF_ERROR(CheckIds({&id, 1}));
  try {
    KINGLET_RETURN_IF_ERROR(Run({embedding_, embedding_ + 1}, 0, id));
    KINGLET_RETURN_IF_ERROR(Fetch({vector_}));
  } catch (const std::bad_alloc&) {
    return EmbedderOutOfMemory();
  }
  const auto write = [&]<class T>(std::span<const T> vector) -> Status {
    KINGLET_RETURN_IF_ERROR(CheckFinite<Out>("vector", vector));
    std::transform(vector.begin(), vector.end(), out.begin(),
                   [](T value) { return static_cast<Out>(value); });
    return Status();
  };
  return IsDouble(*model_) ? write(Floats<double>(vector_)) : write(Floats<float>(vector_));
}

Status Embedder::Vector(uint32_t id, std::span<double> out) { return WriteVector(id, out); }
Status Embedder::Vector(uint32_t id, std::span<float> out) { return WriteVector(id, out); }

template <class T>
Status Embedder::WriteScores(std::span<double> logits, std::span<double> log_probabilities) const {
  const ClassifierPlan& plan = *model_->plan().classifier;
  const std::span<const T> computed = Floats<T>(plan.logits);
  KINGLET_RETURN_IF_ERROR(CheckFinite<T>("class scores", computed));
  const T reference = Floats<T>(plan.normaliser)[0], log_sum = Floats<T>(plan.normaliser)[1];
  const bool finite = std::all_of(computed.begin(), computed.end(), [&](T logit) {
    return std::isfinite((logit - reference) - log_sum);
  });
  if (!finite) {
    return Status::Refusal(KINGLET_NOT_FINITE, "embedder", "class scores", "finite differences",
                           "the model's own overflow");
  }
  if (!logits.empty()) std::copy(computed.begin(), computed.end(), logits.begin());
  if (!log_probabilities.empty()) {
    // As in rule 5 of docs/NUMERICS.md.
    std::transform(computed.begin(), computed.end(), log_probabilities.begin(),
                   [&](T logit) { return (logit - reference) - log_sum; });
  }
  return Status();
}

Status Embedder::Classify(std::span<const uint32_t> ids, std::span<double> logits,
                          std::span<double> log_probabilities) {
  const std::optional<ClassifierPlan>& classifier = model_->plan().classifier;
  if (!classifier) {
    return Status::Refusal(KINGLET_UNSUPPORTED, "embedder", "model",
                           "one with a classifier of word lists", "one without");
  }
  if (!logits.empty()) KINGLET_RETURN_IF_ERROR(CheckLength("logits", classes(), logits.size()));
  if (!log_probabilities.empty()) {
    KINGLET_RETURN_IF_ERROR(CheckLength("log-probabilities", classes(), log_probabilities.size()));
  }
  KINGLET_RETURN_IF_ERROR(CheckIds(ids));
  const bool any =
      std::any_of(ids.begin(), ids.end(), [&](uint32_t id) { return id != classifier->padding; });
  if (!any) {
    return InvalidInput("word list", "at least one word that is not padding",
                        ids.empty() ? "none" : "padding only");
  }
  try {
    for (size_t i = 0; i < ids.size(); ++i) {
      KINGLET_RETURN_IF_ERROR(Run(model_->plan().context, i, ids[i]));
    }
    KINGLET_RETURN_IF_ERROR(Run(classifier->nodes, ids.size() - 1, ids.back()));
    KINGLET_RETURN_IF_ERROR(Fetch({classifier->logits, classifier->normaliser}));
  } catch (const std::bad_alloc&) {
    return EmbedderOutOfMemory();
  }
  return IsDouble(*model_) ? WriteScores<double>(logits, log_probabilities)
                           : WriteScores<float>(logits, log_probabilities);
}

}  // namespace kinglet
