"""A module whose tests take place in virtual time says so: `LOOP = VirtualLoop`."""

from tests.runtime.virtual_loop import pytest_asyncio_loop_factories

__all__ = ["pytest_asyncio_loop_factories"]
