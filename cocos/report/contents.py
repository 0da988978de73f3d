"""Contents of a report: sentences, tables and curves, each computed once for all of its files."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from cocos.report import tables
from cocos.report.caveats import caveats, resampling_advice
from cocos.report.comparisons import RunComparison, excluded_problems
from cocos.report.finished_runs import FinishedRun, group_by_conditions
from cocos.report.summary import beginning, findings
from cocos.report.tables import Table
from cocos.report.token_curves import Curve, choice_note, lacks_resampling, token_curves


@dataclass(frozen=True)
class Report:
    """Evaluations to report on, and what is said of them."""

    runs: Sequence[FinishedRun]
    comparisons: Sequence[RunComparison] = ()

    @cached_property
    def groups(self) -> Mapping[str, Sequence[FinishedRun]]:
        """The runs by their conditions."""
        return group_by_conditions(self.runs)

    @cached_property
    def curves(self) -> Sequence[Curve]:
        """Accuracy against tokens."""
        return token_curves(self.runs)

    @cached_property
    def beginning(self) -> str:
        """The sentence on what was asked, and on what came out."""
        return beginning(self.runs)

    @cached_property
    def findings(self) -> list[str]:
        """A sentence for each comparison, and for what is not compared."""
        return [*findings(self.runs, self.comparisons, self.curves)]

    @cached_property
    def caveats(self) -> list[str]:
        """A sentence for each reason not to trust the numbers."""
        return caveats(self.runs, self.comparisons, self.curves)

    @cached_property
    def overview(self) -> Table:
        """A row per run."""
        return tables.overview_table(self.runs)

    @cached_property
    def token_table(self) -> Table:
        """Accuracy of each number of programs against its tokens."""
        return tables.token_table(self.curves)

    @cached_property
    def further_tables(self) -> list[Table]:
        """The tables after those of accuracies and tokens."""
        found = [
            *tables.pooled_tables(self.runs),
            tables.visible_tests_table(self.runs),
            tables.edits_table(self.runs),
            tables.sampled_programs_table(self.runs),
            tables.sampled_differences_table(self.comparisons),
            tables.pass_at_k_table(self.runs),
            tables.bugs_table(self.runs),
            tables.means_table(self.runs),
            tables.sources_table(self.runs),
        ]
        return [table for table in found if table.rows]

    @cached_property
    def tables(self) -> list[Table]:
        """All tables but the overview."""
        accuracies = [
            tables.accuracy_table(group, tables.accuracy_heading(conditions))
            for conditions, group in self.groups.items()
        ]
        compared = [tables.comparison_table(self.comparisons)] if self.comparisons else []
        of_tokens = [self.token_table] if self.curves else []
        return [*accuracies, *of_tokens, *self.further_tables, *compared]

    @cached_property
    def token_notes(self) -> list[str]:
        """A way to a resampling run if there is none, and the reasons why runs have two accuracies."""
        lacks = len(self.runs) == 1 and lacks_resampling(self.curves)
        advice = [resampling_advice(self.runs[0])] if lacks else []
        return [*advice, *filter(None, map(choice_note, self.curves))]

    @cached_property
    def excluded(self) -> list[str]:
        """A sentence for each run with problems that its counterpart lacks."""
        return [*excluded_problems(self.comparisons)]

    @cached_property
    def notes(self) -> list[str]:
        """Notes that explain the tables, each once."""
        return list(dict.fromkeys(note for table in (self.overview, *self.tables) for note in table.notes))
