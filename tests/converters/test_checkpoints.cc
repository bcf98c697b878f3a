#include "tests/converters/test_checkpoints.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>

#include "tests/converters/synthetic.h"

namespace kinglet {

namespace fs = std::filesystem;

std::vector<std::string> CheckpointFolders(const std::string& variants,
                                           const std::vector<std::string>& names) {
  std::vector<std::string> folders;
  for (const auto& entry : fs::directory_iterator(KINGLET_TEST_DATA "/" + variants)) {
    if (entry.is_directory()) folders.push_back(entry.path().string());
  }
  std::sort(folders.begin(), folders.end());
  const char* more = std::getenv("KINGLET_CHECKPOINTS");
  if (more == nullptr || *more == '\0') return folders;
  for (const std::string& name : names) {
    const std::string folder = std::string(more) + "/" + name;
    if (fs::exists(folder)) folders.push_back(folder);
  }
  return folders;
}

const KeptConversion& ConvertOnce(const std::string& key, ConvertOptions options) {
  static const TemporaryFolder folder;
  static std::map<std::string, KeptConversion> kept;
  const auto found = kept.find(key);
  if (found != kept.end()) return found->second;
  options.output = folder.Path(std::to_string(kept.size()) + ".kgl");
  const Result<ConvertSummary> summary = Convert(options);
  return kept.emplace(key, KeptConversion{options, summary}).first->second;
}

std::string FolderTestName(const testing::TestParamInfo<std::string>& instance) {
  std::string name = fs::path(instance.param).filename().string();
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

void ExpectTruncationsRefused(
    const std::string& folder, const std::string& name, size_t sizes,
    const std::function<ConvertOptions(const std::string& copy)>& options) {
  const TemporaryFolder copy;
  for (const auto& entry : fs::directory_iterator(folder)) {
    fs::copy(entry.path(), copy.Path(entry.path().filename().string()));
  }
  std::ifstream file(folder + "/" + name, std::ios::binary);
  const std::string original((std::istreambuf_iterator<char>(file)), {});
  ASSERT_FALSE(original.empty()) << folder << "/" << name;
  const ConvertOptions convert = options(copy.path());
  const auto converted = Convert(convert);
  ASSERT_TRUE(converted.ok()) << converted.status().message();
  fs::remove(convert.output);
  // The last bytes of a text may be white space.
  for (size_t size = 0; size + 2 < original.size(); size += 1 + original.size() / sizes) {
    copy.Write(name, original.substr(0, size));
    EXPECT_FALSE(Convert(convert).ok()) << name << " " << size;
    EXPECT_FALSE(fs::exists(convert.output)) << name << " " << size;
  }
}

}  // namespace kinglet
