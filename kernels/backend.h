// Backends: who computes. A backend turns each node of a plan into a kernel, once, at load. A
// kernel owns (or shares) its weights in a layout of its own and writes only to the frames it is
// given, so the same kernels may run on many frames in many threads at once. It says which of its
// weights a run reads, so that a token's time can be compared with the time to read that memory.
//
// A kernel is a list of phases, and a phase is a number of chunks. Its caller may divide the chunks
// among threads, and passes all frames that take the node together, so that a kernel can fetch its
// weights once for all of them.
#ifndef KINGLET_KERNELS_BACKEND_H_
#define KINGLET_KERNELS_BACKEND_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kernels/cluster_words.h"
#include "kernels/plan.h"
#include "kinglet/status.h"

namespace kinglet {

class WorkMemory;  // kernels/work_memory.h

// What a frame says about the frames that nodes may have beside it. A kernel may choose by it how a
// product is computed, which changes its bits (`onednn`); never by how many frames a node has.
struct BatchInfo {
  WorkMemory* memory = nullptr;  // the session's; null: no kernel needs any
  uint64_t vectors = 1;          // lanes of the session; tokens of the longest source
};

// One stream's memory while a node runs. Not owned. For a stream on a device, the memory is the
// host's copy of the buffers that were fetched, or null.
struct StreamFrame {
  std::byte* scratch;          // 64-byte aligned, layout.scratch_bytes; layout.token_scratch_bytes
                               // where no node of a query runs
  std::byte* state;            // 64-byte aligned, layout.state_bytes
  uint64_t position;           // index of the token being processed, from 0
  uint32_t token;              // its id, < vocabulary size
  uint64_t source_length = 0;  // tokens of the encoded source; 0 without an encoder
  uint32_t lane = 0;           // the stream's index in its session's batch, on a device
  BatchInfo batch = {};
  // 64-byte aligned: the memory of scratch buffers that all tokens of a source share, where
  // `scratch` is this token's own. Null: they are in `scratch`.
  std::byte* source_rows = nullptr;
  // 64-byte aligned, layout.own_state_bytes: the memory of state buffers that every token writes
  // whole, where tokens of one stream go through the network together. Null: they are in `state`.
  std::byte* own_state = nullptr;
  // False: kernels that can make logits again (Kernel::make_logits) need not store them. The same
  // in all frames of a call.
  bool keeps_logits = true;
  // Where such a kernel stores this frame's logits instead of in their buffer: memory of the caller
  // for all of them, at any address. Null: in their buffer.
  float* logits = nullptr;
};

// Whether frames are those of consecutive tokens of one stream, in order, and not those of several
// streams.
inline bool AreOfOneStream(std::span<const StreamFrame> frames) {
  return frames.size() > 1 && frames[0].state == frames[1].state;
}

using MemoryRange = std::span<const std::byte>;

// Chunks [begin, end) of a phase.
struct Chunks {
  size_t begin, end;
};

// A part of a node, which begins once the phase before it has ended. Its chunks are independent:
// each runs once on every frame; the bits do not depend on the order or on how chunks and frames
// are divided among threads, but frames of one stream are not divided (`takes_one_stream`).
struct Phase {
  std::function<void(std::span<StreamFrame> frames, Chunks chunks)> run;
  // Of about equal cost. Where there are several, each touches kPhaseChunkBytes or more, which
  // takes a third of a microsecond: handing a smaller one to another thread would cost more than it
  // saves. None takes more than a tenth of a millisecond for the weights that it reads: a call that
  // is cancelled waits for the chunks of a piece (NextPiece).
  size_t chunks = 1;
  // A chunk reads mostly the same memory on all frames, so it should run on all of them at once.
  bool frames_share_memory = false;
  // Frames one by one would take much longer: each chunk runs on all frames, even where that leaves
  // threads without work. REQUIRES: frames_share_memory.
  bool keeps_frames_together = false;
  // Takes frames of one stream (AreOfOneStream), although each token writes to a ring that the next
  // one reads. A chunk then runs on all of them.
  bool takes_one_stream = false;
};
inline constexpr uint64_t kPhaseChunkBytes = 16384;

// Of `chunks` chunks, those from `begin` on that run on `frames` frames before the next look at
// whether the call is cancelled: about a millisecond's. Fewer would read the frames' vectors too
// often.
inline Chunks NextPiece(size_t chunks, size_t begin, size_t frames) {
  constexpr size_t kMost = 1024, kFew = 128, kChunksOfFrames = 8192;
  const size_t count = std::clamp(kChunksOfFrames / std::max<size_t>(frames, 1), kFew, kMost);
  return {begin, std::min(chunks, begin + count)};
}

// The phase of a function of one frame: run(frame), or run(frame, chunks).
template <class Run>
Phase FramePhase(Run run) {
  return {[run = std::move(run)](std::span<StreamFrame> frames, Chunks) {
    for (StreamFrame& frame : frames) run(frame);
  }};
}
template <class Run>
Phase FramePhase(Run run, size_t chunks) {
  return {[run = std::move(run)](std::span<StreamFrame> frames, Chunks part) {
            for (StreamFrame& frame : frames) run(frame, part);
          },
          chunks};
}
// The phases of a kernel that is run(frame) alone, in one chunk.
template <class Run>
std::vector<Phase> EachFrame(Run run) {
  return {FramePhase(std::move(run))};
}

// A node bound to its weights. Without phases it is empty: there is no kernel.
struct Kernel {
  std::vector<Phase> phases;
  // Weight memory that every run reads, as the backend laid it out, padding included. The phases
  // own it, and the rows below.
  std::vector<MemoryRange> weights = {};
  // Weight memory that the run for one token reads in addition; may be empty.
  std::function<std::vector<MemoryRange>(uint32_t token)> token_weights = {};
  // The same for a run at one position of a stream.
  std::function<std::vector<MemoryRange>(uint64_t position)> position_weights = {};
  // Of a kernel that sums the blocks of its logits as it makes them (LogitBlocks), and does not
  // store the logits of a frame that does not keep them: stores logits [first, first + count) of
  // such a frame, on which it ran. Null: it always stores them.
  std::function<void(const StreamFrame& frame, uint64_t first, uint64_t count)> make_logits = {};
  // Of such a kernel: whether the logits of this frame, on which the nodes before it ran, cannot be
  // but finite, so that the nodes of their cluster cannot fail. Null: that is not known.
  std::function<bool(const StreamFrame& frame)> has_finite_logits = {};
  // A reference kernel, which is slower: the backend has no kernel of its own for this node.
  bool is_substitute = false;
  // Weight memory that the run in a session of many lanes reads in place of `weights`.
  std::vector<MemoryRange> weights_of_many = {};
  // Of a session's WorkMemory, for each thread that may run this. 0: none.
  uint64_t work_bytes = 0;

  explicit operator bool() const { return !phases.empty(); }
  bool TakesOneStream() const {
    return std::any_of(phases.begin(), phases.end(),
                       [](const Phase& phase) { return phase.takes_one_stream; });
  }
  // Runs all chunks on every frame. Where frames share no memory, all phases run on one frame
  // before the next, so that a phase's results are still in the processor's caches for the phase
  // after it. Returns false, with a part of the work done, once stop() is true between two pieces.
  template <class Stop>
  bool Run(std::span<StreamFrame> frames, const Stop& stop) const {
    const bool together = phases.size() == 1 || (AreOfOneStream(frames) && TakesOneStream()) ||
                          std::any_of(phases.begin(), phases.end(),
                                      [](const Phase& phase) { return phase.frames_share_memory; });
    const size_t each = together ? frames.size() : 1;
    for (size_t first = 0; first < frames.size(); first += each) {
      for (const Phase& phase : phases) {
        for (size_t begin = 0; begin < phase.chunks;) {
          const Chunks piece = NextPiece(phase.chunks, begin, each);
          if (piece.begin + first > 0 && stop()) return false;
          phase.run(frames.subspan(first, each), piece);
          begin = piece.end;
        }
      }
    }
    return true;
  }
  void Run(std::span<StreamFrame> frames) const {
    Run(frames, [] { return false; });
  }
};

// The node of `nodes` whose kernel can make its logits again; none.
std::optional<size_t> MakerOfLogits(std::span<const Kernel> kernels, NodeRange nodes);
// The cluster whose logits a query of every word makes in the memory of its answer, since that
// cannot fail (Kernel::has_finite_logits): one at most, the last one. None: there is no such one.
std::optional<size_t> ClusterMadeInAnswer(const Plan& plan, std::span<const Kernel> kernels);

// Where a buffer lies. Every buffer starts at a multiple of 64 bytes and is padded to one.
struct Slot {
  bool state = false;
  uint64_t offset = 0;     // bytes
  uint64_t count = 0;      // elements
  bool of_source = false;  // SourceUse::kAllTokens
  // Of a state buffer that every token writes whole (Ring::IsWhole): its bytes' place in
  // StreamFrame::own_state.
  std::optional<uint64_t> own_offset = std::nullopt;
  template <class T>
  T* At(const StreamFrame& frame) const {
    return reinterpret_cast<T*>(MemoryOf(frame));
  }

 private:
  std::byte* MemoryOf(const StreamFrame& frame) const {
    if (state) {
      return own_offset && frame.own_state != nullptr ? frame.own_state + *own_offset
                                                      : frame.state + offset;
    }
    return (of_source && frame.source_rows != nullptr ? frame.source_rows : frame.scratch) + offset;
  }
};

// A state buffer's bytes, slot by slot (kernels/ring.h).
struct StateRegion {
  BufferId buffer;
  uint64_t offset;  // bytes
  uint64_t slot_bytes;
  Ring ring;

  // How many slots the tokens at positions 0 .. tokens - 1 have written, after a source of
  // `source_length` tokens. They are the first slots.
  uint64_t SlotsWritten(uint64_t tokens, uint64_t source_length) const {
    if (ring.of_source) return source_length;
    if (ring.by_encoder && source_length > 0) return ring.slots;
    return ring.SlotsWritten(tokens);
  }
};

struct BufferLayout {
  std::vector<Slot> slots;  // by BufferId
  uint64_t scratch_bytes = 0;
  uint64_t token_scratch_bytes = 0;  // the first of these; the others are BufferSpec::of_queries
  uint64_t source_token_bytes = 0;   // the first of those: SourceUse::kEachToken
  uint64_t state_bytes = 0;
  uint64_t own_state_bytes = 0;            // of those buffers alone that have Slot::own_offset
  std::vector<StateRegion> state_regions;  // of the state buffers, in order of offset
  const Slot& operator[](BufferId id) const { return slots[static_cast<size_t>(id)]; }
};

// The bytes of `count` elements of a buffer; of kCode9, whole rows. REQUIRES: LayOut did not refuse
// the buffer.
uint64_t BytesOf(const BufferSpec& buffer, uint64_t count, size_t real_bytes);
// Refuses sizes whose sum overflows.
Result<BufferLayout> LayOut(const Plan& plan, size_t real_bytes);

// A backend calls this for stored bytes of a weight that it has copied to memory of its own and
// will not read again. After the first call nobody may read the tensor. An empty function: the
// bytes stay, because they have other readers.
using ReleaseBytes = std::function<void(WeightId weight, MemoryRange bytes)>;

// A backend calls this before it allocates memory that the plan's weights ask for. Throws
// std::bad_alloc where so many bytes more may not be taken. An empty function: any number may.
using ClaimBytes = std::function<void(uint64_t bytes)>;
inline void ClaimFrom(const ClaimBytes& claim, uint64_t bytes) {
  if (claim) claim(bytes);
}

// How a backend takes memory for weights.
struct WeightMemory {
  ReleaseBytes release = {};
  ClaimBytes claim = {};
};

class DeviceProgram;  // kernels/device_program.h
using DeviceBinding = Result<std::shared_ptr<const DeviceProgram>>;

// Computes on the host (`bind` is set) or on a device (`bind_device` is set).
struct Backend {
  std::string_view name;
  size_t real_bytes;  // 4: float; 8: double
  // One kernel per plan node, in order. Refuses what it cannot run, naming the operation and the
  // node.
  Result<std::vector<Kernel>> (*bind)(const Plan& plan, const BufferLayout& layout,
                                      const WeightMemory& memory);
  // How the host computes the log-probabilities of a cluster's words. Null where floats are double,
  // which use ref::kClusterFunctions<double>.
  ClusterFunctions<float> (*cluster_functions)();
  // Refuses as `bind` does; KINGLET_OUT_OF_MEMORY of the device. The layout outlives the program.
  std::function<DeviceBinding(const Plan& plan, const BufferLayout& layout,
                              const ReleaseBytes& release)>
      bind_device = {};
  // The name of the device, or of the library that is loaded when this is asked for, or
  // KINGLET_UNSUPPORTED and why there is none. Empty: nothing of the kind is needed.
  std::function<Result<std::string>()> needs = {};
  // How far log-probabilities may be from those of `ref`. 0: they have the same bits, or are those
  // of ref64.
  double tolerance = 0;
};

// Every backend of this build that computes on the host, the default first: cpu, ref, ref64,
// and onednn where the build has oneDNN's header. This machine may not have its library.
std::span<const Backend> Backends();
// Every backend that computes on a device: cuda. This build or this machine may not support it.
std::span<const Backend> DeviceBackends();
// A backend of either kind. KINGLET_UNSUPPORTED if there is none of this name (the text lists those
// that there are), or if its device or library is missing.
Result<const Backend*> FindBackend(std::string_view name);

}  // namespace kinglet

#endif  // KINGLET_KERNELS_BACKEND_H_
