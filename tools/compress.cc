// kinglet compress: files and pipes of any bytes to archives, with a model's predictions.
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "runtime/compress/archive_writer.h"
#include "tools/archive_files.h"
#include "tools/commands.h"
#include "tools/interrupt.h"
#include "tools/json_lines.h"
#include "tools/token_text.h"

namespace kinglet {
namespace {

struct CompressOptions {
  ArchiveOptions archive;
  uint32_t block = compress::kDefaultBlock;
  bool fast = false;
};

// Writes what happened to one file.
void ReportCompressed(const std::string& input, const std::string& output,
                      const PassedBytes& passed, const ArchiveOptions& options, Console& console) {
  const auto [length, size] = passed;
  const double bits =
      length == 0 ? 0 : 8.0 * static_cast<double>(size) / static_cast<double>(length);
  if (options.json) {
    JsonLine line;
    line.Key("file").Text(input).Key("archive").Text(output);
    line.Key("length").Integer(length).Key("size").Integer(size).Key("bits_per_byte").Number(bits);
    console.out.Write(line.Finish());
  } else {
    console.out.Write(DisplayText(output) + ": " + Grouped(length) + " to " + Grouped(size) +
                      " bytes\n");
  }
}

Status CompressFile(const std::string& input, const std::shared_ptr<const Model>& model,
                    const CompressOptions& options, Console& console) {
  const ArchiveOptions& common = options.archive;
  std::string path = common.output;
  if (path.empty()) path = input == "-" ? "-" : input + kArchiveEnding;
  if (path == "-" && console.out_is_terminal) {
    return Status::Refusal(KINGLET_INVALID_ARGUMENT, "compress", "standard output",
                           "a file or a pipe", "a terminal (name the archive with -o)");
  }
  KINGLET_ASSIGN_OR_RETURN(
      auto writer,
      compress::ArchiveWriter::Create(model, {.block_size = options.block,
                                              .threads = static_cast<uint32_t>(common.threads),
                                              .fast = options.fast,
                                              .stop = Interrupted}));
  KINGLET_ASSIGN_OR_RETURN(ArchiveOutput output, ArchiveOutput::Open(path, common.force, console));
  KINGLET_ASSIGN_OR_RETURN(const PassedBytes passed, PassThrough(input, writer, output));
  KINGLET_RETURN_IF_ERROR(output.Commit());
  if (path != "-") ReportCompressed(input, path, passed, common, console);
  return Status();
}

Status CompressFiles(const CompressOptions& options, Console& console) {
  KINGLET_ASSIGN_OR_RETURN(const ArchiveOperands operands, ReadArchiveOperands(options.archive));
  KINGLET_ASSIGN_OR_RETURN(const auto model, OpenArchiveModel(operands));
  NoteInterrupts();
  for (const std::string& file : operands.files) {
    KINGLET_RETURN_IF_ERROR(CompressFile(file, model, options, console));
  }
  return Status();
}

}  // namespace

Command AddCompress(Arguments& program) {
  const auto options = std::make_shared<CompressOptions>();
  Arguments compress = program.AddSubcommand(
      "compress", "Compress files of any bytes with a model's predictions; they stay");
  AddArchiveOptions(compress, options->archive);
  compress.Add("--block", options->block, "bytes of an independent block")
      .Between(compress::kLeastBlock, compress::kMostBlock)
      .Placeholder("BYTES")
      .ShowDefault();
  compress.AddFlag("--fast", options->fast, "mix less: faster, and a little larger");
  compress.Footer(
      "FILE becomes FILE.kz. To restore it takes the same model: its digest is in the archive.\n"
      "The bytes depend on neither the machine nor --threads.\n\n"
      "Example:\n  kinglet compress model.kgl notes.txt");
  return {compress, [options] { return ReadArchiveOperands(options->archive).status(); },
          [options](Console& console) { return CompressFiles(*options, console); }};
}

}  // namespace kinglet
