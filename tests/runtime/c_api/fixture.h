// A tiny model through the C interface, for its tests.
#ifndef KINGLET_TESTS_RUNTIME_C_API_FIXTURE_H_
#define KINGLET_TESTS_RUNTIME_C_API_FIXTURE_H_

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "format/writer.h"
#include "kinglet/kinglet.h"
#include "tests/support/model_builder.h"

namespace kinglet {

inline std::vector<std::byte> TinyModel(const TinyOptions& options = {}) {
  Result<std::vector<std::byte>> bytes = SerialiseModel(TinyMicronet(options));
  EXPECT_TRUE(bytes.ok()) << bytes.status().message();
  return bytes.ok() ? bytes.value() : std::vector<std::byte>();
}

// The caller closes it.
inline kinglet_model* OpenTiny(const TinyOptions& options = {}) {
  const std::vector<std::byte> bytes = TinyModel(options);
  kinglet_model* model = nullptr;
  EXPECT_EQ(kinglet_model_open_memory(bytes.data(), bytes.size(), nullptr, &model), KINGLET_OK)
      << kinglet_error_message();
  return model;
}

// The caller destroys it.
inline kinglet_session* StartTiny(const TinyOptions& options = {}) {
  kinglet_model* model = OpenTiny(options);
  kinglet_session* session = nullptr;
  EXPECT_EQ(kinglet_session_create(model, nullptr, &session), KINGLET_OK)
      << kinglet_error_message();
  kinglet_model_close(model);
  return session;
}

inline std::vector<float> AllOf(kinglet_session* session, uint32_t words) {
  std::vector<float> all(words);
  EXPECT_EQ(kinglet_session_log_probabilities(session, 0, all.data(), all.size()), KINGLET_OK)
      << kinglet_error_message();
  return all;
}

// Ids below 23, the tiny model's vocabulary.
inline constexpr uint32_t kStream[] = {1, 0, 22, 5, 5, 9, 17, 3, 0, 2, 14, 1};

}  // namespace kinglet

#endif  // KINGLET_TESTS_RUNTIME_C_API_FIXTURE_H_
