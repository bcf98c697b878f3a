// Archives of any bytes: a part of kinglet.hpp, which includes this file.
#ifndef KINGLET_ARCHIVE_HPP_
#define KINGLET_ARCHIVE_HPP_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "kinglet/kinglet.h"
#include "kinglet/model.hpp"
#include "kinglet/status.h"

namespace kinglet {
inline namespace api {

// kinglet_coder_options with every field at its default.
struct CoderOptions : kinglet_coder_options {
  CoderOptions() : kinglet_coder_options() { struct_size = sizeof(kinglet_coder_options); }
};

// Makes an archive, or restores one, in pieces of any size. Move-only. One thread at a time may use
// a coder, except for Cancel.
class Coder {
 public:
  static Result<Coder> Compressor(const Model& model, const CoderOptions& options = {}) {
    kinglet_coder* coder = nullptr;
    const kinglet_status status = kinglet_compressor_create(model.get(), &options, &coder);
    return ResultOf(status, Coder(coder));
  }
  static Result<Coder> Decompressor(const Model& model, const CoderOptions& options = {}) {
    kinglet_coder* coder = nullptr;
    const kinglet_status status = kinglet_decompressor_create(model.get(), &options, &coder);
    return ResultOf(status, Coder(coder));
  }

  Status Add(const void* bytes, size_t count) {
    return StatusOf(kinglet_coder_add(get(), bytes, count));
  }
  // No bytes follow.
  Status Finish() { return StatusOf(kinglet_coder_finish(get())); }
  // The next bytes of the output, at most `most` of them, which is 1 or more. Empty if more input
  // is needed or, after Finish, if the output is complete.
  Result<std::vector<unsigned char>> Take(size_t most = size_t{1} << 16) {
    std::vector<unsigned char> bytes(most);
    uint64_t count = 0;
    const kinglet_status status = kinglet_coder_take(get(), bytes.data(), most, &count);
    bytes.resize(static_cast<size_t>(count));
    return ResultOf(status, std::move(bytes));
  }
  // Stops the running Take, or else the next one, with KINGLET_CANCELLED. Any thread may call this
  // method.
  Status Cancel() { return StatusOf(kinglet_coder_cancel(get())); }
  // With `salvage`: what the text lacks, a line for each range of blocks.
  Result<std::string> Damages() const {
    return TextOf([&](char* buffer, uint64_t capacity, uint64_t* needed) {
      return kinglet_coder_damages(get(), buffer, capacity, needed);
    });
  }

  // The C handle, which this object still owns.
  kinglet_coder* get() const { return coder_.get(); }

 private:
  struct Destroy {
    void operator()(kinglet_coder* coder) const { kinglet_coder_destroy(coder); }
  };
  explicit Coder(kinglet_coder* coder) : coder_(coder) {}
  std::unique_ptr<kinglet_coder, Destroy> coder_;
};

}  // namespace api
}  // namespace kinglet

#endif  // KINGLET_ARCHIVE_HPP_
