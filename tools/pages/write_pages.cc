// Writes the manual pages and the completions of the kinglet command, in the folders under which
// they are installed: write_pages FOLDER.
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "tools/pages/completions.h"
#include "tools/pages/manual.h"
#include "tools/program.h"

namespace kinglet {
namespace {

bool WritePage(const std::filesystem::path& path, const std::string& text) {
  std::filesystem::create_directories(path.parent_path());
  std::FILE* file = std::fopen(path.c_str(), "wb");
  bool written = file != nullptr && std::fwrite(text.data(), 1, text.size(), file) == text.size();
  if (file != nullptr) written = std::fclose(file) == 0 && written;
  if (!written) std::fprintf(stderr, "%s: %s\n", path.c_str(), std::strerror(errno));
  return written;
}

bool WritePages(const std::filesystem::path& folder) {
  const Program program;
  const ArgumentFacts facts = program.arguments.Facts();
  std::vector<ArgumentFacts> commands;
  for (const Command& command : program.commands) commands.push_back(command.arguments.Facts());

  const std::filesystem::path manual = folder / "man" / "man1";
  bool written = WritePage(manual / "kinglet.1", ProgramManual(facts, commands, KINGLET_VERSION));
  for (const ArgumentFacts& command : commands) {
    written = WritePage(manual / ("kinglet-" + command.name + ".1"),
                        CommandManual(command, facts.name, KINGLET_VERSION)) &&
              written;
  }
  return WritePage(folder / "bash-completion/completions/kinglet",
                   BashCompletions(facts, commands)) &&
         WritePage(folder / "zsh/site-functions/_kinglet", ZshCompletions(facts, commands)) &&
         WritePage(folder / "fish/vendor_completions.d/kinglet.fish",
                   FishCompletions(facts, commands)) &&
         written;
}

}  // namespace
}  // namespace kinglet

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fputs("write_pages: expected FOLDER\n", stderr);
    return 2;
  }
  return kinglet::WritePages(argv[1]) ? 0 : 1;
}
