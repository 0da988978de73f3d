"""Record the page in a browser while a model solves an example: an animated GIF for the documentation.

    python scripts/record_page.py --example test-20 --output docs/page/try.gif

Needs chromium with chromedriver, and selenium. The page is stopped while a picture of it is taken, so that
the text of a small model can be seen as it grows; its seconds are longer than without a recording.
"""

import io
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from PIL import Image

from cocos.commands.runner import run_command
from cocos.config.command_line import PlainParser

SIZE = (1060, 720)
SLICE_S = 0.07  # that the page runs between two pictures
TIMEOUT_S = 300
TEXT_OF_PAGE = """
const page = document.querySelector('[data-testid="stMain"]');
if (page.innerText.includes('attempt 2')) page.scrollTop = page.scrollHeight;
return page.innerText;
"""


def start_browser() -> Any:
    """Return a headless Chromium."""
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium")
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"):
        options.add_argument(argument)
    service = webdriver.ChromeService(shutil.which("chromedriver"))
    browser = webdriver.Chrome(options=options, service=service)
    metrics = {"width": SIZE[0], "height": SIZE[1], "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    return browser


def wait_for_port(port: int) -> None:
    """Wait until the page listens."""
    for _ in range(TIMEOUT_S):
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(1)
    raise ValueError(f"nothing listens on port {port} after {TIMEOUT_S} s")


def choose(browser: Any, example: str) -> None:
    """Choose an example by the beginning of its name, when the form is there."""
    from selenium.webdriver.common.by import By
    from selenium.webdriver.common.keys import Keys
    from selenium.webdriver.support.wait import WebDriverWait

    selector = (By.CSS_SELECTOR, "[data-testid=stSelectbox] input")
    WebDriverWait(browser, TIMEOUT_S).until(lambda found: len(found.find_elements(*selector)) > 2)
    time.sleep(5)  # the fields are drawn once more when the models are known
    box = browser.find_elements(*selector)[1]
    box.click()
    box.send_keys(f"{example}:")
    time.sleep(2)
    box.send_keys(Keys.ENTER)
    time.sleep(3)


def record(browser: Any, server: int) -> list[Image.Image]:
    """Press Solve, and return the different pictures of the page until the attempts have ended."""
    frames: list[Image.Image] = []

    texts = [""]

    def picture(is_due: bool = False) -> None:
        text = browser.execute_script(TEXT_OF_PAGE)
        if is_due or text != texts[-1]:
            texts.append(text)
            frames.append(Image.open(io.BytesIO(browser.get_screenshot_as_png())).convert("RGB"))

    picture()
    end = time.monotonic() + TIMEOUT_S
    browser.find_element("xpath", "//button[.//p[text()='Solve']]").click()
    while "olved at" not in (page := browser.page_source) and "ot solved" not in page:
        if time.monotonic() > end:
            raise ValueError(f"the attempts have not ended after {TIMEOUT_S} s")
        os.kill(server, signal.SIGCONT)
        time.sleep(SLICE_S)
        os.kill(server, signal.SIGSTOP)
        time.sleep(0.1)  # the browser draws what it got
        picture()
    os.kill(server, signal.SIGCONT)
    for _ in range(2):  # the first scrolls to the end
        time.sleep(2)
        picture(is_due=True)
    return frames


def save(frames: list[Image.Image], path: Path) -> None:
    """Save an endless animation of 16 seconds, the last six of which are the last picture's."""
    small = [frame.quantize(48, dither=Image.Dither.NONE) for frame in frames]
    durations = [10_000 // (len(small) - 1)] * (len(small) - 1) + [6000]
    small[0].save(path, save_all=True, append_images=small[1:], duration=durations, loop=0, optimize=True)
    print(f"{path}: {len(frames)} pictures, {path.stat().st_size // 1024} KB")


def main() -> None:
    """Start the page, record it, and end it."""
    parser = PlainParser(description=__doc__)
    parser.add_argument("--example", default="test-20", help="problem of data/toy/test.jsonl")
    parser.add_argument("--roots", default="outputs/demo", help="folder with the model, the only one in it")
    parser.add_argument("--port", default="8611", help="port of the page")
    parser.add_argument("--output", type=Path, required=True, help="file of the GIF")
    args = parser.parse_args()
    words = ["page", "--port", args.port, "--roots", args.roots, "--examples", "data/toy/test.jsonl"]
    server = subprocess.Popen([sys.executable, "-m", "cocos", *words])
    browser = start_browser()
    try:
        wait_for_port(int(args.port))
        browser.get(f"http://127.0.0.1:{args.port}")
        choose(browser, args.example)
        save(record(browser, server.pid), args.output)
    finally:
        browser.quit()
        os.kill(server.pid, signal.SIGCONT)
        server.terminate()


if __name__ == "__main__":
    run_command(main)
