// Template: parsing and rendering, put together.
#include "jinja/template.h"

#include <algorithm>

#include "base/json.h"
#include "jinja/codepoint.h"
#include "jinja/interpreter.h"
#include "jinja/json.h"
#include "jinja/lexer.h"
#include "jinja/parser.h"
#include "jinja/resolver.h"

namespace weir::jinja {

Result<std::unique_ptr<const Template>> Template::parse(std::string source) {
  if (source.size() > kSourceBytesMax)
    return fail(ErrorCode::kConfig,
                message("chat template: expected at most ", std::to_string(kSourceBytesMax),
                        " bytes, found ", std::to_string(source.size())));
  if (!simdjson::validate_utf8(source.data(), source.size()))
    return fail(ErrorCode::kConfig, "chat template: expected UTF-8, found other bytes");
  std::unique_ptr<Template> made(new Template());
  made->source_ = std::move(source);
  made->normalised_ = normalise_newlines(made->source_);
  std::vector<Token> tokens;
  SyntaxError error;
  if (!tokenise(made->normalised_, made->arena_, tokens, error) ||
      !jinja::parse(tokens, made->arena_, made->tree_, error) ||
      !resolve(made->arena_, made->tree_, error))
    return fail(ErrorCode::kConfig,
                message("chat template", made->place(error.line), ": ", error.message));
  return std::unique_ptr<const Template>(std::move(made));
}

// ", line 12 `{{ text }}`"
std::string Template::place(int32_t line) const {
  if (line <= 0) return {};
  std::string_view rest = normalised_;
  for (int32_t i = 1; i < line && !rest.empty(); ++i)
    rest.remove_prefix(std::min(rest.find('\n'), rest.size() - 1) + 1);
  std::string_view text = strip_left(strip_right(rest.substr(0, rest.find('\n'))));
  constexpr size_t kShown = 100;  // Code points.
  const bool cut = codepoint_offset(text, kShown) < text.size();
  text = text.substr(0, codepoint_offset(text, kShown));
  return message(", line ", std::to_string(line), " `", text, cut ? "...`" : "`");
}

Result<std::string> Template::render(std::string_view variables, int64_t now,
                                     const Limits& limits) const {
  Runtime rt(limits, now);
  const Result<JsonDoc> doc = JsonDoc::parse(variables);
  if (!doc)
    return fail(ErrorCode::kInvalid, message("chat template variables: ", doc.error().message));
  const Value values = value_of_json(rt, *doc);
  if (!values.is_error() && !values.is(Type::kDict))
    return fail(ErrorCode::kInvalid,
                message("chat template variables: expected a JSON object, found a ",
                        type_name(values.type)));
  std::string out;
  if (!values.is_error()) {
    Interpreter interpreter(rt, *values.dict);
    if (interpreter.render(tree_, out)) return out;
    if (!rt.raised())
      return fail(ErrorCode::kInvalid,
                  message("chat template", place(interpreter.error_line()), ": ", rt.message()));
  }
  return fail(ErrorCode::kInvalid, rt.message());
}

}  // namespace weir::jinja
