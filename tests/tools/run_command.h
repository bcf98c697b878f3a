// Runs the built command in a folder of its own, through the shell as its users do.
#ifndef KINGLET_TESTS_TOOLS_RUN_COMMAND_H_
#define KINGLET_TESTS_TOOLS_RUN_COMMAND_H_

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/support/model_builder.h"

namespace kinglet {

struct Outcome {
  int exit_status = -1;
  std::string out, error;

  std::vector<std::string> Lines() const;  // of `out`
  // Each line of `out` as JSON; key order is kept. A line that is not JSON becomes a discarded
  // value.
  std::vector<nlohmann::ordered_json> Json() const;
  // Whether standard output is empty and standard error is one line that starts with "kinglet: "
  // and has the form of a refusal.
  bool IsRefusal() const;
};

class CommandFolder {
 public:
  CommandFolder();
  CommandFolder(const CommandFolder&) = delete;
  CommandFolder& operator=(const CommandFolder&) = delete;
  ~CommandFolder();

  // Runs the command in the folder. `arguments` is shell text that follows the command's name
  // ("score m.kgl --ids ids.txt > /dev/full"); `input` is standard input.
  Outcome Run(const std::string& arguments, const std::string& input = "") const;
  // Runs a line of shell in which "kinglet" is the command.
  Outcome RunShell(const std::string& line, const std::string& input = "") const;

  void Write(const std::string& name, const std::string& contents) const;
  std::string Read(const std::string& name) const;
  void WriteModel(const std::string& name, const ModelDraft& draft) const;
  std::string Path(const std::string& name) const { return (folder_ / name).string(); }

 private:
  std::filesystem::path folder_;
};

// Ids separated by spaces.
std::string IdText(const std::vector<uint32_t>& ids);
// The library's log p(ids[i]) for i from 1, from a fresh stream.
std::vector<double> LibraryScores(const std::string& model_path, const std::string& backend,
                                  const std::vector<uint32_t>& ids);

}  // namespace kinglet

#endif  // KINGLET_TESTS_TOOLS_RUN_COMMAND_H_
