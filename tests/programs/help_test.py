"""--help of every program: its flags parse each example, and every flag has a help text."""
import os
import re
import shlex

import program_runs

PROGRAMS = program_runs.programs(17)
# Programs whose flags depend on the first argument.
WITH_ARGUMENT = {"plan": ["gpt", "llama", "vit"]}


class HelpTest(program_runs.ProgramTest):
    known = {}

    def help(self, *command):
        if command not in self.known:
            run = self.finish(self.start([*command, "--help"]))
            self.assertEqual(run.err, "")
            self.known[command] = run.out
        return self.known[command]

    def test_examples(self):
        for program in PROGRAMS:
            name = os.path.basename(program)
            text = self.help(program)
            self.assertRegex(text, f"^{name}: ")
            self.assertIn(f"\nUsage: {name} ", text)
            examples = re.search("\nExamples:\n(.*?)\n\n", text, re.S)[1].splitlines()
            for example in examples:
                with self.subTest(example):
                    words = shlex.split(example, comments=True)
                    arguments = words[words.index(name) + 1:]
                    if "--" in arguments:  # what follows is another program's
                        arguments = arguments[:arguments.index("--")]
                    self.assertEqual(self.help(program, *arguments)[:len(name) + 2], name + ": ")

    def test_every_flag_is_explained(self):
        for program in PROGRAMS:
            name = os.path.basename(program)
            for first in WITH_ARGUMENT.get(name, [None]):
                text = self.help(program, *([first] if first else []))
                flags = re.findall(r"\n  --(?:\[no\])?([a-z0-9-]+)((?: .*)?(?:\n {30}.*)*)", text)
                self.assertGreater(len(flags), 1, text)
                for flag, words in flags:
                    with self.subTest(program=name, flag=flag):
                        self.assertRegex(words, "[a-z]{2}")
                        self.assertLessEqual(words.count("(default:"), 1, words)


if __name__ == "__main__":
    program_runs.main(len(PROGRAMS))
