// Questions to several lanes at once.
#include <algorithm>
#include <array>
#include <new>
#include <type_traits>

#include "runtime/float_environment.h"
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

// Runs query(streams as Distribution::Asked, index of the first in `lanes`, their answers), some
// lanes at a time.
template <class Answer, class Query>
Result<std::vector<Answer>> Session::AskLanes(std::span<const uint32_t> lanes, const Query& query) {
  KINGLET_RETURN_IF_ERROR(CheckLanes(lanes));
  for (const uint32_t lane : lanes) {
    if (position(lane) == 0) return NoTokenYet();
  }
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
        KINGLET_RETURN_IF_ERROR(FindOnHost(*asked[i].distribution, asked[i].frame));
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

Status Session::LogProbabilityLanes(std::span<const uint32_t> lanes, std::span<const uint32_t> ids,
                                    std::span<double> out) {
  KINGLET_RETURN_IF_ERROR(CheckSize("ids to ask for", ids.size(), lanes.size()));
  KINGLET_RETURN_IF_ERROR(CheckSize("output of log-probabilities", out.size(), lanes.size()));
  for (const uint32_t id : ids) KINGLET_RETURN_IF_ERROR(CheckId(id, model().vocabulary_size()));
  KINGLET_ASSIGN_OR_RETURN(
      const std::vector<double> answers,
      AskLanes<double>(lanes, [&](auto asked, size_t first, std::span<double> part) {
        return AskedDistribution<decltype(asked)>::LogProbabilityOf(
            asked, ids.subspan(first, asked.size()), part);
      }));
  std::copy(answers.begin(), answers.end(), out.begin());
  return Status();
}

Result<std::vector<std::vector<Candidate>>> Session::TopKLanes(std::span<const uint32_t> lanes,
                                                               uint32_t k) {
  return AskLanes<std::vector<Candidate>>(
      lanes, [&](auto asked, size_t, std::span<std::vector<Candidate>> part) {
        return AskedDistribution<decltype(asked)>::TopK(asked, k, part);
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
