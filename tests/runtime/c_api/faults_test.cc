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
#include "tests/runtime/c_api_fixture.h"

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

TEST(CApi, OptionsFromOlderAndNewerPrograms) {
  const std::vector<std::byte> bytes = TinyModel();
  kinglet_model* model = nullptr;
  const auto open = [&](const void* options) {
    const kinglet_status status = kinglet_model_open_memory(
        bytes.data(), bytes.size(), static_cast<const kinglet_model_options*>(options), &model);
    if (status == KINGLET_OK) kinglet_model_close(model);
    return status;
  };
  struct Newer {
    kinglet_model_options known;
    uint8_t unknown[40];
  } newer;
  ASSERT_EQ(kinglet_model_options_init(&newer.known, sizeof newer), KINGLET_OK);
  EXPECT_EQ(newer.known.struct_size, sizeof newer);
  EXPECT_EQ(open(&newer), KINGLET_OK);
  newer.unknown[39] = 1;
  EXPECT_EQ(open(&newer), KINGLET_INVALID_ARGUMENT);
  newer.known.struct_size = sizeof newer - 1;  // the byte is no longer part of it
  EXPECT_EQ(open(&newer), KINGLET_OK);
  for (const uint32_t size : {0U, 1U, uint32_t{sizeof newer.known} - 1, 4097U, UINT32_MAX}) {
    newer.known.struct_size = size;
    EXPECT_EQ(open(&newer), KINGLET_INVALID_ARGUMENT) << size;
  }
  EXPECT_EQ(kinglet_model_options_init(&newer.known, 3), KINGLET_INVALID_ARGUMENT);
  EXPECT_EQ(kinglet_model_options_init(&newer.known, 4097), KINGLET_INVALID_ARGUMENT);
  EXPECT_EQ(kinglet_model_options_init(nullptr, 24), KINGLET_INVALID_ARGUMENT);

  kinglet_model_options options;
  ASSERT_EQ(kinglet_model_options_init(&options, sizeof options), KINGLET_OK);
  options.reserved = 1;
  EXPECT_EQ(open(&options), KINGLET_INVALID_ARGUMENT);
  options.reserved = 0;
  options.backend = "abacus";
  EXPECT_EQ(open(&options), KINGLET_UNSUPPORTED);
  for (const char* backend : {"ref", "ref64", "cpu"}) {
    options.backend = backend;
    EXPECT_EQ(open(&options), KINGLET_OK) << kinglet_error_message();
  }

  kinglet_session_options session_options;
  ASSERT_EQ(kinglet_session_options_init(&session_options, sizeof session_options), KINGLET_OK);
  session_options.empty_cache = 2;
  model = OpenTiny();
  kinglet_session* session = nullptr;
  EXPECT_EQ(kinglet_session_create(model, &session_options, &session), KINGLET_INVALID_ARGUMENT);
  kinglet_model_close(model);
}

TEST(CApi, SessionsStayWithinTheMemoryLimit) {
  const std::vector<std::byte> bytes = TinyModel();
  kinglet_model_options options;
  ASSERT_EQ(kinglet_model_options_init(&options, sizeof options), KINGLET_OK);
  options.session_memory_limit = 1;
  kinglet_model* model = nullptr;
  kinglet_session* session = nullptr;
  kinglet_status status = kinglet_model_open_memory(bytes.data(), bytes.size(), &options, &model);
  if (status == KINGLET_OK) status = kinglet_session_create(model, nullptr, &session);
  EXPECT_EQ(status, KINGLET_OUT_OF_MEMORY);
  kinglet_model_close(model);
}

TEST(CApi, NullIsRefusedEverywhere) {
  kinglet_model* model = OpenTiny();
  kinglet_session* session = nullptr;
  ASSERT_EQ(kinglet_session_create(model, nullptr, &session), KINGLET_OK);
  ASSERT_EQ(kinglet_session_step(session, 0), KINGLET_OK);
  uint32_t u32;
  int32_t i32;
  uint64_t u64;
  double real;
  float all[23];
  char text[40];
  const std::pair<const char*, kinglet_status> refusals[] = {
      {"path", kinglet_model_open(nullptr, nullptr, &model)},
      {"out", kinglet_model_open("x", nullptr, nullptr)},
      {"bytes", kinglet_model_open_memory(nullptr, 1, nullptr, &model)},
      {"out", kinglet_model_open_memory("x", 1, nullptr, nullptr)},
      {"model", kinglet_model_vocabulary_size(nullptr, &u32)},
      {"out", kinglet_model_vocabulary_size(model, nullptr)},
      {"model", kinglet_model_has_words(nullptr, &i32)},
      {"out", kinglet_model_has_words(model, nullptr)},
      {"model", kinglet_model_token_text(nullptr, 0, text, sizeof text, &u64)},
      {"model", kinglet_model_find_token(nullptr, "the", 3, &u32)},
      {"text", kinglet_model_find_token(model, nullptr, 0, &u32)},
      {"id", kinglet_model_find_token(model, "the", 3, nullptr)},
      {"model", kinglet_model_digest(nullptr, text, sizeof text, &u64)},
      {"options", kinglet_session_options_init(nullptr, 8)},
      {"model", kinglet_session_create(nullptr, nullptr, &session)},
      {"out", kinglet_session_create(model, nullptr, nullptr)},
      {"session", kinglet_session_reset(nullptr)},
      {"session", kinglet_session_step(nullptr, 0)},
      {"session", kinglet_session_position(nullptr, &u64)},
      {"out", kinglet_session_position(session, nullptr)},
      {"session", kinglet_session_log_probability(nullptr, 0, &real)},
      {"out", kinglet_session_log_probability(session, 0, nullptr)},
      {"session", kinglet_session_log_probabilities(nullptr, all, 23)},
      {"out", kinglet_session_log_probabilities(session, nullptr, 23)},
      {"session", kinglet_session_top_k(nullptr, 1, &u32, &real, 1, nullptr)},
  };
  for (const auto& [argument, status] : refusals) {
    EXPECT_EQ(status, KINGLET_INVALID_ARGUMENT)
        << argument << " of call " << &argument - &refusals[0].first;
  }
  EXPECT_STREQ(kinglet_error_message(),
               "kinglet_session_top_k: session: expected a pointer, found NULL");
  kinglet_session_destroy(session);
  kinglet_model_close(model);
  kinglet_session_destroy(nullptr);
  kinglet_model_close(nullptr);
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
      "step", [&] { return kinglet_session_step(session, 5); },
      [&] {
        ASSERT_EQ(kinglet_session_position(session, &position), KINGLET_OK);
        ASSERT_EQ(position, 0U);
      });
  double log_probability = 0;
  FailEachAllocation(
      "log_probability",
      [&] { return kinglet_session_log_probability(session, 20, &log_probability); }, nothing);
  uint32_t ids[23];
  FailEachAllocation(
      "top_k", [&] { return kinglet_session_top_k(session, 23, ids, nullptr, 23, nullptr); },
      nothing);
  float all[23];
  FailEachAllocation(
      "log_probabilities", [&] { return kinglet_session_log_probabilities(session, all, 23); },
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
  EXPECT_EQ(kinglet_session_step(session, 23), KINGLET_OUT_OF_MEMORY);
  allocations_left = -1;
  EXPECT_NE(std::string(kinglet_error_message()).find("memory"), std::string::npos);

  kinglet_session_destroy(session);
  kinglet_model_close(model);
}

TEST(CApi, AStepAllocatesNothing) {
  kinglet_session* session = StartTiny({.cache_capacity = 4});
  for (const uint32_t id : kStream) ASSERT_EQ(kinglet_session_step(session, id), KINGLET_OK);
  double log_probability = 0;
  ASSERT_EQ(kinglet_session_log_probability(session, 20, &log_probability), KINGLET_OK);
  const uint64_t before = allocations_made;
  for (const uint32_t id : kStream) {
    kinglet_session_step(session, id);
    kinglet_session_log_probability(session, 20, &log_probability);
  }
  EXPECT_EQ(allocations_made, before);
  kinglet_session_destroy(session);
}

}  // namespace
}  // namespace kinglet
