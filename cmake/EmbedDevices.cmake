# Writes OUTPUT, a C++ file with the text of every FOLDER/*.json. Run as: cmake -DFOLDER=... -DOUTPUT=... -P this
file(GLOB files "${FOLDER}/*.json")
list(SORT files)
set(rows "")
foreach(file IN LISTS files)
  get_filename_component(name "${file}" NAME)
  file(READ "${file}" text)
  string(APPEND rows "    {\"data/devices/${name}\", R\"device(${text})device\"},\n")
endforeach()
file(WRITE "${OUTPUT}.new" "// Written by cmake/EmbedDevices.cmake from data/devices.
#include \"tidemark/device/embedded.h\"

#include <array>

namespace tidemark::device {

namespace {

constexpr auto kFiles = std::to_array<EmbeddedFile>({
${rows}});

}  // namespace

std::span<const EmbeddedFile> embedded_devices() { return kFiles; }

}  // namespace tidemark::device
")
file(COPY_FILE "${OUTPUT}.new" "${OUTPUT}" ONLY_IF_DIFFERENT)
