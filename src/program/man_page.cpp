#include "program/man_page.h"

#include <algorithm>
#include <string_view>
#include <vector>

#include "program/foreign_options.h"
#include "program/option_table.h"

namespace weir {

namespace {

// Text as troff prints it: '-' would be a hyphen, '\' begins an escape, '.' and ''' at the
// beginning of a line a request.
std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (out.empty() && (c == '.' || c == '\'')) out += "\\&";
    if (c == '\\')
      out += "\\e";
    else if (c == '-')
      out += "\\-";
    else
      out += c;
  }
  return out;
}

std::string bold(std::string_view text) { return "\\fB" + escaped(text) + "\\fR"; }
std::string italic(std::string_view text) { return "\\fI" + escaped(text) + "\\fR"; }

// "-m, --model MODEL".
std::string flag_of(const Row& row) {
  std::string flag;
  if (const std::string_view letter = short_name(row.name); !letter.empty())
    flag += bold("-" + std::string(letter)) + ", ";
  flag += bold("--" + std::string(row.name));
  if (!row.value.empty()) flag += " " + italic(row.value);
  return flag;
}

std::string names_of(uint16_t commands) {
  std::string names;
  for (const CommandRow& command : command_rows())
    if (commands & command.bit) names += (names.empty() ? "" : ", ") + escaped(command.name);
  return names;
}

std::string options_section() {
  std::vector<std::string_view> groups;
  for (const Row& row : option_rows())
    if (std::ranges::find(groups, row.group) == groups.end()) groups.push_back(row.group);
  std::string out =
      ".SH OPTIONS\nAfter each option stand its default and the commands that take it.\n";
  for (const std::string_view group : groups) {
    out += ".SS " + escaped(group) + "\n";
    for (const Row& row : option_rows()) {
      if (row.group != group) continue;
      out += ".TP\n" + flag_of(row) + "\n" + escaped(row.help) +
             ". Default: " + escaped(row.fallback) + ". (" + names_of(row.commands) + ")\n";
    }
  }
  out += ".SS Every command\n.TP\n" + bold("--help") + ", " + bold("--version") +
         "\nPrint the options of the command, or the version, and exit.\n";
  return out;
}

std::string commands_section() {
  std::string out = ".SH COMMANDS\n";
  for (const CommandRow& command : command_rows()) {
    out += ".TP\n" + bold(command.name);
    if (!command.words.empty()) out += " " + italic(command.words);
    out += "\n" + escaped(command.help) + ".\n";
  }
  return out;
}

}  // namespace

std::string man_page() {
  return ".TH WEIR 1 \"\" \"Weir " + std::string(kVersion) +
         "\" \"User Commands\"\n.nh\n.ad l\n"
         ".SH NAME\nweir \\- OpenAI\\-compatible server for local language models\n"
         ".SH SYNOPSIS\n.B weir\n[" +
         italic("COMMAND") + "] [" + italic("OPTION") +
         "]...\n"
         ".SH DESCRIPTION\n"
         "Weir answers requests of the OpenAI, Anthropic and Ollama APIs with language models "
         "that\n"
         "run on this machine's processor. Without a command it serves; without a model it serves\n"
         "the small one that is compiled in, at http://127.0.0.1:5413.\n" +
         commands_section() + options_section() +
         ".SH ENVIRONMENT\n"
         "Each option is also a variable: " +
         bold("--kv-cache") + " is " + bold(environment_name("kv-cache")) +
         ".\nThe command line wins over the environment, the environment over the file that\n" +
         bold("--config") + " names. The token for the Hugging Face hub, " + bold("HF_TOKEN") +
         ", and the place\nof its cache, " + bold("HF_HOME") +
         ", are as in Hugging Face's own tools. Started by systemd, Weir\ntakes the sockets of "
         "LISTEN_FDS and reports to NOTIFY_SOCKET.\n"
         ".SH SIGNALS\n.TP\n" +
         bold("SIGTERM") + ", " + bold("SIGINT") +
         "\nAnswer what is open, then exit; a second one exits at once.\n.TP\n" + bold("SIGHUP") +
         "\nRead certificates and keys anew, and open the log file anew.\n"
         ".SH EXIT STATUS\n.TP\n.B 0\nAll went well.\n.TP\n.B 1\nThe command failed.\n.TP\n.B 2\n"
         "The options are wrong.\n"
         ".SH FILES\n.TP\n.I /etc/weir/weir.conf\nOptions of the service.\n.TP\n.I /etc/weir/keys\n"
         "Keys of its clients, once weir.conf names it.\n.TP\n.I /var/cache/weir\n"
         "The models that the service has fetched.\n"
         ".SH SEE ALSO\nThe pages in\n.IR /usr/share/doc/weir .\n";
}

}  // namespace weir
