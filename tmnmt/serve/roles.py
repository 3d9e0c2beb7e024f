"""What a key may do; each role may what those before it may, too. A right is what a role from some
one on may, and any other key to which it is given."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Literal, get_args

Role = Literal["read", "translate", "write", "admin"]
Right = Literal["export"]
Need = Role | Right
ROLES: tuple[Role, ...] = get_args(Role)
RIGHTS: Mapping[Right, Role] = {"export": "write"}  # the least role that has each by itself


def is_allowed(role: Role, rights: Collection[Right], need: Need) -> bool:
    """Whether a key may do something.

    role: the role of the key.
    rights: its rights.
    need: the role or the right that is needed."""
    if need == "export":
        return need in rights or is_allowed(role, (), RIGHTS[need])
    return ROLES.index(role) >= ROLES.index(need)
