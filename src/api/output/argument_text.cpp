#include "api/output/argument_text.h"

#include <algorithm>

#include "base/json.h"

namespace weir::api::output {

void append_word(std::string& json, std::string_view word) {
  if (word == "True")
    json += "true";
  else if (word == "False")
    json += "false";
  else if (word == "None")
    json += "null";
  else if (JsonDoc::parse(word))
    json += word;
  else
    append_json_string(json, word);
}

void append_argument(std::string& json, const CallableFunction& function, std::string_view key,
                     std::string_view text, std::optional<bool> is_string) {
  if (text.starts_with('\n')) text.remove_prefix(1);
  if (text.ends_with('\n')) text.remove_suffix(1);
  append_json_string(json, key);
  json += ": ";
  const bool string = is_string.value_or(std::ranges::find(function.string_parameters, key) !=
                                         function.string_parameters.end());
  if (string)
    append_json_string(json, text);
  else
    append_word(json, text);
}

}  // namespace weir::api::output
