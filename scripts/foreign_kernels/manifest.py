"""Reads the manifest of kernels and checks that every row is complete."""
import ast
import json
import pathlib

HERE = pathlib.Path(__file__).resolve().parent
DEVICES = {"b200": "10.0", "h200": "9.0"}  # compute capabilities
FRONTENDS = ("triton", "tilelang", "program")
# What each row says, and what rows of one front end say besides.
FIELDS = {"name": str, "project": str, "frontend": str, "devices": list, "exercises": str, "size": str, "oracle": str}
PYTHON_FIELDS = {"packages": list, "function": str, "arguments": dict}
PROGRAM_FIELDS = {"command": list}
OPTIONAL = {"build": list, "checkouts": list, "quick": bool}


class ManifestError(Exception):
    pass


def load(paths):
    """The rows of several manifests, one after the other, and their judgements of hazards by project and kind."""
    rows, judgements = [], {}
    for path in paths:
        try:
            text = json.loads(pathlib.Path(path).read_text())
        except OSError as error:
            raise ManifestError(f"{path}: {error.strerror}") from error
        except json.JSONDecodeError as error:
            raise ManifestError(f"{path}:{error.lineno}:{error.colno}: {error.msg}") from error
        for row in text["kernels"]:
            check(row, path)
            rows.append(row)
        for project, kinds in text.get("hazards", {}).items():
            judgements.setdefault(project, {}).update(kinds)
    names = [row["name"] for row in rows]
    for name in names:
        if names.count(name) > 1:
            raise ManifestError(f"two kernels have the name {name}")
    return rows, judgements


def check(row, path):
    """Error: the first thing of the row that is missing, too much or of the wrong type."""
    name = row.get("name", "a row without a name")
    fields = FIELDS | (PROGRAM_FIELDS if row.get("frontend") == "program" else PYTHON_FIELDS)
    for field, type_ in fields.items():
        if not isinstance(row.get(field), type_) or (type_ is not dict and not row[field]):
            raise ManifestError(f"{path}: {name}: \"{field}\" is missing, empty or no {type_.__name__}")
    for field, value in row.items():
        if not isinstance(value, (fields | OPTIONAL).get(field, ())):
            raise ManifestError(f"{path}: {name}: \"{field}\" is not known or of the wrong type")
    if row["frontend"] not in FRONTENDS:
        raise ManifestError(f"{path}: {name}: frontend \"{row['frontend']}\" is not one of {', '.join(FRONTENDS)}")
    for device in row["devices"]:
        if device not in DEVICES:
            raise ManifestError(f"{path}: {name}: device \"{device}\" is not one of {', '.join(DEVICES)}")
    if row["frontend"] != "program":
        _check_function(row, path)


def _check_function(row, path):
    module, _, function = row["function"].partition(":")
    source = HERE / "kernels" / f"{module}.py"
    if not source.exists():
        raise ManifestError(f"{path}: {row['name']}: {source} does not exist")
    for node in ast.parse(source.read_text()).body:
        if isinstance(node, ast.FunctionDef) and node.name == function:
            taken = {a.arg for a in node.args.args + node.args.kwonlyargs}
            unknown = [] if node.args.kwarg else [a for a in row["arguments"] if a not in taken]
            if unknown:
                raise ManifestError(f"{path}: {row['name']}: {function} takes no argument {unknown[0]}")
            return
    raise ManifestError(f"{path}: {row['name']}: {source.name} has no function {function}")
