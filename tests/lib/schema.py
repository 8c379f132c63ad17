#!/usr/bin/env python3
"""schema.py SCHEMA <JSON: fails where the JSON does not fit the schema, or has a member that the schema does not name.

It knows the words of JSON Schema that docs/schema uses, and no others.
"""
import json
import re
import sys

TYPES = {"string": str, "integer": int, "boolean": bool, "array": list, "object": dict, "null": type(None)}
WORDS = {"$schema", "$defs", "$ref", "title", "description", "type", "items", "properties", "required", "enum", "minimum", "pattern"}


def is_a(value, name):
    return isinstance(value, TYPES[name]) and not (name == "integer" and isinstance(value, bool))


def resolved(schema):
    """With what it inherits from the definition that it refers to."""
    if "$ref" not in schema:
        return schema
    prefix, name = schema["$ref"].rsplit("/", 1)
    assert prefix == "#/$defs", schema
    definition = resolved(root["$defs"][name])
    return {**definition, **schema, "properties": definition.get("properties", {}) | schema.get("properties", {})}


def check(value, schema, at):
    schema = resolved(schema)
    assert set(schema) <= WORDS, (at, schema)
    types = schema.get("type", [])
    types = [types] if isinstance(types, str) else types
    assert not types or any(is_a(value, one) for one in types), (at, value, types)
    assert "enum" not in schema or value in schema["enum"], (at, value)
    assert "minimum" not in schema or value is None or value >= schema["minimum"], (at, value)
    assert "pattern" not in schema or re.search(schema["pattern"], value), (at, value)
    for number, item in enumerate(value if isinstance(value, list) else []):
        check(item, schema["items"], f"{at}[{number}]")
    if isinstance(value, dict):
        missing = set(schema.get("required", [])) - set(value)
        assert not missing, (at, missing)
        known = schema.get("properties", {})
        for name, member in value.items():
            assert name in known, (at, name)
            check(member, known[name], f"{at}.{name}")


with open(sys.argv[1]) as file:
    root = json.load(file)
check(json.load(sys.stdin), root, "$")
