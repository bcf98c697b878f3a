#include "converters/checkpoints/json_events.h"

#include <nlohmann/json.hpp>

namespace kinglet {
namespace {

// Passes the library's events on.
class JsonForwarder final : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit JsonForwarder(JsonEvents& events) : events_(events) {}

  bool start_object(size_t /*elements*/) override { return events_.BeginObject(); }
  bool key(string_t& name) override { return events_.Name(name); }
  bool end_object() override { return events_.EndObject(); }
  bool start_array(size_t /*elements*/) override { return events_.BeginList(); }
  bool end_array() override { return events_.EndList(); }
  bool string(string_t& text) override { return events_.Text(text); }
  bool number_unsigned(number_unsigned_t number) override { return events_.Number(number); }
  bool number_integer(number_integer_t negative) override {
    return events_.Real(static_cast<double>(negative));
  }
  bool number_float(number_float_t number, const string_t& /*text*/) override {
    return events_.Real(number);
  }
  bool boolean(bool /*value*/) override { return events_.Boolean(); }
  bool null() override { return events_.Null(); }
  bool binary(binary_t& /*bytes*/) override { return false; }  // JSON text has none
  bool parse_error(size_t position, const std::string& /*token*/,
                   const nlohmann::json::exception& /*error*/) override {
    events_.Broken(position);
    return false;
  }

 private:
  JsonEvents& events_;
};

}  // namespace

void ReadJson(std::string_view text, JsonEvents& events) {
  JsonForwarder forwarder(events);
  nlohmann::json::sax_parse(text, &forwarder);
}

}  // namespace kinglet
