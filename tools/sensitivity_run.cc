#include "tools/sensitivity_run.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "converters/convert.h"
#include "converters/convert_options.h"
#include "converters/output_path.h"
#include "converters/planning/sensitivity.h"
#include "converters/thread_shares.h"
#include "format/digest.h"
#include "format/input_file.h"
#include "format/limits.h"
#include "tools/score_protocol.h"
#include "tools/sensitivity_file.h"
#include "tools/text_tokens.h"

namespace kinglet {
namespace {

using SteadyClock = std::chrono::steady_clock;

// Converts into a file next to the output, removes the file and returns the open model.
Result<std::shared_ptr<const ModelFile>> ConvertedNextTo(ConvertOptions convert,
                                                         const std::string& output,
                                                         ConvertSummary& summary) {
  convert.output = output + ".unfinished.kgl";
  KINGLET_ASSIGN_OR_RETURN(summary, Convert(convert));
  Result<std::shared_ptr<ModelFile>> file = ModelFile::Open(convert.output);
  std::error_code ignored;
  std::filesystem::remove(convert.output, ignored);
  if (!file.ok()) return file.status();
  return std::shared_ptr<const ModelFile>(*std::move(file));
}

// A run: the model, the text, and the changes in the order of the file.
class SensitivityRun {
 public:
  SensitivityRun(const SensitivityRequest& request, Progress& progress)
      : command_(request), progress_(progress) {}

  Result<SensitivityTotals> Run() {
    KINGLET_RETURN_IF_ERROR(CheckOutputPath(
        "sensitivity", command_.output,
        {&command_.convert.checkpoint, &command_.text, &command_.ids, &command_.convert.vocabulary,
         &command_.convert.recipe, &command_.convert.calibration_text, &command_.convert.config}));
    KINGLET_RETURN_IF_ERROR(Prepare());
    std::vector<std::string> lines;
    KINGLET_ASSIGN_OR_RETURN(LineWriter writer,
                             LineWriter::Open(command_.output, kSensitivityBegin, lines));
    KINGLET_RETURN_IF_ERROR(CheckLines(lines));
    if (lines.empty()) KINGLET_RETURN_IF_ERROR(writer.Append(FirstLine(file_)));
    const size_t first = lines.empty() ? 0 : lines.size() - 1;
    const SteadyClock::time_point start = SteadyClock::now();
    KINGLET_RETURN_IF_ERROR(MeasureFrom(first, writer));
    SensitivityTotals totals = {groups_.size(), trials_.size(), first, not_run_, file_.tokens};
    totals.seconds = std::chrono::duration<double>(SteadyClock::now() - start).count();
    totals.seconds_apart = (conversion_seconds_ + baseline_seconds_) *
                           static_cast<double>(trials_.size() - first) /
                           static_cast<double>(command_.threads);
    return totals;
  }

 private:
  // Prepares everything that the first line records.
  Status Prepare() {
    progress_.Say("converting " + command_.convert.checkpoint);
    const ConvertOptions convert = InFloats(command_.convert);
    ConvertSummary summary;
    const SteadyClock::time_point start = SteadyClock::now();
    KINGLET_ASSIGN_OR_RETURN(const auto model, ConvertedNextTo(convert, command_.output, summary));
    conversion_seconds_ = std::chrono::duration<double>(SteadyClock::now() - start).count();
    sensitivity_.emplace(model, command_.convert.scale_by);
    KINGLET_ASSIGN_OR_RETURN(tokens_, OpenTextTokens(command_.text, command_.ids, model));
    if (command_.most_tokens < UINT64_MAX) KINGLET_RETURN_IF_ERROR(KeepBeginning());
    std::vector<std::string> names = summary.quantisable;
    names.insert(names.end(), summary.prunable.begin(), summary.prunable.end());
    KINGLET_ASSIGN_OR_RETURN(groups_, sensitivity_->Groups(command_.tensors, names));
    progress_.Say("the loss of the unchanged model");
    const SteadyClock::time_point begun = SteadyClock::now();
    KINGLET_RETURN_IF_ERROR(sensitivity_->MeasureBaseline(tokens_, groups_, {}));
    baseline_seconds_ = std::chrono::duration<double>(SteadyClock::now() - begun).count();
    const TextLoss& baseline = sensitivity_->baseline();
    if (!std::isfinite(baseline.nll)) {
      return Status::Refusal(KINGLET_INVALID_ARGUMENT, "sensitivity", "text",
                             "one that the model gives a probability", "one of probability 0");
    }
    file_.convert = command_.convert;
    file_.digest = model->digest();
    file_.text = command_.text.empty() ? command_.ids : command_.text;
    KINGLET_RETURN_IF_ERROR(PrepareDigests());
    KINGLET_ASSIGN_OR_RETURN(const auto running, Model::FromFile(model, ModelOptions{}));
    file_.protocol = StreamProtocol(*running, {}, 0, "reference");
    file_.tokens = baseline.tokens;
    file_.scored = baseline.scored;
    file_.bin_counts = baseline.bin_counts;
    SensitivityRecord& record = file_.record;
    record.nll = baseline.nll;
    record.operations = sensitivity_->operations();
    record.bytes = model->file_size();
    for (const TensorGroup& group : groups_) {
      MeasuredGroup measured = {group.name,
                                {},
                                sensitivity_->EntriesOf(group),
                                sensitivity_->NonzerosOf(group),
                                sensitivity_->BytesOf(group)};
      for (const TensorId id : group.tensors) {
        measured.tensors.push_back(model->tensors()[id].name);
      }
      record.groups.push_back(std::move(measured));
    }
    for (size_t g = 0; g < groups_.size(); ++g) {
      const Shape& shape = model->tensors()[groups_[g].tensors.front()].shape;
      for (const TensorChange& change : command_.changes(shape)) {
        if (sensitivity_->Takes(groups_[g], change)) trials_.push_back({g, change});
      }
    }
    return PrepareRest(summary);
  }

  Status KeepBeginning() {
    const auto kept = std::make_shared<std::vector<uint32_t>>();
    KINGLET_RETURN_IF_ERROR(tokens_([&](std::span<const uint32_t> piece) {
      const uint64_t room = command_.most_tokens - kept->size();
      kept->insert(
          kept->end(), piece.begin(),
          piece.begin() + static_cast<std::ptrdiff_t>(std::min<uint64_t>(room, piece.size())));
      return Status();
    }));
    tokens_ = [kept](const auto& take) { return take(*kept); };
    return {};
  }

  Status PrepareDigests() {
    DigestStream ids;
    KINGLET_RETURN_IF_ERROR(tokens_([&ids](std::span<const uint32_t> piece) {
      ids.Add(std::as_bytes(piece));
      return Status();
    }));
    file_.digests = {{"text", HexText(ids.Finish())}};
    for (const auto& [of, path] : {std::pair("calibrate", command_.convert.calibration_text),
                                   std::pair("recipe", command_.convert.recipe)}) {
      if (path.empty()) continue;
      KINGLET_ASSIGN_OR_RETURN(const InputFile file, InputFile::Open(path));
      KINGLET_ASSIGN_OR_RETURN(const std::string digest, DigestOf(file));
      file_.digests.emplace_back(of, digest);
    }
    return {};
  }

  // Opens the model whose other tensors, and activations, have rest_bits.
  Status PrepareRest(const ConvertSummary& summary) {
    SensitivityRecord& record = file_.record;
    record.rest_bits = command_.rest_bits;
    record.rest_nll = record.nll;
    record.rest_bytes = record.bytes;
    ConvertOptions convert = command_.convert;
    convert.bits = record.rest_bits;
    ConvertSummary of_rest;
    progress_.Say("converting to " + std::to_string(record.rest_bits) + " bits");
    KINGLET_ASSIGN_OR_RETURN(const auto rest, ConvertedNextTo(convert, command_.output, of_rest));
    record.rest_bytes = rest->file_size();
    for (const TensorGroup& group : groups_) {
      KINGLET_ASSIGN_OR_RETURN(const uint64_t bytes,
                               sensitivity_->BytesAtBits(group, record.rest_bits));
      record.rest_bytes -= std::min(record.rest_bytes, bytes);
    }
    const auto in_group = [&record](const std::string& name) {
      return std::any_of(record.groups.begin(), record.groups.end(), [&](const MeasuredGroup& g) {
        return std::find(g.tensors.begin(), g.tensors.end(), name) != g.tensors.end();
      });
    };
    for (const std::string& name : summary.quantisable) {
      if (!in_group(name)) record.rest.push_back(name);
    }
    if (command_.convert.calibration_text.empty()) return {};
    KINGLET_ASSIGN_OR_RETURN(const auto model, Model::FromFile(rest, ModelOptions{}));
    KINGLET_ASSIGN_OR_RETURN(const TextLoss loss, LossOfText(model, tokens_, {}));
    record.rest_nll = loss.nll;
    return {};
  }

  // Refuses unless the lines of the existing file are the beginning of this run's.
  Status CheckLines(const std::vector<std::string>& lines) const {
    const auto refuse = [this](size_t line) {
      return Status::Refusal(KINGLET_INVALID_ARGUMENT, "sensitivity",
                             command_.output + ", line " + std::to_string(line + 1),
                             "this run's, to continue it, or another -o", "another run's");
    };
    if (lines.empty()) return {};
    if (lines[0] + "\n" != FirstLine(file_)) return refuse(0);
    if (lines.size() > trials_.size() + 1) return refuse(trials_.size() + 1);
    KINGLET_ASSIGN_OR_RETURN(const SensitivityFile read, ReadSensitivityFile(command_.output));
    for (size_t i = 0; i < read.record.changes.size(); ++i) {
      const MeasuredChange& change = read.record.changes[i];
      if (change.group != trials_[i].group || change.change != trials_[i].change) {
        return refuse(i + 1);
      }
    }
    return {};
  }

  // Measures the changes from number `first` on, several at a time, and writes them in their order.
  Status MeasureFrom(size_t first, LineWriter& writer) {
    std::vector<std::optional<MeasuredChange>> done(trials_.size());
    std::atomic<size_t> next{first};
    size_t written = first;
    Status failed;
    std::mutex mutex;
    const SteadyClock::time_point start = SteadyClock::now();
    const auto finish = [&](size_t index, Result<Measurement> found) {
      const std::lock_guard lock(mutex);
      if (!found.ok()) {
        if (failed.ok()) failed = found.status();
        return;
      }
      if (!found->ran) ++not_run_;
      done[index] = MeasuredChange{trials_[index].group, trials_[index].change, *found};
      for (; failed.ok() && written < done.size() && done[written]; ++written) {
        failed =
            writer.Append(ChangeLine(file_.record.groups[done[written]->group], *done[written]));
      }
      SayDone(index, written - first, trials_.size() - first, start);
    };
    RunShares(std::min(command_.threads, std::max<size_t>(trials_.size() - first, 1)), [&](size_t) {
      for (;;) {
        const size_t index = next++;
        {
          const std::lock_guard lock(mutex);
          if (index >= trials_.size() || !failed.ok()) return;
        }
        finish(index, sensitivity_->Measure(groups_[trials_[index].group], trials_[index].change,
                                            tokens_, {}));
      }
    });
    return failed;
  }

  void SayDone(size_t index, size_t done, size_t all, SteadyClock::time_point start) {
    const double seconds = std::chrono::duration<double>(SteadyClock::now() - start).count();
    const double seconds_left =
        done == 0 ? 0 : seconds / static_cast<double>(done) * static_cast<double>(all - done);
    char time[40];
    std::snprintf(time, sizeof time, "%.0f s left", seconds_left);
    progress_.Say(std::to_string(done) + " of " + std::to_string(all) + " changes, " +
                  groups_[trials_[index].group].name + " at " + ChangeText(trials_[index].change) +
                  ", " + (done == 0 ? "" : time));
  }

  const SensitivityRequest& command_;
  Progress& progress_;
  std::optional<Sensitivity> sensitivity_;
  TokenInput tokens_;
  std::vector<TensorGroup> groups_;
  std::vector<Trial> trials_;
  SensitivityFile file_;
  double conversion_seconds_ = 0, baseline_seconds_ = 0;
  size_t not_run_ = 0;
};

}  // namespace

Result<SensitivityTotals> RunSensitivities(const SensitivityRequest& request, Progress& progress) {
  return SensitivityRun(request, progress).Run();
}

}  // namespace kinglet
