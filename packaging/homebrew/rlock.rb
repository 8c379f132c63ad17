# Installs the static program of a release by Homebrew on Linux. rlock does not run on macOS.
#
# packaging/release writes dist/rlock.rb: the version, and the sum of the archive that lies beside it.
class Rlock < Formula
  desc "Run a command under a lock that many hosts share through Redis"
  homepage "@HOMEPAGE@"
  url "file://#{__dir__}/@ARCHIVE@"
  version "@VERSION@"
  sha256 "@SHA256@"
  license "MIT"

  depends_on arch: :x86_64
  depends_on :linux

  def install
    bin.install "bin/rlock"
    man1.install Dir["share/man/man1/*"]
    man5.install Dir["share/man/man5/*"]
    man7.install Dir["share/man/man7/*"]
    doc.install Dir["share/doc/rlock/*"]
  end

  test do
    assert_match "rlock #{version}", shell_output("#{bin}/rlock --version")
  end
end
