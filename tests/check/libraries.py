"""What the data engine, the interpreter and the code generator link, the core, the devices and saved programs must do without:
programs made of these load none of those libraries and have no symbol of one, and their archives leave none open.

usage: libraries.py [--most MB] FILE...     programs, and archives (*.a); --most: no program has more code and data"""
import re
import subprocess
import sys

LOADED = re.compile(r"lib(sqlite3|jpeg|turbojpeg|png\w*|pcre2\S*|utf8proc|sentencepiece|sodium|crypto|ssl|yaml|sndfile|readline|lua\S*|LLVM\S*)\.")
SYMBOL = re.compile(r"\b(sqlite3_|jpeg_|png_|pcre2_|utf8proc_|sf_open|readline|luaL?_|LLVM|_ZNK?13sentencepiece)\w*")


def complaints(file):
    def found(pattern, *command):
        printed = subprocess.run([*command, file], check=True, capture_output=True, text=True).stdout
        return {match[0] for match in pattern.finditer(printed)}

    if file.endswith(".a"):
        return sorted(found(SYMBOL, "nm", "--undefined-only"))
    return sorted(found(LOADED, "ldd") | found(SYMBOL, "nm"))


if __name__ == "__main__":
    files, most = sys.argv[1:], None
    if files[:1] == ["--most"]:
        most, files = float(files[1]), files[2:]
    wrong = {file: complaints(file) for file in files}
    for file in files:
        text, data = subprocess.run(["size", file], check=True, capture_output=True, text=True).stdout.split("\n")[1].split()[:2]
        size = (int(text) + int(data)) / 1e6
        if most and size > most:
            wrong[file].append(f"{size:.1f} MB, more than {most:g}")
    for file, names in wrong.items():
        if names:
            print(f"{file}: {', '.join(names)}")
    print(f"{sum(not names for names in wrong.values())} passed, {sum(bool(names) for names in wrong.values())} failed")
    sys.exit(any(wrong.values()) or not wrong)
