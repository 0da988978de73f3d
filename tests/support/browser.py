"""A headless Chromium from the distribution, and what tests read in it; it downloads nothing."""

import shutil

import pytest

from tests.support.waiting import wait_until


def start_browser():
    """Start a browser; skip the test if the machine has none."""
    chromium, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if not chromium or not driver:
        pytest.skip("no chromium with chromedriver: apt-get install chromium chromium-driver")
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    return webdriver.Chrome(options=options, service=webdriver.ChromeService(driver))


def resize(browser, width, height=900):
    metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)


def choose_scheme(browser, scheme):
    """Ask for the `light` or the `dark` scheme, as an operating system does."""
    feature = {"name": "prefers-color-scheme", "value": scheme}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [feature]})


CONTROLS = {"button", "checkbox", "combobox", "link", "radio", "searchbox", "slider", "spinbutton", "textbox"}
CONTROLS |= {"DisclosureTriangle", "PopUpButton", "ToggleButton", "switch", "tab", "img", "image"}


def unnamed_controls(browser):
    """Return the controls and pictures that a screen reader can only call by their kind."""

    def shown():
        nodes = browser.execute_cdp_cmd("Accessibility.getFullAXTree", {})["nodes"]
        found = [node for node in nodes if not node["ignored"] and node["role"]["value"] in CONTROLS]
        return found if len(found) >= 3 else None  # a page without controls proves nothing

    known = wait_until(shown, timeout_s=30)
    return [node for node in known if not node.get("name", {}).get("value", "").strip()]


def repeat_until(act):
    """Call a function that acts on the page until it returns a true value.

    An element may be replaced or moved at any moment; then the act fails, and is repeated.
    """
    from selenium.common.exceptions import WebDriverException

    def has_acted():
        try:
            return act()
        except (WebDriverException, AssertionError):
            return False

    return wait_until(has_acted)
