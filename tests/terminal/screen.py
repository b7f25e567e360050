"""A pseudo-terminal with a program in it, and what it shows."""
import fcntl
import os
import pty
import re
import select
import signal
import struct
import termios
import time

ESCAPE = re.compile(r"\x1b\[([0-9;]*)([A-Za-z])")


class Screen:
    """Endless downwards. Knows carriage return, newline, wrapping, erasing to the end of the line; colours are left out."""

    def __init__(self, columns):
        self.columns, self.row, self.column = columns, 0, 0
        self.rows, self.wrapped, self.rest = [[]], [], ""
        self.drawn = []  # lines before each carriage return, also those that were drawn over

    def feed(self, text):
        text, at = self.rest + text, 0
        self.rest = ""
        while at < len(text):
            if text[at] == "\x1b":
                escape = ESCAPE.match(text, at)
                if escape is None:
                    self.rest = text[at:]
                    return
                self.obey(*escape.groups())
                at = escape.end()
                continue
            self.put(text[at])
            at += 1

    def obey(self, numbers, letter):
        if letter == "K" and numbers in ("", "0"):
            del self.rows[self.row][self.column:]
        elif letter != "m":
            raise ValueError(f"an escape that this screen does not know: {numbers}{letter}")

    def put(self, character):
        if character == "\r":
            if self.column > 0:
                self.drawn.append("".join(self.rows[self.row]))
            self.column = 0
        elif character == "\n":
            self.down()
        else:
            if self.column == self.columns:
                self.wrapped.append("".join(self.rows[self.row]))
                self.column = 0
                self.down()
            row = self.rows[self.row]
            row += " " * (self.column - len(row))
            row[self.column:self.column + 1] = character
            self.column += 1

    def down(self):
        self.row += 1
        if self.row == len(self.rows):
            self.rows.append([])

    def lines(self):
        return ["".join(row) for row in self.rows]


class Session:
    def __init__(self, command, columns, environment, folder):
        self.screen, self.bytes = Screen(columns), b""
        size = struct.pack("HHHH", 24, columns, 0, 0)
        self.process, self.terminal = pty.fork()
        if self.process == 0:
            fcntl.ioctl(0, termios.TIOCSWINSZ, size)
            os.chdir(folder)
            os.execve(command[0], command, environment)

    def read(self, seconds=0.2):
        """False at the end."""
        if not select.select([self.terminal], [], [], seconds)[0]:
            return True
        try:
            got = os.read(self.terminal, 65536)
        except OSError:
            return False
        self.bytes += got
        whole = self.bytes.rfind(b"\r") + 1  # characters of several bytes are never cut there
        self.screen.feed(self.bytes[:whole].decode("utf-8", "replace"))
        self.bytes = self.bytes[whole:]
        return bool(got)

    def until(self, condition, seconds=120):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if condition():
                return True
            if not self.read():
                return condition()
        return False

    def type(self, text):
        os.write(self.terminal, text.encode())

    def end(self, seconds=120):
        """The exit code; 128 + signal. Killed after `seconds`."""
        end = time.monotonic() + seconds
        while self.read():
            if time.monotonic() > end:
                os.kill(self.process, signal.SIGKILL)
                break
        self.screen.feed(self.bytes.decode("utf-8", "replace"))
        status = os.waitpid(self.process, 0)[1]
        os.close(self.terminal)
        return os.WEXITSTATUS(status) if os.WIFEXITED(status) else 128 + os.WTERMSIG(status)
