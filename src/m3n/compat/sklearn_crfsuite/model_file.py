"""The file that scripts find in ``crf.modelfile.name``."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

__all__ = ["ModelFile"]


class ModelFile:
    """A file of CRFsuite with the model of a ``CRF``.

    Where the user names no file, there is a temporary one from when somebody asks for its name until the model goes.

    Parameters
    ----------
    filename : path or None
        The user's file, if there is one.
    keep_tempfiles : bool
        Whether a temporary file stays when the model goes.
    content : function without arguments
        The bytes of the model; None if there is no model yet.
    """

    def __init__(
        self, filename: str | os.PathLike[str] | None, keep_tempfiles: bool, content: Callable[[], bytes | None]
    ):
        self.filename, self.keep_tempfiles, self.content = filename, keep_tempfiles, content
        self.fd: int | None = None
        self._temporary: str | None = None

    @property
    def auto(self) -> bool:
        """Whether the file is a temporary one."""
        return self.filename is None

    @property
    def name(self) -> str | None:
        """Where the file is; None if there is no model that it could hold."""
        if self.filename is not None:
            return os.fspath(self.filename)
        if self._temporary is None and (content := self.content()) is not None:
            self.ensure_name()
            Path(str(self._temporary)).write_bytes(content)
        return self._temporary

    def ensure_name(self) -> None:
        """Make the temporary file."""
        if self.auto and self._temporary is None:
            self.fd, self._temporary = tempfile.mkstemp(".crfsuite", "model")

    def cleanup(self) -> None:
        """Remove the temporary file; it is written again when somebody asks for its name."""
        if self._temporary is None:
            return
        with suppress(OSError):
            os.close(self.fd)  # type: ignore[arg-type]
        if not self.keep_tempfiles:
            Path(self._temporary).unlink(missing_ok=True)
        self.fd = self._temporary = None

    def refresh(self) -> None:
        """Write the temporary file anew."""
        self.cleanup()
        _ = self.name

    def __del__(self) -> None:
        with suppress(Exception):  # Python may be about to end
            self.cleanup()
