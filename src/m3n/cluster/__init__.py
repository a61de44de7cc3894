"""Where passes run: on threads of this process, or on workers of a Ray cluster."""

from m3n.cluster.backends import Backend, Local, Ray, placed, resolve_backend

__all__ = ["Backend", "Local", "Ray", "placed", "resolve_backend"]
