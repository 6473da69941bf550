"""A headless Chromium for the tests: loads pages from files, and tells what they asked for and complained of.

Owns one browser process with a profile folder of its own; both are gone after stop(). Not for several
threads at once.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from selenium import webdriver
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service

_FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage",
    "--hide-scrollbars",
)  # fmt: skip


@dataclass
class Browser:
    """A running browser; stop() it."""

    driver: webdriver.Chrome
    profile: Path

    @classmethod
    def start(cls) -> Browser:
        """Start Debian's Chromium with an empty profile and the logs of its console and of its network on."""
        driver_path, browser_path = shutil.which("chromedriver"), shutil.which("chromium")
        assert (
            driver_path and browser_path
        ), "Chromium is not installed, and the dashboard is tested in it: apt-get install chromium chromium-driver"
        profile = Path(tempfile.mkdtemp(prefix="tidemark-chromium-"))
        options = Options()
        options.binary_location = browser_path
        for flag in (*_FLAGS, f"--user-data-dir={profile}", "--window-size=1360,1000"):
            options.add_argument(flag)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        service = Service(driver_path, log_path=os.devnull)
        try:
            return cls(webdriver.Chrome(service=service, options=options), profile)
        except BaseException:
            shutil.rmtree(profile, ignore_errors=True)
            raise

    def open(self, page: Path) -> None:
        """Load a page from its file, with the logs of the page before it forgotten."""
        self.take_log("browser")
        self.take_log("performance")
        self.driver.get(page.as_uri())

    def requests(self) -> list[str]:
        """Return every URL that was asked for since the page was opened."""
        events = [json.loads(entry["message"])["message"] for entry in self.take_log("performance")]
        sent = [event for event in events if event["method"] == "Network.requestWillBeSent"]
        return [event["params"]["request"]["url"] for event in sent]

    def complaints(self) -> list[str]:
        """Return what the console said since the page was opened."""
        return [entry["message"] for entry in self.take_log("browser")]

    def evaluate(self, expression: str, *arguments: Any) -> Any:
        """Return the value of a JavaScript expression in the page."""
        return self.driver.execute_script(f"return {expression}", *arguments)

    def use_scheme(self, scheme: str) -> None:
        """Let the page believe that the reader prefers `light` or `dark`."""
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})

    def use_width(self, width: int, height: int = 1000) -> None:
        """Set the size of the window in CSS pixels."""
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)

    def screenshot(self, path: Path) -> None:
        """Write a picture of the whole page, not only of what the window shows."""
        import base64

        picture = self.driver.execute_cdp_cmd("Page.captureScreenshot", {"captureBeyondViewport": True})
        path.write_bytes(base64.b64decode(picture["data"]))

    def take_log(self, kind: str) -> list[dict[str, Any]]:
        """Return a log's entries since it was last taken."""
        return list(self.driver.get_log(kind))

    def stop(self) -> None:
        """End the browser and remove its profile."""
        try:
            self.driver.quit()
        finally:
            shutil.rmtree(self.profile, ignore_errors=True)
