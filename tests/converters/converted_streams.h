// What tests ask of a converted model's streams, whatever family it comes from.
#ifndef KINGLET_TESTS_CONVERTERS_CONVERTED_STREAMS_H_
#define KINGLET_TESTS_CONVERTERS_CONVERTED_STREAMS_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/session.h"

namespace kinglet {

// Every word's number after every token, and that questions answered lazily give the same ones.
inline std::vector<std::vector<float>> Distributions(const std::string& file,
                                                     const std::string& backend,
                                                     const std::vector<uint32_t>& ids) {
  const auto model = Model::Open(file, {.backend = backend});
  EXPECT_TRUE(model.ok()) << model.status().message();
  if (!model.ok()) return {};
  const auto session = *Session::Create(*model);
  std::vector<std::vector<float>> all;
  for (size_t t = 0; t < ids.size(); ++t) {
    EXPECT_TRUE(session->StepToken(ids[t]).ok());
    const uint32_t word = ids[(t + 1) % ids.size()];
    const double alone = *session->LogProbability(word);
    const auto top = *session->TopK(3);
    all.emplace_back((*model)->vocabulary_size());
    EXPECT_TRUE(session->LogProbabilities(std::span<float>(all.back())).ok());
    EXPECT_EQ(alone, all.back()[word]);
    std::vector<float> sorted = all.back();
    std::sort(sorted.begin(), sorted.end(), std::greater<>());
    for (size_t k = 0; k < top.size(); ++k) {
      EXPECT_EQ(top[k].log_probability, sorted[k]);
      EXPECT_EQ(top[k].log_probability, all.back()[top[k].id]);
    }
  }
  return all;
}

// REQUIRES: 26 ids or more. A stream goes on from a saved state as if nothing had been between, and
// a lane beside others as if it were alone.
inline void ExpectStatesAndLanesKeepEveryBit(const std::string& file,
                                             const std::vector<uint32_t>& ids) {
  const auto expected = Distributions(file, "cpu", ids);
  const auto model = *Model::Open(file, {});
  const auto session = *Session::Create(model, {.lanes = 2});
  const auto check = [&](uint32_t lane, size_t t) {
    std::vector<float> found(model->vocabulary_size());
    ASSERT_TRUE(session->LogProbabilities(std::span<float>(found), lane).ok());
    EXPECT_EQ(found, expected[t]) << t;
  };
  std::optional<State> middle;
  for (size_t t = 0; t < ids.size(); ++t) {
    const uint32_t pair[] = {ids[t], ids[ids.size() - 1 - t]};
    ASSERT_TRUE(session->StepLanes(std::vector<uint32_t>{0, 1}, pair).ok());
    check(0, t);
    if (t == 24) middle = *session->Save(0);
  }
  ASSERT_TRUE(session->Restore(*middle, 1).ok());
  for (size_t t = 25; t < ids.size(); ++t) {
    ASSERT_TRUE(session->StepLanes(std::vector<uint32_t>{1}, std::vector<uint32_t>{ids[t]}).ok());
    check(1, t);
  }
}

}  // namespace kinglet

#endif  // KINGLET_TESTS_CONVERTERS_CONVERTED_STREAMS_H_
