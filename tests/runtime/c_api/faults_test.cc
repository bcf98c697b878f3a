// What the C interface does with arguments, options and files that are wrong, and when memory runs
// out: it says so, changes nothing and goes on.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <new>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "kinglet/kinglet.h"
#include "tests/runtime/c_api/fixture.h"

// Allocations left until one fails; negative: none fails. The shared library allocates through
// these operators too.
static thread_local int64_t allocations_left = -1;
static thread_local uint64_t allocations_made = 0;

void* operator new(size_t size) {
  ++allocations_made;
  if (allocations_left == 0) throw std::bad_alloc();
  if (allocations_left > 0) --allocations_left;
  if (void* memory = std::malloc(size > 0 ? size : 1)) return memory;
  throw std::bad_alloc();
}
// Not inlined, or the compiler sees memory from operator new given to free.
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, size_t) noexcept { std::free(memory); }

namespace kinglet {
namespace {

TEST(CApi, BadBytesAreRefusedAndNothingIsWritten) {
  std::vector<std::byte> bytes = TinyModel();
  auto* const untouched = reinterpret_cast<kinglet_model*>(&bytes);
  kinglet_model* model = untouched;
  for (size_t size = 0; size < bytes.size(); size += 1 + size / 16) {
    EXPECT_NE(kinglet_model_open_memory(bytes.data(), size, nullptr, &model), KINGLET_OK) << size;
    EXPECT_STRNE(kinglet_error_message(), "");
  }
  bytes[bytes.size() / 2] ^= std::byte{1};
  EXPECT_EQ(kinglet_model_open_memory(bytes.data(), bytes.size(), nullptr, &model),
            KINGLET_CORRUPT);
  EXPECT_EQ(kinglet_model_open_memory(bytes.data(), UINT64_MAX, nullptr, &model),
            KINGLET_INVALID_ARGUMENT);
  EXPECT_EQ(kinglet_model_open("no/such/model.kgl", nullptr, &model), KINGLET_NOT_FOUND);
  EXPECT_NE(std::string(kinglet_error_message()).find("no/such/model.kgl"), std::string::npos);
  EXPECT_EQ(model, untouched);
}

TEST(CApi, ErrorTextIsOneShortLinePerThread) {
  kinglet_model* model = nullptr;
  ASSERT_EQ(kinglet_model_open("first", nullptr, &model), KINGLET_NOT_FOUND);
  const std::string mine = kinglet_error_message();
  std::string before = "unset", after;
  std::thread([&] {
    before = kinglet_error_message();
    kinglet_model_open("second", nullptr, &model);
    after = kinglet_error_message();
  }).join();
  EXPECT_EQ(before, "");
  EXPECT_NE(after.find("second"), std::string::npos);
  EXPECT_EQ(kinglet_error_message(), mine);
  kinglet_abi_version();
  uint32_t unused = 0;
  model = OpenTiny();
  ASSERT_EQ(kinglet_model_vocabulary_size(model, &unused), KINGLET_OK);
  EXPECT_EQ(kinglet_error_message(), mine);  // successes leave it alone
  kinglet_model_close(model);

  EXPECT_NE(kinglet_model_open("two\nlines\x1b[31m", nullptr, &model), KINGLET_OK);
  EXPECT_NE(std::string(kinglet_error_message()).find("two?lines?[31m"), std::string::npos);
  for (size_t shift = 0; shift < 3; ++shift) {  // the cut falls on each byte of a character
    std::string path(shift, 'x');
    for (int i = 0; i < 1000; ++i) path += "\u20ac";
    EXPECT_NE(kinglet_model_open(path.c_str(), nullptr, &model), KINGLET_OK);
    const std::string text = kinglet_error_message();
    EXPECT_LE(text.size(), 1023U);
    EXPECT_GE(text.size(), 1021U);
    EXPECT_EQ(text.substr(text.size() - 3), "\u20ac");
  }
}

// Lets the first, second, third... allocation of `call` fail until it succeeds; after each failure
// `unchanged` looks whether anything changed.
template <class Call, class Unchanged>
void FailEachAllocation(const char* what, Call call, Unchanged unchanged) {
  for (int64_t limit = 0; limit < 100000; ++limit) {
    allocations_left = limit;
    const kinglet_status status = call();
    allocations_left = -1;
    if (status == KINGLET_OK) return;
    ASSERT_EQ(status, KINGLET_OUT_OF_MEMORY)
        << what << " after " << limit << " allocations: " << kinglet_error_message();
    ASSERT_STRNE(kinglet_error_message(), "");
    unchanged();
  }
  FAIL() << what << " never succeeded";
}

TEST(CApi, RunningOutOfMemoryIsAnErrorLikeAnyOther) {
  const std::vector<std::byte> bytes = TinyModel({.cache_capacity = 4});
  const auto nothing = [] {};
  kinglet_model* model = nullptr;
  FailEachAllocation(
      "open",
      [&] { return kinglet_model_open_memory(bytes.data(), bytes.size(), nullptr, &model); },
      [&] { ASSERT_EQ(model, nullptr); });
  kinglet_session* session = nullptr;
  FailEachAllocation(
      "create", [&] { return kinglet_session_create(model, nullptr, &session); },
      [&] { ASSERT_EQ(session, nullptr); });
  uint64_t position = 0;
  FailEachAllocation(
      "step", [&] { return kinglet_session_step(session, 0, 5); },
      [&] {
        ASSERT_EQ(kinglet_session_position(session, 0, &position), KINGLET_OK);
        ASSERT_EQ(position, 0U);
      });
  double log_probability = 0;
  FailEachAllocation(
      "log_probability",
      [&] { return kinglet_session_log_probability(session, 0, 20, &log_probability); }, nothing);
  uint32_t ids[23];
  FailEachAllocation(
      "top_k", [&] { return kinglet_session_top_k(session, 0, 23, ids, nullptr, 23, nullptr); },
      nothing);
  float all[23];
  FailEachAllocation(
      "log_probabilities", [&] { return kinglet_session_log_probabilities(session, 0, all, 23); },
      nothing);
  EXPECT_EQ(double{all[20]}, log_probability);
  char text[40];
  FailEachAllocation(
      "token_text", [&] { return kinglet_model_token_text(model, 3, text, 40, nullptr); }, nothing);
  uint32_t id = 0;
  FailEachAllocation(
      "find_token", [&] { return kinglet_model_find_token(model, "w3", 2, &id); }, nothing);
  EXPECT_EQ(id, 3U);

  // The text of an error comes without memory too.
  allocations_left = 0;
  EXPECT_EQ(kinglet_session_step(session, 0, 23), KINGLET_OUT_OF_MEMORY);
  allocations_left = -1;
  EXPECT_NE(std::string(kinglet_error_message()).find("memory"), std::string::npos);

  kinglet_session_destroy(session);
  kinglet_model_close(model);
}

TEST(CApi, AStepAllocatesNothing) {
  kinglet_session* session = StartTiny({.cache_capacity = 4});
  for (const uint32_t id : kStream) ASSERT_EQ(kinglet_session_step(session, 0, id), KINGLET_OK);
  double log_probability = 0;
  ASSERT_EQ(kinglet_session_log_probability(session, 0, 20, &log_probability), KINGLET_OK);
  const uint64_t before = allocations_made;
  for (const uint32_t id : kStream) {
    kinglet_session_step(session, 0, id);
    kinglet_session_log_probability(session, 0, 20, &log_probability);
  }
  EXPECT_EQ(allocations_made, before);
  kinglet_session_destroy(session);
}

}  // namespace
}  // namespace kinglet
