#include "runtime/stream.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <span>
#include <utility>

namespace kinglet {
namespace {

uint64_t UndoBytes(const BufferLayout& layout) {
  uint64_t bytes = 0;
  for (const StateRegion& region : layout.state_regions) {
    if (!region.ring.of_source) bytes += region.slot_bytes;
  }
  return bytes;
}

}  // namespace

Stream::Stream(const Model& model)
    : layout_(&model.layout()),
      scratch_(AllocateZeroed(layout_->scratch_bytes)),
      state_(AllocateZeroed(layout_->state_bytes)),
      undo_(UndoBytes(*layout_)),
      pages_(PageCount(*layout_)),
      is_written_(PageCount(*layout_)) {
  if (!scratch_ || !state_) throw std::bad_alloc();
}

uint64_t Stream::Bytes(const Model& model) {
  const BufferLayout& layout = model.layout();
  return layout.scratch_bytes + layout.state_bytes + UndoBytes(layout) +
         PageCount(layout) * (sizeof(SharedPage) + 1);
}

Stream::Write Stream::WriteOf(const StateRegion& region, uint64_t position) {
  if (region.ring.of_source || position < region.ring.lag) return {region.offset, 0};
  const uint64_t slot = (position - region.ring.lag) % region.ring.slots;
  return {region.offset + slot * region.slot_bytes, region.slot_bytes};
}

Frame Stream::Begin(uint32_t token) {
  std::byte* kept = undo_.data();
  for (const StateRegion& region : layout_->state_regions) {
    const Write write = WriteOf(region, position_);
    if (write.bytes == 0) continue;
    std::memcpy(kept, state_.get() + write.offset, write.bytes);
    kept += write.bytes;
    MarkWritten(write);
  }
  return {scratch_.get(), state_.get(), position_, token, source_length_};
}

// REQUIRES: write.bytes > 0.
void Stream::MarkWritten(const Write& write) {
  const uint64_t last = (write.offset + write.bytes - 1) / StatePage::kBytes;
  for (uint64_t page = write.offset / StatePage::kBytes; page <= last; ++page) {
    is_written_[page] = 1;
  }
}

void Stream::BeginSource(uint64_t tokens) {
  Reset();
  source_length_ = tokens;
  for (const StateRegion& region : layout_->state_regions) {
    if (region.ring.of_source) MarkWritten({region.offset, tokens * region.slot_bytes});
  }
}

void Stream::Commit(uint32_t token) {
  last_token_ = token;
  ++position_;
}

void Stream::Undo() {
  const std::byte* kept = undo_.data();
  for (const StateRegion& region : layout_->state_regions) {
    const Write write = WriteOf(region, position_);
    if (write.bytes == 0) continue;
    std::memcpy(state_.get() + write.offset, kept, write.bytes);
    kept += write.bytes;
  }
}

State Stream::Save(const std::shared_ptr<const Model>& model) {
  const std::span<const std::byte> memory(state_.get(), layout_->state_bytes);
  for (size_t i = 0; i < pages_.size(); ++i) {
    if (is_written_[i] == 0) continue;
    const uint64_t at = i * StatePage::kBytes;
    pages_[i] = MakePage(memory.subspan(at, std::min(StatePage::kBytes, memory.size() - at)));
    is_written_[i] = 0;
  }
  return State(model, position_, last_token_, source_length_, pages_);
}

void Stream::SetPage(size_t index, const SharedPage& page) {
  if (is_written_[index] == 0 && pages_[index] == page) return;
  const uint64_t at = index * StatePage::kBytes;
  const uint64_t bytes = std::min(StatePage::kBytes, layout_->state_bytes - at);
  if (page) {
    std::memcpy(state_.get() + at, page->bytes.data(), bytes);
  } else {
    std::memset(state_.get() + at, 0, bytes);
  }
  pages_[index] = page;
  is_written_[index] = 0;
}

void Stream::Reset() {
  for (size_t i = 0; i < pages_.size(); ++i) SetPage(i, nullptr);
  position_ = 0;
  last_token_ = 0;
  source_length_ = 0;
}

void Stream::Restore(const State& state) {
  for (size_t i = 0; i < pages_.size(); ++i) SetPage(i, state.pages()[i]);
  position_ = state.position();
  last_token_ = state.last_token();
  source_length_ = state.source_length();
}

}  // namespace kinglet
