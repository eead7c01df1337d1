# Writes OUTPUT.S and OUTPUT.cpp: the files of FOLDER, each as it is and packed by gzip, and the table of them that
# page_files.h declares. KATEX, if it is not empty, is one more file. In pages @VERSION@ stands for a hash of all bytes,
# @MATH@ for KaTeX's name, @MODULES@ for links to the modules.
cmake_minimum_required(VERSION 3.20)
find_program(GZIP gzip REQUIRED)
file(GLOB paths ${FOLDER}/*)
list(SORT paths)
set(MATH "")
if(KATEX)
  list(APPEND paths ${KATEX})
  get_filename_component(MATH ${KATEX} NAME)
endif()
set(hashes "")
foreach(path ${paths})
  file(SHA256 ${path} hash)
  string(APPEND hashes "${path} ${hash}\n")
endforeach()
string(REPLACE "${FOLDER}" "" hashes "${hashes}")  # The same in every checkout.
string(SHA256 version "${hashes}")
string(SUBSTRING ${version} 0 16 VERSION)

# A browser asks for all modules at once, not for each when the one before it has named it. A worklet is none of the
# page's.
set(MODULES "")
foreach(path ${paths})
  get_filename_component(name ${path} NAME)
  if(name MATCHES "[.]js$" AND NOT name MATCHES "^main[.]|_worklet[.]" AND NOT name STREQUAL MATH)
    string(APPEND MODULES "<link rel=\"modulepreload\" href=\"/ui/${VERSION}/${name}\">\n")
  endif()
endforeach()

set(types html text/html css text/css js text/javascript svg image/svg+xml)
set(bytes "    .section .rodata\n")
set(symbols "")
set(rows "")
set(index 0)
file(MAKE_DIRECTORY ${OUTPUT}.files)
foreach(path ${paths})
  get_filename_component(name ${path} NAME)
  get_filename_component(extension ${path} LAST_EXT)
  string(SUBSTRING "${extension}" 1 -1 extension)
  list(FIND types "${extension}" at)
  if(at EQUAL -1)
    message(FATAL_ERROR "${path}: expected a file that ends in .html, .css, .js or .svg")
  endif()
  math(EXPR at "${at} + 1")
  list(GET types ${at} type)
  set(copy ${OUTPUT}.files/${name})
  if(extension STREQUAL html)
    configure_file(${path} ${copy} @ONLY)
  else()
    configure_file(${path} ${copy} COPYONLY)
  endif()
  execute_process(COMMAND ${GZIP} -9nc ${copy} OUTPUT_FILE ${copy}.gz RESULT_VARIABLE failed)
  if(failed)
    message(FATAL_ERROR "gzip cannot pack ${copy}")
  endif()
  foreach(form raw gz)
    set(symbol weir_page_${index}_${form})
    set(file ${copy})
    if(form STREQUAL gz)
      set(file ${copy}.gz)
    endif()
    string(APPEND bytes "    .global ${symbol}\n    .global ${symbol}_end\n${symbol}:\n    .incbin \"${file}\"\n"
           "${symbol}_end:\n    .byte 0\n")
    string(APPEND symbols "extern \"C\" const char ${symbol}[];\nextern \"C\" const char ${symbol}_end[];\n")
  endforeach()
  string(APPEND rows "    {\"${name}\", \"${type}; charset=utf-8\",\n"
         "     {weir_page_${index}_raw, weir_page_${index}_raw_end},\n"
         "     {weir_page_${index}_gz, weir_page_${index}_gz_end}},\n")
  math(EXPR index "${index} + 1")
endforeach()
string(APPEND bytes "    .section .note.GNU-stack, \"\", @progbits\n")
file(WRITE ${OUTPUT}.S "${bytes}")
file(WRITE ${OUTPUT}.cpp "#include \"page/page_files.h\"

${symbols}
namespace weir::page {

std::span<const PageFile> page_files() {
  static const PageFile kFiles[] = {
${rows}  };
  return kFiles;
}

std::string_view page_version() { return \"${VERSION}\"; }

}  // namespace weir::page
")
