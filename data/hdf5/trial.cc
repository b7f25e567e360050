#include "data/hdf5/trial.h"

#include <fcntl.h>
#include <hdf5_hl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <set>
#include <vector>

#include "absl/strings/str_cat.h"
#include "data/hdf5/handle.h"

namespace plait::data {
namespace {

constexpr rlim_t kMegabyte = rlim_t{1} << 20;
// Deeper groups would take the stack; nothing of Plait's is read there.
constexpr int kDeepest = 64;

// At the hard limit of processor time the kernel kills, a second after it has said so.
void Limit(decltype(RLIMIT_CPU) resource, rlim_t most) {
  const rlimit limit = {most, most + 1};
  setrlimit(resource, &limit);
}

// Bytes of address space that the process has now.
rlim_t AddressSpace() {
  unsigned long long pages = 0;
  std::FILE* file = std::fopen("/proc/self/statm", "re");
  if (file == nullptr || std::fscanf(file, "%llu", &pages) != 1) return RLIM_INFINITY;
  std::fclose(file);
  return pages * static_cast<rlim_t>(sysconf(_SC_PAGESIZE));
}

herr_t ReadAttribute(hid_t object, const char* name, const H5A_info_t* about, void*) {
  const Handle attribute(H5Aopen(object, name, H5P_DEFAULT));
  const Handle type(H5Aget_type(attribute.id())), space(H5Aget_space(attribute.id()));
  const hsize_t size = H5Tget_size(type.id());
  const auto elements = static_cast<hsize_t>(std::max<hssize_t>(0, H5Sget_simple_extent_npoints(space.id())));
  if (!attribute.ok() || size == 0 || elements > 2 * about->data_size / size) return 0;
  std::vector<char> room(elements * size + 1);
  if (H5Aread(attribute.id(), type.id(), room.data()) >= 0) {
    H5Dvlen_reclaim(type.id(), space.id(), H5P_DEFAULT, room.data());
  }
  return 0;
}

void ReadElements(hid_t array, hid_t type, const std::vector<hsize_t>& first,
                  const std::vector<hsize_t>& count) {
  const Handle stored(H5Dget_space(array));
  if (!first.empty())
    H5Sselect_hyperslab(stored.id(), H5S_SELECT_SET, first.data(), nullptr, count.data(), nullptr);
  const Handle memory(H5Screate_simple(static_cast<int>(count.size()), count.data(), nullptr));
  const hssize_t elements = H5Sget_select_npoints(stored.id());
  std::vector<char> room(static_cast<std::size_t>(elements) * H5Tget_size(type) + 1);
  if (H5Dread(array, type, first.empty() ? H5S_ALL : memory.id(), stored.id(), H5P_DEFAULT, room.data()) >=
      0) {
    H5Dvlen_reclaim(type, first.empty() ? stored.id() : memory.id(), H5P_DEFAULT, room.data());
  }
}

herr_t NameScale(hid_t, unsigned, hid_t scale, void*) {
  char name[256];
  H5Iget_name(scale, name, sizeof(name));
  return 0;
}

void ReadArray(hid_t array) {
  const Handle type(H5Dget_type(array)), space(H5Dget_space(array)), creation(H5Dget_create_plist(array));
  const int rank = H5Sget_simple_extent_ndims(space.id());
  if (!type.ok() || rank < 0 || H5Pget_layout(creation.id()) == H5D_VIRTUAL) return;
  std::vector<hsize_t> extent(rank), one(rank, 1), first(rank, 0);
  H5Sget_simple_extent_dims(space.id(), extent.data(), nullptr);
  for (int d = 0; d < rank; ++d)
    H5DSiterate_scales(array, static_cast<unsigned>(d), nullptr, NameScale, nullptr);
  if (std::count(extent.begin(), extent.end(), 0) > 0) return;
  ReadElements(array, type.id(), first, one);
  if (rank == 0) return;
  std::vector<hsize_t> last = extent;
  for (hsize_t& place : last) --place;
  ReadElements(array, type.id(), last, one);
  if (H5Pget_layout(creation.id()) != H5D_CHUNKED) return;
  // Rows of a chunk at a time.
  std::vector<hsize_t> chunk(rank), count = extent;
  H5Pget_chunk(creation.id(), rank, chunk.data());
  for (; first[0] < extent[0]; first[0] += chunk[0]) {
    count[0] = std::min(chunk[0], extent[0] - first[0]);
    ReadElements(array, type.id(), first, count);
  }
}

struct Walk {
  std::set<haddr_t> seen;  // groups may contain themselves
  int depth = 0;
};

void Visit(hid_t object, Walk& walk);

herr_t VisitLink(hid_t group, const char* name, const H5L_info_t* about, void* data) {
  auto& walk = *static_cast<Walk*>(data);
  H5O_info_t object_info;
  if (about->type != H5L_TYPE_HARD) return 0;
  const Handle object(H5Oopen(group, name, H5P_DEFAULT));
  if (!object.ok() || H5Oget_info1(object.id(), &object_info) < 0) return 0;
  if (!walk.seen.insert(object_info.addr).second) return 0;
  ++walk.depth;
  Visit(object.id(), walk);
  --walk.depth;
  return 0;
}

void Visit(hid_t object, Walk& walk) {
  for (const H5_index_t order : {H5_INDEX_CRT_ORDER, H5_INDEX_NAME}) {
    H5Aiterate2(object, order, H5_ITER_INC, nullptr, ReadAttribute, nullptr);
  }
  const H5I_type_t kind = H5Iget_type(object);
  if (kind == H5I_DATASET) ReadArray(object);
  if (kind != H5I_GROUP || walk.depth > kDeepest) return;
  if (H5Literate(object, H5_INDEX_CRT_ORDER, H5_ITER_INC, nullptr, VisitLink, &walk) < 0) {
    H5Literate(object, H5_INDEX_NAME, H5_ITER_INC, nullptr, VisitLink, &walk);
  }
}

[[noreturn]] void RunChild(const std::string& path, std::int64_t file_bytes) {
  const int nowhere = open("/dev/null", O_RDWR);
  for (const int stream : {STDOUT_FILENO, STDERR_FILENO}) dup2(nowhere, stream);
  for (const int sign : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGXCPU}) std::signal(sign, SIG_DFL);
  const auto bytes = static_cast<rlim_t>(file_bytes);
  Limit(RLIMIT_CORE, 0);
  Limit(RLIMIT_CPU, 10 + bytes / (10 * kMegabyte));
  const rlim_t now = AddressSpace();
  if (now != RLIM_INFINITY) Limit(RLIMIT_AS, now + 1024 * kMegabyte + 4 * bytes);
  H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
  const Handle access = FileAccess();
  const hid_t file = H5Fopen(path.c_str(), H5F_ACC_RDONLY, access.id());
  if (file >= 0) {
    Walk walk;
    Visit(file, walk);
    H5Fclose(file);
  }
  _exit(0);
}

}  // namespace

absl::Status TryInChild(const std::string& path) {
  struct stat about;
  if (stat(path.c_str(), &about) != 0)
    return absl::ErrnoToStatus(errno, absl::StrCat(path, ": cannot be opened"));
  const pid_t child = fork();
  if (child < 0) return absl::OkStatus();  // no room for a process: as sound as HDF5 is itself
  if (child == 0) RunChild(path, about.st_size);
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat(path, ": damaged: HDF5 ",
                                          WIFSIGNALED(status) && WTERMSIG(status) == SIGXCPU
                                              ? "does not come to an end"
                                              : "crashes or runs out of memory",
                                          " over it"));
}

std::int64_t MostBytes(hid_t file, hid_t array) {
  constexpr std::int64_t kMostPacked = 1032, kUnwritten = std::int64_t{1} << 26;
  hsize_t size = 0;
  H5Fget_filesize(file, &size);
  const Handle creation(H5Dget_create_plist(array));
  const auto bytes = static_cast<std::int64_t>(std::min<hsize_t>(size, hsize_t{1} << 50));
  const bool plain = H5Pget_layout(creation.id()) == H5D_CONTIGUOUS && H5Dget_storage_size(array) > 0;
  return plain ? bytes : kUnwritten + kMostPacked * bytes;
}

}  // namespace plait::data
