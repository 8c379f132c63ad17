// SPDX-License-Identifier: MIT
#include "show/print.h"

#include <fcntl.h>
#include <sys/xattr.h>

#include <cstdio>

#include "base/trust.h"

namespace rlock::cli {
namespace {

constexpr int kWrite = O_WRONLY | O_NOCTTY | O_CLOEXEC;

// `what`: the name of the file, for messages. Errors: system.
Result<void> write_all(int fd, std::string_view text, std::string_view what) {
  while (!text.empty()) {
    const ssize_t written = ::write(fd, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return std::unexpected(system_error(what));
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return {};
}

// True if others may create files and links in the folder, but not remove ours.
bool is_sticky(const struct stat& folder) {
  return (folder.st_mode & S_ISVTX) && (folder.st_mode & (S_IWGRP | S_IWOTH));
}

std::string owner_text(const struct stat& file) {
  return "belongs to another user (id " + std::to_string(file.st_uid) + ")";
}

// Refuses even our own links in a sticky folder, because others may have hard-linked them there if
// fs.protected_hardlinks is off. For root, also those in a folder of another user, who could choose any file.
Result<void> judge_link(const PathStep& step) {
  if (!step.link) return {};
  const uid_t owner = step.link->st_uid;
  const bool sticky = is_sticky(step.folder);
  const bool trusted = owner == 0 || owner == geteuid() || (geteuid() != 0 && owner == step.folder.st_uid);
  if (trusted && !sticky) return {};
  const std::string why = sticky ? "is in a folder in which others may create links" : owner_text(*step.link);
  return fail(Error::Code::config, escaped(step.path) + ": rlock does not follow this link, because it " + why +
                                       "; name the file that it leads to");
}

// `there`: the existing file or pipe.
Result<void> judge_target(const struct stat& folder, const struct stat& there, const std::string& what) {
  if (there.st_uid == geteuid()) return {};
  std::string why;
  if (is_sticky(folder) && there.st_uid != folder.st_uid) {
    why = "it " + owner_text(there) + " and is in a folder in which others may create files";
  } else if (S_ISFIFO(there.st_mode) && there.st_uid != 0) {
    why = "it is a pipe that " + owner_text(there);
  }
  if (why.empty()) return {};
  return fail(Error::Code::config, what + ": not written, because " + why + "; name another file");
}

// The N of /proc/self/fd/N, to which /dev/stdout leads, if this process has inherited that descriptor.
std::optional<int> inherited(const struct stat& folder, const std::string& name) {
  struct stat ours{};
  if (stat("/proc/self/fd", &ours) != 0 || !same_file(folder, ours)) return {};
  const auto number = whole_number(name);
  if (!number || !std::in_range<int>(*number)) return {};
  const int fd = static_cast<int>(*number), flags = fcntl(fd, F_GETFD);
  return flags >= 0 && (flags & FD_CLOEXEC) == 0 ? std::optional(fd) : std::nullopt;
}

Result<void> write_as_it_is(const PathEnd& file, std::string_view text, const std::string& what) {
  // Links in /proc only work if the kernel follows them; elsewhere the file must not have become a link by now.
  const int more = file.in_proc ? O_TRUNC : O_NOFOLLOW;
  const UniqueFd fd(openat(file.folder.get(), file.name.c_str(), kWrite | more));
  struct stat opened{};
  if (!fd || fstat(fd.get(), &opened) != 0) return std::unexpected(system_error(what));
  if (!file.in_proc && !same_file(opened, *file.there)) {
    return fail(Error::Code::system, what + ": it has just been replaced; try again");
  }
  return write_all(fd.get(), text, what);
}

// What the new file keeps of the old one.
struct Permissions {
  mode_t mode = 0666;  // before the umask
  std::optional<gid_t> group;
};

// Default permissions if the file belongs to another user. Errors (system): we may not write to it.
Result<Permissions> permissions_of(const PathEnd& file, const std::string& what) {
  if (!file.there) return Permissions{};
  const UniqueFd fd(openat(file.folder.get(), file.name.c_str(), kWrite | O_NOFOLLOW | O_NONBLOCK));
  struct stat old{};
  if (!fd || fstat(fd.get(), &old) != 0) return std::unexpected(system_error(what));
  if (!S_ISREG(old.st_mode) || old.st_uid != geteuid()) return Permissions{};
  const bool listed = fgetxattr(fd.get(), kAccessList, nullptr, 0) > 0;
  return Permissions{old.st_mode & (listed ? 0606 : 0666), old.st_gid};
}

mode_t umask_now() {
  const mode_t now = umask(077);
  umask(now);
  return now;
}

// Sets the permissions of a new, empty file, which has no others.
void give(int fd, const Permissions& wanted) {
  struct stat made{};
  if (!wanted.group || fstat(fd, &made) != 0) return;
  // Remove an access list that the folder may have added.
  if (fremovexattr(fd, kAccessList) != 0 && errno != ENODATA && errno != EOPNOTSUPP) return;
  mode_t mode = wanted.mode;
  // If others could write to the old file, apply the umask.
  if (mode & (S_IWGRP | S_IWOTH)) mode &= ~umask_now();
  // If the group cannot be kept, another one must not get its rights.
  if (made.st_gid != *wanted.group && fchown(fd, static_cast<uid_t>(-1), *wanted.group) != 0) mode &= ~mode_t{S_IRWXG};
  static_cast<void>(fchmod(fd, mode));
}

Result<void> replace(const PathEnd& file, std::string_view text, const std::string& what) {
  const int folder = file.folder.get();
  const Permissions wanted = RLOCK_TRY(permissions_of(file, what));
  // Not the pid, because that is often the same in a container, and a killed rlock may have left its file.
  const std::string added = ".rlock-" + random_uuid().substr(0, 8), beside = file.name + added;
  const UniqueFd fd(openat(folder, beside.c_str(), kWrite | O_CREAT | O_EXCL | O_NOFOLLOW, wanted.mode));
  if (!fd) {
    const int number = errno;
    Error refused = system_error("cannot create " + what + added + ", which is to replace " + what, number);
    if (number == EACCES || number == EPERM || number == EROFS) {
      refused.message += "; name a file in a folder in which you may create files";
    }
    return std::unexpected(std::move(refused));
  }
  give(fd.get(), wanted);
  auto written = write_all(fd.get(), text, what);
  if (written && renameat(folder, beside.c_str(), folder, file.name.c_str()) == 0) return {};
  if (written) written = std::unexpected(system_error(what));
  unlinkat(folder, beside.c_str(), 0);
  return written;
}

// The errno with which to refuse this file, or 0.
int no_file_there(const PathEnd& file, const struct stat& folder) {
  if (file.cut_short) return ENOENT;
  if (file.name.empty() || (file.there && S_ISDIR(file.there->st_mode))) return EISDIR;
  // A missing device is probably a mistyped name.
  struct stat dev{};
  return !file.there && stat("/dev", &dev) == 0 && same_file(folder, dev) ? ENOENT : 0;
}

}  // namespace

Result<void> print(std::string_view text) { return print_data(inert(text)); }

Result<void> print_data(std::string_view data) { return write_all(STDOUT_FILENO, data, "standard output"); }

Result<int> print(std::string_view text, int status) {
  RLOCK_TRY(print(text));
  return status;
}

Result<void> write_file(const std::string& path, std::string_view text) {
  const std::string what = escaped(path);
  auto walked = walk_path(path, ProcLinks::left, judge_link);
  if (!walked) {
    Error error = std::move(walked).error();
    return std::unexpected(error.code == Error::Code::system ? std::move(error).in(what) : std::move(error));
  }
  const PathEnd file = *std::move(walked);
  struct stat folder{};
  if (fstat(file.folder.get(), &folder) != 0) return std::unexpected(system_error(what));
  if (const int refused = no_file_there(file, folder)) return std::unexpected(system_error(what, refused));
  if (file.in_proc) {
    // Opening it would start at the beginning again, although others write to it, too.
    const auto fd = inherited(folder, file.name);
    return fd ? write_all(*fd, text, what) : write_as_it_is(file, text, what);
  }
  if (!file.there) return replace(file, text, what);
  RLOCK_TRY(judge_target(folder, *file.there, what));
  return S_ISREG(file.there->st_mode) ? replace(file, text, what) : write_as_it_is(file, text, what);
}

Result<bool> confirmed(const std::string& question) {
  if (!isatty(STDIN_FILENO) || !isatty(STDERR_FILENO)) {
    return fail(Error::Code::usage, "there is no terminal to ask on; give --yes to skip the question");
  }
  std::fputs(inert(question + " [y/N] ").c_str(), stderr);
  std::string answer;
  for (int c; (c = std::getchar()) != EOF && c != '\n';) answer += static_cast<char>(c);
  return answer == "y" || answer == "Y" || answer == "yes";
}

HoldTexts hold_texts(const std::vector<lock::Hold>& holds) {
  HoldTexts texts;
  for (const lock::Hold& hold : holds) {
    const std::string end = texts.names.empty() ? "" : "\n";
    texts.names += end + hold.name().text();
    texts.owners += end + hold.owner.text();
    texts.tokens += end + hold.token;
    texts.slots += end + hold.slots.number_text();
    texts.resources += end + hold.slots.resource_text();
  }
  for (std::string* text : {&texts.slots, &texts.resources}) {
    if (text->find_first_not_of('\n') == text->npos) text->clear();
  }
  const auto same = [&](const lock::Hold& hold) { return hold.owner == holds.front().owner; };
  if (std::ranges::all_of(holds, same)) texts.owners = holds.front().owner.text();
  return texts;
}

Result<void> begin_assignments() { return print("(exit " + std::to_string(kInternal) + ")"); }

Result<void> print_assignments(const std::vector<lock::Hold>& holds) {
  const HoldTexts texts = hold_texts(holds);
  return print_data(" ||\nexport RLOCK_NAME=" + shell_word(texts.names) + " RLOCK_OWNER=" + shell_word(texts.owners) +
                    " RLOCK_TOKEN=" + shell_word(texts.tokens) +
                    (texts.slots.empty() ? "" : " RLOCK_SLOT=" + shell_word(texts.slots)) +
                    (texts.resources.empty() ? "" : " RLOCK_RESOURCE=" + shell_word(texts.resources)) + "\n");
}

void print_failure(int status) { static_cast<void>(print(" || (exit " + std::to_string(status) + ")\n")); }

}  // namespace rlock::cli
