"""A strict reader of Prometheus' text format 0.0.4: what a scraper would pass over is an error here."""
import re

NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\["\\n])*)"(,|$)')
NUMBER = re.compile(r"[-+]?(?:[0-9]+(?:\.[0-9]*)?(?:e[-+]?[0-9]+)?|Inf)|NaN")
ESCAPED = {r"\"": '"', r"\\": "\\", r"\n": "\n"}


class Family:
    def __init__(self, name, help_text):
        self.name, self.help, self.type = name, help_text, None
        self.samples = {}  # (name, labels as a sorted tuple) to the value.


def parse_labels(text):
    labels, at = {}, 0
    while at < len(text):
        found = LABEL.match(text, at)
        assert found and (found.group(3) or found.end() == len(text)), f"labels: {text!r} at {at}"
        key, value = found.group(1), re.sub(r'\\["\\n]', lambda m: ESCAPED[m.group()], found.group(2))
        assert key not in labels and not key.startswith("__"), f"label {key} of {text!r}"
        labels[key], at = value, found.end()
    return labels


def parse(page):
    """Families by name. Each has HELP, then TYPE, then its samples, all in one place; no series comes twice."""
    assert page.endswith("\n")
    families, family = {}, None
    for line in page[:-1].split("\n"):
        if head := re.fullmatch(rf"# HELP ({NAME}) (.+)", line):
            assert head.group(1) not in families, f"twice: {line}"
            family = families[head.group(1)] = Family(*head.groups())
        elif head := re.fullmatch(rf"# TYPE ({NAME}) (counter|gauge|histogram)", line):
            assert family and head.group(1) == family.name and family.type is None and not family.samples, line
            family.type = head.group(2)
        else:
            sample = re.fullmatch(rf"({NAME})(?:\{{(.*)\}})? (\S+)", line)
            assert sample and NUMBER.fullmatch(sample.group(3)), f"no sample: {line!r}"
            name, labels = sample.group(1), parse_labels(sample.group(2) or "")
            suffixes = ("_bucket", "_sum", "_count") if family.type == "histogram" else ("",)
            assert family.type and name in [family.name + s for s in suffixes], f"not of {family.name}: {line}"
            series = name, tuple(sorted(labels.items()))
            assert series not in family.samples, f"twice: {line}"
            family.samples[series] = float(sample.group(3))
    for each in families.values():
        check(each)
    return families


def check(family):
    assert family.type and family.samples, f"{family.name} has no samples"
    if family.type == "counter":
        assert all(value >= 0 for value in family.samples.values()), family.name
    if family.type == "histogram":
        check_histogram(family)


def check_histogram(family):
    parts = {}
    for (name, labels), value in family.samples.items():
        rest = tuple(label for label in labels if label[0] != "le")
        part = parts.setdefault(rest, {"buckets": []})
        if name.endswith("_bucket"):
            part["buckets"].append((float(dict(labels)["le"]), value))
        else:
            part[name.rsplit("_", 1)[1]] = value
    for part in parts.values():
        bounds, counts = zip(*part["buckets"])
        assert list(bounds) == sorted(set(bounds)) and bounds[-1] == float("inf"), family.name
        assert list(counts) == sorted(counts) and counts[-1] == part["count"] and part["sum"] >= 0, family.name
