"""Links in a root on local disk: files are listed through them, and never deleted."""

from __future__ import annotations

from pathlib import Path

import pytest

from klog.connector.store.local_store import LocalStore
from klog.connector.store.root_links import link_below
from klog.connector.store.store_for_url import store_for, writable_store_for
from klog.errors import StoreRefusedError


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A root with a directory, and a link to one and to a file in `outside`."""
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
    store, path_of_root = writable_store_for(str(root))
    with pytest.raises(
        StoreRefusedError, match=f"{root}/{path}: not deleted: {root}/{link} is a link"
    ):
        store.delete(f"{path_of_root}/{path}")
    assert (root.parent / "outside/deeper/x").exists()
    assert (root / link).is_symlink()


def test_file_that_no_link_leads_to_is_deleted(root: Path) -> None:
    store, path_of_root = writable_store_for(f"file:{root}")
    store.delete(f"{path_of_root}/own/deeper/x")
    store.delete(f"{path_of_root}/own/deeper/x")
    assert not (root / "own/deeper/x").exists()


@pytest.mark.parametrize("form", ["", "file:"])
def test_root_may_be_a_link(root: Path, form: str) -> None:
    link = root.parent / "link"
    link.symlink_to(root)
    store, path_of_root = writable_store_for(f"{form}{link}")
    assert path_of_root == str(link)
    store.delete(f"{path_of_root}/own/deeper/x")
    assert not (root / "own/deeper/x").exists()
    with pytest.raises(StoreRefusedError, match=f"{link}/linked is a link"):
        store.delete(f"{path_of_root}/linked/deeper/x")


def test_listing_names_the_link(root: Path) -> None:
    store, path_of_root = store_for(str(root))
    links = {entry.name: entry.link for entry in store.entries(path_of_root)}
    assert links == {"linked": f"{root}/linked", "own": ""}
    (inside,) = store.entries(f"{path_of_root}/linked/deeper")
    assert (inside.link, inside.size_bytes) == (f"{root}/linked", 1)
    links = {entry.name: entry.link for entry in store.entries(f"{path_of_root}/own")}
    assert links == {"deeper": "", "y": f"{root}/own/y"}
    assert store.read(f"{path_of_root}/linked/deeper/x") == b"1"


def test_store_without_a_root_deletes_through_no_link(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    link = root.parent / "link"
    link.symlink_to(root)
    with pytest.raises(StoreRefusedError, match=f"{link} is a link"):
        LocalStore().delete(f"{link}/own/deeper/x")
    with pytest.raises(StoreRefusedError, match=f"{link} is a link"):
        LocalStore(root=str(root)).delete(f"{link}/own/deeper/x")
    monkeypatch.chdir(root)
    with pytest.raises(StoreRefusedError, match=f"{root}/linked is a link"):
        LocalStore().delete("linked/deeper/x")


def test_root_may_be_the_top_directory(root: Path) -> None:
    path = f"/{root}/linked/deeper/x"  # Spelled as by a store at "/".
    assert link_below("/", path) == f"/{root}/linked"


def test_directory_with_the_roots_name_as_prefix_is_not_below_it(root: Path) -> None:
    (root.parent / "root-2").symlink_to(root.parent / "outside")
    with pytest.raises(StoreRefusedError, match=f"{root}-2 is a link"):
        LocalStore(root=str(root)).delete(f"{root}-2/deeper/x")
    assert (root.parent / "outside/deeper/x").exists()
