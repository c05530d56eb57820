//! The dashboard in a real browser, in front of a real server: its figures, its bounds, and who sees it.
//! Screenshots are left in the target folder, `tmp/dashboard`.

#![forbid(unsafe_code)]

use outboard_e2e::{
    Backend, Browser, Child, Configured, Launch, Request, Server, Wire, eventually,
};
use serde_json::Value;
use std::net::SocketAddr;
use std::path::Path;

const TABLES: &str =
    "[log.slow]\npath = \"off.log\"\nthreshold = \"100ms\"\n[pool]\nmin = 2\nmax = 2\n";
const SLOW: &str = "/index.php?slow";

fn site() -> Configured {
    Configured::serving("dashboard", TABLES)
}

/// `outboard dashboard` and the URL that it prints.
struct Dashboard {
    url: String,
    _child: Child,
}

impl Dashboard {
    #[track_caller]
    fn of(site: &Configured) -> Dashboard {
        let launch =
            Launch::new(&Server::binary().to_string_lossy()).args(["dashboard", "--admin"]);
        let child = launch.arg(site.admin_socket()).start();
        let url = |line: &str| line.strip_prefix("dashboard: ").map(str::to_owned);
        let url = child.wait_for(url).unwrap_or_else(|output| panic!("{output}"));
        Dashboard { url, _child: child }
    }

    fn address(&self) -> SocketAddr {
        let (_, rest) = self.url.split_once("://").expect("a URL");
        rest.split_once("/#").expect("a token").0.parse().expect("an address")
    }

    fn token(&self) -> &str {
        self.url.split_once("#token=").expect("a token").1
    }

    /// A browser that shows the page, with figures.
    #[track_caller]
    fn open(&self) -> Browser {
        let mut browser = Browser::start();
        browser.visit(&self.url);
        browser.wait_until(RUNNING);
        browser
    }
}

const RUNNING: &str = "document.querySelector('#state').dataset.state === 'running'";

/// The text of an element, in one line.
#[track_caller]
fn text(browser: &mut Browser, selector: &str) -> String {
    let script = format!("document.querySelector({selector:?})?.innerText ?? ''");
    let text = browser.evaluate(&script).as_str().expect("a text").to_owned();
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The cells of a table's rows.
fn rows(browser: &mut Browser, section: &str) -> Vec<Vec<String>> {
    let rows = browser.evaluate(&format!(
        "[...document.querySelectorAll('#{section} tbody tr')].map((row) =>
            [...row.cells].map((cell) => cell.textContent))"
    ));
    let cells = |row: &Value| row.as_array().expect("a row").iter().map(string).collect();
    rows.as_array().expect("rows").iter().map(cells).collect()
}

fn string(value: &Value) -> String {
    value.as_str().expect("a text").to_owned()
}

fn picture(browser: &mut Browser, name: &str) {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("dashboard");
    browser.screenshot(&folder.join(format!("{name}.png")));
}

#[test]
fn the_figures_are_those_of_the_status() {
    let site = site();
    let mut client = site.client();
    for _ in 0..40 {
        client.get("/index.php").expect(200).saying("page");
    }
    client.get("/index.php?fails").expect(500);
    client.get("/%00").expect(400);
    client.get(SLOW).expect(200);
    let held = site.hold();
    let dashboard = Dashboard::of(&site);
    let mut browser = dashboard.open();
    let status = site.status();
    let requests = status["requests"].as_u64().expect("a number");
    assert!(requests >= 43, "{status}");
    let tiles = text(&mut browser, "#tiles");
    assert!(tiles.contains(&format!("{requests} since the start")), "{tiles}");
    assert!(tiles.contains("1 of 2") && tiles.contains("1 × 5xx since the start"), "{tiles}");
    let mut pids: Vec<String> = status["pools"][0]["workers"]
        .as_array()
        .expect("workers")
        .iter()
        .map(|worker| worker["pid"].to_string())
        .collect();
    let workers = rows(&mut browser, "pools");
    let mut shown: Vec<String> = workers.iter().map(|row| row[0].clone()).collect();
    pids.sort();
    shown.sort();
    assert_eq!(shown, pids);
    let busy = workers.iter().find(|row| row[0] == held.pid().to_string()).expect("it is shown");
    assert!(busy[1] == "busy" && busy[3].starts_with("GET /gated.php?gate="), "{busy:?}");
    let latency = status["latencies"].as_array().expect("rows").iter();
    let all = latency.filter(|row| row["kind"] == "all").map(|row| row["count"].to_string());
    let kinds = rows(&mut browser, "kinds");
    assert_eq!(
        kinds.iter().filter(|row| row[0] == "site").map(|row| row[1].clone()).collect::<Vec<_>>(),
        all.collect::<Vec<_>>()
    );
    let reasons = rows(&mut browser, "refusals");
    assert!(reasons.iter().any(|row| row[1] == "400" && row[2] == "1"), "{reasons:?}");
    assert_eq!(browser.complaints("http"), Vec::<String>::new());
    picture(&mut browser, "light");
    held.finishes();
    browser.wait_until(
        "[...document.querySelectorAll('#pools tbody tr')].every((row) => row.cells[1].textContent === 'idle')",
    );
}

#[test]
fn a_slow_request_is_shown_with_its_backtrace() {
    let site = site();
    let dashboard = Dashboard::of(&site);
    let mut browser = dashboard.open();
    let none = text(&mut browser, "#slow");
    assert!(
        none.contains("No request has taken PHP or another server longer than 100 ms"),
        "{none}"
    );
    site.client().get(SLOW).expect(200);
    browser.wait_until("!!document.querySelector('#slow details')");
    browser.evaluate("document.querySelector('#slow summary').click()");
    let slow = text(&mut browser, "#slow details");
    assert!(slow.contains("GET /index.php?slow") && slow.contains("loads_orders"), "{slow}");
    assert!(slow.contains("renders_report"), "{slow}");
    // It stays open when new figures come.
    site.client().get(SLOW).expect(200);
    browser.wait_until("document.querySelectorAll('#slow details').length === 2");
    assert_eq!(browser.evaluate("document.querySelectorAll('#slow details[open]').length"), 1);
}

#[test]
fn rates_and_durations_are_drawn_while_requests_come() {
    let site = site();
    let dashboard = Dashboard::of(&site);
    let mut browser = dashboard.open();
    let mut client = site.client();
    let drawn = "document.querySelector('#rates .a2').getAttribute('d').length > 20
        && document.querySelector('#durations .l2').getAttribute('d').length > 20
        && /2xx \\d/.test(document.querySelector('#rates output').textContent)";
    eventually("both charts are drawn", || {
        client.get("/index.php").expect(200);
        browser.evaluate(drawn) == true
    });
    let paths = rows(&mut browser, "paths");
    assert_eq!(paths[0][0], "/index.php", "{paths:?}");
    let label = browser.evaluate("document.querySelector('#rates svg').getAttribute('aria-label')");
    assert!(string(&label).starts_with("Responses per second, now: 2xx"), "{label}");
    browser.prefer("dark");
    picture(&mut browser, "dark");
}

/// What an operator asks, and what of the page answers it.
#[test]
fn ten_questions_of_an_operator_have_their_answer_on_the_page() {
    let tables = format!(
        "{TABLES}[app.site.page_cache]\nmode = \"on\"\n\
         [app.shop]\nroot = \"www\"\npath = \"/shop\"\n"
    );
    let site = Configured::serving("dashboard", &tables);
    let dashboard = Dashboard::of(&site);
    let mut browser = dashboard.open();
    let mut client = site.client();
    let mut answers = |question: &str, script: &str| {
        eventually(question, || {
            client.get("/shop/index.php?computes").expect(200);
            (0..3).for_each(|_| drop(client.get("/index.php").expect(200)));
            client.get("/index.php?throws").expect(500);
            client.get(SLOW).expect(200);
            browser.evaluate(script) == true
        });
    };
    let cell = |section: &str, row: usize, cell: usize| {
        format!(
            "(document.querySelectorAll('#{section} tbody tr')[{row}]?.cells[{cell}].textContent ?? '')"
        )
    };
    let tile = |name: &str| {
        format!(
            "([...document.querySelectorAll('#tiles > div')].find((tile) => tile.textContent.startsWith({name:?}))?.textContent ?? '')"
        )
    };
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").expect("a name");
    let facts = "document.querySelector('#facts').textContent";
    answers(
        "which machine is it?",
        &format!("{facts}.startsWith({:?})", format!("on {} ·", host.trim())),
    );
    answers(
        "how busy is it, and who is it?",
        &format!(r"/\d %.*PHP [1-9]\d* %, Outboard/.test({})", tile("Processor")),
    );
    answers(
        "is there memory left?",
        &format!(r"/iB, .*iB of .*iB available/.test({})", tile("Memory of PHP")),
    );
    answers(
        "which app takes the processor?",
        &format!("{} === 'shop' && /^[1-9]/.test({})", cell("apps", 0, 0), cell("apps", 0, 4)),
    );
    answers("what is requested most?", &format!("{} === 'site: /index.php'", cell("paths", 0, 0)));
    answers(
        "what fails, and why?",
        &format!(
            "{}.includes('the till is empty') && Number({}) > 1",
            cell("errors", 0, 0),
            cell("errors", 0, 2)
        ),
    );
    answers(
        "which request was slow, and where?",
        "[...document.querySelectorAll('#slow pre')].some((one) => one.textContent.includes('loads_orders'))",
    );
    answers(
        "does a request wait?",
        &format!("{}.includes('no request waits')", tile("PHP workers busy")),
    );
    answers(
        "does the page cache help?",
        &format!("/%/.test({}) && Number({}) > 0", cell("caches", 0, 1), cell("caches", 0, 2)),
    );
    browser.evaluate("document.querySelector('#durations svg').focus()");
    browser.evaluate(
        "document.querySelector('#durations svg').dispatchEvent(new KeyboardEvent('keydown', { key: 'ArrowLeft', bubbles: true }))",
    );
    let then = text(&mut browser, "#durations output");
    assert!(then.contains(':') && then.contains("99 %"), "how long did it take then? {then}");
    for (order, first) in [("slow", "shop: /shop/index.php"), ("php", "shop: /shop/index.php")] {
        browser.evaluate(&format!("document.querySelector('#order input[value={order}]').click()"));
        assert_eq!(rows(&mut browser, "paths")[0][0], first, "{order}");
    }
    for width in [390, 1_000, 1_900] {
        browser.resize(width, 1_000);
        assert_eq!(
            browser.evaluate("document.documentElement.scrollWidth"),
            width,
            "no part is cut"
        );
        picture(&mut browser, &format!("questions-{width}"));
    }
    assert_eq!(browser.complaints("http"), Vec::<String>::new());
}

#[test]
fn the_charts_show_one_app_or_all() {
    let tables = format!("{TABLES}[app.shop]\nroot = \"www\"\npath = \"/shop\"\n");
    let site = Configured::serving("dashboard", &tables);
    let dashboard = Dashboard::of(&site);
    let mut browser = dashboard.open();
    assert_eq!(browser.evaluate("document.querySelector('#app-label').hidden"), true);
    let mut client = site.client();
    eventually("both apps have a history", || {
        client.get("/index.php").expect(200);
        client.get("/shop/index.php?fails").expect(500);
        browser.evaluate("document.querySelector('#app').options.length") == 3
    });
    let mut choose = |name: &str| {
        browser.evaluate(&format!(
            "{{ const app = document.querySelector('#app'); app.value = {name:?};
               app.dispatchEvent(new Event('change')); }}"
        ));
        let label = "document.querySelector('#rates svg').getAttribute('aria-label')";
        let drawn = format!(
            "{label}.includes({:?}) && {label}.includes(' of ') === {}",
            if name == "shop" { "5xx" } else { "2xx" },
            !name.is_empty()
        );
        eventually("its chart is drawn", || {
            client.get("/index.php").expect(200);
            client.get("/shop/index.php?fails").expect(500);
            browser.evaluate(&drawn) == true
        });
        string(&browser.evaluate(label))
    };
    let shop = choose("shop");
    assert!(shop.starts_with("Responses per second of shop, now: 5xx"), "{shop}");
    let site_alone = choose("site");
    assert!(site_alone.contains("2xx") && !site_alone.contains("5xx"), "{site_alone}");
    let all = choose("");
    assert!(all.contains("2xx") && all.contains("5xx"), "{all}");
    choose("shop");
    picture(&mut browser, "app");
}

#[test]
fn a_proxied_request_that_waits_long_is_shown_with_its_server() {
    let backend = Backend::start();
    let proxy = format!(
        "{TABLES}[[app.site.proxy]]\npath = \"/silent\"\nupstream = \"{}\"\ntimeout = \"200ms\"\n",
        backend.url()
    );
    let site = Configured::serving("dashboard", &proxy);
    site.client().get("/silent").expect(504);
    let dashboard = Dashboard::of(&site);
    let mut browser = dashboard.open();
    browser.wait_until("!!document.querySelector('#slow details')");
    browser.evaluate("document.querySelector('#slow summary').click()");
    let slow = text(&mut browser, "#slow details");
    assert!(slow.contains("GET /silent") && slow.contains("It waited for "), "{slow}");
}

#[test]
fn what_clients_send_is_text() {
    let site = site();
    let dashboard = Dashboard::of(&site);
    let mut browser = dashboard.open();
    let hostile =
        "/<script>document.title='taken'</script><img/src=x/onerror=document.title='taken'>";
    let escaped = hostile.replace('<', "%3C").replace('>', "%3E");
    eventually("the path is shown", || {
        let mut wire = site.wire();
        for target in [hostile, &escaped, &format!("{SLOW}&{hostile}")] {
            wire.send(format!("GET {target} HTTP/1.1\r\nHost: a\r\nUser-Agent: <i>\r\n\r\n"));
        }
        drop(wire);
        let target = format!("{SLOW}&{}", escaped);
        site.client().get(&target);
        site.client().send(&Request::get(&escaped));
        rows(&mut browser, "paths").iter().any(|row| row[0].contains("script"))
            && browser.evaluate("!!document.querySelector('#slow details')") == true
    });
    let inserted = "document.querySelectorAll('main script, main img').length";
    assert_eq!(browser.evaluate(inserted), 0);
    assert!(!string(&browser.evaluate("document.title")).contains("taken"));
    assert_eq!(browser.complaints("http"), Vec::<String>::new());
}

#[test]
fn the_page_survives_a_restart_of_the_server() {
    let site = site();
    site.client().get("/index.php").expect(200);
    let dashboard = Dashboard::of(&site);
    let mut browser = dashboard.open();
    let before = text(&mut browser, "#pools tbody");
    let docroot = site.into_killed();
    browser.wait_until("document.querySelector('#state').dataset.state === 'lost'");
    browser
        .wait_until("document.querySelector('#notice').textContent.includes('does not respond')");
    assert_eq!(text(&mut browser, "#pools tbody"), before, "the last figures stay");
    picture(&mut browser, "lost");
    let site = Configured::start(docroot, &Configured::text(TABLES));
    browser.wait_until(RUNNING);
    browser.wait_until("document.querySelector('#notice').textContent.includes('was restarted')");
    let pid = site.status()["pools"][0]["workers"][0]["pid"].to_string();
    browser
        .wait_until(&format!("document.querySelector('#pools tbody').textContent.includes({pid})"));
}

#[test]
fn a_telephone_shows_it_without_scrolling_sideways() {
    let site = site();
    let long = format!("/index.php/{}?{}", "a".repeat(300), "b".repeat(2_000));
    let dashboard = Dashboard::of(&site);
    let mut browser = dashboard.open();
    browser.resize(360, 740);
    eventually("a long path and a slow request are shown", || {
        site.client().get(&long);
        site.client().get(&format!("{SLOW}&{}", "c".repeat(400)));
        let shown =
            "!!document.querySelector('#paths td') && !!document.querySelector('#slow details')";
        browser.evaluate(shown) == true
    });
    browser.evaluate("document.querySelector('#slow summary').click()");
    for scheme in ["dark", "light"] {
        browser.prefer(scheme);
        assert_eq!(browser.evaluate("document.documentElement.scrollWidth"), 360);
        picture(&mut browser, &format!("telephone-{scheme}"));
    }
}

#[test]
fn updates_can_be_paused() {
    let site = site();
    let dashboard = Dashboard::of(&site);
    let mut browser = dashboard.open();
    browser.evaluate("document.querySelector('#pause').click()");
    browser.wait_until("document.querySelector('#state').textContent === 'running, paused'");
    let pressed = "document.querySelector('#pause').getAttribute('aria-pressed')";
    assert_eq!(browser.evaluate(pressed), "true");
    site.client().get("/index.php").expect(200);
    browser.evaluate("document.querySelector('#pause').click()");
    browser
        .wait_until("document.querySelector('#tiles').textContent.includes('1 since the start')");
}

#[test]
fn the_flame_graph_shows_functions_of_php() {
    let site = Configured::serving("profile", "");
    let dashboard = Dashboard::of(&site);
    let mut browser = dashboard.open();
    browser.evaluate("document.querySelector('#flame button').click()");
    browser.wait_until("document.querySelector('#flame .note').textContent.startsWith('Sampling')");
    let mut client = site.client();
    eventually("the samples are taken", || {
        client.get("/index.php");
        browser.evaluate("document.querySelectorAll('#frames button').length > 1") == true
    });
    let names = text(&mut browser, "#frames");
    assert!(names.contains("site"), "{names}");
    picture(&mut browser, "flame");
}

// ---- who sees it

fn exchange(address: SocketAddr, request: &str) -> String {
    let mut wire = Wire::open(address);
    wire.send(request);
    wire.finish_sending();
    wire.to_end()
}

fn get(address: SocketAddr, target: &str, fields: &str) -> String {
    exchange(
        address,
        &format!("GET {target} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n{fields}\r\n"),
    )
}

#[test]
fn the_url_is_valid_once_and_data_needs_its_key() {
    let site = site();
    let dashboard = Dashboard::of(&site);
    let (address, token) = (dashboard.address(), dashboard.token());
    assert!(get(address, "/", "").starts_with("HTTP/1.1 200"), "the page has no secrets");
    for key in ["", "Authorization: Bearer \r\n", &format!("Authorization: Bearer {token}\r\n")] {
        assert!(get(address, "/dashboard/state", key).starts_with("HTTP/1.1 401"), "{key}");
    }
    let mut first = dashboard.open();
    assert_eq!(first.evaluate("location.hash"), "", "the token does not stay in the address");
    first.visit(&format!("http://{address}/"));
    first.wait_until(RUNNING);
    let mut second = Browser::start();
    second.visit(&dashboard.url);
    second.wait_until("document.querySelector('#notice').textContent.includes('needs a new link')");
    let key = string(&first.evaluate("sessionStorage.getItem('outboard')"));
    let key = format!("Authorization: Bearer {key}\r\n");
    assert!(get(address, "/dashboard/state", &key).starts_with("HTTP/1.1 200"));
    for target in ["/status", "/metrics", "/stop", "/dashboard/../stop", "/cache/purge?all=true"] {
        assert!(get(address, target, &key).starts_with("HTTP/1.1 404"), "{target}");
    }
    let with_key = |fields: &str| get(address, "/dashboard/state", &format!("{key}{fields}"));
    let own = format!("Origin: http://{address}\r\n");
    assert!(with_key(&own).starts_with("HTTP/1.1 200"));
    let two = format!("{own}Origin: http://evil.example\r\n");
    for fields in ["Origin: http://evil.example\r\n", "Sec-Fetch-Site: cross-site\r\n", &two] {
        assert!(with_key(fields).starts_with("HTTP/1.1 403"), "{fields}");
    }
    let rebound = format!(
        "GET /dashboard/state HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n{key}\r\n"
    );
    assert!(exchange(address, &rebound).starts_with("HTTP/1.1 403"));
}

#[test]
fn an_address_of_its_own_needs_a_password() {
    // `open sesame`, with bcrypt.
    let hash = "$2y$08$VGnAzOxaXBBENiGljOQ27OFthe34VsFItvyAI/W6Otmltmx8/yshS";
    let text = format!(
        "{TABLES}[admin.dashboard]\nlisten = \"127.0.0.1:0\"\nhosts = [\"ops.example\"]\n\
        basic_auth = {{ users = {{ ops = '{hash}' }} }}\n"
    );
    let site = Configured::serving("dashboard", &text);
    let status = site.status();
    let names = status["listeners"].as_array().expect("addresses").iter().map(string);
    let served = site.served_at().to_string();
    let address: SocketAddr = names
        .filter(|name| *name != served)
        .find_map(|name| name.parse().ok())
        .expect("its address");
    let of =
        |password: &str| format!("Authorization: Basic {}\r\n", base64(&format!("ops:{password}")));
    let refused = get(address, "/", "");
    assert!(
        refused.starts_with("HTTP/1.1 401") && refused.contains("WWW-Authenticate: Basic"),
        "{refused}"
    );
    assert!(!refused.contains("<html"), "not even the page");
    let page = get(address, "/", &of("open sesame"));
    assert!(
        page.starts_with("HTTP/1.1 200")
            && page.contains("Content-Security-Policy: default-src 'none'"),
        "{page}"
    );
    assert!(get(address, "/dashboard/state", &of("open sesame")).contains("\"pools\""));
    for target in ["/status", "/stop", "/metrics", "/cache/stats"] {
        assert!(get(address, target, &of("open sesame")).starts_with("HTTP/1.1 404"), "{target}");
    }
    let named = |host: &str| {
        exchange(
            address,
            &format!(
                "GET / HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n{}\r\n",
                of("open sesame")
            ),
        )
    };
    assert!(named("ops.example").starts_with("HTTP/1.1 200"));
    assert!(named("evil.example").starts_with("HTTP/1.1 403"));
    let guesses: Vec<String> =
        (0..12).map(|number| get(address, "/", &of(&number.to_string()))).collect();
    let count = |status: &str| guesses.iter().filter(|reply| reply.starts_with(status)).count();
    // The right password was the first attempt.
    assert_eq!((count("HTTP/1.1 401"), count("HTTP/1.1 429")), (9, 3));
    assert!(
        get(address, "/", &of("open sesame")).starts_with("HTTP/1.1 200"),
        "a known password is no attempt"
    );
    site.logs(&["dashboard: a wrong password from 127.0.0.1"]);
}

/// RFC 4648, section 4.
fn base64(text: &str) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let letters = |chunk: &[u8]| {
        let byte = |index: usize| u32::from(chunk.get(index).copied().unwrap_or_default());
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        let letter = |at: usize| ALPHABET[(bits >> (18 - 6 * at)) as usize & 63] as char;
        (0..4).map(|at| if at <= chunk.len() { letter(at) } else { '=' }).collect::<String>()
    };
    text.as_bytes().chunks(3).map(letters).collect()
}
