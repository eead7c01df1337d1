// A row of the table of options: for options.cpp, which holds it and prints help and the reference
// page from it, and option_parser.cpp, which reads values by it.
//
// Threads: any; the tables are constants.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "program/options.h"

namespace weir {

// Which commands take an option.
enum : uint16_t {
  kServeOnly = 1,
  kInfoToo = 2,
  kBenchOnly = 4,
  kPerplexityOnly = 8,
  kCalibrateToo = 16,
  kPackOnly = 32,
  kQuantizeOnly = 64,
  kPullOnly = 128,
  kListOnly = 256,
  kRmOnly = 512,
  kVerifyOnly = 1024,
  kSearchOnly = 2048,
  kSuiteOnly = 4096,
  kHealthOnly = 8192
};
// The commands that run a model, and those that plan it.
inline constexpr uint16_t kEvery =
    kServeOnly | kInfoToo | kBenchOnly | kPerplexityOnly | kSuiteOnly;
// Those that know where the server listens.
inline constexpr uint16_t kAddress = kServeOnly | kHealthOnly;
inline constexpr uint16_t kPlanning = kServeOnly | kInfoToo | kSuiteOnly;
// Those that open a model, and pull one of the hub that is not here.
inline constexpr uint16_t kOpening = kEvery | kCalibrateToo | kPackOnly | kQuantizeOnly;

struct Bytes {
  int64_t Options::*field;
  bool automatic = false;  // "auto" is a value, and means 0.
};
// A count of tokens: 4096, 4k, 32K.
struct Tokens {
  int32_t Options::*field;
};
// A flag without a value: present means `value`.
struct Switch {
  bool Options::*field;
  bool value = true;
};
// One of the words that stand for the value in --help. False: it is another, and nothing is set.
using Choice = bool (*)(Options& options, std::string_view word);
// Names separated by commas; given again, it names more of them.
struct Names {
  std::string Options::*field;
};
// Given again, there is one more.
using Texts = std::vector<std::string> Options::*;
using Field =
    std::variant<std::string Options::*, int32_t Options::*, std::optional<int32_t> Options::*,
                 std::optional<double> Options::*, Bytes, Tokens, Switch, Names, Texts, Choice>;

struct Row {
  std::string_view name;   // Without the dashes.
  std::string_view value;  // What stands for the value in --help; empty for a switch.
  Field field;
  uint16_t commands;
  std::string_view group;
  std::string_view help;
  std::string_view fallback;  // The default, as a person would say it.
};

struct CommandRow {
  std::string_view name;
  Command command;
  uint16_t bit;
  std::string_view help;
  std::string_view words = {};  // What stands after the command: options without their names.
};

std::span<const Row> option_rows();
std::span<const CommandRow> command_rows();  // The first is the one without a name.

// The row of that name, without dashes, which one of `commands` takes; null: there is none.
// Commands may have different options of one name.
const Row* find_row(std::string_view name, uint16_t commands = 0xffff);
// Writes a value into its field. `where`: what the place that gave it calls the option, for errors.
Result<void> assign_option(Options& options, const Row& row, const std::string& where,
                           const std::string& value);
// Of a line of a file of options: without spaces at both ends; what stands after the equals sign,
// in quotes as it is, else up to a comment; yes or no.
std::string_view trimmed(std::string_view text);
std::string_view value_of(std::string_view text);
std::optional<bool> truth_of(std::string_view text);

// Whether a variable may say it. WEIR_MODELS is a folder of models to this project's
// tests, which start servers.
inline bool in_environment(const Row& row) { return row.name != "models"; }
// WEIR_KV_CACHE of kv-cache.
std::string environment_name(std::string_view option);

std::string help_text(const CommandRow& command);

}  // namespace weir
