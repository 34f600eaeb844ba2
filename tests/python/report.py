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

    def test_the_tail_has_its_lowest_and_highest_round(self):
        rounds = [[float(number + place) for number in range(1000)] for place in range(9)]
        self.assertEqual(Measurement(rounds).interval(99), (989, 997))
        self.assertRaises(TooFew, Measurement([samples[:999] for samples in rounds]).interval, 99)
        self.assertEqual(Measurement([samples[:500] for samples in rounds]).of_rounds(99), (494, 502))

    def test_one_round_has_none(self):
        self.assertRaises(TooFew, Measurement([[1, 2, 3]]).interval, 50)

    def test_a_round_that_is_too_short_for_a_percentile_gives_none(self):
        self.assertRaises(TooFew, Measurement([[1.0] * 500, [1.0] * 600]).interval, 99)


class Comparisons(unittest.TestCase):
    def test_what_hits_both_of_a_pair_makes_no_difference(self):
        chance = random.Random(4)
        drift = {number: chance.gauss(0, 50) for number in range(40)}
        one = {number: [drift[number] + 101 + chance.gauss(0, 0.1)] for number in drift}
        other = {number: [drift[number] + 100 + chance.gauss(0, 0.1)] for number in drift}
        low, high = stats.differences(one, other).interval(50)
        self.assertTrue(0.9 < low < high < 1.1, (low, high))

    def test_what_is_nothing_has_no_percents(self):
        self.assertEqual(stats.relative_differences({1: [3], 2: [3]}, {1: [0], 2: [2]}).ordered, [50])

    def test_a_ratio_has_the_uncertainty_of_both(self):
        sides = normal(5, 20, 50, 0, 5), normal(6, 20, 50, 0, 5)
        value, (low, high) = stats.ratio_of_medians(*sides), stats.interval_of_medians(*sides)
        alone = normal(5, 20, 50, 0, 5).interval(50)
        self.assertTrue(low < value < high)
        self.assertGreater(high - low, 1.15 * (alone[1] - alone[0]) / 100)

    def test_a_percentile_is_divided_by_that_of_the_same_round(self):
        """Requests at random are the same for all in a round: a bad round is bad for both."""
        alone = {1: [1.0] * 1000, 2: [10.0] * 1000, 3: [2.0] * 1000}
        shared = {3: [3.0] * 1000, 2: [11.0] * 1000, 1: [1.2] * 1000, 4: [99.0] * 1000}
        found = stats.ratios(shared, alone, 99)
        self.assertEqual(found.ordered, [1.1, 1.2, 1.5])
        self.assertRaises(TooFew, stats.ratios, {1: [1.0] * 999}, alone, 99)
        self.assertEqual(stats.ratios({1: [4.0, 2.0]}, {1: [1.5]}, 50).ordered, [2])

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
            ("h200 hook mechanism=hook-out: withinmax 0 3.006 us", "met"),
            ("h200 hook mechanism=hook-out: withinmax 0 3.005 us", "missed"),
            ("h200 hook mechanism=hook-whole: ratio50 +% .1 to mechanism=hook-out", "+1.0"),
            ("h200 hook mechanism=hook-whole: ratio50 % .1 to mechanism=hook-out", "101.0"),
            ("h200 hook mechanism=hook-out: p50.least ns", "3000"),
            ("h200 hook mechanism=hook-out: p50.most ns", "3006"),
            ("h200 hook mechanism=hook-whole: ratio50.most .3 to mechanism=hook-out", "1.011"),
            ("h200 hook mechanism=hook-whole: pairs50.most .3 to mechanism=hook-out", "1.010"),
            ("h200 hook mechanism=hook-whole: pairs50 +% .1 to mechanism=hook-out", "+1.0"),
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

    def test_the_jobs(self):
        """Two blocks of two servers, each of which is alone in one."""
        self.table("h100", "servers", ["round,mechanism,load,server,us"] + [
            f"{number},{mechanism},2,{server},{us}" for number in (1, 2)
            for mechanism, server, us in (("alone-first", "first", 1000), ("alone-rest", "rest", 1200), ("mps", "first", 2000), ("mps", "rest", 3000))])
        self.table("h100", "servers_rate", ["round,mechanism,load,server,rate", "1,alone-first,2,first,90", "1,alone-rest,2,rest,110",
                                            "1,mps,2,first,70", "1,mps,2,rest,60", "2,mps,2,rest,60"])
        for query, answer in (("servers_steps mechanism=alone: n", "4"), ("servers_steps mechanism=mps: p50 ms", "2.50"),
                              ("servers_both mechanism=alone: p50", "100"), ("servers_both mechanism=mps: value", "130")):
            self.assertEqual(self.ask(f"h100 {query}"), answer)
        points = queries.Data(self.work.name).table("h100", "servers_points")
        self.assertEqual([(row["mechanism"], row["x"], row["y"], row["is_enough"]) for row in points.rows],
                         [("alone", (1.2, 1.2, 1.2), (100, 100, 100), False), ("mps", (3, 3, 3), (130, 130, 130), False)])
        self.assertNotEqual(points.digest, queries.Data(self.work.name).table("h100", "servers").digest)

    def test_untuned_programs(self):
        """Everything takes twice as long in the second block; the ratios to the same block's own are alike."""
        self.table("h200", "untuned", ["round,mechanism,part,load,from,us"] + [
            f"{number},{mechanism},{part},0.5,{start},{us * times * number}"
            for number in (1, 2) for start, us in (("begin", 1), ("arrival", 10))
            for mechanism, part, times in (("alone-first", "all", 1), ("fixed", 25, 3), ("fixed", 50, 2))])
        self.table("h200", "untuned_rate", ["round,mechanism,part,load,rate"] + [
            f"{number},{mechanism},{part},{load},{rate / number}" for number in (1, 2)
            for mechanism, part, load, rate in (("alone-rest", "all", 0.2, 10), ("fixed", 25, 0.5, 8),
                                                ("fixed", 50, 0.5, 5))])
        points = queries.Data(self.work.name).table("h200", "untuned_points").rows
        self.assertEqual([tuple(row.values()) for row in points],
                         [(0.5, "fixed", "25", 2, 50, (3, 3, 3), (80, 80, 80)),
                          (0.5, "fixed", "50", 2, 50, (2, 2, 2), (50, 50, 50))])
        part = "h200 untuned load=0.5 from=begin mechanism"
        self.assertEqual(self.ask(f"{part}=fixed part=50|all: ratio50 to mechanism=alone-first"), "2.00")
        self.assertEqual(self.ask(f"{part}=fixed part=25|50: n"), "4")
        self.assertRaises(queries.Wrong, self.ask, f"{part}=fixed part=25|50: p50")
        self.assertRaises(queries.Missing, self.ask, f"{part}=alone-first part=25|50: p50")

    def test_how_many_requests_a_voice_service_answers_in_time(self):
        rows = [f"1,alone,5,first,{us}" for us in (40, 50, 60)]
        rows += [f"1,{mechanism},{load},first,{us}" for mechanism, load, us in (("mps", 40, 80), ("mps", 60, 120), ("xsched", 40, 110), ("xsched", 60, 120))
                 for _ in range(200)]
        self.table("h100", "voice", ["round,mechanism,load,what,us", *rows])
        self.assertEqual(self.ask("h100 voice_most mechanism=mps: value .0"), "50")
        self.assertRaises(queries.Missing, self.ask, "h100 voice_most mechanism=xsched: value")

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

    def refuses(self, text, reason, *arguments):
        status, output, after = self.run_texts(text, *arguments)
        self.assertEqual(status, 1)
        self.assertIn(reason, output)
        return after

    def test_numbers_are_put_in(self):
        query = "<!--h200 hook mechanism=hook-out: p50 us-->"
        self.assertEqual(self.run_texts(f"It takes 9.99{query} µs.\n"), (0, "", f"It takes 3.00{query} µs.\n"))

    def test_a_verdict_may_lie_on_two_lines(self):
        self.table("h200", "launch", ["round,mechanism,ns"] + [
            f"{number},{mechanism},{3000 + number % 7 * further}"
            for number in range(20)
            for mechanism, further in (("hook-out", 0), ("hook-whole", 10))
        ])
        query = "<!--h200 launch mechanism=hook-whole: verdict 0 0.03 us to mechanism=hook-out-->"
        self.assertEqual(self.ask(query[4:-3]), "not shown")
        text = f"It was **not\nshown{query}**.\n"
        self.assertEqual(self.run_texts(text), (0, "", text))
        self.assertEqual(self.run_texts(text, "--check"), (0, "", text))

    def test_a_number_that_is_not_in_the_data_fails(self):
        query = "<!--h200 hook mechanism=hook-out: p50 us-->"
        text = f"One.\nIt takes 2.99{query} µs.\n"
        self.assertEqual(self.refuses(text, "text.md:2: make figures would write: It takes 3.00", "--check"), text)

    def test_a_number_without_a_query_fails(self):
        for quantity in ("7 µs", "3.1 ms", "34 %", "12 s", "5393 kernels/s", "1 550 ns", "20 times",
                         "4 GiB/s", "25 percent", "7\u00a0ms", "7 \u03bcs", "7\nms", "1.5-2 ms", "7-ms",
                         "7 milliseconds", "3x", "3 ×", "9 kernels a second"):
            with self.subTest(quantity):
                self.refuses(f"It is {quantity}, they say.\n", f"text.md:1: {quantity}: nothing in bench/data says so", "--check")

    def test_what_was_chosen_or_is_code_needs_none(self):
        text = "For 2.5 s<!--given-->, in 57 %<!--given--> of the `-n 25%` 66 TPCs; section 5, H200.\n```\n7 ms\n```\n"
        self.assertEqual(self.run_texts(text, "--check"), (0, "", text))

    def test_a_measured_number_is_not_given(self):
        for number in ("12 981 launches", "4.11 ms", "1.28", "258 µs"):
            with self.subTest(number):
                self.refuses(f"It took {number}<!--given-->.\n", "nobody chose this", "--check")
        self.refuses("So it was (n = 40<!--given-->).\n", "this was counted", "--check")
        text = "The goal is 1.15 times<!--given-->, 410<!--given-->, in 0.5 ms<!--given-->, 2048<!--given--> times.\n"
        self.assertEqual(self.run_texts(text, "--check"), (0, "", text))

    def test_what_was_seen_has_a_day_and_what_was_published_a_source(self):
        seen = "# A page\n\n## One\n\n2026-11-25\n\n## Two\n\nIt took 4.11 ms<!--seen-->.\n"
        for text, reason in ((seen, "text.md:9: 4.11: nobody knows when"),
                             ("(2025)\n\nIt takes 34 µs<!--published-->.\n", "text.md:3: 34: nobody knows who")):
            self.refuses(text, reason, "--check")
        text = "Theirs (OSDI 2025) takes 34 µs<!--published-->.\n\n## On\n\nIt took 4.11 ms<!--seen--> (f5ee00e8).\n"
        self.assertEqual(self.run_texts(text, "--check"), (0, "", text))

    def test_a_table_by_hand_fails(self):
        self.refuses("| what | fast |\n| --- | --- |\n| this | 0.01 |\n", "text.md:3: 0.01: nothing", "--check")

    def test_a_query_that_cannot_be_answered_fails(self):
        for arguments in ([], ["--check"]):
            query = "<!--h200 hook mechanism=hook-out: p99.9 ns-->"
            self.refuses(f"It takes 1{query} ns.\n", "99.9 % of 20 samples: 10000 are needed", *arguments)

    def test_a_table(self):
        head = "<!--table hook by mechanism show n, p50 us, p99 us, difference~ % .1-->\n"
        status, output, text = self.run_texts(f"{head}old\n<!--/table-->\n")
        self.assertEqual((status, output), (0, ""))
        self.assertEqual(text, head + "| mechanism | n | median, µs | 99 %, µs | difference, % |\n"
                         "| --- | --- | --- | --- | --- |\n"
                         "| the hook taken out | 20 | 3.00 | – | – |\n"
                         "| all TPCs in the partition | 20 | 3.03 | – | +1.0 (+1.0 to +1.0) |\n"
                         "| *H200: 2026-11-22* |  |  |  |  |\n<!--/table-->\n")
        self.assertEqual(self.run_texts(text, "--check"), (0, "", text))
        named = "p50 us for mechanism=hook-out, p50 us for mechanism=hook-whole as with us"
        text_of_two = self.run_texts(f"<!--table hook by round where round=1 show {named}-->\n<!--/table-->\n")[2]
        self.assertIn("| round | hook-out, µs | with us, µs |\n", text_of_two)
        self.table("h200", "lengths", ["mechanism,us", "hook-out,7", "mps,8"])
        joined = self.run_texts("<!--table hook by mechanism show p50~~ us, p50 us of lengths for mechanism=mps as its us-->\n<!--/table-->\n")[2]
        self.assertIn("| mechanism | median, µs | its us, µs |\n", joined)
        self.assertIn("| the hook taken out | 3.00 (3.00 to 3.01) | 8.00 |\n", joined)
        alone = self.run_texts("<!--table hook by mechanism show p50 us of lengths-->\n<!--/table-->\n")[2]
        # There is no row of dashes.
        self.assertIn("| the hook taken out | 7.00 |\n| *H200: 2026-11-22; n = 1* |  |\n<!--/table-->", alone)
        rows = "rows hook-out as out; hook-whole as `in`"
        best = f"<!--table hook by mechanism show most p50 us, least difference % {rows}-->\n"
        ranked = self.run_texts(best + "<!--/table-->\n")[2]
        self.assertIn("| `in` | **3.03** | **+0.999** |\n| out | 3.00 | – |\n", ranked)
        self.refuses(best.replace("hook-out", "hook-in") + "<!--/table-->\n", "no row is hook-in")
        self.refuses(text.replace("3.03", "3.02"), "make figures would write: | all TPCs in the partition | 20 | 3.03", "--check")


if __name__ == "__main__":
    unittest.main()
