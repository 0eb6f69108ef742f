"""Whether what a notebook's cell gave is what is stored in the notebook.

Texts are compared word by word, numbers to a tolerance (1e-3 relative or absolute). Tags of a cell say otherwise:
"timing": its numbers differ from run to run; "training": they depend on the processor and agree to a tenth. Plots are
compared by their description, drawings by their elements and texts; pixels are not."""
import math
import re
import xml.etree.ElementTree

NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?|\b(?:nan|inf)\b", re.IGNORECASE)
ESCAPE = re.compile(r"\x1b\[[0-9;]*m")
# Drawings made of characters move by a dot when a number moves by a thousandth.
DRAWN = re.compile("[\u2500-\u259f\u2800-\u28ff]")
PIXELS = re.compile("data:image/png;base64,")
TEXTS = ("text/plain", "text/html", "text/markdown", "text/latex")


def joined(text):
    return "".join(text) if isinstance(text, list) else text


def near(a, b, tolerance):
    if math.isnan(a) or math.isnan(b):
        return math.isnan(a) and math.isnan(b)
    return a == b or abs(a - b) <= tolerance * max(1.0, abs(b))


def compare_texts(got, stored, tags):
    """Why the texts differ, or None."""
    got, stored = ESCAPE.sub("", joined(got)), ESCAPE.sub("", joined(stored))
    if DRAWN.search(stored):
        return None if DRAWN.search(got) else "the drawing is gone"
    words = [NUMBER.sub(" # ", text) for text in (got, stored)]
    if "timing" in tags:
        words = [re.sub(r"#\s+([num]?s|min)\b", "# s", text) for text in words]
    words = [text.split() for text in words]
    if words[0] != words[1]:
        return f"got {got!r}, stored is {stored!r}"
    if "timing" in tags:
        return None
    for a, b in zip(NUMBER.findall(got), NUMBER.findall(stored)):
        if not near(float(a), float(b), tolerance_of(tags)):
            return f"got {a}, stored is {b}"
    return None


def tolerance_of(tags):
    """How far numbers may be apart; None: any number will do."""
    return None if "timing" in tags else 0.1 if "training" in tags else 1e-3


def compare_json(got, stored, tags, place="plot"):
    """Why two descriptions of a plot differ, or None: the same fields and texts, numbers to the tolerance of the cell. Rows
    of data are compared in their order; in cells with the tag "timing" there may be more or fewer."""
    is_number = [isinstance(v, (int, float)) and not isinstance(v, bool) for v in (got, stored)]
    if all(is_number):
        tolerance = tolerance_of(tags)
        if tolerance is None or near(got, stored, tolerance):
            return None
        return f"{place} is {got}, stored is {stored}"
    if type(got) is not type(stored):
        return f"{place} is {got!r}, stored is {stored!r}"
    if isinstance(stored, dict):
        if sorted(got) != sorted(stored):
            return f"{place} has the fields {sorted(got)}, stored are {sorted(stored)}"
        reasons = (compare_json(got[k], stored[k], tags, f"{place}.{k}") for k in stored)
        return next((r for r in reasons if r), None)
    if isinstance(stored, list):
        if len(got) != len(stored) and "timing" not in tags:
            return f"{place} has {len(got)} entries, stored are {len(stored)}"
        reasons = (compare_json(a, b, tags, f"{place}[{i}]") for i, (a, b) in enumerate(zip(got, stored)))
        return next((r for r in reasons if r), None)
    if isinstance(stored, str):
        if "training" in tags and PIXELS.match(stored):
            return None if PIXELS.match(got) else f"{place} is no picture any more"
        reason = compare_texts(got, stored, tags)
        return f"{place}: {reason}" if reason else None
    return None if got == stored else f"{place} is {got!r}, stored is {stored!r}"


def elements_of(svg):
    """What a drawing consists of: how often each kind of element, and its texts that are no numbers."""
    counts, texts = {}, []
    for element in xml.etree.ElementTree.fromstring(joined(svg)).iter():
        name = element.tag.rsplit("}", 1)[-1]
        counts[name] = counts.get(name, 0) + 1
        text = (element.text or "").strip()
        if name == "text" and text and not NUMBER.fullmatch(text):
            texts.append(text)
    return counts, texts


def compare_svg(got, stored, tags):
    """Why two drawings differ, or None. Where numbers depend on the machine there may be other ticks on the axes."""
    (counts, texts), (stored_counts, stored_texts) = elements_of(got), elements_of(stored)
    if tags & {"timing", "training"}:
        counts, stored_counts = set(counts), set(stored_counts)
    if counts != stored_counts:
        return f"the drawing has {counts}, stored are {stored_counts}"
    if texts != stored_texts and "timing" not in tags:
        return f"the drawing says {texts}, stored is {stored_texts}"
    return None


def compare_data(got, stored, tags):
    """Why two outputs in several formats differ, or None."""
    if sorted(got) != sorted(stored):
        return f"types are {sorted(got)}, stored are {sorted(stored)}"
    tags = set(tags)
    for kind, value in stored.items():
        if kind in TEXTS:
            reason = compare_texts(got[kind], value, tags)
        elif kind.startswith("application/vnd.vegalite"):
            reason = compare_json(got[kind], value, tags)
        elif kind == "image/svg+xml":
            reason = compare_svg(got[kind], value, tags)
        else:
            reason = None
        if reason:
            return reason
    return None


def merged(outputs):
    """Pieces of one stream that follow each other are one: where they are cut is a matter of time."""
    result = []
    for output in outputs:
        last = result[-1] if result else {}
        if output["output_type"] == "stream" == last.get("output_type") and output["name"] == last["name"]:
            last["text"] = joined(last["text"]) + joined(output["text"])
        else:
            result.append(dict(output))
    return result


def compare_outputs(got, stored, tags):
    got, stored = merged(got), merged(stored)
    kinds = [[o["output_type"] + o.get("name", "") for o in outputs] for outputs in (got, stored)]
    if kinds[0] != kinds[1]:
        return f"outputs are {kinds[0]}, stored are {kinds[1]}"
    for a, b in zip(got, stored):
        if a["output_type"] == "stream":
            reason = compare_texts(a["text"], b["text"], tags)
        elif a["output_type"] == "error":
            reason = compare_texts(a["evalue"], b["evalue"], tags)
        else:
            reason = compare_data(a["data"], b["data"], tags)
        if reason:
            return reason
    return None
