"""The browser page: teach a model your own symbols or pictures, and watch every gradient step.

The browser keeps the examples and sends all of them with every request. The server stores nothing.
"""

from firststep.utils.extras import extra

with extra("page", "firststep page"):
    from firststep.page.app import Page
    from firststep.page.limits import Limits
    from firststep.page.models import Models, load_models
    from firststep.page.security import Address, is_loopback
    from firststep.page.server import DEFAULT_HOST, DEFAULT_PORT, bound, in_background, serve

__all__ = [
    "DEFAULT_HOST",
    "DEFAULT_PORT",
    "Address",
    "Limits",
    "Models",
    "Page",
    "bound",
    "in_background",
    "is_loopback",
    "load_models",
    "serve",
]
