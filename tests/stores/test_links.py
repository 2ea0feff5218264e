"""Links in a root on local disk: files are listed through them, and never deleted."""

from __future__ import annotations

from pathlib import Path

import pytest

from klog.connector.store.links import link_below
from klog.connector.store.local import LocalStore
from klog.connector.store.schemes import store_for, writable_store_for
from klog.errors import KlogError


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Give a root with a directory, a linked one and a linked file; `outside` is what they are."""
    root, outside = tmp_path / "root", tmp_path / "outside"
    for directory in (root / "own/deeper", outside / "deeper"):
        directory.mkdir(parents=True)
        (directory / "x").write_bytes(b"1")
    (root / "linked").symlink_to(outside)
    (root / "own/y").symlink_to(outside / "deeper/x")
    return root


@pytest.mark.parametrize(
    ("path", "link"),
    [("linked/deeper/x", "linked"), ("linked", "linked"), ("own/y", "own/y")],
)
def test_nothing_is_deleted_through_a_link(root: Path, path: str, link: str) -> None:
    store, spelled = writable_store_for(str(root))
    with pytest.raises(KlogError, match=f"{root}/{path}: not deleted: {root}/{link} is a link"):
        store.delete(f"{spelled}/{path}")
    assert (root.parent / "outside/deeper/x").exists()
    assert (root / link).is_symlink()


def test_files_that_are_reached_through_no_link_go(root: Path) -> None:
    store, spelled = writable_store_for(f"file:{root}")
    store.delete(f"{spelled}/own/deeper/x")
    store.delete(f"{spelled}/own/deeper/x")
    assert not (root / "own/deeper/x").exists()


@pytest.mark.parametrize("form", ["", "file:"])
def test_the_root_itself_may_be_a_link(root: Path, form: str) -> None:
    given = root.parent / "given"
    given.symlink_to(root)
    store, spelled = writable_store_for(f"{form}{given}")
    assert spelled == str(given)
    store.delete(f"{spelled}/own/deeper/x")
    assert not (root / "own/deeper/x").exists()
    with pytest.raises(KlogError, match=f"{given}/linked is a link"):
        store.delete(f"{spelled}/linked/deeper/x")


def test_a_listing_names_the_link(root: Path) -> None:
    store, spelled = store_for(str(root))
    links = {entry.name: entry.link for entry in store.entries(spelled)}
    assert links == {"linked": f"{root}/linked", "own": ""}
    (inside,) = store.entries(f"{spelled}/linked/deeper")
    assert (inside.link, inside.size_bytes) == (f"{root}/linked", 1)
    links = {entry.name: entry.link for entry in store.entries(f"{spelled}/own")}
    assert links == {"deeper": "", "y": f"{root}/own/y"}
    assert store.read(f"{spelled}/linked/deeper/x") == b"1"


def test_a_store_that_knows_no_root_deletes_through_no_link_at_all(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = root.parent / "given"
    given.symlink_to(root)
    with pytest.raises(KlogError, match=f"{given} is a link"):
        LocalStore().delete(f"{given}/own/deeper/x")
    with pytest.raises(KlogError, match=f"{given} is a link"):
        LocalStore(root=str(root)).delete(f"{given}/own/deeper/x")
    monkeypatch.chdir(root)
    with pytest.raises(KlogError, match=f"{root}/linked is a link"):
        LocalStore().delete("linked/deeper/x")


def test_a_way_from_the_top_of_the_disk(root: Path) -> None:
    path = f"/{root}/linked/deeper/x"  # As a store at "/" spells it.
    assert link_below("/", path) == f"/{root}/linked"


def test_a_directory_whose_name_begins_as_the_roots_does_is_not_below_it(root: Path) -> None:
    (root.parent / "root-2").symlink_to(root.parent / "outside")
    with pytest.raises(KlogError, match=f"{root}-2 is a link"):
        LocalStore(root=str(root)).delete(f"{root}-2/deeper/x")
    assert (root.parent / "outside/deeper/x").exists()
