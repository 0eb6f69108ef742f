"""What the data engine, the interpreter and the code generator link, the core and the devices must do without: programs made
of these two load none of those libraries, and their archives leave no symbol of one open.

usage: libraries.py FILE...     programs, and archives (*.a)"""
import re
import subprocess
import sys

LOADED = re.compile(r"lib(sqlite3|jpeg|turbojpeg|png\w*|pcre2\S*|utf8proc|sentencepiece|sndfile|readline|lua\S*|LLVM\S*)\.")
SYMBOL = re.compile(r"\b(sqlite3_|jpeg_|png_|pcre2_|utf8proc_|sf_open|readline|luaL?_|LLVM|_ZNK?13sentencepiece)\w*")


def complaints(file):
    is_archive = file.endswith(".a")
    command = ["nm", "--undefined-only", file] if is_archive else ["ldd", file]
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    pattern = SYMBOL if is_archive else LOADED
    return sorted({found[0] for found in pattern.finditer(printed)})


if __name__ == "__main__":
    wrong = {file: complaints(file) for file in sys.argv[1:]}
    for file, names in wrong.items():
        if names:
            print(f"{file}: {', '.join(names)}")
    print(f"{sum(not names for names in wrong.values())} passed, {sum(bool(names) for names in wrong.values())} failed")
    sys.exit(any(wrong.values()) or not wrong)
