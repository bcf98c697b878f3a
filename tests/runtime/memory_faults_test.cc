// Memory that runs out in code that the C interface does not reach: beam search, and sessions on a
// device. Each call fails completely; afterwards the same calls give the same bits as before.
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "runtime/prefix_tree.h"
#include "runtime/session.h"
#include "runtime/translation.h"
#include "tests/support/device_backends.h"
#include "tests/support/fail_each_allocation.h"
#include "tests/support/model_builder.h"
#include "tests/support/recurrent_translation_builder.h"
#include "tests/support/translation_builder.h"

namespace kinglet::memory_faults_test {
namespace {

// Catches std::bad_alloc, like the C interface.
template <class Call>
kinglet_status CodeOf(const Call& call) {
  try {
    return call().code();
  } catch (const std::bad_alloc&) {
    return KINGLET_OUT_OF_MEMORY;
  }
}

// Results as values that are compared without allocating memory.
struct Found {
  bool operator==(const Found&) const = default;
  void Add(double number) {
    if (count < std::size(numbers)) numbers[count++] = number;
  }
  double numbers[200] = {};
  size_t count = 0;
};

// `work` opens, computes and closes; every failure of it must be one, and every success the same.
void ExpectSafe(const char* what, const std::function<Status(Found&)>& work) {
  Found expected;
  const Status first = work(expected);
  ASSERT_TRUE(first.ok()) << what << ": " << first.message();
  ASSERT_GT(expected.count, 0U);
  FailEachAllocation(
      what,
      [&] {
        Found found;
        const kinglet_status status = CodeOf([&] { return work(found); });
        return status == KINGLET_OK && found != expected ? KINGLET_INTERNAL : status;
      },
      [] {}, {.repeatable = true, .places = kSanitized ? 150 : INT64_MAX});
}

Result<std::shared_ptr<const Model>> OpenOn(const std::vector<std::byte>& bytes,
                                            const std::string& backend, const Backend* own) {
  ModelOptions options;
  options.backend = backend;
  options.own_backend = own;
  return Model::FromBytes(bytes, options);
}

Status TranslateWith(const std::shared_ptr<const Model>& model, uint32_t n_best, Found& found) {
  SessionOptions lanes;
  lanes.lanes = 3;
  KINGLET_ASSIGN_OR_RETURN(const auto session, Session::Create(model, lanes));
  static constexpr uint32_t kSource[] = {1, 12, 0, 4};
  TranslationOptions options;
  options.end_token = 3;
  options.max_length = 6;
  options.n_best = n_best;
  KINGLET_ASSIGN_OR_RETURN(const auto translations, Translate(kSource, options, *session));
  for (const Translation& translation : translations) {
    for (const uint32_t id : translation.ids) found.Add(id);
    found.Add(translation.score);
  }
  return Status();
}

TEST(MemoryFaults, BeamSearch) {
  for (const bool recurrent : {false, true}) {
    const auto bytes =
        *SerialiseModel(recurrent ? TinyRecurrentTranslation() : TinyTranslation({.bits = 9}));
    for (const char* const backend : {"cpu", "ref"}) {
      const auto model = *OpenOn(bytes, backend, nullptr);
      for (const uint32_t n_best : {1U, 3U}) {
        const std::string name = std::string(recurrent ? "recurrent" : "transformer") + " on " +
                                 backend + ", " + std::to_string(n_best) + "-best";
        ExpectSafe(name.c_str(), [&](Found& found) { return TranslateWith(model, n_best, found); });
      }
    }
  }
}

// Opens a model, makes a session, steps, forks, saves, restores and asks.
Status Live(const std::vector<std::byte>& bytes, const Backend* own, Found& found) {
  KINGLET_ASSIGN_OR_RETURN(const auto model, OpenOn(bytes, "cpu", own));
  SessionOptions options;
  options.lanes = 3;
  KINGLET_ASSIGN_OR_RETURN(const auto session, Session::Create(model, options));
  static constexpr uint32_t kLanes[] = {2, 0}, kTokens[] = {5, 22};
  KINGLET_RETURN_IF_ERROR(session->StepLanes(kLanes, kTokens));
  KINGLET_ASSIGN_OR_RETURN(const State state, session->Save(2));
  KINGLET_RETURN_IF_ERROR(session->StepToken(9, 2));
  KINGLET_RETURN_IF_ERROR(session->Fork(2, 1));
  KINGLET_ASSIGN_OR_RETURN(const auto best, session->TopK(5, 1));
  for (const Candidate& word : best) found.Add(word.log_probability);
  KINGLET_RETURN_IF_ERROR(session->Restore(state, 1));
  KINGLET_ASSIGN_OR_RETURN(const double one, session->LogProbability(7, 1));
  found.Add(one);
  KINGLET_ASSIGN_OR_RETURN(const auto nucleus, session->TopP(0.5, 0));
  found.Add(nucleus.front().log_probability);
  static constexpr uint32_t kParents[] = {kNoParent, 0, 1, 1, 0, 4, 3},
                            kIds[] = {1, 3, 4, 5, 6, 7, 8};
  double values[7];
  KINGLET_RETURN_IF_ERROR(ScoreTree(kParents, kIds, *session, values).status());
  for (const double value : values) found.Add(value);
  return Status();
}

TEST(MemoryFaults, ALifeOnADevice) {
  const auto bytes = *SerialiseModel(TinyMicronet({.quantised = true, .cache_capacity = 4}));
  const Backend emulated = EmulatedCuda();
  PretendedDevice device;
  const Backend pretended = PretendedBackend(device);
  ExpectSafe("cpu", [&](Found& found) { return Live(bytes, nullptr, found); });
  ExpectSafe("pretended device", [&](Found& found) { return Live(bytes, &pretended, found); });
  ExpectSafe("emulated device", [&](Found& found) { return Live(bytes, &emulated, found); });
}

}  // namespace
}  // namespace kinglet::memory_faults_test
