// SPDX-License-Identifier: MIT
#include "base/walk_path.h"

#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

namespace rlock {
namespace {

constexpr int kMostLinks = 40;  // as many as the kernel follows
constexpr int kLook = O_PATH | O_NOFOLLOW | O_CLOEXEC, kEnter = O_PATH | O_DIRECTORY | O_CLOEXEC;

std::unexpected<Error> failed(int number) { return fail(Error::Code::system, errno_text(number)); }

bool is_on(const UniqueFd& file, long file_system) {
  struct statfs info{};
  return fstatfs(file.get(), &info) == 0 && info.f_type == file_system;
}

class Walk {
 public:
  Walk(const std::string& path, ProcLinks proc_links, const JudgeStep& judge)
      : rest_(path), proc_links_(proc_links), judge_(judge) {}

  Result<PathEnd> run() {
    RLOCK_TRY(begin());
    for (;;) {
      const std::string name = next_name();
      if (name.empty()) return PathEnd{std::move(folder_), "", {}, is_on(folder_, PROC_SUPER_MAGIC)};
      if (auto end = RLOCK_TRY(step(name))) return *std::move(end);
    }
  }

 private:
  // Of the rest of the path, which may be absolute.
  Result<void> begin() {
    if (rest_.starts_with('/')) {
      path_ = "/";
    } else if (path_.empty()) {
      path_ = ".";
    } else {
      return {};  // a link, beside which the path goes on
    }
    folder_ = UniqueFd(open(path_.c_str(), kEnter));
    if (!folder_) return failed(errno);
    return {};
  }

  // Takes it from the rest of the path.
  std::string next_name() {
    rest_.erase(0, rest_.find_first_not_of('/'));
    const std::string name = rest_.substr(0, rest_.find('/'));
    rest_.erase(0, name.size());
    return name;
  }

  Result<std::optional<PathEnd>> step(const std::string& name) {
    const bool last = rest_.empty(), in_proc = is_on(folder_, PROC_SUPER_MAGIC);
    const std::string path = path_ + (path_.ends_with('/') ? "" : "/") + name;
    struct stat folder{}, there{};
    if (fstat(folder_.get(), &folder) != 0) return failed(errno);
    RLOCK_TRY(judge_({path_, folder}));
    UniqueFd next(openat(folder_.get(), name.c_str(), kLook));
    if (!next && errno == ENOENT) return PathEnd{std::move(folder_), name, {}, in_proc, !last};
    if (!next || fstat(next.get(), &there) != 0) return failed(errno);
    if (S_ISLNK(there.st_mode) && (!in_proc || proc_links_ == ProcLinks::by_path)) {
      if (!in_proc) RLOCK_TRY(judge_({path, folder, &there}));
      RLOCK_TRY(follow(next));
      return std::nullopt;
    }
    if (last) return PathEnd{std::move(folder_), name, there, in_proc};
    RLOCK_TRY(enter(std::move(next), name, there));
    path_ = path;
    return std::nullopt;
  }

  // `next`: what was seen there by that name, in the present folder.
  Result<void> enter(UniqueFd next, const std::string& name, const struct stat& there) {
    // A look does not mount what is mounted on demand; the way through it does (open(2), O_PATH).
    if (S_ISLNK(there.st_mode) || is_on(next, AUTOFS_SUPER_MAGIC)) {
      next = UniqueFd(openat(folder_.get(), (name + "/.").c_str(), kEnter));
      if (!next) return failed(errno);
    } else if (!S_ISDIR(there.st_mode)) {
      return failed(ENOTDIR);
    }
    folder_ = std::move(next);
    return {};
  }

  Result<void> follow(const UniqueFd& link) {
    char text[PATH_MAX];
    const ssize_t length = readlinkat(link.get(), "", text, sizeof text);
    if (length < 0) return failed(errno);
    if (++links_ > kMostLinks) return failed(ELOOP);
    rest_.insert(0, text, static_cast<std::size_t>(length));
    return begin();
  }

  std::string rest_, path_;  // what is still to be followed; where `folder_` is
  UniqueFd folder_;
  int links_ = 0;
  const ProcLinks proc_links_;
  const JudgeStep& judge_;
};

}  // namespace

Result<PathEnd> walk_path(const std::string& path, ProcLinks proc_links, const JudgeStep& judge) {
  if (path.empty()) return failed(ENOENT);
  return Walk(path, proc_links, judge).run();
}

bool same_file(const struct stat& one, const struct stat& other) {
  return one.st_dev == other.st_dev && one.st_ino == other.st_ino;
}

}  // namespace rlock
