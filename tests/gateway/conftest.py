"""What the web tests have: a check for leaks, nginx."""

from tests.web.conftest import nginx_program, no_leaks

__all__ = ["nginx_program", "no_leaks"]
