"""Folders that the page may offer: below a root, complete, and without a way out of it."""

import os

from cocos.page.shared import find_folders, linked_folders


def make(folder, *names):
    folder.mkdir(parents=True)
    for name in names:
        (folder / name).write_text("{}")
    return folder


def test_a_folder_needs_a_file_for_every_pattern(tmp_path):
    whole = make(tmp_path / "runs/whole", "run.json", "samples.jsonl")
    make(tmp_path / "runs/half", "run.json")
    assert find_folders([tmp_path], "run.json", "samples*.jsonl") == {str(whole): whole}


def test_the_folder_that_was_written_last_comes_first(tmp_path):
    names = [str(make(tmp_path / name, "run.json")) for name in ("a", "b", "c")]
    for age, name in zip((20, 0, 10), names, strict=True):
        os.utime(f"{name}/run.json", (1e9 - age, 1e9 - age))
    assert list(find_folders([tmp_path], "run.json")) == [names[1], names[2], names[0]]


def test_the_folders_of_an_earlier_root_come_first(tmp_path):
    first, second = (str(make(tmp_path / root / "a", "run.json")) for root in ("models", "outputs"))
    os.utime(f"{first}/run.json", (1, 1))
    assert list(find_folders([tmp_path / "models", tmp_path / "outputs"], "run.json")) == [first, second]


def test_checkpoints_hidden_folders_and_what_links_lead_to_are_left_out(tmp_path):
    make(tmp_path / "root/model/checkpoint-5", "config.json")
    make(tmp_path / "root/.cache", "config.json")
    secret = make(tmp_path / "secret", "config.json")
    (tmp_path / "root/linked").symlink_to(secret)
    make(tmp_path / "root/mixed")
    (tmp_path / "root/mixed/config.json").symlink_to(secret / "config.json")
    roots = [tmp_path / "root"]
    assert find_folders(roots, "config.json") == {}
    # They are named, with the folders that would have to be roots.
    assert linked_folders(roots, "config.json") == {
        str(tmp_path / "root/linked"): secret,
        str(tmp_path / "root/mixed"): secret,
    }
    assert linked_folders([*roots, secret], "config.json") == {}


def test_a_snapshot_of_the_hubs_cache_is_offered_if_the_cache_or_the_snapshot_is_a_root(tmp_path):
    cache = tmp_path / "hub"
    make(cache / "models--Q--q/blobs", "1234")
    snapshot = make(cache / "models--Q--q/snapshots/abcd")
    (snapshot / "config.json").symlink_to("../../blobs/1234")
    make(tmp_path / "models")
    (tmp_path / "models/q").symlink_to(snapshot)
    assert linked_folders([tmp_path / "models"], "config.json") == {str(tmp_path / "models/q"): snapshot}
    for root in (cache, snapshot):
        assert find_folders([root], "config.json") == {str(snapshot): snapshot}
        assert linked_folders([tmp_path / "models", root], "config.json") == {}
