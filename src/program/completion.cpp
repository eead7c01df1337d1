#include "program/completion.h"

#include <algorithm>
#include <cctype>
#include <string_view>
#include <variant>
#include <vector>

#include "program/foreign_options.h"
#include "program/option_table.h"

namespace weir {

namespace {

// What may stand after an option.
enum class Values { kNone, kWords, kPath, kOther };

// "on|off|auto": the words before or after each bar.
std::vector<std::string> words_of(const Row& row) {
  std::vector<std::string> words;
  std::string word;
  for (const char c : std::string(row.value) + "|") {
    if (c != '|') {
      word += c;
      continue;
    }
    // In capitals stands what is no word itself: SIZE|auto.
    if (std::ranges::none_of(word, [](unsigned char u) { return std::isupper(u) != 0; }))
      words.push_back(word);
    word.clear();
  }
  return words;
}

bool is_path(const Row& row) {
  for (const std::string_view kind : {"FILE", "DIR", "FOLDER", "PATH", "MODEL", "TEXT"})
    if (row.value == kind) return row.name != "reasoning-budget-message";
  return false;
}

Values values_of(const Row& row) {
  if (row.value.empty()) return Values::kNone;
  if (row.value.find('|') != std::string_view::npos && !words_of(row).empty())
    return Values::kWords;
  return is_path(row) ? Values::kPath : Values::kOther;
}

std::string joined(const std::vector<std::string>& parts, std::string_view between) {
  std::string text;
  for (const std::string& part : parts) text.append(text.empty() ? "" : between).append(part);
  return text;
}

// "--model", and "-m" where there is one.
std::vector<std::string> flags_of(const Row& row) {
  std::vector<std::string> flags = {"--" + std::string(row.name)};
  if (const std::string_view letter = short_name(row.name); !letter.empty())
    flags.push_back("-" + std::string(letter));
  return flags;
}

std::vector<std::string> command_names() {
  std::vector<std::string> names;
  for (const CommandRow& command : command_rows()) names.emplace_back(command.name);
  return names;
}

std::string flags_of(const CommandRow& command) {
  std::string flags = "--help --version";
  for (const Row& row : option_rows())
    if (row.commands & command.bit) flags += " " + joined(flags_of(row), " ");
  return flags;
}

// Up to its first full stop, colon or semicolon.
std::string short_help(const Row& row) {
  return std::string(row.help.substr(0, row.help.find_first_of(".:;")));
}

std::string without(std::string text, std::string_view unwanted) {
  std::erase_if(text, [&](char c) { return unwanted.find(c) != std::string_view::npos; });
  return text;
}

constexpr std::string_view kHead = " of weir(1), made of its table of options.\n";

// The lines of a case statement: what stands after an option that wants a value. An option may be
// one thing with one command, and another with another.
std::string bash_values(const CommandRow& command) {
  std::string lines;
  for (const Row& row : option_rows()) {
    if (!(row.commands & command.bit)) continue;
    const std::string pattern = "        " + joined(flags_of(row), "|") + ") ";
    switch (values_of(row)) {
      case Values::kWords:
        lines += pattern + "COMPREPLY=($(compgen -W '" + joined(words_of(row), " ") +
                 "' -- \"$word\")); return ;;\n";
        break;
      case Values::kPath:
        lines +=
            pattern + "compopt -o filenames; COMPREPLY=($(compgen -f -- \"$word\")); return ;;\n";
        break;
      case Values::kOther:
        lines += pattern + "return ;;\n";
        break;
      case Values::kNone:
        break;
    }
  }
  return lines;
}

}  // namespace

std::string bash_completion() {
  std::string commands;
  for (const CommandRow& command : command_rows())
    commands += "    " + std::string(command.name) + ")\n      flags='" + flags_of(command) +
                "'\n      case $before in\n" + bash_values(command) + "      esac ;;\n";
  return "# bash completion" + std::string(kHead) +
         "_weir() {\n"
         "  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} flags=\n"
         "  local command=${COMP_WORDS[1]}\n"
         "  [[ $command == -* || $COMP_CWORD -eq 1 ]] && command=serve\n"
         "  COMPREPLY=()\n"
         "  case $command in\n" +
         commands +
         "  esac\n"
         "  [[ $COMP_CWORD -eq 1 && $word != -* ]] && flags='" +
         joined(command_names(), " ") +
         "'\n"
         "  COMPREPLY=($(compgen -W \"$flags\" -- \"$word\"))\n"
         "}\n"
         "complete -F _weir weir\n";
}

std::string zsh_completion() {
  std::string commands, options;
  for (const CommandRow& command : command_rows())
    commands += "    '" + std::string(command.name) + ":" +
                without(std::string(command.help), "':") + "'\n";
  for (const CommandRow& command : command_rows()) {
    options += "    " + std::string(command.name) + ") _arguments '--help' '--version'";
    for (const Row& row : option_rows()) {
      if (!(row.commands & command.bit)) continue;
      for (const std::string& flag : flags_of(row)) {
        options += " \\\n      '*" + flag + "[" + without(short_help(row), "'[]") + "]";
        const std::string value = without(std::string(row.value), "':[]()");
        switch (values_of(row)) {
          case Values::kWords:
            options += ":" + value + ":(" + joined(words_of(row), " ") + ")";
            break;
          case Values::kPath:
            options += ":" + value + ":_files";
            break;
          case Values::kOther:
            options += ":" + value + ":";
            break;
          case Values::kNone:
            break;
        }
        options += "'";
      }
    }
    options += " ;;\n";
  }
  return "#compdef weir\n# zsh completion" + std::string(kHead) +
         "_weir() {\n"
         "  local -a commands=(\n" +
         commands +
         "  )\n"
         "  local command=serve\n"
         "  if (( CURRENT == 2 )) && [[ $words[2] != -* ]]; then\n"
         "    _describe command commands\n"
         "    return\n"
         "  fi\n"
         "  if [[ $words[2] != -* ]]; then\n"
         "    command=$words[2]\n"
         "    shift words\n"
         "    (( CURRENT -= 1 ))\n"
         "  fi\n"
         "  case $command in\n" +
         options +
         "  esac\n"
         "}\n"
         "_weir \"$@\"\n";
}

std::string fish_completion() {
  const std::string names = joined(command_names(), " ");
  std::string out = "# fish completion" + std::string(kHead) + "complete -c weir -f\n";
  for (const CommandRow& command : command_rows())
    out += "complete -c weir -n '__fish_use_subcommand' -a " + std::string(command.name) + " -d '" +
           without(std::string(command.help), "'\\") + "'\n";
  for (const Row& row : option_rows()) {
    // serve may be left out.
    std::vector<std::string> commands;
    for (const CommandRow& command : command_rows())
      if (row.commands & command.bit) commands.emplace_back(command.name);
    std::string when = "__fish_seen_subcommand_from " + joined(commands, " ");
    if (commands.front() == "serve")
      when = "not __fish_seen_subcommand_from " + names + "; or " + when;
    out += "complete -c weir -n '" + when + "' -l " + std::string(row.name);
    if (const std::string_view letter = short_name(row.name); letter.size() == 1)
      out += " -s " + std::string(letter);
    else if (!letter.empty())
      out += " -o " + std::string(letter);
    if (values_of(row) == Values::kPath) out += " -r -F";
    if (values_of(row) == Values::kOther) out += " -x";
    if (values_of(row) == Values::kWords) out += " -x -a '" + joined(words_of(row), " ") + "'";
    out += " -d '" + without(short_help(row), "'\\") + "'\n";
  }
  return out;
}

}  // namespace weir
