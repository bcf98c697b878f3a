#include "kernels/cuda/lanes.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <new>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "kernels/cuda/backend.h"

namespace kinglet::cuda {
namespace {

constexpr uint64_t RoundedUp(uint64_t bytes) {
  constexpr uint64_t kAlignment = 256;  // that of Device::Allocate
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

// The kinds of nodes that answer queries. Each has a place in the memory of queries, and is copied
// there only when it changes.
enum class Asking : uint32_t { kAll, kHead, kTails, kNeeded, kToken, kCount };
constexpr uint64_t kNodeBytes = RoundedUp(sizeof(Node));
constexpr uint64_t kNodesBytes = static_cast<uint64_t>(Asking::kCount) * kNodeBytes;
constexpr uint64_t kHead = 1;  // the head's bit in a set of clusters

class ProgramLanes : public DeviceLanes {
 public:
  // With `is_text` the lanes are tokens of a text (text.h).
  static Result<std::unique_ptr<ProgramLanes>> Create(std::shared_ptr<const Program> program,
                                                      const LaneLayout& layout,
                                                      std::shared_ptr<Queue> queue, uint32_t count,
                                                      bool is_text = false) {
    const std::shared_ptr<Device>& device = program->device();
    const uint64_t state_bytes = is_text ? RoundedUp(layout.state_bytes) : 0;
    const uint64_t bytes = count * layout.bytes + state_bytes;
    const uint64_t of_frames =
        LaneLayout::LanesOf(*program, count) + count * layout.longest_spelling;
    const uint64_t of_answers = count * (sizeof(uint64_t) + sizeof(RankedTokens));
    KINGLET_ASSIGN_OR_RETURN(DeviceMemory memory, DeviceMemory::Allocate(device, bytes));
    KINGLET_ASSIGN_OR_RETURN(DeviceMemory frames, DeviceMemory::Allocate(device, of_frames));
    KINGLET_ASSIGN_OR_RETURN(DeviceMemory queries, DeviceMemory::Allocate(device, kNodesBytes));
    KINGLET_ASSIGN_OR_RETURN(DeviceMemory answers,
                             DeviceMemory::AllocateMapped(device, of_answers));
    KINGLET_RETURN_IF_ERROR(queue->Zero(memory.data(), bytes));
    return std::make_unique<ProgramLanes>(std::move(program), layout, std::move(queue),
                                          std::move(memory), std::move(frames), std::move(queries),
                                          std::move(answers), count, is_text);
  }
  ProgramLanes(std::shared_ptr<const Program> program, const LaneLayout& layout,
               std::shared_ptr<Queue> queue, DeviceMemory memory, DeviceMemory frames,
               DeviceMemory queries, DeviceMemory answers, uint32_t count, bool is_text)
      : program_(std::move(program)),
        layout_(layout),
        memory_(std::move(memory)),
        frames_(std::move(frames)),
        queries_(std::move(queries)),
        answers_(std::move(answers)),
        queue_(std::move(queue)),
        count_(count),
        is_text_(is_text) {}

  Status Run(NodeRange range, std::span<const StreamFrame> frames) override {
    if (frames.empty()) return status_;
    return Attempt([&]() -> Status {
      SetLanes(frames, {});
      KINGLET_RETURN_IF_ERROR(UploadLanes());
      return RunList(program_->List(range, count_now_));
    });
  }

  uint32_t max_ranked_tokens() const override {
    return program_->queries().can_rank() ? program_->queries().max_tokens() : 0;
  }

  Result<DeviceAnswers> RankTokens(std::span<const StreamFrame> frames, uint32_t k,
                                   const DeviceQuery& query) override {
    clusters_.assign(frames.size(), 0);
    const uint64_t bytes = frames.size() * RankedTokens::BytesFor(k);
    if (k == 0) std::memset(AnswersAt(), 0, bytes);
    const DeviceAnswers answers = {AnswersAt(), k, clusters_};
    if (frames.empty() || k == 0) return answers;
    const Status status = Attempt([&]() -> Status {
      const Queries& queries = program_->queries();
      const auto count = static_cast<uint32_t>(frames.size());
      auto* const tails = reinterpret_cast<uint64_t*>(TailsAt());
      const NodeList at_once = queries.NodesAtOnce(false, count);
      const RankedTokensPlan plan =
          queries.Ranking(count, query.empty_cache_is_normalised, at_once.count > 0);
      const auto rank = [&](Asking asking, RankedPart part) {
        return Ask(asking, {plan.clusters, plan.cache.empty_is_normalised, k, 0},
                   cuda::RankTokens{plan, k, part, AnswersAt(), tails});
      };
      SetLanes(frames, {});
      KINGLET_RETURN_IF_ERROR(UploadLanes());
      if (at_once.count > 0) {
        KINGLET_RETURN_IF_ERROR(RunList(at_once));
      } else {
        KINGLET_RETURN_IF_ERROR(RunList(query.computes_all ? queries.AllClusterNodes(count)
                                                           : queries.ClusterNodes(0, count)));
        KINGLET_RETURN_IF_ERROR(RunList(program_->List(queries.cache_nodes())));
      }
      if (query.computes_all || at_once.count > 0) {
        clusters_.assign(count, plan.AllClusters());
        KINGLET_RETURN_IF_ERROR(query.computes_all ? rank(Asking::kAll, RankedPart::kAll)
                                                   : rank(Asking::kNeeded, RankedPart::kNeeded));
      } else {
        KINGLET_RETURN_IF_ERROR(rank(Asking::kHead, RankedPart::kHead));
        KINGLET_RETURN_IF_ERROR(WaitFor(clusters_.size() * sizeof clusters_[0]));
        std::memcpy(clusters_.data(), tails, clusters_.size() * sizeof clusters_[0]);
        AddTails();
        if (!parts_.empty()) {
          KINGLET_RETURN_IF_ERROR(UploadLanes());
          KINGLET_RETURN_IF_ERROR(RunTails());
          KINGLET_RETURN_IF_ERROR(rank(Asking::kTails, RankedPart::kTails));
        }
        for (uint64_t& clusters : clusters_) clusters |= kHead;
      }
      return WaitFor(bytes);
    });
    if (!status.ok()) return status;
    return answers;
  }

  Result<DeviceAnswers> LogProbabilities(std::span<const StreamFrame> frames,
                                         std::span<const uint32_t> tokens,
                                         const DeviceQuery& query) override {
    const Queries& queries = program_->queries();
    const auto count = static_cast<uint32_t>(frames.size());
    const NodeList at_once = queries.NodesAtOnce(!query.computes_all, count);
    const RankedTokensPlan plan =
        queries.Ranking(count, query.empty_cache_is_normalised, at_once.count > 0);
    // Each lane needs the head and the cluster of its token.
    clusters_.clear();
    for (const uint32_t token : tokens) {
      clusters_.push_back(query.computes_all ? plan.AllClusters()
                                             : kHead | uint64_t{1} << queries.ClusterOf(token));
    }
    const DeviceAnswers answers = {AnswersAt(), 1, clusters_};
    if (frames.empty()) return answers;
    const Status status = Attempt([&]() -> Status {
      SetLanes(frames, tokens);
      if (at_once.count > 0) {
        KINGLET_RETURN_IF_ERROR(UploadLanes());
        KINGLET_RETURN_IF_ERROR(RunList(at_once));
      } else {
        AddTails();
        KINGLET_RETURN_IF_ERROR(UploadLanes());
        KINGLET_RETURN_IF_ERROR(RunTails());
        KINGLET_RETURN_IF_ERROR(RunList(queries.ClusterNodes(0, count)));
        KINGLET_RETURN_IF_ERROR(RunList(program_->List(queries.cache_nodes())));
      }
      const uint64_t also_finite = query.computes_all ? plan.AllClusters() : 0;
      KINGLET_RETURN_IF_ERROR(Ask(Asking::kToken,
                                  {plan.clusters, plan.cache.empty_is_normalised, 1, also_finite},
                                  TokenLogProbability{plan, AnswersAt(), also_finite}));
      return WaitFor(frames.size() * RankedTokens::BytesFor(1));
    });
    if (!status.ok()) return status;
    return answers;
  }

  uint64_t text_tokens() override {
    const Program::Text* const text = program_->text();
    if (text == nullptr || !status_.ok()) return 1;
    if (!text_) {
      text_layout_.emplace(*text->program, text->plan, text->layout, true);
      const uint32_t lanes = program_->device()->TextTokens() + 1;
      Result<std::unique_ptr<ProgramLanes>> made =
          Create(text->program, *text_layout_, queue_, lanes, true);
      text_.emplace(made.ok() ? std::move(*made) : nullptr);  // null without memory for it
    }
    return *text_ == nullptr ? 1 : program_->device()->TextTokens();
  }
  Result<DeviceAnswers> ScoreText(std::span<const StreamFrame> frames,
                                  std::span<const uint32_t> next,
                                  const DeviceQuery& query) override {
    ProgramLanes& text = **text_;
    const Status status = Attempt([&]() -> Status {
      // Slot 0 is the token before; its scratch has what the first token reads.
      const StreamFrame &first = frames.front(), &last = frames.back();
      text_frames_.assign(1, first);
      text_frames_.insert(text_frames_.end(), frames.begin(), frames.end());
      for (size_t i = 0; i < text_frames_.size(); ++i) {
        text_frames_[i].lane = static_cast<uint32_t>(i);
      }
      text.first_row_ = first.position;
      const uint64_t rows = first.position + frames.size();  // up to the last token's
      last_ = {last.lane, last.position + 1, rows - (last.position + 1)};
      if (first.position > 0) {
        KINGLET_RETURN_IF_ERROR(
            MoveText(program_->text()->to_text, 0, {first.lane, first.position, 0}));
      }
      return text.RunText(text_frames_);
    });
    if (!status.ok()) return status;
    Result<DeviceAnswers> answers =
        text.LogProbabilities(std::span(text_frames_).subspan(1, next.size()), next, query);
    if (!answers.ok()) status_ = answers.status();
    return answers;
  }
  Status KeepText() override {
    return Attempt([&] {
      return MoveText(program_->text()->to_stream, static_cast<uint32_t>(text_frames_.size()) - 1,
                      last_);
    });
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
    return {work.launches, work.bytes_to_device, work.bytes_to_host + answered_bytes_};
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
  // Runs the context on tokens that follow the first frame's.
  Status RunText(std::span<const StreamFrame> frames) {
    SetLanes(frames, {});
    KINGLET_RETURN_IF_ERROR(UploadLanes());
    const auto tokens = static_cast<uint32_t>(frames.size() - 1);
    for (const NodeList& list : {program_->TextContext(), program_->TextAppend()}) {
      KINGLET_RETURN_IF_ERROR(queue_->Run(list, LanesOnDevice() + 1, tokens));
    }
    return Status();
  }
  struct MovedStream {
    uint32_t lane;
    uint64_t position;  // tokens so far
    uint64_t shift;     // Lane::shift
  };
  // Runs MoveState between the state of a stream and that of the text, whose token `slot` has the
  // vectors.
  Status MoveText(NodeList list, uint32_t slot, const MovedStream& of) {
    ProgramLanes& text = **text_;
    SetLane(0, {text.LaneAt(slot), StateAt(of.lane), text.StateAt(slot), of.position, 0, 0, 0, 0, 0,
                nullptr, of.shift});
    count_now_ = 1;
    spellings_.clear();
    KINGLET_RETURN_IF_ERROR(UploadLanes());
    return queue_->Run(list, LanesOnDevice(), 1);
  }
  // Describes the lanes of the frames, on which the following nodes run. `tokens`: what a query
  // asks for, or empty.
  void SetLanes(std::span<const StreamFrame> frames, std::span<const uint32_t> tokens) {
    spellings_.clear();
    parts_.clear();
    const std::byte* const spellings = frames_.data() + LaneLayout::LanesOf(*program_, count_);
    for (size_t i = 0; i < frames.size(); ++i) {
      const StreamFrame& frame = frames[i];
      std::byte* const base = LaneAt(frame.lane);
      const std::string_view letters = frame.spelling.substr(0, layout_.longest_spelling);
      const std::byte* const spelling = spellings + spellings_.size();
      const uint64_t shift = is_text_ ? first_row_ + frame.lane - 1 - frame.position : 0;
      SetLane(
          i, {base, StateAt(frame.lane), base + layout_.temporary, frame.position,
              frame.source_length, frame.token, frame.word(), static_cast<uint32_t>(letters.size()),
              tokens.empty() ? 0 : tokens[i], reinterpret_cast<const uint8_t*>(spelling), shift});
      spellings_.append(letters);
    }
    count_now_ = static_cast<uint32_t>(frames.size());
  }
  // Adds, for every tail, the lanes whose set of clusters contains it.
  void AddTails() {
    const size_t clusters = program_->queries().clusters();
    uint32_t end = count_now_;
    for (size_t index = 1; index < clusters; ++index) {
      const uint32_t begin = end;
      for (uint32_t i = 0; i < count_now_; ++i) {
        if ((clusters_[i] >> index & 1) != 0) SetLane(end++, Lane(lanes_[i]));
      }
      if (end > begin) parts_.push_back({index, begin, end - begin});
    }
  }
  void SetLane(size_t i, const Lane& lane) {
    static_assert(std::has_unique_object_representations_v<Lane>);
    if (i >= lanes_.size()) lanes_.resize(i + 1);
    if (std::memcmp(&lanes_[i], &lane, sizeof lane) == 0) return;
    lanes_[i] = lane;
    if (changed_.begin == changed_.end) changed_ = {i, i};
    changed_ = {std::min(changed_.begin, i), std::max(changed_.end, i + 1)};
  }
  // Copies to the device what has changed since.
  Status UploadLanes() {
    if (!spellings_.empty()) {
      std::byte* const to = frames_.data() + LaneLayout::LanesOf(*program_, count_);
      KINGLET_RETURN_IF_ERROR(queue_->Upload(to, spellings_.data(), spellings_.size()));
    }
    const auto [begin, end] = std::exchange(changed_, {});
    if (begin == end) return Status();
    return queue_->Upload(frames_.data() + begin * sizeof(Lane), &lanes_[begin],
                          (end - begin) * sizeof(Lane));
  }
  const Lane* LanesOnDevice() const { return reinterpret_cast<const Lane*>(frames_.data()); }
  Status RunList(const NodeList& list) { return queue_->Run(list, LanesOnDevice(), count_now_); }
  // Computes every tail for its lanes.
  Status RunTails() {
    for (const Part& part : parts_) {
      NodeList list = program_->queries().ClusterNodes(part.cluster, part.count);
      list.may_repeat = part.count == count_now_;
      KINGLET_RETURN_IF_ERROR(queue_->Run(list, LanesOnDevice() + part.begin, part.count));
    }
    return Status();
  }
  // Waits for answers of this size.
  Status WaitFor(uint64_t bytes) {
    answered_bytes_ += bytes;
    return queue_->Wait();
  }
  std::byte* TailsAt() const { return answers_.data(); }
  std::byte* AnswersAt() const { return TailsAt() + count_ * sizeof(uint64_t); }
  // The arguments in which the nodes of one kind differ.
  struct Question {
    const RankedCluster* clusters = nullptr;
    bool empty_is_normalised = false;
    uint32_t k = 0;
    uint64_t also_finite = 0;
    bool operator==(const Question&) const = default;
  };
  struct Asked {
    Question question;
    Node node;
  };
  // Runs a node that is not part of the program.
  template <class T>
  Status Ask(Asking asking, const Question& question, const T& arguments) {
    const auto place = static_cast<size_t>(asking);
    std::byte* const to = queries_.data() + place * kNodeBytes;
    Asked& asked = asked_[place];
    if (asked.question != question) {
      asked = {question, MakeNode(arguments)};
      KINGLET_RETURN_IF_ERROR(queue_->Upload(to, &asked.node, sizeof asked.node));
    }
    return RunList({&asked.node, 1, reinterpret_cast<const Node*>(to)});
  }
  std::byte* LaneAt(uint32_t lane) const { return memory_.data() + lane * layout_.bytes; }
  std::byte* StateAt(uint32_t lane) const {
    return is_text_ ? memory_.data() + count_ * layout_.bytes : LaneAt(lane) + layout_.state;
  }

  std::shared_ptr<const Program> program_;
  const LaneLayout& layout_;  // BoundPlan's
  DeviceMemory memory_;
  DeviceMemory frames_;   // the Lane structs of the lanes that run nodes (LanesOf), then spellings
  DeviceMemory queries_;  // the nodes that answer queries
  DeviceMemory answers_;  // mapped: every lane's tails, then the lanes' answers
  std::shared_ptr<Queue> queue_;
  uint64_t count_;  // of the session's lanes, or a text's tokens
  bool is_text_;

  // --- memory of calls, kept for the next

  struct Part {
    size_t cluster;
    uint32_t begin, count;  // of its lanes in lanes_
  };
  std::vector<Lane> lanes_;  // what frames_ contains: the lanes of a call, then those of each part
  struct Changed {
    size_t begin = 0, end = 0;
  };
  Changed changed_;         // elements of lanes_ that frames_ does not contain yet
  uint32_t count_now_ = 0;  // lanes of the call
  std::vector<Part> parts_;
  std::string spellings_;
  std::array<Asked, static_cast<size_t>(Asking::kCount)> asked_{};  // what queries_ contains
  std::vector<uint64_t> clusters_;
  uint64_t answered_bytes_ = 0;  // since the lanes were made
  Status status_;

  // --- given tokens

  std::optional<LaneLayout> text_layout_;
  std::optional<std::unique_ptr<ProgramLanes>> text_;
  std::vector<StreamFrame> text_frames_;
  MovedStream last_{};      // the stream of the text's last token
  uint64_t first_row_ = 0;  // of a text: the row of the token in slot 1
};

}  // namespace

LaneLayout::LaneLayout(const Program& program, const Plan& plan, const BufferLayout& buffers,
                       bool shares_state)
    : state(RoundedUp(buffers.scratch_bytes)),
      temporary(state + (shares_state ? 0 : RoundedUp(buffers.state_bytes))),
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

uint64_t BoundPlan::FreeBytes() const {
  const uint64_t free_bytes = program_->device()->FreeBytes();
  return free_bytes - std::min(free_bytes, kNodesBytes);
}

Result<std::unique_ptr<DeviceLanes>> BoundPlan::CreateLanes(uint32_t count) const {
  const std::shared_ptr<Device>& device = program_->device();
  if (count > SIZE_MAX / BytesPerLane()) {
    return Status::Refusal(
        KINGLET_OUT_OF_MEMORY, "cuda", "lanes", "a size that can be addressed",
        std::to_string(count) + " of " + std::to_string(BytesPerLane()) + " bytes");
  }
  KINGLET_ASSIGN_OR_RETURN(std::unique_ptr<Queue> queue, device->CreateQueue());
  KINGLET_ASSIGN_OR_RETURN(
      std::unique_ptr<ProgramLanes> lanes,
      ProgramLanes::Create(program_, layout_, std::shared_ptr<Queue>(std::move(queue)), count));
  return std::unique_ptr<DeviceLanes>(std::move(lanes));
}

DeviceBinding BindTo(const std::shared_ptr<Device>& device, const Plan& plan,
                     const BufferLayout& layout, const ReleaseBytes& release) {
  KINGLET_ASSIGN_OR_RETURN(std::shared_ptr<const Program> program,
                           Program::Bind(plan, layout, device, release));
  return std::shared_ptr<const DeviceProgram>(
      std::make_shared<BoundPlan>(std::move(program), plan, layout));
}

}  // namespace kinglet::cuda
