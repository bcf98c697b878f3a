// Splits an error message "WHAT: WHERE: expected X, found Y" into its parts, for JSON output.
#ifndef KINGLET_TOOLS_REFUSAL_PARTS_H_
#define KINGLET_TOOLS_REFUSAL_PARTS_H_

#include <string>
#include <string_view>

namespace kinglet {

struct RefusalParts {
  std::string where;  // the whole message if it has another form
  std::string expected;
  std::string found;
};

// `what` is the known first part; it is removed by value because a path may contain ": ".
inline RefusalParts SplitRefusal(std::string_view message, std::string_view what) {
  constexpr std::string_view kExpected = ": expected ", kFound = ", found ";
  if (message.starts_with(what) && message.substr(what.size()).starts_with(": ")) {
    message.remove_prefix(what.size() + 2);
  }
  const size_t expected = message.find(kExpected);
  if (expected == std::string_view::npos) return {std::string(message), "", ""};
  const std::string_view rest = message.substr(expected + kExpected.size());
  const size_t found = rest.find(kFound);
  if (found == std::string_view::npos) return {std::string(message), "", ""};
  return {std::string(message.substr(0, expected)), std::string(rest.substr(0, found)),
          std::string(rest.substr(found + kFound.size()))};
}

}  // namespace kinglet

#endif  // KINGLET_TOOLS_REFUSAL_PARTS_H_
