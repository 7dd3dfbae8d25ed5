"""The page of data sets."""

import inspect
from collections.abc import Iterator

from reference_pages.markdown import escaped, prose, python, slug
from reference_pages.source import header

from oarlock.datasets.by_name import GROUPS


def datasets() -> Iterator[str]:
    yield from (
        "# Data sets",
        "",
        'Data sets that are loaded by name: `ol.datasets.load("iris:train")`, or `--data iris:train` on the command line.',
        "`oarlock datasets` lists them. A row is a dict of arrays. The column types are those of the default sizes.",
        "[Data](../guides/data.md) shows how other data is read.",
        "",
        "| data set | rows | columns | licence |",
        "|---|---|---|---|",
    )
    for group in GROUPS.values():
        for data_set in group:
            about, title = data_set.DESCRIPTION, data_set.name
            columns = ", ".join(f"`{name}` {kind}" for name, kind in about.columns.items())
            rows = f"{about.rows['all']:,}" if about.rows else "depends on the Python version"
            yield f"| [{title}](#{slug('ol.datasets.' + title)}) | {rows} | {escaped(columns)} | {about.licence} |"
    for where, group in GROUPS.items():
        yield from ("", f"## {where[0].upper()}{where[1:]}", "")
        for data_set in group:
            about, title = data_set.DESCRIPTION, data_set.name
            yield from ("", f"### ol.datasets.{title}", "", prose(inspect.getdoc(data_set)), "")
            parts = ", ".join(f"`{title}:{part}` {count:,}" for part, count in about.rows.items())
            facts = {"Rows": parts, "Features": ", ".join(about.features), "Classes": ", ".join(about.classes)}
            facts |= {"Source": about.source, "Licence": about.licence}
            yield from (f"- {fact}: {escaped(text)}" for fact, text in facts.items() if text)
            for name in ("load", "split", "train", "test", "docstrings"):
                if method := getattr(data_set, name, None):
                    yield from ("", *python(header(method, name)), prose(inspect.getdoc(method)))
