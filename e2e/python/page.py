"""Looks at the page in a real Chromium, as a person would.

page.py CHROMIUM ADMITCTL ADDR URL FOLDER: the page is at URL, ADDR is the API that
admitctl asks to compare. It says `kill` when the leader is to die, and goes on when a
line comes back. Screenshots are left in FOLDER.
"""

import json
import subprocess
import sys
import time
import urllib.request

from playwright.sync_api import expect, sync_playwright

chromium, admitctl, addr, url, folder = sys.argv[1:]


def api(*args):
    out = subprocess.run([admitctl, "--addr", addr, "-o", "json", *args], check=True, capture_output=True).stdout
    return json.loads(out)


def shown(page, lane, field):
    return page.locator(f"[data-lane={lane}] [data-field={field}]").inner_text().replace(",", "")


def equal_to_the_api(page):
    """The page's values are the API's."""
    pool = next(p for p in api("health")["pools"] if p["pool"] == "email")
    card = page.locator("[data-pool=email]")
    expect(card.locator(".big")).to_have_text(f"{pool['active']} of {pool['max_active']} permits")
    for lane in pool["lanes"]:
        for field in ("depth", "waiting", "active"):
            expect(page.locator(f"[data-lane={lane['lane']}] [data-field={field}]")).to_have_text(str(lane.get(field, 0)))
    for held in pool["held"]:
        chip = page.locator(f".reasons [data-key={held['reason']}]")
        expect(chip).to_have_text(f"{held['reason'].removeprefix('REASON_')} {held['tenants']}")
    for tenant in api("shed", "email")["tenants"]:
        for held in tenant["held"]:
            row = page.locator(f".held [data-key='{tenant['tenant']} {held['lane']}']")
            expect(row).to_contain_text(held["reason"].removeprefix("REASON_"))
            expect(row.locator("td").nth(2)).to_have_text(held.get("due", "0"))
    for tenant in api("tenant", "list", "email")["tenants"]:
        row = page.locator(f".shares [data-key={tenant['share']['id']}]")
        expect(row.locator("td").first).to_contain_text(tenant.get("active", "0"))
    bucket = pool["buckets"][0]
    expect(page.locator(f".buckets [data-key={bucket['bucket']}]")).to_contain_text(f"of {bucket['capacity']}")
    ages = sum(int(n.replace(",", "")) for n in page.locator(".ages .n").all_inner_texts())
    assert ages == int(pool["active"]), f"{ages} permits by age of {pool['active']}"
    assert page.locator(".members tbody tr").count() == len(api("cluster", "status")["members"])


def fits(page, width):
    """Nothing has to be scrolled sideways."""
    page.set_viewport_size({"width": width, "height": 800})
    wide = page.evaluate("document.documentElement.scrollWidth")
    assert wide <= width, f"{wide} pixels wide in a window of {width}"


def with_the_keyboard(page):
    """Tab comes to a held tenant, Enter tells why it is held, Escape goes back."""
    page.locator(".skip").focus()
    for _ in range(40):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.dataset.tenant") == "trial":
            break
    outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
    assert outline != "none", "what has the focus does not show it"
    page.keyboard.press("Enter")
    dialog = page.get_by_role("dialog", name="trial")
    why = dialog.locator("[data-why=marketing]")
    expect(why).to_contain_text("TENANT_CAP")
    expect(why.locator("tr.blocks")).to_contain_text("max_active")
    limits = api("explain", "email", "--tenant", "trial")["limits"]
    assert why.locator("tbody tr").count() == len(limits), "the page shows other limits than explain"
    page.screenshot(path=f"{folder}/tenant.png")
    page.keyboard.press("Escape")
    expect(dialog).to_be_hidden()
    assert page.evaluate("document.activeElement.dataset.tenant") == "trial", "the focus was lost"


def goes_on_by_itself(page, request, patience=0):
    """What changes is shown without anybody doing anything."""
    before = int(shown(page, "transactional", "active"))
    ask = [admitctl, "--addr", addr, "acquire", "email", "--tenant", "acme", "--category", "otp", "--request-id", request]
    until = time.monotonic() + patience
    while subprocess.run(ask, capture_output=True).returncode != 0:
        assert time.monotonic() < until, "nobody decides"
    expect(page.locator("[data-lane=transactional] [data-field=active]")).to_have_text(str(before + 1))


def wait_for_a_past():
    """The node remembers something that is two seconds old."""
    ask = urllib.request.Request(url + "api/admit.v1.StatusService/LaneHistory", b'{"pool": "email"}', {"Content-Type": "application/json"})
    until = time.monotonic() + 30
    while time.monotonic() < until:
        samples = json.load(urllib.request.urlopen(ask, timeout=5)).get("samples", [])
        if samples and float(samples[0]["ago"].removesuffix("s")) > 2:
            return
        time.sleep(0.2)
    raise AssertionError("the node remembers nothing")


def shows_the_past(page):
    """A page that was opened a moment ago shows what was before."""
    back = int(page.locator("[data-lane=transactional] .chart").get_attribute("data-goes-back"))
    open_for = page.evaluate("performance.now()") / 1000
    assert back > open_for + 1, f"the chart goes {back} s back, and the page is open for {open_for} s"


def look(browser):
    page = browser.new_page(viewport={"width": 1280, "height": 1400}, color_scheme="light")
    wrong = []
    page.on("pageerror", lambda e: wrong.append(str(e)))
    wait_for_a_past()
    page.goto(url)
    expect(page.locator(".members tbody tr").first).to_be_visible()
    shows_the_past(page)
    equal_to_the_api(page)
    page.screenshot(path=f"{folder}/light.png")
    with_the_keyboard(page)
    goes_on_by_itself(page, "first")
    light = page.evaluate("getComputedStyle(document.body).backgroundColor")
    page.emulate_media(color_scheme="dark")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") != light, "the dark page is light"
    page.screenshot(path=f"{folder}/dark.png")
    for width in (320, 390, 768):
        fits(page, width)
    page.screenshot(path=f"{folder}/phone.png", full_page=True)
    page.locator(".held [data-tenant=trial]").first.click()
    expect(page.locator("[data-why=marketing]")).to_be_visible()
    fits(page, 390)
    page.keyboard.press("Escape")

    print("kill", flush=True)
    sys.stdin.readline()
    goes_on_by_itself(page, "second", patience=20)
    expect(page.locator(".members .gone")).to_have_count(1, timeout=10000)
    expect(page.locator(".live")).to_have_class("live on", timeout=10000)
    assert not wrong, wrong


with sync_playwright() as playwright:
    chrome = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
    expect.set_options(timeout=5000)
    look(chrome)
    chrome.close()
