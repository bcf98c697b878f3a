#include "converters/output_path.h"

#include <cstring>
#include <filesystem>
#include <system_error>

#include "format/system.h"

namespace kinglet {

namespace fs = std::filesystem;

Status CheckOutputPath(const std::string& what, const std::string& output,
                       const std::vector<const std::string*>& inputs) {
  const auto refuse = [&what](StatusCode code, const std::string& expected,
                              const std::string& found) {
    return Status::Refusal(code, what, "output", expected, found);
  };
  if (output.empty()) return refuse(KINGLET_INVALID_ARGUMENT, "a path", "none");
  std::error_code error;
  const fs::file_status status = fs::status(output, error);
  if (fs::exists(status) && !fs::is_regular_file(status)) {
    return refuse(KINGLET_INVALID_ARGUMENT, "a path for a file",
                  output + (fs::is_directory(status) ? ", a folder" : ", no regular file"));
  }
  const fs::path folder = fs::absolute(output, error).parent_path();
  if (!fs::is_directory(folder, error)) {
    return refuse(KINGLET_NOT_FOUND, "a folder that exists", folder.string() + ", which does not");
  }
  // A symbolic link stays and its target is replaced, so the target's folder must be writable.
  const fs::path written = fs::weakly_canonical(fs::absolute(output, error), error).parent_path();
  const int reason = written.empty() ? 0 : system::MayWriteTo(written.string());
  if (reason != 0) {
    return refuse(KINGLET_IO_ERROR, "a folder that can be written to",
                  written.string() + ", " + std::strerror(reason));
  }
  for (const std::string* input : inputs) {
    if (!input->empty() && fs::equivalent(*input, output, error)) {
      return refuse(KINGLET_INVALID_ARGUMENT, "a path that is not an input", output);
    }
  }
  return {};
}

}  // namespace kinglet
