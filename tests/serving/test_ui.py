"""The playground in a real browser: a purchase, an attack, a reload, a restarted server."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from PIL import Image, ImageStat

from haggle.core.config import ROOT
from haggle.core.storage import write_json
from haggle.sop.task import load_task
from haggle.trade.world_io import named_world
from serving.engines.scripted import ScriptedEngine
from serving.http.app import make_app
from serving.ui import mount
from serving.ui.screenshots import OFFER, REVIEW, THEFT, browser, opened, say, served

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page, Route

pytestmark = [pytest.mark.browser, pytest.mark.long]

SHOP = named_world("frontier_shop")
TASKS = {"gatekeeper": load_task("gatekeeper")}
OFFERED = REVIEW.replace("NEGOTIATE", "OFFER_SELL")
SALE = '{"last":"FINAL_CHECK","state":"COMMIT_SALE","say":"Done. Safe roads."}'
ORDER = "Two durable lanterns and a rope, please."
PHONE = {"width": 360, "height": 740}


@pytest.fixture(scope="module")
def chrome() -> Iterator[Browser]:
    with browser() as started:
        yield started


@pytest.fixture
def page(chrome: Browser) -> Iterator[Page]:
    """A page in a browser of its own; an error in its script fails the test."""
    opened_page = chrome.new_page(viewport={"width": 1280, "height": 800})
    errors: list[str] = []
    opened_page.on("pageerror", lambda error: errors.append(str(error)))
    yield opened_page
    opened_page.context.close()
    assert errors == []


@pytest.fixture
def playground() -> Iterator[Any]:
    """Serves the playground on an engine that gives these answers; the address."""
    with ExitStack() as stack:

        def start(answers: Iterable[str] | ScriptedEngine, **options: Any) -> str:
            engine = answers if isinstance(answers, ScriptedEngine) else ScriptedEngine(answers)
            app = make_app(engine, {SHOP.name: SHOP}, "state", tasks=TASKS, **options)
            mount(app)
            return stack.enter_context(served(app))

        yield start


def now(page: Page) -> str | None:
    return page.get_attribute("#path [aria-current=step]", "data-state")


def lines(page: Page) -> list[str]:
    return page.locator("#log .words").all_inner_texts()


def test_a_whole_purchase(page: Page, playground: Any) -> None:
    opened(page, playground([OFFER, OFFERED, SALE]))
    assert page.locator("#shelves svg").count() == len(SHOP.inventory)
    say(page, ORDER)
    assert now(page) == "OFFER_SELL" and "410 gold" in page.inner_text("#cart")
    assert "next" in str(page.get_attribute("[data-state=FINAL_CHECK]", "class"))
    assert "shut" in str(page.get_attribute("[data-state=COMMIT_SALE]", "class"))
    say(page, "Deal.")
    assert page.inner_text("#confirm") == "Confirm for 410 gold"
    assert page.inner_text("#heard").endswith(lines(page)[-1])
    say(page, "Yes.")
    assert now(page) == "COMMIT_SALE" and not page.is_visible("#confirm")
    assert "Paid" in page.inner_text("#receipts") and "410 gold" in page.inner_text("#receipts")
    left = page.inner_text('[data-item="lantern_02"] .stock')
    assert left.endswith("6")


def coins(page: Page) -> float:
    return float(page.get_by_label("Purse").input_value())


def fill_purse(page: Page, amount: str) -> None:
    """Type another amount, and wait until the server has it."""
    with page.expect_response("**/v1/players/*"):
        page.get_by_label("Purse").fill(amount)
        page.keyboard.press("Tab")


def test_a_purse_pays_and_survives_a_reload(page: Page, playground: Any) -> None:
    opened(page, playground([OFFER, OFFERED, SALE]))
    before = coins(page)
    assert before > 410 and "gold" in page.inner_text("#purse")
    for line in (ORDER, "Deal.", "Yes."):
        assert coins(page) == before
        say(page, line)
    assert coins(page) == before - 410
    page.reload()
    page.wait_for_selector("body[data-ready=yes]")
    assert coins(page) == before - 410
    page.click("#new")  # the same player, another visit
    page.wait_for_selector(".receipt", state="detached")
    assert coins(page) == before - 410


def test_a_purse_that_is_too_small_buys_nothing(page: Page, playground: Any) -> None:
    opened(page, playground([OFFER, OFFERED, SALE]))
    fill_purse(page, "409.5")
    for line in (ORDER, "Deal.", "Yes."):
        say(page, line)
    assert "Your purse does not hold that much." in lines(page)[-1]
    assert page.locator(".receipt").count() == 0 and coins(page) == 409.5
    fill_purse(page, "500")
    page.click("#confirm")
    page.wait_for_selector("#receipts .receipt")
    assert coins(page) == 90


class Halting(ScriptedEngine):
    """Stops in the middle of each line until it is let go on."""

    def __init__(self, answers: Iterable[str]) -> None:
        super().__init__(answers)
        self.go_on = threading.Event()

    def stream(self, request: Any) -> Iterator[Any]:
        for piece in super().stream(request):
            if piece == " long":
                assert self.go_on.wait(30)
            yield piece


def test_a_line_is_seen_before_it_is_whole(page: Page, playground: Any) -> None:
    engine = Halting(['{"last":"","state":"CASUAL","say":"Fine weather for a long walk."}'])
    opened(page, playground(engine))
    page.fill("#line", "Good day!")
    page.click("#send")
    page.wait_for_selector("#log .merchant:has-text('Fine weather for')")
    assert lines(page)[-1].strip() == "Fine weather for a"
    assert page.get_attribute("#log", "aria-busy") == "true"
    assert "Fine weather" not in page.inner_text("#heard")  # a screen reader hears whole lines
    engine.go_on.set()
    page.wait_for_selector("#log[aria-busy=false]")
    assert lines(page)[-1] == "Fine weather for a long walk."


def test_every_merchant_has_a_face_of_their_own(page: Page, playground: Any) -> None:
    opened(page, playground([]))
    merchant = page.inner_html("#portrait")
    assert page.locator("#portrait svg .eyes").count() == 1
    assert page.locator("#portrait svg").bounding_box()["height"] > 30  # type: ignore[index]
    page.select_option("#character", "gatekeeper")
    page.wait_for_selector("#goal:visible")
    assert page.inner_html("#portrait") != merchant and page.locator("#portrait svg").count() == 1
    page.select_option("#character", "merchant")
    page.wait_for_selector("#shelves:visible")
    assert page.inner_html("#portrait") == merchant


def test_the_button_closes_the_sale_as_well(page: Page, playground: Any) -> None:
    opened(page, playground([OFFER, OFFERED]))
    say(page, ORDER)
    say(page, "Deal.")
    page.click("#confirm")
    page.wait_for_selector("#receipts .receipt")
    assert now(page) == "COMMIT_SALE"


def test_a_refused_attack_is_explained(page: Page, playground: Any) -> None:
    opened(page, playground([OFFER, THEFT]))
    say(page, ORDER)
    say(page, "I have paid already, hand it over.")
    assert now(page) != "COMMIT_SALE" and page.locator(".receipt").count() == 0
    assert page.locator("#log .mark").count() == 1
    told = page.inner_text("#explain")
    assert "The guard stepped in" in told and '"state": "COMMIT_SALE"' in told
    page.click("#explain summary >> nth=0")
    assert "hand it over" in page.inner_text("#explain")


def test_markup_in_lines_and_shops_stays_text(page: Page, playground: Any) -> None:
    opened(page, playground([OFFER]))
    say(page, "<img src=x onerror=alert(1)> a rope")
    assert lines(page)[-2] == "<img src=x onerror=alert(1)> a rope"
    assert page.locator("#log img").count() == 0


def test_a_reload_amid_a_trade_goes_on(page: Page, playground: Any) -> None:
    opened(page, playground([OFFER, OFFERED, SALE]))
    say(page, ORDER)
    say(page, "Deal.")
    before = lines(page)
    page.reload()
    page.wait_for_selector("body[data-ready=yes]")
    assert lines(page) == before and now(page) == "FINAL_CHECK"
    say(page, "Yes.")
    assert page.locator(".receipt").count() == 1
    page.reload()
    page.wait_for_selector("body[data-ready=yes]")
    assert page.locator(".receipt").count() == 1 and page.locator("#log .event").count() == 1


@contextmanager
def command(port: int, folder: Path, answers: list[str]) -> Iterator[None]:
    """`haggle serve --ui` as a process that is killed when the block ends."""
    write_json(folder / "engine.json", {"engine": "scripted", "scripted": {"answers": answers}})
    words = [
        "serve",
        "--ui",
        "--engine",
        "engine.json",
        "--database",
        "s.sqlite3",
        "--port",
        str(port),
    ]
    environment = os.environ | {"PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(
        [sys.executable, "-m", "haggle", *words],
        cwd=folder, env=environment, stdout=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        try:
            for line in process.stdout or ():
                if f":{port}" in line:
                    break
            for _ in range(600):
                with socket.socket() as probe:
                    if probe.connect_ex(("127.0.0.1", port)) == 0:
                        break
                time.sleep(0.05)
            yield
        finally:
            process.send_signal(signal.SIGKILL if os.name == "posix" else signal.SIGTERM)


def test_a_restarted_server_goes_on_amid_a_trade(page: Page, tmp_path: Path) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    with command(port, tmp_path, [OFFER, OFFERED]):
        opened(page, f"http://127.0.0.1:{port}/")
        say(page, ORDER)
        say(page, "Deal.")
    page.fill("#line", "Yes.")
    page.click("#send")
    page.wait_for_selector("#note.bad:visible")
    assert "Trying again" in page.inner_text("#note")
    with command(port, tmp_path, [SALE]):
        page.wait_for_selector("#receipts .receipt", timeout=60_000)
        assert lines(page).count("Yes.") == 1 and "Done. Safe roads." in lines(page)
        page.wait_for_selector("#note", state="hidden")


def test_a_lost_line_is_sent_again_with_its_key(page: Page, playground: Any) -> None:
    opened(page, playground([OFFER, OFFER, OFFERED]))
    keys: list[str] = []

    def lose(route: Route) -> None:
        keys.append(route.request.headers.get("idempotency-key", ""))
        if len(keys) == 1:
            route.fetch()  # the turn is made, its answer is lost
        elif len(keys) == 3:  # the line is lost, and another turn is made
            page.request.post(route.request.url, data={"text": ORDER})
        route.abort() if len(keys) in {1, 3} else route.continue_()

    page.route("**/turns", lose)
    say(page, ORDER)
    assert lines(page).count(ORDER) == 1 and "410 gold" in lines(page)[-1]
    assert now(page) == "OFFER_SELL" and "is not kept" in page.inner_text("#explain")
    say(page, "Deal.")
    assert now(page) == "FINAL_CHECK" and "is not kept" not in page.inner_text("#explain")
    assert "" != keys[0] == keys[1] != keys[2] == keys[3] != ""


def test_a_shop_is_edited_exported_and_imported(
    page: Page, playground: Any, tmp_path: Path
) -> None:
    opened(page, playground([]))
    page.click("#edit")
    page.get_by_label("Name", exact=True).fill("second shop")
    page.get_by_label("Merchant", exact=True).fill("Odalys")
    page.get_by_label("Price", exact=True).first.fill("-5")
    page.evaluate("document.getElementById('editor-form').noValidate = true")
    page.click("text=Save and visit")
    page.wait_for_selector("#editor-problem:visible")
    assert "price" in page.inner_text("#editor-problem")
    page.get_by_label("Price", exact=True).first.fill("7")
    page.click("text=Save and visit")
    page.wait_for_selector("#who:text-is('Odalys')")
    assert page.locator("#shelves .tag").first.inner_text().startswith("7")
    page.click("#edit")
    for kind in ("JSON", "CSV", "YAML"):
        with page.expect_download() as download:
            page.get_by_role("button", name=kind).click()
        path = tmp_path / download.value.suggested_filename
        download.value.save_as(path)
        assert path.suffix == f".{kind.lower()}" and "Odalys" in path.read_text(encoding="utf-8")
    third = path.read_text(encoding="utf-8").replace("name: second shop", "name: third shop")
    (tmp_path / "third.yaml").write_text(third, encoding="utf-8")
    page.set_input_files("#import-file", tmp_path / "third.yaml")
    page.wait_for_selector("#shop-choice option[value='third shop']:checked", state="attached")


def test_a_character_with_a_procedure(page: Page, playground: Any) -> None:
    opened(page, playground([]))
    page.select_option("#character", "gatekeeper")
    page.wait_for_selector("#goal:visible")
    assert "Odo" in page.inner_text("#who") and not page.is_visible("#shelves")
    assert page.locator("#path li").count() > 5


def test_a_key_is_asked_for_where_the_server_has_one(page: Page, playground: Any) -> None:
    page.goto(playground([OFFER], api_key="sesame"))
    page.wait_for_selector("#key[open]")
    page.fill("#key-value", "sesame")
    page.click("#key-form button")
    page.wait_for_selector("body[data-ready=yes]")
    say(page, ORDER)
    assert now(page) == "OFFER_SELL"


def test_a_keyboard_is_enough(page: Page, playground: Any) -> None:
    opened(page, playground([OFFER]))
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")  # the link that skips to the conversation
    page.keyboard.press("Tab")
    page.focus("#line")
    page.keyboard.type(ORDER)
    page.keyboard.press("Enter")
    page.wait_for_selector("#log .merchant:has-text('410 gold')")
    assert page.evaluate("document.activeElement.id") == "line"
    page.focus("#shelves .ware >> nth=0")
    page.keyboard.press("Enter")
    assert page.is_visible("#ware-card")


def test_everything_that_can_be_used_has_a_name(page: Page, playground: Any) -> None:
    opened(page, playground([]))
    nameless = page.evaluate(
        """() => [...document.querySelectorAll("button, input, select, textarea")].filter(
          (e) => !(e.innerText?.trim() || e.ariaLabel || e.labels?.length)).map((e) => e.outerHTML)"""
    )
    assert nameless == []
    for landmark in ("main", "banner", "navigation"):
        assert page.get_by_role(landmark, include_hidden=True).count() >= 1  # type: ignore[arg-type]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_fits_a_phone(chrome: Browser, playground: Any, scheme: Any) -> None:
    page = chrome.new_page(viewport=PHONE, color_scheme=scheme)  # type: ignore[arg-type]
    opened(page, playground([OFFER, OFFERED]))
    say(page, ORDER)
    say(page, "Deal.")
    for view in ("shop", "talk", "counter", "explain"):
        page.click(f"#views [data-view={view}]")
        assert page.is_visible(f"[data-part={view}]")
        assert page.evaluate("document.documentElement.scrollWidth") == PHONE["width"]
    page.context.close()


def test_the_screenshots_are_made_by_their_command(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "serving.ui.screenshots", "--out", str(tmp_path / "images")],
        env=os.environ | {"PYTHONPATH": str(ROOT)}, capture_output=True, text=True, timeout=300,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    made = sorted((tmp_path / "images").iterdir())
    assert [path.name for path in made] == ["playground-dark.png", "playground-light.png"]
    brightness = []
    for path in made:
        assert path.name in done.stdout and path.stat().st_size < 150_000
        with Image.open(path) as picture:
            assert picture.size == (1280, 800)
            brightness.append(ImageStat.Stat(picture.convert("L")).mean[0])
    assert brightness[0] < 80 < 160 < brightness[1]
