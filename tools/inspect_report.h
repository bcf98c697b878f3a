// The report of `kinglet inspect` about a model file, for programs and for people.
#ifndef KINGLET_TOOLS_INSPECT_REPORT_H_
#define KINGLET_TOOLS_INSPECT_REPORT_H_

#include <string>
#include <utility>
#include <vector>

#include "format/model_file.h"
#include "tools/model_facts.h"

namespace kinglet {

// The line that `inspect --json` prints.
std::string InspectJson(const ModelFile& file);

// Names and values for people: digest, family, source, vocabulary, parameters.
std::vector<std::pair<const char*, std::string>> FileFacts(const ModelFile& file,
                                                           const ModelFacts& facts);

// A line for people about the structure and size of a block.
std::string BlockLine(const Block& block);

}  // namespace kinglet

#endif  // KINGLET_TOOLS_INSPECT_REPORT_H_
