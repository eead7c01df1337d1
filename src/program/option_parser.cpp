// Reads options by the table of option_table.h: from the command line, the environment and a config
// file, in our own words where a value is wrong.
#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <limits>
#include <map>
#include <sstream>
#include <utility>

#include "base/byte_size.h"
#include "base/file.h"
#include "base/near_name.h"
#include "program/commit.h"
#include "program/foreign_options.h"
#include "program/option_table.h"

namespace weir {

std::optional<bool> truth_of(std::string_view text) {
  for (const char* yes : {"", "1", "true", "on", "yes"})
    if (text == yes) return true;
  for (const char* no : {"0", "false", "off", "no"})
    if (text == no) return false;
  return std::nullopt;
}

const Row* find_row(std::string_view name, uint16_t commands) {
  const auto row = std::ranges::find_if(option_rows(), [&](const Row& each) {
    return each.name == name && (each.commands & commands) != 0;
  });
  return row == option_rows().end() ? nullptr : &*row;
}

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r";
  const size_t begin = text.find_first_not_of(kSpace);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kSpace) + 1 - begin);
}

std::string_view value_of(std::string_view text) {
  const auto is_rest = [](std::string_view rest) {
    rest = trimmed(rest);
    return rest.empty() || rest.starts_with('#');
  };
  text = trimmed(text);
  if (text.starts_with('"') || text.starts_with('\'')) {
    const size_t end = text.find(text[0], 1);
    if (end != std::string_view::npos && is_rest(text.substr(end + 1)))
      return text.substr(1, end - 1);
  }
  for (size_t i = 1; i < text.size(); ++i)
    if (text[i] == '#' && (text[i - 1] == ' ' || text[i - 1] == '\t'))
      return trimmed(text.substr(0, i));
  return text;
}

namespace {

// A hundred times the largest config file that names every option.
constexpr size_t kConfigBytesMax = size_t{1} << 20;

tl::unexpected<Error> wrong(const std::string& name, const std::string& expected,
                            const std::string& found) {
  return fail(ErrorCode::kConfig, name + ": expected " + expected + "; found " + found);
}

std::string in_quotes(std::string_view text) {
  std::string out = "'";
  return out.append(text).append("'");
}

// The whole of `text` as a number.
template <class T>
std::optional<T> number_of(std::string_view text) {
  if (text.starts_with('+')) text.remove_prefix(1);
  T number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

// Writes one value into its field. `name` is what the place that gave it calls the option.
class Assign {
 public:
  Assign(Options& options, const Row& row, const std::string& name, const std::string& value)
      : options_(options), row_(row), name_(name), value_(value) {}

  Result<void> operator()(std::string Options::*field) {
    options_.*field = value_;
    return {};
  }
  Result<void> operator()(int32_t Options::*field) { return whole(options_.*field); }
  Result<void> operator()(std::optional<int32_t> Options::*field) {
    return whole((options_.*field).emplace());
  }
  Result<void> operator()(std::optional<double> Options::*field) {
    const std::optional<double> number = number_of<double>(value_);
    if (!number) return wrong(name_, "a number", in_quotes(value_));
    options_.*field = *number;
    return {};
  }
  Result<void> operator()(Bytes bytes) {
    const std::optional<int64_t> parsed =
        bytes.automatic && value_ == "auto" ? 0 : parse_byte_size(value_);
    if (!parsed)
      return wrong(name_,
                   std::string("a size such as 4G or 512M") + (bytes.automatic ? ", or auto" : ""),
                   in_quotes(value_));
    options_.*bytes.field = *parsed;
    return {};
  }
  Result<void> operator()(Tokens tokens) {
    // Not "4KB", nor half a token.
    const bool plain = value_.find_first_not_of("0123456789kKmM") == std::string::npos;
    const std::optional<int64_t> parsed = plain ? parse_byte_size(value_) : std::nullopt;
    if (!parsed || *parsed > std::numeric_limits<int32_t>::max())
      return wrong(name_, "a number of tokens such as 4096, 4k or 32K", in_quotes(value_));
    options_.*tokens.field = static_cast<int32_t>(*parsed);
    return {};
  }
  Result<void> operator()(Switch on) {
    const std::optional<bool> truth = truth_of(value_);
    if (!truth) return wrong(name_, "no value, or true or false", in_quotes(value_));
    if (*truth) options_.*on.field = on.value;
    return {};
  }
  Result<void> operator()(Names names) {
    std::string& all = options_.*names.field;
    all.append(all.empty() ? "" : ",").append(value_);
    return {};
  }
  Result<void> operator()(Texts texts) {
    (options_.*texts).push_back(value_);
    return {};
  }

  Result<void> operator()(Choice choice) {
    if (choice(options_, value_)) return {};
    std::string words(row_.value);
    for (size_t bar = 0; (bar = words.find('|', bar)) != std::string::npos;)
      words.replace(bar, 1, ", ");
    return wrong(name_, "one of " + words, in_quotes(value_));
  }

 private:
  Result<void> whole(int32_t& field) {
    const std::optional<int32_t> number = number_of<int32_t>(value_);
    if (!number) return wrong(name_, "a whole number", in_quotes(value_));
    field = *number;
    return {};
  }

  Options& options_;
  const Row& row_;
  const std::string& name_;
  const std::string& value_;
};

bool may_repeat(const Row& row) {
  return std::holds_alternative<Names>(row.field) || std::holds_alternative<Texts>(row.field);
}

std::string unknown_option(std::string_view flag, const CommandRow& command) {
  std::string_view name = flag.substr(0, flag.find('='));
  std::string message = "unknown option " + in_quotes(name);
  while (name.starts_with('-')) name.remove_prefix(1);
  std::vector<std::string_view> names;
  for (const Row& row : option_rows())
    if (row.commands & command.bit) names.push_back(row.name);
  if (find_row(name) != nullptr && find_row(name, command.bit) == nullptr) {
    std::string commands;
    for (const CommandRow& each : command_rows())
      if (find_row(name, each.bit) != nullptr)
        commands += (commands.empty() ? "" : ", ") + std::string(each.name);
    message += " of 'weir " + std::string(command.name) + "': it is one of " + commands;
  } else if (const std::string_view answer = foreign_option(flag.substr(0, flag.find('=')));
             !answer.empty()) {
    message += ": " + std::string(answer);
  } else if (const std::string_view near = near_name(name, names); !near.empty()) {
    message += "; did you mean '--" + std::string(near) + "'?";
  }
  return message + " ('weir " +
         (command.command == Command::kServe ? "" : std::string(command.name) + " ") +
         "--help' lists all)";
}

// What one place has given: of each option the values, and how that place spells it.
struct Given {
  std::string name;
  std::vector<std::string> values;
};
using Source = std::map<const Row*, Given>;

void give(Source& source, const Row& row, std::string name, std::string value) {
  Given& given = source[&row];
  if (!may_repeat(row)) given.values.clear();  // The last counts.
  given.name = std::move(name);
  given.values.push_back(std::move(value));
}

// "--port", "--port=80", "-c": the option, and its value if it is part of the word.
struct Flag {
  const Row* row = nullptr;
  std::optional<std::string> value;
};
Flag read_flag(const std::string& word, const CommandRow& command) {
  Flag flag;
  if (!word.starts_with('-')) return flag;
  const size_t equals = word.find('=');
  const std::string name = word.substr(0, equals);
  if (equals != std::string::npos) flag.value = word.substr(equals + 1);
  const std::string_view bare = std::string_view(name).substr(1);
  flag.row = find_row(name.starts_with("--") ? bare.substr(1) : long_name(bare), command.bit);
  return flag;
}

Result<Source> read_line(const std::vector<std::string>& words, const CommandRow& command) {
  Source source;
  for (size_t i = 0; i < words.size(); ++i) {
    if (!words[i].starts_with('-') || words[i] == "-")
      return fail(ErrorCode::kConfig, "expected an option; found " + in_quotes(words[i]) +
                                          " (a model's folder is named by --model)");
    Flag flag = read_flag(words[i], command);
    if (flag.row == nullptr) return fail(ErrorCode::kConfig, unknown_option(words[i], command));
    const std::string name = words[i].substr(0, words[i].find('='));
    if (!flag.value && std::holds_alternative<Switch>(flag.row->field)) flag.value = "";
    if (!flag.value) {
      const bool last = i + 1 == words.size();
      if (last || read_flag(words[i + 1], command).row != nullptr)
        return wrong(name, "a value (" + std::string(flag.row->value) + ")",
                     last ? "none" : "the option " + in_quotes(words[i + 1]));
      flag.value = words[++i];
    }
    give(source, *flag.row, name, std::move(*flag.value));
  }
  return source;
}

// An empty variable means that nothing is given, but where that would open the server to everybody,
// or where nothing is a value.
bool empty_is_given(std::string_view option) {
  return option.starts_with("api-key") || option == "reasoning-budget-message";
}

// Kubernetes names a Service's address so: of one that is called weir, in WEIR_PORT.
bool is_service_link(std::string_view value) {
  return value.starts_with("tcp://") || value.starts_with("udp://") || value.starts_with("sctp://");
}

// What is deleted must be named on the line.
bool only_on_the_line(const Row& row, const CommandRow& command) {
  return command.command == Command::kRm && row.name == "model";
}

Source read_environment(const CommandRow& command) {
  Source source;
  for (const Row& row : option_rows()) {
    if (!(row.commands & command.bit) || !in_environment(row) || only_on_the_line(row, command))
      continue;
    const std::string name = environment_name(row.name);
    const char* value = std::getenv(name.c_str());
    if (value == nullptr || (*value == '\0' && !empty_is_given(row.name))) continue;
    if (row.name == "port" && is_service_link(value)) continue;
    if (std::holds_alternative<Texts>(row.field)) {  // One a line: commas may be part of them.
      std::istringstream lines(value);
      for (std::string line; std::getline(lines, line);)
        if (!line.empty()) give(source, row, name, line);
    } else {
      give(source, row, name, value);
    }
  }
  return source;
}

// Lines of name=value. A value may stand in quotes.
Result<Source> read_file_of_options(const std::string& path, const CommandRow& command) {
  const Result<std::string> text = read_file(path, kConfigBytesMax);
  if (!text) return fail(ErrorCode::kConfig, "--config: " + text.error().message);
  Source source;
  std::istringstream lines(*text);
  int number = 0;
  for (std::string whole; std::getline(lines, whole);) {
    ++number;
    const std::string_view line = trimmed(whole);
    if (line.empty() || line.starts_with('#') || line.starts_with(';')) continue;
    const std::string where = path + ":" + std::to_string(number);
    const size_t equals = line.find('=');
    if (line.starts_with('[') || equals == std::string_view::npos)
      return wrong(where, "name=value", in_quotes(line.substr(0, 80)));
    const std::string name(trimmed(line.substr(0, equals)));
    const std::string_view value = value_of(line.substr(equals + 1));
    if (find_row(name) == nullptr || name == "config")
      return fail(ErrorCode::kConfig, where + ": " + unknown_option(name, command));
    const Row* row = find_row(name, command.bit);  // Null: it is for other commands.
    if (row != nullptr && !only_on_the_line(*row, command))
      give(source, *row, std::string(where).append(": ").append(name), std::string(value));
  }
  return source;
}

// Later sources win.
Result<Source> read_sources(const std::vector<std::string>& words, const CommandRow& command) {
  WEIR_ASSIGN(Source given, read_line(words, command));
  given.merge(read_environment(command));
  if (const auto config = given.find(find_row("config")); config != given.end()) {
    WEIR_ASSIGN(Source file, read_file_of_options(config->second.values.back(), command));
    given.merge(file);
  }
  return given;
}

// search WORD WORD: they are one option's value.
void join_words(std::vector<std::string>& words) {
  std::string joined;
  while (!words.empty() && !words[0].starts_with("-")) {
    joined += (joined.empty() ? "" : " ") + words[0];
    words.erase(words.begin());
  }
  if (!joined.empty()) words.insert(words.begin(), {"--words", joined});
}

// quantize MODEL OUT, pull MODEL: the first words are options without their names.
void name_words(const CommandRow& command, std::vector<std::string>& words) {
  if (command.words.empty()) return;
  if (command.command == Command::kSearch) return join_words(words);
  constexpr std::array<const char*, 2> kNames = {"--model", "--to"};
  const size_t most = command.command == Command::kQuantize ? 2 : 1;
  size_t count = 0;
  while (count < most && count < words.size() && !words[count].starts_with("-")) ++count;
  for (size_t i = count; i-- > 0;)
    words.insert(words.begin() + static_cast<std::ptrdiff_t>(i), kNames[i]);
}

// The command that the first word names; it is taken out of `words`.
Result<const CommandRow*> take_command(std::vector<std::string>& words) {
  const CommandRow* command = &command_rows()[0];
  if (!words.empty() && !words[0].starts_with("-")) {
    const auto found = std::ranges::find(command_rows(), words[0], &CommandRow::name);
    if (found == command_rows().end()) {
      std::string list;
      for (const CommandRow& row : command_rows())
        list += (list.empty() ? "" : ", ") + std::string(row.name);
      std::string hint(foreign_command(words[0]));
      std::error_code error;
      if (hint.empty() && std::filesystem::exists(words[0], error))
        hint = "a model's folder is named by --model";
      if (!hint.empty()) hint = " (" + hint + ")";
      return fail(ErrorCode::kConfig, "expected a command (" + list + ") or an option; found " +
                                          in_quotes(words[0]) + hint);
    }
    command = &*found;
    words.erase(words.begin());
    name_words(*command, words);
  } else if (const auto info = std::ranges::find(words, "--info"); info != words.end()) {
    command = &*std::ranges::find(command_rows(), Command::kInfo, &CommandRow::command);
    words.erase(info);  // As SwiftLM spells it.
  }
  return command;
}

// Every running sequence has a token in each step, and prompts need room beside them.
void grow_prefill(const Source& given, Options& options) {
  if (given.contains(find_row("prefill-size"))) return;
  options.prefill_size =
      std::clamp(options.parallel, options.prefill_size / 2, kPrefillSizeMax / 2) * 2;
}

// For the servers that the suite starts; what a config file says is among it.
void pass_on(const Source& given, Options& options) {
  for (const auto& [row, option] : given)
    if ((row->commands & kServeOnly) && row->name != "config")
      for (const std::string& value : option.values)
        options.passed_on.emplace_back(row->name, value);
}

Result<void> check_given(const Source& given, const Options& options) {
  if (given.contains(find_row("api-key")) && split_list(options.api_key).empty())
    return wrong("--api-key", "KEY[,KEY]", in_quotes(options.api_key) + ", which names no key");
  if (given.contains(find_row("api-key-file")) && options.api_key_file.empty())
    return wrong("--api-key-file", "a file", "an empty name");
  if (given.contains(find_row("alias")) && split_list(options.alias).empty())
    return wrong("--alias", "NAME[,NAME]", in_quotes(options.alias) + ", which names nothing");
  return check_options(options);
}

}  // namespace

Result<void> assign_option(Options& options, const Row& row, const std::string& where,
                           const std::string& value) {
  return std::visit(Assign(options, row, where, value), row.field);
}

std::vector<std::string> words_passed_on(const Options& options, Command command) {
  const uint16_t bit = std::ranges::find(command_rows(), command, &CommandRow::command)->bit;
  std::vector<std::string> words;
  for (const auto& [name, value] : options.passed_on) {
    const Row* row = find_row(name, bit);
    if (row == nullptr) continue;
    const bool alone = std::holds_alternative<Switch>(row->field) && value.empty();
    words.push_back("--" + name + (alone ? "" : "=" + value));
  }
  return words;
}

Result<ParsedOptions> parse_options(int argc, const char* const* argv) {
  ParsedOptions parsed;
  std::vector<std::string> words(argv + std::min(argc, 1), argv + argc);
  WEIR_ASSIGN(const CommandRow* command, take_command(words));
  parsed.options.command = command->command;
  if (std::ranges::find(words, "--help") != words.end() ||
      std::ranges::find(words, "-h") != words.end()) {
    parsed.print = help_text(*command);
    return parsed;
  }
  if (std::ranges::find(words, "--version") != words.end()) {
    parsed.print = "weir " + std::string(kVersion) + " (" + std::string(commit()) + ")\n";
    return parsed;
  }
  WEIR_ASSIGN(const Source given, read_sources(words, *command));
  for (const auto& [row, option] : given)
    for (const std::string& value : option.values)
      WEIR_TRY(assign_option(parsed.options, *row, option.name, value));
  if (command->command == Command::kSuite) pass_on(given, parsed.options);
  grow_prefill(given, parsed.options);
  WEIR_TRY(check_given(given, parsed.options));
  return parsed;
}

}  // namespace weir
