// Lists of a person's words, and files of them, for tests.
#ifndef KINGLET_TESTS_RUNTIME_TYPING_USER_WORDS_FIXTURE_H_
#define KINGLET_TESTS_RUNTIME_TYPING_USER_WORDS_FIXTURE_H_

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "runtime/typing/user_words.h"

namespace kinglet::typing {

using ListedWords = std::vector<std::pair<std::string, uint32_t>>;

inline ListedWords ListOf(const UserWords& words) {
  ListedWords listed;
  for (const uint32_t number : words.order()) {
    if (words.uses(number) > 0) listed.emplace_back(words.text(number), words.uses(number));
  }
  return listed;
}

class WordsFolder {
 public:
  WordsFolder() {
    char name[] = "/tmp/kinglet-words-XXXXXX";
    path_ = mkdtemp(name);
  }
  ~WordsFolder() { std::filesystem::remove_all(path_); }
  std::string file(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

inline std::string FileBytes(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace kinglet::typing

#endif  // KINGLET_TESTS_RUNTIME_TYPING_USER_WORDS_FIXTURE_H_
