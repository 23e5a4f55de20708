"""A report in Debian's Chromium: it asks for nothing, reports no error, and prints without empty
pages.
"""

from __future__ import annotations

import contextlib
import re
import shutil
import socketserver
import subprocess
import threading
import zlib
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

_QUIET = [
    *(
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-quic",
        "--no-first-run",
        "--disable-default-apps",
    ),
    *(
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
        "--enable-logging=stderr",
    ),
]

#: Requests that the browser makes for itself, whatever the page.
_OWN = re.compile(r"^[A-Z]+ (http://)?([\w-]+\.)*(google|googleapis|gvt1)\.com[:/]")


class Proxy(socketserver.ThreadingTCPServer):
    """Proxy that answers nothing and keeps what it was asked for."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Listener)
        self.asked: list[str] = []
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def server_close(self) -> None:
        self.shutdown()
        super().server_close()


class Listener(socketserver.BaseRequestHandler):
    """Reader of one request."""

    def handle(self) -> None:
        self.request.settimeout(5)
        content = b""
        with contextlib.suppress(OSError):
            content = self.request.recv(4096)
        self.server.asked.append(content.decode(errors="replace").partition("\r\n")[0])


def browse(page: Path, folder: Path, *options: str) -> tuple[str, str, list[str]]:
    """Open a page in a new browser; its document, its log, and the requests that it made."""
    chromium = shutil.which("chromium")
    if chromium is None:
        pytest.skip("needs Debian's chromium")
    with Proxy() as proxy:
        options = options or ("--dump-dom",)
        network = f"--proxy-server=127.0.0.1:{proxy.server_address[1]}"
        command = [chromium, *_QUIET, f"--user-data-dir={folder}", network, *options, page.as_uri()]
        done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=True)
    return done.stdout, done.stderr, [line for line in proxy.asked if not _OWN.search(line)]


@pytest.fixture(scope="module")
def report(matrix):
    return matrix.directory.report


def test_it_makes_no_request_and_reports_no_error(report, tmp_path):
    document, log, asked = browse(report, tmp_path / "profile")
    assert "</html>" in document
    assert "CONSOLE" not in log
    assert asked == []


def test_a_page_that_asks_and_fails_is_noticed(tmp_path):
    page = tmp_path / "bad.html"
    page.write_text(
        '<!DOCTYPE html><img src="http://raysel.test/a.png"><script>undefined_function()</script>'
    )
    _, log, asked = browse(page, tmp_path / "profile")
    assert "CONSOLE" in log
    assert [line for line in asked if "raysel.test" in line]


def test_a_script_in_it_would_not_run(report, tmp_path):
    page = tmp_path / "injected.html"
    page.write_text(
        report.read_text().replace("</footer>", "</footer><script>document.title = 'ran'</script>")
    )
    document, log, asked = browse(page, tmp_path / "profile")
    assert "<title>ran</title>" not in document
    assert "Content Security Policy" in log
    assert asked == []


#: Elements that are wider than they are shown, of a page in a frame of a phone's width; details are
#: opened.
_MEASURE = """<!DOCTYPE html><title>measure</title>
<iframe src="report.html" style="border: 0; width: 390px; height: 800px" onload="
const page = this.contentDocument;
for (const one of page.querySelectorAll('details')) one.open = true;
const wide = [page.documentElement, ...page.querySelectorAll('body *:not(svg *)')]
  .filter(one => one.scrollWidth > one.clientWidth + 1)
  .filter(one => getComputedStyle(one).display !== 'inline');
document.body.dataset.measured = 'yes';
document.body.append(...wide.map(one => 'CUT ' + one.tagName + ' ' + one.className + '; '));
"></iframe>"""


@pytest.mark.parametrize("kind", ["matrix", "table", "tasks"])
def test_no_column_is_cut_off_on_a_phone(kind, study_of, tmp_path):
    shutil.copy(study_of(kind).directory.report, tmp_path / "report.html")
    (tmp_path / "measure.html").write_text(_MEASURE)
    options = ("--allow-file-access-from-files", "--dump-dom")
    document, _, _ = browse(tmp_path / "measure.html", tmp_path / "profile", *options)
    assert 'data-measured="yes"' in document
    assert re.findall(r"CUT ([^;<]*)", document.partition("</iframe>")[2]) == []


def test_it_prints_without_empty_pages(report, tmp_path):
    browse(
        report,
        tmp_path / "profile",
        "--no-pdf-header-footer",
        f"--print-to-pdf={tmp_path / 'report.pdf'}",
    )
    pages = drawn_pages((tmp_path / "report.pdf").read_bytes())
    assert len(pages) > 2
    assert all(pages)


def drawn_pages(pdf: bytes) -> list[bool]:
    """Whether each page of a file draws text or images."""
    objects = {int(n): body for n, body in re.findall(rb"(?s)\b(\d+) 0 obj\s(.*?)endobj", pdf)}
    drawn = []
    for body in objects.values():
        if not re.search(rb"/Type\s*/Page\b", body):
            continue
        content = objects[int(re.search(rb"/Contents (\d+) 0 R", body)[1])]
        stream = zlib.decompressobj().decompress(re.search(rb"(?s)stream\r?\n(.*)", content)[1])
        drawn.append(bool(re.search(rb"\b(Tj|TJ|Do)\b", stream)))
    return drawn
