#!/usr/bin/env python3
"""Runs what README.md and docs/ tell readers to type.

    run_docs.py --build BUILD [--bless] [PAGE ...]

The language of a fenced block says what happens to it:

    sh            every command must succeed
    sh gpu        needs a GPU: without one, every command must end with exit code 4 (no such device), not with an error of
                  usage; with one, the block is left out
    sh slow       takes hours: the programs it names must have been built
    sh nvcc       needs nvcc and the CUDA runtime's library: left out, and said so, where they are missing
    sh make       the commands of the Makefile, which CI runs itself: each target must exist
    sh build      builds and installs laneshift itself: left to CI and to tests/package_test.cmake
    console       lines behind "$ " are commands; what follows must be their output, to the letter. --bless writes it
    cpp           must compile against include/
    cuda          a file of the reader's, named by its first line, "// NAME.cu"

Commands run by bash in a directory with links to build, bench and examples, with an empty store and the block's page's
own files. `./program` is tests/preload_test, a program of the driver API.
"""
import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
TOOLKIT = pathlib.Path(os.environ.get("CUDA_HOME") or "/usr/local/cuda")
TIMEOUT_S = 120
FENCE = re.compile(r"^```(.*)$")


class Block:
    def __init__(self, page, line, language, text):
        self.page, self.line, self.language, self.text = page, line, language, text

    def where(self):
        return f"{self.page}:{self.line}"


def blocks_of(page):
    """The fenced blocks of a page, in order."""
    lines = (ROOT / page).read_text().split("\n")
    begin = None
    for number, line in enumerate(lines, 1):
        fence = FENCE.match(line)
        if not fence:
            continue
        if begin is None:
            begin, language = number, fence[1].strip()
        else:
            yield Block(page, begin + 1, language, lines[begin : number - 1])
            begin = None


def commands_of(block):
    """The commands of a block of shell, without comments; a backslash joins lines."""
    for line in "\n".join(block.text).replace("\\\n", " ").split("\n"):
        command = re.sub(r"(^|\s)#\s.*$", "", line).strip()
        if command:
            yield command


class Runner:
    def __init__(self, build, directory):
        self.build, self.directory = build, directory
        self.failures = []
        self.left_out = []
        for name in ("bench", "examples"):
            (directory / name).symlink_to(ROOT / name)
        (directory / "build").symlink_to(build)
        (directory / "program").symlink_to(build / "preload_test")
        self.environment = dict(
            os.environ,
            PATH=f"{build}:{os.environ['PATH']}:{TOOLKIT}/bin",
            LIBRARY_PATH=f"{TOOLKIT}/lib64:{TOOLKIT}/lib",
            LD_LIBRARY_PATH=f"{TOOLKIT}/lib64:{TOOLKIT}/lib",
            HOME=str(directory),
            LANESHIFT_CACHE_DIR=str(directory / "store"),
            LC_ALL="C.UTF-8",
        )

    def run(self, command):
        return subprocess.run(
            ["bash", "-c", command], cwd=self.directory, env=self.environment, stdin=subprocess.DEVNULL,
            capture_output=True, text=True, timeout=TIMEOUT_S)

    def expect(self, block, command, codes=(0,)):
        try:
            ended = self.run(command)
        except subprocess.TimeoutExpired:
            self.failures.append(f"{block.where()}: {command}\n  ran longer than {TIMEOUT_S} s")
            return None
        if ended.returncode not in codes:
            self.failures.append(f"{block.where()}: {command}\n  exit code {ended.returncode}: {ended.stderr.strip()[-400:]}")
        return ended

    def sh(self, block):
        for command in commands_of(block):
            self.expect(block, command)

    def sh_gpu(self, block):
        if has_gpu():
            self.left_out.append(f"{block.where()}: needs an idle GPU and minutes")
            return
        for command in commands_of(block):
            # Where the device is not named, it is the GPU that the page speaks of.
            named = "--device" in command or not re.match(r"(build/)?laneshift (run|tune|bench)\b", command)
            self.expect(block, command if named else f"{command} --device cuda", codes=(4,))

    def sh_nvcc(self, block):
        if not (TOOLKIT / "bin/nvcc").exists() or not list(TOOLKIT.glob("lib*/libcudart.so")):
            self.left_out.append(f"{block.where()}: {TOOLKIT} has no nvcc or no libcudart.so")
            return
        shutil.copy(ROOT / "tests/docs/program.cu", self.directory)
        # Else the compiler would write to where the link leads.
        (self.directory / "program").unlink(missing_ok=True)
        self.sh(block)

    def sh_slow(self, block):
        for command in commands_of(block):
            program = next(word for word in command.split() if "=" not in word)
            if not (self.directory / program).exists():
                self.failures.append(f"{block.where()}: {program} has not been built")

    def sh_make(self, block):
        rules = (ROOT / "Makefile").read_text()
        for command in commands_of(block):
            target = command.split()[1]
            if not re.search(rf"^{target}:", rules, re.MULTILINE):
                self.failures.append(f"{block.where()}: the Makefile has no target {target}")

    def console(self, block):
        """What the block should be."""
        fresh = []
        for line in block.text:
            if not line.startswith("$ "):
                continue
            ended = self.expect(block, line[2:])
            fresh.append(line)
            if ended is not None:
                fresh += [text.rstrip() for text in ended.stdout.rstrip("\n").split("\n")]
        if fresh != block.text:
            self.failures.append(f"{block.where()}: the output is another one; run_docs.py --bless {block.page} writes it")
        return fresh

    def cpp(self, block):
        (self.directory / "snippet.cc").write_text("\n".join(block.text) + "\n")
        compiler = os.environ.get("CXX", "c++")
        self.expect(block, f"{compiler} -std=c++20 -fsyntax-only -Wall -Werror -I {ROOT}/include snippet.cc")

    def cuda(self, block):
        name = re.match(r"// (\w+\.cu)$", block.text[0])
        if name is None:
            self.failures.append(f"{block.where()}: the first line does not name the file, as in // act.cu")
            return
        (self.directory / name[1]).write_text("\n".join(block.text) + "\n")

    def sh_build(self, block):
        presets = (ROOT / "CMakePresets.json").read_text()
        for command in commands_of(block):
            for preset in re.findall(r"--preset (\w+)", command):
                if f'"name": "{preset}"' not in presets:
                    self.failures.append(f"{block.where()}: CMakePresets.json has no preset {preset}")

    HANDLERS = {"sh": sh, "sh gpu": sh_gpu, "sh slow": sh_slow, "sh nvcc": sh_nvcc, "sh make": sh_make, "sh build": sh_build, "console": console, "cpp": cpp,
                "cuda": cuda}


def has_gpu():
    return pathlib.Path("/dev/nvidia0").exists()


# Languages of blocks that are only to be read. What looks like a command may not hide in one.
READ_ONLY = {"", "json", "text", "ptx"}
COMMAND = re.compile(r"^(\$ )?([A-Z_]+=\S+ )*(build/\S+|laneshift|make|cmake|LD_PRELOAD)( |$)")


def check(page, build, bless):
    """The failures of a page and what was left out."""
    with tempfile.TemporaryDirectory(prefix="laneshift-docs-") as directory:
        runner = Runner(build, pathlib.Path(directory))
        fresh = {}
        for block in blocks_of(page):
            handler = runner.HANDLERS.get(block.language)
            if handler is not None:
                fresh[block.line] = (block, handler(runner, block))
            elif block.language not in READ_ONLY:
                runner.failures.append(f"{block.where()}: a block of language '{block.language}', which run_docs.py does not know")
            elif any(COMMAND.match(line) for line in block.text):
                runner.failures.append(f"{block.where()}: commands in a block that is not run; make it sh, sh gpu or console")
        if bless:
            write(page, [(block, text) for block, text in fresh.values() if block.language == "console"])
        return runner.failures, runner.left_out


def write(page, blocks):
    lines = (ROOT / page).read_text().split("\n")
    for block, text in reversed(blocks):
        lines[block.line - 1 : block.line - 1 + len(block.text)] = text
    (ROOT / page).write_text("\n".join(lines))


def main():
    parser = argparse.ArgumentParser(description="Runs what README.md and docs/ tell readers to type.")
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    parser.add_argument("--bless", action="store_true")
    parser.add_argument("pages", nargs="*")
    arguments = parser.parse_args()
    pages = arguments.pages or ["README.md"] + sorted(
        str(path.relative_to(ROOT)) for path in (ROOT / "docs").rglob("*.md"))
    failed = False
    for page in pages:
        failures, left_out = check(page, arguments.build.resolve(), arguments.bless)
        for line in left_out:
            print(f"left out: {line}")
        for line in failures:
            print(f"FAILED: {line}")
        failed = failed or bool(failures)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
