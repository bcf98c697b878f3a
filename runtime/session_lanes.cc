// Queries to several lanes at once.
#include <algorithm>
#include <array>
#include <new>
#include <type_traits>

#include "runtime/session_parts.h"

namespace kinglet {

using session::CheckId;
using session::CheckSize;
using session::CheckTemperature;
using session::NoTokenYet;
using session::OutOfMemory;

namespace {

// Whose streams a span of Distribution::Asked names.
template <class Span>
using AskedDistribution = std::remove_pointer_t<decltype(Span::element_type::distribution)>;

}  // namespace

// Each of them once, behind a token.
Status Session::CheckAskedLanes(std::span<const uint32_t> lanes) {
  KINGLET_RETURN_IF_ERROR(CheckLanes(lanes));
  for (const uint32_t lane : lanes) {
    if (position(lane) == 0) return NoTokenYet();
  }
  return Status();
}

// Runs query(streams as Distribution::Asked, index of the first in `lanes`, their answers), some
// lanes at a time.
template <class Answer, class Query>
Result<std::vector<Answer>> Session::AskLanes(std::span<const uint32_t> lanes, const Query& query) {
  KINGLET_RETURN_IF_ERROR(CheckAskedLanes(lanes));
  const ComputingCall call(contents_->execution);
  const auto ask = [&]<class T>(const QueryMemory<T>&) -> Result<std::vector<Answer>> {
    std::vector<Answer> answers(lanes.size());
    for (const uint32_t lane : lanes) {
      std::get<Distribution<T>>(contents_->lanes[lane].distribution).ResetWork();
    }
    for (size_t first = 0; first < lanes.size(); first += kLanesTogether) {
      const size_t count = std::min(kLanesTogether, lanes.size() - first);
      std::array<typename Distribution<T>::Asked, kLanesTogether> asked{};
      for (size_t i = 0; i < count; ++i) {
        Lane& lane = contents_->lanes[lanes[first + i]];
        asked[i] = {&std::get<Distribution<T>>(lane.distribution), lane.stream.LastFrame()};
        KINGLET_RETURN_IF_ERROR(FindPlace(*asked[i].distribution, asked[i].frame));
      }
      KINGLET_RETURN_IF_ERROR(
          query(std::span(asked).first(count), first, std::span(answers).subspan(first, count)));
    }
    return answers;
  };
  try {
    return std::visit(ask, contents_->memory_of_queries);
  } catch (const std::bad_alloc&) {
    return OutOfMemory();
  }
}

// Runs ask(device, frames, query) and has the lanes remember what the device did for them.
template <class DeviceCall>
Result<std::vector<DeviceAnswer>> Session::AskDevice(std::span<const uint32_t> lanes,
                                                     Computing computing, const DeviceCall& ask) {
  KINGLET_RETURN_IF_ERROR(CheckAskedLanes(lanes));
  const ComputingCall call(contents_->execution);
  try {
    std::vector<StreamFrame> frames;
    frames.reserve(lanes.size());
    for (const uint32_t lane : lanes) frames.push_back(contents_->lanes[lane].stream.LastFrame());
    const auto distribution = [&](size_t i) -> Distribution<float>& {
      return std::get<Distribution<float>>(contents_->lanes[lanes[i]].distribution);
    };
    // Of what fails no lane says that an older query's work was for it.
    for (size_t i = 0; i < lanes.size(); ++i) distribution(i).ResetWork();
    KINGLET_RETURN_IF_ERROR(TakeCancel(contents_->execution, "query"));
    const DeviceQuery query = {contents_->empty_cache_is_normalised, computing == Computing::kAll};
    KINGLET_ASSIGN_OR_RETURN(
        std::vector<DeviceAnswer> answers,
        ask(*contents_->execution.device, std::span<const StreamFrame>(frames), query));
    for (size_t i = 0; i < lanes.size(); ++i) {
      KINGLET_RETURN_IF_ERROR(distribution(i).TakeAnswer(frames[i], answers[i]));
    }
    return answers;
  } catch (const std::bad_alloc&) {
    return OutOfMemory();
  }
}

bool Session::ranks_on_device(uint32_t k) const {
  const DeviceLanes* const device = contents_->execution.device.get();
  const StepObservers& observers = contents_->execution.observers;
  if (device == nullptr || observers.before || observers.after) return false;
  const uint32_t most = device->max_ranked_words();  // 0: none, not even no words
  return most > 0 && k <= most;
}

Status Session::LogProbabilityLanes(std::span<const uint32_t> lanes, std::span<const uint32_t> ids,
                                    std::span<double> out, Computing computing) {
  KINGLET_RETURN_IF_ERROR(CheckSize("ids to ask for", ids.size(), lanes.size()));
  KINGLET_RETURN_IF_ERROR(CheckSize("output of log-probabilities", out.size(), lanes.size()));
  for (const uint32_t id : ids) KINGLET_RETURN_IF_ERROR(CheckId(id, model().vocabulary_size()));
  if (ranks_on_device(1)) {
    KINGLET_ASSIGN_OR_RETURN(const std::vector<DeviceAnswer> answers,
                             AskDevice(lanes, computing,
                                       [&](DeviceLanes& device, std::span<const StreamFrame> frames,
                                           const DeviceQuery& query) {
                                         return device.LogProbabilities(frames, ids, query);
                                       }));
    std::transform(answers.begin(), answers.end(), out.begin(), [](const DeviceAnswer& answer) {
      return static_cast<double>(answer.words.front().log_probability);
    });
    return Status();
  }
  KINGLET_ASSIGN_OR_RETURN(
      const std::vector<double> answers,
      AskLanes<double>(lanes, [&](auto asked, size_t first, std::span<double> part) -> Status {
        using Asked = AskedDistribution<decltype(asked)>;
        if (computing == Computing::kAll) KINGLET_RETURN_IF_ERROR(Asked::ComputeAll(asked));
        return Asked::LogProbabilityOf(asked, ids.subspan(first, asked.size()), part);
      }));
  std::copy(answers.begin(), answers.end(), out.begin());
  return Status();
}

Result<std::vector<std::vector<Candidate>>> Session::TopKLanes(std::span<const uint32_t> lanes,
                                                               uint32_t k, Computing computing) {
  if (ranks_on_device(k)) {
    KINGLET_ASSIGN_OR_RETURN(
        const std::vector<DeviceAnswer> answers,
        AskDevice(lanes, computing,
                  [&](DeviceLanes& device, std::span<const StreamFrame> frames,
                      const DeviceQuery& query) { return device.RankWords(frames, k, query); }));
    std::vector<std::vector<Candidate>> best(answers.size());
    for (size_t i = 0; i < answers.size(); ++i) {
      best[i].reserve(answers[i].words.size());
      for (const DeviceAnswer::Word& word : answers[i].words) {
        best[i].push_back({word.id, static_cast<double>(word.log_probability)});
      }
    }
    return best;
  }
  return AskLanes<std::vector<Candidate>>(
      lanes, [&](auto asked, size_t, std::span<std::vector<Candidate>> part) -> Status {
        using Asked = AskedDistribution<decltype(asked)>;
        if (computing == Computing::kAll) KINGLET_RETURN_IF_ERROR(Asked::ComputeAll(asked));
        return Asked::TopK(asked, k, part);
      });
}

Status Session::SampleLanes(std::span<const uint32_t> lanes, std::span<const uint64_t> seeds,
                            double temperature, std::span<uint32_t> out) {
  KINGLET_RETURN_IF_ERROR(CheckSize("seeds", seeds.size(), lanes.size()));
  KINGLET_RETURN_IF_ERROR(CheckSize("output of samples", out.size(), lanes.size()));
  KINGLET_RETURN_IF_ERROR(CheckTemperature(temperature));
  KINGLET_ASSIGN_OR_RETURN(
      const std::vector<uint32_t> answers,
      AskLanes<uint32_t>(lanes, [&](auto asked, size_t first, std::span<uint32_t> part) {
        return AskedDistribution<decltype(asked)>::Sample(asked, seeds.subspan(first, asked.size()),
                                                          temperature, part);
      }));
  std::copy(answers.begin(), answers.end(), out.begin());
  return Status();
}

Status Session::ComputeAllLanes(std::span<const uint32_t> lanes) {
  return AskLanes<std::monostate>(lanes,
                                  [](auto asked, size_t, std::span<std::monostate>) {
                                    return AskedDistribution<decltype(asked)>::ComputeAll(asked);
                                  })
      .status();
}

}  // namespace kinglet
