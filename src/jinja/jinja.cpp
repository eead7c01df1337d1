// Template: parsing and rendering, put together.
#include "jinja/jinja.h"

#include <algorithm>

#include "base/concat.h"
#include "base/json.h"
#include "jinja/ast.h"
#include "jinja/codepoint.h"
#include "jinja/interpreter.h"
#include "jinja/json.h"
#include "jinja/lexer.h"
#include "jinja/parser.h"
#include "jinja/resolver.h"
#include "jinja/runtime.h"

namespace weir::jinja {

struct Template::Parsed {
  // ", line 12 `{{ text }}`"
  std::string place(int32_t line) const;

  std::string source;      // As given.
  std::string normalised;  // What tokens and constants refer to.
  Arena arena;
  Tree tree;
};

std::string Template::Parsed::place(int32_t line) const {
  if (line <= 0) return {};
  std::string_view rest = normalised;
  for (int32_t i = 1; i < line && !rest.empty(); ++i)
    rest.remove_prefix(std::min(rest.find('\n'), rest.size() - 1) + 1);
  std::string_view text = strip_left(strip_right(rest.substr(0, rest.find('\n'))));
  constexpr size_t kShown = 100;  // Code points.
  const bool cut = codepoint_offset(text, kShown) < text.size();
  text = text.substr(0, codepoint_offset(text, kShown));
  return concat({", line ", std::to_string(line), " `", text, cut ? "...`" : "`"});
}

Result<Template> Template::parse(std::string source) {
  if (source.size() > kSourceBytesMax)
    return fail(ErrorCode::kConfig,
                concat({"chat template: expected at most ", std::to_string(kSourceBytesMax),
                        " bytes, found ", std::to_string(source.size())}));
  if (!simdjson::validate_utf8(source.data(), source.size()))
    return fail(ErrorCode::kConfig, "chat template: expected UTF-8, found other bytes");
  auto made = std::make_unique<Parsed>();
  made->source = std::move(source);
  made->normalised = normalise_newlines(made->source);
  std::vector<Token> tokens;
  SyntaxError error;
  if (!tokenise(made->normalised, made->arena, tokens, error) ||
      !jinja::parse(tokens, made->arena, made->tree, error) ||
      !resolve(made->arena, made->tree, error))
    return fail(ErrorCode::kConfig,
                concat({"chat template", made->place(error.line), ": ", error.message}));
  return Template(std::move(made));
}

Template::Template(std::unique_ptr<const Parsed> parsed) : parsed_(std::move(parsed)) {}
Template::Template(Template&&) noexcept = default;
Template& Template::operator=(Template&&) noexcept = default;
Template::~Template() = default;

const std::string& Template::source() const { return parsed_->source; }

Result<std::string> Template::render(std::string_view variables, int64_t now,
                                     const Limits& limits) const {
  Runtime rt(limits, now);
  const Result<JsonDoc> doc = JsonDoc::parse(variables);
  if (!doc)
    return fail(ErrorCode::kInvalid, concat({"chat template variables: ", doc.error().message}));
  const Value values = value_of_json(rt, *doc);
  if (!values.is_error() && !values.is(Type::kDict))
    return fail(ErrorCode::kInvalid,
                concat({"chat template variables: expected a JSON object, found a ",
                        type_name(values.type)}));
  std::string out;
  if (!values.is_error()) {
    Interpreter interpreter(rt, *values.dict);
    if (interpreter.render(parsed_->tree, out)) return out;
    if (!rt.raised())
      return fail(
          ErrorCode::kInvalid,
          concat({"chat template", parsed_->place(interpreter.error_line()), ": ", rt.message()}));
  }
  return fail(ErrorCode::kInvalid, rt.message());
}

}  // namespace weir::jinja
