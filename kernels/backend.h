// Backends: what computes a plan. A backend turns each node of a plan into a kernel, once, at load.
// A kernel owns (or shares) its weights in a layout of its own and writes only to the frames it is
// given, so the same kernels may run on many frames in many threads at once. A kernel reports which
// of its weights a run reads, so that a token's time can be compared with the time to read that
// memory.
//
// A kernel is a list of phases, and a phase is a number of chunks. The caller of a kernel may
// divide the chunks among threads, and passes all frames that need the node in one call, so that
// the kernel can fetch its weights once for all of them.
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

// What a frame states about its session: how many vectors a kernel may get at once. A kernel may
// choose by it how to compute a product, which changes the product's bits (`onednn`). It may never
// choose by the number of frames of one call.
struct BatchInfo {
  WorkMemory* memory = nullptr;  // the session's; null if no kernel needs any
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
  // Memory of the scratch buffers that all tokens of a source share, 64-byte aligned, where
  // `scratch` is this token's own. Null if those buffers are in `scratch`.
  std::byte* source_rows = nullptr;
  // Memory of the state buffers that every token overwrites entirely, 64-byte aligned,
  // layout.own_state_bytes long, where tokens of one stream go through the network together. Null
  // if those buffers are in `state`.
  std::byte* own_state = nullptr;
  // If false, kernels that can compute logits again (Kernel::make_logits) need not store them. All
  // frames of a call have the same value.
  bool keeps_logits = true;
  // Where a kernel with make_logits stores this frame's logits: memory of the caller, for all
  // logits, at any address. Null if the logits go to their buffer.
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

// A part of a node, which begins once the phase before it has ended. The chunks of a phase are
// independent: each runs once on every frame, and the bits do not depend on the order or on how
// chunks and frames are divided among threads. Only frames of one stream are not divided
// (`takes_one_stream`).
struct Phase {
  std::function<void(std::span<StreamFrame> frames, Chunks chunks)> run;
  // The number of chunks, which cost about the same. If there are several, each touches
  // kPhaseChunkBytes or more, which takes a third of a microsecond: handing a smaller chunk to
  // another thread would cost more than it saves. Reading a chunk's weights takes at most a tenth
  // of a millisecond, because a call that is cancelled waits for the chunks of a piece (NextPiece).
  size_t chunks = 1;
  // A chunk reads mostly the same memory on all frames, so it should run on all of them at once.
  bool frames_share_memory = false;
  // Frames one by one would take much longer: each chunk runs on all frames, even where that leaves
  // threads without work. REQUIRES: frames_share_memory.
  bool keeps_frames_together = false;
  // Accepts frames of one stream (AreOfOneStream), although each token writes to a ring that the
  // next token reads. A chunk then runs on all frames.
  bool takes_one_stream = false;
};
inline constexpr uint64_t kPhaseChunkBytes = 16384;

// The chunks from `begin` on, of `chunks` chunks, that run on `frames` frames between two checks
// whether the call is cancelled: about a millisecond of work. Smaller pieces would read the frames'
// vectors too often.
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

// A node bound to its weights. A kernel without phases is empty: the backend has no kernel for the
// node.
struct Kernel {
  std::vector<Phase> phases;
  // Weight memory that every run reads, as the backend laid it out, padding included. The phases
  // own this memory, and that of the functions below.
  std::vector<MemoryRange> weights = {};
  // Weight memory that the run for one token reads in addition; may be empty.
  std::function<std::vector<MemoryRange>(uint32_t token)> token_weights = {};
  // Weight memory that a run at one position of a stream reads in addition; may be empty.
  std::function<std::vector<MemoryRange>(uint64_t position)> position_weights = {};
  // Computes logits [first, first + count) of a frame again and stores them. The kernel has run on
  // that frame, summed the tiles of its logits (LogitTiles), and stored none of them, because the
  // frame does not keep logits. Null if the kernel always stores its logits.
  std::function<void(const StreamFrame& frame, uint64_t first, uint64_t count)> make_logits = {};
  // Whether all logits that the kernel will compute for this frame are certain to be finite, so
  // that the nodes of their cluster cannot fail. Asked once the nodes before the kernel have run.
  // Null if the kernel cannot tell.
  std::function<bool(const StreamFrame& frame)> has_finite_logits = {};
  // A reference kernel, which is slower, because the backend has no kernel of its own for this
  // node.
  bool is_substitute = false;
  // Weight memory that the run in a session of many lanes reads in place of `weights`.
  std::vector<MemoryRange> weights_of_many = {};
  // Bytes of a session's WorkMemory that the kernel needs for each thread that may run it. 0 means
  // that it needs no such memory.
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
    const bool runs_all_frames =
        phases.size() == 1 || (AreOfOneStream(frames) && TakesOneStream()) ||
        std::any_of(phases.begin(), phases.end(),
                    [](const Phase& phase) { return phase.frames_share_memory; });
    const size_t frames_at_once = runs_all_frames ? frames.size() : 1;
    for (size_t first = 0; first < frames.size(); first += frames_at_once) {
      for (const Phase& phase : phases) {
        for (size_t begin = 0; begin < phase.chunks;) {
          const Chunks piece = NextPiece(phase.chunks, begin, frames_at_once);
          if (piece.begin + first > 0 && stop()) return false;
          phase.run(frames.subspan(first, frames_at_once), piece);
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

// The node of `nodes` whose kernel can compute its logits again (Kernel::make_logits). Returns
// nullopt if no kernel can.
std::optional<size_t> MakerOfLogits(std::span<const Kernel> kernels, NodeRange nodes);
// The last cluster whose logits a query for the entire vocabulary may compute directly in the
// memory of its answer, since their nodes cannot fail (Kernel::has_finite_logits). Returns nullopt
// if no cluster allows it.
std::optional<size_t> ClusterMadeInAnswer(const Plan& plan, std::span<const Kernel> kernels);

// Where a buffer lies. Every buffer starts at a multiple of 64 bytes and is padded to one.
struct Slot {
  bool state = false;
  uint64_t offset = 0;     // bytes
  uint64_t count = 0;      // elements
  bool of_source = false;  // SourceUse::kAllTokens
  // The offset in StreamFrame::own_state of a state buffer that every token overwrites entirely
  // (Ring::IsWhole).
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
  // `source_length` tokens. The slots written are the first ones.
  uint64_t SlotsWritten(uint64_t tokens, uint64_t source_length) const {
    if (ring.of_source) return source_length;
    if (ring.by_encoder && source_length > 0) return ring.slots;
    return ring.SlotsWritten(tokens);
  }
};

struct BufferLayout {
  std::vector<Slot> slots;  // by BufferId
  uint64_t scratch_bytes = 0;
  uint64_t token_scratch_bytes = 0;  // the first ones, without BufferSpec::of_queries
  uint64_t source_token_bytes = 0;   // of the first of these buffers: SourceUse::kEachToken
  uint64_t state_bytes = 0;
  uint64_t own_state_bytes = 0;            // of the buffers that have Slot::own_offset
  std::vector<StateRegion> state_regions;  // of the state buffers, in order of offset
  const Slot& operator[](BufferId id) const { return slots[static_cast<size_t>(id)]; }
};

// The bytes of `count` elements of a buffer, which are complete rows of kCode9. REQUIRES: LayOut
// did not refuse the buffer.
uint64_t BytesOf(const BufferSpec& buffer, uint64_t count, size_t real_bytes);
// Refuses sizes whose sum overflows.
Result<BufferLayout> LayOut(const Plan& plan, size_t real_bytes);

// A backend calls the function for stored bytes of a weight that it has copied to memory of its own
// and will not read again. After the first call the tensor may not be read at all. The function is
// empty if the bytes must stay, because they have other readers.
using ReleaseBytes = std::function<void(WeightId weight, MemoryRange bytes)>;

// A backend calls the function before it allocates memory for the plan's weights. Throws
// std::bad_alloc if that many more bytes exceed the limit. The function is empty if there is no
// limit.
using ClaimBytes = std::function<void(uint64_t bytes)>;
inline void ClaimFrom(const ClaimBytes& claim, uint64_t bytes) {
  if (claim) claim(bytes);
}

// How a backend takes and gives back memory for weights.
struct WeightMemory {
  ReleaseBytes release = {};
  ClaimBytes claim = {};
};

class DeviceProgram;  // kernels/device_program.h
using DeviceBinding = Result<std::shared_ptr<const DeviceProgram>>;

// A backend computes on the host (`bind` is set) or on a device (`bind_device` is set).
struct Backend {
  std::string_view name;
  size_t real_bytes;  // 4: float; 8: double
  // One kernel per plan node, in order. Refuses an operation that the backend cannot run, naming
  // the operation and the node.
  Result<std::vector<Kernel>> (*bind)(const Plan& plan, const BufferLayout& layout,
                                      const WeightMemory& memory);
  // How the host computes the log-probabilities of a cluster's words. Null if values are double,
  // for which ref::kClusterFunctions<double> serves.
  ClusterFunctions<float> (*cluster_functions)();
  // Refuses as `bind` does; KINGLET_OUT_OF_MEMORY of the device. The layout outlives the program.
  std::function<DeviceBinding(const Plan& plan, const BufferLayout& layout,
                              const ReleaseBytes& release)>
      bind_device = {};
  // The name of the device that the backend needs, or of the library, which the first call loads.
  // KINGLET_UNSUPPORTED, with the reason, if the device or library is missing. The function is
  // empty if the backend needs neither.
  std::function<Result<std::string>()> needs = {};
  // How far log-probabilities may be from those of `ref`. 0 means that they have the same bits, or
  // are those of ref64.
  double tolerance = 0;
};

// Every backend of this build that computes on the host, the default first: cpu, ref, ref64, and
// onednn where the build has oneDNN's header. The library may be missing on this machine.
std::span<const Backend> Backends();
// Every backend that computes on a device: cuda. Neither this build nor this machine need support
// it.
std::span<const Backend> DeviceBackends();
// A backend of either kind. KINGLET_UNSUPPORTED if no backend has this name (the message lists the
// names), or if the backend's device or library is missing.
Result<const Backend*> FindBackend(std::string_view name);

}  // namespace kinglet

#endif  // KINGLET_KERNELS_BACKEND_H_
