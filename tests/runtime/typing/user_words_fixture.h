// Lists of a person's words, and files of them, for tests.
#ifndef KINGLET_TESTS_RUNTIME_TYPING_USER_WORDS_FIXTURE_H_
#define KINGLET_TESTS_RUNTIME_TYPING_USER_WORDS_FIXTURE_H_

#include <cstdint>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "runtime/typing/user_words.h"
#include "tests/support/temporary_folder.h"

namespace kinglet::typing {

using ListedWords = std::vector<std::pair<std::string, uint32_t>>;

inline ListedWords ListOf(const UserWords& words) {
  ListedWords listed;
  for (const uint32_t number : words.order()) {
    if (words.uses(number) > 0) listed.emplace_back(words.text(number), words.uses(number));
  }
  return listed;
}

inline std::string FileBytes(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace kinglet::typing

#endif  // KINGLET_TESTS_RUNTIME_TYPING_USER_WORDS_FIXTURE_H_
