// The interface to a device that has memory of its own: a plan bound to it (DeviceProgram), and the
// memory of a session's lanes there (DeviceLanes). A lane is the slot of one stream in a session's
// batch.
//
// The host sees the lanes' memory only through copies that it asks for. Queries that the host
// answers work on these copies (StreamFrame::scratch and StreamFrame::state), so the code that
// answers queries is the same for every backend.
#ifndef KINGLET_KERNELS_DEVICE_PROGRAM_H_
#define KINGLET_KERNELS_DEVICE_PROGRAM_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "kernels/backend.h"
#include "kernels/device_peaks.h"
#include "kernels/plan.h"
#include "kernels/ranked_tokens.h"
#include "kinglet/status.h"

namespace kinglet {

// What a session has asked a device to do.
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

// The work of one run of a plan node, not counting reads and writes of the lanes' buffers.
struct DeviceDemand {
  uint64_t weight_bytes = 0;   // of weights that are read, some perhaps from the device's caches
  uint64_t byte_products = 0;  // products of two bytes on the tensor cores

  DeviceDemand& operator+=(const DeviceDemand& more) {
    weight_bytes += more.weight_bytes;
    byte_products += more.byte_products;
    return *this;
  }
};

// How a device answers a query.
struct DeviceQuery {
  // EmptyCache::kNormalised of runtime/queries/query_options.h.
  bool empty_cache_is_normalised = false;
  bool computes_all = false;  // every cluster, needed or not
};

// A device's answers to a query of several lanes, in memory of DeviceLanes that its next call
// overwrites.
struct DeviceAnswers {
  const std::byte* first = nullptr;    // of the lanes' RankedTokens, one after the other
  uint32_t most = 0;                   // tokens for which each has room
  std::span<const uint64_t> clusters;  // computed for each lane, a bit each; at most 64 exist

  size_t size() const { return clusters.size(); }
  const RankedTokens& operator[](size_t i) const {
    return *reinterpret_cast<const RankedTokens*>(first + i * RankedTokens::BytesFor(most));
  }
};

// The memory of a session's lanes on a device, and a queue that works on it in order. Scratch is
// zeros at first. State that the lane's stream has not written (StateRegion::SlotsWritten) may have
// any contents, those of an earlier stream, for example: nodes treat it as zeros, by the positions
// of the frames. So a stream begins without a call. Belongs to one thread at a time. Calls that
// return no data may return before the work is done. After an error of the device the memory may be
// half written, so every later call returns the same error. REQUIRES: lanes below the count, ranges
// within the plan and its state.
class DeviceLanes {
 public:
  virtual ~DeviceLanes() = default;

  // Runs plan nodes on the lanes that the frames name (StreamFrame::lane), each at most once. The
  // frames' own memory is not touched.
  virtual Status Run(NodeRange range, std::span<const StreamFrame> frames) = 0;
  // Copies buffers of the lanes to the frames' own memory.
  virtual Status Fetch(std::span<const StreamFrame> frames, std::span<const BufferId> buffers) = 0;

  // Queries that the device answers itself. The device computes the clusters that the answers may
  // need, and copies only the answers back.

  // The largest k of RankTokens. 0 means that the device answers no queries, so the host does.
  virtual uint32_t max_ranked_tokens() const { return 0; }
  // The k most probable tokens of each lane. REQUIRES: max_ranked_tokens() >= k, and, here and
  // below, max_ranked_tokens() > 0.
  virtual Result<DeviceAnswers> RankTokens(std::span<const StreamFrame>, uint32_t /*k*/,
                                           const DeviceQuery&) {
    return CannotRank();
  }
  // The log-probability of one token for each lane.
  virtual Result<DeviceAnswers> LogProbabilities(std::span<const StreamFrame>,
                                                 std::span<const uint32_t> /*tokens*/,
                                                 const DeviceQuery&) {
    return CannotRank();
  }

  // Given tokens.

  // The most tokens that ScoreText takes; 1 if the device takes tokens one by one.
  virtual uint64_t text_tokens() { return 1; }
  // Runs successive tokens of a lane's stream together, and answers with the log-probability of
  // next[i] after token i, for each element of `next`. A token at position 0 that is not the first
  // begins another stream, which replaces the one before. The lane's memory stays as it is.
  // REQUIRES: 1 to text_tokens() frames of one lane, and at most as many in `next`.
  virtual Result<DeviceAnswers> ScoreText(std::span<const StreamFrame>,
                                          std::span<const uint32_t> /*next*/, const DeviceQuery&) {
    return CannotRank();
  }
  // After ScoreText: the lane's state is now the one after the last token.
  virtual Status KeepText() { return Status(); }

  // Read or write bytes of a lane's state, from `offset` on.
  virtual Status ReadState(uint32_t lane, uint64_t offset, std::span<std::byte> to) = 0;
  virtual Status WriteState(uint32_t lane, uint64_t offset, std::span<const std::byte> from) = 0;
  // Copies the entire state of a lane to another lane.
  virtual Status CopyState(uint32_t from, uint32_t to) = 0;

  // Returns when all work is done.
  virtual Status Wait() = 0;
  virtual DeviceWork work() const = 0;

 private:
  static Status CannotRank() {
    return Status::Refusal(KINGLET_UNSUPPORTED, "device", "query", "a device that ranks words",
                           "a device that does not");
  }
};

// A plan bound to a device, with its weights in device memory. Immutable; shared by any number of
// threads.
class DeviceProgram {
 public:
  virtual ~DeviceProgram() = default;
  virtual const std::string& device_name() const = 0;
  virtual uint64_t weight_bytes() const = 0;
  // Bytes of device memory that a lane takes, and that are free for lanes now.
  virtual uint64_t BytesPerLane() const = 0;
  virtual uint64_t FreeBytes() const = 0;
  // Peak rates of the device.
  virtual DevicePeaks peaks() const { return {}; }
  // The demand of one run of plan node `node` for these lanes (their memory is not read). Returns
  // nullopt if the demand is not known, or if another node does all of the node's work.
  virtual std::optional<DeviceDemand> DemandOf(size_t /*node*/,
                                               std::span<const StreamFrame> /*lanes*/) const {
    return std::nullopt;
  }
  // Allocates the memory of `count` lanes. KINGLET_OUT_OF_MEMORY. Throws std::bad_alloc.
  virtual Result<std::unique_ptr<DeviceLanes>> CreateLanes(uint32_t count) const = 0;
};

}  // namespace kinglet

#endif  // KINGLET_KERNELS_DEVICE_PROGRAM_H_
