#include "runtime/session.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <new>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <variant>

#include "format/small_build.h"
#include "kernels/device_program.h"
#include "runtime/partial_context.h"
#include "runtime/reading_widths.h"
#include "runtime/session_contents.h"

namespace kinglet {

using session::CheckId;
using session::CheckSize;
using session::Invalid;
using session::NoPart;
using session::OutOfMemory;

// --- the host's memory that lanes take

namespace {

uint64_t QueryBytes(const Model& model) {
  return model.backend().real_bytes == sizeof(double) ? QueryMemory<double>::BytesPerStream(model)
                                                      : QueryMemory<float>::BytesPerStream(model);
}

// The number of source tokens on which the encoder's nodes run at once; 0 if they run on one token
// at a time.
size_t SourceTokensTogether(const Model& model) {
  // As many vectors as one call of a matrix product takes, in memory that fits a processor cache.
  constexpr uint64_t kMost = 128, kMostBytes = uint64_t{16} << 20;
  const std::optional<EncoderPlan>& encoder = model.plan().encoder;
  // A recurrent encoder has no buffers of single tokens; its nodes run on one token at a time.
  if (!encoder || model.device() != nullptr || model.layout().source_token_bytes == 0) return 0;
  const uint64_t tokens = kMostBytes / std::max<uint64_t>(model.layout().source_token_bytes, 1);
  return std::clamp<uint64_t>(tokens, 1, std::min<uint64_t>(encoder->window, kMost));
}

}  // namespace

// How a session of a given number of lanes uses the host's memory.
struct Session::MemoryPlan {
  Stream::Queries queries;
  QueryFrames::States states;
  uint64_t places;  // of QueryFrames; 0 if each lane answers queries in its own memory
  uint64_t each;    // bytes of each lane
  uint64_t shared;  // bytes of the memory that all lanes share

  static MemoryPlan Of(const Model& model, uint64_t lanes);
};

uint64_t Session::LaneBytes() { return sizeof(Lane) + sizeof(EitherReal<Distribution>); }

uint64_t Session::BytesPerLane(const Model& model) {
  return LaneBytes() + Stream::Bytes(model) + QueryBytes(model);
}

Session::MemoryPlan Session::MemoryPlan::Of(const Model& model, uint64_t lanes) {
  using Queries = Stream::Queries;
  using States = QueryFrames::States;
  const uint64_t together = std::min<uint64_t>(lanes, kLanesTogether);
  if (model.device() != nullptr) {
    const uint64_t each = LaneBytes() + Stream::Bytes(model, Queries::kShared);
    return {Queries::kShared, States::kInPlaces, together, each, together * QueryBytes(model)};
  }
  const MemoryPlan own = {Queries::kOwn, States::kInFrames, 0, BytesPerLane(model), 0};
  if (lanes <= kLanesTogether) return own;
  const uint64_t place = QueryFrames::BytesPerPlace(model.layout(), States::kInFrames);
  const MemoryPlan shared = {Queries::kShared, States::kInFrames, together,
                             LaneBytes() + Stream::Bytes(model, Queries::kShared),
                             together * (place + QueryBytes(model))};
  const uint64_t saved = own.each - shared.each;
  return saved > 0 && shared.shared / saved < lanes ? shared : own;
}

uint64_t Session::LanesRemembered(const Model& model, uint64_t lanes) {
  const MemoryPlan plan = MemoryPlan::Of(model, lanes);
  return plan.places > 0 ? plan.places : lanes;
}

uint64_t Session::LanesThatFit(const Model& model, uint64_t bytes) {
  const uint64_t few = bytes / BytesPerLane(model);
  const MemoryPlan of_many = MemoryPlan::Of(model, UINT32_MAX);
  const uint64_t many = bytes > of_many.shared ? (bytes - of_many.shared) / of_many.each : 0;
  return MemoryPlan::Of(model, many).queries == of_many.queries ? std::max(few, many) : few;
}

// --- a session

namespace {

EitherReal<QueryMemory> MakeQueryMemory(const Model& model, uint32_t lanes) {
#if !defined(KINGLET_SMALL)
  if (model.backend().real_bytes == sizeof(double)) return QueryMemory<double>(model, lanes);
#endif
  return QueryMemory<float>(model, lanes);
}

Status RefuseLanes(const SessionOptions& options, uint64_t max_lanes, const std::string& limit,
                   uint64_t bytes_per_lane) {
  return Status::Refusal(KINGLET_OUT_OF_MEMORY, "session", std::to_string(options.lanes) + " lanes",
                         "at most " + std::to_string(max_lanes) + ", for " + limit,
                         std::to_string(bytes_per_lane) + " bytes for each lane");
}

// Bytes of work memory for each thread of a session.
uint64_t WorkBytesOf(const Model& model, uint32_t lanes) {
  uint64_t bytes = 0;
  if (lanes == 1 && !model.plan().encoder) return bytes;
  for (const Kernel& kernel : model.kernels()) bytes = std::max(bytes, kernel.work_bytes);
  return bytes;
}

Status CheckSegments(const Plan& plan, std::span<const uint32_t> segments, size_t tokens) {
  if (!plan.reading) {
    return Status::Refusal(KINGLET_UNSUPPORTED, "session", "segments", "a masked model",
                           "a translation model");
  }
  KINGLET_RETURN_IF_ERROR(CheckSize("segments", segments.size(), tokens));
  for (const uint32_t segment : segments) {
    if (segment >= plan.reading->segments) {
      return Status::Refusal(KINGLET_ID_OUT_OF_RANGE, "session", "segment",
                             "a number below " + std::to_string(plan.reading->segments),
                             std::to_string(segment));
    }
  }
  return {};
}

}  // namespace

Session::Session(std::unique_ptr<Contents> contents) : contents_(std::move(contents)) {}
Session::~Session() = default;

Result<std::unique_ptr<Session>> Session::Create(std::shared_ptr<const Model> model,
                                                 const SessionOptions& options) {
  if (model->plan().clusters.empty() && !model->plan().reading) {
    return Status::Refusal(KINGLET_UNSUPPORTED, "session", "model", "a language model",
                           model->plan().classifier ? "an embedding with a classifier of word lists"
                                                    : "an embedding alone");
  }
  if (options.lanes == 0) return Invalid("lanes", "at least 1", "0");
  if (options.threads == 0) return Invalid("threads", "at least 1", "0");
  const MemoryPlan plan = MemoryPlan::Of(*model, options.lanes);
  const size_t threads = std::min<size_t>(options.threads, system::UsableProcessors());
  const uint64_t work_bytes = WorkBytesOf(*model, options.lanes);  // for each thread
  const uint64_t source_scratch = SourceTokensTogether(*model) * model->layout().source_token_bytes;
  const uint64_t overhead =
      source_scratch + (work_bytes > 0 ? WorkMemory::Bytes(threads, work_bytes) : 0);
  const uint64_t limit = std::min(model->session_memory_limit(), model->budget()->left());
  const uint64_t max_lanes = LanesThatFit(*model, limit - std::min(limit, overhead));
  const uint64_t bytes =
      options.lanes <= max_lanes ? options.lanes * plan.each + plan.shared + overhead : 0;
  if (options.lanes > max_lanes || !model->budget()->Claim(bytes)) {
    return RefuseLanes(options, max_lanes, std::to_string(limit) + " bytes in all", plan.each);
  }
  MemoryClaim memory(model->budget(), bytes);
  try {
    auto contents = std::make_unique<Contents>(MakeQueryMemory(*model, options.lanes));
    if (const DeviceProgram* const program = model->device(); program != nullptr) {
      const uint64_t free_bytes = program->FreeBytes(), bytes_per_lane = program->BytesPerLane();
      if (options.lanes > free_bytes / bytes_per_lane) {
        return RefuseLanes(options, free_bytes / bytes_per_lane,
                           std::to_string(free_bytes) + " free bytes of " + program->device_name(),
                           bytes_per_lane);
      }
      KINGLET_ASSIGN_OR_RETURN(contents->execution.device, program->CreateLanes(options.lanes));
    }
    if (plan.places > 0) {
      contents->query_frames.emplace(model->layout(), plan.places, plan.states);
    }
    contents->results.reserve(options.lanes);
    contents->lanes.reserve(options.lanes);
    const auto add_lane = [&]<class T>(QueryMemory<T>& shared) {
      const auto number = static_cast<uint32_t>(contents->lanes.size());
      EitherReal<Distribution>& results = contents->results.emplace_back(
          Distribution<T>(*model, options.empty_cache, contents->execution, shared));
      contents->lanes.push_back(
          {.results = &results,
           .stream = Stream(*model, plan.queries, contents->execution.device.get(), number)});
    };
    for (uint32_t i = 0; i < options.lanes; ++i) std::visit(add_lane, contents->query_memory);
    if (work_bytes > 0) {
      WorkMemory& memory_of_threads = contents->work_memory.emplace(threads, work_bytes);
      for (Lane& lane : contents->lanes) {
        lane.stream.set_batch({&memory_of_threads, options.lanes});
      }
    }
    if (source_scratch > 0) {
      contents->source_scratch = AllocateZeroed(source_scratch);
      if (!contents->source_scratch) return OutOfMemory();
    }
    if (threads > 1) {
      KINGLET_ASSIGN_OR_RETURN(contents->execution.team, WorkerTeam::Create(threads));
    }
    contents->frames.reserve(
        std::max<size_t>({options.lanes, SourceTokensTogether(*model), size_t{1}}));
    contents->named_by.resize(options.lanes);
    contents->memory = std::move(memory);
    contents->empty_cache_is_normalised = options.empty_cache == EmptyCache::kNormalised;
    model->Log(LogLevel::kInfo, "session: lanes " + std::to_string(options.lanes) + ", " +
                                    std::to_string(plan.each) + " bytes each");
    contents->model = std::move(model);
    return std::unique_ptr<Session>(new Session(std::move(contents)));
  } catch (const std::bad_alloc&) {
    return OutOfMemory();
  }
}

const Model& Session::model() const { return *contents_->model; }
uint32_t Session::lanes() const { return static_cast<uint32_t>(contents_->lanes.size()); }
uint64_t Session::position(uint32_t lane) const { return contents_->lanes[lane].stream.position(); }
uint64_t Session::version(uint32_t lane) const { return contents_->lanes[lane].version; }
void Session::set_observer(NodeObserver after, NodeObserver before) {
  contents_->execution.observers = {std::move(before), std::move(after)};
}
void Session::Cancel() { contents_->execution.cancel.store(true, std::memory_order_relaxed); }

Status Session::TakeCancellation(const std::string& what) {
  return TakeCancel(contents_->execution, what);
}
uint32_t Session::last_token(uint32_t lane) const {
  return contents_->lanes[lane].stream.last_token();
}
bool Session::empty_cache_is_normalised() const { return contents_->empty_cache_is_normalised; }
Result<std::unique_ptr<Session>> Session::CreateAlike(uint32_t lanes) const {
  SessionOptions options;
  options.lanes = lanes;
  if (contents_->empty_cache_is_normalised) options.empty_cache = EmptyCache::kNormalised;
  return Create(contents_->model, options);
}

Result<Session::Lane*> Session::Contents::FindLane(uint32_t lane) {
  if (lane < lanes.size()) return &lanes[lane];
  return Invalid("lane", "a number below " + std::to_string(lanes.size()), std::to_string(lane));
}

Status Session::Contents::CheckLanes(std::span<const uint32_t> numbers) {
  if (++checks == 0) {  // after 2^32 calls
    std::fill(named_by.begin(), named_by.end(), 0);
    checks = 1;
  }
  for (const uint32_t lane : numbers) {
    if (lane >= lanes.size()) return FindLane(lane).status();
    if (std::exchange(named_by[lane], checks) == checks) {
      return Invalid("lanes", "each of them once", std::to_string(lane) + " again");
    }
  }
  return Status();
}

// Calls run(frames), which processes a token on each of these lanes. After an error no lane has
// processed its token.
template <class Run>
Status Session::Contents::Step(std::span<const uint32_t> numbers, std::span<const uint32_t> ids,
                               const Run& run) {
  const ComputingCall call(execution);
  frames.clear();
  for (size_t i = 0; i < numbers.size(); ++i) {
    frames.push_back(lanes[numbers[i]].stream.Begin(model->TokenOf(ids[i])));
    model->SetSpelling(ids[i], frames.back());
  }
  Status status;
  // A flag rather than a Status, whose text needs memory too: the lanes must be restored first.
  bool out_of_memory = false;
  try {
    status = run(std::span(frames));
  } catch (const std::bad_alloc&) {  // reference kernels allocate
    out_of_memory = true;
  }
  const uint64_t version = Lane::NewVersions(numbers.size());
  for (size_t i = 0; i < numbers.size(); ++i) {
    Lane& lane = lanes[numbers[i]];
    if (status.ok() && !out_of_memory) {
      lane.stream.Commit(model->TokenOf(ids[i]));
      lane.Change(version + i);
    } else {
      lane.stream.Undo();
    }
  }
  return out_of_memory ? OutOfMemory() : status;
}

Status Session::StepToken(uint32_t id, uint32_t lane) { return StepLanes({&lane, 1}, {&id, 1}); }

Status Session::Contents::CheckStep(uint32_t id, const Lane& lane, uint32_t number) const {
  if (model->plan().reading) {
    return Status::Refusal(KINGLET_UNSUPPORTED, "session", "token", "a language model",
                           "a masked model, which reads whole texts (`fill`, `embed`)");
  }
  if (!model->Reads(id)) return model->RefuseInput(id, "session");
  if (!model->plan().encoder || lane.stream.source_length() > 0) return Status();
  return Status::Refusal(KINGLET_NO_SOURCE_YET, "session",
                         "token of lane " + std::to_string(number), "an encoded source before it",
                         "none");
}

Status Session::StepLanes(std::span<const uint32_t> lanes, std::span<const uint32_t> ids) {
  KINGLET_RETURN_IF_ERROR(CheckSize("ids to step", ids.size(), lanes.size()));
  KINGLET_RETURN_IF_ERROR(contents_->CheckLanes(lanes));
  for (size_t i = 0; i < lanes.size(); ++i) {
    KINGLET_RETURN_IF_ERROR(contents_->CheckStep(ids[i], contents_->lanes[lanes[i]], lanes[i]));
  }
  return contents_->Step(lanes, ids, [&](std::span<StreamFrame> frames) {
    return RunNodes(model(), model().plan().context, frames, contents_->execution);
  });
}

Status Session::LookAt(uint64_t position, uint32_t lane) {
  if (model().plan().clusters.empty()) return NoPart("one that predicts masked words");
  KINGLET_RETURN_IF_ERROR(contents_->FindToken(position, lane).status());
  const uint32_t id = 0;
  return contents_->Step({&lane, 1}, {&id, 1}, [&](std::span<StreamFrame> frames) {
    frames.front().position = position;
    return RunNodes(model(), model().plan().context, frames, contents_->execution);
  });
}

Status Session::StepTokenAfter(uint32_t id, const PartialContext& partial,
                               std::span<const std::byte> kept) {
  if (!model().Reads(id)) return model().RefuseInput(id, "session");
  const uint32_t lane = 0;
  return contents_->Step({&lane, 1}, {&id, 1}, [&](std::span<StreamFrame> frames) -> Status {
    for (size_t run = 0; run < partial.runs.size(); ++run) {
      RestoreKept(partial, run, model().layout(), kept.data(), frames.front());
      KINGLET_RETURN_IF_ERROR(RunNodes(model(), {partial.runs[run].begin, partial.runs[run].end},
                                       frames, contents_->execution));
    }
    RestoreKept(partial, partial.runs.size(), model().layout(), kept.data(), frames.front());
    return {};
  });
}

Status Session::Encode(std::span<const uint32_t> source, uint32_t lane) {
  return Encode(source, {}, lane);
}

Status Session::Encode(std::span<const uint32_t> source, std::span<const uint32_t> segments,
                       uint32_t lane) {
  KINGLET_ASSIGN_OR_RETURN(Lane* const found, contents_->FindLane(lane));
  const std::optional<EncoderPlan>& encoder = model().plan().encoder;
  if (kSmallBuild || !encoder) {
    return Status::Refusal(KINGLET_UNSUPPORTED, "session", "source", "a model with an encoder",
                           "a language model");
  }
  if (source.empty() || source.size() > encoder->window) {
    return Invalid("source", "1 to " + std::to_string(encoder->window) + " tokens",
                   std::to_string(source.size()));
  }
  for (const uint32_t id : source) {
    KINGLET_RETURN_IF_ERROR(CheckId(id, encoder->vocabulary_size));
  }
  if (!segments.empty()) {
    KINGLET_RETURN_IF_ERROR(CheckSegments(model().plan(), segments, source.size()));
  }

  const ComputingCall call(contents_->execution);
  std::optional<State> before;
  // Restoring can fail on a device only, and every later call then returns the same error.
  const auto restore = [&] { static_cast<void>(found->stream.Restore(*before)); };
  try {
    KINGLET_ASSIGN_OR_RETURN(before, found->stream.Save(contents_->model));
    KINGLET_RETURN_IF_ERROR(found->stream.BeginSource(source.size()));
    const Status status = contents_->RunEncoder(source, segments, *found);
    if (status.ok()) {
      found->Change();
    } else {
      restore();
    }
    return status;
  } catch (const std::bad_alloc&) {  // reference kernels allocate
    if (before) restore();
    return OutOfMemory();
  }
}

Status Session::Contents::RunEncoder(std::span<const uint32_t> source,
                                     std::span<const uint32_t> segments, Lane& lane) {
  const auto token_of = [&](const EncoderSweep& sweep, size_t i) {
    if (!sweep.of_segments) return source[i];
    return segments.empty() ? 0 : segments[i];
  };
  const EncoderPlan& encoder = *model->plan().encoder;
  // In a long source fewer tokens go together, because each attends to all and a call that is
  // cancelled waits for the tokens that go together.
  constexpr size_t kPairsTogether = size_t{1} << 19;
  const size_t together = std::clamp<size_t>(kPairsTogether / source.size(), 1,
                                             std::max<size_t>(SourceTokensTogether(*model), 1));
  for (const EncoderSweep& sweep : encoder.sweeps) {
    const size_t tokens = sweep.order == SourceOrder::kOnce ? 1 : source.size();
    for (size_t first = 0; first < tokens; first += together) {
      frames.clear();
      for (size_t turn = first; turn < std::min(first + together, tokens); ++turn) {
        const size_t i = sweep.order == SourceOrder::kBackward ? tokens - 1 - turn : turn;
        std::byte* const own =
            source_scratch.get() + (turn - first) * model->layout().source_token_bytes;
        const uint32_t token = token_of(sweep, i);
        frames.push_back(source_scratch ? lane.stream.SourceFrame(i, token, own, encoder.window)
                                        : lane.stream.SourceFrame(i, token));
      }
      KINGLET_RETURN_IF_ERROR(RunNodes(*model, sweep, frames, execution));
    }
  }
  return Status();
}

Status Session::Reset(uint32_t lane) {
  KINGLET_ASSIGN_OR_RETURN(Lane* const found, contents_->FindLane(lane));
  KINGLET_RETURN_IF_ERROR(found->stream.Reset());
  found->Change();
  return Status();
}

Status Session::Wait() {
  return contents_->execution.device ? contents_->execution.device->Wait() : Status();
}

DeviceWork Session::device_work() const {
  return contents_->execution.device ? contents_->execution.device->work() : DeviceWork();
}

Result<State> Session::Save(uint32_t lane) {
  KINGLET_ASSIGN_OR_RETURN(Lane* const found, contents_->FindLane(lane));
  try {
    return found->stream.Save(contents_->model);
  } catch (const std::bad_alloc&) {
    return OutOfMemory();
  }
}

Status Session::Restore(const State& state, uint32_t lane) {
  KINGLET_ASSIGN_OR_RETURN(Lane* const found, contents_->FindLane(lane));
  if (!state.Fits(model())) {
    return Status::Refusal(KINGLET_MISMATCH, "session", "state to restore",
                           "one of model " + model().file().digest() + " on a backend of " +
                               std::to_string(model().backend().real_bytes) + "-byte floats",
                           "one of model " + state.model().file().digest() + ", " +
                               std::to_string(state.model().backend().real_bytes) + "-byte floats");
  }
  KINGLET_RETURN_IF_ERROR(found->stream.Restore(state));
  found->Change();
  return Status();
}

Status Session::Fork(uint32_t from, uint32_t to) {
  KINGLET_RETURN_IF_ERROR(contents_->FindLane(to).status());
  if (from == to) return Status();
  if (contents_->execution.device) {
    KINGLET_ASSIGN_OR_RETURN(const Lane* const source, contents_->FindLane(from));
    Lane& copy = contents_->lanes[to];
    KINGLET_RETURN_IF_ERROR(copy.stream.CopyOnDevice(source->stream));
    copy.Change();
    return Status();
  }
  KINGLET_ASSIGN_OR_RETURN(const State state, Save(from));
  return Restore(state, to);
}

// --- a given text of one stream

void Session::Contents::MakeTextBlock() {
  if (text_block) return;
  const uint64_t tokens = TextBlock::TokensTogether(*model);
  const uint64_t bytes = TextBlock::Bytes(*model, tokens);
  if (tokens == 1 || !model->budget()->Claim(bytes)) return;
  MemoryClaim claim(model->budget(), bytes);
  const auto make = [&](auto& of_queries) {
    return std::make_unique<TextBlock>(
        *model, tokens,
        empty_cache_is_normalised ? EmptyCache::kNormalised : EmptyCache::kReference, execution,
        of_queries, std::move(claim));
  };
  text_block = std::visit(make, query_memory);
}

GivenText GivenText::Part(size_t begin, uint64_t count) const {
  const auto part = [count](auto all, size_t from) {
    const size_t first = std::min(from, all.size());
    return all.subspan(first, std::min<uint64_t>(count, all.size() - first));
  };
  GivenText text;
  text.ids = part(ids, begin);
  text.silent = std::min(silent - std::min(begin, silent), text.ids.size());
  count = text.ids.size() - text.silent;
  text.next = part(next, begin - std::min(begin, silent));
  text.out = part(out, begin - std::min(begin, silent));
  return text;
}

Status Session::Contents::StepOneByOne(Session& session, const GivenText& text, TextProgress& done,
                                       uint32_t lane, Computing computing) {
  for (size_t i = 0; i < text.ids.size(); ++i) {
    KINGLET_RETURN_IF_ERROR(session.StepToken(text.ids[i], lane));
    ++done.tokens;
    const GivenText token = text.Part(i, 1);
    if (token.next.empty()) continue;
    const uint32_t asked = model->TokenOf(token.next.front());
    KINGLET_RETURN_IF_ERROR(
        session.LogProbabilityLanes({&lane, 1}, {&asked, 1}, token.out, computing));
  }
  return Status();
}

std::span<const uint32_t> Session::Contents::TokensOf(std::span<const uint32_t> ids) {
  if (!model->spells()) return ids;
  predicted.clear();
  for (const uint32_t id : ids) predicted.push_back(model->TokenOf(id));
  return predicted;
}

Status Session::Contents::StepOnDevice(std::span<const GivenText> texts, TextProgress& done,
                                       Computing computing, Stream& stream) {
  KINGLET_RETURN_IF_ERROR(TakeCancel(execution, "text"));
  const uint64_t most = execution.device->text_tokens();
  std::vector<StreamFrame> of_tokens;
  std::vector<uint32_t> next;  // by token; its own id if nothing is asked
  std::vector<double*> out;    // by token; null if nothing is asked
  size_t asked = 0;            // tokens up to the last that asks
  TextProgress now = done;
  uint64_t position = stream.position();
  while (now.texts < texts.size() && of_tokens.size() < most) {
    const GivenText& text = texts[now.texts];
    if (text.ids.empty()) break;
    const GivenText part = text.Part(now.tokens, most - of_tokens.size());
    for (size_t i = 0; i < part.ids.size(); ++i) {
      of_tokens.push_back(stream.FrameTogether(0, model->TokenOf(part.ids[i]), nullptr, nullptr));
      of_tokens.back().position = position++;
      const GivenText token = part.Part(i, 1);
      next.push_back(token.next.empty() ? part.ids[i] : token.next.front());
      out.push_back(token.next.empty() ? nullptr : token.out.data());
      if (!token.next.empty()) asked = of_tokens.size();
    }
    now.tokens += part.ids.size();
    if (now.tokens == text.ids.size()) {
      now = {now.texts + 1, 0};
      position = 0;
    }
  }
  const DeviceQuery query = {empty_cache_is_normalised, computing == Computing::kAll};
  KINGLET_ASSIGN_OR_RETURN(
      const DeviceAnswers answers,
      execution.device->ScoreText(of_tokens, std::span(next).first(asked), query));
  for (size_t i = 0; i < asked; ++i) {
    if (out[i] == nullptr) continue;
    // The token is found where tokens go one by one.
    if (answers[i].not_finite != 0) return Status(KINGLET_NOT_FINITE, "a text");
    *out[i] = static_cast<double>(answers[i].tokens[0].log_probability);
  }
  KINGLET_RETURN_IF_ERROR(execution.device->KeepText());
  const StreamFrame& last = of_tokens.back();
  const bool is_new = last.position + 1 != stream.position() + of_tokens.size();
  if (is_new) KINGLET_RETURN_IF_ERROR(stream.Reset());
  stream.CommitTogether(last.position + 1 - stream.position(), last.token, nullptr);
  done = now;
  return Status();
}

Status Session::Contents::StepTexts(Session& session, std::span<const GivenText> texts, bool begin,
                                    TextProgress& done, uint32_t lane, Computing computing) {
  done = {};
  KINGLET_ASSIGN_OR_RETURN(Lane* const found, FindLane(lane));
  try {
    MakeTextBlock();
    const uint64_t on_device = session.ranks_on_device(1) && !session.model().spells()
                                   ? execution.device->text_tokens()
                                   : 1;
    while (done.texts < texts.size()) {
      const GivenText& text = texts[done.texts];
      if (begin && done.tokens == 0) KINGLET_RETURN_IF_ERROR(session.Reset(lane));
      if (done.tokens == text.ids.size()) {
        done = {done.texts + 1, 0};
        continue;
      }
      const uint64_t together = on_device > 1 || text_block == nullptr
                                    ? on_device
                                    : text_block->MostTokens(found->stream);
      GivenText part = text.Part(done.tokens, together > 1 ? together : text.ids.size());
      Status status;
      if (together > 1) {
        const ComputingCall call(execution);
        if (on_device > 1) {
          status = StepOnDevice(texts, done, computing, found->stream);
        } else {
          // The text block's questions begin with its first token.
          if (part.silent > 0 && part.silent < part.ids.size()) part = part.Part(0, part.silent);
          status = text_block->Process(part.ids, TokensOf(part.next), part.out, computing,
                                       found->stream);
          if (status.ok()) done.tokens += part.ids.size();
        }
        if (status.ok()) found->Change();
      }
      // One by one also to find the token that overflows.
      if (together == 1 || status.code() == KINGLET_NOT_FINITE) {
        status = StepOneByOne(session, part, done, lane, computing);
      }
      KINGLET_RETURN_IF_ERROR(status);
    }
    return Status();
  } catch (const std::bad_alloc&) {
    return OutOfMemory();
  }
}

Status Session::StepMany(std::span<const uint32_t> ids, std::span<double> log_probabilities,
                         uint64_t& processed, uint32_t lane, Computing computing) {
  processed = 0;
  KINGLET_ASSIGN_OR_RETURN(Lane* const found, contents_->FindLane(lane));
  GivenText text = {ids, 0, {}, {}};
  if (!log_probabilities.empty()) {
    KINGLET_RETURN_IF_ERROR(
        CheckSize("output of log-probabilities", log_probabilities.size(), ids.size()));
    text = {ids, 0, ids.subspan(1), log_probabilities.subspan(1)};
  }
  for (const uint32_t id : ids) KINGLET_RETURN_IF_ERROR(contents_->CheckStep(id, *found, lane));
  if (!log_probabilities.empty()) {
    if (found->stream.position() == 0) {
      log_probabilities[0] = std::numeric_limits<double>::quiet_NaN();
    } else {
      const uint32_t first = model().TokenOf(ids.front());
      KINGLET_RETURN_IF_ERROR(
          LogProbabilityLanes({&lane, 1}, {&first, 1}, log_probabilities.first(1), computing));
    }
  }
  return contents_->StepText(*this, text, processed, lane, computing);
}

Status Session::ScoreMany(std::span<const uint32_t> ids, std::span<double> log_probabilities,
                          uint64_t& processed, uint32_t lane) {
  processed = 0;
  KINGLET_ASSIGN_OR_RETURN(Lane* const found, contents_->FindLane(lane));
  KINGLET_RETURN_IF_ERROR(CheckSize("output of log-probabilities", log_probabilities.size() + 1,
                                    std::max<size_t>(ids.size(), 1)));
  for (const uint32_t id : ids) KINGLET_RETURN_IF_ERROR(contents_->CheckStep(id, *found, lane));
  if (ids.size() < 2) return Status();
  const GivenText text = {ids.first(ids.size() - 1), 0, ids.subspan(1), log_probabilities};
  return contents_->StepText(*this, text, processed, lane, Computing::kNeeded);
}

Status Session::ScoreTexts(std::span<const ScoredText> texts, TextProgress& done, uint32_t lane) {
  done = {};
  KINGLET_ASSIGN_OR_RETURN(Lane* const found, contents_->FindLane(lane));
  if (model().plan().encoder && !model().plan().reading) return NoPart("one that reads no source");
  std::vector<GivenText> given;
  Status refused;  // of the text after the given ones
  for (const ScoredText& text : texts) {
    const std::span<const uint32_t> ids = text.ids;
    const size_t first = std::min(ids.size(), text.context + 1);  // that is scored
    refused =
        CheckSize("output of log-probabilities", text.log_probabilities.size(), ids.size() - first);
    for (size_t i = 0; i < ids.size() && refused.ok(); ++i) {
      refused = contents_->CheckStep(ids[i], *found, lane);
    }
    if (!refused.ok()) break;
    given.push_back({ids.first(ids.size() - std::min<size_t>(ids.size(), 1)), text.context,
                     ids.subspan(first), text.log_probabilities});
  }
  KINGLET_RETURN_IF_ERROR(contents_->StepTexts(*this, given, true, done, lane, Computing::kNeeded));
  return refused;
}

Status Session::Contents::StepText(Session& session, const GivenText& text, uint64_t& processed,
                                   uint32_t lane, Computing computing) {
  TextProgress done;
  const Status status = StepTexts(session, {&text, 1}, false, done, lane, computing);
  processed = done.texts > 0 ? text.ids.size() : done.tokens;
  return status;
}

// --- masked models

namespace {

template <class T>
Status CopyFinite(std::span<const T> from, std::span<double> out) {
  const bool finite =
      std::all_of(from.begin(), from.end(), [](T value) { return std::isfinite(value); });
  if (!finite) {
    return Status::Refusal(KINGLET_NOT_FINITE, "session", "scores", "finite numbers",
                           "the model's own overflow");
  }
  std::copy(from.begin(), from.end(), out.begin());
  return {};
}

}  // namespace

Result<Session::Lane*> Session::Contents::FindToken(uint64_t position, uint32_t lane) {
  KINGLET_ASSIGN_OR_RETURN(Lane* const found, FindLane(lane));
  if (!model->plan().reading) return NoPart("a masked model");
  const uint64_t length = found->stream.source_length();
  if (length == 0) {
    return Status::Refusal(KINGLET_NO_SOURCE_YET, "session", "lane " + std::to_string(lane),
                           "a text that was read", "none");
  }
  if (position >= length) {
    return Invalid("position", "a number below " + std::to_string(length),
                   std::to_string(position));
  }
  return found;
}

Status Session::Contents::Read(NodeRange first, NodeRange second, BufferId buffer,
                               uint64_t position, std::span<double> out, Lane& lane) {
  const ComputingCall call(execution);
  StreamFrame frame = lane.stream.SourceFrame(position, 0);
  if (execution.device) static_cast<void>(query_frames->Take(frame));
  try {
    for (const NodeRange range : {first, second}) {
      KINGLET_RETURN_IF_ERROR(RunNodes(*model, range, {&frame, 1}, execution));
    }
    if (execution.device) {
      lane.ForgetResults();  // which may lie where the buffer does
      KINGLET_RETURN_IF_ERROR(execution.device->Fetch({&frame, 1}, {&buffer, 1}));
    }
    const Slot& slot = model->layout()[buffer];
    if (model->backend().real_bytes == sizeof(double)) {
      return CopyFinite<double>({slot.At<const double>(frame), slot.count}, out);
    }
    return CopyFinite<float>({slot.At<const float>(frame), slot.count}, out);
  } catch (const std::bad_alloc&) {  // reference kernels allocate
    return OutOfMemory();
  }
}

uint32_t Session::pooled_width() const { return PooledWidth(model().plan()); }
uint32_t Session::scores() const { return ScoreCount(model().plan()); }

Status Session::Pooled(std::span<double> out, uint32_t lane) {
  KINGLET_ASSIGN_OR_RETURN(Lane* const found, contents_->FindToken(0, lane));
  if (pooled_width() == 0) return NoPart("one with a pooler");
  KINGLET_RETURN_IF_ERROR(CheckSize("pooled vector", out.size(), pooled_width()));
  const Reading& reading = *model().plan().reading;
  return contents_->Read(reading.pooling, {}, *reading.pooled, 0, out, *found);
}

Status Session::Scores(std::span<double> out, uint64_t position, uint32_t lane) {
  KINGLET_ASSIGN_OR_RETURN(Lane* const found, contents_->FindToken(position, lane));
  if (scores() == 0) return NoPart("one that scores texts or spans");
  KINGLET_RETURN_IF_ERROR(CheckSize("scores", out.size(), scores()));
  const Reading& reading = *model().plan().reading;
  if (!reading.scores_spans && position > 0) {
    return Invalid("position", "0, as texts are scored", std::to_string(position));
  }
  return contents_->Read(reading.pooling, reading.scoring, *reading.scores, position, out, *found);
}

}  // namespace kinglet
