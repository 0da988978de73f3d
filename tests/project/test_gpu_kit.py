"""The kit for a GPU machine without network: what is packed, and that its parts arrive whole."""

import os
import subprocess
import sys

import pytest

from tests.support.paths import ROOT

PYTHON = "3.12"


@pytest.fixture
def wheels(monkeypatch):
    """scripts/gpu_wheels.py as a module."""
    monkeypatch.syspath_prepend(str(ROOT / "scripts"))
    import gpu_wheels

    return gpu_wheels


def names(packages) -> list[str]:
    return [package.name for package in packages]


def test_only_what_the_machine_lacks_or_has_in_a_refused_version_is_packed(wheels):
    resolved = [
        wheels.Package("trl", "1.16.0", ("transformers>=5.20", "numpy")),
        wheels.Package(
            "transformers", "5.23.0", ("numpy<3", "tqdm>=4.60", 'colorama; sys_platform == "win32"')
        ),
        wheels.Package("numpy", "2.3.5", ()),
        wheels.Package("tqdm", "4.70.1", ()),
    ]
    machine = wheels.parse_freeze("numpy==2.5.2\ntransformers==5.17.0\n-e git+x\ntqdm==4.50\n")
    assert names(wheels.missing(resolved, ["trl~=1.16.0"], machine, PYTHON)) == [
        "trl",
        "transformers",
        "tqdm",
    ]
    assert names(wheels.missing(resolved, ["trl", "numpy<2.5"], machine, PYTHON)) == names(resolved)


def test_a_package_that_pins_a_packed_one_is_packed_too(wheels):
    resolved = [
        wheels.Package("pydantic", "2.14.3", ("pydantic-core==2.50.4",)),
        wheels.Package("pydantic-core", "2.50.4", ()),
        wheels.Package("openai", "3.54", ("pydantic>=2",)),
    ]
    newer = {"pydantic": "2.14.4", "pydantic-core": "2.50.5", "openai": "3.54"}
    assert names(wheels.missing(resolved, [], newer, PYTHON)) == ["pydantic", "pydantic-core"]


def test_what_pytorch_requires_comes_with_it(wheels):
    resolved = [
        wheels.Package(
            "torch",
            "2.11.0",
            ("sympy", 'triton; platform_system == "Linux"', "x; python_version < '3.9'", "toolkit[blas]==13"),
        ),
        wheels.Package("toolkit", "13", ('nvidia-blas; extra == "blas"', 'nvidia-fft; extra == "fft"')),
        wheels.Package("nvidia-blas", "13", ()),
        wheels.Package("nvidia-fft", "13", ()),
        wheels.Package("sympy", "1.14", ("mpmath",)),
        wheels.Package("mpmath", "1.3", ()),
        wheels.Package("triton", "3.6", ()),
        wheels.Package("x", "1", ()),
        wheels.Package("trl", "1.16", ("torch",)),
    ]
    assert wheels.closure(resolved, "torch", PYTHON) == {
        *("torch", "sympy", "mpmath", "triton", "toolkit", "nvidia-blas")
    }


def kit(folder, *words, **environment):
    return subprocess.run(
        [ROOT / "scripts/gpu_kit.sh", *words],
        cwd=folder,
        env=os.environ
        | {"KIT": str(folder / "kit"), "PYTHON": sys.executable, "MINUTES": "0", **environment},
        capture_output=True,
        text=True,
    )


@pytest.mark.processes
def test_parts_that_are_missing_or_damaged_are_named_and_nothing_is_installed(tmp_path):
    (tmp_path / "kit").mkdir()
    (tmp_path / "kit/SHA256SUMS").write_text(f"{'0' * 64}  wheels.00\n{'1' * 64}  wheels.01\n")
    (tmp_path / "kit/wheels.00").write_text("damaged")
    done = kit(tmp_path, "run")
    assert done.returncode == 2
    assert "wheels.00: FAILED" in done.stdout and "the parts of `wheels` are needed first" in done.stdout
    assert not (tmp_path / "kit/site-packages").exists()


def test_without_a_verb_the_script_explains_itself():
    done = subprocess.run([ROOT / "scripts/gpu_kit.sh"], capture_output=True, text=True)
    assert done.returncode == 2 and "scripts/gpu_kit.sh pack" in done.stdout
