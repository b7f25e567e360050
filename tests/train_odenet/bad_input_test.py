"""Wrong flags and files: one clear line, an exit status that is not 0."""
import os
import re

import numpy

import runs


class BadInputTest(runs.OdeNetTest):
    def fails(self, expected, *flags, code=2, outputs="out"):
        run = self.train(*flags, code=code, outputs=outputs)
        self.assertEqual(len(run.errors()), 1, run.err)
        self.assertRegex(run.errors()[0], expected)
        self.assertEqual(run.points(), [])

    def test_flags(self):
        for expected, *flags in [
                ("train_odenet: --problem=mountains: expected fashion or indian_pines or mnist or peaks", "--problem=mountains"),
                ("train_odenet: --layers=10: expected a multiple of 4, for --nested-levels=3 and --nested-cfactor=2", "--nested",
                 "--layers=10"),
                ("train_odenet: --layers=8: expected a multiple of 32", "--nested", "--nested-levels=40", "--nested-cfactor=32"),
                ("train_odenet: --layers=0: must be at least 1", "--layers=0"),
                ("train_odenet: --nested-cfactor=1: must be at least 2", "--nested", "--nested-cfactor=1"),
                ("train_odenet: --nested-interpolation=cubic: expected constant or linear", "--nested",
                 "--nested-interpolation=cubic"),
                ("train_odenet: --final-time=-1: ", "--final-time=-1"),
                ("train_odenet: --activation=sine: expected tanh or relu or smooth-relu", "--activation=sine"),
                ("train_odenet: --form=conv: expected dense for --problem=peaks", "--form=conv"),
                ("train_odenet: --form=dense: expected conv for --problem=mnist", "--problem=mnist", "--form=dense"),
                ("train_odenet: --controls=3: expected a divisor of 8 layers", "--time-weights=piecewise", "--controls=3"),
                ("train_odenet: --controls=1: must be at least 2", "--time-weights=spline", "--controls=1"),
                ("train_odenet: --compare: expected --force-lp, or more than one rank along lp", "--compare"),
                ("train_odenet: --lp-levels, --lp-cfactor, --layers: ", "--layers=2", "--nproc=2"),
                ("train_odenet: --nested-levels: expected --nested or --study", "--nested-levels=3"),
                ("train_odenet: --study-seeds: expected --study", "--study-seeds=3", "--nested"),
                ("train_odenet: --data: expected another --problem than peaks", "--data=mnist"),
                ("train_odenet: --max-samples: expected --problem=mnist or fashion", "--max-samples=9"),
                ("train_odenet: --samples: expected --problem=peaks", "--problem=mnist", "--samples=9"),
                ("train_odenet: --train-fraction: expected --problem=indian_pines", "--train-fraction=0.5"),
                ("train_odenet: --compare: not with --eval-only", "--compare", "--force-lp", "--eval-only"),
                ("train_odenet: --controls: expected --time-weights=piecewise or spline", "--controls=2"),
                ("train_odenet: --study: expected --problem=peaks", "--study", "--problem=mnist"),
                ("train_odenet: --save-model: not with --study", "--study", "--save-model=x"),
                ("train_odenet: --dry-run: not with --study", "--study", "--dry-run"),
                ("train_odenet: --history: not with --study, whose runs write no files", "--study", "--history=x.h5"),
                ("train_odenet: --initial-weights: not with --study, which sets it", "--study", "--initial-weights=0"),
                ("train_odenet: --controls=8: expected a divisor of 4 layers", "--study", "--nested-levels=2",
                 "--time-weights=piecewise", "--controls=8"),
                ("train_odenet: unknown flag --layer", "--layer=3")]:
            with self.subTest(flags=flags):
                self.fails(expected, *flags)
                self.assertFalse(os.path.exists(self.path("out")))

    def test_memory_of_a_validation(self):
        """Its batches of a thousand samples, where steps have one."""
        def peak(batch):
            run = self.train("--batch-size=1", "--validation-samples=1000", f"--test-batch-size={batch}", "--dry-run")
            numbers, = re.findall(r"\n  0 +1((?: +[0-9.]+){5}) ", run.out)
            return float(numbers.split()[4])
        one, all_samples = peak(1), peak(1000)
        self.assertGreater(all_samples, one + 0.05)
        self.assertEqual(peak(5000), all_samples)

    def test_peaks(self):
        self.fails("--problem=peaks: 7 training points: expected a positive multiple of the 5 classes", "--samples=7", code=1)
        self.fails("--problem=peaks: .*class 0 has 1829 of them, 2040 are asked for", "--samples=10000", code=1)

    def test_indian_pines(self):
        pines = "--problem=indian_pines"
        self.fails("--data: expected a directory with Indian_pines_gt.mat", pines, code=1)
        self.fails("--data: .*nowhere/Indian_pines_gt.mat: ", pines, "--data=" + self.path("nowhere"), code=1)
        runs.write_pines(self.path("other_size"), cube_rows=11)
        self.fails(r"--data: .*Indian_pines_corrected.mat: 11 x 10 x 9, but Indian_pines_gt.mat has 12 x 10 pixels; expected the "
                   "same rows and columns", pines, "--data=" + self.path("other_size"), code=1)
        runs.write_pines(self.path("cut"))
        cube = self.path("cut/Indian_pines_corrected.mat")
        with open(cube, "r+b") as file:
            file.truncate(os.path.getsize(cube) - 100)
        self.fails("--data: .*cut/Indian_pines_corrected.mat", pines, "--data=" + self.path("cut"), code=1)
        with open(cube, "wb") as file:
            file.write(b"no cube")
        self.fails("Indian_pines_corrected.mat: not a MATLAB file of version 5 or 7.3", pines, "--data=" + self.path("cut"), code=1)
        runs.write_matlab(self.path("cut/Indian_pines_gt.mat"), numpy.full((3, 3), 0.5))
        self.fails("Indian_pines_gt.mat: label 0.5: expected integers from 0", pines, "--data=" + self.path("cut"), code=1)

    def test_model_folder(self):
        with open(self.path("file"), "w", encoding="utf-8"):
            pass
        self.fails("--save-model: .*file", "--save-model=" + self.path("file/model"), code=1)

    def test_an_earlier_history(self):
        """Told before the coarse levels are trained."""
        history = "--history=" + self.path("run.h5")
        self.train("--epochs=1", history)
        run = self.train("--nested", "--nested-levels=2", history, code=1)
        self.assertRegex(run.errors()[0], "--history: .*run.h5: holds an earlier run: choose another name, resume that run, or remove the file")
        self.assertEqual(run.points(), [])

    def test_checkpoints(self):
        kept = self.path("kept")
        self.train("--epochs=1", "--checkpoint-dir=" + kept)
        for expected, flag in [("layers is 8 there and 16 here", "--layers=16"), ("problem is peaks there", "--problem=mnist"),
                               ("final_time is 5.0 there and 1.0 here", "--final-time=1"),
                               ("tikhonov is 0.0 there and 1.0 here", "--tikhonov=1")]:
            with self.subTest(flag=flag):
                run = self.train("--resume=" + kept, flag, code=1, outputs="x")
                self.assertRegex(run.errors()[0], "--resume: .*checkpoint of another run: " + expected)


if __name__ == "__main__":
    runs.main()
