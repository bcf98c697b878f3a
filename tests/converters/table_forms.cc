#include "tests/converters/table_forms.h"

#include <bit>
#include <cstring>
#include <functional>

#include "converters/splitmix.h"

namespace kinglet {
namespace {

template <class T>
void AppendBytes(T value, std::string& to) {
  static_assert(std::endian::native == std::endian::little);
  char bytes[sizeof value];
  std::memcpy(bytes, &value, sizeof value);
  to.append(bytes, sizeof value);
}

uint64_t EntriesOf(const std::vector<uint64_t>& shape) {
  uint64_t count = 1;
  for (const uint64_t dimension : shape) count *= dimension;
  return count;
}

// Joins a form's key and its members.
std::string Form(const std::string& key, const std::string& members) {
  return "{\"" + key + "\": {" + members + "}}";
}

class FormsMaker {
 public:
  FormsMaker(const std::string& side, const std::string& prefix, uint64_t words, uint64_t width,
             TinyTensors& tensors)
      : side_(side),
        prefix_(prefix),
        words_(words),
        width_(width),
        parts_(width % 4 == 0   ? 4
               : width % 2 == 0 ? 2
                                : 1),
        tensors_(tensors) {}

  std::vector<TableForm> Make() {
    AddWhole("dense", Floats("dense", {words_, width_}));
    AddCodes();
    AddTrained();
    AddHashed();
    AddNarrow();
    AddDefine();
    AddBands();
    return std::move(forms_);
  }

 private:
  std::string Floats(const std::string& name, std::vector<uint64_t> shape, double scale = 0.5,
                     double offset = 0) {
    tensors_.Floats(side_ + name, std::move(shape), scale, offset);
    return Named(name);
  }
  std::string Integers(const std::string& name, std::vector<uint64_t> shape, int64_t end) {
    tensors_.Integers(side_ + name, std::move(shape), end);
    return Named(name);
  }
  // A reference in JSON.
  std::string Named(const std::string& name) const { return "\"" + prefix_ + side_ + name + "\""; }

  // A table that every part of a recipe accepts.
  void AddWhole(const std::string& name, const std::string& table) {
    forms_.push_back({name, "\"table\": " + table, "\"table\": " + table, table});
  }

  void AddCodes() {
    AddWhole("product-quantised",
             Form("codes",
                  R"("combine": "concatenate", "pools": "each", "indices": "pool", "codebook": )" +
                      Floats("pq.book", {5 * parts_, width_ / parts_}) +
                      ", \"codes\": " + Integers("pq.codes", {words_, parts_}, 5)));
    AddWhole("slim",
             Form("codes", R"("combine": "concatenate", "pools": "one", "codebook": )" +
                               Floats("slim.book", {13, width_ / parts_}) +
                               ", \"codes\": " + Integers("slim.codes", {words_, parts_}, 13)));
    AddWhole("shu",
             Form("codes", R"("combine": "sum", "pools": "each", "indices": "pool", "codebook": )" +
                               Floats("shu.book", {3, 6, width_}, 0.3) +
                               ", \"codes\": " + Integers("shu.codes", {words_, 3}, 6)));
    const std::string kd = R"("aggregator": "mean)";
    AddWhole("kd-mean", Form("kd", kd + R"(", "pools": "each", "codebook": )" +
                                       Floats("kd.book", {12, width_}) +
                                       ", \"codes\": " + Integers("kd.codes", {words_, 2}, 6)));
    // The dense layer becomes a projection of the input; at the output it is in the codebook.
    const std::string linear =
        Form("kd", kd + R"(_linear", "epsilon": 0.001, "pools": "each", "codebook": )" +
                       Floats("linear.book", {12, 5}, 1) +
                       ", \"codes\": " + Integers("linear.codes", {words_, 2}, 6) +
                       ", \"kernel\": " + Floats("linear.kernel", {width_, 5}) +
                       ", \"bias\": " + Floats("linear.bias", {width_}, 0.1) +
                       ", \"mean\": " + Floats("linear.mean", {5}, 0.1) +
                       ", \"variance\": " + Floats("linear.variance", {5}, 0.3, 1));
    forms_.push_back({"kd-linear", "\"table\": " + linear, "\"table\": " + linear, ""});
  }

  // DPQ as training leaves it.
  void AddTrained() {
    const uint64_t part = width_ / parts_;
    const std::string positions = ", \"positions\": " + std::to_string(parts_);
    AddWhole("dpq-sx", Form("dpq", R"("method": "sx", "combine": "concatenate")" + positions +
                                       ", \"query\": " + Floats("sx.query", {words_, width_}) +
                                       ", \"keys\": " + Floats("sx.keys", {parts_, 6, part}) +
                                       ", \"values\": " + Floats("sx.values", {parts_, 6, part}) +
                                       R"(, "batch_norm": "choices", "epsilon": 0.001, "mean": )" +
                                       Floats("sx.mean", {6}, 0.1) +
                                       ", \"variance\": " + Floats("sx.variance", {6}, 0.3, 1)));
    AddWhole("dpq-vq-shared",
             Form("dpq", R"("method": "vq", "combine": "concatenate")" + positions +
                             ", \"query\": " + Floats("vq.query", {words_, width_}) +
                             ", \"keys\": " + Floats("vq.keys", {1, 6, part}) +
                             R"(, "batch_norm": "responses", "epsilon": 1e-5, "mean": )" +
                             Floats("vq.mean", {6 * parts_}, 0.1) +
                             ", \"variance\": " + Floats("vq.variance", {6 * parts_}, 0.3, 1)));
    AddWhole("dpq-sx-mean",
             Form("dpq", R"("method": "sx", "positions": 3, "combine": "mean", "query": )" +
                             Floats("additive.query", {words_, 6}) +
                             ", \"keys\": " + Floats("additive.keys", {3, 5, 2}) +
                             ", \"values\": " + Floats("additive.values", {3, 5, width_}) +
                             R"(, "batch_norm": "none")"));
  }

  void AddHashed() {
    const std::string words = ", \"words\": " + std::to_string(words_);
    AddWhole("hashed",
             Form("hashed", R"("combine": "concatenate", "pools": "one", "codebook": )" +
                                Floats("hashed.book", {11, width_ / parts_}) + words +
                                ", \"positions\": " + std::to_string(parts_) + R"(, "seed": 7)"));
    AddWhole("hashnet",
             Form("hashed", R"("combine": "concatenate", "pools": "one", "codebook": )" +
                                Floats("hashnet.book", {17, 1}) + words +
                                ", \"positions\": " + std::to_string(width_) + R"(, "seed": 8)"));
  }

  void AddNarrow() {
    const std::string table = "\"table\": " + Floats("narrow.table", {words_, 3}, 1);
    forms_.push_back({"low-rank", table + ", \"projection\": " + Floats("narrow.in", {width_, 3}),
                      table + ", \"projection\": " + Floats("narrow.out", {3, width_}), ""});
  }

  // A DeFINE unit whose map is narrower than the network: as a table, and kept. The output's table
  // is the map's, after a projection (Mehta et al. 2020).
  void AddDefine() {
    const std::string map = Floats("map.table", {words_, 4}, 1);
    const std::string layers =
        R"(, "entry_layers": 0, "every_layer": {"layout": "in_out", "residual": "none",
             "activation": "relu", "order": "input_first"},
           "layers": [{"groups": 2, "shuffle": "none", "weight": )" +
        Floats("unit.0.weight", {2, 2, 5}) + ", \"bias\": " + Floats("unit.0.bias", {10}) +
        R"(}, {"groups": 1, "skip": "mix", "activation": "gelu",
             "weight": )" +
        Floats("unit.1.weight", {14, 12}) +
        R"(}, {"layout": "out_in", "activation": "none", "weight": )" +
        Floats("unit.2.weight", {width_, 12}) + ", \"bias\": " + Floats("unit.2.bias", {width_}) +
        "}]";
    const std::string output =
        "\"table\": " + map + ", \"projection\": " + Floats("map.out", {4, width_});
    const std::string unit = "\"map\": [{\"scale\": 1, \"table\": " + map + "}]" + layers;
    const std::string table = Form("define", unit);
    forms_.push_back({"define", "\"table\": " + table, output, table});
    const std::string kept = Form("define", unit + ", \"cache_rows\": 5");
    forms_.push_back({"define-kept", "\"table\": " + kept, output, ""});
    // A map in bands, one of them coded.
    const uint64_t frequent = words_ / 2, rare = words_ - frequent;
    const std::string bands =
        Form("define",
             "\"map\": [{\"scale\": 1, \"table\": " + Floats("bands.0", {frequent, 4}, 1) +
                 R"(}, {"scale": 2, "table": {"codes": {"combine": "concatenate", "pools": "each",
                 "indices": "pool", "codebook": )" +
                 Floats("bands.1.book", {6, 1}, 1) +
                 ", \"codes\": " + Integers("bands.1.codes", {rare, 2}, 3) +
                 "}}, \"projection\": " + Floats("bands.1.projection", {4, 2}) + "}]" + layers +
                 ", \"cache_rows\": 3");
    forms_.push_back({"define-kept-bands", "\"table\": " + bands, output, ""});
    AddUnitsInBins(layers, output);
  }

  // Two kept units with a dense bin between them; the second one's output is projected.
  void AddUnitsInBins(const std::string& layers, const std::string& output) {
    const uint64_t third = words_ / 3, rest = words_ - 2 * third;
    const auto unit = [&](const std::string& name, uint64_t words, const std::string& of_unit,
                          const std::string& rows) {
      return Form("define", R"("map": [{"scale": 1, "table": )" + Floats(name, {words, 4}, 1) +
                                "}]" + of_unit + ", \"cache_rows\": " + rows);
    };
    const std::string narrow =
        R"(, "layers": [{"layout": "in_out", "groups": 1, "residual": "none", "activation": "gelu",
             "weight": )" +
        Floats("last.weight", {4, 7}) + "}]";
    forms_.push_back({"define-kept-in-bins",
                      R"("bins": [{"table": )" + unit("first.map", third, layers, "2") +
                          R"(}, {"table": )" + Floats("between", {third, width_}, 1) +
                          R"(}, {"table": )" + unit("last.map", rest, narrow, "1000") +
                          R"(, "projection": )" + Floats("last.projection", {width_, 7}) + "}]",
                      output, ""});
  }

  // Adaptive input and softmax: a dense band, and a coded one with a projection.
  void AddBands() {
    const uint64_t frequent = words_ / 2, rare = words_ - frequent;
    const std::string head = "{\"table\": " + Floats("head", {frequent, width_});
    const std::string tail =
        R"({"table": {"codes": {"combine": "concatenate", "pools": "each", "indices": "pool",
             "codebook": )" +
        Floats("tail.book", {10, 2}, 1) + ", \"codes\": " + Integers("tail.codes", {rare, 2}, 5) +
        "}}, \"projection\": ";
    forms_.push_back(
        {"adaptive", "\"bins\": [" + head + "}, " + tail + Floats("tail.in", {width_, 4}) + "}]",
         "\"head\": " + head + "}, \"clusters\": {\"order\": \"forward\", \"weight\": " +
             Floats("clusters", {1, width_}) + "}, \"tails\": [" + tail +
             Floats("tail.out", {4, width_}) + "}]",
         ""});
  }

  const std::string side_, prefix_;
  const uint64_t words_, width_;
  const uint64_t parts_;  // number of sub-vectors of a row
  TinyTensors& tensors_;
  std::vector<TableForm> forms_;
};

}  // namespace

void TinyTensors::Floats(const std::string& name, std::vector<uint64_t> shape, double scale,
                         double offset) {
  SplitMix64 random(std::hash<std::string>()(name));
  std::string bytes;
  for (uint64_t i = 0; i < EntriesOf(shape); ++i) {
    AppendBytes(static_cast<float>(offset + scale * double{random.Signed()}), bytes);
  }
  tensors_.push_back({name, "F32", std::move(shape), std::move(bytes)});
}

void TinyTensors::Integers(const std::string& name, std::vector<uint64_t> shape, int64_t end) {
  SplitMix64 random(std::hash<std::string>()(name));
  std::string bytes;
  for (uint64_t i = 0; i < EntriesOf(shape); ++i) {
    AppendBytes(static_cast<int64_t>(random.Next() % static_cast<uint64_t>(end)), bytes);
  }
  tensors_.push_back({name, "I64", std::move(shape), std::move(bytes)});
}

std::string TinyTensors::Safetensors() const {
  std::string header = "{", bytes;
  for (const Tensor& tensor : tensors_) {
    std::string shape;
    for (const uint64_t dimension : tensor.shape) {
      shape += (shape.empty() ? "" : ",") + std::to_string(dimension);
    }
    header += (header.size() > 1 ? ",\"" : "\"") + tensor.name + R"(":{"dtype":")" + tensor.type +
              R"(","shape":[)" + shape + R"(],"data_offsets":[)" + std::to_string(bytes.size()) +
              "," + std::to_string(bytes.size() + tensor.bytes.size()) + "]}";
    bytes += tensor.bytes;
  }
  header += "}";
  header.resize((header.size() + 7) / 8 * 8, ' ');
  std::string file;
  AppendBytes(uint64_t{header.size()}, file);
  return file + header + bytes;
}

std::vector<TableForm> AddTableForms(const std::string& side, const std::string& prefix,
                                     uint64_t words, uint64_t width, TinyTensors& tensors) {
  return FormsMaker(side, prefix, words, width, tensors).Make();
}

}  // namespace kinglet
