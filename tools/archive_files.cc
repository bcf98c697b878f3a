#include "tools/archive_files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <utility>

#include "tools/interrupt.h"
#include "tools/run_options.h"

namespace kinglet {
namespace {

constexpr std::string_view kModelStart = "KGL1";
constexpr size_t kReadBytes = size_t{1} << 16;

// A descriptor that is closed, unless it is standard input.
class OpenedInput {
 public:
  explicit OpenedInput(int descriptor) : descriptor_(descriptor) {}
  OpenedInput(const OpenedInput&) = delete;
  OpenedInput& operator=(const OpenedInput&) = delete;
  ~OpenedInput() {
    if (descriptor_ > STDIN_FILENO) ::close(descriptor_);
  }
  int get() const { return descriptor_; }

 private:
  int descriptor_;
};

bool LooksLikeModel(const std::string& path) {
  if (path.ends_with(".kgl")) return true;
  struct stat facts {};
  if (path == "-" || ::stat(path.c_str(), &facts) != 0 || !S_ISREG(facts.st_mode)) return false;
  const OpenedInput input(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  std::array<char, kModelStart.size()> start{};
  return input.get() >= 0 &&
         ::read(input.get(), start.data(), start.size()) == ssize_t{start.size()} &&
         std::string_view(start.data(), start.size()) == kModelStart;
}

}  // namespace

void AddArchiveOptions(Arguments& arguments, ArchiveOptions& options) {
  arguments
      .Add("FILES", options.operands,
           "the model file, unless --model or KINGLET_MODEL names it, then the inputs; without "
           "inputs, or for -, standard input")
      .Placeholder(kFileOrStandardInput);
  arguments.Add("--model", options.model, "the model file; all operands are then inputs")
      .Placeholder("M.kgl");
  arguments.Add("-o,--output", options.output, "the result of one input; - is standard output")
      .Placeholder(kFileOrStandardInput);
  AddThreads(arguments, options.threads);
  arguments.AddFlag("--force", options.force, "replace results that exist");
  arguments.AddFlag("--json", options.json, "print JSON Lines");
}

Result<ArchiveOperands> ReadArchiveOperands(const ArchiveOptions& options) {
  ArchiveOperands operands;
  operands.files = options.operands;
  const char* const from_environment = std::getenv("KINGLET_MODEL");
  if (!options.model.empty()) {
    operands.model = options.model;
    operands.model_from = "--model";
  } else if (!operands.files.empty() && LooksLikeModel(operands.files.front())) {
    operands.model = operands.files.front();
    operands.model_from = "the first operand";
    operands.files.erase(operands.files.begin());
  } else if (from_environment != nullptr) {
    operands.model = from_environment;
    operands.model_from = "KINGLET_MODEL";
  }
  if (operands.files.empty()) operands.files = {"-"};
  if (operands.files.size() > 1 && !options.output.empty()) {
    return Status::Refusal(
        KINGLET_INVALID_ARGUMENT, "usage", "-o", "one input",
        std::to_string(operands.files.size()) + " (without -o each input has a result of its own)");
  }
  return operands;
}

Result<std::shared_ptr<const Model>> OpenArchiveModel(const ArchiveOperands& operands) {
  if (operands.model.empty()) {
    return Status::Refusal(KINGLET_NOT_FOUND, "archive", "model",
                           "a model file as the first operand, --model M.kgl or KINGLET_MODEL",
                           "none of them (`kinglet decompress --list ARCHIVE` prints the digest of "
                           "the model that made an archive)");
  }
  return Model::Open(operands.model, {});
}

Status ReadAllBytes(const std::string& path, const BytesSink& sink) {
  const bool is_standard = path == "-";
  const OpenedInput input(is_standard ? STDIN_FILENO : ::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  const auto failed = [&](const std::string& expected) {
    const int reason = errno;
    return Status::Refusal(reason == ENOENT ? KINGLET_NOT_FOUND : KINGLET_IO_ERROR,
                           is_standard ? std::string(kStandardInput) : path, "input", expected,
                           std::strerror(reason));
  };
  if (input.get() < 0) return failed("a file that can be read");
  std::vector<std::byte> piece(kReadBytes);
  while (true) {
    KINGLET_RETURN_IF_ERROR(WaitForInput(input.get()));
    const ssize_t count = ::read(input.get(), piece.data(), piece.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return failed("bytes");
    if (count == 0) return Status();
    KINGLET_RETURN_IF_ERROR(sink(std::span(piece).first(static_cast<size_t>(count))));
  }
}

Result<ArchiveOutput> ArchiveOutput::Open(const std::string& path, bool force, Console& console) {
  if (path.empty()) return ArchiveOutput(nullptr);
  if (path == "-") return ArchiveOutput(&console.out);
  std::error_code error;
  if (!force && std::filesystem::exists(std::filesystem::symlink_status(path, error))) {
    return Status::Refusal(KINGLET_INVALID_ARGUMENT, path, "output", "the name of a new file",
                           "a file that exists (--force replaces it)");
  }
  ArchiveOutput output(nullptr);
  KINGLET_ASSIGN_OR_RETURN(output.file_, NewFile::Create(path));
  return output;
}

Status ArchiveOutput::Write(std::span<const std::byte> bytes) {
  if (file_) return file_->Append(bytes);
  if (out_ == nullptr) return Status();
  out_->Write({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  return out_->Flush();
}

Status ArchiveOutput::Commit() {
  if (!file_) return Status();
  KINGLET_RETURN_IF_ERROR(file_->Seal());
  return file_->Commit();
}

}  // namespace kinglet
