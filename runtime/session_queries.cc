// The queries of runtime/session.h. A query of one lane is a query of several lanes with one.
#include <algorithm>
#include <array>
#include <new>
#include <string>
#include <utility>

#include "kernels/device_program.h"
#include "runtime/queries/cache_contribution_query.h"
#include "runtime/queries/intervals.h"
#include "runtime/queries/rank.h"
#include "runtime/queries/sampling.h"
#include "runtime/queries/set_queries.h"
#include "runtime/queries/token_probabilities.h"
#include "runtime/queries/top_k.h"
#include "runtime/queries/top_p.h"
#include "runtime/session_contents.h"

namespace kinglet {

using session::CheckId;
using session::CheckShare;
using session::CheckSize;
using session::CheckTemperature;
using session::NoTokenYet;
using session::OutOfMemory;

Status Session::Contents::CheckQueriedLanes(std::span<const uint32_t> numbers) {
  KINGLET_RETURN_IF_ERROR(CheckLanes(numbers));
  for (const uint32_t lane : numbers) {
    if (lanes[lane].stream.position() == 0) return NoTokenYet();
  }
  return Status();
}

Status Session::CheckHasToken(uint32_t lane) const {
  return contents_->CheckQueriedLanes({&lane, 1});
}

// Calls query(streams, index of the first, their part of the answers), which writes its part
// completely or not at all. `out` is also written completely or not at all.
template <class Answer, class Query>
Status Session::Contents::AskEach(std::span<const uint32_t> numbers, std::span<Answer> out,
                                  const Query& query) {
  const auto ask = [&](std::span<Answer> answers) {
    return Ask(numbers, [&](auto streams, size_t first) {
      return query(streams, first, answers.subspan(first, streams.size()));
    });
  };
  if (numbers.size() <= kLanesTogether) return ask(out);
  try {
    std::vector<Answer> answers(numbers.size());
    KINGLET_RETURN_IF_ERROR(ask(answers));
    std::copy(answers.begin(), answers.end(), out.begin());
    return Status();
  } catch (const std::bad_alloc&) {
    return OutOfMemory();
  }
}

// Calls device_call(device, frames, query) and notes what the device computed for each lane.
template <class DeviceCall>
Result<DeviceAnswers> Session::Contents::AskDevice(std::span<const uint32_t> numbers,
                                                   Computing computing,
                                                   const DeviceCall& device_call) {
  KINGLET_RETURN_IF_ERROR(CheckQueriedLanes(numbers));
  const ComputingCall call(execution);
  frames.clear();
  for (const uint32_t number : numbers) {
    Lane& lane = lanes[number];
    frames.push_back(lane.stream.LastFrame());
    // No lane may keep the work of an older query, even if this one fails.
    lane.answered = {.is_new = true};
  }
  try {
    KINGLET_RETURN_IF_ERROR(TakeCancel(execution, "query"));
    const DeviceQuery query = {empty_cache_is_normalised, computing == Computing::kAll};
    KINGLET_ASSIGN_OR_RETURN(
        const DeviceAnswers answers,
        device_call(*execution.device, std::span<const StreamFrame>(frames), query));
    for (size_t i = 0; i < numbers.size(); ++i) {
      Lane& lane = lanes[numbers[i]];
      if (const uint32_t cluster = answers[i].not_finite; cluster != 0) {
        return std::get<Distribution<float>>(*lane.results).NotFinite(frames[i], cluster - 1);
      }
      lane.answered = {true, answers[i].looked_into, answers.clusters[i]};
    }
    return answers;
  } catch (const std::bad_alloc&) {
    return OutOfMemory();
  }
}

namespace {

// Computes every cluster and the cache's weights if the caller wants all of them computed
// (Computing::kAll). For queries that read few logits.
template <class T>
Status ComputeFirst(std::span<QueriedStream<T>> streams, Computing computing) {
  if (computing != Computing::kAll) return Status();
  KINGLET_RETURN_IF_ERROR(Distribution<T>::OpenClusters(streams, kLogitsNowhere));
  return Distribution<T>::ComputeCache(streams);
}

}  // namespace

bool Session::ranks_on_device(uint32_t k) const {
  const DeviceLanes* const device = contents_->execution.device.get();
  const NodeObservers& observers = contents_->execution.observers;
  if (device == nullptr || observers.before || observers.after) return false;
  const uint32_t most = device->max_ranked_tokens();  // 0 if the device ranks nothing
  return most > 0 && k <= most;
}

// --- the log-probability of a token

Status Session::LogProbabilityLanes(std::span<const uint32_t> lanes, std::span<const uint32_t> ids,
                                    std::span<double> out, Computing computing) {
  KINGLET_RETURN_IF_ERROR(CheckSize("ids to ask for", ids.size(), lanes.size()));
  KINGLET_RETURN_IF_ERROR(CheckSize("output of log-probabilities", out.size(), lanes.size()));
  for (const uint32_t id : ids) KINGLET_RETURN_IF_ERROR(CheckId(id, model().vocabulary_size()));
  if (!ranks_on_device(1)) {
    return contents_->AskEach(
        lanes, out, [&](auto streams, size_t first, std::span<double> answers) -> Status {
          KINGLET_RETURN_IF_ERROR(ComputeFirst(streams, computing));
          return LogProbabilityOfToken(streams, ids.subspan(first, streams.size()), answers);
        });
  }
  KINGLET_ASSIGN_OR_RETURN(
      const DeviceAnswers answers,
      contents_->AskDevice(
          lanes, computing,
          [&](DeviceLanes& device, std::span<const StreamFrame> frames, const DeviceQuery& query) {
            return device.LogProbabilities(frames, ids, query);
          }));
  for (size_t i = 0; i < answers.size(); ++i) {
    out[i] = static_cast<double>(answers[i].tokens[0].log_probability);
  }
  return Status();
}

Result<double> Session::LogProbability(uint32_t id, uint32_t lane) {
  double out = 0;
  KINGLET_RETURN_IF_ERROR(LogProbabilityLanes({&lane, 1}, {&id, 1}, {&out, 1}));
  return out;
}

// --- the most probable tokens

Status Session::WriteTopK(std::span<const uint32_t> lanes, uint32_t k, Computing computing,
                          std::span<std::vector<Candidate>> out) {
  if (!ranks_on_device(k)) {
    return contents_->Ask(lanes, [&](auto streams, size_t first) -> Status {
      KINGLET_RETURN_IF_ERROR(ComputeFirst(streams, computing));
      return FindTopK(streams, k, out.subspan(first, streams.size()));
    });
  }
  KINGLET_ASSIGN_OR_RETURN(const DeviceAnswers answers,
                           contents_->RankOnDevice(lanes, k, computing));
  for (size_t i = 0; i < answers.size(); ++i) {
    const RankedTokens& best = answers[i];
    out[i].reserve(best.count);
    for (uint32_t n = 0; n < best.count; ++n) {
      const RankedTokens::Token& token = best.tokens[n];
      out[i].push_back({token.id, static_cast<double>(token.log_probability)});
    }
  }
  return Status();
}

Result<DeviceAnswers> Session::Contents::RankOnDevice(std::span<const uint32_t> numbers, uint32_t k,
                                                      Computing computing) {
  return AskDevice(numbers, computing,
                   [k](DeviceLanes& device, std::span<const StreamFrame> of_lanes,
                       const DeviceQuery& query) { return device.RankTokens(of_lanes, k, query); });
}

Result<std::vector<std::vector<Candidate>>> Session::TopKLanes(std::span<const uint32_t> lanes,
                                                               uint32_t k, Computing computing) {
  try {
    std::vector<std::vector<Candidate>> best(lanes.size());
    KINGLET_RETURN_IF_ERROR(WriteTopK(lanes, k, computing, best));
    return best;
  } catch (const std::bad_alloc&) {
    return OutOfMemory();
  }
}

Status Session::TopKLanes(std::span<const uint32_t> lanes, uint32_t k, std::span<uint32_t> ids,
                          std::span<double> log_probabilities, Computing computing) {
  k = std::min(k, model().vocabulary_size());
  const size_t size = lanes.size() * k;
  if (!ids.empty()) KINGLET_RETURN_IF_ERROR(CheckSize("output of ids", ids.size(), size));
  if (!log_probabilities.empty()) {
    KINGLET_RETURN_IF_ERROR(
        CheckSize("output of log-probabilities", log_probabilities.size(), size));
  }
  const auto write = [&](size_t at, uint32_t id, double log_probability) {
    if (!ids.empty()) ids[at] = id;
    if (!log_probabilities.empty()) log_probabilities[at] = log_probability;
  };
  if (!ranks_on_device(k)) {
    KINGLET_ASSIGN_OR_RETURN(const auto best, TopKLanes(lanes, k, computing));
    size_t at = 0;
    for (const std::vector<Candidate>& row : best) {
      for (const Candidate& token : row) write(at++, token.id, token.log_probability);
    }
    return Status();
  }
  KINGLET_ASSIGN_OR_RETURN(const DeviceAnswers answers,
                           contents_->RankOnDevice(lanes, k, computing));
  for (size_t i = 0; i < answers.size(); ++i) {
    const RankedTokens& best = answers[i];
    for (uint32_t n = 0; n < k; ++n) {
      write(i * k + n, best.tokens[n].id, static_cast<double>(best.tokens[n].log_probability));
    }
  }
  return Status();
}

Result<std::vector<Candidate>> Session::TopK(uint32_t k, uint32_t lane) {
  std::vector<Candidate> best;
  KINGLET_RETURN_IF_ERROR(WriteTopK({&lane, 1}, k, Computing::kNeeded, {&best, 1}));
  return best;
}

// --- a token at random

Status Session::DrawLanes(std::span<const uint32_t> lanes, std::span<const uint64_t> seeds,
                          const DrawOptions& options, std::span<uint32_t> out) {
  KINGLET_RETURN_IF_ERROR(CheckSize("seeds", seeds.size(), lanes.size()));
  KINGLET_RETURN_IF_ERROR(CheckSize("output of draws", out.size(), lanes.size()));
  KINGLET_RETURN_IF_ERROR(CheckTemperature(options.temperature));
  KINGLET_RETURN_IF_ERROR(CheckShare(options.top_p));
  for (const uint32_t id : options.excluded) {
    KINGLET_RETURN_IF_ERROR(CheckId(id, model().vocabulary_size()));
  }
  return contents_->AskEach(
      lanes, out, [&](auto streams, size_t first, std::span<uint32_t> answers) {
        return DrawToken(streams, seeds.subspan(first, streams.size()), options, answers);
      });
}

Result<uint32_t> Session::Draw(uint64_t seed, const DrawOptions& options, uint32_t lane) {
  uint32_t out = 0;
  KINGLET_RETURN_IF_ERROR(DrawLanes({&lane, 1}, {&seed, 1}, options, {&out, 1}));
  return out;
}

// --- everything that a query can need

Status Session::ComputeAllLanes(std::span<const uint32_t> lanes) {
  return contents_->Ask(lanes, []<class T>(std::span<QueriedStream<T>> streams, size_t) {
    return Distribution<T>::ComputeAll(streams);
  });
}

Status Session::ComputeAll(uint32_t lane) { return ComputeAllLanes({&lane, 1}); }

// --- many tokens of one lane

Status Session::LogProbabilitiesOf(std::span<const uint32_t> ids, std::span<double> out,
                                   uint32_t lane) {
  KINGLET_RETURN_IF_ERROR(CheckSize("output of log-probabilities", out.size(), ids.size()));
  for (const uint32_t id : ids) KINGLET_RETURN_IF_ERROR(CheckId(id, model().vocabulary_size()));
  return contents_->Ask({&lane, 1}, [&](auto streams, size_t) {
    return LogProbabilitiesOfTokens(streams.front(), ids, out);
  });
}

template <class Out>
Status Session::WriteAll(std::span<Out> out, Scale scale, uint32_t lane) {
  KINGLET_RETURN_IF_ERROR(
      CheckSize("output of the full distribution", out.size(), model().vocabulary_size()));
  return contents_->Ask({&lane, 1}, [&](auto streams, size_t) {
    return WriteDistribution(streams.front(), scale, out);
  });
}

Status Session::LogProbabilities(std::span<double> out, uint32_t lane) {
  return WriteAll(out, Scale::kLogProbability, lane);
}

Status Session::LogProbabilitiesAfter(std::span<const uint32_t> ids, std::span<float> out,
                                      uint32_t lane) {
  KINGLET_RETURN_IF_ERROR(CheckHasToken(lane));
  KINGLET_RETURN_IF_ERROR(
      CheckSize("output of log-probabilities", out.size(), model().vocabulary_size()));
  Lane& of_lane = contents_->lanes[lane];
  const uint64_t version_before = of_lane.version;
  const uint32_t token_before = of_lane.stream.last_token();
  // The stream keeps a copy of what one token overwrites; on a device not even of that.
  std::optional<State> state;
  if (ids.size() != 1 || contents_->execution.device) {
    KINGLET_ASSIGN_OR_RETURN(state, Save(lane));
  }
  Status status;
  uint64_t stepped = 0;
  for (; status.ok() && stepped < ids.size(); ++stepped) status = StepToken(ids[stepped], lane);
  if (status.ok()) {
    status = LogProbabilities(out, lane);
  } else {
    --stepped;  // the one that failed
  }
  if (stepped == 0) return status;
  if (state) {
    const Status restored = Restore(*state, lane);
    if (status.ok()) status = restored;
  } else {
    of_lane.stream.Retract(token_before);
  }
  of_lane.Change(version_before);
  of_lane.ForgetResults();
  return status;
}

Status Session::LogProbabilities(std::span<float> out, uint32_t lane) {
  return WriteAll(out, Scale::kLogProbability, lane);
}

Status Session::Probabilities(std::span<double> out, uint32_t lane) {
  return WriteAll(out, Scale::kProbability, lane);
}

Status Session::Probabilities(std::span<float> out, uint32_t lane) {
  return WriteAll(out, Scale::kProbability, lane);
}

// --- about the queries

const QueryWork& Session::last_work(uint32_t lane) const {
  return std::visit(
      [](const auto& distribution) -> const QueryWork& { return distribution.work(); },
      contents_->lanes[lane].Results());
}

const ClusterSet& Session::clusters_opened(uint32_t lane) const {
  return std::visit(
      [](const auto& distribution) -> const ClusterSet& { return distribution.clusters_opened(); },
      contents_->lanes[lane].Results());
}

// --- queries that look for tokens: nucleus, rank, sets, prefixes, intervals

// Calls query(stream), which returns a Result, for one lane.
template <class Answer, class Query>
Result<Answer> Session::AskLane(uint32_t lane, const Query& query) {
  Answer answer{};
  KINGLET_RETURN_IF_ERROR(contents_->Ask({&lane, 1}, [&](auto streams, size_t) -> Status {
    KINGLET_ASSIGN_OR_RETURN(answer, query(streams.front()));
    return Status();
  }));
  return answer;
}

namespace {

Status CheckSet(const TokenSet& set, const Model& model) {
  if (set.vocabulary_size() == model.vocabulary_size()) return Status();
  return session::Invalid("set of words",
                          "a set of " + std::to_string(model.vocabulary_size()) + " words",
                          std::to_string(set.vocabulary_size()));
}

Status CheckHasTexts(const Model& model) {
  if (model.vocabulary() != nullptr) return Status();
  return Status::Refusal(KINGLET_UNSUPPORTED, "session", "prefix",
                         "a model file with the texts of words", "ids only");
}

}  // namespace

Result<std::vector<Candidate>> Session::TopP(double share, uint32_t lane) {
  KINGLET_RETURN_IF_ERROR(session::CheckShare(share));
  return AskLane<std::vector<Candidate>>(lane,
                                         [share](auto& stream) { return FindTopP(stream, share); });
}

Result<uint32_t> Session::Rank(uint32_t id, uint32_t lane) {
  KINGLET_RETURN_IF_ERROR(CheckId(id, model().vocabulary_size()));
  return AskLane<uint32_t>(lane, [id](auto& stream) { return RankOfToken(stream, id); });
}

Result<CacheContribution> Session::CacheContributionOf(uint32_t id, uint32_t lane) {
  KINGLET_RETURN_IF_ERROR(CheckId(id, model().vocabulary_size()));
  return AskLane<CacheContribution>(
      lane, [id](auto& stream) { return CacheContributionOfToken(stream, id); });
}

Result<TokenSet> Session::WithPrefix(std::string_view prefix) const {
  KINGLET_RETURN_IF_ERROR(CheckHasTexts(model()));
  try {
    return TokenSet(model().vocabulary_size(), model().vocabulary()->WithPrefix(prefix));
  } catch (const std::bad_alloc&) {
    return session::OutOfMemory();
  }
}

Result<std::vector<Candidate>> Session::TopKOf(const TokenSet& set, uint32_t k, uint32_t lane) {
  KINGLET_RETURN_IF_ERROR(CheckSet(set, model()));
  return AskLane<std::vector<Candidate>>(
      lane, [&set, k](auto& stream) { return FindTopKOf(stream, set, k); });
}

Result<double> Session::ProbabilityOf(const TokenSet& set, uint32_t lane) {
  KINGLET_RETURN_IF_ERROR(CheckSet(set, model()));
  return AskLane<double>(lane, [&set](auto& stream) { return ProbabilityOfSet(stream, set); });
}

Status Session::AddProbabilities(const TokenSet& set, std::span<const uint32_t> part_of,
                                 std::span<double> sums, uint32_t lane) {
  KINGLET_RETURN_IF_ERROR(CheckSet(set, model()));
  return contents_->Ask({&lane, 1}, [&](auto streams, size_t) -> Status {
    return kinglet::AddProbabilities(streams.front(), set, part_of, sums);
  });
}

Result<std::vector<NextCharacter>> Session::NextCharacters(std::string_view prefix, uint32_t lane) {
  KINGLET_ASSIGN_OR_RETURN(const TokenSet set, WithPrefix(prefix));
  using Answer = std::vector<NextCharacter>;
  return AskLane<Answer>(lane, [&](auto& stream) -> Result<Answer> {
    PrefixParts parts = SplitByNextCharacter(*model().vocabulary(), prefix);
    std::vector<double> sums(parts.characters.size());
    KINGLET_RETURN_IF_ERROR(
        kinglet::AddProbabilities(stream, set, parts.part_of, std::span<double>(sums)));
    for (size_t i = 0; i < sums.size(); ++i) parts.characters[i].probability = sums[i];
    return std::move(parts.characters);
  });
}

Result<Interval> Session::IntervalOf(uint32_t id, uint32_t lane) {
  KINGLET_RETURN_IF_ERROR(CheckId(id, model().vocabulary_size()));
  return AskLane<Interval>(lane, [id](auto& stream) { return IntervalOfToken(stream, id); });
}

Result<uint32_t> Session::TokenAt(uint32_t point, uint32_t lane) {
  return AskLane<uint32_t>(lane, [point](auto& stream) { return TokenOfPoint(stream, point); });
}

}  // namespace kinglet
