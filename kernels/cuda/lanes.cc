#include "kernels/cuda/lanes.h"

#include <algorithm>
#include <new>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "kernels/cuda/backend.h"

namespace kinglet::cuda {
namespace {

constexpr uint64_t RoundedUp(uint64_t bytes) {
  constexpr uint64_t kAlignment = 256;  // that of Device::Allocate
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

// The memory of queries contains the node that answers, then every lane's tails, then the lanes'
// answers.
constexpr uint64_t kNodeBytes = RoundedUp(sizeof(Node));
constexpr uint64_t kHead = 1;  // the head's bit in a set of clusters
static_assert(sizeof(TokenAnswer) + sizeof(uint32_t) <= sizeof(RankedTokens));

class ProgramLanes : public DeviceLanes {
 public:
  ProgramLanes(std::shared_ptr<const Program> program, const LaneLayout& layout,
               std::unique_ptr<Queue> queue, DeviceMemory memory, DeviceMemory frames,
               DeviceMemory queries, uint32_t count)
      : program_(std::move(program)),
        layout_(layout),
        memory_(std::move(memory)),
        frames_(std::move(frames)),
        queries_(std::move(queries)),
        queue_(std::move(queue)),
        count_(count) {
    lanes_.reserve(count);
  }

  Status Run(NodeRange range, std::span<const StreamFrame> frames) override {
    if (frames.empty()) return status_;
    return Attempt([&]() -> Status {
      KINGLET_RETURN_IF_ERROR(UploadLanes(frames));
      return RunList(program_->List(range));
    });
  }

  uint32_t max_ranked_tokens() const override {
    return program_->queries().can_rank() ? program_->queries().max_tokens() : 0;
  }

  Result<std::vector<DeviceAnswer>> RankTokens(std::span<const StreamFrame> frames, uint32_t k,
                                               const DeviceQuery& query) override {
    std::vector<DeviceAnswer> answers(frames.size());
    if (frames.empty() || k == 0) return answers;
    const uint64_t bytes_each = RankedTokens::BytesFor(k);
    std::vector<std::byte> ranked(frames.size() * bytes_each);
    std::vector<uint64_t> clusters(frames.size());  // computed for each lane, a bit each
    const auto count = static_cast<uint32_t>(frames.size());
    const Status status = Attempt([&]() -> Status {
      const Queries& queries = program_->queries();
      auto* const tails = reinterpret_cast<uint64_t*>(TailsAt());
      const RankedTokensPlan plan = queries.Ranking(count, query.empty_cache_is_normalised);
      const auto rank = [&](RankedPart part) {
        return RunNode(MakeNode(cuda::RankTokens{plan, k, part, AnswersAt(), tails}));
      };
      KINGLET_RETURN_IF_ERROR(UploadLanes(frames));
      KINGLET_RETURN_IF_ERROR(RunList(query.computes_all ? queries.AllClusterNodes(count)
                                                         : queries.ClusterNodes(0, count)));
      KINGLET_RETURN_IF_ERROR(RunList(program_->List(queries.cache_nodes())));
      if (query.computes_all) {
        clusters.assign(frames.size(), plan.AllClusters());
        KINGLET_RETURN_IF_ERROR(rank(RankedPart::kAll));
      } else {
        KINGLET_RETURN_IF_ERROR(rank(RankedPart::kHead));
        KINGLET_RETURN_IF_ERROR(
            queue_->Download(clusters.data(), TailsAt(), clusters.size() * sizeof clusters[0]));
        KINGLET_ASSIGN_OR_RETURN(const bool any, RunTails(frames, clusters));
        if (any) {
          KINGLET_RETURN_IF_ERROR(UploadLanes(frames));
          KINGLET_RETURN_IF_ERROR(rank(RankedPart::kTails));
        }
      }
      return queue_->Download(ranked.data(), AnswersAt(), ranked.size());
    });
    if (!status.ok()) return status;
    for (size_t i = 0; i < answers.size(); ++i) {
      const auto& found = *reinterpret_cast<const RankedTokens*>(ranked.data() + i * bytes_each);
      if (found.not_finite != 0) answers[i].not_finite = found.not_finite - 1;
      answers[i].looked_into = found.looked_into;
      answers[i].clusters = clusters[i] | kHead;
      answers[i].tokens.reserve(found.count);
      for (uint32_t n = 0; n < found.count; ++n) {
        answers[i].tokens.push_back({found.tokens[n].id, found.tokens[n].log_probability});
      }
    }
    return answers;
  }

  Result<std::vector<DeviceAnswer>> LogProbabilities(std::span<const StreamFrame> frames,
                                                     std::span<const uint32_t> tokens,
                                                     const DeviceQuery& query) override {
    std::vector<DeviceAnswer> answers(frames.size());
    if (frames.empty()) return answers;
    std::vector<TokenAnswer> scored(frames.size());
    const auto count = static_cast<uint32_t>(frames.size());
    const Queries& queries = program_->queries();
    const RankedTokensPlan plan = queries.Ranking(count, query.empty_cache_is_normalised);
    // Each lane needs the head and the cluster of its token.
    std::vector<uint64_t> clusters(frames.size());
    for (size_t i = 0; i < frames.size(); ++i) {
      clusters[i] = query.computes_all ? plan.AllClusters()
                                       : kHead | uint64_t{1} << queries.ClusterOf(tokens[i]);
    }
    const Status status = Attempt([&]() -> Status {
      KINGLET_RETURN_IF_ERROR(RunTails(frames, clusters).status());
      KINGLET_RETURN_IF_ERROR(UploadLanes(frames));
      KINGLET_RETURN_IF_ERROR(RunList(queries.ClusterNodes(0, count)));
      KINGLET_RETURN_IF_ERROR(RunList(program_->List(queries.cache_nodes())));
      auto* const on_device = reinterpret_cast<TokenAnswer*>(AnswersAt());
      auto* const ids = reinterpret_cast<uint32_t*>(on_device + count);
      KINGLET_RETURN_IF_ERROR(queue_->Upload(reinterpret_cast<std::byte*>(ids), tokens.data(),
                                             tokens.size() * sizeof tokens[0]));
      const uint64_t also_finite = query.computes_all ? plan.AllClusters() : 0;
      KINGLET_RETURN_IF_ERROR(
          RunNode(MakeNode(TokenLogProbability{plan, ids, on_device, also_finite})));
      return queue_->Download(scored.data(), AnswersAt(), scored.size() * sizeof scored[0]);
    });
    if (!status.ok()) return status;
    for (size_t i = 0; i < answers.size(); ++i) {
      if (scored[i].not_finite != 0) answers[i].not_finite = scored[i].not_finite - 1;
      answers[i].looked_into = 1;
      answers[i].clusters = clusters[i];
      answers[i].tokens.push_back({tokens[i], scored[i].log_probability});
    }
    return answers;
  }

  Status Fetch(std::span<const StreamFrame> frames, std::span<const BufferId> buffers) override {
    return Attempt([&]() -> Status {
      for (const StreamFrame& frame : frames) {
        for (const BufferId id : buffers) {
          const Slot& slot = layout_.slots[static_cast<size_t>(id)];
          const std::byte* const from =
              LaneAt(frame.lane) + (slot.state ? layout_.state : 0) + slot.offset;
          KINGLET_RETURN_IF_ERROR(queue_->Download(slot.At<std::byte>(frame), from,
                                                   layout_.buffer_bytes[static_cast<size_t>(id)]));
        }
      }
      return Status();
    });
  }

  Status ReadState(uint32_t lane, uint64_t offset, std::span<std::byte> to) override {
    return Attempt([&] { return queue_->Download(to.data(), StateAt(lane) + offset, to.size()); });
  }
  Status WriteState(uint32_t lane, uint64_t offset, std::span<const std::byte> from) override {
    return Attempt(
        [&] { return queue_->Upload(StateAt(lane) + offset, from.data(), from.size()); });
  }
  Status CopyState(uint32_t from, uint32_t to) override {
    return Attempt([&] { return queue_->Copy(StateAt(to), StateAt(from), layout_.state_bytes); });
  }

  Status Wait() override {
    return Attempt([&] { return queue_->Wait(); });
  }
  DeviceWork work() const override {
    const QueueWork& work = queue_->work();
    return {work.launches, work.bytes_to_device, work.bytes_to_host};
  }

 private:
  // Runs work() unless an earlier call failed, and keeps its error for all later calls: a failure
  // may have left the lanes' memory half written, even if only the host ran out of memory.
  template <class Work>
  Status Attempt(const Work& work) {
    if (!status_.ok()) return status_;
    try {
      status_ = work();
    } catch (const std::bad_alloc&) {
      status_ = Status(KINGLET_OUT_OF_MEMORY, "cuda: out of memory of the host");
    }
    return status_;
  }
  // The following nodes run on these lanes.
  Status UploadLanes(std::span<const StreamFrame> frames) {
    lanes_.clear();
    spellings_.clear();
    std::byte* const spellings = frames_.data() + count_ * sizeof(Lane);
    for (const StreamFrame& frame : frames) {
      std::byte* const base = LaneAt(frame.lane);
      const std::string_view letters = frame.spelling.substr(0, layout_.longest_spelling);
      const std::byte* const spelling = spellings + spellings_.size();
      lanes_.push_back({base, base + layout_.state, base + layout_.temporary, frame.position,
                        frame.source_length, frame.token, frame.word(),
                        static_cast<uint32_t>(letters.size()),
                        reinterpret_cast<const uint8_t*>(spelling)});
      spellings_.append(letters);
    }
    if (!spellings_.empty()) {
      KINGLET_RETURN_IF_ERROR(queue_->Upload(spellings, spellings_.data(), spellings_.size()));
    }
    return queue_->Upload(frames_.data(), lanes_.data(), lanes_.size() * sizeof(Lane));
  }
  Status RunList(const NodeList& list) {
    return queue_->Run(list, reinterpret_cast<const Lane*>(frames_.data()),
                       static_cast<uint32_t>(lanes_.size()));
  }
  // Computes every tail for the lanes whose set of clusters contains it. Returns whether any tail
  // was computed. The lanes that were uploaded before are overwritten.
  Result<bool> RunTails(std::span<const StreamFrame> frames, std::span<const uint64_t> clusters) {
    const Queries& queries = program_->queries();
    bool any = false;
    for (size_t index = 1; index < queries.clusters(); ++index) {
      std::vector<StreamFrame> part;
      for (size_t i = 0; i < frames.size(); ++i) {
        if ((clusters[i] >> index & 1) != 0) part.push_back(frames[i]);
      }
      if (part.empty()) continue;
      any = true;
      KINGLET_RETURN_IF_ERROR(UploadLanes(part));
      NodeList list = queries.ClusterNodes(index, static_cast<uint32_t>(part.size()));
      list.may_repeat = part.size() == frames.size();
      KINGLET_RETURN_IF_ERROR(RunList(list));
    }
    return any;
  }
  std::byte* TailsAt() const { return queries_.data() + kNodeBytes; }
  std::byte* AnswersAt() const { return TailsAt() + count_ * sizeof(uint64_t); }
  // Uploads and runs a node that is not part of the program.
  Status RunNode(const Node& node) {
    std::byte* const to = queries_.data();
    KINGLET_RETURN_IF_ERROR(queue_->Upload(to, &node, sizeof node));
    return RunList({&node, 1, reinterpret_cast<const Node*>(to)});
  }
  std::byte* LaneAt(uint32_t lane) const { return memory_.data() + lane * layout_.bytes; }
  std::byte* StateAt(uint32_t lane) const { return LaneAt(lane) + layout_.state; }

  std::shared_ptr<const Program> program_;
  const LaneLayout& layout_;  // BoundPlan's
  DeviceMemory memory_;
  DeviceMemory frames_;   // the Lane structs of the lanes that run nodes, then their spellings
  DeviceMemory queries_;  // the node that answers a query, and for each lane its tails and answer
  std::unique_ptr<Queue> queue_;
  uint64_t count_;           // of the session's lanes
  std::vector<Lane> lanes_;  // host copies of frames_
  std::string spellings_;
  Status status_;
};

}  // namespace

LaneLayout::LaneLayout(const Program& program, const Plan& plan, const BufferLayout& buffers)
    : state(RoundedUp(buffers.scratch_bytes)),
      temporary(state + RoundedUp(buffers.state_bytes)),
      bytes(temporary + RoundedUp(program.temporary_bytes())),
      state_bytes(buffers.state_bytes),
      slots(buffers.slots) {
  for (const kinglet::Node& node : plan.nodes) {
    const auto* const embed = std::get_if<EmbedRow>(&node.op);
    for (size_t i = 0; embed != nullptr && i < embed->bins.size(); ++i) {
      const std::optional<SpellingRows>& spelling = embed->bins[i].spelling;
      if (spelling) longest_spelling = std::max(longest_spelling, spelling->longest);
    }
  }
  for (const BufferSpec& buffer : plan.buffers) {
    buffer_bytes.push_back(BytesOf(buffer, buffer.count, sizeof(float)));
  }
}

Result<std::unique_ptr<DeviceLanes>> BoundPlan::CreateLanes(uint32_t count) const {
  const std::shared_ptr<Device>& device = program_->device();
  if (count > SIZE_MAX / BytesPerLane()) {
    return Status::Refusal(
        KINGLET_OUT_OF_MEMORY, "cuda", "lanes", "a size that can be addressed",
        std::to_string(count) + " of " + std::to_string(BytesPerLane()) + " bytes");
  }
  KINGLET_ASSIGN_OR_RETURN(DeviceMemory memory,
                           DeviceMemory::Allocate(device, count * layout_.bytes));
  KINGLET_ASSIGN_OR_RETURN(
      DeviceMemory frames,
      DeviceMemory::Allocate(device, count * (sizeof(Lane) + layout_.longest_spelling)));
  KINGLET_ASSIGN_OR_RETURN(
      DeviceMemory queries,
      DeviceMemory::Allocate(device,
                             kNodeBytes + count * (sizeof(uint64_t) + sizeof(RankedTokens))));
  KINGLET_ASSIGN_OR_RETURN(std::unique_ptr<Queue> queue, device->CreateQueue());
  KINGLET_RETURN_IF_ERROR(queue->Zero(memory.data(), count * layout_.bytes));
  return std::unique_ptr<DeviceLanes>(
      std::make_unique<ProgramLanes>(program_, layout_, std::move(queue), std::move(memory),
                                     std::move(frames), std::move(queries), count));
}

DeviceBinding BindTo(const std::shared_ptr<Device>& device, const Plan& plan,
                     const BufferLayout& layout, const ReleaseBytes& release) {
  KINGLET_ASSIGN_OR_RETURN(std::shared_ptr<const Program> program,
                           Program::Bind(plan, layout, device, release));
  return std::shared_ptr<const DeviceProgram>(
      std::make_shared<BoundPlan>(std::move(program), plan, layout));
}

}  // namespace kinglet::cuda
