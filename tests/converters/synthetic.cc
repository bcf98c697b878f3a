#include "tests/converters/synthetic.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "tests/support/model_builder.h"

namespace kinglet {
namespace {

constexpr uint64_t kWidth = 8, kHeads = 2, kKey = 3, kValue = 5, kInner = 12, kSeq = 5, kLayers = 2;

class Maker {
 public:
  Maker(const SyntheticOptions& options, std::vector<SyntheticTensor>& tensors)
      : options_(options), tensors_(tensors) {}

  void Make() {
    std::vector<uint64_t> ends(options_.cutoffs.begin(), options_.cutoffs.end());
    ends.push_back(options_.vocabulary_size);
    std::vector<SyntheticTensor> tables;
    uint64_t first = 0;
    for (size_t i = 0; i < ends.size(); ++i) {
      tables.push_back(Matrix("", ends[i] - first, kWidth >> i));
      first = ends[i];
    }
    AddTables("embed", tables);
    AddProjections("embed", ends.size(), true);
    for (uint64_t i = 0; i < kLayers; ++i) AddLayer("layers." + std::to_string(i) + ".");
    AddQuantiser("quant");
    tensors_.push_back(Matrix("loss.clusters.weight", ends.size() - 1, kWidth));
    tensors_.push_back(Bias("loss.clusters.bias", ends.size() - 1));
    AddTables("loss", tables);
    AddProjections("loss", ends.size(), false);
    if (options_.trained_cache) {
      tensors_.push_back({"loss.cache_theta_inv_softplus", {}, {-4.5F}});
      tensors_.push_back({"loss.cache_lambda_inv_sigmoid", {}, {-1.5F}});
    }
  }

 private:
  // The largest code and a scale with its low mantissa bits cleared.
  float Scale(int bits) {
    const float scale = 0.001F + 0.001F * static_cast<float>(random_.Below(100));
    return std::bit_cast<float>(std::bit_cast<uint32_t>(scale) >> bits << bits);
  }
  std::vector<float> Codes(uint64_t count, int bits) {
    const int largest = (1 << (bits - 1)) - 1;
    std::vector<float> codes(count);
    for (float& code : codes) {
      code = static_cast<float>(static_cast<int>(random_.Below(2 * largest + 1)) - largest);
    }
    // Symmetric quantisation maps the largest magnitude to the largest code.
    if (count > 0) {
      codes[random_.Below(count)] = static_cast<float>(random_.Below(2) == 0 ? largest : -largest);
    }
    return codes;
  }

  SyntheticTensor Matrix(const std::string& name, uint64_t rows, uint64_t cols) {
    SyntheticTensor tensor{name, {rows, cols}, {}};
    for (uint64_t row = 0; row < rows; ++row) {
      if (options_.bits) {
        const float scale = Scale(*options_.bits);
        for (const float code : Codes(cols, *options_.bits)) tensor.values.push_back(code * scale);
      } else {
        for (uint64_t col = 0; col < cols; ++col) tensor.values.push_back(random_.Signed());
      }
    }
    return tensor;
  }

  SyntheticTensor Bias(const std::string& name, uint64_t count) {
    SyntheticTensor tensor{name, {count}, {}};
    if (!options_.bits) return Vector(name, count);
    const float divisor = 100.0F + random_.Signed();
    for (const float code : Codes(count, *options_.bits)) tensor.values.push_back(code / divisor);
    return tensor;
  }

  SyntheticTensor Vector(const std::string& name, uint64_t count) {
    SyntheticTensor tensor{name, {count}, {}};
    for (uint64_t i = 0; i < count; ++i) tensor.values.push_back(random_.Signed());
    return tensor;
  }

  void AddTables(const std::string& prefix, const std::vector<SyntheticTensor>& tables) {
    for (size_t i = 0; i < tables.size(); ++i) {
      SyntheticTensor table = tables[i];
      const std::string layer = prefix + ".layers." + std::to_string(i);
      table.name = layer + ".weight";
      tensors_.push_back(table);
      if (prefix == "loss") tensors_.push_back(Bias(layer + ".bias", table.shape[0]));
    }
  }

  void AddProjections(const std::string& prefix, size_t bins, bool to_width) {
    for (size_t i = 1; i < bins; ++i) {
      const std::string name = prefix + ".projections." + std::to_string(i - 1) + ".weight";
      tensors_.push_back(to_width ? Matrix(name, kWidth, kWidth >> i)
                                  : Matrix(name, kWidth >> i, kWidth));
    }
  }

  void AddQuantiser(const std::string& name) {
    if (!options_.bits) return;
    const float max_abs = 2.0F + random_.Signed();
    const auto levels = static_cast<float>((1 << (*options_.bits - 1)) - 1);
    tensors_.push_back({name + ".max_abs", {1}, {max_abs}});
    tensors_.push_back({name + ".inv_scale", {}, {max_abs / levels}});
  }

  void AddLayer(const std::string& prefix) {
    const uint64_t qkv = kHeads * (2 * kKey + kValue);
    SyntheticTensor positions = Vector(prefix + "pos_emb", kKey * (kSeq + 1));
    positions.shape = {kKey, kSeq + 1};
    tensors_.push_back(positions);
    tensors_.push_back(Vector(prefix + "ln1.weight", kWidth));
    tensors_.push_back(Vector(prefix + "ln1.bias", kWidth));
    AddQuantiser(prefix + "quant_ln1");
    tensors_.push_back(Matrix(prefix + "qkv.weight", qkv, kWidth));
    tensors_.push_back(Bias(prefix + "qkv.bias", qkv));
    AddQuantiser(prefix + "quant_qkv");
    AddQuantiser(prefix + "quant_attn");
    AddQuantiser(prefix + "quant_attnv");
    tensors_.push_back(Matrix(prefix + "out.weight", kWidth, kHeads * kValue));
    tensors_.push_back(Vector(prefix + "ln2.weight", kWidth));
    tensors_.push_back(Vector(prefix + "ln2.bias", kWidth));
    AddQuantiser(prefix + "quant_ln2");
    tensors_.push_back(Matrix(prefix + "fc.0.weight", kInner, kWidth));
    tensors_.push_back(Bias(prefix + "fc.0.bias", kInner));
    AddQuantiser(prefix + "fc.1");
    tensors_.push_back(Matrix(prefix + "fc.3.weight", kWidth, kInner));
    tensors_.push_back(Bias(prefix + "fc.3.bias", kWidth));
    AddQuantiser(prefix + "fc.4");
  }

  const SyntheticOptions& options_;
  std::vector<SyntheticTensor>& tensors_;
  TestRandom random_{7};
};

// The pickle opcodes of what torch.save writes, protocol 2.
class LegacyWriter {
 public:
  explicit LegacyWriter(const std::vector<SyntheticTensor>& tensors) : tensors_(tensors) {}

  std::string Write(bool bare) {
    Raw("\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19.");  // the magic number
    Raw("\x80\x02M\xe9\x03.");                                         // protocol 1001
    Raw("\x80\x02}(");
    Text("protocol_version");
    Raw("M\xe9\x03");
    Text("little_endian");
    Raw("\x88u.");
    Raw("\x80\x02}(");
    if (bare) {
      Tensors();
    } else {
      Text("step");
      Integer(7);
      Text("net");
      Raw("}(");
      Tensors();
      Raw("u");
    }
    Raw("u.");
    Raw("\x80\x02](");
    for (size_t i = 0; i < tensors_.size(); ++i) Text(std::to_string(i));
    Raw("e.");
    for (const SyntheticTensor& tensor : tensors_) {
      Little(static_cast<uint64_t>(tensor.values.size()));
      for (const float value : tensor.values) Little(std::bit_cast<uint32_t>(value));
    }
    return std::move(out_);
  }

 private:
  template <size_t n>
  void Raw(const char (&bytes)[n]) {
    out_.append(bytes, n - 1);
  }
  template <class Word>
  void Little(Word word) {
    for (size_t i = 0; i < sizeof(Word); ++i) out_ += static_cast<char>(word >> (8 * i) & 0xFF);
  }
  void Text(const std::string& text) {
    out_ += 'X';
    Little(static_cast<uint32_t>(text.size()));
    out_ += text;
  }
  void Integer(uint64_t number) {
    out_ += 'J';
    Little(static_cast<uint32_t>(number));
  }

  void Tensors() {
    for (size_t i = 0; i < tensors_.size(); ++i) {
      const SyntheticTensor& tensor = tensors_[i];
      Text(tensor.name);
      Raw("ctorch._utils\n_rebuild_tensor_v2\n((");
      Text("storage");
      Raw("ctorch\nFloatStorage\n");
      Text(std::to_string(i));
      Text("cpu");
      Integer(tensor.values.size());
      Raw("NtQ");
      Integer(0);
      Raw("(");
      for (const uint64_t size : tensor.shape) Integer(size);
      Raw("t(");
      for (size_t axis = 0; axis < tensor.shape.size(); ++axis) {
        uint64_t stride = 1;
        for (size_t inner = axis + 1; inner < tensor.shape.size(); ++inner) {
          stride *= tensor.shape[inner];
        }
        Integer(stride);
      }
      Raw("t\x89"
          "ccollections\nOrderedDict\n)RtR");
    }
  }

  const std::vector<SyntheticTensor>& tensors_;
  std::string out_;
};

}  // namespace

SyntheticMicronet::SyntheticMicronet(const SyntheticOptions& options) {
  Maker(options, tensors).Make();
  std::string cutoffs, widths;
  for (size_t i = 0; i <= options.cutoffs.size(); ++i) {
    widths += (i == 0 ? "" : ", ") + std::to_string(kWidth >> i);
    if (i == options.cutoffs.size()) break;
    cutoffs += (i == 0 ? "" : ", ") + std::to_string(options.cutoffs[i]);
  }
  config = {"n_vocab: " + std::to_string(options.vocabulary_size),
            "n_embed: " + std::to_string(kWidth),
            "n_embeds: [" + widths + "]",
            "n_layers: " + std::to_string(kLayers),
            "n_head: " + std::to_string(kHeads),
            "n_k: " + std::to_string(kKey),
            "n_v: " + std::to_string(kValue),
            "n_inner: " + std::to_string(kInner),
            "n_seq: " + std::to_string(kSeq),
            "pos_emb: trained",
            "use_cache: true",
            "n_cache: " + std::to_string(options.cache)};
  if (!options.cutoffs.empty()) config.push_back("cutoffs: [" + cutoffs + "]");
  if (options.bits) {
    config.push_back("bits: " + std::to_string(*options.bits));
    config.emplace_back("model: quantize.Transformer");
  }
  const std::string suffix = options.trained_cache ? "_init" : "";
  config.push_back("cache_theta" + suffix + ": 0.25");
  config.push_back("cache_lambda" + suffix + ": 0.125");
}

SyntheticTensor& SyntheticMicronet::Get(std::string_view name) {
  const auto found = std::find_if(tensors.begin(), tensors.end(),
                                  [&](const SyntheticTensor& t) { return t.name == name; });
  EXPECT_NE(found, tensors.end()) << name;
  return *found;
}

void SyntheticMicronet::Remove(std::string_view name) {
  EXPECT_EQ(std::erase_if(tensors, [&](const SyntheticTensor& t) { return t.name == name; }), 1U)
      << name;
}

bool SyntheticMicronet::Has(std::string_view name) const {
  return std::any_of(tensors.begin(), tensors.end(),
                     [&](const SyntheticTensor& t) { return t.name == name; });
}

CheckpointTensors SyntheticMicronet::Weights() const {
  CheckpointTensors weights;
  for (const SyntheticTensor& tensor : tensors) {
    weights.push_back({tensor.name, tensor.shape,
                       [&tensor]() -> Result<std::vector<float>> { return tensor.values; }});
  }
  return weights;
}

std::string SyntheticMicronet::ConfigText() const {
  std::string text;
  for (const std::string& line : config) text += line + "\n";
  return text;
}

Result<MicronetConfig> SyntheticMicronet::Config(std::optional<int64_t> step) const {
  const TemporaryFolder folder;
  KINGLET_ASSIGN_OR_RETURN(const ConfigFile file,
                           ConfigFile::Read(folder.Write("config.yaml", ConfigText())));
  return ReadMicronetConfig(file, step);
}

std::string SyntheticMicronet::LegacyFile(bool bare) const {
  return LegacyWriter(tensors).Write(bare);
}

}  // namespace kinglet
