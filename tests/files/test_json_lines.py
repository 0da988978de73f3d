"""Rows of JSON files: their places, and lines that cannot be read."""

import gzip
import json

import pytest

from cocos.files.json_lines import MAX_LINE_BYTES, DataError, Place, read_rows, read_rows_leniently


def test_a_place_is_printed_as_file_and_line_or_file_and_row():
    assert str(Place("data/a.jsonl", 3)) == "data/a.jsonl:3"
    assert str(Place("data/a.json", 3, is_line=False)) == "data/a.json: row 3"


def test_line_numbers_count_blank_lines_and_the_rows_of_a_list_have_row_numbers(tmp_path):
    lines, rows = tmp_path / "lines.jsonl", tmp_path / "list.json"
    lines.write_text("1\n\n\n2\n")
    rows.write_text("[\n1,\n\n2]")
    assert list(read_rows(lines)) == [(Place(lines, 1), 1), (Place(lines, 4), 2)]
    assert list(read_rows(rows)) == [(Place(rows, 1, is_line=False), 1), (Place(rows, 2, is_line=False), 2)]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b"{", "not valid JSON (Expecting property name enclosed in double quotes); write one row per line"),
        (b'{"a": "\xe9"}', "byte 0xe9 is not UTF-8; expected UTF-8 JSON or JSONL, optionally gzipped"),
        (b"[" * 100_000, "not valid JSON ("),
        (b'"%s"' % (b"x" * MAX_LINE_BYTES), "the line has more than 4 MiB; write one row per line, or remove it"),
    ],
    ids=["broken", "latin-1", "nested", "long"],
)  # fmt: skip
def test_a_line_that_cannot_be_read_is_an_error_and_the_lenient_reader_continues_after_it(
    tmp_path, line, message
):
    path = tmp_path / "a.jsonl"
    path.write_bytes(b'{"a": 1}\n' + line + b'\n{"a": 3}\n')
    (_, first), (place, error), (last_place, last) = read_rows_leniently(path)
    assert (first, last, last_place) == ({"a": 1}, {"a": 3}, Place(path, 3))
    assert place == Place(path, 2) and isinstance(error, DataError)
    assert str(error).startswith(f"{path}:2: {message}")
    with pytest.raises(DataError) as caught:
        list(read_rows(path))
    assert str(caught.value) == str(error)


def test_the_remedy_for_a_file_that_ends_within_a_line_is_to_download_it_again(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text('{"a": 1}\n{"a": ')
    with pytest.raises(
        DataError, match=r"2: not valid JSON .*the file ends within this line: download it again"
    ):
        list(read_rows(path))


def test_a_gzipped_file_is_recognized_by_its_content(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_bytes(gzip.compress(json.dumps([1, 2]).encode()))
    assert [row for _, row in read_rows(path)] == [1, 2]


def test_rows_are_read_one_at_a_time(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text("1\n{\n")
    rows = read_rows(path)
    assert next(rows) == (Place(path, 1), 1)  # the broken line 2 has not been read
    with pytest.raises(DataError):
        next(rows)


def test_the_limit_of_a_line_can_be_raised(tmp_path):
    (tmp_path / "rows.jsonl").write_text(json.dumps("x" * (5 << 20)) + "\n")
    with pytest.raises(DataError, match="the line has more than 4 MiB"):
        list(read_rows(tmp_path / "rows.jsonl"))
    [(_, row)] = read_rows(tmp_path / "rows.jsonl", 1 << 30)
    assert len(row) == 5 << 20
