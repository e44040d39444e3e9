"""Random JSON schemas, values that they hold valid, and values that just miss, for json_schema_compare.py."""

import copy
import random
import string

TEXTS = ["", "a", "word", "two words", 'quo"te', "back\\slash", "a/b", "tab\tline\n", "\u00e9t\u00e9", "\U0001f600!",
         "\u4e2d\u6587", "\x00\x1f\x7f", "{}", "null"]
NAMES = ["id", "name", "na", "value", "items", "x", "", "caf\u00e9", 'a"b', "a/b"]


def digits(rng: random.Random, count: int) -> str:
    return "".join(rng.choice(string.digits) for _ in range(count))


def letters(rng: random.Random, low: int, high: int) -> str:
    return "".join(rng.choice(string.ascii_lowercase) for _ in range(rng.randint(low, high)))


# A pattern, and texts that it finds a match in.
PATTERNS = [("^[a-z]{2,5}$", lambda rng: letters(rng, 2, 5)),
            ("[0-9]{3}", lambda rng: rng.choice(TEXTS) + digits(rng, 3) + rng.choice(TEXTS)),
            ("^(foo|bar)", lambda rng: rng.choice(["foo", "bar"]) + rng.choice(TEXTS)),
            ("^[A-Z]{2}-\\d+(?:\\.\\d{1,2})?$", lambda rng: "QX-" + digits(rng, 3) + rng.choice(["", ".5", ".25"])),
            ("^[^a-z\"]*$", lambda rng: rng.choice(["", "A-B", "\u00c9\n", "\\", "\U0001f600"])),
            ("x$|^y", lambda rng: rng.choice(["zx", "yz", "x\\x"])),
            ("^\\w+( \\w+)*$", lambda rng: letters(rng, 1, 3) + " " + letters(rng, 1, 3))]


def two(rng: random.Random, low: int, high: int) -> str:
    return f"{rng.randint(low, high):02d}"


def a_date(rng: random.Random) -> str:
    return rng.choice(["2024-02-29", f"{rng.randint(1, 9999):04d}-{two(rng, 1, 12)}-{two(rng, 1, 28)}"])


def a_time(rng: random.Random) -> str:
    return (f"{two(rng, 0, 23)}:{two(rng, 0, 59)}:{two(rng, 0, 59)}" + rng.choice(["", ".5", ".123456"])
            + rng.choice(["Z", "+05:30", "-23:59"]))


def hexadecimal(rng: random.Random, count: int) -> str:
    return "".join(rng.choice("0123456789abcdefABCDEF") for _ in range(count))


FORMATS = {"date": a_date, "time": a_time, "date-time": lambda rng: a_date(rng) + "T" + a_time(rng),
           "uuid": lambda rng: "-".join(hexadecimal(rng, count) for count in (8, 4, 4, 4, 12)),
           "ipv4": lambda rng: ".".join(str(rng.randint(0, 255)) for _ in range(4)),
           "ipv6": lambda rng: rng.choice(["::", "::1", "1::", "fe80::1:2", "::ffff:10.0.0.255", "1:2:3:4:5:6:7:8",
                                           ":".join(hexadecimal(rng, rng.randint(1, 4)) for _ in range(8))]),
           "email": lambda rng: letters(rng, 1, 5) + "." + letters(rng, 1, 3) + "@" + letters(rng, 1, 6) + ".org",
           "uri": lambda rng: rng.choice(["http://", "ftp://me@"]) + letters(rng, 1, 6) + rng.choice(
               [".org:80/a/b?c=d#e", "", "/%20/x", "/~a;b=1"])}


class SchemaGenerator:
    """One random schema of the supported part, with two definitions that may refer to themselves and each other."""

    def __init__(self, seed: int):
        self.rng = random.Random(seed)
        self.root = {}
        definitions = {"a": self.object_schema(2, True), "b": self.any_schema(2)}
        schema = self.any_schema(3)
        self.root.update(schema if isinstance(schema, dict) else {})
        self.root["$defs"] = definitions
        if self.rng.random() < 0.5:
            self.root["$schema"] = "https://json-schema.org/draft/2020-12/schema"

    def any_schema(self, depth: int):
        rng = self.rng
        kinds = ["string", "integer", "number", "boolean", "null", "enum", "untyped"]
        if depth > 0:
            kinds += ["object", "object", "object", "array", "array", "anyOf", "oneOf", "allOf", "$ref"]
        kind = rng.choice(kinds)
        if kind in ("anyOf", "oneOf", "allOf"):
            return getattr(self, kind.lower() + "_schema")(depth - 1)
        if kind == "$ref":
            # Behind an object's property, so that no reference leads back to itself before any text.
            return {"type": "object", "properties": {"next": {"$ref": f"#/$defs/{rng.choice('ab')}"}}}
        return getattr(self, kind + "_schema")(depth - 1)

    def boolean_schema(self, _depth: int):
        return {"type": "boolean", "description": "a flag"}

    def null_schema(self, _depth: int):
        return {"type": "null"}

    def untyped_schema(self, _depth: int):
        return self.rng.choice([True, {}, {"minLength": 2, "maximum": 10}, {"type": ["string", "null"], "maxLength": 4},
                                {"type": ["integer", "boolean"], "minimum": 0}])

    def enum_schema(self, _depth: int):
        values = TEXTS + [0, 1, -5, 2.5, None, True, [], {}, [1, "x"], {"k": [None]}]
        if self.rng.random() < 0.3:
            return {"const": self.rng.choice(values)}
        return {"enum": self.rng.sample(values, self.rng.randint(1, 6))}

    def string_schema(self, _depth: int):
        rng = self.rng
        schema = {"type": "string"}
        choice = rng.random()
        if choice < 0.25:
            schema["pattern"] = rng.choice(PATTERNS)[0]
        elif choice < 0.5:
            schema["format"] = rng.choice(sorted(FORMATS))
        elif choice < 0.8:
            low = rng.randint(0, 4)
            schema.update(rng.choice([{"minLength": low}, {"maxLength": low},
                                      {"minLength": low, "maxLength": low + 3}]))
        return schema

    def integer_schema(self, _depth: int):
        schema = {"type": "integer", **self.bounds(self.rng.choice([5, 300, 10 ** 6]), whole=True)}
        if self.rng.random() < 0.2:
            schema["multipleOf"] = self.rng.choice([1, 2, 5, 7, 12])
        return schema

    def number_schema(self, _depth: int):
        return {"type": "number", **self.bounds(self.rng.choice([1, 5, 300]), whole=self.rng.random() < 0.3)}

    def bounds(self, size: int, whole: bool) -> dict:
        """Bounds between which lies a whole number."""
        rng = self.rng
        low = rng.randint(-size, size)
        high = low + rng.choice([3, rng.randint(3, 3 * size + 3)])
        if not whole:
            low, high = round(low + rng.random(), 3), round(high + rng.random(), 3)
        bounds = {}
        if rng.random() < 0.6:
            bounds[rng.choice(["minimum", "exclusiveMinimum"])] = low
        if rng.random() < 0.6:
            bounds[rng.choice(["maximum", "exclusiveMaximum"])] = high
        return bounds

    def array_schema(self, depth: int):
        rng = self.rng
        schema = {"type": "array"}
        if rng.random() < 0.4:
            schema["prefixItems"] = [self.any_schema(depth) for _ in range(rng.randint(1, 3))]
        if rng.random() < 0.8:
            schema["items"] = self.any_schema(depth)
        if rng.random() < 0.4:
            schema["minItems"] = rng.randint(0, 3)
        if rng.random() < 0.4:
            schema["maxItems"] = rng.randint(3, 5)
        return schema

    def object_schema(self, depth: int, may_refer: bool = False):
        rng = self.rng
        names = rng.sample(NAMES, rng.randint(0, 4))
        schema = {"type": "object", "properties": {name: self.any_schema(depth) for name in names}}
        if may_refer:
            schema["properties"]["next"] = {"anyOf": [{"type": "null"}, {"$ref": "#/$defs/a"}]}
            names = names + ["next"]
        if rng.random() < 0.7:
            schema["required"] = rng.sample(names, rng.randint(0, len(names)))
        choice = rng.random()
        if choice < 0.5:
            schema["additionalProperties"] = False
            if rng.random() < 0.3 and names:
                schema["minProperties"] = rng.randint(0, len(names))
                schema["maxProperties"] = rng.randint(schema["minProperties"], len(names))
        elif choice < 0.7:
            schema["additionalProperties"] = self.any_schema(0)
        elif choice < 0.8:
            schema["required"] = schema.get("required", []) + ["undeclared"]
        return schema

    def anyof_schema(self, depth: int):
        return {"anyOf": [self.any_schema(depth) for _ in range(self.rng.randint(1, 3))]}

    def oneof_schema(self, depth: int):
        if self.rng.random() < 0.5:
            kinds = self.rng.sample(["string", "integer", "boolean", "null", "object", "array"], self.rng.randint(1, 3))
            return {"oneOf": [getattr(self, kind + "_schema")(depth) for kind in kinds]}
        branches = []
        for tag in self.rng.sample(["dot", "line", "area"], 2):
            branch = self.object_schema(depth)
            branch["properties"] = {"kind": {"const": tag}, **branch["properties"]}
            branch["required"] = ["kind"] + branch.get("required", [])
            branch.pop("minProperties", None)
            branch.pop("maxProperties", None)
            branches.append(branch)
        return {"oneOf": branches}

    def allof_schema(self, depth: int):
        parts = [self.object_schema(depth), self.object_schema(depth)]
        for name in set(parts[0]["properties"]) & set(parts[1]["properties"]):
            parts[1]["properties"][name] = {"type": ["string", "integer", "object", "null"]}
        for part in parts:
            for keyword in ("additionalProperties", "minProperties", "maxProperties"):
                part.pop(keyword, None)
        return {"allOf": parts}


class ValueGenerator:
    """Values that are mostly valid: each keyword is followed, but the parts of a conjunction may exclude each other."""

    def __init__(self, root: dict, rng: random.Random):
        self.root = root
        self.rng = rng

    def value(self, schema, depth: int = 6):
        rng = self.rng
        if schema is True or schema is False or not schema:
            return self.anything()
        if "$ref" in schema:
            target = self.root
            for step in schema["$ref"].split("/")[1:]:
                target = target[step]
            return self.value(target, depth - 1)
        if "const" in schema:
            return copy.deepcopy(schema["const"])
        if "enum" in schema:
            return copy.deepcopy(rng.choice(schema["enum"]))
        for keyword in ("anyOf", "oneOf"):
            if keyword in schema:
                branches = schema[keyword] if depth > 0 else schema[keyword][:1]
                return self.value(rng.choice(branches), depth)
        if "allOf" in schema:
            return self.merged_objects(schema["allOf"], depth)
        kind = schema.get("type", rng.choice(["string", "integer", "null"]))
        if isinstance(kind, list):
            kind = rng.choice(kind)
        return getattr(self, kind + "_value")(schema, depth)

    def merged_objects(self, parts: list, depth: int) -> dict:
        """An object of all parts: declared properties in the order of the document, then required ones, then others."""
        merged = {}
        for part in parts:
            merged.update(self.value(part, depth))
        order = [name for part in parts for name in part["properties"]]
        order += [name for part in parts for name in part.get("required", [])]
        first = {name: merged[name] for name in order if name in merged}
        return {**first, **merged}

    def anything(self):
        return self.rng.choice([None, True, 0, -1.5, "x", [], {}, [1, [2]], {"k": "v"}, 12345678901234567890])

    def null_value(self, _schema, _depth):
        return None

    def boolean_value(self, _schema, _depth):
        return self.rng.random() < 0.5

    def integer_value(self, schema, _depth):
        low = schema.get("minimum", schema.get("exclusiveMinimum"))
        high = schema.get("maximum", schema.get("exclusiveMaximum", 50 if low is None else low + 100))
        low = high - 100 if low is None else low
        multiple = schema.get("multipleOf", 1)
        return self.rng.randint(int(low) - 1, int(high) + 1) // multiple * multiple

    def number_value(self, schema, _depth):
        whole = self.integer_value(schema, 0)
        fraction = self.rng.randint(1, 9999) / 10 ** 4  # never so small that it is written with an exponent
        return self.rng.choice([whole, round(whole + fraction, self.rng.randint(1, 4)), whole + 0.5])

    def string_value(self, schema, _depth):
        rng = self.rng
        if "pattern" in schema:
            return next(make for pattern, make in PATTERNS if pattern == schema["pattern"])(rng)
        if "format" in schema:
            return FORMATS[schema["format"]](rng)
        low = schema.get("minLength", 0)
        high = schema.get("maxLength", low + 6)
        alphabet = 'ab"\\/\n\u00e9\u4e2d\U0001f600 \x01'
        return "".join(rng.choice(alphabet) for _ in range(rng.randint(low, high)))

    def array_value(self, schema, depth):
        first = schema.get("prefixItems", [])
        low = schema.get("minItems", 0)
        high = min(schema.get("maxItems", 5), 5)
        count = low if depth <= 0 else self.rng.randint(low, max(low, high))
        items = schema.get("items", True)
        return [self.value(first[i] if i < len(first) else items, depth - 1) for i in range(count)]

    def object_value(self, schema, depth):
        rng = self.rng
        result = {}
        properties = schema.get("properties", {})
        required = schema.get("required", [])
        others = schema.get("additionalProperties", True)
        for name in list(properties) + [name for name in required if name not in properties]:
            if name in required or (depth > 0 and rng.random() < 0.5):
                result[name] = self.value(properties.get(name, others), depth - 1)
        if others is not False and depth > 0:
            for name in rng.sample(["extra", "nam", "id2", "\u00e8"], rng.choice([0, 0, 1, 2])):
                result[name] = self.value(others, depth - 1)
        return result


def mutated(value, rng: random.Random):
    """A copy of `value` with one change somewhere; it may be valid still."""
    value = copy.deepcopy(value)
    places = [(None, None)]

    def visit(part):
        inside = part.items() if isinstance(part, dict) else enumerate(part) if isinstance(part, list) else ()
        for key, item in inside:
            places.append((part, key))
            visit(item)

    visit(value)
    parent, key = rng.choice(places)
    part = value if parent is None else parent[key]
    change = changed(part, rng)
    if parent is None:
        return change
    if rng.random() < 0.2:
        del parent[key]
    else:
        parent[key] = change
    return value


def changed(part, rng: random.Random):
    if rng.random() < 0.3:
        return rng.choice([None, False, 7, 0.25, "other", [], {}])
    if isinstance(part, bool) or part is None:
        return rng.choice([0, "null", "true"])
    if isinstance(part, (int, float)):
        return rng.choice([part + 1, part - 1, -part, part * 10 + 1, part + 0.001, 10 ** 7, -10 ** 7])
    if isinstance(part, str):
        at = rng.randint(0, len(part))
        longer = part[:at] + rng.choice("aZ0-.\u00e9") + part[at:]
        return rng.choice([part[:at] + part[at + 1:], longer, part + part, ""])
    if isinstance(part, list):
        return rng.choice([part + [None], part[1:], part + part, part[::-1]])
    return rng.choice([{**part, "unknown": 1}, dict(list(part.items())[1:])])
