// The memory of one stream: the buffers that kernels work on, a copy of what an unfinished token
// overwrites, and the stream's state, saved and restored page by page.
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
  // Whether queries work in the stream's own memory, or in memory that streams share (QueryFrames).
  enum class Queries : uint8_t { kOwn, kShared };
  // A new stream. If `device` is not null, the stream is lane `lane` of the device and its memory
  // is there. Throws std::bad_alloc. REQUIRES: `device` outlives the stream.
  explicit Stream(const Model& model, Queries queries = Queries::kOwn,
                  DeviceLanes* device = nullptr, uint32_t lane = 0);
  // The bytes of the host's memory that a stream of `model` allocates.
  static uint64_t Bytes(const Model& model, Queries queries = Queries::kOwn);

  uint64_t position() const { return position_; }            // tokens processed
  uint64_t source_length() const { return source_length_; }  // tokens encoded; 0 without a source

  uint32_t last_token() const { return last_token_; }  // REQUIRES: position() > 0

  // Sets the BatchInfo of all frames of the stream from now on.
  void set_batch(const BatchInfo& batch) { batch_ = batch; }

  // The frame of the last token, for queries. REQUIRES: position() > 0.
  StreamFrame LastFrame() { return FrameAt(position_ - 1, last_token_); }
  // Begins a token: keeps a copy of the state that the token will overwrite, and returns its frame.
  // Commit or Undo ends the token. On a device nothing is copied, because all nodes of a token run
  // or no node does.
  StreamFrame Begin(uint32_t token);
  void Commit(uint32_t token);
  void Undo();
  // Takes the last token back, after Commit and nothing else. `before` is the token before it. On
  // a device its memory stays as it is. REQUIRES: position() > 1.
  void Retract(uint32_t before);

  // Begin, Commit and Undo for tokens that go through the network together, on the host. The state
  // that the tokens overwrite is kept in BytesTogether(model, tokens) bytes at `kept`. CopyOwnState
  // copies the buffers that every token writes completely to a token's own memory, and
  // CommitTogether copies them back from that of the last token.
  static uint64_t BytesTogether(const Model& model, uint64_t tokens);
  void CopyOwnState(std::byte* own_state) const;
  void BeginTogether(uint64_t tokens, std::byte* kept) const;
  StreamFrame FrameTogether(uint64_t index, uint32_t token, std::byte* scratch,
                            std::byte* own_state) {
    StreamFrame frame = FrameAt(position_ + index, token);
    frame.scratch = scratch;
    frame.own_state = own_state;
    return frame;
  }
  void CommitTogether(uint64_t tokens, uint32_t last, const std::byte* own_state);
  void UndoTogether(uint64_t tokens, const std::byte* kept);

  // --- Functions that return an error only on a device, whose later calls then all return it.

  // Starts a new stream with a source of `tokens` tokens, which the caller then encodes. REQUIRES:
  // the model has an encoder, and the source fits its window.
  Status BeginSource(uint64_t tokens);
  // The frame of a source token. REQUIRES: index < source_length().
  StreamFrame SourceFrame(uint64_t index, uint32_t token) { return FrameAt(index, token); }
  // The frame of a source token with scratch memory of the token's own,
  // BufferLayout::source_token_bytes at `scratch`, so that nodes can run on several source tokens
  // at once: up to `most` in all.
  StreamFrame SourceFrame(uint64_t index, uint32_t token, std::byte* scratch, uint64_t most) {
    StreamFrame frame = FrameAt(index, token);
    frame.source_rows = frame.scratch;
    frame.scratch = scratch;
    frame.batch.vectors = most;
    return frame;
  }

  // Starts a new stream without a source. On a device this is no work: nodes treat what the new
  // stream has not written as zeros.
  Status Reset();
  // The stream's state. Copies the pages that were written since the last Save or Restore, and
  // shares the others. Throws std::bad_alloc, and then leaves the stream unchanged.
  Result<State> Save(const std::shared_ptr<const Model>& model);
  // Makes the stream the one that was saved as the state. Copies the pages in which they differ.
  // REQUIRES: state.Fits(model).
  Status Restore(const State& state);
  // Makes the stream a copy of the other one, within the device. REQUIRES: `other` is another lane
  // of the same device.
  Status CopyOnDevice(const Stream& other);

 private:
  struct PageRange {
    size_t begin, end;
  };
  // The part of a region that the token at a position writes; 0 bytes if the token writes nothing.
  struct Write {
    uint64_t offset, bytes;
  };
  static Write WriteOf(const StateRegion& region, uint64_t position);
  StreamFrame FrameAt(uint64_t position, uint32_t token) {
    return {scratch_.get(), state_.get(), position, token, source_length_, lane_, batch_};
  }
  // Calls copy(address in the state, address in `kept`, bytes) for each write of the next tokens.
  template <class Byte, class Copy>
  void ForEachWrite(uint64_t tokens, Byte* kept, const Copy& copy) const;
  void MarkWritten(const Write& write);
  // Marks the pages that the tokens since the last call wrote.
  void MarkTokens();
  // The first run of adjacent pages, from page `from` on, for which needs(i) is true: at most
  // kPagesTogether; an empty range if there is no such page.
  template <class Needs>
  PageRange NextPages(size_t from, const Needs& needs) const;
  uint64_t BytesOf(PageRange pages) const;
  // Calls use(offset, end) for the bytes of each region that the stream has written, in order.
  template <class Use>
  void ForEachWritten(const Use& use) const;
  // Whether the stream has written a byte of page i.
  bool HasWritten(size_t i) const;
  // Sets the bytes of a copy of the state, from `offset` on, to zeros where the stream has not
  // written. On the host they are zeros.
  void ClearUnwritten(uint64_t offset, std::span<std::byte> memory) const;
  // Makes the stream's memory equal pages(i) in every page i; on a device, in every byte that the
  // stream, whose position is that of the pages, has written.
  template <class Pages>
  Status SetPages(const Pages& pages);

  const BufferLayout* layout_;  // the model's
  DeviceLanes* device_;         // null if the memory is the stream's own
  uint32_t lane_;
  BatchInfo batch_;
  AlignedMemory scratch_, state_;
  uint64_t position_ = 0;
  uint32_t last_token_ = 0;
  uint64_t source_length_ = 0;
  std::vector<std::byte> undo_;  // what the last token begun overwrites, region after region
  // The state as it was last saved or restored. On a device a page without a byte that the stream
  // has written is null, whatever the device's memory has there.
  std::vector<SharedPage> pages_;
  // By page: 1 if a token before position unmarked_ has written to it since then.
  std::vector<uint8_t> is_written_;
  uint64_t unmarked_ = 0;
};

}  // namespace kinglet

#endif  // KINGLET_RUNTIME_STREAM_H_
