// States as values and as bytes.
#include "runtime/state.h"

#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "format/digest.h"
#include "kernels/nine_bit_row.h"
#include "tests/runtime/session_fixture.h"

namespace kinglet::state_test {
namespace {

std::vector<std::byte> Blob(const State& state) {
  std::vector<std::byte> blob(state.BlobBytes());
  state.WriteBlob(blob);
  return blob;
}

// Corrects the checksum of a blob that was changed on purpose.
std::vector<std::byte> Resealed(std::vector<std::byte> blob) {
  const uint64_t digest = Digest64(std::span<const std::byte>(blob).first(blob.size() - 8));
  std::memcpy(blob.data() + blob.size() - 8, &digest, 8);
  return blob;
}

template <class T>
void Put(std::vector<std::byte>& blob, size_t at, T value) {
  std::memcpy(blob.data() + at, &value, sizeof value);
}

State After(Session& session, std::span<const uint32_t> ids) {
  for (const uint32_t id : ids) EXPECT_TRUE(session.StepToken(id).ok());
  return *session.Save();
}

TEST(State, ABlobGivesTheStateBackAtEveryPosition) {
  for (const bool quantised : {false, true}) {
    for (const Backend& backend : Backends()) {
      const auto model = Open(TinyMicronet(WholeOptions(quantised)), std::string(backend.name));
      const auto session = Start(model);
      for (const uint32_t id : Tokens(25, 40)) {
        const State state = *session->Save();
        const auto blob = Blob(state);
        EXPECT_LE(blob.size(), State::LargestBlobBytes(*model));
        const auto back = State::ReadBlob(model, blob);
        ASSERT_TRUE(back.ok()) << back.status().message();
        EXPECT_TRUE(*back == state);
        EXPECT_EQ(back->Hash(), state.Hash());
        EXPECT_EQ(back->position(), session->position());
        ASSERT_TRUE(session->StepToken(id).ok());
      }
      EXPECT_EQ(session->Save()->BlobBytes(), State::LargestBlobBytes(*model));
    }
  }
}

TEST(State, ABlobContainsOnlyWhatTokensHaveWritten) {
  const auto model = Open(TinyMicronet(WholeOptions(true)), "ref");
  const auto session = Start(model);
  const uint64_t empty = session->Save()->BlobBytes();
  EXPECT_EQ(empty, 72u);  // header 64, checksum 8
  uint64_t slot = 0;
  for (const StateRegion& region : model->layout().state_regions) {
    if (region.ring.lag == 0) slot += region.slot_bytes;
  }
  ASSERT_TRUE(session->StepToken(1).ok());
  EXPECT_EQ(session->Save()->BlobBytes(), empty + slot);
}

TEST(State, EqualHistoriesGiveEqualStatesAndOthersDoNot) {
  const auto model = Open(TinyMicronet(WholeOptions(true)), "cpu");
  const auto a = Start(model), b = Start(model);
  const auto ids = Tokens(30, 40);
  const State start = *a->Save();
  EXPECT_TRUE(start == State(model));
  EXPECT_EQ(start.Hash(), State(model).Hash());
  const State first = After(*a, ids);
  // The other stream is saved on the way, so that its pages are copied at other times.
  for (const uint32_t id : ids) {
    ASSERT_TRUE(b->StepToken(id).ok());
    ASSERT_TRUE(b->Save().ok());
  }
  EXPECT_TRUE(first == *b->Save());
  EXPECT_EQ(first.Hash(), b->Save()->Hash());
  EXPECT_FALSE(first == start);
  EXPECT_NE(first.Hash(), start.Hash());
  // A text gives the same bits on every backend of one real type.
  const auto reference = Start(Open(TinyMicronet(WholeOptions(true)), "ref"));
  EXPECT_TRUE(first == After(*reference, ids));

  ASSERT_TRUE(b->Reset().ok());
  EXPECT_TRUE(*b->Save() == start);
  auto other = ids;
  other.back() = (other.back() + 1) % 40;
  EXPECT_FALSE(first == After(*b, other));
}

TEST(State, SharesThePagesThatNoTokenTouched) {
  TinyOptions options = WholeOptions(true);
  options.cache_capacity = 4096;  // keys of 4096 * 8 codes: 16 pages
  const auto session = Start(Open(TinyMicronet(options), "ref"));
  for (const uint32_t id : Tokens(4000, 40)) ASSERT_TRUE(session->StepToken(id).ok());
  const State before = *session->Save();
  ASSERT_TRUE(session->StepToken(3).ok());
  const State after = *session->Save();
  size_t shared = 0;
  for (size_t i = 0; i < before.pages().size(); ++i) {
    if (before.pages()[i] == after.pages()[i]) ++shared;
  }
  ASSERT_GT(before.pages().size(), 16u);
  EXPECT_GE(shared + 5, before.pages().size());
  EXPECT_LT(shared, before.pages().size());
}

// A blob of 72 bytes is a state whose memory is zeros, of any size.
TEST(State, ReadingTakesMemoryForTheBlobNotForTheModelsState) {
  TinyOptions options = WholeOptions(true);
  options.cache_capacity = 1 << 20;
  const std::vector<std::byte> bytes = *SerialiseModel(TinyMicronet(options));
  const auto model = *Model::FromBytes(bytes, {});
  const uint64_t table = PageCount(model->layout()) * sizeof(SharedPage);
  ASSERT_GT(model->layout().state_bytes, 200 * table);
  const std::vector<std::byte> blob = Blob(State(model));
  ASSERT_EQ(blob.size(), 72u);
  MemoryBudget& budget = *model->budget();
  const uint64_t left = budget.left();
  ASSERT_TRUE(budget.Claim(left - table));
  {
    const auto read = State::ReadBlob(model, blob);
    ASSERT_TRUE(read.ok()) << read.status().message();
    EXPECT_TRUE(*read == State(model));
    EXPECT_EQ(budget.left(), 0u);
  }
  ASSERT_TRUE(budget.Claim(1));
  EXPECT_EQ(State::ReadBlob(model, blob).status().code(), KINGLET_OUT_OF_MEMORY);

  ModelOptions limited;
  limited.session_memory_limit = model->layout().state_bytes - 1;
  const auto refused = State::ReadBlob(*Model::FromBytes(bytes, limited), blob);
  EXPECT_EQ(refused.status().code(), KINGLET_OUT_OF_MEMORY);
  EXPECT_NE(refused.status().message().find("limit of a session"), std::string::npos);
}

TEST(State, EveryTruncationIsRefused) {
  const auto model = Open(TinyMicronet(WholeOptions(true)), "ref");
  const auto session = Start(model);
  auto blob = Blob(After(*session, Tokens(5, 40)));
  for (size_t size = 0; size < blob.size(); ++size) {
    const auto state = State::ReadBlob(model, std::span<const std::byte>(blob).first(size));
    ASSERT_FALSE(state.ok()) << size;
    ASSERT_EQ(state.status().code(), KINGLET_CORRUPT) << size;
    ASSERT_NE(state.status().message().find("expected"), std::string::npos);
  }
  blob.push_back(std::byte{0});
  EXPECT_EQ(State::ReadBlob(model, blob).status().code(), KINGLET_CORRUPT);
  EXPECT_EQ(State::ReadBlob(model, Resealed(blob)).status().code(), KINGLET_CORRUPT);
}

TEST(State, EveryFlippedBitIsRefused) {
  const auto model = Open(TinyMicronet(WholeOptions(true)), "ref");
  const auto session = Start(model);
  auto blob = Blob(After(*session, Tokens(3, 40)));
  for (size_t bit = 0; bit < 8 * blob.size(); ++bit) {
    blob[bit / 8] ^= std::byte{1} << (bit % 8);
    ASSERT_FALSE(State::ReadBlob(model, blob).ok()) << bit;
    blob[bit / 8] ^= std::byte{1} << (bit % 8);
  }
  EXPECT_TRUE(State::ReadBlob(model, blob).ok());
}

TEST(State, AForeignStateIsRefusedByName) {
  const auto model = Open(TinyMicronet(WholeOptions(true)), "ref");
  TinyOptions other_options = WholeOptions(true);
  other_options.seed = 2;  // the same shapes, other weights
  const auto other = Open(TinyMicronet(other_options), "ref");
  const auto session = Start(model), stranger = Start(other);
  const State state = After(*session, Tokens(7, 40));
  const auto refused = State::ReadBlob(other, Blob(state));
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.status().code(), KINGLET_MISMATCH);
  EXPECT_NE(refused.status().message().find(other->file().digest()), std::string::npos);
  EXPECT_EQ(stranger->Restore(state).code(), KINGLET_MISMATCH);
  EXPECT_EQ(stranger->position(), 0u);

  const auto wide = Open(TinyMicronet(WholeOptions(true)), "ref64");
  EXPECT_EQ(State::ReadBlob(wide, Blob(state)).status().code(), KINGLET_MISMATCH);
  EXPECT_EQ(Start(wide)->Restore(state).code(), KINGLET_MISMATCH);
  EXPECT_FALSE(state == State(other));
}

TEST(State, ForgedContentIsRefusedWhereItWouldBeUsed) {
  const auto model = Open(TinyMicronet(WholeOptions(true)), "ref");
  const auto session = Start(model);
  const std::vector<std::byte> good = Blob(After(*session, Tokens(20, 40)));
  ASSERT_TRUE(State::ReadBlob(model, good).ok());
  const auto refuses = [&](const std::vector<std::byte>& blob, StatusCode code, const char* place) {
    const auto state = State::ReadBlob(model, Resealed(blob));
    ASSERT_FALSE(state.ok()) << place;
    EXPECT_EQ(state.status().code(), code) << place;
    EXPECT_NE(state.status().message().find(place), std::string::npos) << state.status().message();
  };
  auto blob = good;
  Put(blob, 0, uint32_t{7});
  refuses(blob, KINGLET_CORRUPT, "byte 0");
  blob = good;
  Put(blob, 4, uint32_t{1});
  refuses(blob, KINGLET_UNSUPPORTED_VERSION, "version");
  blob = good;
  Put(blob, 12, uint32_t{40});
  refuses(blob, KINGLET_CORRUPT, "last token");
  blob = good;
  Put(blob, 16, std::numeric_limits<uint64_t>::max());
  refuses(blob, KINGLET_CORRUPT, "position");
  blob = good;
  Put(blob, 16, uint64_t{2});  // fewer slots than the blob contains
  refuses(blob, KINGLET_CORRUPT, "size");

  blob = good;
  Put(blob, 24, uint64_t{1});  // a source, in a model without an encoder
  refuses(blob, KINGLET_CORRUPT, "tokens of the source");

  blob = Blob(State(model));
  Put(blob, 12, uint32_t{1});  // a last token, in a stream without tokens
  refuses(blob, KINGLET_CORRUPT, "last token");

  // Each state buffer in turn, in its last written entry.
  size_t at = 64;
  for (const StateRegion& region : model->layout().state_regions) {
    at += region.SlotsWritten(20, 0) * region.slot_bytes;
    const BufferSpec& buffer = model->plan().buffer(region.buffer);
    blob = good;
    if (buffer.element == Element::kUint32) {
      Put(blob, at - 4, uint32_t{40});
    } else if (buffer.element == Element::kCode9) {
      const NineBitRow row{buffer.row};
      const size_t last = at - row.Bytes();
      ASSERT_LT(row.count, row.Padded());
      for (const uint64_t padding : {row.count, row.Padded() - 1}) {
        blob = good;
        blob[last + padding] = std::byte{1};
        refuses(blob, KINGLET_CORRUPT, buffer.name.c_str());
      }
      blob = good;
      blob[at - 1] = std::byte{0x80};  // the sign of the last code of the padding
      refuses(blob, KINGLET_CORRUPT, buffer.name.c_str());
      blob = good;
      row.Store([&](uint64_t i) { return i + 1 == row.count ? -256 : 0; },
                reinterpret_cast<uint8_t*>(blob.data() + last));
    } else {
      ASSERT_EQ(buffer.element, Element::kCode16);
      Put(blob, at - 2, static_cast<int16_t>(LargestCode(*buffer.quantiser) + 1));
    }
    refuses(blob, KINGLET_CORRUPT, buffer.name.c_str());
  }
}

TEST(State, FloatsMustBeFinite) {
  const auto model = Open(TinyMicronet(WholeOptions(false)), "ref");
  const auto session = Start(model);
  auto blob = Blob(After(*session, Tokens(3, 40)));
  Put(blob, 64, std::numeric_limits<float>::quiet_NaN());
  const auto state = State::ReadBlob(model, Resealed(blob));
  ASSERT_FALSE(state.ok());
  EXPECT_EQ(state.status().code(), KINGLET_CORRUPT);
}

TEST(State, OutlivesItsSessionAndItsModelHandle) {
  std::vector<std::byte> blob;
  std::optional<State> state;
  {
    const auto session = Start(Open(TinyMicronet(WholeOptions(true)), "ref"));
    state.emplace(After(*session, Tokens(5, 40)));
    blob = Blob(*state);
  }
  EXPECT_EQ(Blob(*state), blob);
  const auto session = Start(Open(TinyMicronet(WholeOptions(true)), "cpu"));
  EXPECT_TRUE(session->Restore(*state).ok());
}

}  // namespace
}  // namespace kinglet::state_test
