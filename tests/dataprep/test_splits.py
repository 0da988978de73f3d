"""Assignment of problems to splits."""

from cocos.dataprep.formats.conversion import from_mbpp
from cocos.dataprep.output_folder import assign_split
from cocos.files.json_lines import Place

PLACE = Place("f", 1)


def test_splits_follow_the_shares_and_keep_equal_texts_together():
    converted = [
        from_mbpp({"task_id": i, "text": f"Task {i}.", "test_list": ["assert f()"]}, PLACE)
        for i in range(2000)
    ]
    splits = [assign_split(row, (0.8, 0.1, 0.1), seed=0) for row in converted]
    assert (
        1540 < splits.count("train") < 1660 and 150 < splits.count("test") < 250
    )  # 1600 and 200, five sigma
    assert splits != [assign_split(row, (0.8, 0.1, 0.1), seed=1) for row in converted]
    in_capitals = [
        from_mbpp({"task_id": f"{i}!", "text": f"TASK  {i}", "test_list": ["assert f()"]}, PLACE)
        for i in range(2000)
    ]
    assert [assign_split(row, (0.8, 0.1, 0.1), seed=0) for row in in_capitals] == splits
    assert {assign_split(row, (0, 0, 1), seed=0) for row in converted} == {"test"}
