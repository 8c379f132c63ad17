#!/usr/bin/env python3
"""Breaks rlock on purpose, one fault at a time, and checks that something notices.

  python3 tests/model/mutants/run.py [BUILD]           the faults that a model notices: a few minutes
  python3 tests/model/mutants/run.py --tests [BUILD]   those that only tests on real servers notice: about an hour
  python3 tests/model/mutants/run.py --texts           only checks that the texts to replace exist: seconds
  ... --only PATTERN                                   only faults whose name, or what notices them, matches
  ... --part N/OF                                      only each OF-th of them, from the N-th on, to share the work

Prints a line for each fault, with the first test that notices it, and "n/n seeded faults" at the end. Exits with 1 if
one was not noticed, does not compile, or does not fit the source any longer.

A fault is a block of the files beside this script:

  the lock is released twice          its name
  in src/run/life.cc by life          the file, and what notices it: a model (life, guards or scripts) and one of its
                                      searches, the simulator (sim), its servers and other options, or bats files;
                                      behind the first file only. Without this line: as of the fault above
  -old text                           its lines, as they are in the file, or parts of them
  +new text                           what takes its place, if anything does

A model has the faulty file compiled into it, and `scripts` gets the script that is built from the faulty files. BUILD
is the build directory, build/ if none is named, with model_scripts and rlock's libraries.
"""
import argparse
import concurrent.futures
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
SOURCE = HERE.parents[2]
MODELS = {  # what each is made of, beside libraries that have no faults
    "life": ["tests/model/life.cc", "tests/model/timing.cc", "src/run/life.cc", "src/verbs/lease.cc"],
    "guards": ["tests/model/guards.cc", "tests/model/guards_steps.cc", "src/run/life.cc", "src/run/guard_state.cc",
               "src/verbs/lease.cc", "src/verbs/mode.cc", "src/verbs/name.cc"],
}
COMPILE = [os.environ.get("CXX", "c++"), "-std=gnu++23", "-O1", "-D_GNU_SOURCE"]
LONGEST = 300  # seconds for one model


class Unfit(Exception):
    """A fault that cannot be tried."""


class Fault:
    def __init__(self, block):
        self.name, self.by, self.changes = block[0], [], []  # changes: [file, old lines, new lines]
        for line in block[1:]:
            if line.startswith("in "):
                file, *by = line[3:].split(" by ")
                self.by = self.by or by[0].split(" ")
                self.changes.append([file, [], []])
            elif line[0] == "-":
                if self.changes[-1][2]:
                    self.changes.append([file, [], []])
                self.changes[-1][1].append(line[1:])
            elif line[0] == "+":
                self.changes[-1][2].append(line[1:])
            else:
                raise Unfit(f"{self.name}: what is '{line}'?")

    def is_modelled(self):
        return self.by[0] in ("scripts", *MODELS)

    def apply(self, read):
        """The changed files by name; read(name) returns a file's text."""
        texts = {}
        for file, old, new in self.changes:
            text, before = texts.get(file) or read(file), "\n".join(old)
            if not before or before not in text:
                raise Unfit(f"{self.name}: {file} does not contain '{before}'; fix this fault")
            texts[file] = text.replace(before, "\n".join(new))
        return texts


def faults():
    for path in sorted(HERE.glob("*.txt")):
        for block in re.split(r"\n\s*\n", path.read_text().strip("\n")):
            lines = [line for line in block.split("\n") if not line.startswith("#")]
            if not lines:
                continue
            if not lines[1].startswith("in "):
                lines.insert(1, place)
            place = lines[1]
            yield Fault(lines)


def compile_file(file, out, build, before=()):
    """Compiles a file of the source, with the files in the folders `before` in place of those of the same name. `build` has
    the generated ones."""
    for folder in [*before, SOURCE]:
        if (folder / file).exists():
            break
    include = [f"-I{each / part}" for each in [*before, SOURCE] for part in ("src", "tests/model")]
    include.append(f"-I{build / 'generated'}")
    made = subprocess.run([*COMPILE, *include, "-MMD", "-c", folder / file, "-o", out], capture_output=True, text=True)
    if made.returncode:
        raise Unfit(f"does not compile; fix this fault\n{made.stderr}")


def object_of(file, folder):
    return folder / (file.replace("/", "-") + ".o")


class Models:
    """Objects of the models without faults, to which a changed file is linked."""

    def __init__(self, build, folder, pool):
        self.build, self.folder = build, folder
        files = {file for model in MODELS.values() for file in model}
        list(pool.map(lambda file: compile_file(file, object_of(file, folder), build), files))

    def depends(self, file, on):
        return f"/{on}" in object_of(file, self.folder).with_suffix(".d").read_text()

    def try_one(self, fault, folder):
        """Returns whether the model notices the fault."""
        model = fault.by[0]
        for file, text in fault.apply(lambda name: (SOURCE / name).read_text()).items():
            (folder / file).parent.mkdir(parents=True, exist_ok=True)
            (folder / file).write_text(text)
        changed = [file for file, *_ in fault.changes]
        objects = []
        for file in MODELS[model]:
            if any(self.depends(file, on) for on in changed):
                compile_file(file, object_of(file, folder), self.build, [folder])
                objects.append(object_of(file, folder))
            else:
                objects.append(object_of(file, self.folder))
        program = folder / "model"
        subprocess.run([COMPILE[0], *objects, self.build / "librlock_base.a", "-pthread", "-o", program], check=True)
        return subprocess.run([program, "--first", *([" ".join(fault.by[1:])] if fault.by[1:] else [])], stdout=subprocess.DEVNULL, timeout=LONGEST).returncode != 0


def try_script(fault, build, folder):
    """Returns whether the search over the script notices the fault."""
    shutil.copytree(SOURCE / "lua", folder / "lua")
    for file, text in fault.apply(lambda name: (SOURCE / name).read_text()).items():
        (folder / file).write_text(text)
    built = folder / "built"
    subprocess.run(["cmake", f"-DOUT={built}", "-P", folder / "lua" / "embed.cmake"], check=True)
    words = [build / "model_scripts", "--scripts", built, *fault.by[1:]]
    return subprocess.run(words, stdout=subprocess.DEVNULL, timeout=LONGEST).returncode == 1


class Tests:
    """A clone of the source, in which tests on real servers run against a faulty program."""

    def __init__(self, folder):
        self.copy = folder / "copy"
        subprocess.run(["git", "clone", "-q", SOURCE, self.copy], check=True)
        self.build(["cmake", "--preset", "release", "-G", "Ninja", "-DBUILD_TESTING=ON"])
        # If a broken guard leaves a process running, that ends with its namespace, and so does the rest of the tests.
        contained = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"]
        self.contained = contained if subprocess.run([*contained, "true"], stderr=subprocess.DEVNULL).returncode == 0 else []

    def build(self, words):
        made = subprocess.run(words, cwd=self.copy, capture_output=True, text=True)
        if made.returncode:
            raise Unfit(f"does not compile; fix this fault\n{made.stdout[-2000:]}{made.stderr}")

    def try_one(self, fault):
        """Returns the name of the first test that notices the fault, or None."""
        subprocess.run(["git", "checkout", "-q", "--", "."], cwd=self.copy, check=True)
        for file, text in fault.apply(lambda name: (self.copy / name).read_text()).items():
            (self.copy / file).write_text(text)
        if fault.by == ["unit"]:
            self.build(["cmake", "--build", "build", "--target", "unit_tests"])
            return self.first(r"\[  FAILED  \] (.*?)(?: \(\d+ ms\))?$", ["build/unit_tests"])
        if fault.by[0] == "sim":
            self.build(["cmake", "--build", "build", "--target", "sim"])
            words = ["build/sim", "--first", "--seconds", str(LONGEST), "--servers", *fault.by[1:]]
            return self.first(r"VIOLATION (.*)", words)
        self.build(["cmake", "--build", "build", "--target", "rlock"])
        failed = r"not ok \d+ (.*)"
        # Outside of a namespace, too, because some faults do no harm inside one.
        return (self.first(failed, [*self.contained, "bats", *fault.by], stop=bool(self.contained)) or
                self.contained and self.first(failed, ["bats", *fault.by]))

    def first(self, pattern, words, stop=False):
        """What the first line of the output that matches has in its group. `stop` kills the rest of the run then."""
        found = None
        words = ["env", "--default-signal=HUP,INT,QUIT", *words]  # whatever our caller ignores, as in tests/run.sh
        surroundings = os.environ | {"RLOCK": str(self.copy / "build" / "rlock"), "BATS_TEST_TIMEOUT": "200",
                                     "TMPDIR": str(self.copy.parent)}
        with subprocess.Popen(words, cwd=self.copy, env=surroundings, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                              process_group=0, text=True, errors="replace") as ran:
            for line in ran.stdout:
                found = found or (match := re.match(pattern, line)) and match[1]
                if found and stop:
                    ran.kill()
        return found


def check_texts(chosen):
    for fault in chosen:
        fault.apply(lambda name: (SOURCE / name).read_text())


def try_models(chosen, build, work):
    def one(numbered):
        number, fault = numbered
        folder = work / str(number)
        folder.mkdir()
        try:
            noticed = try_script(fault, build, folder) if fault.by[0] == "scripts" else models.try_one(fault, folder)
        except Unfit as error:
            return fault, str(error)
        except subprocess.TimeoutExpired:
            return fault, "NOT NOTICED in time"
        finally:
            shutil.rmtree(folder)
        return fault, "noticed" if noticed else "NOT NOTICED"

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        (work / "objects").mkdir()
        models = Models(build, work / "objects", pool)
        yield from pool.map(one, enumerate(chosen))


def try_tests(chosen, work):
    tests = Tests(work)
    for fault in chosen:
        try:
            noticed = tests.try_one(fault)
        except Unfit as error:
            yield fault, str(error)
        else:
            yield fault, f"noticed by: {noticed}" if noticed else "NOT NOTICED"


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--tests", action="store_true")
    parser.add_argument("--texts", action="store_true")
    parser.add_argument("--only", default="")
    parser.add_argument("--part", default="1/1")
    parser.add_argument("build", nargs="?", default=SOURCE / "build", type=pathlib.Path)
    options = parser.parse_args()
    build = options.build.resolve()
    chosen = [fault for fault in faults() if re.search(options.only, f"{fault.name} ({' '.join(fault.by)})")]
    try:
        check_texts(chosen)
    except Unfit as error:
        sys.exit(str(error))
    if options.texts:
        return
    number, of = map(int, options.part.split("/"))
    chosen = [fault for fault in chosen if fault.is_modelled() != options.tests][number - 1::of]
    unnoticed = 0
    with tempfile.TemporaryDirectory(prefix="", dir="/tmp") as work:  # a short name, for the paths of Unix sockets
        work = pathlib.Path(work)
        work.chmod(0o755)  # some tests run the program as another user
        for fault, result in try_tests(chosen, work) if options.tests else try_models(chosen, build, work):
            print(f"{fault.name} ({' '.join(fault.by)}): {result}", flush=True)
            unnoticed += not result.startswith("noticed")
    print(f"{len(chosen) - unnoticed}/{len(chosen)} seeded faults")
    sys.exit(unnoticed > 0)


if __name__ == "__main__":
    main()
