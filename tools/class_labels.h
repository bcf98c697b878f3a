// The classes that texts should have, and how often a model finds them.
#ifndef KINGLET_TOOLS_CLASS_LABELS_H_
#define KINGLET_TOOLS_CLASS_LABELS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "kinglet/status.h"
#include "tools/console.h"

namespace kinglet {

class ClassLabels {
 public:
  // A file with the number of a class, from 0, on each line. An empty path has no labels, and then
  // nothing is compared. Errors: those of reading the file; KINGLET_INVALID_ARGUMENT, naming the
  // line, for another text than a number below `classes`.
  static Result<ClassLabels> Read(const std::string& path, uint32_t classes);

  // The class found for the next text. KINGLET_INVALID_ARGUMENT if no label is left.
  Status Add(uint64_t found);
  // Prints the accuracy: with `json` as a line of output, otherwise on standard error.
  // KINGLET_INVALID_ARGUMENT if labels are left, or there were no texts.
  Status Finish(bool json, Console& console) const;

 private:
  Status WrongCount(const std::string& texts) const;

  std::string path_;
  std::vector<uint64_t> labels_;
  uint64_t texts_ = 0, right_ = 0;
};

}  // namespace kinglet

#endif  // KINGLET_TOOLS_CLASS_LABELS_H_
