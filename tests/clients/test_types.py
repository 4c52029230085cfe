"""The types of the TypeScript client are those of the server: every schema, every field."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

import pytest

from haggle.core.config import ROOT

CLIENTS = ROOT / "clients"
HINT = "in clients/typescript: npm run types"
PLAIN = {"integer": "number", "number": "number", "string": "string", "boolean": "boolean", "null": "null"}  # fmt: skip


def type_of(schema: Mapping[str, Any]) -> str:
    """A schema as a type of TypeScript, as openapi-typescript writes it."""
    if "$ref" in schema:
        return f'components["schemas"]["{schema["$ref"].rpartition("/")[2]}"]'
    if "anyOf" in schema:
        return " | ".join(grouped(part) for part in schema["anyOf"])
    if "enum" in schema or "const" in schema:
        return " | ".join(json.dumps(value) for value in schema.get("enum", [schema.get("const")]))
    if "prefixItems" in schema:
        return f"[ {', '.join(map(type_of, schema['prefixItems']))} ]"
    if schema.get("type") == "array":
        return f"{grouped(schema['items'])}[]"
    if "properties" in schema:
        return "{ " + " ".join(fields_of(schema)) + " }"
    if schema.get("type") == "object":
        further = schema.get("additionalProperties")
        return (
            f"{{ [key: string]: {type_of(further) if isinstance(further, dict) else 'unknown'}; }}"
        )
    return PLAIN[schema["type"]] if "type" in schema else "unknown"


def grouped(schema: Mapping[str, Any]) -> str:
    """The same, to stand beside another or before `[]`."""
    found = type_of(schema)
    several = len(schema.get("anyOf", schema.get("enum", ()))) > 1
    return f"({found})" if several else found


def fields_of(schema: Mapping[str, Any]) -> list[str]:
    """The fields of an object. One may be left out where it is not required and has no default."""
    needed = schema.get("required", [])
    return [
        f"{name}{'' if name in needed or 'default' in field else '?'}: {type_of(field)};"
        for name, field in schema["properties"].items()
    ]


def declared(text: str) -> dict[str, str]:
    """The schemas of a file of types: name and type, without comments, in single spaces."""
    part = text[text.index("    schemas: {") : text.index("\n    responses: ")]
    bare = re.sub(r"/\*\*.*?\*/", "", part, flags=re.DOTALL)
    found = re.findall(r"^ {8}(\w+): (\{.*?^ {8}\});$", bare, re.DOTALL | re.MULTILINE)
    return {name: " ".join(kind.split()) for name, kind in found}


def kept() -> tuple[str, dict[str, Any]]:
    """The file of types, and the schemas of the OpenAPI file."""
    types = (CLIENTS / "typescript/src/schema.d.ts").read_text(encoding="utf-8")
    document = json.loads((CLIENTS / "openapi.json").read_text(encoding="utf-8"))
    return types, document["components"]["schemas"]


def test_the_types_have_every_field_of_the_openapi_file() -> None:
    types, schemas = kept()
    found = declared(types)
    assert found.keys() == schemas.keys(), HINT
    for name, schema in schemas.items():
        assert found[name] == type_of(schema), f"{name}: {HINT}"


@pytest.mark.parametrize(
    "line",
    ["state: string;", "price: number | null;", "success?: boolean | null;", "sale: components"],
)
def test_a_field_that_is_missing_or_another_is_seen(line: str) -> None:
    types, schemas = kept()
    start = types.index("        Answer: {")
    head, answer = types[:start], types[start:]
    assert answer.index(line) < answer.index("        };")
    name = line.partition(":")[0].rstrip("?")
    for instead in ("", f"{name}: 7;", line.replace(":", "?:").replace("??", "")):
        changed = head + answer.replace(line, instead, 1)
        assert declared(changed)["Answer"] != type_of(schemas["Answer"])
