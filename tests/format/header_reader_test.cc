#include "format/header_reader.h"

#include <gtest/gtest.h>

#include <cstring>

#include "format/limits.h"
#include "tests/format/hostile_edits.h"
#include "tests/support/model_builder.h"

namespace kinglet::header_reader_test {
namespace {

TEST(HeaderReaderTest, Features) {
  const HostileEdit edits[] = {
      {"header, features", [](EditableFile& file) { file.header.features = {"coded"}; },
       KINGLET_UNSUPPORTED_VERSION},
      {"header, features",
       [](EditableFile& file) {
         file.header.features = {"a", "b\n\x1b[2J"};
       },
       KINGLET_UNSUPPORTED_VERSION},
      {"header, features",
       [](EditableFile& file) { file.header.features.assign(1000, std::string(100, 'x')); },
       KINGLET_UNSUPPORTED_VERSION},
  };
  ExpectRefused(edits);
  EditableFile file = GoodFile();
  file.header.features = {"coded", "lstm"};
  EXPECT_EQ(OpenStatus(file.Build()).message(),
            "model in memory: header, features: expected only features this version has (none), "
            "found coded, lstm");
}

TEST(HeaderReaderTest, Enumerators) {
  const HostileEdit edits[] = {
      {"tensor layers.0.ln1.weight, float type",
       [](EditableFile& file) {
         file.Tensor("layers.0.ln1.weight").dense->type = static_cast<editable::FloatType>(2);
       }},
      {"tensor layers.0.qkv.bias, scale rule",
       [](EditableFile& file) {
         file.Tensor("layers.0.qkv.bias").packed->rule = static_cast<editable::ScaleRule>(255);
       }},
      {"block decoder, start",
       [](EditableFile& file) { file.Decoder().start = static_cast<editable::StreamStart>(2); }},
      {"block loss, normalisation",
       [](EditableFile& file) {
         file.Softmax().normalisation = static_cast<editable::Normalisation>(2);
       }},
      {"block loss, tail input",
       [](EditableFile& file) { file.Softmax().tail_input = static_cast<editable::TailInput>(2); }},
  };
  ExpectRefused(edits);
}

TEST(HeaderReaderTest, KindsOfTensorsAndBlocks) {
  const HostileEdit edits[] = {
      {"tensor layers.0.ln1.weight",
       [](EditableFile& file) { file.Tensor("layers.0.ln1.weight").dense.reset(); }},
      {"tensor layers.0.ln1.weight",
       [](EditableFile& file) {
         editable::TensorT& tensor = file.Tensor("layers.0.ln1.weight");
         tensor.packed =
             std::make_unique<editable::PackedT>(*file.Tensor("layers.0.qkv.bias").packed);
       }},
      {"block embed",
       [](EditableFile& file) { file.header.blocks[0]->adaptive_embedding.reset(); }},
      {"block embed",
       [](EditableFile& file) {
         file.header.blocks[0]->neural_cache =
             std::make_unique<editable::NeuralCacheT>(file.Cache());
       }},
      {"block 2, bytes of its name",
       [](EditableFile& file) { file.header.blocks[2]->name = std::string(1025, 'a'); }},
      {"blocks",
       [](EditableFile& file) {
         for (int i = 0; i < 5; ++i) {
           file.header.blocks.push_back(
               std::make_unique<editable::BlockT>(*file.header.blocks.back()));
         }
       }},
  };
  ExpectRefused(edits);
}

TEST(HeaderReaderTest, LongLists) {
  const HostileEdit edits[] = {
      {"block decoder, layers",
       [](EditableFile& file) {
         auto& layers = file.Decoder().layers;
         while (layers.size() <= kMaxLayers) {
           layers.push_back(std::make_unique<editable::TransformerLayerT>(*layers[0]));
         }
       }},
      {"block embed, bins",
       [](EditableFile& file) {
         auto& bins = file.Embedding().bins;
         while (bins.size() <= kMaxBins) {
           bins.push_back(std::make_unique<editable::EmbeddingBinT>(*bins[0]));
         }
       }},
      {"block loss, tails",
       [](EditableFile& file) {
         auto& tails = file.Softmax().tails;
         while (tails.size() < kMaxBins) {
           tails.push_back(std::make_unique<editable::SoftmaxTailT>(*tails[0]));
         }
       }},
      {"tensors",
       [](EditableFile& file) {
         auto& tensors = file.header.tensors;
         while (tensors.size() <= 2 * file.segments.size()) {
           tensors.push_back(std::make_unique<editable::TensorT>(*tensors[0]));
         }
       }},
  };
  ExpectRefused(edits);
}

TEST(HeaderReaderTest, SegmentsAreUsedOnce) {
  const HostileEdit edits[] = {
      {"tensor layers.0.ln1.weight, values, segment",
       [](EditableFile& file) { file.Tensor("layers.0.ln1.weight").dense->values = 1000; }},
      {"segment",
       [](EditableFile& file) {
         file.Tensor("layers.0.ln1.weight").dense->values =
             file.Tensor("layers.0.ln1.bias").dense->values;
       }},
      {"tensor layers.0.qkv.bias, scales, segment",
       [](EditableFile& file) {
         editable::PackedT& packed = *file.Tensor("layers.0.qkv.bias").packed;
         packed.scales->words = packed.codes;
       }},
      {"tensor layers.0.qkv.weight, mask, segment",
       [](EditableFile& file) { file.Tensor("layers.0.qkv.weight").mask->bits = 0xFFFFFFFF; }},
      {"vocabulary, words, segment",
       [](EditableFile& file) { file.header.vocabulary->words = 1000; }},
      {"vocabulary, ranks, segment", [](EditableFile& file) { file.header.vocabulary->ranks = 0; }},
      {"segment", [](EditableFile& file) { file.segments.emplace_back(100); }},
      {"segment", [](EditableFile& file) { file.segments.emplace_back(); }},
      {"segment", [](EditableFile& file) { file.header.vocabulary.reset(); }},
      {"vocabulary: words",
       [](EditableFile& file) {
         std::swap(file.header.vocabulary->words, file.header.vocabulary->ranks);
       }},
  };
  // The last part may be refused for its size or for its first value.
  ExpectRefused(std::span(edits).first(std::size(edits) - 1));
  EditableFile file = GoodFile();
  edits[std::size(edits) - 1].edit(file);
  EXPECT_EQ(OpenStatus(file.Build()).code(), KINGLET_INVALID_MODEL);
}

void SetOffset(editable::Segment& segment, uint64_t offset) {
  segment = {offset, segment.size(), segment.digest()};
}
void SetSize(editable::Segment& segment, uint64_t size) {
  segment = {segment.offset(), size, segment.digest()};
}

// Edits of the segment table itself; BuildAsIs keeps them.
TEST(HeaderReaderTest, SegmentTable) {
  const auto refused = [](const char* where, auto edit) {
    EditableFile file = EditableFile::FromBytes(GoodFile().Build());
    auto& table = file.header.segments;
    edit(table);
    const Status status = OpenStatus(file.BuildAsIs());
    EXPECT_EQ(status.code(), KINGLET_CORRUPT) << where;
    EXPECT_TRUE(IsRefusalOf(status.message(), where)) << status.message();
  };
  using Table = std::vector<editable::Segment>;
  refused("segment 1, offset", [](Table& table) { SetOffset(table[1], table[0].offset()); });
  refused("segment 1, offset", [](Table& table) { SetOffset(table[1], ~uint64_t{0}); });
  refused("segment 1, offset", [](Table& table) { SetOffset(table[1], table[1].offset() + 64); });
  refused("segment 0, offset", [](Table& table) { SetOffset(table[0], 0); });
  refused("segment 1, offset", [](Table& table) { SetSize(table[0], table[0].size() + 64); });
  refused("segment 0, size", [](Table& table) { SetSize(table[0], uint64_t{1} << 63); });
  refused("segment 0, size", [](Table& table) { SetSize(table[0], ~uint64_t{0}); });
  refused("file size", [](Table& table) { SetSize(table.back(), table.back().size() - 1); });
  refused("", [](Table& table) { table.pop_back(); });
  refused("segment", [](Table& table) { table.push_back({~uint64_t{63}, 1, 0}); });
  refused("segment 2 at byte", [](Table& table) {
    table[2] = {table[2].offset(), table[2].size(), 1};
  });
  refused("file size", [](Table& table) { table.clear(); });
}

TEST(HeaderReaderTest, PaddingMustBeZero) {
  EditableFile file = GoodFile();
  std::vector<std::byte> bytes = file.Build();
  const editable::Segment& first = file.header.segments[0];
  const size_t at = first.offset() + first.size();
  ASSERT_NE(at % 64, 0u);
  bytes[at] = std::byte{1};
  EXPECT_EQ(OpenStatus(bytes).message(),
            "model in memory: padding, byte " + std::to_string(at) + ": expected 0, found 1");
}

TEST(HeaderReaderTest, StructureIsVerified) {
  const auto message = [](const std::vector<std::byte>& header) {
    const Status status = OpenStatus(Frame64(header, {}));
    EXPECT_EQ(status.code(), KINGLET_CORRUPT);
    return status.message();
  };
  EXPECT_TRUE(IsRefusalOf(message({}), "header, byte 64"));
  EXPECT_TRUE(IsRefusalOf(message(std::vector<std::byte>(8)), "header, byte 64"));
  EXPECT_TRUE(IsRefusalOf(message(std::vector<std::byte>(1000, std::byte{0xFF})), "header"));
  // A wrong identifier on an otherwise valid header.
  flatbuffers::FlatBufferBuilder builder;
  const EditableFile good = GoodFile();
  builder.Finish(editable::Model::Pack(builder, &good.header), "KGL9");
  const auto bytes = std::as_bytes(std::span(builder.GetBufferPointer(), builder.GetSize()));
  EXPECT_TRUE(IsRefusalOf(message({bytes.begin(), bytes.end()}), "header, byte 64"));
  // A Model without its required fields.
  flatbuffers::FlatBufferBuilder empty;
  const auto start = empty.StartTable();
  const flatbuffers::Offset<editable::Model> table(empty.EndTable(start));
  empty.Finish(table, editable::ModelIdentifier());
  const auto no_fields = std::as_bytes(std::span(empty.GetBufferPointer(), empty.GetSize()));
  EXPECT_TRUE(IsRefusalOf(message({no_fields.begin(), no_fields.end()}), "header, byte 64"));
}

// Shared tables would make the verifier's work quadratic if it were not bounded. Here 20,000 blocks
// share one decoder, whose 20,000 layers are one shared layer.
TEST(HeaderReaderTest, SharedTablesAreNotFollowedForEver) {
  flatbuffers::FlatBufferBuilder builder;
  const auto layer = editable::CreateTransformerLayer(builder);
  const auto layers = builder.CreateVector(
      std::vector<flatbuffers::Offset<editable::TransformerLayer>>(20000, layer));
  const auto decoder =
      editable::CreateTransformerDecoder(builder, 1, 1, 1, 1, 1, editable::StreamStart::Masked,
                                         editable::NormOrder::Pre, 1e-5, 0, 0, 0, layers);
  const auto block = editable::CreateBlock(builder, builder.CreateString("d"), 0, decoder);
  const auto blocks =
      builder.CreateVector(std::vector<flatbuffers::Offset<editable::Block>>(20000, block));
  const auto text = builder.CreateString("");
  const auto provenance = editable::CreateProvenance(builder, text, text, text, text, text);
  const auto tensors = builder.CreateVector(std::vector<flatbuffers::Offset<editable::Tensor>>());
  const auto segments = builder.CreateVectorOfStructs(std::vector<editable::Segment>());
  builder.Finish(editable::CreateModel(builder, 0, provenance, 1, 0, 0, flatbuffers::nullopt,
                                       blocks, tensors, 0, segments),
                 editable::ModelIdentifier());
  const auto bytes = std::as_bytes(std::span(builder.GetBufferPointer(), builder.GetSize()));
  const Status status = OpenStatus(Frame64(bytes, {}));
  EXPECT_EQ(status.code(), KINGLET_CORRUPT);
  EXPECT_TRUE(IsRefusalOf(status.message(), "header, byte 64")) << status.message();
}

// If every text of the header refers to one long string, copying each would take much memory.
TEST(HeaderReaderTest, SharedStringsAreNotCopiedForEver) {
  flatbuffers::FlatBufferBuilder builder;
  const auto text = builder.CreateString(std::string(1 << 20, 'x'));
  const auto provenance = editable::CreateProvenance(builder, text, text, text, text, text);
  const auto blocks = builder.CreateVector(std::vector<flatbuffers::Offset<editable::Block>>());
  const auto tensors = builder.CreateVector(std::vector<flatbuffers::Offset<editable::Tensor>>());
  const auto segments = builder.CreateVectorOfStructs(std::vector<editable::Segment>());
  builder.Finish(editable::CreateModel(builder, 0, provenance, 1, 0, 0, flatbuffers::nullopt,
                                       blocks, tensors, 0, segments),
                 editable::ModelIdentifier());
  const auto bytes = std::as_bytes(std::span(builder.GetBufferPointer(), builder.GetSize()));
  const Status status = OpenStatus(Frame64(bytes, {}));
  EXPECT_EQ(status.code(), KINGLET_INVALID_MODEL);
  EXPECT_TRUE(IsRefusalOf(status.message(), "provenance")) << status.message();
}

// The verifier of FlatBuffers 2.0 does not check how the elements of a vector of structs are
// aligned.
TEST(HeaderReaderTest, MisalignedStructsAreRefused) {
  const std::vector<std::byte> bytes = GoodFile().Build();
  uint64_t header_size = 0;
  std::memcpy(&header_size, &bytes[24], 8);
  std::vector<std::byte> header(bytes.begin() + 64,
                                bytes.begin() + 64 + static_cast<ptrdiff_t>(header_size));
  // Moves the segment vector's length field, and so its elements, by 4: the field's offset from
  // the model table is changed, and the length is written where it now points.
  auto* model = flatbuffers::GetMutableRoot<flatbuffers::Table>(header.data());
  auto* field =
      reinterpret_cast<flatbuffers::uoffset_t*>(model->GetAddressOf(editable::Model::VT_SEGMENTS));
  ASSERT_NE(field, nullptr);
  auto* length = reinterpret_cast<std::byte*>(field) + *field;
  const flatbuffers::uoffset_t fewer = 3;
  std::memcpy(length + 4, &fewer, 4);
  *field += 4;
  const std::span<const std::byte> rest = std::span(bytes).subspan(64 + header_size);
  const Status status = OpenStatus(Frame64(header, rest));
  EXPECT_EQ(status.code(), KINGLET_CORRUPT);
  EXPECT_TRUE(IsRefusalOf(status.message(), "header, segments")) << status.message();
}

}  // namespace
}  // namespace kinglet::header_reader_test
