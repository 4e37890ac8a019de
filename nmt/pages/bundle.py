"""Turns a page's ES modules into one module, for a page that opens from disk: browsers load no modules from there."""

import os
import re
from collections.abc import Mapping
from pathlib import Path

WEB = Path(__file__).with_name("web")
"""The folder of the modules, style sheets and templates."""

_IMPORT = re.compile(r'^import (\{[^}]*\}) from "(\.[^"]*)";\n', re.MULTILINE)
_EXPORT = re.compile(r"^export ((?:async function|function|const|class) (\w+))", re.MULTILINE)
_UNSAFE = re.compile(r"</script|<!--", re.IGNORECASE)


def bundle(entry: Path, instead: Mapping[Path, Path] | None = None) -> str:
    """The entry module and everything that it imports, as one module; `instead` replaces modules by others.

    Each module becomes a function that runs once and returns its exports, so modules may use the same names. The
    modules import by relative paths and without `as`, export only functions, classes and single constants by name,
    and import each other in no circle. Raises ValueError otherwise, and if a module cannot stand inside <script>.
    """
    entry = entry.resolve()
    replaced = {old.resolve(): new.resolve() for old, new in (instead or {}).items()}
    parts: list[str] = []
    exports: dict[Path, list[str]] = {}

    numbers: dict[Path, int] = {}

    def variable(path: Path) -> str:
        # The number tells a/b.js from a_b.js; the name is for who reads the page's source.
        number = numbers.setdefault(path, len(numbers))
        return f"${number}_" + re.sub(r"\W", "_", os.path.relpath(path.with_suffix(""), entry.parent))

    def target(path: Path, source: str) -> Path:
        """The module that `path` imports as `source`."""
        named = (path.parent / source).resolve()
        return replaced.get(named, named)

    def add(path: Path, importers: tuple[Path, ...]) -> None:
        if path in importers:
            raise ValueError(f"{path.name} imports itself through {importers[-1].name}.")
        if path in exports:
            return
        text = path.read_text(encoding="utf-8")
        for names, source in _IMPORT.findall(text):
            imported = target(path, source)
            add(imported, (*importers, path))
            if missing := set(re.findall(r"\w+", names)) - set(exports[imported]):
                raise ValueError(f"{path.name} imports {sorted(missing)[0]}, which {imported.name} does not export.")
        body = _IMPORT.sub(lambda match: f"const {match[1]} = {variable(target(path, match[2]))};\n", text)
        exports[path] = [name for _, name in _EXPORT.findall(text)]
        body = _EXPORT.sub(r"\1", body)
        if left := re.search(r"^(?:import|export)\b.*", body, re.MULTILINE):
            raise ValueError(f"{path.name} has a form of import or export that cannot be bundled: {left[0]}")
        if _UNSAFE.search(body):
            raise ValueError(f"{path.name} has a text that ends a script; split it.")
        result = f"return {{ {', '.join(exports[path])} }};\n" if exports[path] else ""
        parts.append(f"const {variable(path)} = (() => {{\n{body}{result}}})();\n")

    add(entry, ())
    return "\n".join(parts)
