#!/usr/bin/env python3
"""Writes src/text/unicode_age_table.h: the characters of Unicode 8 and 9.

usage: unicode_ages.py [DerivedAge.txt] > src/text/unicode_age_table.h

Without an argument it reads that of Debian's package unicode-data. A later edition gives the same
table: a character's age never changes.
"""

import sys


def read_ages(path):
    """Age by code point: 8 stands for all ages up to it."""
    ages = {}
    with open(path, encoding="utf-8") as file:
        for line in file:
            fields = line.split("#")[0].split(";")
            if len(fields) != 2:
                continue
            first, _, last = fields[0].strip().partition("..")
            age = float(fields[1])
            if age <= 9:
                for code in range(int(first, 16), int(last or first, 16) + 1):
                    ages[code] = 9 if age > 8 else 8
    return ages


def main():
    path = sys.argv[1] if len(sys.argv) > 1 else "/usr/share/unicode/DerivedAge.txt"
    ranges = []
    for code, age in sorted(read_ages(path).items()):
        if ranges and ranges[-1][1] == code - 1 and ranges[-1][2] == age:
            ranges[-1][1] = code
        else:
            ranges.append([code, code, age])
    print("// Written by tools/unicode_ages.py: ascending ranges of characters by the edition of Unicode that\n"
          "// they came with. 8 stands for it and all before.\n"
          "#pragma once\n\n#include \"text/unicode_age.h\"\n\nnamespace weir::text {\n\n"
          "// clang-format off\ninline constexpr AgeRange kAgeRanges[] = {")
    line = ""
    for first, last, age in ranges:
        item = f"{{0x{first:x}, 0x{last:x}, {age}}},"
        if len(line) + 1 + len(item) > 98:
            print(" " + line)
            line = ""
        line += " " + item
    print(" " + line + "\n};\n// clang-format on\n\n}  // namespace weir::text")


if __name__ == "__main__":
    main()
