#include <cuda_runtime.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <set>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>

#include "kernels/cuda/cuda_calls.h"
#include "kernels/cuda/cuda_device.h"
#include "kernels/cuda/half_check.h"
#include "kernels/cuda/node_kernels.h"
#include "kernels/cuda/operations.h"
#include "kernels/cuda/peaks.h"
#include "kernels/cuda/pinned_memory.h"
#include "kernels/cuda/recently_used.h"

namespace kinglet::cuda {
// Named, though only this file uses the namespace: nvcc names an anonymous namespace after the
// source's folder.
inline namespace on_device {

// A launch of a node as the CUDA runtime takes it.
struct LaunchConfig {
  LaunchConfig(const Node& node, uint32_t blocks, cudaStream_t stream) {
    config.gridDim = dim3(blocks);
    config.blockDim = dim3(kBlockThreads);
    config.dynamicSmemBytes = SharedBytesOf(node);
    config.stream = stream;
    config.attrs = &attribute;
    config.numAttrs = node.cluster_blocks > 0 ? 1 : 0;
    attribute.id = cudaLaunchAttributeClusterDimension;
    attribute.val.clusterDim.x = node.cluster_blocks;
    attribute.val.clusterDim.y = attribute.val.clusterDim.z = 1;
  }
  LaunchConfig(const LaunchConfig&) = delete;
  LaunchConfig& operator=(const LaunchConfig&) = delete;

  cudaLaunchConfig_t config{};
  cudaLaunchAttribute attribute{};
};

// Limits of a device.
struct Limits {
  int multiprocessors = 0;
  uint64_t shared_bytes = 0;  // of a thread block
  bool has_clusters = false;
  bool has_exact_halves = false;
  bool is_node_by_node = false;
};

class CudaQueue : public Queue {
 public:
  CudaQueue(int device, cudaStream_t stream, const Limits& limits)
      : device_(device), stream_(stream), limits_(limits) {}
  ~CudaQueue() override {
    const CurrentDevice current(device_);
    // Errors here are those of earlier kernels, which were reported.
    static_cast<void>(cudaStreamSynchronize(stream_));
    graphs_.Clear();
    static_cast<void>(cudaStreamDestroy(stream_));
  }

  Status Upload(std::byte* to, const void* from, size_t bytes) override {
    work_.bytes_to_device += bytes;
    return OnDevice(device_, [&]() -> Status {
      if (bytes == 0) return Status();
      KINGLET_ASSIGN_OR_RETURN(std::byte* const pinned, TakePinned(bytes));
      if (pinned != nullptr) from = std::memcpy(pinned, from, bytes);
      KINGLET_CUDA_RETURN_IF_ERROR(
          cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, stream_), "copy to the device");
      // Memory that is not pinned may be read until the copy is done.
      return pinned != nullptr ? Status() : WaitHere();
    });
  }
  Status Download(void* to, const std::byte* from, size_t bytes) override {
    work_.bytes_to_host += bytes;
    return OnDevice(device_, [&]() -> Status {
      if (bytes == 0) return WaitHere();
      KINGLET_ASSIGN_OR_RETURN(std::byte* const pinned, TakePinned(bytes));
      KINGLET_CUDA_RETURN_IF_ERROR(cudaMemcpyAsync(pinned != nullptr ? pinned : to, from, bytes,
                                                   cudaMemcpyDeviceToHost, stream_),
                                   "copy to the host");
      KINGLET_RETURN_IF_ERROR(WaitHere());
      if (pinned != nullptr) std::memcpy(to, pinned, bytes);
      return Status();
    });
  }
  Status Copy(std::byte* to, const std::byte* from, size_t bytes) override {
    return OnDevice(device_, [&]() -> Status {
      KINGLET_CUDA_RETURN_IF_ERROR(
          cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, stream_),
          "copy on the device");
      return Status();
    });
  }
  Status Zero(std::byte* to, size_t bytes) override {
    return OnDevice(device_, [&]() -> Status {
      KINGLET_CUDA_RETURN_IF_ERROR(cudaMemsetAsync(to, 0, bytes, stream_), "clearing memory");
      return Status();
    });
  }
  // When launches are asked for a second time, they are recorded as a CUDA graph, which costs about
  // as much to start as one kernel.
  Status Run(const NodeList& list, const Lane* lanes, uint32_t lane_count) override {
    return OnDevice(device_, [&]() -> Status {
      const Asked asked = {list, lanes, lane_count};
      if (!list.may_repeat) return StartAll(asked);
      Graph& graph = graphs_.Of({list.on_device, list.count, lanes, lane_count});
      if (graph.executable != nullptr) return Start(graph);
      ++graph.asked;
      if (graph.asked != 2 || list.count < 2) return StartAll(asked);
      KINGLET_RETURN_IF_ERROR(Record(asked, graph));
      return graph.executable != nullptr ? Start(graph) : StartAll(asked);
    });
  }
  Status Wait() override {
    return OnDevice(device_, [&] { return WaitHere(); });
  }

 private:
  // The arguments of Run.
  struct Asked {
    const NodeList& list;
    const Lane* lanes;
    uint32_t lane_count;
  };
  struct DestroyGraph {
    void operator()(cudaGraphExec_t graph) const { static_cast<void>(cudaGraphExecDestroy(graph)); }
  };
  struct Graph {
    std::unique_ptr<std::remove_pointer_t<cudaGraphExec_t>, DestroyGraph> executable;
    uint64_t asked = 0;  // calls of Run before it was recorded
    uint64_t launches = 0;
  };

  // Pinned memory for a copy. Null if less than `bytes` is left.
  Result<std::byte*> TakePinned(size_t bytes) {
    if (!pinned_.Holds(bytes)) return nullptr;
    std::byte* taken = pinned_.Take(bytes);
    if (taken != nullptr) return taken;
    KINGLET_RETURN_IF_ERROR(WaitHere());
    return pinned_.Take(bytes);
  }
  Status WaitHere() {
    KINGLET_CUDA_RETURN_IF_ERROR(cudaStreamSynchronize(stream_), "waiting for the device");
    pinned_.TakeBack();
    return Status();
  }

  Status StartAll(const Asked& asked) {
    for (uint32_t i = 0; i < asked.list.count; ++i) KINGLET_RETURN_IF_ERROR(StartNode(asked, i));
    return Status();
  }
  Status Start(const Graph& graph) {
    work_.launches += graph.launches;
    KINGLET_CUDA_RETURN_IF_ERROR(cudaGraphLaunch(graph.executable.get(), stream_),
                                 "starting a graph");
    return Status();
  }
  // Records the launches as a graph, unless the device has no memory left for one.
  Status Record(const Asked& asked, Graph& graph) {
    const uint64_t before = work_.launches;
    KINGLET_CUDA_RETURN_IF_ERROR(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal),
                                 "recording a graph");
    const Status recorded = StartAll(asked);
    cudaGraph_t launched = nullptr;
    const cudaError_t ended = cudaStreamEndCapture(stream_, &launched);
    graph.launches = std::exchange(work_.launches, before) - before;
    if (!recorded.ok()) return recorded;
    KINGLET_CUDA_RETURN_IF_ERROR(ended, "recording a graph");
    cudaGraphExec_t executable = nullptr;
    cudaError_t made = cudaGraphInstantiate(&executable, launched, 0);
    static_cast<void>(cudaGraphDestroy(launched));
    graph.executable.reset(executable);
    // Uploaded now rather than when the graph is first started.
    if (made == cudaSuccess) made = cudaGraphUpload(executable, stream_);
    if (made == cudaSuccess) return Status();
    graph.executable.reset();
    if (made != cudaErrorMemoryAllocation) return Failed("making a graph", made);
    ForgetError();
    return Status();
  }

  Status StartNode(const Asked& asked, uint32_t index) {
    constexpr uint32_t kBlocksEach = 8;
    const Node& node = asked.list.nodes[index];
    const uint32_t most = static_cast<uint32_t>(limits_.multiprocessors) * kBlocksEach;
    const NodeKernel kernel = KernelOf(node);
    KINGLET_RETURN_IF_ERROR(Prepare(reinterpret_cast<const void*>(kernel)));
    const LaunchConfig launch(node, BlocksOf(node, asked.lane_count, most), stream_);
    KINGLET_CUDA_RETURN_IF_ERROR(
        cudaLaunchKernelEx(&launch.config, kernel, asked.list.on_device + index, asked.lanes,
                           asked.lane_count),
        "launch");
    ++work_.launches;
    return Status();
  }
  // Allows the kernel all of a thread block's shared memory, once for each kernel.
  Status Prepare(const void* kernel) {
    if (!prepared_.insert(kernel).second) return Status();
    KINGLET_CUDA_RETURN_IF_ERROR(
        cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                             static_cast<int>(limits_.shared_bytes)),
        "asking for shared memory");
    return Status();
  }

  static constexpr size_t kPinnedBytes = size_t{4} << 20;
  static constexpr size_t kMaxGraphs = 64;
  int device_;
  cudaStream_t stream_;
  Limits limits_;
  PinnedMemory pinned_{kPinnedBytes};
  std::set<const void*> prepared_;
  // Graphs by the arguments of Run. The memory that the arguments point to stays where it is for as
  // long as the queue lives (NodeList::may_repeat).
  RecentlyUsed<std::tuple<const Node*, uint32_t, const Lane*, uint32_t>, Graph> graphs_{kMaxGraphs};
};

class CudaDevice : public Device {
 public:
  CudaDevice(int device, std::string name, const Limits& limits, const DevicePeaks& peaks)
      : device_(device), name_(std::move(name)), limits_(limits), peaks_(peaks) {}

  const std::string& name() const override { return name_; }
  uint64_t FreeBytes() const override {
    const CurrentDevice current(device_);
    size_t free_bytes = 0, total_bytes = 0;
    return cudaMemGetInfo(&free_bytes, &total_bytes) == cudaSuccess ? WithoutReserve(free_bytes)
                                                                    : 0;
  }
  uint64_t SharedBytesOfBlock() const override { return limits_.shared_bytes; }
  bool IsNodeByNode() const override { return limits_.is_node_by_node; }
  bool HasExactHalves() const override { return limits_.has_exact_halves; }
  // Whether a cluster of the node's kernel, which needs nearly all shared memory, fits the part of
  // the device that this process may use.
  bool HasClustersFor(const Node& node) const override {
    if (!limits_.has_clusters || SharedBytesOf(node) > limits_.shared_bytes) return false;
    const CurrentDevice current(device_);
    const NodeKernel kernel = KernelOf(node);
    const LaunchConfig one(node, node.cluster_blocks, nullptr);
    int clusters = 0;
    const bool known =
        cudaFuncSetAttribute(reinterpret_cast<const void*>(kernel),
                             cudaFuncAttributeMaxDynamicSharedMemorySize,
                             static_cast<int>(limits_.shared_bytes)) == cudaSuccess &&
        cudaOccupancyMaxActiveClusters(&clusters, kernel, &one.config) == cudaSuccess;
    if (!known) ForgetError();
    return known && clusters > 0;
  }
  DevicePeaks peaks() const override { return peaks_; }
  Result<std::byte*> Allocate(size_t bytes) override {
    return OnDevice(device_, [&]() -> Result<std::byte*> {
      void* memory = nullptr;
      const cudaError_t error = cudaMalloc(&memory, std::max<size_t>(bytes, 1));
      if (error == cudaErrorMemoryAllocation) {
        ForgetError();
        return Status::Refusal(KINGLET_OUT_OF_MEMORY, "cuda", "device memory",
                               std::to_string(bytes) + " bytes",
                               std::to_string(FreeBytes()) + " free");
      }
      if (error != cudaSuccess) return Failed("allocating memory", error);
      return static_cast<std::byte*>(memory);
    });
  }
  void Free(std::byte* memory) override {
    const CurrentDevice current(device_);
    static_cast<void>(cudaFree(memory));
  }
  // With unified addressing, which every 64-bit host has, host and device have one address for it.
  Result<std::byte*> AllocateMapped(size_t bytes) override {
    return OnDevice(device_, [&]() -> Result<std::byte*> {
      void* memory = nullptr;
      if (cudaHostAlloc(&memory, std::max<size_t>(bytes, 1), cudaHostAllocMapped) != cudaSuccess) {
        ForgetError();
        return Status::Refusal(KINGLET_OUT_OF_MEMORY, "cuda", "pinned host memory",
                               std::to_string(bytes) + " bytes", "less");
      }
      return static_cast<std::byte*>(memory);
    });
  }
  void FreeMapped(std::byte* memory) override {
    const CurrentDevice current(device_);
    static_cast<void>(cudaFreeHost(memory));
  }
  Result<std::unique_ptr<Queue>> CreateQueue() override {
    return OnDevice(device_, [&]() -> Result<std::unique_ptr<Queue>> {
      cudaStream_t stream = nullptr;
      KINGLET_CUDA_RETURN_IF_ERROR(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking),
                                   "creating a stream");
      return std::unique_ptr<Queue>(std::make_unique<CudaQueue>(device_, stream, limits_));
    });
  }

 private:
  int device_;
  std::string name_;
  Limits limits_;
  DevicePeaks peaks_;
};

// Rates that the driver does not report stay 0: unknown.
DeviceRates RatesOf(const cudaDeviceProp& properties, int device) {
  DeviceRates rates;
  rates.major = properties.major;
  rates.minor = properties.minor;
  rates.multiprocessors = properties.multiProcessorCount;
  const auto read = [device](cudaDeviceAttr attribute, int& to) {
    int value = 0;
    if (cudaDeviceGetAttribute(&value, attribute, device) == cudaSuccess) to = value;
  };
  read(cudaDevAttrClockRate, rates.clock_khz);
  read(cudaDevAttrMemoryClockRate, rates.memory_clock_khz);
  read(cudaDevAttrGlobalMemoryBusWidth, rates.memory_bus_bits);
  return rates;
}

Status NoDevice(const std::string& found) {
  return Status::Refusal(KINGLET_UNSUPPORTED, "backend", "cuda", "a CUDA device and its driver",
                         found);
}

}  // namespace on_device

Result<std::shared_ptr<Device>> FirstCudaDevice() {
  int count = 0;
  const cudaError_t counted = cudaGetDeviceCount(&count);
  if (counted == cudaErrorInsufficientDriver) {
    int driver = 0, runtime = 0;
    static_cast<void>(cudaDriverGetVersion(&driver));
    static_cast<void>(cudaRuntimeGetVersion(&runtime));
    if (driver == 0) return NoDevice("no driver");
    return NoDevice("a driver for CUDA " + std::to_string(driver / 1000) +
                    ", older than this "
                    "build's CUDA " +
                    std::to_string(runtime / 1000));
  }
  if (counted != cudaSuccess) return NoDevice(cudaGetErrorString(counted));
  if (count == 0) return NoDevice("no device");
  cudaDeviceProp properties{};
  KINGLET_CUDA_RETURN_IF_ERROR(cudaGetDeviceProperties(&properties, 0), "device properties");
  constexpr int kOldestMajor = 7, kOldestMinor = 5;
  if (properties.major * 10 + properties.minor < kOldestMajor * 10 + kOldestMinor) {
    return NoDevice(std::string(properties.name) + " of compute capability " +
                    std::to_string(properties.major) + "." + std::to_string(properties.minor) +
                    ", below 7.5");
  }
  Limits limits;
  limits.multiprocessors = properties.multiProcessorCount;
  limits.shared_bytes = properties.sharedMemPerBlockOptin;
  // The device alone does not decide: code compiled for 8.0 also runs on a device of 9.0, by way of
  // PTX, but without clusters.
  cudaFuncAttributes compiled{};
  KINGLET_CUDA_RETURN_IF_ERROR(
      cudaFuncGetAttributes(&compiled, KernelOf(MakeNode(DecoderStack<AnyShape>{}))),
      "kernel attributes");
  limits.has_exact_halves = HasExactHalves();
  limits.has_clusters = properties.major >= 9 && compiled.ptxVersion >= 90;
  KINGLET_ASSIGN_OR_RETURN(limits.is_node_by_node,
                           AsksForNodeByNode(std::getenv(kNodeByNodeVariable)));
  const DevicePeaks peaks = PeaksOf(RatesOf(properties, 0));
  ForgetError();
  return std::shared_ptr<Device>(
      std::make_shared<CudaDevice>(0, std::string(properties.name), limits, peaks));
}

}  // namespace kinglet::cuda
