// A plan on a device that has memory of its own. The host copies buffers from the device when it
// needs them: queries work on copies of what their steps left (StreamFrame::scratch and
// StreamFrame::state), so that the code that answers them is the same for every backend.
#ifndef KINGLET_KERNELS_DEVICE_PROGRAM_H_
#define KINGLET_KERNELS_DEVICE_PROGRAM_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "kernels/backend.h"
#include "kernels/device_peaks.h"
#include "kernels/plan.h"
#include "kinglet/status.h"

namespace kinglet {

// What the device has been asked to do.
struct DeviceWork {
  uint64_t launches = 0;
  uint64_t bytes_to_device = 0, bytes_to_host = 0;

  DeviceWork operator-(const DeviceWork& before) const {
    return {launches - before.launches, bytes_to_device - before.bytes_to_device,
            bytes_to_host - before.bytes_to_host};
  }
  DeviceWork& operator+=(const DeviceWork& more) {
    launches += more.launches;
    bytes_to_device += more.bytes_to_device;
    bytes_to_host += more.bytes_to_host;
    return *this;
  }
};

// What one run of a step makes a device do in addition to reading and writing the buffers of the
// streams.
struct DeviceDemand {
  uint64_t weight_bytes = 0;   // read; the device's caches may hold them
  uint64_t byte_products = 0;  // on its tensor cores

  DeviceDemand& operator+=(const DeviceDemand& more) {
    weight_bytes += more.weight_bytes;
    byte_products += more.byte_products;
    return *this;
  }
};

// How a device answers a query.
struct DeviceQuery {
  bool empty_cache_is_normalised =
      false;                  // EmptyCache::kNormalised of runtime/queries/distribution.h
  bool computes_all = false;  // every cluster, needed or not
};

// A device's answer about the token that follows a stream's last one. Its numbers equal those of
// the host's answer (runtime/queries/distribution.h) bit for bit.
struct DeviceAnswer {
  struct Word {
    uint32_t id;
    float log_probability;
  };
  std::vector<Word> words;   // most probable first, or the one that was asked for
  uint32_t looked_into = 0;  // words whose log-probability was computed to find these
  uint64_t clusters = 0;     // bit i: cluster i was computed. A device ranks at most 64 clusters
  // The first cluster whose numbers are not finite; the number of clusters stands for the cache.
  std::optional<uint32_t> not_finite;
};

// The memory of a session's streams on a device, one for each lane, all zeros at first, and the
// queue of work on it. Calls work in order. Belongs to one thread at a time. Calls that bring
// nothing back may return before their work is done. An error of the device is final, because its
// memory may be half written: every later call returns that error again. REQUIRES of all calls:
// lanes are below the count, ranges are within the plan and within the state.
class DeviceLanes {
 public:
  virtual ~DeviceLanes() = default;

  // Runs the steps on the device's memory of each frame's lane; no lane comes twice. The frames'
  // own memory is not touched.
  virtual Status Run(StepRange range, std::span<const StreamFrame> frames) = 0;
  // Copies buffers from the lanes to the frames' own memory.
  virtual Status Fetch(std::span<const StreamFrame> frames, std::span<const BufferId> buffers) = 0;

  // Queries that the device answers itself: it computes the clusters that can matter, and only the
  // answer is copied to the host.

  // The largest k of RankWords; 0: the device cannot rank, so the host does.
  virtual uint32_t max_ranked_words() const { return 0; }
  // The k most probable words. REQUIRES, here and below: max_ranked_words() > 0; of k: at most
  // that.
  virtual Result<std::vector<DeviceAnswer>> RankWords(std::span<const StreamFrame>, uint32_t /*k*/,
                                                      const DeviceQuery&) {
    return CannotRank();
  }
  // log p of one word for each lane.
  virtual Result<std::vector<DeviceAnswer>> LogProbabilities(std::span<const StreamFrame>,
                                                             std::span<const uint32_t> /*words*/,
                                                             const DeviceQuery&) {
    return CannotRank();
  }

  // Bytes of a lane's state from `offset` on.
  virtual Status ReadState(uint32_t lane, uint64_t offset, std::span<std::byte> to) = 0;
  virtual Status WriteState(uint32_t lane, uint64_t offset, std::span<const std::byte> from) = 0;
  virtual Status ClearState(uint32_t lane, uint64_t offset, uint64_t bytes) = 0;
  // Copies the whole state of a lane to another.
  virtual Status CopyState(uint32_t from, uint32_t to) = 0;

  // Returns when all work is done.
  virtual Status Wait() = 0;
  virtual DeviceWork work() const = 0;

 private:
  static Status CannotRank() {
    return Status::Refusal(KINGLET_UNSUPPORTED, "device", "query", "a device that ranks words",
                           "one that does not");
  }
};

// A plan bound to a device, its weights in the device's memory. Immutable; shared by any number of
// threads.
class DeviceProgram {
 public:
  virtual ~DeviceProgram() = default;
  virtual const std::string& device_name() const = 0;
  virtual uint64_t weight_bytes() const = 0;
  // Device memory: what each lane takes, and what is free now.
  virtual uint64_t BytesPerLane() const = 0;
  virtual uint64_t FreeBytes() const = 0;
  // The device's peaks, whatever else uses it now.
  virtual DevicePeaks peaks() const { return {}; }
  // The demand of one run of plan step `step` for these frames, whose memory is not touched.
  // Nothing if it is unknown, or if another step does all of its work.
  virtual std::optional<DeviceDemand> DemandOf(size_t /*step*/,
                                               std::span<const StreamFrame> /*lanes*/) const {
    return std::nullopt;
  }
  // KINGLET_OUT_OF_MEMORY. Throws std::bad_alloc.
  virtual Result<std::unique_ptr<DeviceLanes>> CreateLanes(uint32_t count) const = 0;
};

}  // namespace kinglet

#endif  // KINGLET_KERNELS_DEVICE_PROGRAM_H_
