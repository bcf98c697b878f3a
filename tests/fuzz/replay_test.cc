// Feeds every file of tests/data/fuzz to its target: seeds, and inputs that once were findings.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <string>
#include <vector>

#include "runtime/state.h"
#include "tests/fuzz/state_models.h"
#include "tests/fuzz/targets.h"

namespace kinglet::fuzz {
namespace {

std::vector<std::byte> BytesOf(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};  // of exact size, so that sanitizers notice reads beyond
}

TEST(Fuzz, ReplaysEveryInput) {
  const std::filesystem::path folder = KINGLET_TEST_DATA "/fuzz";
  for (const Target& target : Targets()) {
    size_t inputs = 0;
    for (const auto& entry : std::filesystem::directory_iterator(folder / target.name)) {
      SCOPED_TRACE(entry.path().string());
      EXPECT_NO_THROW(target.run(BytesOf(entry.path())));
      ++inputs;
    }
    EXPECT_GT(inputs, 0U) << target.name;
    EXPECT_NO_THROW(target.run({})) << target.name;
  }
}

TEST(Fuzz, EveryFolderHasATarget) {
  for (const auto& entry : std::filesystem::directory_iterator(KINGLET_TEST_DATA "/fuzz")) {
    EXPECT_NE(FindTarget(entry.path().filename().string()), nullptr) << entry.path();
  }
  EXPECT_EQ(FindTarget("no such target"), nullptr);
  EXPECT_LE(Targets().size(), 11U);
}

// Without repair no change of a seed would reach the checks after the version and the digests.
TEST(Fuzz, SeedsOfStatesAreStatesOfTheirModels) {
  for (uint8_t choice = 0; choice < kStateModels; ++choice) {
    const auto seed = BytesOf(KINGLET_TEST_DATA "/fuzz/state/" + std::to_string(choice));
    ASSERT_EQ(static_cast<uint8_t>(seed.at(0)), choice);
    const auto state = State::ReadBlob(StateModel(choice), std::span(seed).subspan(1));
    EXPECT_TRUE(state.ok()) << static_cast<int>(choice) << ": " << state.status().message();
  }
}

TEST(Fuzz, RepairedChangesReachTheChecksBehindTheDigests) {
  for (const char* name : {"model_file", "state", "archive"}) {
    const Target& target = *FindTarget(name);
    for (const auto& entry :
         std::filesystem::directory_iterator(std::string(KINGLET_TEST_DATA "/fuzz/") + name)) {
      const std::vector<std::byte> seed = BytesOf(entry.path());
      for (size_t at = 0; at < seed.size(); at += 1 + seed.size() / 200) {
        std::vector<std::byte> changed = seed;
        changed[at] ^= std::byte{0x41};
        target.repair(changed);
        EXPECT_NO_THROW(target.run(changed)) << entry.path() << " byte " << at;
        target.repair(std::span(changed).first(at));
        EXPECT_NO_THROW(target.run(std::span(changed).first(at))) << entry.path() << " " << at;
      }
    }
  }
}

}  // namespace
}  // namespace kinglet::fuzz
