#include "tests/tools/run_command.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <sstream>

#include "format/write_file.h"
#include "runtime/session.h"

namespace kinglet {

std::vector<std::string> Outcome::Lines() const {
  std::vector<std::string> lines;
  std::istringstream stream(out);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

std::vector<nlohmann::ordered_json> Outcome::Json() const {
  std::vector<nlohmann::ordered_json> values;
  for (const std::string& line : Lines()) {
    values.push_back(nlohmann::ordered_json::parse(line, nullptr, false));
    EXPECT_FALSE(values.back().is_discarded()) << line;
  }
  return values;
}

bool Outcome::IsRefusal() const {
  return out.empty() && error.starts_with("kinglet: ") && error.find('\n') == error.size() - 1 &&
         error.find(": expected ") != std::string::npos &&
         error.find(", found ") != std::string::npos;
}

CommandFolder::CommandFolder() {
  std::string name = (std::filesystem::temp_directory_path() / "kinglet-command-XXXXXX").string();
  EXPECT_NE(::mkdtemp(name.data()), nullptr);
  folder_ = name;
}

CommandFolder::~CommandFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
}

Outcome CommandFolder::Run(const std::string& arguments, const std::string& input) const {
  return RunShell("kinglet " + arguments, input);
}

Outcome CommandFolder::RunShell(const std::string& line, const std::string& input) const {
  Write(".input", input);
  const std::string programs = std::filesystem::path(KINGLET_COMMAND).parent_path().string();
  const std::string script = "cd '" + folder_.string() + "' && export PATH='" + programs +
                             "':\"$PATH\" && { " + line + "; } < .input > .output 2> .errors";
  const int status = std::system(script.c_str());  // NOLINT(cert-env33-c): the shell is the point
  Outcome outcome;
  outcome.exit_status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  outcome.out = Read(".output");
  outcome.error = Read(".errors");
  return outcome;
}

void CommandFolder::Write(const std::string& name, const std::string& contents) const {
  std::ofstream file(folder_ / name, std::ios::binary);
  file << contents;
  EXPECT_TRUE(file.flush().good()) << name;
}

std::string CommandFolder::Read(const std::string& name) const {
  std::ifstream file(folder_ / name, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

void CommandFolder::WriteModel(const std::string& name, const ModelDraft& draft) const {
  const auto bytes = SerialiseModel(draft);
  ASSERT_TRUE(bytes.ok()) << bytes.status().message();
  const Status written = WriteFileAtomically(*bytes, Path(name));
  ASSERT_TRUE(written.ok()) << written.message();
}

std::string IdText(const std::vector<uint32_t>& ids) {
  std::string text;
  for (const uint32_t id : ids) text += std::to_string(id) + " ";
  return text;
}

std::vector<double> LibraryScores(const std::string& model_path, const std::string& backend,
                                  const std::vector<uint32_t>& ids) {
  ModelOptions options;
  options.backend = backend;
  const auto model = Model::Open(model_path, options);
  EXPECT_TRUE(model.ok()) << model.status().message();
  if (!model.ok()) return {};
  const auto session = Session::Create(*model);
  EXPECT_TRUE(session.ok()) << session.status().message();
  if (!session.ok()) return {};
  std::vector<double> scores;
  for (size_t i = 1; i < ids.size(); ++i) {
    EXPECT_TRUE((*session)->StepToken(ids[i - 1]).ok());
    const auto score = (*session)->LogProbability(ids[i]);
    EXPECT_TRUE(score.ok());
    scores.push_back(score.ok() ? *score : 0.0);
  }
  return scores;
}

}  // namespace kinglet
