// Generated text through the C interface.
#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "runtime/c_api/guard.h"
#include "runtime/c_api/handles.h"
#include "runtime/generator.h"

namespace kinglet {
namespace {

// The size of the structure's first version, which is this one.
constexpr uint32_t kSmallestGenerationOptions = sizeof(kinglet_generation_options);

Result<GenerationOptions> ReadGenerationOptions(const char* function, const Model& model,
                                                const kinglet_generation_options* given) {
  KINGLET_ASSIGN_OR_RETURN(const kinglet_generation_options options,
                           ReadOptions(function, given, kSmallestGenerationOptions));
  if (options.reserved != 0) {
    return Invalid(function, "options->reserved", "0", std::to_string(options.reserved));
  }
  GenerationOptions result;
  result.seed = options.seed;
  if (options.streams != 0) result.streams = options.streams;
  if (options.tokens != 0) result.tokens = options.tokens;
  if (options.threads != 0) result.threads = options.threads;
  KINGLET_ASSIGN_OR_RETURN(result.draw, ReadDrawOptions(function, options.draw));
  KINGLET_ASSIGN_OR_RETURN(const auto stop,
                           ReadArray(function, "options->stop", options.stop, options.stop_length));
  result.stop.assign(stop.begin(), stop.end());
  if (!result.stop.empty() && model.vocabulary() == nullptr) {
    return Status::Refusal(KINGLET_UNSUPPORTED, function, "options->stop", "a model with words",
                           "one that has ids only");
  }
  return result;
}

Result<const Generator::Stream*> StreamOf(const char* function,
                                          const kinglet_generation* generation, uint32_t stream) {
  KINGLET_RETURN_IF_ERROR(RequirePointer(function, "generation", generation));
  const std::vector<Generator::Stream>& streams = generation->generator.streams();
  if (stream < streams.size()) return &streams[stream];
  return Invalid(function, "stream", "a number below " + std::to_string(streams.size()),
                 std::to_string(stream));
}

}  // namespace
}  // namespace kinglet

using kinglet::Generator;
using kinglet::Guard;
using kinglet::RequirePointer;
using kinglet::Status;
using kinglet::StreamOf;

kinglet_status kinglet_generation_options_init(kinglet_generation_options* options,
                                               uint32_t struct_size) {
  return kinglet::InitOptions(__func__, options, struct_size);
}

kinglet_status kinglet_generation_create(const kinglet_model* model,
                                         const kinglet_generation_options* options,
                                         const uint32_t* prompt, uint64_t count,
                                         kinglet_generation** out) {
  const char* const function = __func__;
  return Guard([&]() -> Status {
    KINGLET_RETURN_IF_ERROR(RequirePointer(function, "model", model));
    KINGLET_RETURN_IF_ERROR(RequirePointer(function, "out", out));
    KINGLET_ASSIGN_OR_RETURN(const auto ids, kinglet::ReadArray(function, "prompt", prompt, count));
    KINGLET_ASSIGN_OR_RETURN(const kinglet::GenerationOptions read,
                             kinglet::ReadGenerationOptions(function, *model->model, options));
    KINGLET_ASSIGN_OR_RETURN(Generator generator, Generator::Create(model->model, read));
    KINGLET_RETURN_IF_ERROR(generator.Feed(ids));
    return kinglet::Publish(kinglet::Result(std::move(generator)), out);
  });
}

void kinglet_generation_destroy(kinglet_generation* generation) { kinglet::Destroy(generation); }

kinglet_status kinglet_generation_next(kinglet_generation* generation, int32_t* more) {
  const char* const function = __func__;
  return Guard([&]() -> Status {
    KINGLET_RETURN_IF_ERROR(RequirePointer(function, "generation", generation));
    KINGLET_RETURN_IF_ERROR(RequirePointer(function, "more", more));
    KINGLET_ASSIGN_OR_RETURN(const bool goes_on, generation->generator.Next());
    *more = goes_on ? 1 : 0;
    return Status();
  });
}

kinglet_status kinglet_generation_ended(const kinglet_generation* generation, uint32_t stream,
                                        int32_t* out) {
  const char* const function = __func__;
  return Guard([&]() -> Status {
    KINGLET_ASSIGN_OR_RETURN(const auto* found, StreamOf(function, generation, stream));
    KINGLET_RETURN_IF_ERROR(RequirePointer(function, "out", out));
    *out = found->ended ? 1 : 0;
    return Status();
  });
}

kinglet_status kinglet_generation_ids(const kinglet_generation* generation, uint32_t stream,
                                      uint32_t* ids, uint64_t capacity, uint64_t* needed) {
  const char* const function = __func__;
  return Guard([&]() -> Status {
    KINGLET_ASSIGN_OR_RETURN(const auto* found, StreamOf(function, generation, stream));
    KINGLET_ASSIGN_OR_RETURN(const bool wanted, kinglet::PrepareBuffer(function, found->ids.size(),
                                                                       ids, capacity, needed));
    if (wanted) std::copy(found->ids.begin(), found->ids.end(), ids);
    return Status();
  });
}

kinglet_status kinglet_generation_text(const kinglet_generation* generation, uint32_t stream,
                                       char* buffer, uint64_t capacity, uint64_t* needed) {
  const char* const function = __func__;
  return Guard([&]() -> Status {
    KINGLET_ASSIGN_OR_RETURN(const auto* found, StreamOf(function, generation, stream));
    return kinglet::CopyText(function, found->text, buffer, capacity, needed);
  });
}
