#include "runtime/stream.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <new>
#include <optional>
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

uint64_t ScratchBytes(const BufferLayout& layout, Stream::Queries queries) {
  return queries == Stream::Queries::kOwn ? layout.scratch_bytes : layout.token_scratch_bytes;
}

// Pages that are copied to or from a device at once.
constexpr size_t kPagesTogether = 16;
using PagesTogether = std::array<std::byte, kPagesTogether * StatePage::kBytes>;
// Calls copy(memory for pages on their way). Not inlined, as only devices need this much stack.
template <class Copy>
[[gnu::noinline]] Status WithPagesTogether(const Copy& copy) {
  PagesTogether pages;
  return copy(pages);
}

}  // namespace

Stream::Stream(const Model& model, Queries queries, DeviceLanes* device, uint32_t lane)
    : layout_(&model.layout()),
      device_(device),
      lane_(lane),
      pages_(PageCount(*layout_)),
      is_written_(PageCount(*layout_)) {
  if (device != nullptr) return;
  scratch_ = AllocateZeroed(ScratchBytes(*layout_, queries));
  state_ = AllocateZeroed(layout_->state_bytes);
  if (!scratch_ || !state_) throw std::bad_alloc();
  undo_.resize(UndoBytes(*layout_));
}

uint64_t Stream::Bytes(const Model& model, Queries queries) {
  const BufferLayout& layout = model.layout();
  const uint64_t pages = PageCount(layout) * (sizeof(SharedPage) + 1);
  if (model.device() != nullptr) return pages;
  return ScratchBytes(layout, queries) + layout.state_bytes + UndoBytes(layout) + pages;
}

Stream::Write Stream::WriteOf(const StateRegion& region, uint64_t position) {
  if (region.ring.of_source || position < region.ring.lag) return {region.offset, 0};
  const uint64_t slot = region.ring.Slot(position);
  return {region.offset + slot * region.slot_bytes, region.slot_bytes};
}

template <class Byte, class Copy>
void Stream::ForEachWrite(uint64_t tokens, Byte* kept, const Copy& copy) const {
  for (uint64_t position = position_; position < position_ + tokens; ++position) {
    for (const StateRegion& region : layout_->state_regions) {
      const Write write = WriteOf(region, position);
      if (write.bytes == 0) continue;
      copy(state_.get() + write.offset, kept, write.bytes);
      kept += write.bytes;
    }
  }
}

void Stream::BeginTogether(uint64_t tokens, std::byte* kept) const {
  ForEachWrite(tokens, kept, [](const std::byte* state, std::byte* to, uint64_t bytes) {
    std::memcpy(to, state, bytes);
  });
}

// Tokens that write to the same slot kept the same bytes, from before the first of these tokens.
void Stream::UndoTogether(uint64_t tokens, const std::byte* kept) {
  ForEachWrite(tokens, kept, [](std::byte* state, const std::byte* from, uint64_t bytes) {
    std::memcpy(state, from, bytes);
  });
}

void Stream::CopyOwnState(std::byte* own_state) const {
  for (const StateRegion& region : layout_->state_regions) {
    const std::optional<uint64_t> own = (*layout_)[region.buffer].own_offset;
    if (own) std::memcpy(own_state + *own, state_.get() + region.offset, region.slot_bytes);
  }
}

void Stream::CommitTogether(uint64_t tokens, uint32_t last, const std::byte* own_state) {
  for (const StateRegion& region : layout_->state_regions) {
    const std::optional<uint64_t> own = (*layout_)[region.buffer].own_offset;
    if (own && own_state != nullptr) {
      std::memcpy(state_.get() + region.offset, own_state + *own, region.slot_bytes);
    }
  }
  last_token_ = last;
  position_ += tokens;
}

uint64_t Stream::BytesTogether(const Model& model, uint64_t tokens) {
  return UndoBytes(model.layout()) * tokens;
}

StreamFrame Stream::Begin(uint32_t token) {
  if (device_ == nullptr) BeginTogether(1, undo_.data());
  return FrameAt(position_, token);
}

void Stream::Commit(uint32_t token) {
  last_token_ = token;
  ++position_;
}

void Stream::Undo() {
  if (device_ == nullptr) UndoTogether(1, undo_.data());
}

void Stream::Retract(uint32_t before) {
  --position_;
  last_token_ = before;
  Undo();
}

void Stream::MarkWritten(const Write& write) {
  if (write.bytes == 0) return;
  const uint64_t last = (write.offset + write.bytes - 1) / StatePage::kBytes;
  for (uint64_t page = write.offset / StatePage::kBytes; page <= last; ++page) {
    is_written_[page] = 1;
  }
}

void Stream::MarkTokens() {
  for (const StateRegion& region : layout_->state_regions) {
    const Ring& ring = region.ring;
    const uint64_t first = std::max(unmarked_, ring.lag);
    if (ring.of_source || position_ <= first) continue;
    const uint64_t count = std::min(position_ - first, ring.slots);
    const uint64_t slot = ring.Slot(first);
    const uint64_t to_end = std::min(count, ring.slots - slot);
    MarkWritten({region.offset + slot * region.slot_bytes, to_end * region.slot_bytes});
    MarkWritten({region.offset, (count - to_end) * region.slot_bytes});
  }
  unmarked_ = position_;
}

Status Stream::BeginSource(uint64_t tokens) {
  KINGLET_RETURN_IF_ERROR(Reset());
  source_length_ = tokens;
  for (const StateRegion& region : layout_->state_regions) {
    const uint64_t slots = region.SlotsWritten(0, tokens);
    MarkWritten({region.offset, slots * region.slot_bytes});
  }
  return Status();
}

template <class Needs>
Stream::PageRange Stream::NextPages(size_t from, const Needs& needs) const {
  while (from < pages_.size() && !needs(from)) ++from;
  PageRange found = {from, from};
  while (found.end < pages_.size() && found.end - from < kPagesTogether && needs(found.end)) {
    ++found.end;
  }
  return found;
}

// The state ends within its last page.
uint64_t Stream::BytesOf(PageRange pages) const {
  return std::min(pages.end * StatePage::kBytes, layout_->state_bytes) -
         pages.begin * StatePage::kBytes;
}

template <class Use>
void Stream::ForEachWritten(const Use& use) const {
  for (const StateRegion& region : layout_->state_regions) {
    const uint64_t slots = region.SlotsWritten(position_, source_length_);
    use(region.offset, region.offset + slots * region.slot_bytes);
  }
}

bool Stream::HasWritten(size_t i) const {
  const uint64_t begin = i * StatePage::kBytes, end = begin + StatePage::kBytes;
  bool any = false;
  ForEachWritten(
      [&](uint64_t from, uint64_t to) { any = any || std::max(from, begin) < std::min(to, end); });
  return any;
}

void Stream::ClearUnwritten(uint64_t offset, std::span<std::byte> memory) const {
  const uint64_t end = offset + memory.size();
  uint64_t cleared = offset;  // up to here
  const auto clear_to = [&](uint64_t to) {
    to = std::clamp(to, cleared, end);
    std::memset(memory.data() + (cleared - offset), 0, to - cleared);
  };
  ForEachWritten([&](uint64_t from, uint64_t to) {
    clear_to(from);
    cleared = std::clamp(to, cleared, end);
  });
  clear_to(end);
}

Result<State> Stream::Save(const std::shared_ptr<const Model>& model) {
  MarkTokens();
  const auto needs = [&](size_t i) { return is_written_[i] != 0; };
  for (PageRange part = NextPages(0, needs); part.begin < part.end;
       part = NextPages(part.end, needs)) {
    const uint64_t at = part.begin * StatePage::kBytes;
    const auto keep = [&](std::span<const std::byte> memory) -> Status {
      for (size_t i = part.begin; i < part.end; ++i) {
        const size_t within = (i - part.begin) * StatePage::kBytes;
        // Frees the old page first, unless a state shares it.
        pages_[i] = nullptr;
        is_written_[i] = 1;
        KINGLET_ASSIGN_OR_RETURN(
            pages_[i], MakePage(memory.subspan(within, std::min<size_t>(StatePage::kBytes,
                                                                        memory.size() - within)),
                                model->budget()));
        is_written_[i] = 0;
      }
      return Status();
    };
    if (device_ == nullptr) {
      KINGLET_RETURN_IF_ERROR(keep({state_.get() + at, BytesOf(part)}));
      continue;
    }
    const auto fetch_and_keep = [&](PagesTogether& fetched) -> Status {
      const std::span<std::byte> memory(fetched.data(), BytesOf(part));
      KINGLET_RETURN_IF_ERROR(device_->ReadState(lane_, at, memory));
      ClearUnwritten(at, memory);
      return keep(memory);
    };
    KINGLET_RETURN_IF_ERROR(WithPagesTogether(fetch_and_keep));
  }
  KINGLET_ASSIGN_OR_RETURN(const std::shared_ptr<PageTable> table, MakePageTable(*model));
  std::copy(pages_.begin(), pages_.end(), table->pages.begin());
  return State(model, position_, last_token_, source_length_, table);
}

template <class Pages>
Status Stream::SetPages(const Pages& pages) {
  // Null pages are zeros. On a device they need no copy where the stream has written nothing.
  const auto needs = [&](size_t i) {
    if (device_ != nullptr && pages(i) == nullptr) return HasWritten(i);
    return is_written_[i] != 0 || pages_[i] != pages(i);
  };
  for (PageRange part = NextPages(0, needs); part.begin < part.end;
       part = NextPages(part.end, needs)) {
    const uint64_t at = part.begin * StatePage::kBytes;
    const auto fill = [&](std::byte* memory) {
      for (size_t i = part.begin; i < part.end; ++i) {
        std::byte* const to = memory + (i - part.begin) * StatePage::kBytes;
        const uint64_t bytes = BytesOf({i, i + 1});
        const SharedPage& page = pages(i);
        if (page) {
          std::memcpy(to, page->bytes.data(), bytes);
        } else {
          std::memset(to, 0, bytes);
        }
      }
    };
    if (device_ == nullptr) {
      fill(state_.get() + at);
    } else {
      KINGLET_RETURN_IF_ERROR(WithPagesTogether([&](PagesTogether& given) {
        fill(given.data());
        return device_->WriteState(lane_, at, {given.data(), BytesOf(part)});
      }));
    }
    for (size_t i = part.begin; i < part.end; ++i) {
      pages_[i] = pages(i);
      is_written_[i] = 0;
    }
  }
  if (device_ == nullptr) return Status();
  for (size_t i = 0; i < pages_.size(); ++i) {
    if (pages(i) != nullptr) continue;
    pages_[i] = nullptr;
    is_written_[i] = 0;
  }
  return Status();
}

Status Stream::Reset() {
  MarkTokens();
  position_ = unmarked_ = 0;
  last_token_ = 0;
  source_length_ = 0;
  if (device_ == nullptr) return SetPages([](size_t) -> SharedPage { return nullptr; });
  std::fill(pages_.begin(), pages_.end(), nullptr);
  std::fill(is_written_.begin(), is_written_.end(), uint8_t{0});
  return Status();
}

Status Stream::Restore(const State& state) {
  MarkTokens();
  position_ = unmarked_ = state.position();
  last_token_ = state.last_token();
  source_length_ = state.source_length();
  return SetPages([&](size_t i) -> const SharedPage& { return state.pages()[i]; });
}

Status Stream::CopyOnDevice(const Stream& other) {
  KINGLET_RETURN_IF_ERROR(device_->CopyState(other.lane_, lane_));
  position_ = other.position_;
  last_token_ = other.last_token_;
  source_length_ = other.source_length_;
  std::copy(other.pages_.begin(), other.pages_.end(), pages_.begin());
  std::copy(other.is_written_.begin(), other.is_written_.end(), is_written_.begin());
  unmarked_ = other.unmarked_;
  return Status();
}

}  // namespace kinglet
