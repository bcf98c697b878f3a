#include "tests/support/long_life.h"

#include <algorithm>
#include <array>
#include <fstream>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "converters/splitmix.h"
#include "format/system.h"
#include "runtime/session.h"

namespace kinglet {
namespace {

constexpr uint32_t kLanes = 5;
constexpr size_t kKept = 4;        // saved states
constexpr size_t kLongest = 4096;  // tokens of a lane that has resets
constexpr uint32_t kEndless = 0;   // the lane without resets

uint64_t ResidentMemory() {
  std::ifstream file("/proc/self/statm");
  uint64_t pages = 0, resident = 0;
  file >> pages >> resident;
  return resident * system::PageBytes();
}

using Text = std::vector<uint32_t>;

class Life {
 public:
  Life(std::shared_ptr<const Model> model, const LongLife& life, std::unique_ptr<Session> session)
      : model_(std::move(model)), life_(life), session_(std::move(session)), random_(life.seed) {
    for (Text& text : texts_) text.reserve(kLongest);
  }

  Status Run(const std::function<void(const LongLifeReport&)>& progress) {
    const uint64_t between = std::max<uint64_t>(1, life_.tokens / life_.checkpoints);
    for (uint64_t next = between; report_.tokens < life_.tokens;) {
      KINGLET_RETURN_IF_ERROR(Act());
      if (report_.tokens < next || !report_.difference.empty()) continue;
      next += between;
      KINGLET_RETURN_IF_ERROR(Check());
      if (progress) progress(report_);
    }
    return CompareEndless();
  }

  LongLifeReport Report() && { return std::move(report_); }

 private:
  uint32_t EndlessToken(uint64_t position) const {
    return static_cast<uint32_t>(SplitMix64(position).Below(model_->vocabulary_size()));
  }
  uint32_t OtherLane() { return 1 + static_cast<uint32_t>(random_.Below(kLanes - 1)); }

  Status Act() {
    switch (random_.Below(400)) {
      case 0: {
        const uint32_t lane = OtherLane();
        ++report_.resets;
        texts_[lane].clear();
        return session_->Reset(lane);
      }
      case 1: {
        const uint32_t from = OtherLane(), to = OtherLane();
        ++report_.forks;
        texts_[to] = texts_[from];
        return session_->Fork(from, to);
      }
      case 2: {
        const uint32_t lane = OtherLane();
        const size_t place = random_.Below(kKept);
        ++report_.saves;
        KINGLET_ASSIGN_OR_RETURN(State state, session_->Save(lane));
        kept_[place] = {std::move(state), texts_[lane]};
        return Status();
      }
      case 3: {
        const auto& kept = kept_[random_.Below(kKept)];
        if (!kept) return Status();
        const uint32_t lane = OtherLane();
        ++report_.restores;
        texts_[lane] = kept->second;
        return session_->Restore(kept->first, lane);
      }
      case 4:
        // A cancelled call does not change its lane.
        session_->Cancel();
        ++report_.cancelled;
        if (session_->StepToken(0, OtherLane()).code() != KINGLET_CANCELLED) {
          report_.difference = "a cancelled call that was not";
        }
        return Status();
      default:
        return Step();
    }
  }

  Status Step() {
    const auto lane = static_cast<uint32_t>(random_.Below(kLanes));
    uint32_t token = EndlessToken(session_->position(lane));
    if (lane != kEndless) {
      if (texts_[lane].size() == kLongest) {
        texts_[lane].clear();
        KINGLET_RETURN_IF_ERROR(session_->Reset(lane));
      }
      token = static_cast<uint32_t>(random_.Below(model_->vocabulary_size()));
      texts_[lane].push_back(token);
    }
    ++report_.tokens;
    KINGLET_RETURN_IF_ERROR(session_->StepToken(token, lane));
    if (random_.Below(64) == 0) return session_->TopK(3, lane).status();
    return Status();
  }

  // A lane, compared with a fresh session that gets the same tokens.
  Status Check() {
    const uint32_t lane = OtherLane();
    KINGLET_ASSIGN_OR_RETURN(const auto fresh, Session::Create(model_));
    for (const uint32_t token : texts_[lane]) KINGLET_RETURN_IF_ERROR(fresh->StepToken(token));
    KINGLET_RETURN_IF_ERROR(Compare(*fresh, lane));
    const uint64_t resident = ResidentMemory();
    if (report_.tokens * 10 >= life_.tokens) {
      if (report_.resident_early == 0) report_.resident_early = resident;
      report_.resident_most = std::max(report_.resident_most, resident);
    }
    return Status();
  }

  Status CompareEndless() {
    KINGLET_ASSIGN_OR_RETURN(const auto fresh, Session::Create(model_));
    report_.longest = session_->position(kEndless);
    for (uint64_t position = 0; position < report_.longest; ++position) {
      KINGLET_RETURN_IF_ERROR(fresh->StepToken(EndlessToken(position)));
    }
    return Compare(*fresh, kEndless);
  }

  Status Compare(Session& fresh, uint32_t lane) {
    ++report_.compared;
    KINGLET_ASSIGN_OR_RETURN(const State expected, fresh.Save());
    KINGLET_ASSIGN_OR_RETURN(const State found, session_->Save(lane));
    const std::string where =
        "lane " + std::to_string(lane) + " after " + std::to_string(report_.tokens) + " tokens: ";
    if (!(expected == found)) report_.difference = where + "another state";
    if (fresh.position() == 0) return Status();
    std::vector<double> wanted(model_->vocabulary_size()), got(wanted.size());
    KINGLET_RETURN_IF_ERROR(fresh.LogProbabilities(std::span<double>(wanted)));
    KINGLET_RETURN_IF_ERROR(session_->LogProbabilities(std::span<double>(got), lane));
    if (wanted != got) report_.difference = where + "other log-probabilities";
    return Status();
  }

  std::shared_ptr<const Model> model_;
  LongLife life_;
  std::unique_ptr<Session> session_;
  SplitMix64 random_;
  std::array<Text, kLanes> texts_;  // since the lane's stream began; empty for kEndless
  std::array<std::optional<std::pair<State, Text>>, kKept> kept_;
  LongLifeReport report_;
};

}  // namespace

Result<LongLifeReport> LiveLong(const std::shared_ptr<const Model>& model, const LongLife& life,
                                const std::function<void(const LongLifeReport&)>& progress) {
  KINGLET_ASSIGN_OR_RETURN(auto session, Session::Create(model, {.lanes = kLanes}));
  Life run(model, life, std::move(session));
  KINGLET_RETURN_IF_ERROR(run.Run(progress));
  return std::move(run).Report();
}

}  // namespace kinglet
