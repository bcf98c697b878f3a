// Uses the library's own Model and Session in one program with the classes of kinglet.hpp.
#include <cmath>
#include <span>

#include "runtime/session.h"
#include "tests/runtime/c_api/c_tests.h"

extern "C" double LogProbabilityByTheLibrarysOwnSession(const uint32_t* ids, size_t count,
                                                        uint32_t word) {
  const test_bytes bytes = TestModel(TEST_MODEL_CACHE);
  const auto model = kinglet::Model::FromBytes(
      {static_cast<const std::byte*>(bytes.data), static_cast<size_t>(bytes.size)}, {});
  if (!model.ok()) return NAN;
  const auto session = kinglet::Session::Create(*model);
  if (!session.ok()) return NAN;
  for (const uint32_t id : std::span(ids, count)) {
    if (!(*session)->StepToken(id).ok()) return NAN;
  }
  const auto answer = (*session)->LogProbability(word);
  return answer.ok() ? *answer : NAN;
}
