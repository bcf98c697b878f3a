// kinglet frontier: techniques of compression at equal sizes. One run of sensitivities knows what
// each change of each tensor costs; for each technique and size a plan chooses among the changes of
// that technique, and its model is converted and scored.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "converters/convert_options.h"
#include "converters/output_path.h"
#include "converters/planning/plan.h"
#include "converters/planning/plan_recipe.h"
#include "converters/recipe/recipe_node.h"
#include "converters/thread_shares.h"
#include "format/write_file.h"
#include "tools/commands.h"
#include "tools/convert_arguments.h"
#include "tools/json_lines.h"
#include "tools/option_lists.h"
#include "tools/planned_model.h"
#include "tools/report/scatter_plot.h"
#include "tools/run_options.h"
#include "tools/sensitivity_file.h"
#include "tools/sensitivity_run.h"
#include "tools/technique_grid.h"
#include "tools/text_tokens.h"
#include "tools/words.h"

namespace kinglet {
namespace {

constexpr std::string_view kFrontierBegin = R"({"recipe":)";
constexpr const char* kUnchanged = "none";

struct FrontierCommand {
  CheckpointChoice choice;
  QuantiserChoice quantisers;
  ConvertOptions convert;
  std::string text, plan_text, output, plot, sizes, techniques, progress;
  uint64_t plan_tokens = 4000;
  size_t threads = 1;
  bool json = false;
};

struct FrontierPoint {
  std::string recipe, technique;
  uint64_t size = 0;  // asked for; 0 for the unchanged model
  uint64_t bytes = 0, scored = 0;
  double ppl = 0;
};

// What a point is made for.
struct FrontierJob {
  std::string technique;  // "bits+sum"
  std::set<Technique> kinds;
  uint64_t size = 0;
};

// "1.2MB", "900kB", "1200000".
Result<uint64_t> ReadSize(const std::string& text) {
  std::string_view number = text;
  double unit = 1;
  for (const auto& [name, value] : {std::pair("kB", 1e3), std::pair("MB", 1e6)}) {
    if (!number.ends_with(name)) continue;
    number.remove_suffix(2);
    unit = value;
  }
  double size = 0;
  constexpr double kMostBytes = 1e15;
  if (!ReadWhole(number, size) || !(size * unit >= 1) || !(size * unit < kMostBytes)) {
    return RefuseList("--sizes", "sizes such as 1.2MB, 900kB or 1200000, separated by commas",
                      text);
  }
  return static_cast<uint64_t>(std::llround(size * unit));
}

Result<std::vector<uint64_t>> ReadSizes(const std::string& text) {
  std::vector<uint64_t> sizes;
  for (const std::string& part : SplitAt(',', text)) {
    KINGLET_ASSIGN_OR_RETURN(const uint64_t size, ReadSize(part));
    sizes.push_back(size);
  }
  return sizes;
}

// The techniques by name: one, or several joined by "+".
Result<std::map<std::string, std::set<Technique>>> ReadTechniques(const std::string& text) {
  std::map<std::string, std::set<Technique>> techniques;
  for (const std::string& part : SplitAt(',', text)) {
    std::set<Technique> kinds;
    for (const std::string& name : SplitAt('+', part)) {
      const auto at = std::find(kTechniqueNames.begin(), kTechniqueNames.end(), name);
      if (at == kTechniqueNames.end()) {
        std::string names;
        for (const std::string_view known : kTechniqueNames) {
          names += (names.empty() ? "" : ", ") + std::string(known);
        }
        return RefuseList("--techniques", names + ", or several joined by +", name);
      }
      kinds.insert(static_cast<Technique>(at - kTechniqueNames.begin()));
    }
    techniques[part] = kinds;
  }
  return techniques;
}

// Each technique that is named, and each other one together with bits.
std::map<std::string, std::set<Technique>> WithBits(
    const std::map<std::string, std::set<Technique>>& named) {
  std::map<std::string, std::set<Technique>> techniques = named;
  for (const auto& [name, kinds] : named) {
    if (kinds.size() > 1 || kinds.contains(Technique::kBits)) continue;
    std::set<Technique> pair = kinds;
    pair.insert(Technique::kBits);
    techniques["bits+" + name] = pair;
  }
  return techniques;
}

std::string PointLine(const FrontierPoint& point, std::optional<bool> on_frontier) {
  JsonLine line;
  line.Key("recipe").Text(point.recipe).Key("technique").Text(point.technique);
  line.Key("size").Integer(point.size).Key("bytes").Integer(point.bytes);
  line.Key("scored").Integer(point.scored).Key("ppl").Number(point.ppl);
  line.Key("on_frontier");
  if (on_frontier) {
    line.Boolean(*on_frontier);
  } else {
    line.Null();
  }
  return line.Finish();
}

Result<FrontierPoint> ReadPoint(const std::string& text) {
  KINGLET_ASSIGN_OR_RETURN(const RecipeNode node, RecipeNode::Parse("line", text));
  FrontierPoint point;
  KINGLET_ASSIGN_OR_RETURN(point.recipe, node.TextAt("recipe"));
  KINGLET_ASSIGN_OR_RETURN(point.technique, node.TextAt("technique"));
  KINGLET_ASSIGN_OR_RETURN(point.size, node.CountAt("size"));
  KINGLET_ASSIGN_OR_RETURN(point.bytes, node.CountAt("bytes"));
  KINGLET_ASSIGN_OR_RETURN(point.scored, node.CountAt("scored"));
  KINGLET_ASSIGN_OR_RETURN(point.ppl, node.NumberAt("ppl"));
  return point;
}

class FrontierRun {
 public:
  FrontierRun(const FrontierCommand& command, std::vector<uint64_t> sizes,
              std::map<std::string, std::set<Technique>> techniques, Progress& progress)
      : command_(command),
        sizes_(std::move(sizes)),
        techniques_(std::move(techniques)),
        progress_(progress) {}

  Result<std::vector<FrontierPoint>> Run() {
    KINGLET_RETURN_IF_ERROR(
        CheckOutputPath("frontier", command_.output,
                        {&command_.convert.checkpoint, &command_.text, &command_.plan_text,
                         &command_.convert.vocabulary, &command_.convert.recipe,
                         &command_.convert.calibration_text, &command_.convert.config}));
    KINGLET_RETURN_IF_ERROR(Measure());
    std::error_code error;
    std::filesystem::create_directories(Folder(), error);
    if (error) {
      return Status::Refusal(KINGLET_IO_ERROR, "frontier", Folder(), "a folder", error.message());
    }
    KINGLET_RETURN_IF_ERROR(ReadDone());
    KINGLET_RETURN_IF_ERROR(MakePoints());
    return points_;
  }

 private:
  std::string SensitivityPath() const { return command_.output + ".sensitivity"; }
  std::string Folder() const { return command_.output + ".recipes"; }

  // Measures what the changes cost, or continues that.
  Status Measure() {
    SensitivityRequest request;
    request.convert = command_.convert;
    const std::string& calibration = command_.convert.calibration_text;
    request.text = command_.plan_text;
    if (request.text.empty()) request.text = calibration.empty() ? command_.text : calibration;
    request.output = SensitivityPath();
    std::set<Technique> kinds;
    for (const auto& [name, of_name] : techniques_) kinds.insert(of_name.begin(), of_name.end());
    request.changes = [kinds](const Shape& shape) { return ChangesOf(kinds, shape); };
    request.threads = command_.threads;
    request.most_tokens = command_.plan_tokens;
    KINGLET_RETURN_IF_ERROR(RunSensitivities(request, progress_).status());
    KINGLET_ASSIGN_OR_RETURN(file_, ReadSensitivityFile(SensitivityPath()));
    return {};
  }

  // The points that an earlier run made.
  Status ReadDone() {
    std::vector<std::string> lines;
    KINGLET_ASSIGN_OR_RETURN(LineWriter writer,
                             LineWriter::Open(command_.output, kFrontierBegin, lines));
    writer_.emplace(std::move(writer));
    for (size_t i = 0; i < lines.size(); ++i) {
      const Result<FrontierPoint> point = ReadPoint(lines[i]);
      if (!point.ok() || !point->recipe.starts_with(Folder())) {
        return Status::Refusal(KINGLET_INVALID_ARGUMENT, "frontier",
                               command_.output + ", line " + std::to_string(i + 1),
                               "a line of `kinglet frontier -o " + command_.output + "`",
                               "another (remove the file, or name another -o)");
      }
      points_.push_back(*point);
    }
    KINGLET_ASSIGN_OR_RETURN(const FrontierPoint unchanged, MakeUnchanged());
    if (points_.empty()) return Keep(unchanged);
    if (PointLine(points_.front(), true) == PointLine(unchanged, true)) return {};
    return Status::Refusal(KINGLET_INVALID_ARGUMENT, "frontier", command_.output + ", line 1",
                           "this run's, to continue it, or another -o", "another text's");
  }

  Status Keep(const FrontierPoint& point) {
    points_.push_back(point);
    return writer_->Append(PointLine(point, std::nullopt));
  }

  Result<FrontierPoint> MakeUnchanged() const {
    const FrontierJob job = {kUnchanged, {}, 0};
    CompressionPlan plan;
    plan.groups.resize(file_.record.groups.size());
    const std::string path = RecipePath(job);
    KINGLET_ASSIGN_OR_RETURN(const std::string recipe, RecipeOf(file_.record, plan, path));
    KINGLET_RETURN_IF_ERROR(WriteRecipe(recipe, path));
    KINGLET_ASSIGN_OR_RETURN(const auto model, PlannedModel(command_.convert, path, path));
    return Score(job, model);
  }

  std::vector<FrontierJob> Jobs() const {
    std::vector<FrontierJob> jobs;
    for (const uint64_t size : SizesAsked()) {
      for (const auto& [name, kinds] : techniques_) jobs.push_back({name, kinds, size});
    }
    return jobs;
  }
  std::vector<uint64_t> SizesAsked() const {
    if (!sizes_.empty()) return sizes_;
    std::vector<uint64_t> sizes;  // fractions of the model in float32
    for (const uint64_t divisor : {2, 3, 4, 5, 6}) sizes.push_back(file_.record.bytes / divisor);
    return sizes;
  }

  bool IsDone(const FrontierJob& job) const {
    return std::any_of(points_.begin(), points_.end(), [&](const FrontierPoint& point) {
      return point.technique == job.technique && point.size == job.size;
    });
  }

  // Makes the points that are left, several at a time, and writes each when those before it are
  // written.
  Status MakePoints() {
    std::vector<FrontierJob> jobs = Jobs();
    std::erase_if(jobs, [this](const FrontierJob& job) { return IsDone(job); });
    std::vector<std::optional<std::optional<FrontierPoint>>> made(jobs.size());
    std::atomic<size_t> next{0};
    size_t written = 0;
    Status failed;
    std::mutex mutex;
    RunShares(std::min(command_.threads, std::max<size_t>(jobs.size(), 1)), [&](size_t) {
      for (;;) {
        const size_t index = next++;
        {
          const std::lock_guard lock(mutex);
          if (index >= jobs.size() || !failed.ok()) return;
          progress_.Say(std::to_string(index + 1) + " of " + std::to_string(jobs.size()) +
                        " models, " + jobs[index].technique);
        }
        Result<std::optional<FrontierPoint>> point = MakePoint(jobs[index]);
        const std::lock_guard lock(mutex);
        if (!point.ok()) {
          if (failed.ok()) failed = point.status();
          return;
        }
        made[index] = *std::move(point);
        for (; failed.ok() && written < made.size() && made[written]; ++written) {
          if (*made[written]) failed = Keep(**made[written]);
        }
      }
    });
    return failed;
  }

  // The changes of these techniques alone.
  SensitivityRecord Restricted(const std::set<Technique>& kinds) const {
    SensitivityRecord record = file_.record;
    std::erase_if(record.changes, [&](const MeasuredChange& change) {
      return !kinds.contains(TechniqueOf(change.change));
    });
    return record;
  }

  std::string RecipePath(const FrontierJob& job) const {
    const std::string size = job.size == 0 ? "" : "-" + std::to_string(job.size);
    return Folder() + "/" + job.technique + size + ".json";
  }

  Result<std::string> RecipeOf(const SensitivityRecord& record, const CompressionPlan& plan,
                               const std::string& path) const {
    return PlanRecipe(record, plan, QuantisersOf(command_.convert, path), command_.convert.recipe);
  }

  Status WriteRecipe(const std::string& recipe, const std::string& path) const {
    return WriteFileAtomically(std::as_bytes(std::span(recipe)), path);
  }

  Result<FrontierPoint> Score(const FrontierJob& job,
                              const std::shared_ptr<const ModelFile>& model) const {
    KINGLET_ASSIGN_OR_RETURN(const auto running, Model::FromFile(model, ModelOptions{}));
    KINGLET_ASSIGN_OR_RETURN(const TokenInput tokens, OpenTextTokens(command_.text, "", model));
    KINGLET_ASSIGN_OR_RETURN(const TextLoss loss, LossOfText(running, tokens, {}));
    return FrontierPoint{RecipePath(job),    job.technique, job.size,
                         model->file_size(), loss.scored,   std::exp(loss.nll)};
  }

  // The plan's bytes are a prediction: the budget moves by what the converted file is off, until
  // the file is just below the size. nullopt if the technique does not reach the size.
  Result<std::optional<FrontierPoint>> MakePoint(const FrontierJob& job) const {
    const std::string path = RecipePath(job);
    constexpr int kTries = 4;
    constexpr double kNear = 0.99;
    const SensitivityRecord record = Restricted(job.kinds);
    if (record.changes.empty()) return std::optional<FrontierPoint>();
    std::shared_ptr<const ModelFile> best;
    std::string best_recipe, last_recipe;
    auto budget = static_cast<int64_t>(job.size);
    for (int i = 0; i < kTries && budget > 0; ++i) {
      const Result<CompressionPlan> plan =
          MakePlan(record, SizeTarget{static_cast<uint64_t>(budget)});
      if (!plan.ok()) break;
      KINGLET_ASSIGN_OR_RETURN(const std::string recipe, RecipeOf(record, *plan, path));
      if (recipe == last_recipe) break;
      last_recipe = recipe;
      KINGLET_RETURN_IF_ERROR(WriteRecipe(recipe, path));
      KINGLET_ASSIGN_OR_RETURN(const auto model, PlannedModel(command_.convert, path, path));
      const uint64_t bytes = model->file_size();
      if (bytes <= job.size && (best == nullptr || bytes > best->file_size())) {
        best = model;
        best_recipe = recipe;
      }
      if (bytes <= job.size && static_cast<double>(bytes) > kNear * static_cast<double>(job.size)) {
        break;
      }
      budget += static_cast<int64_t>(job.size) - static_cast<int64_t>(bytes);
    }
    if (best == nullptr) {
      std::error_code ignored;
      std::filesystem::remove(path, ignored);
      return std::optional<FrontierPoint>();
    }
    KINGLET_RETURN_IF_ERROR(WriteRecipe(best_recipe, path));
    KINGLET_ASSIGN_OR_RETURN(FrontierPoint point, Score(job, best));
    return std::optional(std::move(point));
  }

  const FrontierCommand& command_;
  const std::vector<uint64_t> sizes_;
  const std::map<std::string, std::set<Technique>> techniques_;
  Progress& progress_;
  SensitivityFile file_;
  std::optional<LineWriter> writer_;
  std::vector<FrontierPoint> points_;
};

// Points far above the best are omitted, so that the others can be told apart.
Status WriteFrontierPlot(const std::vector<FrontierPoint>& points, const std::string& path,
                         const std::string& text) {
  double least = INFINITY;
  for (const FrontierPoint& point : points) least = std::min(least, point.ppl);
  constexpr double kHighest = 1.6;
  std::vector<PlotPoint> shown;
  for (const FrontierPoint& point : points) {
    if (!(point.ppl <= kHighest * least)) continue;
    shown.push_back({"", static_cast<double>(point.bytes) / 1e6, point.ppl, point.technique});
  }
  if (shown.empty()) {
    return Status::Refusal(KINGLET_INVALID_ARGUMENT, "frontier", path, "a finite perplexity",
                           "none");
  }
  if (shown.size() < points.size()) {
    PrintNote(std::to_string(points.size() - shown.size()) + " of " +
              std::to_string(points.size()) + " models are not in " + path +
              ": their perplexity is more than 1.6 times the least");
  }
  const std::string name = text.substr(text.rfind('/') + 1);
  const std::string svg = ScatterPlot(
      {"Size and perplexity on " + name + ", by technique", "file, MB", "perplexity"}, shown);
  return WriteFileAtomically(std::as_bytes(std::span(svg)), path);
}

Status RunFrontier(const FrontierCommand& given, Console& console) {
  FrontierCommand command = given;
  TakeCheckpoints(command.choice, command.convert);
  TakeQuantisers(command.quantisers, command.convert);
  ConvertOptions checked = command.convert;
  checked.bits = SensitivityRequest().rest_bits;
  KINGLET_RETURN_IF_ERROR(CheckQuantisation(checked));
  if (!command.plot.empty()) {
    KINGLET_RETURN_IF_ERROR(CheckOutputPath(
        "frontier", command.plot, {&command.convert.checkpoint, &command.text, &command.output}));
  }
  KINGLET_RETURN_IF_ERROR(RefusePipe("frontier", command.text));
  std::vector<uint64_t> sizes;
  if (!command.sizes.empty()) {
    KINGLET_ASSIGN_OR_RETURN(sizes, ReadSizes(command.sizes));
  }
  KINGLET_ASSIGN_OR_RETURN(auto techniques, ReadTechniques(command.techniques));
  Progress progress(ProgressFormOf(command.progress, console));
  FrontierRun run(command, sizes, WithBits(techniques), progress);
  KINGLET_ASSIGN_OR_RETURN(const std::vector<FrontierPoint> points, run.Run());
  std::vector<PlotPoint> places;
  for (const FrontierPoint& point : points) {
    places.push_back({"", static_cast<double>(point.bytes), point.ppl});
  }
  const std::vector<bool> on = OnFrontier(places);
  std::string lines;
  for (size_t i = 0; i < points.size(); ++i) lines += PointLine(points[i], on[i]);
  KINGLET_RETURN_IF_ERROR(WriteFileAtomically(std::as_bytes(std::span(lines)), command.output));
  if (!command.plot.empty()) {
    KINGLET_RETURN_IF_ERROR(WriteFrontierPlot(points, command.plot, command.text));
  }
  if (command.json) {
    console.out.Write(lines);
    return {};
  }
  std::vector<size_t> order;
  for (size_t i = 0; i < points.size(); ++i) {
    if (on[i]) order.push_back(i);
  }
  std::sort(order.begin(), order.end(),
            [&](size_t a, size_t b) { return points[a].bytes > points[b].bytes; });
  console.out.Write("       bytes  perplexity  recipe\n");
  for (const size_t i : order) {
    char text[40];
    const std::string bytes = Grouped(points[i].bytes);
    std::snprintf(text, sizeof text, "%12s  %10.3f  ", bytes.c_str(), points[i].ppl);
    console.out.Write(text + points[i].recipe + "\n");
  }
  return {};
}

Status CheckFrontierInput(const FrontierCommand& command) {
  KINGLET_RETURN_IF_ERROR(CheckAverage("frontier", command.choice));
  KINGLET_RETURN_IF_ERROR(ReadTechniques(command.techniques).status());
  return command.sizes.empty() ? Status() : ReadSizes(command.sizes).status();
}

}  // namespace

Command AddFrontier(Arguments& program) {
  const auto options = std::make_shared<FrontierCommand>();
  ConvertOptions& convert = options->convert;
  for (const std::string_view name : kTechniqueNames) {
    options->techniques += (options->techniques.empty() ? "" : ",") + std::string(name);
  }
  Arguments command = program.AddSubcommand(
      "frontier", "Compare techniques of compression at equal sizes, each by its best plan");
  command.Add("CHECKPOINT", options->choice.checkpoints, "checkpoint file or folder")
      .Required()
      .Placeholder("");
  command
      .Add("-o,--output", options->output,
           "JSON Lines to write, with recipes in F.json.recipes; an unfinished run is continued")
      .Required()
      .Placeholder("F.json");
  command.Add("--text", options->text, "text that each model is scored on")
      .Required()
      .Placeholder("FILE");
  command
      .Add("--sizes", options->sizes,
           "sizes of the files, such as 1.2MB,900kB (default: a half to a sixth of float32's)")
      .Placeholder("SIZE,..");
  command
      .Add("--techniques", options->techniques,
           "what to compare; each is measured alone and with bits, A+B together")
      .Placeholder("NAME,..")
      .ShowDefault();
  command
      .Add(
          "--plan-text", options->plan_text,
          "text on which each change is measured (default: that of --calibrate, or else of --text)")
      .Placeholder("FILE");
  command.Add("--plan-tokens", options->plan_tokens, "how many of its tokens")
      .Between(uint64_t{2}, uint64_t{UINT32_MAX})
      .Placeholder("N")
      .ShowDefault();
  command.Add("--plot", options->plot, "draw sizes and perplexities").Placeholder("PLOT.svg");
  AddCheckpointOptions(command, options->choice, convert);
  AddWordOptions(command, convert);
  AddNetworkOptions(command, convert);
  command
      .Add("--calibrate", convert.calibration_text,
           "quantise activations too, with the ranges measured on this text")
      .Placeholder("FILE");
  AddRoundingOptions(command, options->quantisers);
  AddRangeOptions(command, options->quantisers, convert);
  AddCacheOptions(command, convert);
  AddThreads(command, options->threads);
  command.AddFlag("--json", options->json, "print all lines of the file");
  AddProgress(command, options->progress);
  command.Footer(
      "Example:\n  kinglet frontier models/ --vocab vocab.txt --text validation.txt --sizes "
      "1MB,1.5MB -o f.json --plot f.svg");
  return {command, [options] { return CheckFrontierInput(*options); },
          [options](Console& console) { return RunFrontier(*options, console); }};
}

}  // namespace kinglet
