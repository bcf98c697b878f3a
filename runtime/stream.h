// The memory of one stream: what its kernels work on, what it takes to leave a token half-way as if
// it had never been begun, and its state taken out and put back page by page.
#ifndef KINGLET_RUNTIME_STREAM_H_
#define KINGLET_RUNTIME_STREAM_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "runtime/execute.h"
#include "runtime/model.h"
#include "runtime/state.h"

namespace kinglet {

class Stream {
 public:
  // At the start of the stream. Throws std::bad_alloc.
  explicit Stream(const Model& model);
  // What a stream of `model` allocates.
  static uint64_t Bytes(const Model& model);

  uint64_t position() const { return position_; }            // tokens processed
  uint64_t source_length() const { return source_length_; }  // tokens encoded; 0: no source

  // The frame of the token processed last, for queries. REQUIRES: position() > 0.
  Frame LastFrame() {
    return {scratch_.get(), state_.get(), position_ - 1, last_token_, source_length_};
  }
  // Keeps what the token about to be processed will overwrite, and returns its frame. Then either
  // Commit or Undo.
  Frame Begin(uint32_t token);
  void Commit(uint32_t token);
  void Undo();

  // Back to the start, with a source of so many tokens that is about to be encoded. REQUIRES: the
  // model has an encoder, whose window is not shorter.
  void BeginSource(uint64_t tokens);
  // The frame of a source token. REQUIRES: index < source_length().
  Frame SourceFrame(uint64_t index, uint32_t token) {
    return {scratch_.get(), state_.get(), index, token, source_length_};
  }

  // Back to the start, without a source.
  void Reset();
  // What was written since the last Save or Restore is copied; the rest is shared. Throws
  // std::bad_alloc, and then the stream is as it was.
  State Save(const std::shared_ptr<const Model>& model);
  // Copies the pages in which the stream differs from the state. REQUIRES: state.Fits(model).
  void Restore(const State& state);

 private:
  // Where the token at `position` writes into a region; 0 bytes: nowhere.
  struct Write {
    uint64_t offset, bytes;
  };
  static Write WriteOf(const StateRegion& region, uint64_t position);
  void MarkWritten(const Write& write);
  void SetPage(size_t index, const SharedPage& page);

  const BufferLayout* layout_;  // the model's
  AlignedMemory scratch_, state_;
  uint64_t position_ = 0;
  uint32_t last_token_ = 0;
  uint64_t source_length_ = 0;
  std::vector<std::byte> undo_;      // what the token begun last overwrites, region after region
  std::vector<SharedPage> pages_;    // the state as it was last saved or restored
  std::vector<uint8_t> is_written_;  // by page: 1 if written since then
};

}  // namespace kinglet

#endif  // KINGLET_RUNTIME_STREAM_H_
