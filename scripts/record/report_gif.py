"""Animated GIF of a visit to a report.html in Chromium, 1100 x 700 pixels.

    python scripts/record/report_gif.py outputs/demo/seed0/report/report.html --output docs/report.gif

The visit shows the numbers and charts, lists the trajectories of the last run that are repaired, opens the
first, and changes the view of its second program. Needs chromium with chromedriver.
"""

import argparse
import io
import shutil
from pathlib import Path

from PIL import Image, ImageDraw
from selenium import webdriver
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.ui import Select
from terminal_gif import save

from cocos.entry_point import run_command

WIDTH, HEIGHT, NUM_COLOURS = 1100, 700, 128
EASED = (0.08, 0.3, 0.7, 0.92, 1)  # a movement starts and ends slowly
STEP_S, CLICK_S, READ_S, LAST_S = 0.06, 0.9, 1.8, 3.0
POINTER = ((0, 0), (0, 17), (4, 13), (7, 20), (10, 19), (7, 12), (12, 12))


class Visit:
    """Pictures of a page, with the pointer that screenshots lack."""

    def __init__(self, browser: webdriver.Chrome) -> None:
        self.browser = browser
        self.pictures: list[Image.Image] = []
        self.durations_s: list[float] = []
        self.pointer = (WIDTH - 200.0, HEIGHT - 190.0)

    def find(self, selector: str) -> list[WebElement]:
        """Return the elements that are displayed."""
        return [e for e in self.browser.find_elements("css selector", selector) if e.is_displayed()]

    def shoot(self, seconds: float) -> None:
        """Take a picture that is shown for so long."""
        picture = Image.open(io.BytesIO(self.browser.get_screenshot_as_png())).convert("RGB")
        shape = [(self.pointer[0] + x, self.pointer[1] + y) for x, y in POINTER]
        ImageDraw.Draw(picture).polygon(shape, "black", "white")
        self.pictures.append(picture)
        self.durations_s.append(seconds)

    def scroll(self, element: WebElement) -> None:
        """Scroll until the element is at the top."""
        start, end = self.browser.execute_script("return scrollY"), element.location["y"] - 12
        for share in EASED:
            self.browser.execute_script("scrollTo(0, arguments[0])", start + share * (end - start))
            self.shoot(STEP_S)
        self.shoot(READ_S)

    def click(self, element: WebElement, seconds: float) -> None:
        """Move the pointer to the element and click it; a selection takes its last choice."""
        box = self.browser.execute_script("return arguments[0].getBoundingClientRect()", element)
        (x, y), to_x, to_y = self.pointer, box["x"] + min(30, box["width"] / 2), box["y"] + box["height"] / 2
        for share in EASED:
            self.pointer = (x + share * (to_x - x), y + share * (to_y - y))
            self.shoot(STEP_S)
        if element.tag_name == "select":
            Select(element).select_by_index(len(Select(element).options) - 1)
        else:
            element.click()
        self.shoot(seconds)


def play(visit: Visit) -> None:
    """Show the numbers, the charts, and a trajectory that is repaired."""
    visit.shoot(READ_S)
    for section in visit.find("#comparison, section:has(+ #trajectories), #trajectories"):
        visit.scroll(section)  # the section before the trajectories is that of the last run
    for control in visit.find("#run, .flows [value=wr]")[::-1]:
        visit.click(control, CLICK_S)
    if not (repaired := visit.find(".trajectory")):
        raise ValueError("the last run of the page repaired no program; record another page")
    visit.click(repaired[0].find_element("css selector", "summary"), CLICK_S)
    visit.scroll(repaired[0])
    changes, program, *_ = visit.find(".turn:nth-child(2) .views button")
    visit.click(program, CLICK_S)
    visit.click(changes, LAST_S)


def main() -> None:
    """Visit the page and write the picture."""
    layout = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=layout)
    parser.add_argument("page", type=Path, help="report.html")
    parser.add_argument("--output", type=Path, required=True, help="GIF to write")
    options = parser.parse_args()
    address = options.page.resolve(strict=True).as_uri()
    chrome = webdriver.ChromeOptions()
    chrome.binary_location = shutil.which("chromium") or ""
    for argument in ("--headless=new", "--no-sandbox", "--hide-scrollbars"):
        chrome.add_argument(argument)
    with webdriver.Chrome(chrome, webdriver.ChromeService(shutil.which("chromedriver"))) as browser:
        size = {"width": WIDTH, "height": HEIGHT, "deviceScaleFactor": 1, "mobile": False}
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        browser.get(address)
        visit = Visit(browser)
        play(visit)
    sheet = Image.new("RGB", (WIDTH, HEIGHT * len(visit.pictures)))
    for number, picture in enumerate(visit.pictures):
        sheet.paste(picture, (0, HEIGHT * number))
    palette = sheet.quantize(NUM_COLOURS)  # one for all pictures: what does not change keeps its colour
    pictures = [p.quantize(palette=palette, dither=Image.Dither.NONE) for p in visit.pictures]
    save(options.output, pictures, visit.durations_s)


if __name__ == "__main__":
    run_command(main)
