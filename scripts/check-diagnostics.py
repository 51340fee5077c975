#!/usr/bin/env python3
"""Lists error messages that no test mentions.

    scripts/check-diagnostics.py               fails on a message without a test that is not in the baseline, and
                                               on a line of the baseline that is no longer needed
    scripts/check-diagnostics.py --report      prints every message without a test
    scripts/check-diagnostics.py --update      rewrites the baseline (scripts/check-diagnostics.baseline)
    scripts/check-diagnostics.py --self-test   checks the scan itself

A message is the text of one call of emitOpError, emitError, diagnose, Failure or a sibling in CALLS: all string
literals of the statement. It counts as tested when a file under test/ or examples/ contains one of its distinctive parts:
what lies between placeholders, quoted names and semicolons, at least MINIMUM characters long (the longest
part where all are shorter).
"""
import os
import re
import sys

CALLS = r"\b(?:emitOpError|emitError|diagnose|diagnoseAt|fail|failAt|failure|Failure)\s*[({]"
SOURCES = (".cpp", ".h", ".td")
FOLDERS = ("compiler", "codegen", "dialects", "runtime-lib", "kernels")
MINIMUM = 10
HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)
BASELINE = os.path.join(HERE, "check-diagnostics.baseline")

LITERAL = re.compile(r'"((?:[^"\\\n]|\\.)*)"')
# Placeholders of formatv, std::format and printf; where one stands the text of a test differs.
SPLIT = re.compile(r"\{[^{}]*\}|%[-0-9.l]*[a-zA-Z]|[;'\n\"]|\x00")
COMMENT = re.compile(r'"(?:[^"\\\n]|\\.)*"|//[^\n]*|/\*.*?\*/', re.S)


def without_comments(text):
    return COMMENT.sub(lambda m: m.group(0) if m.group(0)[0] == '"' else re.sub(r"[^\n]", " ", m.group(0)), text)


def statement_end(text, start):
    """Returns where the statement that `start` lies in ends: the next ';' outside of strings."""
    position = start
    while position < len(text):
        if text[position] == '"':
            match = LITERAL.match(text, position)
            position = match.end() if match else position + 1
        elif text[position] == ";":
            return position
        else:
            position += 1
    return position


def message_of(statement):
    """Joins the literals of a statement: adjacent ones directly, others with a break between."""
    message, last = "", None
    for match in LITERAL.finditer(statement):
        gap = statement[last:match.start()] if last is not None else ""
        message += ("" if not gap.strip() else "\x00") + match.group(1)
        last = match.end()
    return message.replace('\\"', '"').replace("\\n", "\n")


def parts_of(message):
    """Returns the distinctive parts of a message, longest first."""
    pieces = sorted((part.strip(" ,.:()") for part in SPLIT.split(message)), key=len, reverse=True)
    pieces = [piece for piece in pieces if len(piece) >= 4]
    return [piece for piece in pieces if len(piece) >= MINIMUM] or pieces[:1]


def messages_in(text):
    """Yields (line, message) for every diagnostic in a C++ source."""
    text = without_comments(text)
    for match in re.finditer(CALLS, text):
        message = message_of(text[match.end():statement_end(text, match.end())])
        if parts_of(message):
            yield text.count("\n", 0, match.start()) + 1, message


def files_under(folders, keep):
    for folder in folders:
        for place, folders_, files in sorted(os.walk(os.path.join(ROOT, folder))):
            folders_.sort()
            for file in sorted(files):
                path = os.path.join(place, file)
                if keep(path):
                    yield path


def untested():
    """Returns [(path, line, message)] of the messages that no test mentions, in order of path, each text once a file."""
    tests = []
    for path in files_under(["test", "examples"], lambda path: path.endswith((".mlir", ".py", ".cpp", ".h", ".test", ".sh"))):
        with open(path, encoding="utf-8", errors="replace") as stream:
            # Adjacent literals of C++ and Python tests are one text.
            tests.append(re.sub(r'"\s*\n\s*f?"', "", stream.read()))
    tests = "\n".join(tests)
    found = {}
    for path in files_under(FOLDERS, lambda path: path.endswith(SOURCES)):
        with open(path, encoding="utf-8", errors="replace") as stream:
            for line, message in messages_in(stream.read()):
                if not any(part in tests for part in parts_of(message)):
                    found.setdefault((os.path.relpath(path, ROOT), message.replace("\x00", "{}").replace("\n", "\\n")), line)
    return [(path, line, message) for (path, message), line in found.items()]


def self_test():
    source = '''
      return diagnose(file, "field '{0}' has value {1}; " // why
                      "expected a positive integer", a, b);
      return op.emitOpError("weight has type ") << type << "; last axis of input has size " << size;
      // emitError("in a comment")
    '''
    got = [(line, parts_of(message)) for line, message in messages_in(source)]
    expected = [
        (2, ["expected a positive integer"]),
        (4, ["last axis of input has size", "weight has type"]),
    ]
    short = parts_of("is {0} bytes")
    if got != expected or short != ["bytes"]:
        print(f"self-test: expected {expected} and ['bytes'], got {got} and {short}")
        return 1
    print("self-test: passed")
    return 0


def main():
    if "--self-test" in sys.argv[1:]:
        return self_test()
    found = untested()
    if "--report" in sys.argv[1:]:
        for path, line, message in found:
            print(f"{path}:{line}: no test mentions: {message}")
        print(f"{len(found)} messages without a test")
        return 0
    keys = [f"{path}: {message}" for path, _, message in found]
    if "--update" in sys.argv[1:]:
        with open(BASELINE, "w", encoding="utf-8") as stream:
            stream.write("".join(key + "\n" for key in sorted(keys)))
        return 0
    baseline = []
    if os.path.exists(BASELINE):
        with open(BASELINE, encoding="utf-8") as stream:
            baseline = stream.read().splitlines()
    bad = 0
    for (path, line, message), key in zip(found, keys):
        if key not in baseline:
            bad += 1
            print(f"{path}:{line}: error: no test mentions this message: {message}")
    for key in baseline:
        if key not in keys:
            bad += 1
            print(f"scripts/check-diagnostics.baseline: error: no longer needed, remove: {key}")
    print(f"{bad} to mend, {len(baseline)} known messages without a test")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
