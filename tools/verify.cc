// kinglet verify: checks that a model file is undamaged and still computes its golden values.
#include <memory>
#include <string>

#include "converters/golden.h"
#include "format/input_file.h"
#include "format/message_text.h"
#include "tools/commands.h"
#include "tools/json_lines.h"
#include "tools/refusal_parts.h"
#include "tools/token_text.h"

namespace kinglet {
namespace {

struct VerifyOptions {
  std::string model;
  bool json = false;
};

struct VerifyFacts {
  std::string digest;
  GoldenReplay golden;  // no positions if the file has no golden values
};

Result<VerifyFacts> CheckModel(const std::string& path) {
  KINGLET_ASSIGN_OR_RETURN(const auto file, ModelFile::Open(path));
  VerifyFacts facts;
  facts.digest = file->digest();
  if (const auto& vector = file->description().golden) {
    const Result<GoldenReplay> replay =
        ReplayGolden(file, AsGoldenFile(*vector), vector->tolerance);
    if (!replay.ok()) return InFile(path, replay.status());
    facts.golden = *replay;
  }
  return facts;
}

std::string FailureLine(const std::string& path, const Status& status) {
  const RefusalParts parts = SplitRefusal(status.message(), path);
  JsonLine line;
  line.Key("ok").Boolean(false).Key("where").Text(parts.where);
  line.Key("expected").Text(parts.expected).Key("found").Text(parts.found);
  return line.Finish();
}

Status Verify(const VerifyOptions& options, Console& console) {
  const Result<VerifyFacts> checked = CheckModel(options.model);
  if (!checked.ok()) {
    if (options.json) console.out.Write(FailureLine(options.model, checked.status()));
    return checked.status();
  }
  const VerifyFacts& facts = *checked;
  if (options.json) {
    JsonLine line;
    line.Key("ok").Boolean(true).Key("digest").Text(facts.digest);
    line.Key("golden_values").Integer(facts.golden.positions);
    if (facts.golden.positions > 0)
      line.Key("largest_difference").Number(facts.golden.largest_difference);
    console.out.Write(line.Finish());
    return Status();
  }
  std::string text = DisplayText(options.model) + ": undamaged, digest " + facts.digest;
  text += facts.golden.positions == 0 ? "; no golden values"
                                      : "; " + Grouped(facts.golden.positions) +
                                            " golden values replayed, largest difference " +
                                            ShortNumber(facts.golden.largest_difference);
  console.out.Write(text + "\n");
  return Status();
}

}  // namespace

Command AddVerify(Arguments& program) {
  const auto options = std::make_shared<VerifyOptions>();
  Arguments verify =
      program.AddSubcommand("verify", "Check every byte of a model and replay its golden values");
  verify.Add("M.kgl", options->model, "model file").Required().Placeholder("");
  verify.AddFlag("--json", options->json, "print JSON Lines");
  verify.Footer("Example:\n  kinglet verify model.kgl && echo undamaged");
  return {verify, [] { return Status(); },
          [options](Console& console) { return Verify(*options, console); }};
}

}  // namespace kinglet
