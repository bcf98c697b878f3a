// kinglet decompress: archives back to the bytes that they were made of.
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "format/digest.h"
#include "format/overloaded.h"
#include "runtime/compress/archive_reader.h"
#include "runtime/compress/archive_scanner.h"
#include "tools/archive_files.h"
#include "tools/commands.h"
#include "tools/interrupt.h"
#include "tools/json_lines.h"
#include "tools/token_text.h"

namespace kinglet {
namespace {

struct DecompressOptions {
  ArchiveOptions archive;
  std::optional<uint64_t> limit;
  bool test = false, list = false, salvage = false;
};

Status CheckDecompressOptions(const DecompressOptions& options) {
  const int modes = (options.test ? 1 : 0) + (options.list ? 1 : 0) + (options.salvage ? 1 : 0);
  if (modes > 1) {
    return Status::Refusal(KINGLET_INVALID_ARGUMENT, "usage", "options",
                           "one of --test, --list and --salvage", std::to_string(modes));
  }
  return ReadArchiveOperands(options.archive).status();
}

// What the parts of an archive tell without its text.
struct ArchiveFacts {
  compress::ArchiveHeader header;
  uint64_t length = 0, size = 0, blocks = 0, raw_blocks = 0;
};

Status DamagedPart(const std::string& where) {
  return Status::Refusal(KINGLET_CORRUPT, "archive", where, "the bytes that were written",
                         "damaged or missing bytes (--test names all of them)");
}

Status AddFacts(const compress::ScannedPart& part, ArchiveFacts& facts) {
  return std::visit(Overloaded{[&](const compress::ArchiveHeader& header) {
                                 facts.header = header;
                                 return Status();
                               },
                               [&](const compress::ScannedBlock& block) {
                                 facts.length += block.header.length;
                                 facts.blocks += 1;
                                 facts.raw_blocks +=
                                     block.header.kind == compress::BlockKind::kRaw ? 1 : 0;
                                 return Status();
                               },
                               [](const compress::ScannedGap& gap) {
                                 return DamagedPart("block " + std::to_string(gap.first + 1));
                               },
                               [&](const compress::ArchiveEnd& end) {
                                 return end.length == facts.length ? Status() : DamagedPart("end");
                               }},
                    part);
}

Result<ArchiveFacts> ReadFacts(const std::string& path) {
  ArchiveFacts facts;
  compress::ArchiveScanner scanner;
  const auto take = [&]() -> Status {
    while (true) {
      KINGLET_ASSIGN_OR_RETURN(const auto part, scanner.Next());
      if (!part) return Status();
      KINGLET_RETURN_IF_ERROR(AddFacts(*part, facts));
    }
  };
  const auto add = [&](std::span<const std::byte> piece) {
    facts.size += piece.size();
    scanner.Add(piece);
    return take();
  };
  KINGLET_RETURN_IF_ERROR(ReadAllBytes(path, add));
  scanner.EndOfInput();
  KINGLET_RETURN_IF_ERROR(take());
  return facts;
}

Status ListArchive(const std::string& path, const DecompressOptions& options, Console& console) {
  const Result<ArchiveFacts> read = ReadFacts(path);
  if (!read.ok()) return Status(read.status().code(), path + ": " + read.status().message());
  const ArchiveFacts& facts = *read;
  if (options.archive.json) {
    JsonLine line;
    line.Key("archive").Text(path).Key("length").Integer(facts.length);
    line.Key("size").Integer(facts.size).Key("blocks").Integer(facts.blocks);
    line.Key("raw_blocks").Integer(facts.raw_blocks);
    line.Key("block_size").Integer(facts.header.block_size);
    line.Key("model").Text(HexText(facts.header.model));
    console.out.Write(line.Finish());
  } else {
    console.out.Write(
        DisplayText(path) + ": " + Grouped(facts.length) + " bytes in " + Grouped(facts.size) +
        ", " + Grouped(facts.blocks) + (facts.blocks == 1 ? " block of " : " blocks of ") +
        Grouped(facts.header.block_size) + ", model " + HexText(facts.header.model) + "\n");
  }
  return console.out.status();
}

// The name of an archive's text.
Result<std::string> TextPath(const std::string& input, const DecompressOptions& options) {
  if (options.test) return std::string();
  if (!options.archive.output.empty() || input == "-") {
    return options.archive.output.empty() ? std::string("-") : options.archive.output;
  }
  const std::string ending = kArchiveEnding;
  if (input.size() > ending.size() && input.ends_with(ending)) {
    return input.substr(0, input.size() - ending.size());
  }
  return Status::Refusal(KINGLET_INVALID_ARGUMENT, input, "name", "one that ends with .kz",
                         "another (name the result with -o)");
}

Status RestoreFile(const std::string& input, const ArchiveOperands& operands,
                   const std::shared_ptr<const Model>& model, const DecompressOptions& options,
                   Console& console) {
  const ArchiveOptions& common = options.archive;
  KINGLET_ASSIGN_OR_RETURN(const std::string path, TextPath(input, options));
  compress::ArchiveReader::Options reading;
  reading.threads = static_cast<uint32_t>(common.threads);
  if (options.limit) reading.limit = *options.limit;
  reading.salvage = options.salvage || options.test;
  reading.stop = Interrupted;
  KINGLET_ASSIGN_OR_RETURN(auto reader, compress::ArchiveReader::Create(model, reading));
  KINGLET_ASSIGN_OR_RETURN(ArchiveOutput output, ArchiveOutput::Open(path, common.force, console));
  const Result<PassedBytes> passed = PassThrough(input, reader, output);
  if (const Status status = passed.status(); !status.ok()) {
    const std::string looked = status.code() == KINGLET_MISMATCH
                                   ? " in " + operands.model + ", which " + operands.model_from +
                                         " names (name the other model with --model)"
                                   : "";
    return Status(status.code(), input + ": " + status.message() + looked);
  }
  KINGLET_RETURN_IF_ERROR(output.Commit());
  for (const std::string& damage : reader.damages()) {
    PrintError(Status(KINGLET_CORRUPT, input + ": " + damage));
  }
  if (options.test && reader.damages().empty()) {
    if (common.json) {
      JsonLine line;
      line.Key("archive")
          .Text(input)
          .Key("length")
          .Integer(passed->written)
          .Key("ok")
          .Boolean(true);
      console.out.Write(line.Finish());
    } else {
      console.out.Write(DisplayText(input) + ": " + Grouped(passed->written) +
                        " bytes, undamaged\n");
    }
  }
  if (reader.damages().empty()) return Status();
  return Status::Refusal(KINGLET_CORRUPT, input, "archive", "no damaged bytes",
                         std::to_string(reader.damages().size()) + " damaged places" +
                             (options.test ? " (--salvage writes the other blocks)"
                                           : "; the other blocks were written"));
}

Status DecompressFiles(const DecompressOptions& options, Console& console) {
  KINGLET_ASSIGN_OR_RETURN(const ArchiveOperands operands, ReadArchiveOperands(options.archive));
  NoteInterrupts();
  if (options.list) {
    for (const std::string& file : operands.files) {
      KINGLET_RETURN_IF_ERROR(ListArchive(file, options, console));
    }
    return Status();
  }
  KINGLET_ASSIGN_OR_RETURN(const auto model, OpenArchiveModel(operands));
  for (const std::string& file : operands.files) {
    KINGLET_RETURN_IF_ERROR(RestoreFile(file, operands, model, options, console));
  }
  return Status();
}

}  // namespace

Command AddDecompress(Arguments& program) {
  const auto options = std::make_shared<DecompressOptions>();
  Arguments decompress = program.AddSubcommand(
      "decompress", "Restore the files that compress made archives of; the archives stay");
  AddArchiveOptions(decompress, options->archive);
  decompress.AddFlag("--test", options->test, "write nothing, and name every damaged block");
  decompress.AddFlag("--list", options->list,
                     "print length, size, blocks and model; takes no model");
  decompress.AddFlag("--salvage", options->salvage,
                     "write the undamaged blocks of a damaged archive; the status stays 1");
  decompress.Add("--limit", options->limit, "refuse texts of more bytes").Placeholder("BYTES");
  decompress.Footer(
      "FILE.kz becomes FILE. A file gets its name when it is complete and verified.\n\n"
      "Example:\n  kinglet decompress model.kgl notes.txt.kz");
  return {decompress, [options] { return CheckDecompressOptions(*options); },
          [options](Console& console) { return DecompressFiles(*options, console); }};
}

}  // namespace kinglet
