"""Markdown tables."""

import pytest

from cocos.files.markdown import markdown_table


def test_a_table_has_a_line_per_row_under_its_header():
    assert markdown_table(["model", "n"], [["base", "10"], ["cocos", ""]]) == (
        "| model | n |\n| --- | --- |\n| base | 10 |\n| cocos |  |"
    )


def test_a_cell_cannot_add_columns_or_rows():
    assert markdown_table(["a"], [["x | y\n| z |"]]).splitlines()[2:] == [r"| x \| y \| z \| |"]


def test_a_row_of_another_width_is_an_error():
    with pytest.raises(ValueError, match=r"table row \['1'\] has 1 cells, expected 2"):
        markdown_table(["a", "b"], [["1"]])
