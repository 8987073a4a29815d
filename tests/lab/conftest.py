"""What the tests of the web layer have: a check for leaks."""

from tests.web.conftest import no_leaks

__all__ = ["no_leaks"]
