// By whom it is computed: a backend turns each step of a plan into a kernel, once, at load. A
// kernel owns (or shares) its weights in the layout it likes and touches nothing but the frames it
// is given, so one bound program may run on many frames in many threads at once. It says which of
// its weights a run reads, so that what a token costs can be compared with reading that memory.
//
// A kernel is a list of phases, and a phase a number of chunks: whoever runs it may divide the
// chunks among threads, and hands over all frames that take the step together, so that a kernel can
// fetch its weights once for all of them.
#ifndef KINGLET_KERNELS_BACKEND_H_
#define KINGLET_KERNELS_BACKEND_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kernels/cluster_words.h"
#include "kernels/plan.h"
#include "kinglet/status.h"

namespace kinglet {

// One stream's memory while a step runs. Not owned. Of a stream on a device: the host's copy of
// what was fetched, or null.
struct StreamFrame {
  std::byte* scratch;          // 64-byte aligned, layout.scratch_bytes; layout.token_scratch_bytes
                               // where no step of a query runs
  std::byte* state;            // 64-byte aligned, layout.state_bytes
  uint64_t position;           // index of the token being processed, from 0
  uint32_t token;              // its id, < vocabulary size
  uint64_t source_length = 0;  // tokens of the encoded source; 0 without an encoder
  uint32_t lane = 0;           // its number on a device
};

using MemoryRange = std::span<const std::byte>;

// Numbers begin, .., end - 1 of a phase's chunks.
struct Chunks {
  size_t begin, end;
};

// A part of a step that begins once the phase before it has ended. Its chunks are independent: run
// once each on every frame, in any order, divided among frames and threads in any way, they give
// the same bits.
struct Phase {
  std::function<void(std::span<StreamFrame> frames, Chunks chunks)> run;
  // Of about equal cost each. Several of them touch kPhaseChunkBytes or more each, which takes a
  // third of a microsecond: less would not be worth handing over.
  size_t chunks = 1;
  // What a chunk reads is mostly the same on all frames: better fetched once for all of them.
  bool frames_share_memory = false;
};
inline constexpr uint64_t kPhaseChunkBytes = 16384;

// The phase of what knows one frame at a time: run(frame), or run(frame, chunks).
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
// The only phase, of one chunk, of such a kernel.
template <class Run>
std::vector<Phase> EachFrame(Run run) {
  return {FramePhase(std::move(run))};
}

// A step bound to its weights. A kernel without phases is none.
struct Kernel {
  std::vector<Phase> phases;
  // Weight memory that every run reads, as laid out by the backend, padding included. Lies in what
  // the phases own, as the rows below do.
  std::vector<MemoryRange> weights = {};
  // What the run for one token reads besides; empty where that is nothing.
  std::function<std::vector<MemoryRange>(uint32_t token)> token_weights = {};
  // And what the run at one position of a stream reads.
  std::function<std::vector<MemoryRange>(uint64_t position)> position_weights = {};
  // A reference kernel, slower, because the backend has none of its own for this step.
  bool is_substitute = false;

  explicit operator bool() const { return !phases.empty(); }
  // All of it, on every frame; on one after the other where they share no memory, so that what a
  // phase leaves is in the processor's caches when the next one reads it.
  void Run(std::span<StreamFrame> frames) const {
    const bool together = phases.size() == 1 ||
                          std::any_of(phases.begin(), phases.end(),
                                      [](const Phase& phase) { return phase.frames_share_memory; });
    const size_t each = together ? frames.size() : 1;
    for (size_t first = 0; first < frames.size(); first += each) {
      for (const Phase& phase : phases) phase.run(frames.subspan(first, each), {0, phase.chunks});
    }
  }
};

// Where a buffer lies. Every buffer starts at a multiple of 64 bytes and is padded to one.
struct Slot {
  bool state = false;
  uint64_t offset = 0;  // bytes
  uint64_t count = 0;   // elements
  template <class T>
  T* At(const StreamFrame& frame) const {
    return reinterpret_cast<T*>((state ? frame.state : frame.scratch) + offset);
  }
};

// A state buffer's bytes, slot by slot (kernels/ring.h).
struct StateRegion {
  BufferId buffer;
  uint64_t offset;  // bytes
  uint64_t slot_bytes;
  Ring ring;

  // The slots that the tokens at positions 0 .. tokens - 1 have written behind a source of so many
  // tokens: the first ones.
  uint64_t SlotsWritten(uint64_t tokens, uint64_t source_length) const {
    return ring.of_source ? source_length : ring.SlotsWritten(tokens);
  }
};

struct BufferLayout {
  std::vector<Slot> slots;  // by BufferId
  uint64_t scratch_bytes = 0;
  uint64_t token_scratch_bytes = 0;  // the first of them; the others are BufferSpec::of_queries
  uint64_t state_bytes = 0;
  std::vector<StateRegion> state_regions;  // of the state buffers, in order of offset
  const Slot& operator[](BufferId id) const { return slots[static_cast<size_t>(id)]; }
};

size_t ElementBytes(Element element, size_t real_bytes);
// Refuses sizes whose sum overflows.
Result<BufferLayout> LayOut(const Plan& plan, size_t real_bytes);

// Takes back stored bytes of a weight that a backend has laid out in memory of its own and will not
// read again; nobody may read the tensor from the first call on. Empty: the bytes stay, for they
// have other readers.
using ReleaseBytes = std::function<void(WeightId weight, MemoryRange bytes)>;

class DeviceProgram;  // kernels/device_program.h
using DeviceBinding = Result<std::shared_ptr<const DeviceProgram>>;

// Computes on the host, by `bind`, or on a device, by `bind_device`; the other one is empty.
struct Backend {
  std::string_view name;
  size_t real_bytes;  // 4: float; 8: double
  // One kernel per plan step, in order. Refuses what it cannot run, naming the operation and the
  // step.
  Result<std::vector<Kernel>> (*bind)(const Plan& plan, const BufferLayout& layout,
                                      const ReleaseBytes& release);
  // How it goes over a cluster's words, on the host; null where reals are double:
  // ref::kClusterFunctions<double>.
  ClusterFunctions<float> (*cluster_functions)();
  // Refuses as `bind` does; KINGLET_OUT_OF_MEMORY of the device. The layout outlives the program.
  std::function<DeviceBinding(const Plan& plan, const BufferLayout& layout,
                              const ReleaseBytes& release)>
      bind_device = {};
  // What the device is called, or why there is none: KINGLET_UNSUPPORTED.
  std::function<Result<std::string>()> device_name = {};
};

// Every backend of this build that computes on the host, best first for a user who does not choose:
// cpu, ref, ref64.
std::span<const Backend> Backends();
// Every one that computes on a device, whether or not this build and this machine can: cuda.
std::span<const Backend> DeviceBackends();
// Of either kind. KINGLET_UNSUPPORTED, listing what there is, if `name` is not among them, or
// saying what is missing, if its device is.
Result<const Backend*> FindBackend(std::string_view name);

}  // namespace kinglet

#endif  // KINGLET_KERNELS_BACKEND_H_
