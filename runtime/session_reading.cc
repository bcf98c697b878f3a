// The queries of a session about a text that a masked model has read.
#include <algorithm>
#include <cmath>
#include <new>
#include <span>
#include <string>

#include "kernels/device_program.h"
#include "runtime/reading_widths.h"
#include "runtime/session_contents.h"
#include "runtime/session_refusals.h"

namespace kinglet {

using session::CheckSize;
using session::Invalid;
using session::NoPart;
using session::OutOfMemory;

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
  try {
    for (const NodeRange range : {first, second}) {
      KINGLET_RETURN_IF_ERROR(RunNodes(*model, range, {&frame, 1}, execution));
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
