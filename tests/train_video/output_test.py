"""What train_video prints, on one rank and on two; that features are computed once; that it learns."""
import os
import re

import numpy

import runs

# Of the workspace: $(location //:WORKSPACE) is a link to it.
REAL = os.path.join(os.path.dirname(os.path.realpath("WORKSPACE")), "../shared/data/video-samples")


class OutputTest(runs.VideoTest):
    def test_the_same_on_one_rank_and_on_two(self):
        one = self.train("--epochs=2", "--force-lp", "--history=" + self.path("one.h5"), ranks=1, features="a")
        two = self.train("--epochs=2", "--history=" + self.path("two.h5"), ranks=2, features="b")
        self.assertEqual(one.work(), (14, 0))
        self.assertEqual(two.work(), (14, 0))
        ours, theirs = self.features("a"), self.features("b")
        self.assertEqual(len(ours), 14)
        self.assertEqual(set(ours), set(theirs))
        for name in ours:
            self.assertEqual(ours[name][0].tobytes(), theirs[name][0].tobytes(), name)
        self.assertEqual(self.history("one.h5"), self.history("two.h5"))
        self.assertEqual(len(two.losses()), 2 * (2 + 1))
        self.assertRegex(two.out, r"Loading frame features: synthetic stand-in: discs that move in 2 directions: 10 \+ 4 "
                                  r"sequences of 8 x 1000\n")
        # What is made up is named so wherever there are numbers.
        for line in two.lines:
            if re.search(r"Loss|Accuracy|Frame features|TIME PER", line):
                self.assertIn("synthetic", line)

    def test_features_are_kept(self):
        self.train("--epochs=1", ranks=1)
        first = self.features()
        again = self.train("--epochs=1", "--hidden-size=8", ranks=2)  # the GRU does not matter
        self.assertEqual(again.work(), (0, 14))
        self.assertEqual(self.train("--epochs=1", "--percent-data=0.5", ranks=1).work(), (0, 5 + 2))
        # Another choice of frames, and other weights, are other features, which leave the first alone.
        for flag in ("--frame-size=33", "--sequence-length=6", "--seed=5"):
            self.assertEqual(self.train("--epochs=1", flag, "--percent-data=0.3", ranks=1).work(), (3 + 1, 0), flag)
        self.assertEqual(self.train("--epochs=1", ranks=1).work(), (0, 14))
        self.assertEqual(len(first), 14)

    def test_changed_videos_and_damaged_features_are_computed_again(self):
        self.write_videos()
        data = "--data=" + self.path("videos")
        self.assertEqual(self.train("--epochs=1", data, ranks=1).work(), (6, 0))
        before = self.features()
        os.remove(self.path("videos/jump/1/3.png"))
        self.assertEqual(self.train("--epochs=1", data, ranks=1).work(), (1, 5))
        after = self.features()
        for name in before:
            self.assertEqual(numpy.array_equal(before[name][0], after[name][0]), name != "jump/1", name)
        for folder, _, names in os.walk(self.path("features")):
            if "0.h5" in names:
                with open(os.path.join(folder, "0.h5"), "r+b") as file:
                    file.truncate(1000)
        self.assertEqual(self.train("--epochs=1", data, ranks=1).work(), (2, 4))
        self.assertNotIn("synthetic", self.train("--epochs=1", data, ranks=1).out.split("Loading")[1])

    def test_it_learns(self):
        run = self.train("--epochs=25", "--synthetic-videos=40", "--synthetic-classes=4", "--lr=0.005", "--batch-size=10",
                         "--hidden-size=32", "--log-interval=4")
        losses = [float(x) for x in run.losses()]
        accuracies = [int(x) for x in re.findall(r"Accuracy: \d+/16 \((\d+)%\)", run.out)]
        self.assertLess(losses[-1], 0.5 * losses[0])
        self.assertGreaterEqual(max(accuracies), 60)  # chance is 25 %

    def test_real_videos(self):
        names = ("test.avi", "arm_wrestling_demo.mp4")
        if os.path.exists(REAL):
            for name in names:
                for place in ("a_", "b_"):
                    os.makedirs(self.path("videos/" + name[:3]), exist_ok=True)
                    os.symlink(os.path.join(REAL, name), self.path(f"videos/{name[:3]}/{place}{name}"))
        else:
            print("no", REAL, "here: folders of made frames take their place")
            self.write_videos()
        run = self.train("--epochs=1", "--data=" + self.path("videos"))
        found = self.features()
        self.assertEqual(run.work(), (len(found), 0))
        self.assertNotIn("synthetic stand-in", run.out)
        if os.path.exists(REAL):
            # The same video under two names.
            self.assertEqual(found["tes/a_test.avi"][0].tobytes(), found["tes/b_test.avi"][0].tobytes())
            self.assertNotEqual(found["tes/a_test.avi"][0].tobytes(), found["arm/a_" + names[1]][0].tobytes())


if __name__ == "__main__":
    runs.main()
