"""Puts machine code into the wheel if the folder that M3N_MACHINE_CODE names holds some (``make wheel``)."""

from __future__ import annotations

import os
import sys
import sysconfig
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class MachineCode(BuildHookInterface):
    """A wheel with machine code is for one version of Python on one platform."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Add the files and the tag."""
        folder = os.environ.get("M3N_MACHINE_CODE")
        if folder and version != "editable":
            python = f"cp{sys.version_info.major}{sys.version_info.minor}"
            platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
            build_data["force_include"][folder] = "m3n/compiled/shipped"
            build_data["pure_python"], build_data["tag"] = False, f"{python}-{python}-{platform}"
