// The memory of one stream: what its kernels work on, what it takes to leave a token half-way as if
// it had never been begun, and its state taken out and put back page by page.
#ifndef KINGLET_RUNTIME_STREAM_H_
#define KINGLET_RUNTIME_STREAM_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "kernels/device_program.h"
#include "runtime/execute.h"
#include "runtime/model.h"
#include "runtime/state.h"

namespace kinglet {

class Stream {
 public:
  // Whether queries work in a stream's own memory, or in some that it shares with others.
  enum class Queries : uint8_t { kOwn, kShared };
  // At the start of the stream. On a device it is a lane of `device`, which outlives it. Throws
  // std::bad_alloc.
  explicit Stream(const Model& model, Queries queries = Queries::kOwn,
                  DeviceLanes* device = nullptr, uint32_t lane = 0);
  // What a stream of `model` allocates, of the host's memory.
  static uint64_t Bytes(const Model& model, Queries queries = Queries::kOwn);

  uint64_t position() const { return position_; }            // tokens processed
  uint64_t source_length() const { return source_length_; }  // tokens encoded; 0: no source

  // The frame of the token processed last, for queries. REQUIRES: position() > 0.
  StreamFrame LastFrame() { return FrameAt(position_ - 1, last_token_); }
  // Keeps what the token about to be processed will overwrite, and returns its frame. Then either
  // Commit or Undo. On a device nothing is kept: no token there stops half-way.
  StreamFrame Begin(uint32_t token);
  void Commit(uint32_t token);
  void Undo();

  // --- Of these only a device's can fail, and then for good.

  // Back to the start, with a source of so many tokens that is about to be encoded. REQUIRES: the
  // model has an encoder, whose window is not shorter.
  Status BeginSource(uint64_t tokens);
  // The frame of a source token. REQUIRES: index < source_length().
  StreamFrame SourceFrame(uint64_t index, uint32_t token) { return FrameAt(index, token); }

  // Back to the start, without a source.
  Status Reset();
  // What was written since the last Save or Restore is copied; the rest is shared. Throws
  // std::bad_alloc, and then the stream is as it was.
  Result<State> Save(const std::shared_ptr<const Model>& model);
  // Copies the pages in which the stream differs from the state. REQUIRES: state.Fits(model).
  Status Restore(const State& state);
  // Makes the stream what the other one is, within the device. REQUIRES: another lane of the same
  // device.
  Status CopyOnDevice(const Stream& other);

 private:
  struct PageRange {
    size_t begin, end;
  };
  // Where the token at `position` writes into a region; 0 bytes: nowhere.
  struct Write {
    uint64_t offset, bytes;
  };
  static Write WriteOf(const StateRegion& region, uint64_t position);
  StreamFrame FrameAt(uint64_t position, uint32_t token) {
    return {scratch_.get(), state_.get(), position, token, source_length_, lane_};
  }
  void MarkWritten(const Write& write);
  // What the tokens since the last such call wrote.
  void MarkTokens();
  // The first pages from `from` on for which needs(i) is true, side by side and at most
  // kPagesTogether; none: there is no such page.
  template <class Needs>
  PageRange NextPages(size_t from, const Needs& needs) const;
  uint64_t BytesOf(PageRange pages) const;
  // pages(i): what page i is to be.
  template <class Pages>
  Status SetPages(const Pages& pages);

  const BufferLayout* layout_;  // the model's
  DeviceLanes* device_;         // null: the memory is the stream's own
  uint32_t lane_;
  AlignedMemory scratch_, state_;
  uint64_t position_ = 0;
  uint32_t last_token_ = 0;
  uint64_t source_length_ = 0;
  std::vector<std::byte> undo_;      // what the token begun last overwrites, region after region
  std::vector<SharedPage> pages_;    // the state as it was last saved or restored
  std::vector<uint8_t> is_written_;  // by page: 1 if written since then, but for what
  uint64_t unmarked_ = 0;            // the tokens from this position on wrote
};

}  // namespace kinglet

#endif  // KINGLET_RUNTIME_STREAM_H_
