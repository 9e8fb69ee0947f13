"""Expressions that try to get more than data out of the language, by class; beside those of tests/composer/render.

Each has the value that it is to give, written out, or REFUSED. None may give an object's class, frame or address.
`_STATUS` is the text of the status that the resource `other` reports in the test.
"""

from __future__ import annotations

from typing import Any, Final

REFUSED: Final = object()
"""The expression is refused, before it is compiled or while it is computed."""

_STATUS = "{'connection': {'host': 'h', 'port': 5432}, 'externalName': 'db-1', 'tags': ['b', 'a']}"

# Names written in another alphabet, and texts that look like templates.
_CODECS: dict[str, Any] = {
    "{{ 'a'.encode('unicode_escape') }}": REFUSED,
    "{{ 'a'.decode('rot13') }}": REFUSED,
    "{{ 'X19jbGFzc19f' | b64decode }}": REFUSED,
    "{{ '__pynff__' | decode('rot13') }}": REFUSED,
    "{{ '__class__' | urlencode }}": REFUSED,
    "{{ '\\N{LOW LINE}\\N{LOW LINE}class' }}": "__class",
    "{{ ''['\\N{LOW LINE}\\N{LOW LINE}class__'] }}": REFUSED,
    "{{ ''['\\137\\137class\\137\\137'] }}": REFUSED,
    "{{ ''['\\U0000005f\\U0000005fclass__'] }}": REFUSED,
    "{{ ''['__cla\u017fs__' | upper | lower] }}": REFUSED,
    "{{ '\\x7b\\x7b 7*7 \\x7d\\x7d' }}": "{{ 7*7 }}",
    "{{ '{' ~ '{ claim.spec.size }' ~ '}' }}": "{{ claim.spec.size }}",
    "{{ claim.spec.braces }}": "{{ 7*7 }}",
    "{{ claim.spec.braces | upper }}": "{{ 7*7 }}",
    "{{ '\\ud83d\\ude00' }}": REFUSED,
    "{{ '\\x00' }}": "\x00",
    "{{ '\ufb01' | upper }}": "FI",
}

_LITERALS: dict[str, Any] = {
    "{{ 0b1011 }}": 11,
    "{{ 0o17 }}": 15,
    "{{ 0xFF }}": 255,
    "{{ 1_000 }}": 1000,
    "{{ 1e3 }}": 1000.0,
    "{{ 1e400 }}": REFUSED,
    "{{ -1e400 }}": REFUSED,
    "{{ 9223372036854775807 }}": 9223372036854775807,
    "{{ 9223372036854775808 }}": REFUSED,
    "{{ -9223372036854775808 }}": -9223372036854775808,
    "{{ 1" + "0" * 5000 + " }}": REFUSED,
    "{{ 0x" + "f" * 5000 + " }}": REFUSED,
    "{{ 1.5.real }}": REFUSED,
    "{{ true.real }}": REFUSED,
    "{{ {1: 2} }}": REFUSED,
    "{{ {none: 1} }}": REFUSED,
    '{{ """a""" }}': "a",
}

_INTEGER_BASES: dict[str, Any] = {
    "{{ '1f' | int(base=16) }}": 31,
    "{{ '0x1f' | int(0, 16) }}": 31,
    "{{ 'zz' | int(base=36) }}": 1295,
    "{{ 'a' | int(base=37) }}": 0,
    "{{ 'a' | int(base=-1) }}": 0,
    "{{ '1' | int(base='16') }}": 1,
    "{{ '0b11' | int(base=0) }}": 3,
    "{{ '1e400' | int }}": 0,
    "{{ ('9' * 5000) | int }}": 0,
    "{{ ('f' * 5000) | int(base=16) }}": REFUSED,
    "{{ '\uff11\uff12' | int }}": 12,
    "{{ '__class__' | int(default='__class__') }}": "__class__",
    "{{ ''['__class__' | int(default='__class__')] }}": REFUSED,
    "{{ claim | int }}": 0,
    "{{ claim.spec.map | int(default=[]) }}": [],
    "{{ none | int }}": 0,
    "{{ 'nan' | float(default='x') }}": REFUSED,
}

_SLICES: dict[str, Any] = {
    "{{ claim.spec.list[::-1] }}": ["c", "a", "b"],
    "{{ claim.spec.list[10**9:] }}": [],
    "{{ claim.spec.list[0:1][0] }}": "b",
    "{{ claim.spec.list[true] }}": "a",
    "{{ claim.spec.text[-100:100] }}": "a,b",
    "{{ claim.spec.text[none:none:none] }}": "a,b",
    "{{ claim.spec.text[::0] }}": REFUSED,
    "{{ claim.spec.text['a':] }}": REFUSED,
    "{{ claim.spec.text[claim:] }}": REFUSED,
    "{{ claim.spec.text[::'__class__'] }}": REFUSED,
    "{{ claim.spec.text[1.0] }}": REFUSED,
    "{{ claim.spec.map[:1] }}": REFUSED,
    "{{ claim.spec.number[:1] }}": REFUSED,
    "{{ claim[:] }}": REFUSED,
    "{{ vars[:] }}": REFUSED,
    "{{ resources[0:1] }}": REFUSED,
    "{{ resources.other.status[:1] }}": REFUSED,
}

# Filters that read an attribute which an argument names.
_ATTRIBUTES: dict[str, Any] = {
    "{{ [{'a': {'b': 1}}] | map(attribute='a.b') | list }}": REFUSED,
    "{{ [claim] | sum(attribute='spec.__class__') }}": REFUSED,
    "{{ [claim] | join(',', attribute='spec.size') }}": "small",
    "{{ [claim] | join(',', attribute='metadata.labels') }}": "{'x': 'y'}",
    "{{ [claim] | sort(attribute='spec.__init__') }}": REFUSED,
    "{{ [claim] | sort(attribute='spec.size,spec.__class__') }}": REFUSED,
    "{{ [claim] | unique(attribute='metadata.__dict__') }}": REFUSED,
    "{{ [claim] | sum(attribute='spec.number', start=claim) }}": REFUSED,
    "{{ ['ab'] | max(attribute='upper') }}": REFUSED,
    "{{ ['ab'] | min(attribute='0') }}": "ab",
    "{{ [1, 2] | max(attribute='real') }}": REFUSED,
    "{{ [[1, 2]] | sum(attribute='1') }}": 2,
    "{{ [vars, vars] | sort(attribute='_trees') }}": REFUSED,
    "{{ [resources.other.status] | sum(attribute='content') }}": REFUSED,
    "{{ [resources.other] | join(attribute='_parts') }}": REFUSED,
    "{{ ['b', 'a'] | sort(attribute=none) }}": ["a", "b"],
    "{{ ['b', 'a'] | sort(attribute=['__class__']) }}": REFUSED,
}

# Our own objects under other names; variables and resources are named in full, so that what is read is known.
_ALIASES: dict[str, Any] = {
    "{{ vars['na' ~ 'me'] }}": "a",
    "{{ vars.name.name }}": REFUSED,
    "{{ (vars | combine({'_trees': 1}))._trees }}": REFUSED,
    "{{ ({'name': claim} | combine({'a': 1})).name.spec.size }}": "small",
    "{{ (claim | combine({'spec': resources})).spec.other.status.externalName }}": REFUSED,
    "{{ (resources.other | combine({}))._parts }}": REFUSED,
    "{{ [resources, vars][1].name }}": REFUSED,
    "{{ [vars][0]['_values'] }}": REFUSED,
    "{{ {'v': vars}.v.name }}": REFUSED,
    "{{ (vars or resources)['_scope'] }}": REFUSED,
    "{{ vars | list }}": REFUSED,
    "{{ 'other' in resources }}": REFUSED,
    "{{ claim.metadata.annotations['fairlead.dev/identity'] }}": REFUSED,
    "{{ claim.metadata.uid }}": REFUSED,
    "{{ claim.metadata.finalizers }}": REFUSED,
    "{{ claim['sta' ~ 'tus'] }}": REFUSED,
    "{{ env['fairlead-installation'] }}": REFUSED,
}

# What is computed while the expression is compiled.
_FOLDING: dict[str, Any] = {
    "{{ ''['__cla' 'ss__'] }}": REFUSED,
    "{{ ''['__class__' if 1 else 'a'] }}": REFUSED,
    "{{ ''[['__class__'][0]] }}": REFUSED,
    "{{ {'a': '__class__'}.a }}": "__class__",
    "{{ ''[{'a': '__class__'}.a] }}": REFUSED,
    "{{ 10 ** 400 }}": REFUSED,
    "{{ 1 / 0 }}": REFUSED,
    "{{ 1 % 0 }}": REFUSED,
    "{{ 0 ** -1 }}": REFUSED,
    "{{ (-8) ** 0.5 }}": REFUSED,
    "{{ 2 ** 62 }}": 4611686018427387904,
    "{{ 'a' * 3 }}": "aaa",
    "{{ 'a' * -1 }}": "",
    "{{ [1] * 3 }}": [1, 1, 1],
    "{{ 1 == 1.0 == true }}": True,
    "{{ 'd' in 'abc' ~ 'd' }}": True,
    "{{ 1 if false }}": REFUSED,
}

# The text that Python makes of an object: a map's, and never a place in memory.
_TEXTS: dict[str, Any] = {
    "{{ resources.other.status | string }}": _STATUS,
    "{{ resources.other.status ~ '' }}": _STATUS,
    "{{ resources.other.status | trim }}": _STATUS,
    "{{ resources.other.status | upper }}": _STATUS.upper(),
    "{{ resources.other.status | dns_label }}": "connection-host-h-port-5432-externalname-db-1-tags-b-a",
    "{{ [resources.other.status] | join('-') }}": _STATUS,
    "{{ [resources.other.status.connection] | string }}": "[{'host': 'h', 'port': 5432}]",
    "{{ {'a': resources.other.status.connection} ~ '' }}": "{'a': {'host': 'h', 'port': 5432}}",
    "{{ resources.other.status.tags | unique | string }}": "['b', 'a']",
    "{{ (resources.other.status.tags | unique) ~ '' }}": "['b', 'a']",
    "{{ [resources.other.status.tags | unique] | join }}": "['b', 'a']",
    "{{ claim.metadata.labels | string }}": "{'x': 'y'}",
    "{{ claim.metadata.labels ~ '' }}": "{'x': 'y'}",
    "{{ [claim.spec.map] | join }}": "{'x': 1, 'y': [2]}",
    "{{ ([3, 1] | sort) ~ '' }}": "[1, 3]",
    "{{ (claim.spec.map | list) ~ '' }}": "['x', 'y']",
    "{{ [none, true, 1.5] | join(',') }}": "None,True,1.5",
}

_KEYS: dict[str, Any] = {
    "{{ ''[{'__class__': 1} | list | sort | first] }}": REFUSED,
    "{{ ''[(['__class__'] | intersect(['__class__']))[0]] }}": REFUSED,
    "{{ ''['__class__,x' | split | first] }}": REFUSED,
    "{{ claim.spec.list[::0] }}": REFUSED,
    "{{ claim.spec.list[-1] }}": "c",
    "{{ claim.spec.map[('x', 'y')] }}": REFUSED,
    "{{ claim.spec.map['\\ud800'] }}": REFUSED,
    "{{ claim.spec.map[claim.spec.list] }}": REFUSED,
}

_ARGUMENTS: dict[str, Any] = {
    "{{ passwords | list }}": [],
    "{{ [claim] | sort(attribute='metadata.__class__,spec') }}": REFUSED,
    "{{ [['a']] | join(attribute='0.__class__') }}": REFUSED,
    "{{ [1] | sum(start='') }}": REFUSED,
    "{{ [['a']] | sum(start=[]) }}": ["a"],
    "{{ [claim.spec.map] | max(attribute='x,__class__') }}": {"x": 1, "y": [2]},
    "{{ 1.5 | round(method='__class__') }}": REFUSED,
    "{{ ('x' | int(default=claim)).kind }}": "PostgreSQLInstance",
    "{{ 'aaa' | replace('a', 'b', count=claim) }}": REFUSED,
    "{{ 'aba' | trim(claim.spec.map) }}": REFUSED,
    "{{ 'a' | dns_label(claim) }}": REFUSED,
    "{{ ['Mon', '03:00'] | window(10 ** 9) }}": REFUSED,
    "{{ '03:00' | shift(1e308 * 10) }}": REFUSED,
    "{{ '1e400Gi' | gib }}": REFUSED,
    "{{ '1e-400Gi' | gib }}": REFUSED,
    "{{ '" + "9" * 2000 + "Gi' | gib }}": REFUSED,
    "{{ 1.5 | round(0, 'ceil') }}": 2.0,
    "{{ '.*Gi' | gib }}": REFUSED,
    "{{ 'Mon 03:00' | window('__class__') }}": REFUSED,
    "{{ [1, 'a', none] | sort }}": REFUSED,
    "{{ [claim, claim] | max }}": REFUSED,
}

_SYNTAX: dict[str, Any] = {
    "{{ resources.other ~ resources.other }}": REFUSED,
    "{{ claim is mapping }}": True,
    "{{ claim.spec is eq(claim.spec) }}": True,
    "{{ 'a' | upper\u0301 }}": REFUSED,
    "{{ namespace(a=1).a }}": REFUSED,
    "{{ [*claim.spec.list] }}": REFUSED,
    "{{ claim.spec.list @ claim.spec.list }}": REFUSED,
    "# for x in claim: {{ 1 }}": "# for x in claim: 1",
    "{# {{ claim.__class__ }} #}a": REFUSED,
    "{{ '%(x)s' % claim.spec.map }}": REFUSED,
    "{{ 1 // 0 }}": REFUSED,
    "{{ passwords | string }}x": REFUSED,
    "{{ env | string }}": "{}",
    "{{ [env] | join }}": "{}",
    "{{ vars ~ '' }}": REFUSED,
    "{{ each ~ '' }}": REFUSED,
    "{{ [resources, vars, passwords] | string | lower }}": REFUSED,
}

_SIZES: dict[str, Any] = {
    "{{ (('a' * 1000) * 1000) * 1000 }}": REFUSED,
    "{{ (['a' * 1000] * 1000) | join('b' * 1000) }}": REFUSED,
    "{{ ([claim.spec.list] * 100000) | unique }}": REFUSED,
    "{{ 'x' in (claim.spec.list * 1000000) }}": REFUSED,
    "{{ ('a' * 100000000) | dns_label }}": REFUSED,
    "{{ (claim.spec.map | combine(claim) | combine(claim)).kind }}": "PostgreSQLInstance",
    "{{ ([claim.spec.map] * 1000) | first_that_holds(x=1) }}": {"x": 1, "y": [2]},
    "{{ (claim.spec.list * 100000) | intersect(claim.spec.list * 100000) | length }}": 3,
    "{{ ('9' * 100000) | int }}": 0,
    "{{ ('9' * 4300) | int }}": REFUSED,
    "{{ " + "[" * 300 + "]" * 300 + " }}": REFUSED,
    "{{ " + "-" * 2000 + "1 }}": REFUSED,
    "{{ 1" + " and 1" * 3000 + " }}": REFUSED,
    "{{ " + "1 if claim.spec.number else " * 500 + "2 }}": REFUSED,
    "{{ (claim.spec.list * 1000000)[::-1] | first }}": REFUSED,
    "{{ ('\u0149' * 10000000) | upper | length }}": REFUSED,
}

CLASSES: dict[str, dict[str, Any]] = {
    "codecs": _CODECS,
    "literals": _LITERALS,
    "bases of whole numbers": _INTEGER_BASES,
    "slices": _SLICES,
    "attributes that a filter reads": _ATTRIBUTES,
    "other names of our objects": _ALIASES,
    "constants folded": _FOLDING,
    "texts of objects": _TEXTS,
    "keys": _KEYS,
    "arguments of filters": _ARGUMENTS,
    "syntax of other languages": _SYNTAX,
    "sizes and depths": _SIZES,
}
