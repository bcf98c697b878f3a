// Embeddings through the C interface.
#include <span>

#include "runtime/c_api/guard.h"
#include "runtime/c_api/handles.h"
#include "runtime/embedder.h"

using kinglet::Embedder;
using kinglet::Get;
using kinglet::Guard;
using kinglet::ReadCount;
using kinglet::RequireCapacity;
using kinglet::RequirePointer;
using kinglet::Status;

kinglet_status kinglet_embedding_create(const kinglet_model* model, kinglet_embedding** out) {
  const char* const function = __func__;
  return Guard([&]() -> Status {
    KINGLET_RETURN_IF_ERROR(RequirePointer(function, "model", model));
    KINGLET_RETURN_IF_ERROR(RequirePointer(function, "out", out));
    return kinglet::Publish(Embedder::Create(model->model), out);
  });
}

void kinglet_embedding_destroy(kinglet_embedding* embedding) { kinglet::Destroy(embedding); }

kinglet_status kinglet_embedding_width(const kinglet_embedding* embedding, uint32_t* out) {
  return Get(__func__, "embedding", embedding, out, [&] { return embedding->embedder->width(); });
}

kinglet_status kinglet_embedding_classes(const kinglet_embedding* embedding, uint32_t* out) {
  return Get(__func__, "embedding", embedding, out, [&] { return embedding->embedder->classes(); });
}

kinglet_status kinglet_embedding_vectors(kinglet_embedding* embedding, const uint32_t* ids,
                                         uint64_t count, float* out, uint64_t capacity) {
  const char* const function = __func__;
  return Guard([&]() -> Status {
    KINGLET_RETURN_IF_ERROR(RequirePointer(function, "embedding", embedding));
    if (count == 0) return Status();
    KINGLET_RETURN_IF_ERROR(RequirePointer(function, "ids", ids));
    KINGLET_RETURN_IF_ERROR(RequirePointer(function, "out", out));
    Embedder& embedder = *embedding->embedder;
    const size_t width = embedder.width();
    KINGLET_ASSIGN_OR_RETURN(const size_t n,
                             ReadCount(function, "count", count, width * sizeof *out));
    KINGLET_RETURN_IF_ERROR(RequireCapacity(function, n * width, capacity));
    KINGLET_RETURN_IF_ERROR(embedder.CheckIds({ids, n}));
    for (size_t i = 0; i < n; ++i) {
      KINGLET_RETURN_IF_ERROR(embedder.Vector(ids[i], std::span(out + i * width, width)));
    }
    return Status();
  });
}

kinglet_status kinglet_embedding_classify(kinglet_embedding* embedding, const uint32_t* ids,
                                          uint64_t count, double* logits, double* log_probabilities,
                                          uint64_t capacity) {
  const char* const function = __func__;
  return Guard([&]() -> Status {
    KINGLET_RETURN_IF_ERROR(RequirePointer(function, "embedding", embedding));
    if (count > 0) KINGLET_RETURN_IF_ERROR(RequirePointer(function, "ids", ids));
    KINGLET_ASSIGN_OR_RETURN(const size_t n, ReadCount(function, "count", count, sizeof *ids));
    const size_t classes = embedding->embedder->classes();
    if (logits != nullptr || log_probabilities != nullptr) {
      KINGLET_RETURN_IF_ERROR(RequireCapacity(function, classes, capacity));
    }
    const auto span = [classes](double* out) {
      return out == nullptr ? std::span<double>() : std::span(out, classes);
    };
    return embedding->embedder->Classify({ids, n}, span(logits), span(log_probabilities));
  });
}
