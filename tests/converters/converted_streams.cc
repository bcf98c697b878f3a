#include "tests/converters/converted_streams.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <span>

#include "format/model_file.h"
#include "runtime/session.h"
#include "tests/support/device_backends.h"

namespace kinglet {

namespace {

LogProbabilitiesOfAll DistributionsWith(const ModelOptions& options, const std::string& file,
                                        const std::vector<uint32_t>& ids) {
  const auto model = Model::Open(file, options);
  EXPECT_TRUE(model.ok()) << model.status().message();
  if (!model.ok()) return {};
  const auto session = *Session::Create(*model);
  LogProbabilitiesOfAll all;
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

}  // namespace

LogProbabilitiesOfAll Distributions(const std::string& file, const std::string& backend,
                                    const std::vector<uint32_t>& ids) {
  ModelOptions options;
  options.backend = backend;
  return DistributionsWith(options, file, ids);
}

LogProbabilitiesOfAll DistributionsOfEveryBackend(const std::string& file,
                                                  const std::vector<uint32_t>& ids) {
  LogProbabilitiesOfAll reference = Distributions(file, "ref", ids);
  EXPECT_EQ(reference, Distributions(file, "cpu", ids));
  // The emulated device is slow.
  constexpr size_t kTokensOnDevice = 12;
  const size_t count = std::min(ids.size(), kTokensOnDevice);
  const std::vector<uint32_t> first(ids.begin(), ids.begin() + static_cast<ptrdiff_t>(count));
  const Backend emulated = EmulatedCuda();
  ModelOptions on_device;
  on_device.own_backend = &emulated;
  const Status opened = Model::Open(file, on_device).status();
  if (opened.code() == KINGLET_UNSUPPORTED) {  // codes of more than 16 bits
    EXPECT_NE(opened.message().find("codes of at most 16 bits"), std::string::npos);
    return reference;
  }
  EXPECT_EQ(
      LogProbabilitiesOfAll(reference.begin(), reference.begin() + static_cast<ptrdiff_t>(count)),
      DistributionsWith(on_device, file, first));
  return reference;
}

double MeanLoss(const LogProbabilitiesOfAll& all, const std::vector<uint32_t>& ids) {
  double sum = 0;
  for (size_t t = 0; t + 1 < ids.size(); ++t) sum -= double{all[t][ids[t + 1]]};
  return sum / static_cast<double>(ids.size() - 1);
}

void ExpectStatesAndLanesKeepEveryBit(const std::string& file, const std::vector<uint32_t>& ids) {
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
  // The other lane continues from the restored state, and so does its fork, after another token.
  ASSERT_TRUE(session->Restore(*middle, 1).ok());
  ASSERT_TRUE(session->Fork(1, 0).ok());
  ASSERT_TRUE(session->StepToken(ids[0], 0).ok());
  ASSERT_TRUE(session->Fork(1, 0).ok());
  for (size_t t = 25; t < ids.size(); ++t) {
    ASSERT_TRUE(session->StepToken(ids[t], 1).ok());
    check(1, t);
    ASSERT_TRUE(session->StepToken(ids[t], 0).ok());
    check(0, t);
  }
}

std::string NumberedVocabulary(size_t words) {
  std::string text = "<eos>\n";
  for (size_t i = 1; i < words; ++i) text += "w" + std::to_string(i) + "\n";
  return text;
}

std::string NumberedText(const std::vector<uint32_t>& ids) {
  std::string text;
  for (const uint32_t id : ids) text += id == 0 ? "\n" : "w" + std::to_string(id) + " ";
  return text;
}

}  // namespace kinglet
