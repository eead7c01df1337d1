# Writes OUTPUT, the C++ source that names the commit of SOURCE; an OUTPUT that says so already stays
# as it is, so that nothing is compiled again. COMMIT, if not empty, is taken instead of asking git.
cmake_minimum_required(VERSION 3.20)
set(commit "${COMMIT}")
if(NOT commit)
  find_program(GIT git)
  if(GIT)
    # A source folder that lies in somebody else's repository is no clone of ours. No lock is taken:
    # others may be at work in the clone.
    execute_process(COMMAND ${GIT} -C "${SOURCE}" rev-parse --show-cdup
                    OUTPUT_VARIABLE up RESULT_VARIABLE failed ERROR_QUIET
                    OUTPUT_STRIP_TRAILING_WHITESPACE)
    if(NOT failed AND "${up}" STREQUAL "")
      execute_process(COMMAND ${GIT} --no-optional-locks -C "${SOURCE}" describe --tags --always --dirty
                      OUTPUT_VARIABLE commit ERROR_QUIET OUTPUT_STRIP_TRAILING_WHITESPACE)
    endif()
  endif()
endif()
if(NOT commit MATCHES "^[A-Za-z0-9._+/-]+$")
  set(commit unknown)
endif()
file(CONFIGURE OUTPUT "${OUTPUT}" @ONLY CONTENT "#include \"program/commit.h\"

namespace weir {

std::string_view commit() { return \"@commit@\"; }

}  // namespace weir
")
