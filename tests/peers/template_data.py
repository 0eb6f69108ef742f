"""What jinja2 makes of the templates of tests/data/words, as the package transformers sets it up.

usage: template_data.py FOLDER            writes FOLDER/texts.json"""
import datetime
import json
import sys
from pathlib import Path

from jinja2.exceptions import TemplateError
from jinja2.sandbox import ImmutableSandboxedEnvironment


def raise_exception(message):
    raise TemplateError(message)


def tojson(x, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    return json.dumps(x, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


def rendered(folder):
    environment = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols"])
    environment.filters["tojson"] = tojson
    environment.globals["raise_exception"] = raise_exception
    environment.globals["strftime_now"] = lambda form: datetime.datetime.now().strftime(form)
    conversations = json.loads((folder / "conversations.json").read_text())
    texts = {}
    for path in sorted((folder / "templates").glob("*.jinja")):
        for name, values in conversations.items():
            try:
                text = environment.from_string(path.read_text()).render(bos_token="<s>", eos_token="</s>", **values)
            except (TemplateError, TypeError) as problem:
                text = {"error": str(problem)}
            texts[f"{path.stem} {name}"] = text
    return texts


if __name__ == "__main__":
    FOLDER = Path(sys.argv[1])
    (FOLDER / "texts.json").write_text(json.dumps(rendered(FOLDER), ensure_ascii=False, indent=0) + "\n")
