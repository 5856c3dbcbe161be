import ast
import unittest
from pathlib import Path

FILES = sorted(Path(__file__).parents[1].glob("*/**/*.py"))


class Source(unittest.TestCase):
    def test_has_the_syntax_of_python_3_9(self) -> None:
        self.assertGreater(len(FILES), 15)
        for file in FILES:
            ast.parse(file.read_text(encoding="utf-8"), str(file), feature_version=(3, 9))
