#include "data/hdf5/file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <thread>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "data/hdf5/addressed_file.h"
#include "data/hdf5/atomic_file.h"
#include "data/hdf5/image_file.h"

namespace plait::data {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
namespace fs = std::filesystem;

std::string TestPath(const std::string& name) { return testing::TempDir() + "/" + name; }

std::string Text(const std::string& path) { return *ReadWholeFile(path); }

// A file with an array of 0..23 in shape (4, 3, 2).
std::string MakeFile(const std::string& name) {
  const std::string path = TestPath(name);
  File file = *File::Create(path);
  std::vector<float> values(24);
  std::iota(values.begin(), values.end(), 0.0f);
  EXPECT_TRUE(WriteArray<float>(file, "/group/x", values, {4, 3, 2}).ok());
  EXPECT_TRUE(WriteArray<std::int64_t>(file, "/y", {5, -7}, {2}).ok());
  EXPECT_TRUE(file.Close().ok());
  return path;
}

TEST(File, ArraysComeBackWholeByRowsAndByBlock) {
  const File file = *File::Open(MakeFile("whole.h5"));
  EXPECT_THAT(*ArrayShape(file, "/group/x"), ElementsAre(4, 3, 2));
  EXPECT_EQ(ReadArray<double>(file, "/group/x")->at(23), 23.0);
  EXPECT_THAT(*ReadArray<std::int32_t>(file, "/y"), ElementsAre(5, -7));
  EXPECT_THAT(*ReadRows<float>(file, "/group/x", 2, 1), ElementsAre(12, 13, 14, 15, 16, 17));
  EXPECT_THAT(*ReadBlock<float>(file, "/group/x", {1, 1, 1}, {2, 2, 1}), ElementsAre(9, 11, 15, 17));
  EXPECT_TRUE(ReadRows<float>(file, "/group/x", 4, 0)->empty());
}

TEST(File, AttributesComeBackAndCanBeReplaced) {
  File file = *File::Create(TestPath("attributes.h5"));
  ASSERT_TRUE(SetAttribute(file, "/", "source", "first, longer").ok());
  ASSERT_TRUE(SetAttribute(file, "/", "source", "second").ok());
  ASSERT_TRUE(SetAttribute(file, "/", "empty", "").ok());
  ASSERT_TRUE(SetAttribute(file, "/", "count", std::int64_t{1} << 40).ok());
  EXPECT_EQ(*TextAttribute(file, "/", "source"), "second");
  EXPECT_EQ(*TextAttribute(file, "/", "empty"), "");
  EXPECT_EQ(*IntAttribute(file, "/", "count"), std::int64_t{1} << 40);
  EXPECT_EQ(IntAttribute(file, "/", "none").status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(TextAttribute(file, "/", "count").status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(File, GrowingArrayFillsWhatWasNeverWritten) {
  File file = *File::Create(TestPath("growing.h5"));
  ASSERT_TRUE(CreateGrowing<double>(file, "/a", 2, 4, -1.0).ok());
  ASSERT_TRUE(Resize(file, "/a", 7).ok());
  ASSERT_TRUE(WriteRows<double>(file, "/a", 5, {50.0, 60.0}).ok());
  EXPECT_THAT(*ReadArray<double>(file, "/a"), ElementsAre(-1, -1, -1, -1, -1, 50, 60));
  EXPECT_FALSE(WriteRows<double>(file, "/a", 6, {1.0, 2.0}).ok());
  ASSERT_TRUE(Resize(file, "/a", 5).ok());
  ASSERT_TRUE(Resize(file, "/a", 6).ok());
  EXPECT_EQ(ReadArray<double>(file, "/a")->at(5), -1.0) << "cut elements must not come back";
}

// The same calls make the same file, whether HDF5 writes it or an image does; and a file that HDF5 opens.
TEST(FileImage, IsTheFileThatHdf5WouldWrite) {
  const std::string by_hdf5 = TestPath("by_hdf5.h5"), by_image = TestPath("by_image.h5");
  const auto fill = [](File& file) {
    std::vector<double> values(30000);
    std::iota(values.begin(), values.end(), 0.0);
    EXPECT_TRUE(WriteArray<double>(file, "/a/large", values, {300, 100}).ok());
    EXPECT_TRUE(SetAttribute(file, "/a", "text", "words").ok());
    for (int i = 0; i < 50; ++i) {
      EXPECT_TRUE(WriteArray<float>(file, absl::StrCat("/b/", i), {1.0f * i}, {1}).ok());
    }
    EXPECT_TRUE(file.Close().ok());
  };
  File plain = *File::Create(by_hdf5);
  fill(plain);
  FileImage image;
  File imaged = *File::Create("no/such/folder.h5", image);
  fill(imaged);
  std::string bytes(image.size_bytes(), '\0');
  image.ForEachPart([&](std::int64_t offset, absl::Span<const char> part) {
    std::copy(part.begin(), part.end(), bytes.begin() + offset);
    return true;
  });
  std::ofstream(by_image, std::ios::binary) << bytes;
  const File read = *File::Open(by_image), expected = *File::Open(by_hdf5);
  EXPECT_EQ(bytes.size(), Text(by_hdf5).size());
  EXPECT_EQ(*ReadArray<double>(read, "/a/large"), *ReadArray<double>(expected, "/a/large"));
  EXPECT_EQ(*TextAttribute(read, "/a", "text"), "words");
  EXPECT_EQ(read.Names("/b")->size(), 50u);
  EXPECT_THAT(*ReadArray<float>(read, "/b/49"), ElementsAre(49.0f));
}

TEST(File, NamesAreInOrderOfCreation) {
  File file = *File::Create(TestPath("names.h5"));
  for (const char* name : {"/z", "/a", "/m"}) ASSERT_TRUE(WriteArray<float>(file, name, {1.0f}, {1}).ok());
  EXPECT_THAT(*file.Names("/"), ElementsAre("z", "a", "m"));
  EXPECT_TRUE(file.Has("/z"));
  EXPECT_FALSE(file.Has("/no/such/thing"));
}

TEST(File, ErrorsNameFileObjectAndCauseOnOneLine) {
  testing::internal::CaptureStderr();
  const std::string path = MakeFile("errors.h5");
  File file = *File::Open(path);
  const std::vector<std::pair<absl::Status, std::vector<std::string>>> cases = {
      {File::Open(TestPath("absent.h5")).status(), {"absent.h5", "No such file"}},
      {File::Create(TestPath("no_folder/a.h5")).status(), {"no_folder/a.h5", "No such file"}},
      {ReadArray<float>(file, "/group/none").status(), {path, "/group/none", "no such array"}},
      {ReadArray<float>(file, "/nogroup/x").status(), {path, "/nogroup/x", "no such array"}},
      {ReadArray<float>(file, "/y").status(), {path, "/y", "another type"}},
      {ReadRows<float>(file, "/group/x", 3, 2).status(), {path, "(3, 0, 0)", "(2, 3, 2)", "(4, 3, 2)"}},
      {WriteArray<float>(file, "/new", {1.0f}, {1}), {path, "/new", "write"}},
      {WriteArray<float>(file, "/new", {1.0f}, {2}), {path, "1 values", "(2)"}},
  };
  for (const auto& [status, parts] : cases) {
    EXPECT_FALSE(status.ok());
    EXPECT_THAT(std::string(status.message()), Not(HasSubstr("\n")));
    for (const std::string& part : parts) EXPECT_THAT(std::string(status.message()), HasSubstr(part));
  }
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "") << "HDF5 printed its own error stack";
}

TEST(File, ForeignAndTruncatedFilesAreDataLoss) {
  const std::string foreign = TestPath("foreign.h5");
  std::ofstream(foreign) << "this is no HDF5 file at all";
  EXPECT_EQ(File::Open(foreign).status().code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(File::Open(foreign).status().message()), HasSubstr("foreign.h5: not an HDF5 file"));
  const std::string cut = MakeFile("cut.h5");
  fs::resize_file(cut, fs::file_size(cut) - 100);
  EXPECT_EQ(File::Open(cut).status().code(), absl::StatusCode::kDataLoss) << File::Open(cut).status();
  EXPECT_THAT(std::string(File::Open(cut).status().message()), HasSubstr("truncated"));
}

// Memory is bounded by the size of the file, whatever shape it claims; attributes must be scalars.
TEST(File, SizesThatTheFileDoesNotHave) {
  const std::string path = TestPath("sizes.h5");
  {
    File file = *File::Create(path);
    ASSERT_TRUE(CreateGrowing<double>(file, "/grown", 3, 4, 0.0).ok());
    ASSERT_TRUE(Resize(file, "/grown", 1'000'000).ok()) << "never written, but small";
    ASSERT_TRUE(CreateGrowing<double>(file, "/huge", 3, 4, 0.0).ok());
    ASSERT_TRUE(Resize(file, "/huge", std::int64_t{1} << 55).ok());
    const hsize_t many = 4000;
    const std::vector<std::int64_t> numbers(many, 1);
    const Handle space(H5Screate_simple(1, &many, nullptr));
    const Handle attribute(
        H5Acreate2(file.id(), "numbers", H5T_NATIVE_INT64, space.id(), H5P_DEFAULT, H5P_DEFAULT));
    ASSERT_GE(H5Awrite(attribute.id(), H5T_NATIVE_INT64, numbers.data()), 0);
    const Handle none(H5Screate(H5S_NULL));
    const Handle empty(
        H5Dcreate2(file.id(), "/none", H5T_NATIVE_DOUBLE, none.id(), H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
    ASSERT_TRUE(empty.ok());
  }
  const File file = *File::Open(path);
  EXPECT_EQ(ReadArray<double>(file, "/grown")->size(), 1'000'000u);
  const absl::Status huge = ReadArray<double>(file, "/huge").status();
  EXPECT_EQ(huge.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(huge.message()),
              AllOf(HasSubstr("sizes.h5: /huge"), HasSubstr("more than the file can hold")));
  EXPECT_EQ(ReadRows<double>(file, "/huge", 0, std::int64_t{1} << 54).status().code(),
            absl::StatusCode::kDataLoss);
  EXPECT_EQ(ReadRows<double>(file, "/huge", 5, 2)->size(), 2u);
  EXPECT_FALSE(IntAttribute(file, "/", "numbers").ok());
  EXPECT_FALSE(TextAttribute(file, "/", "numbers").ok());
  EXPECT_FALSE(ReadArray<double>(file, "/none").ok());
}

// A group that contains itself, and links out of the file, whose target nobody has looked at.
TEST(File, LinksToItselfAndToOtherFiles) {
  MakeFile("other.h5");
  const std::string path = TestPath("links.h5");
  {
    File file = *File::Create(path);
    ASSERT_TRUE(WriteArray<float>(file, "/a", {1.0f}, {1}).ok());
    for (const char* name : {"/b", "/c", "/d"}) {
      ASSERT_GE(H5Lcreate_hard(file.id(), "/", file.id(), name, H5P_DEFAULT, H5P_DEFAULT), 0);
    }
    ASSERT_GE(H5Lcreate_external("other.h5", "/y", file.id(), "/outside", H5P_DEFAULT, H5P_DEFAULT), 0);
  }
  const absl::StatusOr<File> file = File::OpenForeign(path);
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_THAT(*file->Names("/"), ElementsAre("a", "b", "c", "d"));
  EXPECT_EQ(ReadArray<std::int32_t>(*file, "/outside").status().code(), absl::StatusCode::kNotFound);
}

absl::Status WriteText(const std::string& path, const std::string& text) {
  std::ofstream(path) << text;
  return absl::OkStatus();
}

TEST(ReadWholeFile, TakesMemoryOfTheFilesSize) {
  constexpr std::size_t kSmall = 1024;
  const std::string path = TestPath("whole");
  for (const std::size_t size : {0, 1, 511, 512, 513, 65536, 200000}) {
    std::string text(size, 'x');
    if (size > 0) text.back() = 'y';
    ASSERT_TRUE(WriteText(path, text).ok());
    const absl::StatusOr<std::string> read = ReadWholeFile(path, static_cast<std::int64_t>(size));
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_EQ(*read, text);
    EXPECT_LE(read->capacity(), size + kSmall);
    if (size == 0) continue;
    EXPECT_EQ(ReadWholeFile(path, static_cast<std::int64_t>(size) - 1).status().code(),
              absl::StatusCode::kDataLoss);
  }
}

TEST(ReadWholeFile, ReadsPipesAndNamesFolders) {
  const std::string path = TestPath("pipe"), text(100000, 'z');
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  std::thread writer([&] { WriteText(path, text).IgnoreError(); });
  EXPECT_EQ(ReadWholeFile(path).value_or(""), text);
  writer.join();
  EXPECT_EQ(ReadWholeFile(testing::TempDir()).status().message(),
            absl::StrCat(testing::TempDir(), ": cannot be read: Is a directory"));
}

TEST(File, ANamedPipeIsNone) {
  const std::string path = TestPath("pipe_of_hdf5");
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  for (const absl::Status& status : {File::Open(path).status(), AddressedFile::Open(path).status()})
    EXPECT_EQ(status, absl::DataLossError(path + ": not an HDF5 file"));
}

TEST(WriteAtomically, ReplacesWholeAndKeepsTheOldOnFailure) {
  const std::string folder = TestPath("atomic");
  ASSERT_TRUE(MakeFolders(folder).ok());
  const std::string path = folder + "/target";
  const auto write = [](const std::string& text) {
    return [text](const std::string& partial) { return WriteText(partial, text); };
  };
  ASSERT_TRUE(WriteAtomically(path, 0, write("old")).ok());
  ASSERT_TRUE(WriteAtomically(path, 3, write("new")).ok());
  EXPECT_EQ(Text(path), "new");
  const absl::Status failed = WriteAtomically(path, 0, [](const std::string& partial) {
    WriteText(partial, "half").IgnoreError();
    return absl::InternalError("went wrong");
  });
  EXPECT_THAT(std::string(failed.message()), AllOf(HasSubstr(path), HasSubstr("went wrong")));
  const absl::Status full = WriteAtomically(path, std::int64_t{1} << 60, write("too big"));
  EXPECT_EQ(full.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(full.message()), AllOf(HasSubstr("disk full"), HasSubstr("needed")));
  EXPECT_EQ(Text(path), "new");
  EXPECT_EQ(std::distance(fs::directory_iterator(folder), fs::directory_iterator()), 1)
      << "something left beside it";
}

TEST(WriteAtomically, WritesTheFileOfALinkAndNoDevice) {
  const std::string folder = TestPath("links"), real = folder + "/real/file", link = folder + "/link";
  ASSERT_TRUE(MakeFolders(folder + "/real").ok());
  fs::create_symlink("real/file", link);
  ASSERT_TRUE(WriteWholeFile(real, "old").ok());
  ASSERT_TRUE(WriteWholeFile(link, "new").ok());
  EXPECT_TRUE(fs::is_symlink(link));
  EXPECT_EQ(Text(real), "new");
  const std::string pipe = folder + "/pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  fs::create_symlink("pipe", folder + "/to_pipe");
  for (const std::string& path : {pipe, folder + "/to_pipe"}) {
    EXPECT_EQ(WriteWholeFile(path, "x"),
              absl::InvalidArgumentError(
                  path + " not written: it is no regular file, which a rename could replace"));
  }
  EXPECT_TRUE(fs::is_fifo(pipe));
}

TEST(WriteAtomically, MakesTheFileOfALinkWithoutOne) {
  const std::string folder = TestPath("dangling"), real = folder + "/real/file";
  ASSERT_TRUE(MakeFolders(folder + "/real").ok());
  fs::create_symlink("real/second", folder + "/first");
  fs::create_symlink("file", folder + "/real/second");
  EXPECT_EQ(FileAt(folder + "/first"), real);
  ASSERT_TRUE(WriteWholeFile(folder + "/first", "new").ok());
  EXPECT_TRUE(fs::is_symlink(folder + "/first") && fs::is_symlink(folder + "/real/second"));
  EXPECT_EQ(Text(real), "new");
  fs::create_symlink(folder + "/absent/file", folder + "/nowhere");
  fs::create_symlink("loop", folder + "/loop");
  for (const auto& [name, cause] : {std::pair("/nowhere", "/absent: folder cannot be used: No such file"),
                                    std::pair("/loop", "Too many levels of symbolic links")}) {
    const absl::Status status = WriteWholeFile(folder + name, "new");
    EXPECT_THAT(std::string(status.message()),
                AllOf(HasSubstr(folder + name + " not written"), HasSubstr(cause), Not(HasSubstr("\n"))));
    EXPECT_TRUE(fs::is_symlink(folder + name));
  }
}

mode_t ModeOf(const std::string& path) {
  struct stat about = {};
  EXPECT_EQ(stat(path.c_str(), &about), 0);
  return about.st_mode & 0777;
}

// What nobody else may read stays so, also while it is written.
TEST(WriteAtomically, KeepsTheModeOfTheFile) {
  const std::string folder = TestPath("modes"), path = folder + "/file";
  ASSERT_TRUE(MakeFolders(folder).ok());
  const mode_t mask = umask(022);
  ASSERT_TRUE(WriteWholeFile(path, "first").ok());
  EXPECT_EQ(ModeOf(path), 0644u);
  for (const mode_t mode : {0600u, 0660u, 0400u}) {
    ASSERT_EQ(chmod(path.c_str(), mode), 0);
    const absl::Status written = WriteAtomically(path, 0, [](const std::string& partial) {
      const absl::Status filled = WriteText(partial, "next");
      EXPECT_EQ(ModeOf(partial), 0600u);
      return filled;
    });
    EXPECT_TRUE(written.ok()) << written;
    EXPECT_EQ(ModeOf(path), mode);
  }
  umask(mask);
}

// Whoever may write in the folder could have it write somewhere else.
TEST(WriteAtomically, FollowsNoLinkOfTheTemporaryName) {
  const std::string folder = TestPath("planted"), other = folder + "/other";
  ASSERT_TRUE(MakeFolders(folder).ok());
  std::string partial;
  ASSERT_TRUE(WriteAtomically(folder + "/file", 0, [&](const std::string& name) {
                return WriteText(partial = name, "x");
              }).ok());
  ASSERT_TRUE(WriteText(other, "other").ok());
  fs::create_symlink("other", partial);
  ASSERT_TRUE(WriteWholeFile(folder + "/file", "new").ok());
  EXPECT_EQ(Text(other), "other");
  EXPECT_EQ(Text(folder + "/file"), "new");
  EXPECT_FALSE(fs::is_symlink(folder + "/file"));
}

TEST(WriteAtomically, MissingFolderIsNamed) {
  const absl::Status status =
      WriteAtomically(TestPath("absent_folder/f"), 0, [](const std::string&) { return absl::OkStatus(); });
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(status.message()), HasSubstr("absent_folder"));
}

// Runs `body` in a child process and returns its exit status. A child, as limits and users cannot be given
// back.
int InChild(const std::function<int()>& body) {
  const pid_t child = fork();
  if (child == 0) _exit(body());
  int status = 0;
  waitpid(child, &status, 0);
  return status;
}

TEST(WriteAtomically, UnwritableFolderIsPermissionDenied) {
  const std::string folder = TestPath("read_only");
  ASSERT_TRUE(MakeFolders(folder).ok());
  ASSERT_EQ(chmod(folder.c_str(), 0555), 0);
  const int status = InChild([&] {
    // Root may write anywhere: become nobody.
    if (geteuid() == 0 && setuid(65534) != 0) return 2;
    const absl::Status denied =
        WriteAtomically(folder + "/f", 0, [](const std::string&) { return absl::OkStatus(); });
    return absl::StrContains(denied.message(), "read_only") &&
                   denied.code() == absl::StatusCode::kPermissionDenied
               ? 0
               : 1;
  });
  EXPECT_EQ(status, 0);
}

// A limit on the size of files makes writes fail in the middle, as a full disk does.
TEST(WriteAtomically, FailingWritesOfHdf5KeepTheOldFile) {
  const std::string path = MakeFile("full.h5");
  const std::string before = Text(path);
  const int status = InChild([&] {
    signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{100000, 100000};
    setrlimit(RLIMIT_FSIZE, &limit);
    const absl::Status full = WriteAtomically(path, 0, [](const std::string& partial) -> absl::Status {
      absl::StatusOr<File> file = File::Create(partial);
      if (!file.ok()) return file.status();
      const std::vector<double> values(100000, 1.0);
      const absl::Status written = WriteArray<double>(*file, "/big", values, {100000});
      const absl::Status closed = file->Close();
      return written.ok() ? closed : written;
    });
    return full.code() == absl::StatusCode::kResourceExhausted ? 0 : 1;
  });
  EXPECT_EQ(status, 0);
  EXPECT_EQ(Text(path), before);
}

TEST(WriteOnDisk, MakesAFileOfHdf5) {
  const std::string path = TestPath("on_disk.h5");
  std::ofstream(path) << std::string(100000, 'x');
  const std::vector<double> values(3000, 2.5);
  const absl::Status written = WriteOnDisk(path, [&](File& file) {
    return WriteArray<double>(file, "/values", values, {30, 100});
  });
  ASSERT_TRUE(written.ok()) << written;
  EXPECT_LT(std::filesystem::file_size(path), 30000);
  const absl::StatusOr<File> file = File::Open(path);
  ASSERT_TRUE(file.ok()) << file.status();
  const absl::StatusOr<std::vector<double>> read = ReadArray<double>(*file, "/values");
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(*read, values);
}

// HDF5 itself would crash when the process exits, which calls H5close().
TEST(WriteOnDisk, FailedWritesAreErrors) {
  const std::string path = TestPath("small.h5");
  for (const rlim_t bytes : {0, 1000, 20000}) {
    const int status = InChild([&] {
      signal(SIGXFSZ, SIG_IGN);
      const rlimit limit{bytes, bytes};
      setrlimit(RLIMIT_FSIZE, &limit);
      const std::vector<double> values(3000, 2.5);
      const absl::Status written =
          WriteOnDisk(path, [&](File& file) { return WriteArray<double>(file, "/values", values, {3000}); });
      H5close();
      return written.code() == absl::StatusCode::kResourceExhausted ? 0 : 1;
    });
    EXPECT_EQ(status, 0) << bytes;
  }
}

TEST(WriteAtomically, RemovesWhatAKilledProcessLeft) {
  const std::string folder = TestPath("killed");
  ASSERT_TRUE(MakeFolders(folder).ok());
  const std::string path = folder + "/target";
  const int status = InChild([&] {
    return WriteAtomically(path, 0,
                           [](const std::string& partial) {
                             WriteText(partial, "half").IgnoreError();
                             kill(getpid(), SIGKILL);
                             return absl::OkStatus();
                           })
        .ok();
  });
  EXPECT_TRUE(WIFSIGNALED(status));
  EXPECT_FALSE(fs::exists(path));
  EXPECT_EQ(std::distance(fs::directory_iterator(folder), fs::directory_iterator()), 1);
  ASSERT_TRUE(
      WriteAtomically(path, 0, [](const std::string& partial) { return WriteText(partial, "x"); }).ok());
  EXPECT_EQ(std::distance(fs::directory_iterator(folder), fs::directory_iterator()), 1);
}

}  // namespace
}  // namespace plait::data
