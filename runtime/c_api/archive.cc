// Archives through the C interface.
#include <algorithm>
#include <string>
#include <utility>

#include "runtime/c_api/guard.h"
#include "runtime/c_api/handles.h"

namespace kinglet {
namespace {

// The size of the structure's first version, which is this one.
constexpr uint32_t kSmallestCoderOptions = sizeof(kinglet_coder_options);

Result<kinglet_coder_options> ReadCoderOptions(const char* function,
                                               const kinglet_coder_options* given) {
  KINGLET_ASSIGN_OR_RETURN(kinglet_coder_options options,
                           ReadOptions(function, given, kSmallestCoderOptions));
  const std::pair<const char*, uint32_t> flags[] = {{"options->fast", options.fast},
                                                    {"options->salvage", options.salvage}};
  for (const auto& [name, flag] : flags) {
    if (flag > 1) return Invalid(function, name, "0 or 1", std::to_string(flag));
  }
  if (options.reserved != 0) {
    return Invalid(function, "options->reserved", "0", std::to_string(options.reserved));
  }
  if (options.threads == 0) options.threads = 1;
  if (options.block_size == 0) options.block_size = compress::kDefaultBlock;
  if (options.limit == 0) options.limit = UINT64_MAX;
  return options;
}

// Creates a coder of the archive that make(options, stop) returns.
template <class Make>
kinglet_status CreateCoder(const char* function, const kinglet_model* model,
                           const kinglet_coder_options* options, kinglet_coder** out,
                           const Make& make) {
  return With(function, "model", model, [&]() -> Status {
    KINGLET_RETURN_IF_ERROR(RequirePointer(function, "out", out));
    KINGLET_ASSIGN_OR_RETURN(const auto read, ReadCoderOptions(function, options));
    auto coder = std::make_unique<kinglet_coder>();
    auto stop = [flag = &coder->is_cancelled] { return flag->load(std::memory_order_relaxed); };
    KINGLET_ASSIGN_OR_RETURN(auto archive, make(read, std::move(stop)));
    coder->archive.emplace(std::move(archive));
    *out = coder.release();
    return Status();
  });
}

Status RequireNoFailure(const char* function, const kinglet_coder& coder) {
  if (!coder.has_failed) return Status();
  return Invalid(function, "coder", "one whose calls succeeded",
                 "one that failed before (destroy it, and begin again with another)");
}

// Makes output wait, if there is any.
Status Compute(kinglet_coder& coder) {
  coder.output.clear();
  coder.taken = 0;
  return std::visit([&](auto& archive) { return archive.Next(coder.output); }, *coder.archive);
}

}  // namespace
}  // namespace kinglet

using kinglet::RequireNoFailure;
using kinglet::Status;

kinglet_status kinglet_coder_options_init(kinglet_coder_options* options, uint32_t struct_size) {
  return kinglet::InitOptions(__func__, options, struct_size);
}

kinglet_status kinglet_compressor_create(const kinglet_model* model,
                                         const kinglet_coder_options* options,
                                         kinglet_coder** out) {
  return kinglet::CreateCoder(
      __func__, model, options, out, [&](const kinglet_coder_options& read, auto stop) {
        return kinglet_coder::Writer::Create(model->model, {.block_size = read.block_size,
                                                            .threads = read.threads,
                                                            .fast = read.fast != 0,
                                                            .stop = std::move(stop)});
      });
}

kinglet_status kinglet_decompressor_create(const kinglet_model* model,
                                           const kinglet_coder_options* options,
                                           kinglet_coder** out) {
  return kinglet::CreateCoder(
      __func__, model, options, out, [&](const kinglet_coder_options& read, auto stop) {
        return kinglet_coder::Reader::Create(model->model, {.threads = read.threads,
                                                            .limit = read.limit,
                                                            .salvage = read.salvage != 0,
                                                            .stop = std::move(stop)});
      });
}

void kinglet_coder_destroy(kinglet_coder* coder) { kinglet::Destroy(coder); }

kinglet_status kinglet_coder_add(kinglet_coder* coder, const void* bytes, uint64_t count) {
  const char* const function = __func__;
  return kinglet::With(function, "coder", coder, [&]() -> Status {
    KINGLET_RETURN_IF_ERROR(RequireNoFailure(function, *coder));
    if (coder->is_finished) {
      return kinglet::Invalid(function, "coder", "one that was not finished", "one that was");
    }
    KINGLET_ASSIGN_OR_RETURN(
        const auto piece,
        kinglet::ReadArray(function, "bytes", static_cast<const std::byte*>(bytes), count));
    coder->has_failed = true;  // until the piece was added
    std::visit([&](auto& archive) { archive.Add(piece); }, *coder->archive);
    coder->has_failed = false;
    return Status();
  });
}

kinglet_status kinglet_coder_finish(kinglet_coder* coder) {
  const char* const function = __func__;
  return kinglet::With(function, "coder", coder, [&]() -> Status {
    KINGLET_RETURN_IF_ERROR(RequireNoFailure(function, *coder));
    coder->is_finished = true;
    std::visit([&](auto& archive) { archive.EndOfInput(); }, *coder->archive);
    return Status();
  });
}

kinglet_status kinglet_coder_take(kinglet_coder* coder, void* buffer, uint64_t capacity,
                                  uint64_t* count) {
  const char* const function = __func__;
  return kinglet::With(function, "coder", coder, [&]() -> Status {
    KINGLET_RETURN_IF_ERROR(kinglet::RequirePointer(function, "buffer", buffer));
    KINGLET_RETURN_IF_ERROR(kinglet::RequirePointer(function, "count", count));
    if (capacity == 0) return kinglet::Invalid(function, "capacity", "at least 1", "0");
    KINGLET_RETURN_IF_ERROR(RequireNoFailure(function, *coder));
    coder->has_failed = true;  // until there is an output
    if (coder->is_cancelled) {
      return Status(KINGLET_CANCELLED, std::string(function) + ": stopped by the caller");
    }
    if (coder->taken == coder->output.size()) KINGLET_RETURN_IF_ERROR(kinglet::Compute(*coder));
    coder->has_failed = false;
    *count = std::min<uint64_t>(capacity, coder->output.size() - coder->taken);
    std::copy_n(coder->output.begin() + static_cast<std::ptrdiff_t>(coder->taken), *count,
                static_cast<std::byte*>(buffer));
    coder->taken += *count;
    return Status();
  });
}

kinglet_status kinglet_coder_cancel(kinglet_coder* coder) {
  return kinglet::With(__func__, "coder", coder, [&] {
    coder->is_cancelled = true;
    return Status();
  });
}

kinglet_status kinglet_coder_damages(const kinglet_coder* coder, char* buffer, uint64_t capacity,
                                     uint64_t* needed) {
  const char* const function = __func__;
  return kinglet::With(function, "coder", coder, [&] {
    std::string lines;
    if (const auto* reader = std::get_if<kinglet_coder::Reader>(&*coder->archive)) {
      for (const std::string& damage : reader->damages()) lines += damage + "\n";
    }
    return kinglet::CopyText(function, lines, buffer, capacity, needed);
  });
}
