// Times the query for the best words with a prefix, alternating with the full distribution and with
// the work of a program that lacks the query: all log-probabilities, then a loop over all words'
// texts. Each query has a lane of its own; all lanes have read the same text.
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <optional>
#include <string>
#include <vector>

#include "converters/splitmix.h"
#include "converters/texts/token_file.h"
#include "runtime/session.h"
#include "tools/arguments.h"

namespace kinglet {
namespace {

constexpr uint32_t kBest = 5;
enum Way : uint32_t { kFull, kProgram1, kProgram2, kPrefix1, kPrefix2, kTotal1, kNext1, kWays };
constexpr std::array<const char*, kWays> kNames = {"full distribution",
                                                   "program, one letter",
                                                   "program, two letters",
                                                   "best with one letter",
                                                   "best with two letters",
                                                   "total of one letter",
                                                   "next characters of one letter"};

class Timer {
 public:
  Timer(const std::shared_ptr<const Model>& model, std::unique_ptr<Session> session)
      : session_(std::move(session)), all_(model->vocabulary_size()) {
    for (uint32_t id = 0; id < model->vocabulary_size(); ++id) {
      texts_.push_back(model->vocabulary()->Word(id));
    }
  }

  Status Run(const std::vector<uint32_t>& ids) {
    for (size_t t = 0; t + 1 < ids.size(); ++t) {
      const std::array<uint32_t, kWays> lanes = {0, 1, 2, 3, 4, 5, 6};
      const std::vector<uint32_t> same(kWays, ids[t]);
      KINGLET_RETURN_IF_ERROR(session_->StepLanes(lanes, same));
      // In random order: the previous query decides what is in the processor's caches.
      std::array<uint32_t, kWays> order = lanes;
      for (uint32_t i = kWays - 1; i > 0; --i) std::swap(order[i], order[random_.Below(i + 1)]);
      for (const uint32_t next : order) {
        const auto way = static_cast<Way>(next);
        const auto begin = std::chrono::steady_clock::now();
        KINGLET_RETURN_IF_ERROR(Ask(way, texts_[ids[t + 1]]));
        const std::chrono::duration<double, std::micro> took =
            std::chrono::steady_clock::now() - begin;
        times_[way].push_back(took.count());
      }
      if (found_[kProgram1] != found_[kPrefix1] || found_[kProgram2] != found_[kPrefix2]) {
        return Status(KINGLET_INTERNAL, "the query and the program differ");
      }
    }
    return Status();
  }
  void Print() {
    const double full = Median(times_[kFull]);
    for (uint32_t way = 0; way < kWays; ++way) {
      const double median = Median(times_[way]);
      std::printf("%-30s p50 %7.1f us, %5.3f of the full distribution\n", kNames[way], median,
                  median / full);
    }
    std::printf("query to program: %.3f with one letter, %.3f with two\n",
                Median(times_[kPrefix1]) / Median(times_[kProgram1]),
                Median(times_[kPrefix2]) / Median(times_[kProgram2]));
  }

 private:
  static double Median(std::vector<double> values) {
    const auto middle = values.begin() + static_cast<ptrdiff_t>(values.size() / 2);
    std::nth_element(values.begin(), middle, values.end());
    return *middle;
  }

  Status Ask(Way way, const std::string& word) {
    const std::string prefix = word.substr(0, way == kProgram2 || way == kPrefix2 ? 2 : 1);
    if (way == kFull || way == kProgram1 || way == kProgram2) {
      KINGLET_RETURN_IF_ERROR(session_->LogProbabilities(std::span<float>(all_), way));
      if (way != kFull) FindBest(prefix, found_[way]);
    } else if (way == kPrefix1 || way == kPrefix2) {
      KINGLET_ASSIGN_OR_RETURN(const WordSet set, session_->WithPrefix(prefix));
      KINGLET_ASSIGN_OR_RETURN(const auto best, session_->TopKOf(set, kBest, way));
      found_[way].clear();
      for (const Candidate& candidate : best) found_[way].push_back(candidate.id);
    } else if (way == kTotal1) {
      KINGLET_ASSIGN_OR_RETURN(const WordSet set, session_->WithPrefix(prefix));
      KINGLET_RETURN_IF_ERROR(session_->ProbabilityOf(set, way).status());
    } else {
      KINGLET_RETURN_IF_ERROR(session_->NextCharacters(prefix, way).status());
    }
    return Status();
  }

  // The program's loop.
  void FindBest(const std::string& prefix, std::vector<uint32_t>& best) const {
    best.clear();
    for (uint32_t id = 0; id < texts_.size(); ++id) {
      if (texts_[id].compare(0, prefix.size(), prefix) != 0) continue;
      if (best.size() == kBest && !(all_[id] > all_[best.back()])) continue;
      auto at = best.end();
      while (at != best.begin() && all_[id] > all_[*(at - 1)]) --at;
      best.insert(at, id);
      if (best.size() > kBest) best.pop_back();
    }
  }

  const std::unique_ptr<Session> session_;
  std::vector<std::string> texts_;
  std::vector<float> all_;
  SplitMix64 random_{1};
  std::array<std::vector<uint32_t>, kWays> found_;
  std::array<std::vector<double>, kWays> times_;
};

Status Measure(const std::string& path, const std::string& ids_path) {
  KINGLET_ASSIGN_OR_RETURN(const auto model, Model::Open(path, {}));
  KINGLET_ASSIGN_OR_RETURN(const std::vector<uint32_t> ids, ReadIds(ids_path));
  KINGLET_ASSIGN_OR_RETURN(auto session, Session::Create(model, {.lanes = kWays}));
  Timer timer(model, std::move(session));
  KINGLET_RETURN_IF_ERROR(timer.Run(ids));
  timer.Print();
  return Status();
}

int Main(int argc, char** argv) {
  std::string model, ids;
  ArgumentParser program("Time the query for words with a prefix", "prefix_times");
  program.Add("M.kgl", model, "model file").Required().Placeholder("");
  program.Add("IDS", ids, "file of token ids").Required().Placeholder("");
  if (const std::optional<int> exit = program.ParseAndPrint(argc, argv)) return *exit;
  const Status status = Measure(model, ids);
  if (!status.ok()) std::fprintf(stderr, "prefix_times: %s\n", status.message().c_str());
  return status.ok() ? 0 : 1;
}

}  // namespace
}  // namespace kinglet

int main(int argc, char** argv) { return kinglet::Main(argc, argv); }
