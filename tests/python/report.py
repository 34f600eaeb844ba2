"""What bench/report makes of samples: statistics, queries, numbers in texts. tests/cli/figures.bats starts it."""

import gzip
import os
import random
import subprocess
import sys
import tempfile
import unittest

REPORT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "bench", "report")
sys.path.insert(0, REPORT)
import queries
import stats
import tables
from stats import Measurement, TooFew


def normal(seed, rounds, samples, between=0.0, within=1.0):
    """Rounds whose centres differ."""
    chance = random.Random(seed)
    centres = [100 + chance.gauss(0, between) for _ in range(rounds)]
    return Measurement([centre + chance.gauss(0, within) for _ in range(samples)] for centre in centres)


class Percentiles(unittest.TestCase):
    def test_what_so_few_samples_cannot_show_is_refused(self):
        for percent, needed in ((50, 1), (75, 40), (95, 200), (99, 1000), (99.9, 10000), (5, 200), (1, 1000)):
            self.assertEqual(stats.needed(percent), needed)
            Measurement([[1.0] * needed]).percentile(percent)
            if needed > 1:
                self.assertRaises(TooFew, Measurement([[1.0] * (needed - 1)]).percentile, percent)
        self.assertRaises(TooFew, Measurement([]).percentile, 50)

    def test_a_percentile_is_the_least_that_so_many_are_not_above(self):
        hundred_lists = Measurement([[number + 0.0 for number in range(1, 1001)]])
        self.assertEqual(hundred_lists.percentile(99), 990)
        self.assertEqual(hundred_lists.percentile(75), 750)
        self.assertEqual(hundred_lists.percentile(50), 500.5)

    def test_rounds_are_one_sample(self):
        self.assertEqual(Measurement([[3, 1], [], [2]]).percentile(50), 2)


class Intervals(unittest.TestCase):
    def covered(self, percent, truth, **shape):
        """How many of 100 repetitions have the truth in their interval."""
        intervals = (normal(seed, **shape).interval(percent) for seed in range(100))
        return sum(low <= truth <= high for low, high in intervals)

    def test_nineteen_of_twenty_have_the_median(self):
        self.assertIn(self.covered(50, 100, rounds=20, samples=20), range(88, 101))

    def test_nineteen_of_twenty_have_the_tail(self):
        self.assertIn(self.covered(75, 100.674, rounds=20, samples=40), range(85, 101))

    def test_rounds_that_differ_are_not_taken_for_one(self):
        """The samples alone would give an interval a tenth as wide, which has the truth in a fifth of the cases."""
        self.assertIn(self.covered(50, 100, rounds=12, samples=50, between=5), range(85, 101))

    def test_the_same_samples_give_the_same_interval(self):
        self.assertEqual(normal(1, 10, 10).interval(50), normal(1, 10, 10).interval(50))

    def test_samples_that_are_mirrored_give_the_interval_mirrored(self):
        """Also where the number of samples is even, so that the median is between two of them."""
        sample = Measurement([[value] for value in (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)])
        mirrored = Measurement([[-value for value in samples] for samples in sample.rounds])
        low, high = sample.interval(50)
        self.assertEqual(mirrored.interval(50), (-high, -low))

    def test_few_rounds_have_their_lowest_and_highest(self):
        self.assertEqual(Measurement([[1, 2, 3], [7, 8, 9], [4, 5, 6]]).interval(50), (2, 8))

    def test_one_round_has_none(self):
        self.assertRaises(TooFew, Measurement([[1, 2, 3]]).interval, 50)

    def test_a_round_that_is_too_short_for_a_percentile_gives_none(self):
        self.assertRaises(TooFew, Measurement([[1.0] * 500, [1.0] * 600]).interval, 99)

    def test_it_is_that_of_the_samples_drawn_with_replacement(self):
        """What the search by counting finds, found by making the list."""
        measurement = normal(3, 9, 7)
        groups = [sorted(group) for group in measurement.rounds]
        drawn = [(groups[0], 3), (groups[4], 1), (groups[8], 5)]
        values = sorted(value for group, often in drawn for value in group * often)
        for percent in (1, 30, 50, 77, 100):
            self.assertEqual(measurement.percentile_of(drawn, percent), values[stats.rank(len(values), percent) - 1])


class Comparisons(unittest.TestCase):
    def test_what_hits_both_of_a_pair_makes_no_difference(self):
        chance = random.Random(4)
        drift = {number: chance.gauss(0, 50) for number in range(40)}
        one = {number: [drift[number] + 101 + chance.gauss(0, 0.1)] for number in drift}
        other = {number: [drift[number] + 100 + chance.gauss(0, 0.1)] for number in drift}
        low, high = stats.differences(one, other).interval(50)
        self.assertTrue(0.9 < low < high < 1.1, (low, high))

    def test_only_rounds_that_both_have_are_compared(self):
        self.assertEqual(stats.differences({1: [5], 2: [90]}, {1: [3], 3: [1]}).ordered, [2])
        self.assertEqual(stats.relative_differences({1: [5]}, {1: [4]}).ordered, [25])

    def test_a_ratio_has_the_uncertainty_of_both(self):
        sides = normal(5, 20, 50, 0, 5), normal(6, 20, 50, 0, 5), 50
        value, (low, high) = stats.ratio(*sides), stats.ratio_interval(*sides)
        alone = normal(5, 20, 50, 0, 5).interval(50)
        self.assertTrue(low < value < high)
        self.assertGreater(high - low, 1.15 * (alone[1] - alone[0]) / 100)

    def test_verdicts(self):
        self.assertEqual(stats.verdict((-0.4, 0.3), -0.5, 0.5), "met")
        self.assertEqual(stats.verdict((-0.4, 0.6), -0.5, 0.5), "not shown")
        self.assertEqual(stats.verdict((0.6, 0.9), -0.5, 0.5), "missed")
        self.assertEqual(stats.verdict((-0.9, -0.6), -0.5, 0.5), "missed")


class Texts(unittest.TestCase):
    def setUp(self):
        self.work = tempfile.TemporaryDirectory()
        self.addCleanup(self.work.cleanup)
        self.table("h200", "hook", ["round,mechanism,ns"] + [
            f"{number},{mechanism},{value + number % 7}"
            for number in range(20)
            for mechanism, value in (("hook-out", 3000), ("hook-whole", 3030))
        ])
        self.table("h100", "parts", ["part,ms", "MPS alone,2.5", "MPS alone,2.7", "MPS alone,2.8"])

    def table(self, machine, name, lines):
        os.makedirs(os.path.join(self.work.name, machine), exist_ok=True)
        with gzip.open(os.path.join(self.work.name, machine, name + ".csv.gz"), "wt") as file:
            file.write("# driver: 580.1\n# date: 2026-11-22T10:00:00Z\n" + "\n".join(lines) + "\n")

    def ask(self, query):
        return queries.answer(queries.Data(self.work.name), query)

    def test_questions(self):
        for query, value in (
            ("h200 hook: n", "40"),
            ("h200 hook mechanism=hook-out: rounds", "20"),
            ("h200 hook mechanism=hook-out: p50 us", "3.00"),
            ("h200 hook mechanism=hook-out: p50 us .1", "3.0"),
            ("h200 hook mechanism=hook-out: max ns", "3006"),
            ("h200 hook mechanism=hook-whole: difference ns", "+30.0"),
            ("h200 hook mechanism=hook-whole: difference.low ns", "+30.0"),
            ("h200 hook mechanism=hook-whole: difference %", "+0.999"),
            ("h200 hook mechanism=hook-out: difference % .1 to mechanism=hook-whole", "−1.0"),
            ("h200 hook mechanism=hook-whole: verdict -1 1 %", "met"),
            ("h200 hook mechanism=hook-whole: verdict -10 10 ns", "missed"),
            ("h200 hook mechanism=hook-out: within 2 4 us", "met"),
            ("h200 hook mechanism=hook-out: within 0 1 us", "missed"),
            ("h200 hook mechanism=hook-whole: ratio50 +% .1 to mechanism=hook-out", "+1.0"),
            ("h200 hook: values mechanism", "2"),
            ("h200 hook: date", "2026-11-22"),
            ("h200 hook: driver", "580.1"),
            ("h100 parts part=MPS_alone: p50 ms", "2.70"),
            ("h100 parts part=MPS_alone: rate", "375"),
            ("h100 parts part=MPS_alone: rate .1", "375.0"),
        ):
            with self.subTest(query):
                self.assertEqual(self.ask(query), value)

    def test_questions_that_nothing_answers(self):
        for query, reason in (
            ("h200 hook", "a query is"),
            ("h200 hook: ", "a query is"),
            ("h200 nothing: n", "there is no table h200/nothing"),
            ("h300 hook: n", "there is no table h300/hook"),
            ("h200 hook colour=red: n", "there is no column colour"),
            ("h200 hook mechanism=mps: n", "no row is like that"),
            ("h200 hook mechanism: n", "not COLUMN=VALUE"),
            ("h200 hook mechanism=hook-out: p99 ns", "99 % of 20 samples: 1000 are needed"),
            ("h200 hook mechanism=hook-out: p50 parsecs", "parsecs: not a word of a query"),
            ("h200 hook mechanism=hook-out: middle ns", "middle: not a question"),
            ("h200 hook mechanism=hook-out: difference ns", "difference: to what?"),
            ("h200 hook mechanism=hook-out: difference ns to mechanism=hook-out", "difference: to itself"),
            ("h100 parts: p50.low ms", "one round says nothing"),
            ("h200 hook: p50 ns", "rows differ in mechanism: say which"),
            ("h200 hook: rate", "rows differ in mechanism: say which"),
            ("h200 hook mechanism=hook-out: p100 ns", "100 is no percentile"),
        ):
            with self.subTest(query):
                self.assertRaisesRegex(queries.Wrong, reason, self.ask, query)

    def test_what_says_nothing_has_no_number(self):
        """A tool that said nothing twice, and one that did once."""
        self.table("h100", "watchers", ["round,tool,percent", "1,nvml,n/a", "2,nvml,n/a", "1,pmon,n/a", "2,pmon,40", "1,top,50"])
        for query, answer in (("tool=nvml: p50", "n/a"), ("tool=nvml: max % .1", "n/a"), ("tool=nvml: value", "n/a"),
                              ("tool=nvml: n", "0"), ("tool=pmon: p50", "40.0"), ("tool=pmon: n", "1"),
                              ("tool=nvml: difference % to tool=top", "n/a"), ("tool=pmon: mean .0", "40")):
            with self.subTest(query):
                self.assertEqual(self.ask(f"h100 watchers {query}"), answer)
        text = tables.table(queries.Data(self.work.name), "watchers by tool show n, p50~ %")
        self.assertIn("| NVML, of each process | 0 | n/a |\n", text)

    def test_only_times_have_a_rate(self):
        self.table("h200", "graphs", ["nodes,bytes", "1,100"])
        self.assertRaisesRegex(queries.Wrong, "bytes is no time", self.ask, "h200 graphs: rate")

    def test_numbers_as_they_are_written(self):
        for value, text in ((0, "0"), (0.00123, "0.00123"), (0.5, "0.500"), (7.056, "7.06"),
                            (99.96, "100"), (9.94, "9.94"), (9.996, "10.0"),
                            (1234.5, "1234"), (-43210, "−43\u202f210")):
            self.assertEqual(queries.shown(value), text)
        self.assertEqual(queries.shown(2.55, 1), "2.5")
        self.assertEqual(queries.shown(-0.04, 1), "0.0")

    def run_texts(self, text, *arguments):
        path = os.path.join(self.work.name, "text.md")
        with open(path, "w") as file:
            file.write(text)
        command = [sys.executable, os.path.join(REPORT, "texts.py"), *arguments, "--data", self.work.name, path]
        done = subprocess.run(command, capture_output=True, text=True)
        with open(path) as file:
            return done.returncode, done.stdout + done.stderr, file.read()

    def test_numbers_are_put_in(self):
        query = "<!--h200 hook mechanism=hook-out: p50 us-->"
        self.assertEqual(self.run_texts(f"It takes 9.99{query} µs.\n"), (0, "", f"It takes 3.00{query} µs.\n"))

    def test_a_number_that_is_not_in_the_data_fails(self):
        query = "<!--h200 hook mechanism=hook-out: p50 us-->"
        status, output, text = self.run_texts(f"One.\nIt takes 2.99{query} µs.\n", "--check")
        self.assertEqual(status, 1)
        self.assertIn("text.md:2: make figures would write: It takes 3.00", output)
        self.assertIn("2.99", text)

    def test_a_number_without_a_query_fails(self):
        for quantity in ("7 µs", "3.1 ms", "34 %", "12 s", "5393 kernels/s", "1 550 ns", "20 times",
                         "4 GiB/s", "25 percent", "7\u00a0ms", "7 \u03bcs", "7\nms", "1.5-2 ms", "7-ms",
                         "7 milliseconds", "3x", "3 ×", "9 kernels a second"):
            with self.subTest(quantity):
                status, output, _ = self.run_texts(f"It is {quantity}, they say.\n", "--check")
                self.assertEqual(status, 1)
                self.assertIn(f"text.md:1: {quantity}", output.replace("\n", " ", 0))
                self.assertIn(": nothing in bench/data says so", output)

    def test_what_was_chosen_or_is_code_needs_none(self):
        text = "For 2.5 s<!--given-->, in 57 %<!--given--> of the `-n 25%` 66 TPCs; section 5, H200.\n```\n7 ms\n```\n"
        self.assertEqual(self.run_texts(text, "--check"), (0, "", text))

    def test_a_table_by_hand_fails(self):
        status, output, _ = self.run_texts("| what | fast |\n| --- | --- |\n| this | 0.01 |\n", "--check")
        self.assertEqual(status, 1)
        self.assertIn("text.md:3: 0.01: nothing", output)

    def test_another_unit_than_the_query_s_fails(self):
        query = "<!--h200 hook mechanism=hook-out: p50 us-->"
        status, output, _ = self.run_texts(f"It takes 3.00{query} ms.\n", "--check")
        self.assertEqual(status, 1)
        self.assertIn("its unit is µs, not ms", output)

    def test_a_table_with_a_question_that_nobody_understands_fails(self):
        status, output, _ = self.run_texts("<!--table hook by mechanism show p5O ns-->\n<!--/table-->\n", "--check")
        self.assertEqual(status, 1)
        self.assertIn("p5O: not a question", output)

    def test_a_query_that_cannot_be_answered_fails(self):
        for arguments in ([], ["--check"]):
            query = "<!--h200 hook mechanism=hook-out: p99.9 ns-->"
            status, output, _ = self.run_texts(f"It takes 1{query} ns.\n", *arguments)
            self.assertEqual(status, 1)
            self.assertIn("99.9 % of 20 samples: 10000 are needed", output)

    def test_a_table(self):
        head = "<!--table hook by mechanism show n, p50 us, p99 us, difference~ % .1-->\n"
        status, output, text = self.run_texts(f"{head}old\n<!--/table-->\n")
        self.assertEqual((status, output), (0, ""))
        self.assertEqual(text, head + "| mechanism | n | median, µs | 99 %, µs | difference, % |\n"
                         "| --- | --- | --- | --- | --- |\n"
                         "| the hook taken out | 20 | 3.00 | – | – |\n"
                         "| all TPCs in the partition | 20 | 3.03 | – | +1.0 (+1.0 to +1.0) |\n<!--/table-->\n")
        self.assertEqual(self.run_texts(text, "--check"), (0, "", text))
        status, output, _ = self.run_texts(text.replace("3.03", "3.02"), "--check")
        self.assertEqual(status, 1)
        self.assertIn("make figures would write: | all TPCs in the partition | 20 | 3.03", output)

    def test_a_table_whose_columns_are_rows(self):
        lines = [f"{number},{load},{metric},{value}" for number in (1, 2, 3) for load in (1, 2)
                 for metric, value in (("used", load * number), ("jobs", 9))]
        self.table("simulator", "queue", ["round,load,metric,value", *lines])
        text = tables.table(queries.Data(self.work.name), "queue by load show p50~ for metric=used, p50 .1 for metric=jobs")
        self.assertEqual(text, "| load | used, % | jobs |\n| --- | --- | --- |\n"
                         "| 1 | 2.00 (1.00 to 3.00) | 9.0 |\n| 2 | 4.00 (2.00 to 6.00) | 9.0 |\n")

    def test_a_task_that_waits_all_the_time_has_run_no_lap(self):
        lines = [f"1,nvtaskset,task2,{ms},40" for ms in range(100, 210, 10)]
        lines += [f"1,nvtaskset,task3,{ms},50" for ms in range(210, 310, 10)]
        self.table("h100", "pitfall", ["round,mechanism,task,ms,laps", *lines])
        for phase, median in (("beside the second", "0"), ("after the second", "50.0")):
            query = f"h100 pitfall_phases task=task3 phase={phase.replace(' ', '_')}: p50"
            self.assertEqual(self.ask(query), median)

    def test_what_a_loop_keeps_is_compared_with_the_same_loop_by_itself(self):
        lines = ["alone,nothing,task,7", "alone,0.5,loop,500", "alone,17,loop,17000"]
        lines += ["none,0.5,task,2300", "none,0.5,loop,900", "none,0.5,loop,1100", "none,17,loop,17000"]
        self.table("h100", "priority", ["round,mechanism,kernel_ms,whose,us", *(f"1,{line}" for line in lines)])
        for length, percent in (("0.5", "50.0"), ("17", "100.0")):
            self.assertEqual(self.ask(f"h100 priority_kept mechanism=none kernel_ms={length}: value .1"), percent)
        self.assertEqual(self.ask("h100 priority_kept: n"), "2")
        self.table("h100", "bursts_loop", ["round,mechanism,us", "1,alone,20", "2,alone,22", "1,mps,42", "2,mps,28"])
        self.assertEqual(self.ask("h100 bursts_kept mechanism=mps: p50 .1"), "62.5")

    def test_what_a_held_loop_may_cost(self):
        lines = [f"alone,1,task,{us}" for us in range(1, 1001)] + ["alone,nothing,loop,120"] * 3 + ["mps,1,task,2000", "mps,1,loop,500"]
        self.table("h100", "held_priority", ["round,mechanism,kernels,whose,us", *(f"1,{line}" for line in lines)])
        self.assertEqual(self.ask("h100 held_priority_most kernels=1: value us .0"), "1209")

    def test_how_fast_a_task_was_while_it_was_busy(self):
        lines = ["1,alone,first,500", "1,alone,next,500", "1,mps,first,1500", "1,mps,next,500"]
        self.table("h100", "bursts", ["round,mechanism,kernel,us", *lines])
        self.assertEqual(self.ask("h100 bursts_speed mechanism=mps: value .1"), "50.0")

    def test_what_the_decoding_leaves(self):
        lines = ["1,none,alone,2000", "1,ahead,alone,1600", "1,none,products,4000"]
        self.table("h100", "decode_priority", ["round,mechanism,neighbour,us", *lines])
        self.assertEqual(self.ask("h100 decode_priority_idle: value .1"), "20.0")

    def test_shares_are_compared_with_weights(self):
        lines = [f"1,100-300,{program},{ms},{kernels}" for program, kernels in (("1,100", 11), ("2,300", 29)) for ms in (0, 100)]
        self.table("h100", "weights", ["round,weights,program,weight,ms,kernels", *lines])
        for program, percent in ((1, "10.0"), (2, "−3.3")):
            self.assertEqual(self.ask(f"h100 weights_share program={program}: value .1"), percent)
        self.assertEqual(self.ask("h100 weights_share program=1: value"), "10.0")

    def test_numbers_among_words_are_in_their_order(self):
        self.table("h100", "slices", ["slice_us,us", "default,9", "100,3", "20,2", "5,1", "alone,0"])
        text = tables.table(queries.Data(self.work.name), "slices by slice_us show n")
        self.assertEqual([line.split(" ")[1] for line in text.split("\n")[2:-1]], ["alone", "5", "20", "100", "default"])

    def test_pictures_of_other_data(self):
        folder = os.path.join(self.work.name, "evaluation", "h200")
        os.makedirs(folder)
        digest = queries.Data(self.work.name).table("h200", "hook").digest
        cases = (f"data: {digest}", ""), ("data: 0123", "drawn from other data"), (None, "No such file")
        for content, fault in cases:
            path = os.path.join(folder, "hook.svg")
            if content is None:
                os.remove(path)
            else:
                with open(path, "w") as file:
                    file.write(content)
            with self.subTest(fault):
                status, output, _ = self.run_texts("![The hook](evaluation/h200/hook.svg)\n", "--check")
                self.assertEqual(status, 1 if fault else 0)
                self.assertIn(fault, output)

    def test_a_table_has_all_machines(self):
        self.table("h100", "hook", ["round,mechanism,ns", "1,hook-out,5000"])
        text = tables.table(queries.Data(self.work.name), "hook by mechanism show p50 us")
        self.assertEqual(text.split("\n")[0], "| mechanism | H100: median, µs | H200: median, µs |")
        self.assertIn("| the hook taken out | 5.00 | 3.00 |\n| all TPCs in the partition | – | 3.03 |\n", text)


if __name__ == "__main__":
    unittest.main()
