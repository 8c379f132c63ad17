# Installs the static program of a release by Homebrew on Linux. rlock does not run on macOS.
#
# packaging/release writes dist/rlock.rb: the version, and the checksums of the archives beside it. Homebrew takes a
# formula from a tap alone; this makes one on this host:
#
#   brew tap-new --no-git local/rlock
#   cp rlock.rb rlock-*-linux-*.tar.gz "$(brew --repository local/rlock)/Formula/"
#   brew install local/rlock/rlock
#
# In a tap for others, put the address of the published archive into each `url`.
class Rlock < Formula
  desc "Run a command under a lock shared by many hosts, using Redis"
  homepage "@HOMEPAGE@"
  version "@VERSION@"
  license "MIT"

  depends_on arch: :x86_64 # @AMD64 ALONE@
  depends_on :linux

  on_intel do
    url "file://#{__dir__}/@ARCHIVE@"
    sha256 "@SHA256@"
  end
  on_arm do # @ARM64@
    url "file://#{__dir__}/@ARM64_ARCHIVE@" # @ARM64@
    sha256 "@ARM64_SHA256@" # @ARM64@
  end # @ARM64@

  def install
    bin.install "bin/rlock"
    bash_completion.install "share/bash-completion/completions/rlock"
    zsh_completion.install "share/zsh/site-functions/_rlock"
    fish_completion.install "share/fish/vendor_completions.d/rlock.fish"
    man1.install Dir["share/man/man1/*"]
    man5.install Dir["share/man/man5/*"]
    man7.install Dir["share/man/man7/*"]
    doc.install Dir["share/doc/rlock/*"]
  end

  test do
    assert_match "rlock #{version}", shell_output("#{bin}/rlock --version")
  end
end
