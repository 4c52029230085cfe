"""Puts into the wheel what a game needs of configs/ and models/: as haggle/shipped/.

Everything else about the package is in pyproject.toml. Where these files are looked for:
haggle/core/config.py.
"""

import shutil
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

HERE = Path(__file__).parent
SHIPPED = (
    "configs/procedures",
    "configs/serve",
    "configs/worlds",
    "models/answers-minilm-l6",
    "models/sentences-minilm-l6",
    *(path.relative_to(HERE).as_posix() for path in HERE.glob("models/*/adapter")),
)


class BuildWithShipped(build_py):
    """Copies the files beside the modules; an editable install reads them where they are."""

    def run(self) -> None:
        if self.editable_mode:
            super().run()
            return
        # Else what an earlier build left there would be in the wheel as well.
        shutil.rmtree(self.build_lib, ignore_errors=True)
        super().run()
        for folder in SHIPPED:
            shutil.copytree(HERE / folder, Path(self.build_lib, "haggle", "shipped", folder))


setup(cmdclass={"build_py": BuildWithShipped})
