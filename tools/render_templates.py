#!/usr/bin/env python3
"""Renders a folder of chat templates with Python's jinja2: the answers our interpreter must give.

usage: render_templates.py FOLDER
       render_templates.py FILE.json

FOLDER holds templates/ and contexts.json (name to variables); renders.json is written: template
file, then context, to {"ok": text} or {"err": message}. FILE holds {"variables": {...}, "cases":
[{"template": ..., "ok" or "err": ...}]}; the answers are written anew. Needs Debian's python3-jinja2. The
environment is the one that transformers sets up for chat templates; the clock stands at
2026-01-02 03:04:05.
"""

import datetime
import json
import pathlib
import sys

import jinja2
import jinja2.ext
import jinja2.nodes
import jinja2.sandbox

NOW = datetime.datetime(2026, 1, 2, 3, 4, 5)


class Generation(jinja2.ext.Extension):
    """{% generation %}: the assistant's part, which renders as its body."""

    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        return jinja2.nodes.CallBlock(self.call_method("_render"), [], [], body).set_lineno(line)

    def _render(self, caller):
        return caller()


def raise_exception(message):
    raise jinja2.exceptions.TemplateError(message)


def tojson(value, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    return json.dumps(
        value,
        ensure_ascii=ensure_ascii,
        indent=indent,
        separators=separators,
        sort_keys=sort_keys,
    )


def environment():
    env = jinja2.sandbox.ImmutableSandboxedEnvironment(
        trim_blocks=True,
        lstrip_blocks=True,
        extensions=[Generation, jinja2.ext.loopcontrols],
    )
    env.filters["tojson"] = tojson
    env.filters["from_json"] = json.loads
    env.globals["raise_exception"] = raise_exception
    env.globals["strftime_now"] = NOW.strftime
    return env


def render(env, source, variables):
    try:
        return {"ok": env.from_string(source).render(**variables)}
    except Exception as error:  # Whatever it is, our interpreter must fail as well.
        kind = type(error).__name__
        return {"err": f"{kind}: {error}"}


def write(path, value):
    path.write_text(json.dumps(value, ensure_ascii=False, indent=1) + "\n")


def render_cases(path):
    cases = json.loads(path.read_text())
    env = environment()
    for case in cases["cases"]:
        case.pop("ok", None)
        case.pop("err", None)
        case.update(render(env, case["template"], json.loads(json.dumps(cases["variables"]))))
    write(path, cases)


def render_folder(folder):
    contexts = json.loads((folder / "contexts.json").read_text())
    env = environment()
    renders = {}
    for path in sorted((folder / "templates").iterdir()):
        source = path.read_text()
        renders[path.name] = {
            name: render(env, source, json.loads(json.dumps(variables)))
            for name, variables in contexts.items()
        }
    write(folder / "renders.json", renders)


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    path = pathlib.Path(sys.argv[1])
    if path.is_dir():
        render_folder(path)
    else:
        render_cases(path)


if __name__ == "__main__":
    main()
