#include "tests/support/lane_check.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <utility>
#include <vector>

#include "kernels/functions.h"
#include "runtime/queries/sampling.h"
#include "runtime/session.h"
#include "tests/support/model_builder.h"

namespace kinglet {
namespace {

std::string Described(const std::vector<Candidate>& words) {
  std::string text;
  for (const Candidate& word : words) {
    text += std::to_string(word.id) + ":" + std::to_string(word.log_probability) + " ";
  }
  return text;
}

bool SameBits(const std::vector<Candidate>& a, const std::vector<Candidate>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const Candidate& left, const Candidate& right) {
                      return left.id == right.id && left.log_probability == right.log_probability;
                    });
}

// Half of the tokens are from a few words, so that a neural cache contains words several times.
uint32_t TokenOf(uint32_t lane, uint32_t position, uint32_t vocabulary) {
  TestRandom random(uint64_t{lane} << 32 | position);
  return random.Below(2) == 0 ? random.Below(std::min(vocabulary, 5u)) : random.Below(vocabulary);
}

std::vector<uint32_t> SampledLanes(const LaneCheck& check) {
  std::set<uint32_t> lanes = {0, check.lanes - 1};
  TestRandom random(check.lanes);
  const size_t wanted = std::min(check.sampled, check.lanes);
  while (lanes.size() < wanted) lanes.insert(random.Below(check.lanes));
  return {lanes.begin(), lanes.end()};
}

}  // namespace

Result<std::string> CompareLanes(const std::shared_ptr<const Model>& found,
                                 const std::shared_ptr<const Model>& expected,
                                 const LaneCheck& check) {
  const uint32_t vocabulary = found->vocabulary_size();
  KINGLET_ASSIGN_OR_RETURN(const auto session, Session::Create(found, {.lanes = check.lanes}));
  const std::vector<uint32_t> sampled = SampledLanes(check);
  std::vector<std::unique_ptr<Session>> alone;
  for (size_t i = 0; i < sampled.size(); ++i) {
    KINGLET_ASSIGN_OR_RETURN(auto one, Session::Create(expected));
    alone.push_back(std::move(one));
  }
  std::vector<uint32_t> lanes(check.lanes), ids(check.lanes);
  std::iota(lanes.begin(), lanes.end(), 0);
  for (uint32_t position = 0; position < check.tokens; ++position) {
    for (uint32_t lane = 0; lane < check.lanes; ++lane) {
      ids[lane] = TokenOf(lane, position, vocabulary);
    }
    KINGLET_RETURN_IF_ERROR(session->StepLanes(lanes, ids));
    KINGLET_ASSIGN_OR_RETURN(const auto best, session->TopKLanes(lanes, check.words));
    for (size_t i = 0; i < sampled.size(); ++i) {
      const uint32_t lane = sampled[i];
      KINGLET_RETURN_IF_ERROR(alone[i]->StepToken(ids[lane]));
      KINGLET_ASSIGN_OR_RETURN(const auto wanted, alone[i]->TopK(check.words));
      if (SameBits(best[lane], wanted)) continue;
      return "lane " + std::to_string(lane) + " of " + std::to_string(check.lanes) + ", token " +
             std::to_string(position) + ": best words " + Described(best[lane]) + "instead of " +
             Described(wanted);
    }
  }
  for (size_t i = 0; i < sampled.size(); ++i) {
    KINGLET_ASSIGN_OR_RETURN(const State here, session->Save(sampled[i]));
    KINGLET_ASSIGN_OR_RETURN(const State there, alone[i]->Save());
    if (here.Hash() == there.Hash()) continue;
    return "lane " + std::to_string(sampled[i]) + " of " + std::to_string(check.lanes) +
           ": another state after " + std::to_string(check.tokens) + " tokens";
  }
  return std::string();
}

}  // namespace kinglet
