"""Importing this goes on in the Python environment that has Jupyter: .jupyter, which ./dev test makes, or what LUNARIA_JUPYTER
names."""
import os
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# Not resolved: the interpreter of an environment is a link to the system's and knows the environment by the link.
ENVIRONMENT = Path(os.environ.get("LUNARIA_JUPYTER", ROOT / ".jupyter")).absolute()
PYTHON = ENVIRONMENT / "bin" / "python3"
if Path(sys.prefix) != ENVIRONMENT:
    if not PYTHON.exists():
        sys.exit(f"no Jupyter environment at {ENVIRONMENT}: ./dev jupyter makes one, LUNARIA_JUPYTER names another")
    os.execv(PYTHON, [str(PYTHON), *sys.argv])
