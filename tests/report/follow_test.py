"""report --follow: a page over HTTP that grows with the run."""
import http.client
import os
import signal
import socket
import time
import unittest

import runs


class FollowTest(runs.ReportTest):
    def get(self, method="GET", path="/", **headers):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        self.addCleanup(connection.close)
        connection.request(method, path, headers={name.replace("_", "-"): text for name, text in headers.items()})
        answer = connection.getresponse()
        return answer, answer.read().decode()

    def test_the_page_grows_with_the_run(self):
        writer = self.grow("run.h5")
        server, self.port = self.follow("run.h5")
        self.assertRegex(self.get()[1], "run.h5: holds no draws yet")
        seen, loss = set(), []
        for i in range(8):
            self.append(writer)
            loss.append(1 / (1 + i))
            answer, page = self.get()
            tag = answer.headers["ETag"]
            self.assertNotIn(tag, seen)
            seen.add(tag)
            data, (curves,) = self.curve_data(page)
            # One value is a constant, without a curve.
            self.assertEqual(curves.get("loss", {}).get("y"), loss if i else None)
            self.assertEqual((data["runs"][0]["draws"], data["runs"][0]["complete"]), (i + 1, False))
            unchanged, nothing = self.get(If_None_Match=tag)
            self.assertEqual((unchanged.status, nothing), (304, ""))
        writer.stdin.close()
        self.assertEqual(writer.wait(60), 0)
        data, _ = self.curve_data(self.get()[1])
        self.assertTrue(data["runs"][0]["complete"])
        self.report("run.h5", "--html=page.html", "--plots=none")
        self.assertEqual(data, self.curve_data(self.text("page.html"))[0])
        server.send_signal(signal.SIGINT)
        self.assertEqual((server.wait(60), server.stderr.read().splitlines()[-1]), (130, "report: interrupted"))

    def test_only_this_machine_and_only_reading(self):
        self.write("run", "run.h5")
        _, self.port = self.follow("run.h5")
        for host in ("127.0.0.1", "localhost"):
            self.assertEqual(self.get(Host="%s:%d" % (host, self.port))[0].status, 200)
        # A name that somebody else leads here.
        for host in ("example.org", "example.org:%d" % self.port, "127.0.0.1", "127.0.0.1.example.org:%d" % self.port):
            answer, text = self.get(Host=host)
            self.assertEqual(answer.status, 403, host)
            self.assertNotIn("loss", text)
        for method in ("POST", "PUT", "DELETE", "HEAD", "OPTIONS"):
            self.assertEqual(self.get(method)[0].status, 405, method)
        for path in ("/run.h5", "/../run.h5", "//", "/?x"):
            self.assertEqual(self.get(path=path)[0].status, 200 if path == "/?x" else 404, path)
        answer, page = self.get()
        self.assertIn("connect-src 'self'", page)
        self.assertNotIn("Access-Control-Allow-Origin", answer.headers)
        # Other addresses of this machine have nobody at the port.
        with self.assertRaises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.2", self.port), 60)
        self.report("run.h5", "--follow", "--port=%d" % self.port, code=1)
        self.assertRegex(self.err, "^report: port %d of 127.0.0.1 is taken .*--port=0 for a free one\n$" % self.port)

    def test_one_range_at_most(self):
        self.write("run", "run.h5")
        _, self.port = self.follow("run.h5")
        page = self.get()[1]
        some, text = self.get(Range="bytes=0-9")
        self.assertEqual((some.status, text), (206, page[:10]))
        for headers in ({}, {"Host": "example.org"}):
            answer, text = self.get(Range="bytes=" + "0-," * 2000 + "0-", **headers)
            self.assertEqual((answer.status, text), (416, ""))
        self.assertEqual(self.get()[1], page)

    def test_a_page_in_a_file_asks_nobody(self):
        self.write("run", "run.h5")
        self.report("run.h5", "--html=page.html", "--plots=none")
        self.assertNotIn("data-follows", self.text("page.html"))
        self.assertIn("default-src 'none'", self.text("page.html"))
        self.assertNotIn("connect-src", self.text("page.html"))

    def test_wrong_command_lines(self):
        for expected, code, *arguments in ((".*absent.h5: no such file", 1, "absent.h5", "--follow"),
                                           ("--port: expected 0 to 65535", 2, "a.h5", "--follow", "--port=65536"),
                                           ("--port: expected with --follow", 2, "a.h5", "--port=80"),
                                           ("--follow: expected without --html", 2, "a.h5", "--follow", "--html=a.html"),
                                           ("--follow: expected without --format", 2, "a.h5", "--follow", "--format=json")):
            self.assertEqual(self.report(*arguments, code=code), "")
            self.assertRegex(self.err, "^report: " + expected + r".*\n$")

    # A run closes its history, then writes the trace.
    def test_a_trace_that_comes_after_the_history(self):
        self.write("run", "run.h5")
        _, self.port = self.follow("run.h5")
        answer, page = self.get()
        self.assertRegex(page, "No timeline: .*trace.json")
        self.assertEqual(self.get(If_None_Match=answer.headers["ETag"])[0].status, 304)
        self.write_trace()
        changed, page = self.get(If_None_Match=answer.headers["ETag"])
        self.assertEqual(changed.status, 200)
        self.assertIn("A step, rank by rank", page)
        self.assertNotIn("No timeline", page)
        self.assertEqual(self.get(If_None_Match=changed.headers["ETag"])[0].status, 304)
        os.remove(self.path("trace.json"))
        self.assertIn("No timeline", self.get()[1])

    def test_silent_connections_delay_nobody_for_long(self):
        self.write("run", "run.h5")
        _, self.port = self.follow("run.h5")
        self.get()
        for count in (40, 200):
            silent = [socket.create_connection(("127.0.0.1", self.port), 60) for _ in range(count)]
            half = socket.create_connection(("127.0.0.1", self.port), 60)
            half.sendall(b"GET / HT")
            start = time.monotonic()
            self.assertEqual(self.get()[0].status, 200)
            # About a second; of 8 threads that wait 5 seconds each, 25 and 125.
            self.assertLess(time.monotonic() - start, 8, count)
            for connection in silent + [half]:
                connection.close()


if __name__ == "__main__":
    unittest.main(argv=["follow_test"])
