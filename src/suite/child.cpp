#include "suite/child.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string_view>
#include <utility>

extern "C" char** environ;

namespace weir::suite {

namespace {

constexpr const char* kProgram = "/proc/self/exe";
// A report of `weir bench` has some kilobytes.
constexpr size_t kOutputMax = size_t{16} << 20;
constexpr size_t kComplaintMax = 600;

tl::unexpected<Error> failed(const char* what) {
  return fail(ErrorCode::kIo, std::string("suite: ") + what + " failed: " + std::strerror(errno));
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> all;
  for (std::string& text : texts) all.push_back(text.data());
  all.push_back(nullptr);
  return all;
}

std::vector<std::string> environment() {
  std::vector<std::string> kept;
  for (char** entry = environ; *entry != nullptr; ++entry)
    if (!std::string_view(*entry).starts_with("WEIR_")) kept.emplace_back(*entry);
  return kept;
}

// In the new process: only what may be called between fork and exec.
[[noreturn]] void become(int output, int errors, pid_t parent, char** words, char** variables) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(127);  // It ended before it could be watched.
  ::dup2(output, STDOUT_FILENO);
  ::dup2(errors, STDERR_FILENO);
  ::execve(kProgram, words, variables);
  ::_exit(127);
}

}  // namespace

Result<Child> Child::start(const std::vector<std::string>& words) {
  Child child;
  std::vector<std::string> texts = {"weir"};
  texts.insert(texts.end(), words.begin(), words.end());
  std::vector<std::string> variables = environment();
  std::vector<char*> words_of = pointers(texts), variables_of = pointers(variables);
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return failed("pipe");
  child.output_ = ends[0];
  child.errors_ = ::memfd_create("weir-suite", MFD_CLOEXEC);
  const pid_t parent = ::getpid();
  const pid_t pid = child.errors_ < 0 ? -1 : ::fork();
  if (pid == 0) become(ends[1], child.errors_, parent, words_of.data(), variables_of.data());
  ::close(ends[1]);
  if (pid < 0) return failed("fork");
  child.pid_ = pid;
  return child;
}

Child::Child(Child&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)),
      output_(std::exchange(other.output_, -1)),
      errors_(std::exchange(other.errors_, -1)),
      rest_(std::move(other.rest_)) {}

Child& Child::operator=(Child&& other) noexcept {
  if (this == &other) return *this;
  close_all();
  pid_ = std::exchange(other.pid_, -1);
  output_ = std::exchange(other.output_, -1);
  errors_ = std::exchange(other.errors_, -1);
  rest_ = std::move(other.rest_);
  return *this;
}

Child::~Child() { close_all(); }

void Child::close_all() {
  if (pid_ > 0) {
    ::kill(pid_, SIGKILL);
    wait();
  }
  for (int* file : {&output_, &errors_})
    if (*file >= 0) ::close(std::exchange(*file, -1));
}

std::optional<std::string> Child::read_line() {
  while (true) {
    if (const size_t end = rest_.find('\n'); end != std::string::npos) {
      std::string line = rest_.substr(0, end);
      rest_.erase(0, end + 1);
      return line;
    }
    char bytes[4096];
    const ssize_t count = ::read(output_, bytes, sizeof bytes);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0 || rest_.size() > kOutputMax) return std::nullopt;
    rest_.append(bytes, static_cast<size_t>(count));
  }
}

void Child::terminate() {
  if (pid_ > 0) ::kill(pid_, SIGTERM);
}

int Child::wait() {
  int status = 0;
  pid_t ended = -1;
  while (pid_ > 0 && (ended = ::waitpid(pid_, &status, 0)) < 0 && errno == EINTR) {
  }
  pid_ = -1;
  if (ended < 0) return -1;
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

std::string Child::complaint() const {
  struct stat info {};
  if (errors_ < 0 || ::fstat(errors_, &info) != 0) return {};
  const auto size = static_cast<size_t>(info.st_size);
  std::string text(std::min(size, kComplaintMax), '\0');
  const ssize_t count =
      ::pread(errors_, text.data(), text.size(), static_cast<off_t>(size - text.size()));
  text.resize(static_cast<size_t>(std::max<ssize_t>(count, 0)));
  while (text.ends_with('\n')) text.pop_back();
  return text;
}

Result<std::string> output_of(const std::vector<std::string>& words) {
  WEIR_ASSIGN(Child child, Child::start(words));
  std::string output;
  while (std::optional<std::string> line = child.read_line()) output += *line + "\n";
  const int status = child.wait();
  if (status == 0) return output;
  return fail(ErrorCode::kIo, "'weir " + words[0] + "' ended with " + std::to_string(status) +
                                  ": " + child.complaint());
}

}  // namespace weir::suite
