// Backends, which compute. A backend turns each node of a plan into a kernel, once, at load. A
// kernel owns (or shares) its weights in a layout of its own and writes only to the frames it is
// given, so the same kernels may run on many frames in many threads at once. A kernel also reports
// which of its weights a run reads, so that a token's time can be compared with the time to read
// that memory.
//
// A kernel is a list of phases, and a phase is a number of chunks. A kernel's caller may divide the
// chunks among threads, and passes all frames that take the node together, so that a kernel can
// fetch its weights once for all of them.
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

#include "kernels/cluster_tokens.h"
#include "kernels/logits.h"
#include "kernels/plan.h"
#include "kinglet/status.h"

namespace kinglet {

class WorkMemory;  // kernels/work_memory.h

// The largest batch that a frame can be part of. A kernel may choose the algorithm of a product by
// this size, although the choice changes the product's bits (`onednn`), but never by the number of
// frames of one run.
struct BatchInfo {
  WorkMemory* memory = nullptr;  // the session's; null if no kernel needs work memory
  uint64_t vectors = 1;          // lanes of the session, or tokens of the longest source
};

// One stream's memory while a node runs, not owned by the frame. For a stream on a device, the
// memory is the host's copy of the buffers that were fetched, or null.
struct StreamFrame {
  std::byte* scratch;          // 64-byte aligned, layout.scratch_bytes; layout.token_scratch_bytes
                               // where no node of a query runs
  std::byte* state;            // 64-byte aligned, layout.state_bytes
  uint64_t position;           // index of the token being processed, from 0
  uint32_t token;              // its id, < vocabulary size
  uint64_t source_length = 0;  // tokens of the encoded source; 0 without an encoder
  uint32_t lane = 0;           // the stream's index in its session's batch, on a device
  BatchInfo batch = {};
  // 64-byte aligned: the scratch buffers that all tokens of a source share, where `scratch` is this
  // token's own. Null means that these buffers are in `scratch`.
  std::byte* source_rows = nullptr;
  // 64-byte aligned, layout.own_state_bytes: this token's copy of the state buffers that every
  // token writes completely, where tokens of one stream go through the network together. Null means
  // that these buffers are in `state`.
  std::byte* own_state = nullptr;
  LogitsPlace logits = {};
  // Of a model that spells words (EmbeddingBin::spelling): the word's bytes and, if the vocabulary
  // lacks the word, its number, which is above all ids; `token` is the unknown word's then.
  std::string_view spelling = {};
  uint32_t spelt = 0;

  uint32_t word() const { return spelt == 0 ? token : spelt; }
};

// Whether several frames are those of consecutive tokens of one stream, in order, rather than those
// of different streams.
inline bool AreOfOneStream(std::span<const StreamFrame> frames) {
  return frames.size() > 1 && frames[0].state == frames[1].state;
}

using MemoryRange = std::span<const std::byte>;

// Chunks [begin, end) of a phase.
struct Chunks {
  size_t begin, end;
};

// A part of a node, which begins once the phase before it has ended. A phase's chunks are
// independent: each runs once on every frame, and the bits depend neither on their order nor on how
// chunks and frames are divided among threads, but frames of one stream are not divided
// (`takes_one_stream`).
struct Phase {
  std::function<void(std::span<StreamFrame> frames, Chunks chunks)> run;
  // The number of chunks, which cost about the same. If there are several, each touches
  // kPhaseChunkBytes or more, which takes a third of a microsecond: handing a smaller chunk to
  // another thread would cost more than it saves. No chunk takes more than a tenth of a millisecond
  // for the weights that it reads: a call that is cancelled waits for the chunks of a piece
  // (NextPiece).
  size_t chunks = 1;
  // True if a chunk reads mostly the same memory on all frames, and so should run on all at once.
  bool frames_share_memory = false;
  // True if frames one by one would take much longer: each chunk then runs on all frames, even
  // where that leaves threads without work. REQUIRES: frames_share_memory.
  bool keeps_frames_together = false;
  // True if the phase takes frames of one stream (AreOfOneStream), although each token writes to a
  // ring that the next token reads. A chunk then runs on all frames.
  bool takes_one_stream = false;
};
inline constexpr uint64_t kPhaseChunkBytes = 16384;

// A piece of a phase: the chunks from `begin` on that run on `frames` frames before a call looks
// again whether it is cancelled. About a millisecond's work; smaller pieces would read the frames'
// vectors too often.
inline Chunks NextPiece(size_t chunks, size_t begin, size_t frames) {
  constexpr size_t kMost = 1024, kFew = 128, kChunksOfFrames = 8192;
  const size_t count = std::clamp(kChunksOfFrames / std::max<size_t>(frames, 1), kFew, kMost);
  return {begin, std::min(chunks, begin + count)};
}

// A phase of one chunk that calls run(frame) for each frame.
template <class Run>
Phase FramePhase(Run run) {
  return {[run = std::move(run)](std::span<StreamFrame> frames, Chunks) {
    for (StreamFrame& frame : frames) run(frame);
  }};
}
// A phase of `chunks` chunks that calls run(frame, chunks of a part) for each frame.
template <class Run>
Phase FramePhase(Run run, size_t chunks) {
  return {[run = std::move(run)](std::span<StreamFrame> frames, Chunks part) {
            for (StreamFrame& frame : frames) run(frame, part);
          },
          chunks};
}
// The phases of a kernel that only calls run(frame) for each frame, in one chunk.
template <class Run>
std::vector<Phase> EachFrame(Run run) {
  return {FramePhase(std::move(run))};
}

// A node bound to its weights. A kernel without phases is empty and stands for no kernel.
struct Kernel {
  std::vector<Phase> phases;
  // Weight memory that every run reads, as the backend laid it out, padding included. The phases
  // own all weight memory to which a kernel refers.
  std::vector<MemoryRange> weights = {};
  // Weight memory that the run for one token reads in addition; may be empty.
  std::function<std::vector<MemoryRange>(uint32_t token)> token_weights = {};
  // Weight memory that the run at one position of a stream reads in addition; may be empty.
  std::function<std::vector<MemoryRange>(uint64_t position)> position_weights = {};
  // Of a product that sums the tiles of its logits while it computes them.
  LogitMaker logits = {};
  // True for a reference kernel, which is slower and stands in where the backend has no kernel of
  // its own for the node.
  bool is_substitute = false;
  // Weight memory that a run in a session of many lanes reads in place of `weights`.
  std::vector<MemoryRange> weights_of_many = {};
  // Bytes of the session's WorkMemory that each thread needs which may run this kernel; may be 0.
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

// The location of a buffer. Every buffer starts at a multiple of 64 bytes and is padded to one.
struct Slot {
  bool state = false;
  uint64_t offset = 0;     // bytes
  uint64_t count = 0;      // elements
  bool of_source = false;  // SourceUse::kAllTokens
  // The offset in StreamFrame::own_state of a state buffer that every token writes completely
  // (Ring::IsWhole). nullopt for any other buffer.
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

// The bytes of a state buffer, which consists of slots (kernels/ring.h).
struct StateRegion {
  BufferId buffer;
  uint64_t offset;  // bytes
  uint64_t slot_bytes;
  Ring ring;

  // The number of slots that the tokens at positions 0 .. tokens - 1 have written, after a source
  // of `source_length` tokens. The slots written are the first ones.
  uint64_t SlotsWritten(uint64_t tokens, uint64_t source_length) const {
    if (ring.of_source) return source_length;
    if (ring.by_encoder && source_length > 0) return ring.slots;
    return ring.SlotsWritten(tokens);
  }
};

struct BufferLayout {
  std::vector<Slot> slots;  // by BufferId
  uint64_t scratch_bytes = 0;
  uint64_t token_scratch_bytes = 0;  // the first of scratch_bytes, without BufferSpec::of_queries
  uint64_t source_token_bytes = 0;   // the first of token_scratch_bytes: SourceUse::kEachToken
  uint64_t state_bytes = 0;
  uint64_t own_state_bytes = 0;            // of the state buffers that have a Slot::own_offset
  std::vector<StateRegion> state_regions;  // of the state buffers, in order of offset
  const Slot& operator[](BufferId id) const { return slots[static_cast<size_t>(id)]; }
};

// The bytes of `count` elements of a buffer; kCode9 is stored in complete rows. REQUIRES: LayOut
// did not refuse the buffer.
uint64_t BytesOf(const BufferSpec& buffer, uint64_t count, size_t real_bytes);
// Places all buffers of the plan. Refuses sizes whose sum overflows.
Result<BufferLayout> LayOut(const Plan& plan, size_t real_bytes);

// A function that a backend calls with stored bytes of a weight that it has copied to memory of its
// own and will not read again. After the first call no caller may read the tensor. An empty
// function keeps the bytes, because they have other readers.
using ReleaseBytes = std::function<void(WeightId weight, MemoryRange bytes)>;

// A function that a backend calls before it allocates memory for the plan's weights. Throws
// std::bad_alloc if the model's limit leaves fewer bytes. An empty function sets no limit.
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
  size_t real_bytes;  // 4 for float, 8 for double
  // One kernel per plan node, in order. Refuses what it cannot run, naming the operation and the
  // node.
  Result<std::vector<Kernel>> (*bind)(const Plan& plan, const BufferLayout& layout,
                                      const WeightMemory& memory);
  // How the host computes the log-probabilities of a cluster's tokens. Null for a backend of
  // double, which uses ref::kClusterFunctions<double>.
  ClusterFunctions<float> (*cluster_functions)();
  // The program of a device for the plan. Refuses what it cannot run, as `bind` does, and returns
  // KINGLET_OUT_OF_MEMORY if the device has too little memory. REQUIRES: `layout` outlives the
  // program.
  std::function<DeviceBinding(const Plan& plan, const BufferLayout& layout,
                              const ReleaseBytes& release)>
      bind_device = {};
  // Looks for what the backend needs, a device or a library, which is loaded then. Returns its
  // name, or KINGLET_UNSUPPORTED and why there is none. Empty for a backend that needs nothing.
  std::function<Result<std::string>()> needs = {};
  // How far log-probabilities may be from those of `ref`. 0 for a backend that computes the bits of
  // `ref`, and for `ref64`.
  double tolerance = 0;
};

// Every backend of this build that computes on the host, the default first: cpu, ref, ref64, and
// onednn where the build has oneDNN's header. This machine may lack oneDNN's library.
std::span<const Backend> Backends();
// Every backend that computes on a device: cuda. This build or this machine may not support cuda.
std::span<const Backend> DeviceBackends();
// The backend of this name, on the host or on a device. KINGLET_UNSUPPORTED if no backend has the
// name (the text lists all names), or if its device or library is missing.
Result<const Backend*> FindBackend(std::string_view name);

}  // namespace kinglet

#endif  // KINGLET_KERNELS_BACKEND_H_
