"""The site in a real browser, at a desk's and a phone's width: `make browser` runs it.

The rule: Debian's Chromium opens what `make docs` has made, from a server on this machine and
without any other network. Screenshots of both widths go to build/screenshots, to be looked at.
"""

from __future__ import annotations

import functools
import shutil
import threading
from collections.abc import Iterator
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from typing import Literal

import pytest
from playwright.sync_api import Browser, Page, Request, sync_playwright

from tests.support.project import PROJECT

SITE = PROJECT / "dist/site"
SCREENSHOTS = PROJECT / "build/screenshots"
PAGES = sorted(
    str(path.relative_to(SITE))
    for path in SITE.rglob("*.html")
    if path.name not in ("genindex.html", "search.html")
)
DESK, PHONE = (1300, 900), (390, 844)
LOOKED_AT = ["index", "tutorial", "options", "python-api", "errors", "architecture", "command-line"]
WAIT_MS = 20_000


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base's name
        """Log nothing."""


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """Serve the site; return its address."""
    assert PAGES, "there is no site: run `make docs`"
    handler = functools.partial(_Quiet, directory=str(SITE))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    chromium = shutil.which("chromium")
    assert chromium, "there is no chromium: apt-get install chromium"
    with sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        yield running
        running.close()


@pytest.fixture(params=[DESK, PHONE], ids=["desk", "phone"])
def page(request: pytest.FixtureRequest, browser: Browser, address: str) -> Iterator[Page]:
    """Return a page of one width. Errors of scripts and requests that fail are errors."""
    width, height = request.param
    context = browser.new_context(
        base_url=address, viewport={"width": width, "height": height}, is_mobile=width < 500
    )
    opened = context.new_page()
    opened.set_default_timeout(WAIT_MS)
    faults: list[str] = []

    def note_elsewhere(sent: Request) -> None:
        if not sent.url.startswith(address):
            faults.append(sent.url)

    opened.on("pageerror", lambda error: faults.append(str(error)))
    opened.on("requestfailed", lambda sent: faults.append(sent.url))
    opened.on("request", note_elsewhere)
    yield opened
    context.close()
    assert faults == []


def is_phone(page: Page) -> bool:
    assert page.viewport_size is not None
    return bool(page.viewport_size["width"] == PHONE[0])


def test_every_page_fits_its_width(page: Page) -> None:
    """Wide tables and code scroll by themselves; no page scrolls to the side."""
    wide = []
    for path in PAGES:
        page.goto(f"/{path}", wait_until="domcontentloaded")
        over = page.evaluate(
            "document.scrollingElement.scrollWidth - document.scrollingElement.clientWidth"
        )
        if over > 0:
            wide.append((path, over))
    assert wide == []


def test_navigation_leads_to_a_page(page: Page) -> None:
    page.goto("/index.html")
    link = page.locator(".sidebar-tree a", has_text="Options").first
    if is_phone(page):
        box = link.bounding_box()
        assert box is None or box["x"] < 0
        page.locator("label.nav-overlay-icon").click()
    link.click()
    page.wait_for_url("**/options.html")
    assert page.locator("h1").inner_text().startswith("Options")


@pytest.mark.parametrize(
    ("words", "leads_to"),
    [("compression.type", "options.html"), ("KLOG_DATA_LOSS", "errors.html")],
)
def test_search_finds(page: Page, words: str, leads_to: str) -> None:
    page.goto("/index.html")
    if is_phone(page):
        page.locator("label.nav-overlay-icon").click()
    page.locator(".sidebar-search").fill(words)
    page.locator(".sidebar-search").press("Enter")
    result = page.locator(f"#search-results li a[href*='{leads_to}']").first
    result.wait_for()
    page.wait_for_load_state("networkidle")  # The search asks for a summary of each result.
    result.click()
    page.wait_for_url(f"**/{leads_to}*")
    assert words in page.locator("article").inner_text()


def test_a_code_block_can_be_copied(page: Page) -> None:
    page.goto("/tutorial.html")
    block = page.locator("div.highlight-python").first
    assert block.is_visible()
    block.hover()
    button = block.locator("button.copybtn")
    assert button.get_attribute("data-clipboard-target")
    target = page.locator(button.get_attribute("data-clipboard-target") or "")
    assert "import" in target.inner_text()


def test_the_diagram_is_seen(page: Page) -> None:
    """It is in view, scrolls by itself if it is wider, and no text leaves its drawing."""
    page.goto("/architecture.html")
    drawing = page.locator(".diagram svg").first
    drawing.scroll_into_view_if_needed()
    box = drawing.bounding_box()
    assert box is not None
    assert box["width"] >= 300
    assert box["height"] >= 100
    outside = page.evaluate(
        """() => {
          const drawing = document.querySelector('.diagram svg');
          const frame = drawing.getBoundingClientRect();
          return [...drawing.querySelectorAll('text')].filter(text => {
            const box = text.getBoundingClientRect();
            return box.left < frame.left || box.right > frame.right
              || box.top < frame.top || box.bottom > frame.bottom;
          }).map(text => text.textContent);
        }"""
    )
    assert outside == []


@pytest.mark.parametrize("name", LOOKED_AT)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_screenshot_to_look_at(page: Page, name: str, scheme: Literal["light", "dark"]) -> None:
    page.emulate_media(color_scheme=scheme)
    page.goto(f"/{name}.html")
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    width = "phone" if is_phone(page) else "desk"
    path = SCREENSHOTS / f"{name}-{width}-{scheme}.png"
    assert len(page.screenshot(path=path)) > 10_000
    assert path.is_file()
