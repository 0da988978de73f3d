"""Files of measurements: rows are read back as they were written, and tables go between marker lines."""

from typing import NamedTuple

import pytest
from result_files import fill, load_csv, save_csv


class Row(NamedTuple):
    arm: str
    seed: int
    accuracy: float
    right: str


def test_rows_are_read_back_with_the_types_of_their_fields(tmp_path):
    rows = [Row("turn, dynamic", 0, 0.25, "0110"), Row('"last"', 4, 1 / 3, "0000")]
    save_csv(rows, tmp_path / "new" / "rows.csv")
    assert load_csv(tmp_path / "new" / "rows.csv", Row) == [rows[0], rows[1]._replace(accuracy=0.3333)]


def test_a_table_replaces_what_is_between_its_marker_lines():
    page = "a\n<!-- speed -->\nold\n<!-- end -->\nb"
    assert fill(page, {"speed": "new"}) == "a\n<!-- speed -->\nnew\n<!-- end -->\nb"


@pytest.mark.parametrize(
    "page", ["no place", "<!-- speed -->\nwithout an end", "<!-- speed --> <!-- end -->"]
)
def test_a_page_without_marker_lines_is_an_error(page):
    with pytest.raises(ValueError, match="needs the lines '<!-- speed -->' and '<!-- end -->'"):
        fill(page, {"speed": "table"})
